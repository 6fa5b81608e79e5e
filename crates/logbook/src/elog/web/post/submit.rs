//! A form becomes an entry, an answer, a change of an entry, or a draft.

use std::time::Duration;

use http::StatusCode;
use tampu_types::Time;

use super::{
    content::{Reading, Wrong},
    guest_with, refusal,
    transfer::{Refused, allowed, asked, failed, may_change},
};
use crate::{
    attachment::{Attachment, Upload},
    book::{EntryAttribute, same_name},
    elog::{
        web::{
            Body, BookAsk, Failure, Response,
            command::Command,
            csrf,
            form::{self, Form as Shown},
            html::put,
            layout, response,
            sent::{Form, SentFile},
            settings::Occasion,
            subst::Names,
        },
        written::{stamped, stored_name},
    },
    entry::{Content, Draft, Entry, EntryRef, NewEntry},
    people::{Resource, Verb},
    search::Search,
    store::StoreError,
};

/// How much later than now an entry may be said to be.
pub(super) const FUTURE: i64 = 86_400_000_000_000;
/// How long an entry is locked for who changes it past a lock, if the process ends meanwhile.
const CHANGING: Duration = Duration::from_secs(60);

/// What is to be done.
pub(super) struct Task {
    occasion: Occasion,
    /// The entry that is edited.
    old: Option<Entry>,
    /// The entry that is answered.
    parent: Option<u32>,
    /// Whether a page of ours asks.
    by_page: bool,
}

impl Task {
    /// A change of this entry; what the form does not speak of stays.
    pub(super) fn editing(old: Entry) -> Task {
        Task { occasion: Occasion::Edit, old: Some(old), parent: None, by_page: false }
    }
}

/// `cmd=Submit`, and `cmd=Save` for a draft.
pub fn submit(ask: &BookAsk<'_>, mut form: Form) -> Response {
    // A program that names no revision means the entry as it is now: overtaken by somebody, what it sent is put to that once more. Files
    // came with the request, and are not there a second time.
    let again = form.text("entry_revision").is_empty() && form.files.is_empty();
    let done = match try_submit(ask, &mut form) {
        Err(refused) if again && refused.extensions().get::<Overtaken>().is_some() => try_submit(ask, &mut form),
        done => done,
    };
    done.unwrap_or_else(|refused| *refused)
}

/// Marks the answer to a change of what was changed meanwhile.
#[derive(Debug, Clone)]
struct Overtaken;

fn try_submit(ask: &BookAsk<'_>, form: &mut Form) -> Result<Response, Refused> {
    let task = task(ask, form)?;
    let draft = form.is("draft") || form.text("cmd").eq_ignore_ascii_case("save");
    let content = match reading(ask, form, &task).content(draft) {
        Ok(content) => content,
        Err(wrong) => return Ok(wrong_form(ask, form, &task, &wrong)),
    };
    if draft {
        return keep(ask, form, &task, content);
    }
    let mut content = substituted(ask, &task, content)?;
    if let Some(wrong) = missing_after(ask, &content) {
        return Ok(wrong_form(ask, form, &task, &wrong));
    }
    let files = std::mem::take(&mut form.files);
    let uploads = attach(ask, form, &task, files, &mut content)?;
    let id = match &task.old {
        Some(old) if form.is("resubmit") => resubmit(ask, form, old, content, uploads)?,
        Some(old) => edit(ask, form, old, content, uploads)?,
        None => post(ask, form, &task, content, uploads)?,
    };
    if let Ok(number) = form.text("draft_id").parse::<i64>() {
        ask.site.store().drop_draft(ask.by(), number).map_err(|error| failed(ask, &error))?;
    }
    Ok(match task.by_page && ask.settings.list_after_submit() {
        true => layout::redirect(&ask.address("")),
        false => layout::redirect(&ask.address(&id.to_string())),
    })
}

