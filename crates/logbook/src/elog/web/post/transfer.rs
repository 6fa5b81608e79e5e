//! Taking an entry away, making it once more in another book, taking it there. What answers it goes along, as with ELOG.

use http::StatusCode;

use crate::{
    elog::web::{
        BookAsk, Response,
        access::{self, Denied},
        address::escape,
        command::Command,
        csrf,
        html::{Raw, put},
        layout::{self, Page},
        settings::Settings,
    },
    entry::{Entry, EntryRef},
    people::{PeopleError, Resource, Verb, ask as decide},
    search::Search,
    store::StoreError,
};

use super::login;

/// `?cmd=Delete`, with `confirm=Yes` or without.
pub fn delete(ask: &BookAsk<'_>, id: u32) -> Response {
    match csrf::is_meant(ask, ask.query.get(csrf::FIELD)) {
        true => deleted(ask, id, ask.query.get("confirm").unwrap_or_default()),
        false => deleted(ask, id, ""),
    }
}

/// `?cmd=Copy to`, with `destc=` or without.
pub fn copy_to(ask: &BookAsk<'_>, id: u32) -> Response {
    match csrf::is_meant(ask, ask.query.get(csrf::FIELD)) {
        true => copied(ask, id, ask.query.get("destc").unwrap_or_default()),
        false => copied(ask, id, ""),
    }
}

/// `?cmd=Move to`, with `destm=` or without.
pub fn move_to(ask: &BookAsk<'_>, id: u32) -> Response {
    match csrf::is_meant(ask, ask.query.get(csrf::FIELD)) {
        true => moved(ask, id, ask.query.get("destm").unwrap_or_default()),
        false => moved(ask, id, ""),
    }
}

/// Why something is not done, as an answer.
pub(super) type Refused = Box<Response>;

/// Whether the caller may change or delete an entry: what the book's configuration says, and what people's rights and the book's policy say.
pub(super) fn may_change(ask: &BookAsk<'_>, entry: &Entry, verb: Verb) -> Result<(), Refused> {
    access::may_change(ask.caller, &ask.book, &ask.settings, entry, ask.now).map_err(|denied| Box::new(ask.refuse(denied)))?;
    asked(ask, verb, Resource::Entry(entry))
}

/// Whether people's rights let the caller do this.
pub(super) fn asked(ask: &BookAsk<'_>, verb: Verb, on: Resource<'_>) -> Result<(), Refused> {
    let caller = ask.caller;
    match decide(ask.site.store(), &caller.login, &caller.rights, verb, on) {
        Ok(()) => Ok(()),
        Err(PeopleError::Refused(_)) if caller.login.is_empty() => Err(Box::new(ask.refuse(Denied::Login))),
        Err(error) => Err(Box::new(login::failed(ask, &error))),
    }
}

/// Whether the caller may use a command in this book.
pub(super) fn allowed(ask: &BookAsk<'_>, command: Command) -> Result<(), Refused> {
    ask.may(command).map_err(|denied| Box::new(ask.refuse(denied)))
}

pub(super) fn failed(ask: &BookAsk<'_>, error: &StoreError) -> Refused {
    Box::new(ask.failed(error))
}

/// An entry and all answers to it.
pub(super) fn family(ask: &BookAsk<'_>, id: u32) -> Result<Vec<Entry>, Refused> {
    let at = EntryRef::new(&ask.book.name, id);
    let thread = ask.site.store().thread(&at).map_err(|error| failed(ask, &error))?;
    let mut ids = vec![id];
    let mut next = 0;
    while next < ids.len() {
        let parent = ids[next];
        ids.extend(
            thread.iter().filter(|entry| entry.parent == Some(parent)).map(|entry| entry.at.id).filter(|id| *id != parent),
        );
        next += 1;
    }
    Ok(thread.into_iter().filter(|entry| ids.contains(&entry.at.id)).collect())
}

fn answered(done: Result<Response, Refused>) -> Response {
    done.unwrap_or_else(|refused| *refused)
}

/// Deletes an entry and what answers it, or asks whether that is meant.
pub fn deleted(ask: &BookAsk<'_>, id: u32, confirm: &str) -> Response {
    answered(try_delete(ask, id, confirm))
}

