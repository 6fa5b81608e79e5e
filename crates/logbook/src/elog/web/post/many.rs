//! What is done with several entries at once, as `Select` of a list has it: deleting, copying, moving, changing attributes.
//!
//! All of them are held against what the caller may and what the book wants before the first is changed. Then they are changed one by one, as with ELOG: what
//! somebody else did meanwhile to one of them ends it, and the answer says how far it came.

use http::StatusCode;

use super::{
    refusal,
    submit::{Task, missing_after, reading, substituted},
    transfer::{Refused, allowed, asked, failed, family, hidden, may_change},
};
use crate::{
    book::AttributeKind,
    elog::web::{
        BookAsk, Failure, Response, access,
        address::Parameters,
        command::Command,
        form::field::{Field, field_name},
        html::{Raw, put},
        layout::{self, Page},
        list::select::targets,
        sent::Form,
        settings::{Occasion, Settings},
    },
    entry::{Content, Entry, EntryRef},
    people::{Resource, Verb},
    store::StoreError,
};

/// The field of the second form, with the numbers of what was selected in the list.
const SELECTED: &str = "tampu_selected";
/// The beginning of the names of boxes that say that an attribute is to have no value.
const EMPTY: &str = "tampu_empty";
/// Entries at once.
const MOST: usize = 1000;

/// Whether a form speaks of several entries.
pub fn is_of_many(form: &Form) -> bool {
    form.get("nsel").is_some() || form.get(SELECTED).is_some()
}

/// Does what a form asks for with the entries that were selected.
pub fn answer(ask: &BookAsk<'_>, form: &Form, command: Command) -> Response {
    done(ask, form, command).unwrap_or_else(|refused| *refused)
}

fn done(ask: &BookAsk<'_>, form: &Form, command: Command) -> Result<Response, Refused> {
    let ids = selected(form);
    if ids.is_empty() || ids.len() > MOST {
        let text =
            if ids.is_empty() { "No entries selected".to_owned() } else { format!("Error: more than {MOST} entries selected") };
        return Ok(layout::error(ask, StatusCode::OK, &text));
    }
    match command {
        Command::Delete => delete(ask, form, &ids),
        Command::CopyTo | Command::MoveTo => transfer(ask, form, &ids, command),
        Command::Edit => edit(ask, form, &ids),
        Command::Submit => change(ask, form, &ids),
        _ => Ok(back(ask, form)),
    }
}