/// What a form is for, and whether the caller may.
fn task(ask: &BookAsk<'_>, form: &Form) -> Result<Task, Refused> {
    let by_page = form.get(csrf::FIELD).is_some();
    let store = ask.site.store();
    let read = |id: u32| store.entry(&EntryRef::new(&ask.book.name, id)).map_err(|error| failed(ask, &error));
    if let Some(id) = form.number("edit_id") {
        allowed(ask, Command::Edit)?;
        let old = read(id)?;
        may_change(ask, &old, Verb::Edit)?;
        return Ok(Task { occasion: Occasion::Edit, old: Some(old), parent: None, by_page });
    }
    let parent = form.number("reply_to");
    let (command, occasion) = match parent {
        Some(id) => {
            let thread = store.thread(&EntryRef::new(&ask.book.name, id)).map_err(|error| failed(ask, &error))?;
            let first = !thread.iter().any(|entry| entry.parent == Some(id));
            (Command::Reply, if first { Occasion::FirstReply } else { Occasion::Reply })
        }
        None if form.number("orig_id").is_some() => (Command::Duplicate, Occasion::Duplicate),
        None => (Command::New, Occasion::New),
    };
    allowed(ask, command)?;
    asked(ask, Verb::Post, Resource::Book(&ask.book.name))?;
    Ok(Task { occasion, old: None, parent, by_page })
}

pub(super) fn reading<'a>(ask: &'a BookAsk<'_>, form: &'a Form, task: &'a Task) -> Reading<'a> {
    Reading {
        form,
        book: &ask.book,
        settings: &ask.settings,
        zone: &ask.site.config.zone,
        occasion: task.occasion,
        by_page: task.by_page,
        old: task.old.as_ref().map(|old| &old.content),
    }
}

/// What a form shows again.
fn shown(form: &Form, task: &Task, content: Content, error: Option<String>) -> Shown {
    Shown {
        occasion: task.occasion,
        of: task.old.as_ref().map(|old| old.at.id).or(task.parent),
        revision: form.text("entry_revision").parse().ok(),
        content,
        error,
        draft: form.text("draft_id").parse().ok(),
        suppress: form.is("suppress"),
        resubmit: form.is("resubmit"),
        lock_key: form.get(form::LOCK_KEY).map(str::to_owned),
    }
}

/// What was wrong: above the form, with all that was written, for a person; in ELOG's words for a program.
fn wrong_form(ask: &BookAsk<'_>, form: &Form, task: &Task, wrong: &Wrong) -> Response {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let again = reading(ask, form, task).content(true);
    match again {
        Ok(content) if task.by_page => form::show(ask, &shown(form, task, content, Some(text_of(&wrong.html()))), status),
        _ => refusal(ask, status, &wrong.html()),
    }
}

/// HTML of ours as text.
fn text_of(html: &str) -> String {
    crate::plain::plain(crate::entry::Encoding::Html, html).trim().to_owned()
}

/// `cmd=Update`: the form again, with what was chosen, because that decides what else it has.
pub fn again(ask: &BookAsk<'_>, form: &Form) -> Response {
    let show = || {
        let task = task(ask, form)?;
        match reading(ask, form, &task).content(true) {
            Ok(mut content) => {
                retain(form, &mut content.attachments);
                Ok(form::show(ask, &shown(form, &task, content, None), StatusCode::OK))
            }
            Err(wrong) => Ok(refusal(ask, StatusCode::UNPROCESSABLE_ENTITY, &wrong.html())),
        }
    };
    show().unwrap_or_else(|refused: Refused| *refused)
}

