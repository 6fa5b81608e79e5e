//! Turns a form into an entry, a reply, a change of an entry, or a draft.

use http::StatusCode;
use tampu_logbook::{
    attachment::{
        Attachment, Upload,
        stored_name::{stamped, stored_name},
    },
    book::{AttributeDef, EntryAttribute, elog_options::needs_shell, same_name},
    entry::{Content, Entry, EntryRef, NewEntry},
    people::{Resource, Verb},
};
use tampu_types::Time;

use crate::pages::{
    command::PageCommand,
    csrf, entry,
    form::{self, model::EntryForm},
    layout, list, mails,
    numbering::numbered,
    post::{
        conflict::{EditConflict, expected, is_answered, past_lock},
        content::{FormReader, InvalidEntry},
        propagate::propagate,
        resubmit::resubmit,
        transfer::{RefusedResponse, allowed, check_rights, failed, may_change},
    },
    refusal,
    request::BookRequest,
    response::{self, LoggedFailure, Response},
    sent::{ReceivedForm, SentFile},
    settings::FormOccasion,
    subst::Substitutions,
};

/// The time by which the date of an entry may lie in the future, in nanoseconds.
pub(super) const FUTURE: i64 = 86_400_000_000_000;
/// The purpose of a submitted form.
pub(super) struct SubmitTask {
    occasion: FormOccasion,
    /// The entry that is edited.
    old: Option<Entry>,
    /// The entry that is answered.
    parent: Option<u32>,
    /// True if a page of this site sent the form.
    by_page: bool,
}

impl SubmitTask {
    /// A change of this entry. Attributes that are not in the form stay unchanged.
    pub(super) fn editing(old: Entry) -> SubmitTask {
        SubmitTask { occasion: FormOccasion::Edit, old: Some(old), parent: None, by_page: false }
    }
}

/// `cmd=Submit`, and `cmd=Save` for a draft.
pub fn submit(request: &BookRequest<'_>, mut form: ReceivedForm) -> Response {
    // A program that names no revision means the current one: if another user was faster, its change is applied once more. Files
    // came with the request, and cannot be read a second time.
    let again = form.text("entry_revision").is_empty() && form.files.is_empty();
    let done = match try_submit(request, &mut form) {
        Err(refused) if again && refused.extensions().get::<EditConflict>().is_some() => try_submit(request, &mut form),
        done => done,
    };
    done.unwrap_or_else(|refused| *refused)
}

fn try_submit(request: &BookRequest<'_>, form: &mut ReceivedForm) -> Result<Response, RefusedResponse> {
    let task = task(request, form)?;
    let draft = form.is("draft") || form.text("cmd").eq_ignore_ascii_case("save");
    let content = match reading(request, form, &task).content(draft) {
        Ok(content) => content,
        Err(wrong) => return Ok(wrong_form(request, form, &task, &wrong)),
    };
    if draft {
        let mut kept = shown(form, &task, content, None);
        retain(form, &mut kept.content.attachments);
        return Ok(form::kept(request, form, kept));
    }
    let mut content = substituted(request, &task, content)?;
    if let Some(wrong) = missing_after(request, &content) {
        return Ok(wrong_form(request, form, &task, &wrong));
    }
    let files = std::mem::take(&mut form.files);
    let uploads = attach(request, form, &task, files, &mut content)?;
    let id = match &task.old {
        Some(old) if form.is("resubmit") => resubmit(request, form, old, content, uploads)?,
        Some(old) => edit(request, form, old, content, uploads)?,
        None => post(request, form, &task, content, uploads)?,
    };
    form::drop_draft(request, form).map_err(|error| failed(request, &error))?;
    let edited = task.old.is_some() && !form.is("resubmit");
    let mailed = mails::after(request, task.occasion, form.text("suppress"), id, edited);
    if task.old.is_some() || task.parent.is_some() {
        propagate(request, id)?;
    }
    let to = match task.by_page {
        true if task.old.is_none() && has_submit_page(request) => format!("?{}={id}", list::SUBMITTED),
        true if request.settings.list_after_submit() => String::new(),
        true => format!("{id}{}", mailed.parameters(request)),
        false => id.to_string(),
    };
    let mut answer = match form.is("scripted") {
        true => response::with_bytes(StatusCode::OK, "text/plain; charset=utf-8", format!("OK {to}").into_bytes()),
        false => response::redirect(&request.address(&to)),
    };
    if let Some(why) = mailed.failure {
        answer
            .extensions_mut()
            .insert(LoggedFailure(format!("entry {id} of '{}' is posted, but not mailed: {why}", request.book.name)));
    }
    Ok(answer)
}

/// Returns true if a page of the configuration follows a new entry.
fn has_submit_page(request: &BookRequest<'_>) -> bool {
    request.settings.submit_page().is_some_and(|name| request.site.page_file(name).is_some())
}