fn try_delete(ask: &BookAsk<'_>, id: u32, confirm: &str) -> Result<Response, Refused> {
    allowed(ask, Command::Delete)?;
    let family = family(ask, id)?;
    family.iter().try_for_each(|entry| may_change(ask, entry, Verb::Delete))?;
    match confirm {
        "Yes" => {}
        "No" => return Ok(layout::redirect(&ask.address(&id.to_string()))),
        _ => return Ok(confirmation(ask, id, family.len() - 1)),
    }
    let at = EntryRef::new(&ask.book.name, id);
    let seen: Vec<u32> = family.iter().map(|entry| entry.at.id).collect();
    ask.site.store().delete_seen(&at, ask.by(), &seen).map_err(|error| failed(ask, &error))?;
    if ask.by_browser {
        return Ok(layout::redirect(&ask.address("")));
    }
    // ELOG leads to another entry, and py_elog reads a number there whatever happens.
    let newest = Search { books: vec![ask.book.name.clone()], limit: 1, count_to: 0, ..Search::default() };
    let page = ask.site.store().search(&newest, &ask.stop).map_err(|error| failed(ask, &error))?;
    let id = page.hits.first().map_or(0, |hit| hit.entry.at.id);
    Ok(layout::redirect(&ask.address(&id.to_string())))
}

fn confirmation(ask: &BookAsk<'_>, id: u32, answers: usize) -> Response {
    let mut body = String::new();
    put!(&mut body, "<form method=\"post\" action=\"{}\" class=\"dlgframe\">\n{}", id, Raw(hidden(ask, Command::Delete)));
    put!(&mut body, "<p>Are you sure to delete entry {}", id);
    match answers {
        0 => {}
        1 => put!(&mut body, ", and the answer to it"),
        answers => put!(&mut body, ", and all {} answers to it", answers),
    }
    put!(&mut body, "? Its number is not given again, and its history stays.</p>\n");
    put!(
        &mut body,
        "<p><button name=\"confirm\" value=\"Yes\">Yes</button> <button name=\"confirm\" value=\"No\">No</button></p></form>\n"
    );
    Page::new(ask, &format!("Delete {id}"), body).answer(StatusCode::OK)
}

/// The fields that every form here has.
pub(super) fn hidden(ask: &BookAsk<'_>, command: Command) -> String {
    let mut out = String::new();
    put!(&mut out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", csrf::FIELD, csrf::token(ask.site, ask.caller));
    put!(&mut out, "<input type=\"hidden\" name=\"cmd\" value=\"{}\">\n", command.name());
    out
}

/// Makes an entry and what answers it once more in another book, or asks in which.
pub fn copied(ask: &BookAsk<'_>, id: u32, to: &str) -> Response {
    answered(try_transfer(ask, id, to, Command::CopyTo))
}

/// Takes an entry and what answers it to another book, or asks to which.
pub fn moved(ask: &BookAsk<'_>, id: u32, to: &str) -> Response {
    answered(try_transfer(ask, id, to, Command::MoveTo))
}

fn try_transfer(ask: &BookAsk<'_>, id: u32, to: &str, command: Command) -> Result<Response, Refused> {
    allowed(ask, command)?;
    let (store, at) = (ask.site.store(), EntryRef::new(&ask.book.name, id));
    let family = family(ask, id)?;
    let moving = command == Command::MoveTo;
    if moving {
        family.iter().try_for_each(|entry| may_change(ask, entry, Verb::Delete))?;
    }
    if to.is_empty() {
        return Ok(choice(ask, id, command));
    }
    let target = store.book(to).map_err(|error| failed(ask, &error))?;
    let settings = Settings::of(&target);
    access::check(ask.caller, &target, &settings, Command::New).map_err(|denied| Box::new(ask.refuse(denied)))?;
    asked(ask, Verb::Post, Resource::Book(&target.name))?;
    let made = match moving {
        true => store.move_seen(&at, &target.name, ask.by(), &family.iter().map(|entry| entry.at.id).collect::<Vec<_>>()),
        false => store.copy(&at, &target.name, ask.by(), true),
    };
    let made = made.map_err(|error| failed(ask, &error))?;
    Ok(layout::redirect(&format!("{}/{}/{}", ask.base, escape(&made.book), made.id)))
}

/// The page that asks for a book.
fn choice(ask: &BookAsk<'_>, id: u32, command: Command) -> Response {
    let books = match ask.site.books() {
        Ok(books) => books,
        Err(error) => return ask.failed(&error),
    };
    let (field, verb) = if command == Command::MoveTo { ("destm", "Move") } else { ("destc", "Copy") };
    let mut body = String::new();
    put!(&mut body, "<form method=\"post\" action=\"{}\" class=\"dlgframe\">\n{}", id, Raw(hidden(ask, command)));
    put!(&mut body, "<p>{} entry {} and what answers it to <select name=\"{}\">\n", verb, id, field);
    for info in books.iter().filter(|info| info.book.name != ask.book.name) {
        let may = access::check(ask.caller, &info.book, &Settings::of(&info.book), Command::New).is_ok();
        if may {
            put!(&mut body, "<option>{}</option>\n", info.book.name);
        }
    }
    put!(&mut body, "</select> <button>{}</button></p></form>\n", verb);
    Page::new(ask, &format!("{verb} {id}"), body).answer(StatusCode::OK)
}