/// Keeps what somebody has begun to write, and says under which number, as ELOG's pages want it.
fn keep(ask: &BookAsk<'_>, form: &Form, task: &Task, content: Content) -> Result<Response, Refused> {
    let edits = task.old.as_ref().map(|old| old.at.id);
    let draft = Draft {
        number: form.text("draft_id").parse().unwrap_or(0),
        owner: ask.by().to_owned(),
        book: ask.book.name.clone(),
        edits,
        parent: task.parent,
        saved: ask.now,
        content: Content { attachments: Vec::new(), ..content },
    };
    if ask.caller.login.is_empty() {
        return Err(Box::new(layout::error(ask, StatusCode::FORBIDDEN, "Error: drafts are kept for those who have logged in")));
    }
    let number = ask.site.store().save_draft(&draft).map_err(|error| failed(ask, &error))?;
    let mut answer = response(StatusCode::OK, "text/plain; charset=utf-8", Vec::new());
    *answer.body_mut() = Body::Bytes(format!("OK {number}").into_bytes());
    Ok(answer)
}

/// What `Subst` makes of the values.
pub(super) fn substituted(ask: &BookAsk<'_>, task: &Task, mut content: Content) -> Result<Content, Refused> {
    let (book, settings, zone) = (&ask.book, &ask.settings, &ask.site.config.zone);
    let values: Vec<(String, String)> = content.attributes.iter().map(|said| (said.name.clone(), said.joined())).collect();
    let value = |name: &str| values.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str());
    let set = settings.set_by(value);
    if !book.attributes.iter().any(|def| settings.subst(&def.name, task.occasion, &set).is_some()) {
        return Ok(content);
    }
    let minutes = zone.minutes(ask.now, 0);
    let of_form = Entry {
        at: EntryRef::new(&book.name, task.old.as_ref().map_or(0, |old| old.at.id)),
        date: task.old.as_ref().map_or(ask.now, |old| old.date),
        zone: task.old.as_ref().map_or(minutes, |old| old.zone),
        by: ask.by().to_owned(),
        revision: 0,
        changed: ask.now,
        parent: task.parent,
        thread: 0,
        content: content.clone(),
    };
    let mut names = Names::new(ask.caller, book, settings, zone, ask.now).with_entry(&of_form, book, settings, zone);
    if let Some(parent) = task.parent {
        names.set("Reply to", &parent.to_string());
    }
    for def in &book.attributes {
        let Some(pattern) = settings.subst(&def.name, task.occasion, &set) else { continue };
        let mut value = names.expand(pattern);
        if task.old.is_none() && value.contains('#') {
            value = numbered(ask, &def.name, &value)?;
        }
        // ELOG's configurations put a line's end between what was and what is new; a value has none.
        let value = value.strip_prefix("<br>").unwrap_or(&value).replace(['\r', '\n', '\0'], " ");
        let said = EntryAttribute::new(&def.name, &value);
        match content.attributes.iter_mut().find(|said| same_name(&said.name, &def.name)) {
            Some(known) => *known = said,
            None => content.attributes.push(said),
        }
    }
    Ok(content)
}

/// `XYZ-###` becomes the number after that of the newest entry, with as many digits; 1 where that is written otherwise.
fn numbered(ask: &BookAsk<'_>, name: &str, pattern: &str) -> Result<String, Refused> {
    let begin = pattern.find('#').unwrap_or(pattern.len());
    let digits = pattern[begin..].bytes().take_while(|byte| *byte == b'#').count();
    let (before, after) = (&pattern[..begin], &pattern[begin + digits..]);
    let newest = Search { books: vec![ask.book.name.clone()], limit: 1, count_to: 0, ..Search::default() };
    let page = ask.site.store().search(&newest, &ask.stop).map_err(|error| failed(ask, &error))?;
    let last = page.hits.first().and_then(|hit| hit.entry.content.attribute(name)).map(EntryAttribute::joined);
    let number = last.as_deref().and_then(|last| last.strip_prefix(before)).map(|rest| {
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..end].parse::<u64>().unwrap_or(0)
    });
    Ok(format!("{before}{:0digits$}{after}", number.unwrap_or(0).saturating_add(1)))
}

