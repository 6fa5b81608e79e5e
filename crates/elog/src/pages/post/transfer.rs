//! Deletes, copies or moves an entry together with the replies to it, as ELOG does.

use std::collections::HashSet;

use http::StatusCode;
use tampu_logbook::{
    entry::{Entry, EntryRef},
    people::{PeopleError, Resource, Verb, ask as decide},
    search::Search,
    store::{StoreError, pages},
};

use crate::pages::{
    access::{self, AccessDenied},
    address::escape,
    command::PageCommand,
    csrf,
    html::{SafeHtml, put},
    layout::BookPage,
    refusal,
    request::BookRequest,
    response::{self, Response},
    settings::BookSettings,
};

/// `?cmd=Delete`, with `confirm=Yes` or without.
pub fn delete(request: &BookRequest<'_>, id: u32) -> Response {
    match csrf::is_own_form(request, request.query.get(csrf::FIELD)) {
        true => deleted(request, id, request.query.get("confirm").unwrap_or_default()),
        false => deleted(request, id, ""),
    }
}

/// `?cmd=Copy to`, with `destc=` or without.
pub fn copy_to(request: &BookRequest<'_>, id: u32) -> Response {
    match csrf::is_own_form(request, request.query.get(csrf::FIELD)) {
        true => copied(request, id, request.query.get("destc").unwrap_or_default()),
        false => copied(request, id, ""),
    }
}

/// `?cmd=Move to`, with `destm=` or without.
pub fn move_to(request: &BookRequest<'_>, id: u32) -> Response {
    match csrf::is_own_form(request, request.query.get(csrf::FIELD)) {
        true => moved(request, id, request.query.get("destm").unwrap_or_default()),
        false => moved(request, id, ""),
    }
}

/// A refusal, as a response.
pub(super) type RefusedResponse = Box<Response>;

/// Checks that the caller may change or delete an entry: by the book's configuration, by the rights of people and by
/// the book's policy.
pub(super) fn may_change(request: &BookRequest<'_>, entry: &Entry, verb: Verb) -> Result<(), RefusedResponse> {
    access::may_change(request.caller, &request.book, &request.settings, entry, request.now)
        .map_err(|denied| Box::new(request.refuse(denied)))?;
    check_rights(request, verb, Resource::Entry(entry))
}

/// Checks the rights of the caller.
pub(super) fn check_rights(request: &BookRequest<'_>, verb: Verb, on: Resource<'_>) -> Result<(), RefusedResponse> {
    let caller = request.caller;
    match decide(request.site.store(), &caller.login, &caller.rights, verb, on) {
        Ok(()) => Ok(()),
        Err(PeopleError::Refused(_)) if caller.login.is_empty() => Err(Box::new(request.refuse(AccessDenied::Login))),
        Err(error) => Err(Box::new(refusal::people_failed(request, &error))),
    }
}

/// Checks that the caller may use a command in this book.
pub(super) fn allowed(request: &BookRequest<'_>, command: PageCommand) -> Result<(), RefusedResponse> {
    request.may(command).map_err(|denied| Box::new(request.refuse(denied)))
}

pub(super) fn failed(request: &BookRequest<'_>, error: &StoreError) -> RefusedResponse {
    Box::new(request.failed(error))
}

/// Returns the numbers of an entry and of all replies to it, the entry first.
pub(super) fn family(request: &BookRequest<'_>, id: u32) -> Result<Vec<u32>, RefusedResponse> {
    let at = EntryRef::new(&request.book.name, id);
    // An entry that is gone is reported with its new place.
    request.site.store().entry(&at).map_err(|error| failed(request, &error))?;
    pages::family(request.site.store(), &at).map_err(|error| failed(request, &error))
}

/// Checks that the caller may delete an entry and all replies to it.
pub(super) fn may_delete(request: &BookRequest<'_>, id: u32, family: &[u32]) -> Result<(), RefusedResponse> {
    let members: HashSet<u32> = family.iter().copied().collect();
    for entry in pages::thread_entries(request.site.store(), &EntryRef::new(&request.book.name, id), false) {
        let entry = entry.map_err(|error| failed(request, &error))?;
        if members.contains(&entry.at.id) {
            may_change(request, &entry, Verb::Delete)?;
        }
    }
    Ok(())
}

fn answered(done: Result<Response, RefusedResponse>) -> Response {
    done.unwrap_or_else(|refused| *refused)
}

/// Deletes an entry and the replies to it, or asks for a confirmation.
pub fn deleted(request: &BookRequest<'_>, id: u32, confirm: &str) -> Response {
    answered(try_delete(request, id, confirm))
}