/// The numbers that were ticked, without any twice.
fn selected(form: &Form) -> Vec<u32> {
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

/// To the list that the entries were selected in.
fn back(ask: &BookAsk<'_>, form: &Form) -> Response {
    let query = form.text("redir").trim_start_matches('?');
    layout::redirect(&ask.address(&Parameters::read(query).written()))
}

/// The fields that every second form has.
fn carried(ask: &BookAsk<'_>, form: &Form, ids: &[u32], command: Command) -> String {
    let mut out = hidden(ask, command);
    for (name, value) in [(SELECTED, joined(ids, ",")), ("redir", form.text("redir").to_owned())] {
        put!(&mut out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    }
    out
}

/// What is selected with all answers to it, each once, and those of it that answer nothing else of it.
fn families(ask: &BookAsk<'_>, ids: &[u32]) -> Result<(Vec<Entry>, Vec<u32>), Refused> {
    let (mut all, mut heads): (Vec<Entry>, Vec<u32>) = (Vec::new(), Vec::new());
    for &id in ids {
        let family = family(ask, id)?;
        // What comes later can be what this one answers.
        heads.retain(|head| !family.iter().any(|entry| entry.at.id == *head));
        if !all.iter().any(|known| known.at.id == id) {
            heads.push(id);
        }
        all.extend(family);
    }
    all.sort_by_key(|entry| entry.at.id);
    all.dedup_by_key(|entry| entry.at.id);
    Ok((all, heads))
}

fn delete(ask: &BookAsk<'_>, form: &Form, ids: &[u32]) -> Result<Response, Refused> {
    allowed(ask, Command::Delete)?;
    let (all, heads) = families(ask, ids)?;
    all.iter().try_for_each(|entry| may_change(ask, entry, Verb::Delete))?;
    match form.text("confirm") {
        "Yes" => {}
        "No" => return Ok(back(ask, form)),
        _ => return Ok(confirmation(ask, form, ids, all.len() - ids.len())),
    }
    let seen: Vec<u32> = all.iter().map(|entry| entry.at.id).collect();
    each(ask, form, &heads, "deleted", |at| ask.site.store().delete_seen(at, ask.by(), &seen).map(|_| ()))
}

fn confirmation(ask: &BookAsk<'_>, form: &Form, ids: &[u32], answers: usize) -> Response {
    let mut body = String::new();
    let carried = Raw(carried(ask, form, ids, Command::Delete));
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
    Page::new(ask, "Delete", body).answer(StatusCode::OK)
}

fn transfer(ask: &BookAsk<'_>, form: &Form, ids: &[u32], command: Command) -> Result<Response, Refused> {
    allowed(ask, command)?;
    let (store, moving) = (ask.site.store(), command == Command::MoveTo);
    let (all, heads) = families(ask, ids)?;
    if moving {
        all.iter().try_for_each(|entry| may_change(ask, entry, Verb::Delete))?;
    }
    let (field, word) = if moving { ("destm", "moved") } else { ("destc", "copied") };
    let to = match form.text(field) {
        "" => match &targets(ask).map_err(|error| failed(ask, &error))?[..] {
            [only] => only.clone(),
            _ => return Ok(layout::error(ask, StatusCode::OK, "Error: choose the logbook beside the button")),
        },
        to => to.to_owned(),
    };
    let target = store.book(&to).map_err(|error| failed(ask, &error))?;
    let settings = Settings::of(&target);
    access::check(ask.caller, &target, &settings, Command::New).map_err(|denied| Box::new(ask.refuse(denied)))?;
    asked(ask, Verb::Post, Resource::Book(&target.name))?;
    each(ask, form, &heads, word, |at| match moving {
        true => store.move_to(at, &target.name, ask.by(), true).map(|_| ()),
        false => store.copy(at, &target.name, ask.by(), true).map(|_| ()),
    })
}

/// Does something with each entry, and leads back; or says with how many it was done, and why not with the others.
fn each(
    ask: &BookAsk<'_>,
    form: &Form,
    ids: &[u32],
    word: &str,
    mut act: impl FnMut(&EntryRef) -> crate::store::Result<()>,
) -> Result<Response, Refused> {
    for (nth, &id) in ids.iter().enumerate() {
        match act(&EntryRef::new(&ask.book.name, id)) {
            Ok(()) => {}
            Err(error) if nth == 0 => return Err(failed(ask, &error)),
            Err(error) => return Ok(half_done(ask, &ids[..nth], id, word, &error)),
        }
    }
    Ok(back(ask, form))
}

fn half_done(ask: &BookAsk<'_>, done: &[u32], id: u32, word: &str, error: &StoreError) -> Response {
    let status = ask.failed(error).status();
    let why = if status.is_server_error() { "the logbook's store failed".to_owned() } else { error.to_string() };
    let text = format!("Error: entry {id} was not {word}: {why}. Before it these were {word}: {}", joined(done, ", "));
    let mut answer = layout::error(ask, status, &text);
    if status.is_server_error() {
        answer.extensions_mut().insert(Failure(error.to_string()));
    }
    answer
}

/// The form for the attributes of all of them. What is left as it is changes nothing.
fn edit(ask: &BookAsk<'_>, form: &Form, ids: &[u32]) -> Result<Response, Refused> {
    allowed(ask, Command::Edit)?;
    for &id in ids {
        may_change(ask, &read(ask, id)?, Verb::Edit)?;
    }
    let mut body = String::new();
    put!(
        &mut body,
        "<form class=\"entry\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n{}",
        Raw(carried(ask, form, ids, Command::Submit))
    );
    put!(
        &mut body,
        "<p>Entries {}: what is left empty keeps the original values.</p>\n<table class=\"listframe\">\n",
        joined(ids, ", ")
    );
    for (index, def) in ask.book.attributes.iter().enumerate() {
        if def.locked || ask.settings.is_fixed(&def.name, Occasion::Edit) || !ask.settings.in_form(&def.name, &[]) {
            continue;
        }
        let can_be_empty = !def.required && def.kind != AttributeKind::Boolean;
        let mut def = def.clone();
        def.required = false;
        put!(&mut body, "<tr><th class=\"attribname\">{}:</th><td class=\"attribvalue\">", def.name);
        if def.kind == AttributeKind::Boolean {
            put!(&mut body, "<select name=\"{}\">", field_name(&def.name));
            body.push_str("<option value=\"\"></option><option value=\"1\">yes</option><option value=\"0\">no</option></select>");
        } else {
            let format = ask.settings.format(&def.name);
            Field { ask, def: &def, index, decides: false, said: vec![], width: format.width, class: &format.field_class }
                .write(&mut body);
        }
        if can_be_empty {
            let name = format!("{EMPTY}{index}");
            put!(&mut body, " <label><input type=\"checkbox\" name=\"{}\" value=\"1\"> no value</label>", name);
        }
        body.push_str("</td></tr>\n");
    }
    body.push_str("</table>\n<p class=\"buttons\"><button>Submit</button></p>\n</form>\n");
    Ok(Page::new(ask, "Edit", body).answer(StatusCode::OK))
}

fn read(ask: &BookAsk<'_>, id: u32) -> Result<Entry, Refused> {
    ask.site.store().entry(&EntryRef::new(&ask.book.name, id)).map_err(|error| failed(ask, &error))
}

/// Changes the attributes that the form has something for.
fn change(ask: &BookAsk<'_>, form: &Form, ids: &[u32]) -> Result<Response, Refused> {
    allowed(ask, Command::Edit)?;
    let store = ask.site.store();
    let form_of_each = said(ask, form);
    let mut changes: Vec<(Entry, Content)> = Vec::with_capacity(ids.len());
    for &id in ids {
        let old = read(ask, id)?;
        may_change(ask, &old, Verb::Edit)?;
        if let Some(lock) = store.locked(&old.at).map_err(|error| failed(ask, &error))?.filter(|lock| lock.by != ask.by()) {
            return Err(failed(ask, &StoreError::Locked { at: old.at, lock: Box::new(lock) }));
        }
        let task = Task::editing(old.clone());
        let wrong = |html: String| {
            let mut told = String::new();
            put!(&mut told, "Entry {}: {} Nothing was changed.", id, Raw(html));
            Box::new(refusal(ask, StatusCode::UNPROCESSABLE_ENTITY, &told))
        };
        let content = reading(ask, &form_of_each, &task).content(false).map_err(|bad| wrong(bad.html()))?;
        let content = substituted(ask, &task, content)?;
        if let Some(missing) = missing_after(ask, &content) {
            return Err(wrong(missing.html()));
        }
        changes.push((old, content));
    }
    let mut changes = changes.into_iter();
    each(ask, form, ids, "changed", |at| match changes.next() {
        Some((old, content)) => store.edit(at, content, vec![], ask.by(), Some(old.revision)).map(|_| ()),
        None => Ok(()),
    })
}

/// What the form says of attributes, as a form of one entry would: without fields that were left empty, but for those whose value is to go.
fn said(ask: &BookAsk<'_>, form: &Form) -> Form {
    let beside = ["cmd", "jcmd", "redir", "nsel", SELECTED, super::csrf::FIELD];
    let kept = |(name, value): &&(String, String)| {
        !value.trim().is_empty() && !name.starts_with(EMPTY) && !beside.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    let mut fields: Vec<(String, String)> = form.fields.iter().filter(kept).cloned().collect();
    for (index, def) in ask.book.attributes.iter().enumerate() {
        if form.is(&format!("{EMPTY}{index}")) {
            fields.push((field_name(&def.name), String::new()));
        }
    }
    Form { fields, files: Vec::new() }
}