/// A substitution can leave nothing where something is required.
pub(super) fn missing_after(ask: &BookAsk<'_>, content: &Content) -> Option<Wrong> {
    let empty = |name: &str| content.attribute(name).is_none_or(|said| said.values.iter().all(|value| value.trim().is_empty()));
    ask.book.attributes.iter().find(|def| def.required && empty(&def.name)).map(|def| Wrong::Missing(def.name.clone()))
}

/// What of the attachments that are there stays: what the form names, or all if it names none, as the `elog` command does.
fn retain(form: &Form, attachments: &mut Vec<Attachment>) {
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

/// The files that came become attachments, with names as ELOG gives them.
fn attach(
    ask: &BookAsk<'_>,
    form: &Form,
    task: &Task,
    files: Vec<SentFile>,
    content: &mut Content,
) -> Result<Vec<Upload>, Refused> {
    if task.old.is_some() {
        retain(form, &mut content.attachments);
    }
    let files: Vec<SentFile> =
        files.into_iter().filter(|file| file.field.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("attfile"))).collect();
    if !files.is_empty() && !ask.settings.attachments() {
        let text = "Error: attachments are not enabled in this logbook";
        return Err(Box::new(layout::error(ask, StatusCode::FORBIDDEN, text)));
    }
    let minutes = ask.site.config.zone.minutes(ask.now, 0);
    let mut uploads = Vec::with_capacity(files.len());
    for file in files {
        let attachment = file.upload.attachment(&file.name, ask.now);
        // Where another file has this name the store finds it one of its own.
        let stored = stamped(&attachment.name, ask.now, minutes);
        content.attachments.push(Attachment { elog: Some(stored), ..attachment });
        uploads.push(file.upload);
    }
    Ok(uploads)
}

fn post(ask: &BookAsk<'_>, form: &Form, task: &Task, content: Content, uploads: Vec<Upload>) -> Result<u32, Refused> {
    // py_elog says when; a clock that is ahead does not put entries into next year.
    let when = form.text("When").parse::<i64>().ok().filter(|seconds| *seconds > 0).map(|seconds| Time::from_unix(seconds, 0));
    let date = when.filter(|when| when.0 <= ask.now.0.saturating_add(FUTURE)).unwrap_or(ask.now);
    let zone = ask.site.config.zone.minutes(date, 0);
    let new = NewEntry { book: ask.book.name.clone(), parent: task.parent, content, date: Some(date), zone };
    let at = ask.site.store().post(new, uploads, ask.by()).map_err(|error| failed(ask, &error))?;
    Ok(at.id)
}

fn edit(ask: &BookAsk<'_>, form: &Form, old: &Entry, content: Content, uploads: Vec<Upload>) -> Result<u32, Refused> {
    let (store, by) = (ask.site.store(), ask.by());
    let expected = expected(ask, form, old)?;
    past_lock(ask, form, old, || store.edit(&old.at, content, uploads, by, Some(expected)).map(|_| ()))?;
    store.unlock(&old.at, by).map_err(|error| failed(ask, &error))?;
    Ok(old.at.id)
}

/// The revision that is changed: the one the form names, if the entry still has it, else the one that was read.
fn expected(ask: &BookAsk<'_>, form: &Form, old: &Entry) -> Result<u32, Refused> {
    match form.text("entry_revision").parse::<u32>() {
        Ok(expected) if expected != old.revision => Err(Box::new(changed(ask, old))),
        _ => Ok(old.revision),
    }
}

