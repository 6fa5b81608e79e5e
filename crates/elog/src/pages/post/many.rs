//! Commands for several entries at once, as `Select` of a list offers them: deleting, copying, moving, changing
//! attributes.
//!
//! All entries are checked against the caller's rights and the book's settings before the first is changed. Attributes
//! are changed in one transaction, so a conflicting change by another user leaves all entries as they are. Entries are
//! deleted, copied and moved one by one, as in ELOG: a conflict ends the command, and the response states how many
//! entries were changed.

use std::collections::{BTreeSet, HashSet};

use http::StatusCode;
use tampu_logbook::{
    book::AttributeKind,
    entry::{Entry, EntryRef},
    people::{Resource, Verb},
    store::{EntryEdit, StoreError},
};

use crate::pages::{
    access,
    address::Parameters,
    command::PageCommand,
    form::field::{AttributeField, field_name},
    html::{SafeHtml, put},
    layout::{self, BookPage},
    list::select::targets,
    post::{
        submit::{SubmitTask, missing_after, reading, substituted},
        transfer::{RefusedResponse, allowed, check_rights, check_target, failed, family, hidden, may_change, may_delete},
    },
    refusal,
    request::BookRequest,
    response::{self, LoggedFailure, Response},
    sent::ReceivedForm,
    settings::{BookSettings, FormOccasion},
};

/// The field of the second form that holds the numbers of the selected entries.
const SELECTED: &str = "tampu_selected";
/// The beginning of the names of boxes that clear an attribute.
const EMPTY: &str = "tampu_empty";
/// Maximum number of entries at once.
const MOST: usize = 1000;

/// Returns true if a form is about several entries.
pub fn is_of_many(form: &ReceivedForm) -> bool {
    form.get("nsel").is_some() || form.get(SELECTED).is_some()
}

/// Executes the command of a form for the selected entries.
pub fn answer(request: &BookRequest<'_>, form: &ReceivedForm, command: PageCommand) -> Response {
    done(request, form, command).unwrap_or_else(|refused| *refused)
}

fn done(request: &BookRequest<'_>, form: &ReceivedForm, command: PageCommand) -> Result<Response, RefusedResponse> {
    let ids = selected(form);
    if ids.is_empty() || ids.len() > MOST {
        let text =
            if ids.is_empty() { "No entries selected".to_owned() } else { format!("Error: more than {MOST} entries selected") };
        return Ok(layout::error(request, StatusCode::OK, &text));
    }
    match command {
        PageCommand::Delete => delete(request, form, &ids),
        PageCommand::CopyTo | PageCommand::MoveTo => transfer(request, form, &ids, command),
        PageCommand::Edit => edit(request, form, &ids),
        PageCommand::Submit => change(request, form, &ids),
        _ => Ok(back(request, form)),
    }
}

/// Returns the selected numbers, each once.
fn selected(form: &ReceivedForm) -> Vec<u32> {
    let mut ids: Vec<u32> = match form.get(SELECTED) {
        Some(all) => all.split(',').filter_map(|id| id.trim().parse().ok()).collect(),
        None => form.numbered("s").iter().filter_map(|(_, id)| id.trim().parse().ok()).collect(),
    };
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn joined(ids: &[u32], separator: &str) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
}

/// Redirects to the list in which the entries were selected.
fn back(request: &BookRequest<'_>, form: &ReceivedForm) -> Response {
    let query = form.text("redir").trim_start_matches('?');
    response::redirect(&request.address(&Parameters::read(query).written()))
}