fn try_delete(request: &BookRequest<'_>, id: u32, confirm: &str) -> Result<Response, RefusedResponse> {
    allowed(request, PageCommand::Delete)?;
    let family = family(request, id)?;
    may_delete(request, id, &family)?;
    match confirm {
        "Yes" => {}
        "No" => return Ok(response::redirect(&request.address(&id.to_string()))),
        _ => return Ok(confirmation(request, id, family.len() - 1)),
    }
    let at = EntryRef::new(&request.book.name, id);
    request.site.store().delete_seen(&at, request.by(), &family).map_err(|error| failed(request, &error))?;
    if request.by_browser {
        return Ok(response::redirect(&request.address("")));
    }
    // ELOG redirects to another entry, and py_elog always reads a number there.
    let newest = Search { books: vec![request.book.name.clone()], limit: 1, count_to: 0, ..Search::default() };
    let page = request.site.store().search(&newest, &request.stop).map_err(|error| failed(request, &error))?;
    let id = page.hits.first().map_or(0, |hit| hit.entry.at.id);
    Ok(response::redirect(&request.address(&id.to_string())))
}

fn confirmation(request: &BookRequest<'_>, id: u32, answers: usize) -> Response {
    let mut body = String::new();
    put!(
        &mut body,
        "<form method=\"post\" action=\"{}\" class=\"dlgframe\">\n{}",
        id,
        SafeHtml(hidden(request, PageCommand::Delete))
    );
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
    BookPage::new(request, &format!("Delete {id}"), body).answer(StatusCode::OK)
}

/// Writes the hidden fields that every form of this module has.
pub(super) fn hidden(request: &BookRequest<'_>, command: PageCommand) -> String {
    let mut out = String::new();
    put!(
        &mut out,
        "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
        csrf::FIELD,
        csrf::token(request.site, request.caller, request.session.as_deref())
    );
    put!(&mut out, "<input type=\"hidden\" name=\"cmd\" value=\"{}\">\n", command.name());
    out
}

/// Copies an entry and the replies to it into another book, or asks for the book.
pub fn copied(request: &BookRequest<'_>, id: u32, to: &str) -> Response {
    answered(try_transfer(request, id, to, PageCommand::CopyTo))
}

/// Moves an entry and the replies to it into another book, or asks for the book.
pub fn moved(request: &BookRequest<'_>, id: u32, to: &str) -> Response {
    answered(try_transfer(request, id, to, PageCommand::MoveTo))
}

fn try_transfer(request: &BookRequest<'_>, id: u32, to: &str, command: PageCommand) -> Result<Response, RefusedResponse> {
    allowed(request, command)?;
    let (store, at) = (request.site.store(), EntryRef::new(&request.book.name, id));
    let family = family(request, id)?;
    let moving = command == PageCommand::MoveTo;
    if moving {
        may_delete(request, id, &family)?;
    } else if request.shown().is_some() {
        let why = "attributes of this logbook are hidden from you, and a copy would show them".to_owned();
        return Err(Box::new(request.refuse(AccessDenied::Forbidden(why))));
    }
    if to.is_empty() {
        return Ok(choice(request, id, command));
    }
    let target = store.book(to).map_err(|error| failed(request, &error))?;
    check_target(request, &target.name, moving)?;
    let settings = BookSettings::of(&target);
    access::check(request.caller, &target, &settings, PageCommand::New).map_err(|denied| Box::new(request.refuse(denied)))?;
    check_rights(request, Verb::Post, Resource::Book(&target.name))?;
    let made = match moving {
        true => store.move_seen(&at, &target.name, request.by(), &family),
        false => store.copy(&at, &target.name, request.by(), true),
    };
    let made = made.map_err(|error| failed(request, &error))?;
    Ok(response::redirect(&format!("{}/{}/{}", request.base, escape(&made.book), made.id)))
}

/// Checks that the configuration lets entries go to this book.
pub(super) fn check_target(request: &BookRequest<'_>, book: &str, moving: bool) -> Result<(), RefusedResponse> {
    if request.settings.goes_to(book, moving) {
        return Ok(());
    }
    let option = if moving { "Move to" } else { "Copy to" };
    let why = format!("'{option}' of the logbook {} does not name {book}", request.book.name);
    Err(Box::new(request.refuse(AccessDenied::Forbidden(why))))
}

/// Answers with the form for the target book.
fn choice(request: &BookRequest<'_>, id: u32, command: PageCommand) -> Response {
    let books = match request.site.books() {
        Ok(books) => books,
        Err(error) => return request.failed(&error),
    };
    let (field, verb) = if command == PageCommand::MoveTo { ("destm", "Move") } else { ("destc", "Copy") };
    let mut body = String::new();
    put!(&mut body, "<form method=\"post\" action=\"{}\" class=\"dlgframe\">\n{}", id, SafeHtml(hidden(request, command)));
    put!(&mut body, "<p>{} entry {} and its replies to <select name=\"{}\" aria-label=\"Logbook\">\n", verb, id, field);
    for info in books.iter().filter(|info| info.book.name != request.book.name) {
        let may = access::check(request.caller, &info.book, &BookSettings::of(&info.book), PageCommand::New).is_ok();
        if may && request.settings.goes_to(&info.book.name, command == PageCommand::MoveTo) {
            put!(&mut body, "<option>{}</option>\n", info.book.name);
        }
    }
    put!(&mut body, "</select> <button>{}</button></p></form>\n", verb);
    BookPage::new(request, &format!("{verb} {id}"), body).answer(StatusCode::OK)
}