/// Returns the purpose of a form, after a check of the caller's rights.
fn task(request: &BookRequest<'_>, form: &ReceivedForm) -> Result<SubmitTask, RefusedResponse> {
    let by_page = form.get(csrf::FIELD).is_some();
    let read = |id: u32| request.read_entry(id).map_err(|error| failed(request, &error));
    if let Some(id) = form.number("edit_id") {
        allowed(request, PageCommand::Edit)?;
        let old = read(id)?;
        may_change(request, &old, Verb::Edit)?;
        return Ok(SubmitTask { occasion: FormOccasion::Edit, old: Some(old), parent: None, by_page });
    }
    let parent = form.number("reply_to");
    let (command, occasion) = match parent {
        Some(id) => {
            read(id)?;
            let first = !is_answered(request, id)?;
            entry::may_reply(request, id, first).map_err(|denied| Box::new(request.refuse(denied)))?;
            (PageCommand::Reply, if first { FormOccasion::FirstReply } else { FormOccasion::Reply })
        }
        None if form.number("orig_id").is_some() => (PageCommand::Duplicate, FormOccasion::Duplicate),
        None => (PageCommand::New, FormOccasion::New),
    };
    allowed(request, command)?;
    check_rights(request, Verb::Post, Resource::Book(&request.book.name))?;
    Ok(SubmitTask { occasion, old: None, parent, by_page })
}

pub(super) fn reading<'a>(request: &'a BookRequest<'_>, form: &'a ReceivedForm, task: &'a SubmitTask) -> FormReader<'a> {
    FormReader {
        form,
        book: &request.book,
        settings: &request.settings,
        zone: &request.zone,
        occasion: task.occasion,
        by_page: task.by_page,
        old: task.old.as_ref().map(|old| &old.content),
    }
}

/// Returns the form to show again.
fn shown(form: &ReceivedForm, task: &SubmitTask, content: Content, error: Option<String>) -> EntryForm {
    EntryForm {
        occasion: task.occasion,
        of: task.old.as_ref().map(|old| old.at.id).or(task.parent),
        revision: form.text("entry_revision").parse().ok(),
        content,
        error,
        note: None,
        preview: form.text("cmd").eq_ignore_ascii_case(PageCommand::Preview.name()),
        draft: form.text("draft_id").parse().ok(),
        suppress: form.is("suppress"),
        resubmit: form.is("resubmit"),
        lock_key: form.get(form::model::LOCK_KEY).map(str::to_owned),
    }
}

/// Answers an invalid entry: with the filled form and the error for a person, and in ELOG's words for a program.
fn wrong_form(request: &BookRequest<'_>, form: &ReceivedForm, task: &SubmitTask, wrong: &InvalidEntry) -> Response {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let again = reading(request, form, task).content(true);
    let error = wrong.said(&request.words).unwrap_or_else(|| text_of(&wrong.html()));
    match again {
        Ok(content) if task.by_page => form::show(request, &shown(form, task, content, Some(error)), status),
        _ => refusal::html_error(request, status, &wrong.html()),
    }
}

/// Returns our HTML as text.
fn text_of(html: &str) -> String {
    tampu_logbook::plain::plain(tampu_logbook::entry::Encoding::Html, html).trim().to_owned()
}

/// `cmd=Update`, `cmd=Preview`: the form again with the chosen values, because a choice decides about other fields, or
/// with the text as the entry will show it.
pub fn again(request: &BookRequest<'_>, form: &ReceivedForm) -> Response {
    let show = || {
        let task = task(request, form)?;
        match reading(request, form, &task).content(true) {
            Ok(mut content) => {
                retain(form, &mut content.attachments);
                Ok(form::show(request, &shown(form, &task, content, None), StatusCode::OK))
            }
            Err(wrong) => Ok(refusal::html_error(request, StatusCode::UNPROCESSABLE_ENTITY, &wrong.html())),
        }
    };
    show().unwrap_or_else(|refused: RefusedResponse| *refused)
}