/// Does what a lock forbids to others: one of this form's own, or somebody else's, if the form says that it does not wait for who has the form open. That
/// one is told when sending it. Meanwhile the lock is the changer's, so that nobody comes between; if it could not be done, it is theirs again.
fn past_lock(
    ask: &BookAsk<'_>,
    form: &Form,
    old: &Entry,
    change: impl FnOnce() -> crate::store::Result<()>,
) -> Result<(), Refused> {
    let store = ask.site.store();
    let lock = store.locked(&old.at).map_err(|error| failed(ask, &error))?.filter(|lock| lock.by != ask.by());
    let own = holder(ask, form);
    let mut passed = lock.filter(|lock| lock.by == own || form.is("skiplock"));
    if let Some(lock) = &passed {
        let to = (ask.by(), &*ask.caller.from.to_string());
        if !store.hand_lock(&old.at, &lock.by, to, CHANGING).map_err(|error| failed(ask, &error))? {
            // It was given back, or its time was over, in this moment.
            passed = None;
        }
    }
    let Err(error) = change() else { return Ok(()) };
    if let Some(lock) = passed {
        let left = u64::try_from(lock.until.0.saturating_sub(ask.now.0)).unwrap_or(0);
        // What could not be done is what is told.
        let _ = store.hand_lock(&old.at, ask.by(), (&lock.by, &lock.host), Duration::from_nanos(left));
    }
    match error {
        StoreError::Changed { .. } => Err(Box::new(changed(ask, old))),
        error => Err(failed(ask, &error)),
    }
}

/// By whom the lock is that a form was opened with: guests have no name, so each form of theirs has a key of its own.
pub(super) fn holder(ask: &BookAsk<'_>, form: &Form) -> String {
    match form.text(form::LOCK_KEY) {
        key if ask.caller.login.is_empty() && !key.is_empty() => guest_with(key),
        _ => ask.by().to_owned(),
    }
}

/// Somebody else was quicker.
fn changed(ask: &BookAsk<'_>, old: &Entry) -> Response {
    let mut html = String::new();
    put!(&mut html, "Error: entry {} was changed by somebody else while you wrote. ", old.at.id);
    put!(&mut html, "Go back to keep what you wrote, and look at <a href=\"{}\">the entry</a> as it is now.", old.at.id);
    let mut answer = refusal(ask, StatusCode::CONFLICT, &html);
    answer.extensions_mut().insert(Overtaken);
    answer
}

/// The entry goes, and comes again with a new number and date. What somebody else holds or has changed stays, and nothing comes.
fn resubmit(ask: &BookAsk<'_>, form: &Form, old: &Entry, content: Content, uploads: Vec<Upload>) -> Result<u32, Refused> {
    let store = ask.site.store();
    may_change(ask, old, Verb::Delete)?;
    let thread = store.thread(&old.at).map_err(|error| failed(ask, &error))?;
    if thread.iter().any(|entry| entry.parent == Some(old.at.id)) {
        let text = "Error: this entry has been answered, and stays where it is: send it without \"Resubmit as new entry\", or write a reply";
        return Err(Box::new(layout::error(ask, StatusCode::CONFLICT, text)));
    }
    expected(ask, form, old)?;
    let own = [ask.by().to_owned(), holder(ask, form)];
    let lock = store.locked(&old.at).map_err(|error| failed(ask, &error))?.filter(|lock| !own.contains(&lock.by));
    if let Some(lock) = lock.filter(|_| !form.is("skiplock")) {
        return Err(failed(ask, &StoreError::Locked { at: old.at.clone(), lock: Box::new(lock) }));
    }
    let zone = ask.site.config.zone.minutes(ask.now, 0);
    let new = NewEntry { book: ask.book.name.clone(), parent: old.parent, content, date: Some(ask.now), zone };
    let at = store.post(new, uploads, ask.by()).map_err(|error| failed(ask, &error))?;
    let gone = past_lock(ask, form, old, || store.delete(&old.at, ask.by(), false).map(|_| ()));
    if let Err(refused) = gone {
        // Locked or gone in the last moment: the new one goes again. If not even that can be done, both numbers are told.
        return Err(match store.delete(&at, ask.by(), false) {
            Ok(_) => refused,
            Err(error) => {
                let text = format!("Error: entry {} was posted, but entry {} could not be taken away for it", at.id, old.at.id);
                let mut answer = layout::error(ask, StatusCode::INTERNAL_SERVER_ERROR, &text);
                answer.extensions_mut().insert(Failure(error.to_string()));
                Box::new(answer)
            }
        });
    }
    Ok(at.id)
}