/// The fields that every second form has.
fn carried(request: &BookRequest<'_>, form: &ReceivedForm, ids: &[u32], command: PageCommand) -> String {
    let mut out = hidden(request, command);
    for (name, value) in [(SELECTED, joined(ids, ",")), ("redir", form.text("redir").to_owned())] {
        put!(&mut out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    }
    out
}

/// Returns the numbers of the selected entries and of all replies to them, each once, and of those whose parent is not
/// among them. With `removes`, the caller must be allowed to delete all of them.
fn families(request: &BookRequest<'_>, ids: &[u32], removes: bool) -> Result<(Vec<u32>, Vec<u32>), RefusedResponse> {
    let (mut all, mut heads): (BTreeSet<u32>, Vec<u32>) = (BTreeSet::new(), Vec::new());
    for &id in ids {
        if all.contains(&id) {
            continue;
        }
        let family = family(request, id)?;
        if removes {
            may_delete(request, id, &family)?;
        }
        // A later entry can be the parent of one before it.
        let members: HashSet<u32> = family.iter().copied().collect();
        heads.retain(|head| !members.contains(head));
        heads.push(id);
        all.extend(family);
    }
    Ok((all.into_iter().collect(), heads))
}

fn delete(request: &BookRequest<'_>, form: &ReceivedForm, ids: &[u32]) -> Result<Response, RefusedResponse> {
    allowed(request, PageCommand::Delete)?;
    let (seen, heads) = families(request, ids, true)?;
    match form.text("confirm") {
        "Yes" => {}
        "No" => return Ok(back(request, form)),
        _ => return Ok(confirmation(request, form, ids, seen.len() - ids.len())),
    }
    each(request, form, &heads, "deleted", |at| request.site.store().delete_seen(at, request.by(), &seen).map(|_| ()))
}

fn confirmation(request: &BookRequest<'_>, form: &ReceivedForm, ids: &[u32], answers: usize) -> Response {
    let mut body = String::new();
    let carried = SafeHtml(carried(request, form, ids, PageCommand::Delete));
    put!(&mut body, "<form method=\"post\" action=\"./\" class=\"dlgframe\">\n{}", carried);
    put!(&mut body, "<p>Are you sure to delete these entries: {}", joined(ids, ", "));
    match answers {
        0 => {}
        1 => put!(&mut body, ", and an answer to them"),
        answers => put!(&mut body, ", and {} answers to them", answers),
    }
    put!(&mut body, "? Their numbers are not given again, and their history stays.</p>\n");
    put!(
        &mut body,
        "<p><button name=\"confirm\" value=\"Yes\">Yes</button> <button name=\"confirm\" value=\"No\">No</button></p></form>\n"
    );
    BookPage::new(request, "Delete", body).answer(StatusCode::OK)
}

fn transfer(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    ids: &[u32],
    command: PageCommand,
) -> Result<Response, RefusedResponse> {
    allowed(request, command)?;
    let (store, moving) = (request.site.store(), command == PageCommand::MoveTo);
    let (_, heads) = families(request, ids, moving)?;
    let (field, word) = if moving { ("destm", "moved") } else { ("destc", "copied") };
    let to = match form.text(field) {
        "" => match &targets(request, moving).map_err(|error| failed(request, &error))?[..] {
            [only] => only.clone(),
            _ => return Ok(layout::error(request, StatusCode::OK, "Error: choose the logbook beside the button")),
        },
        to => to.to_owned(),
    };
    let target = store.book(&to).map_err(|error| failed(request, &error))?;
    check_target(request, &target.name, moving)?;
    let settings = BookSettings::of(&target);
    access::check(request.caller, &target, &settings, PageCommand::New).map_err(|denied| Box::new(request.refuse(denied)))?;
    check_rights(request, Verb::Post, Resource::Book(&target.name))?;
    each(request, form, &heads, word, |at| match moving {
        true => store.move_to(at, &target.name, request.by(), true).map(|_| ()),
        false => store.copy(at, &target.name, request.by(), true).map(|_| ()),
    })
}

/// Calls `act` for each entry and redirects to the list, or reports the changed entries and the reason for the failure
/// of the others.
fn each(
    request: &BookRequest<'_>,
    form: &ReceivedForm,
    ids: &[u32],
    word: &str,
    mut act: impl FnMut(&EntryRef) -> tampu_logbook::store::Result<()>,
) -> Result<Response, RefusedResponse> {
    for (nth, &id) in ids.iter().enumerate() {
        match act(&EntryRef::new(&request.book.name, id)) {
            Ok(()) => {}
            Err(error) if nth == 0 => return Err(failed(request, &error)),
            Err(error) => return Ok(half_done(request, &ids[..nth], id, word, &error)),
        }
    }
    Ok(back(request, form))
}

fn half_done(request: &BookRequest<'_>, done: &[u32], id: u32, word: &str, error: &StoreError) -> Response {
    let status = request.failed(error).status();
    let why = if status.is_server_error() { "the logbook's store failed".to_owned() } else { error.to_string() };
    let text = format!("Error: entry {id} was not {word}: {why}. Before it these were {word}: {}", joined(done, ", "));
    let mut answer = layout::error(request, status, &text);
    if status.is_server_error() {
        answer.extensions_mut().insert(LoggedFailure(error.to_string()));
    }
    answer
}

/// Answers with the form for the attributes of all entries. Empty fields change nothing.
fn edit(request: &BookRequest<'_>, form: &ReceivedForm, ids: &[u32]) -> Result<Response, RefusedResponse> {
    allowed(request, PageCommand::Edit)?;
    for &id in ids {
        may_change(request, &read(request, id)?, Verb::Edit)?;
    }
    let mut body = String::new();
    put!(
        &mut body,
        "<form class=\"entry\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n{}",
        SafeHtml(carried(request, form, ids, PageCommand::Submit))
    );
    put!(
        &mut body,
        "<p>Entries {}: empty fields keep the original values.</p>\n<table class=\"listframe\">\n",
        joined(ids, ", ")
    );
    for (index, def) in request.book.attributes.iter().enumerate() {
        if def.locked
            || !def.computed.is_empty()
            || request.settings.is_fixed(&def.name, FormOccasion::Edit)
            || !request.settings.in_form(&def.name, &[])
        {
            continue;
        }
        let can_be_empty = !def.required && def.kind != AttributeKind::Boolean;
        let mut def = def.clone();
        def.required = false;
        match AttributeField::is_group(def.kind) {
            true => {
                put!(&mut body, "<tr><th class=\"attribname\" id=\"f{}\">{}:</th>", index, def.name);
                put!(&mut body, "<td class=\"attribvalue\" role=\"group\" aria-labelledby=\"f{}\">", index);
            }
            false => {
                put!(&mut body, "<tr><th class=\"attribname\"><label for=\"f{}\">{}</label>:</th>", index, def.name);
                body.push_str("<td class=\"attribvalue\">");
            }
        }
        if def.kind == AttributeKind::Boolean {
            put!(&mut body, "<select id=\"f{}\" name=\"{}\">", index, field_name(&def.name));
            body.push_str("<option value=\"\"></option><option value=\"1\">yes</option><option value=\"0\">no</option></select>");
        } else {
            let format = request.settings.format(&def.name);
            AttributeField {
                request,
                def: &def,
                index,
                decides: false,
                said: vec![],
                width: format.width,
                class: &format.field_class,
            }
            .write(&mut body);
        }
        if can_be_empty {
            let name = format!("{EMPTY}{index}");
            put!(&mut body, " <label><input type=\"checkbox\" name=\"{}\" value=\"1\"> no value</label>", name);
        }
        body.push_str("</td></tr>\n");
    }
    body.push_str("</table>\n<p class=\"buttons\"><button>Submit</button></p>\n</form>\n");
    Ok(BookPage::new(request, "Edit", body).answer(StatusCode::OK))
}

fn read(request: &BookRequest<'_>, id: u32) -> Result<Entry, RefusedResponse> {
    request.site.store().entry(&EntryRef::new(&request.book.name, id)).map_err(|error| failed(request, &error))
}

/// Changes the attributes that the form has values for.
fn change(request: &BookRequest<'_>, form: &ReceivedForm, ids: &[u32]) -> Result<Response, RefusedResponse> {
    allowed(request, PageCommand::Edit)?;
    let store = request.site.store();
    let form_of_each = said(request, form);
    let mut changes: Vec<EntryEdit> = Vec::with_capacity(ids.len());
    for &id in ids {
        let old = read(request, id)?;
        may_change(request, &old, Verb::Edit)?;
        if let Some(lock) = store.locked(&old.at).map_err(|error| failed(request, &error))?.filter(|lock| lock.by != request.by())
        {
            return Err(failed(request, &StoreError::Locked { at: old.at, lock: Box::new(lock) }));
        }
        let task = SubmitTask::editing(old.clone());
        let wrong = |html: String| {
            let mut message = String::new();
            put!(&mut message, "Entry {}: {} Nothing was changed.", id, SafeHtml(html));
            Box::new(refusal::html_error(request, StatusCode::UNPROCESSABLE_ENTITY, &message))
        };
        let content = reading(request, &form_of_each, &task).content(false).map_err(|bad| wrong(bad.html()))?;
        let content = substituted(request, &task, content)?;
        if let Some(missing) = missing_after(request, &content) {
            return Err(wrong(missing.html()));
        }
        changes.push(EntryEdit { at: old.at, expected: old.revision, content });
    }
    match store.edit_all(changes, request.by()) {
        Ok(_) => Ok(back(request, form)),
        Err(error) => Err(failed(request, &error)),
    }
}

/// Returns the attributes in the form of a single entry: without empty fields, apart from attributes that are to be
/// cleared.
fn said(request: &BookRequest<'_>, form: &ReceivedForm) -> ReceivedForm {
    let beside = ["cmd", "jcmd", "redir", "nsel", SELECTED, crate::pages::csrf::FIELD];
    let kept = |(name, value): &&(String, String)| {
        !value.trim().is_empty() && !name.starts_with(EMPTY) && !beside.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    let mut fields: Vec<(String, String)> = form.fields.iter().filter(kept).cloned().collect();
    for (index, def) in request.book.attributes.iter().enumerate() {
        if form.is(&format!("{EMPTY}{index}")) {
            fields.push((field_name(&def.name), String::new()));
        }
    }
    ReceivedForm { fields, files: Vec::new() }
}