/// Applies `Subst` to the values.
pub(super) fn substituted(
    request: &BookRequest<'_>,
    task: &SubmitTask,
    mut content: Content,
) -> Result<Content, RefusedResponse> {
    let (book, settings, zone) = (&request.book, &request.settings, &request.zone);
    let values: Vec<(String, String)> = content.attributes.iter().map(|said| (said.name.clone(), said.joined())).collect();
    let value = |name: &str| values.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str());
    let set = settings.set_by(value);
    // The form of a reply was shown with its substitutions. Those that contain the value itself are not applied again.
    let is_reply_form = task.by_page && matches!(task.occasion, FormOccasion::Reply | FormOccasion::FirstReply);
    let has_itself =
        |def: &AttributeDef, pattern: &str| pattern.to_lowercase().contains(&format!("${}", def.name.to_lowercase()));
    let pattern_of = |def: &AttributeDef| {
        let subst = settings.subst(&def.name, task.occasion, &set);
        let subst = subst.filter(|pattern| !(is_reply_form && has_itself(def, pattern)));
        // Of a locked attribute the form's value does not count, so its preset is applied here.
        let is_preset = task.old.is_some() && settings.attribute(def, &set).locked;
        let preset = || settings.preset(&def.name, task.occasion, &set).filter(|_| is_preset);
        subst.or_else(preset).filter(|pattern| !needs_shell(pattern))
    };
    if !book.attributes.iter().any(|def| pattern_of(def).is_some()) {
        return Ok(content);
    }
    let minutes = zone.minutes(request.now, 0);
    let of_form = Entry {
        at: EntryRef::new(&book.name, task.old.as_ref().map_or(0, |old| old.at.id)),
        date: task.old.as_ref().map_or(request.now, |old| old.date),
        zone: task.old.as_ref().map_or(minutes, |old| old.zone),
        by: request.by().to_owned(),
        revision: 0,
        changed: request.now,
        parent: task.parent,
        thread: 0,
        content: content.clone(),
        signatures: vec![],
    };
    let mut names =
        Substitutions::new(request.caller, book, settings, zone, request.now).with_entry(&of_form, book, settings, zone);
    if let Some(parent) = task.parent {
        names.set("Reply to", &parent.to_string());
    }
    for def in &book.attributes {
        let Some(pattern) = pattern_of(def) else { continue };
        let mut value = names.expand(pattern);
        if task.old.is_none() && value.contains('#') {
            value = numbered(&request.form_source(), &def.name, &value).map_err(|error| failed(request, &error))?;
        }
        // ELOG's configurations put a line end between the old and the new text; a value has no line ends.
        let value = value.strip_prefix("<br>").unwrap_or(&value).replace(['\r', '\n', '\0'], " ");
        let said = EntryAttribute::new(&def.name, &value);
        match content.attributes.iter_mut().find(|said| same_name(&said.name, &def.name)) {
            Some(known) => *known = said,
            None => content.attributes.push(said),
        }
    }
    Ok(content)
}

/// Finds a required attribute that a substitution has emptied.
pub(super) fn missing_after(request: &BookRequest<'_>, content: &Content) -> Option<InvalidEntry> {
    let empty = |name: &str| content.attribute(name).is_none_or(|said| said.values.iter().all(|value| value.trim().is_empty()));
    request
        .book
        .attributes
        .iter()
        .find(|def| def.required && def.computed.is_empty() && empty(&def.name))
        .map(|def| InvalidEntry::Missing(def.name.clone()))
}

/// Keeps the attachments that the form names, or all if it names none, as the `elog` command does.
fn retain(form: &ReceivedForm, attachments: &mut Vec<Attachment>) {
    let named = form.numbered("attachment");
    let dropped = form.numbered("delatt");
    let speaks = !named.is_empty() || form.get("next_attachment").is_some() || form.get(csrf::FIELD).is_some();
    if speaks {
        let goes = |at: u32| dropped.iter().any(|(number, _)| *number == at);
        attachments.retain(|attachment| {
            let stored = stored_name(attachment);
            named.iter().any(|(at, name)| !goes(*at) && (*name == stored || attachment.elog.as_deref() == Some(*name)))
        });
    }
}

/// Turns the received files into attachments, with names in ELOG's form.
fn attach(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    task: &SubmitTask,
    files: Vec<SentFile>,
    content: &mut Content,
) -> Result<Vec<Upload>, RefusedResponse> {
    if task.old.is_some() {
        retain(form, &mut content.attachments);
    }
    let files: Vec<SentFile> =
        files.into_iter().filter(|file| file.field.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("attfile"))).collect();
    if !files.is_empty() && !request.settings.attachments() {
        let text = "Error: attachments are not enabled in this logbook";
        return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
    }
    let minutes = request.zone.minutes(request.now, 0);
    let mut uploads = Vec::with_capacity(files.len());
    for file in files {
        let attachment = file.upload.attachment(&file.name, request.now);
        // If another file has this name, the store gives it a name of its own.
        let stored = stamped(&attachment.name, request.now, minutes);
        content.attachments.push(Attachment { elog: Some(stored), ..attachment });
        uploads.push(file.upload);
    }
    Ok(uploads)
}

fn post(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    task: &SubmitTask,
    content: Content,
    uploads: Vec<Upload>,
) -> Result<u32, RefusedResponse> {
    // py_elog sends the date; a clock that is ahead does not put entries into next year.
    let when = form.text("When").parse::<i64>().ok().filter(|seconds| *seconds > 0).map(|seconds| Time::from_unix(seconds, 0));
    let date = when.filter(|when| when.0 <= request.now.0.saturating_add(FUTURE)).unwrap_or(request.now);
    let zone = request.zone.minutes(date, 0);
    let new = NewEntry { book: request.book.name.clone(), parent: task.parent, content, date: Some(date), zone };
    let at = request.site.store().post(new, uploads, request.by()).map_err(|error| failed(request, &error))?;
    Ok(at.id)
}

fn edit(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    old: &Entry,
    content: Content,
    uploads: Vec<Upload>,
) -> Result<u32, RefusedResponse> {
    let (store, by) = (request.site.store(), request.by());
    let expected = expected(request, form, old)?;
    past_lock(request, form, old, || store.edit(&old.at, content, uploads, by, Some(expected)).map(|_| ()))?;
    store.unlock(&old.at, by).map_err(|error| failed(request, &error))?;
    Ok(old.at.id)
}
