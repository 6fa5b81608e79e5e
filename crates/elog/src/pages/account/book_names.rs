//! The forms that rename, delete and restore logbooks, for administrators of the site.

use tampu_logbook::{
    people::PeopleError,
    store::{
        BookInfo, StoreError,
        naming::{DeletedBook, deleted_books},
    },
};

use super::dialog::{begin_form, begin_small_form};
use crate::pages::{html::put, request::PageRequest, response::Response, sent::ReceivedForm};

/// Writes the forms: another name, the deletion, and the deleted logbooks.
pub fn forms(request: &PageRequest<'_>, books: &[BookInfo], body: &mut String) -> Result<(), Box<Response>> {
    if !books.is_empty() {
        body.push_str("<h2>Rename a logbook</h2>\n");
        begin_form(request, body, &[("act", "rename-book")]);
        body.push_str("<table><tr><th><label for=\"renamed\">Logbook</label></th><td>");
        choice(books, "renamed", body);
        body.push_str(
            "</td></tr>\n<tr><th><label for=\"to\">New name</label></th><td><input id=\"to\" type=\"text\" name=\"to\" size=\"32\" \
             maxlength=\"128\" required></td></tr>\n<tr><th></th><td><button name=\"cmd\" value=\"Users\">Rename</button></td></tr>\n\
             </table></form>\n<h2>Delete a logbook</h2>\n",
        );
        begin_form(request, body, &[("act", "delete-book")]);
        body.push_str("<table><tr><th><label for=\"deleted\">Logbook</label></th><td>");
        choice(books, "deleted", body);
        body.push_str(
            "</td></tr>\n<tr><th></th><td><label><input type=\"checkbox\" name=\"confirm\" value=\"Yes\" required> delete it with \
             its entries; it can be restored</label> <button name=\"cmd\" value=\"Users\">Delete</button></td></tr>\n\
             </table></form>\n",
        );
    }
    let deleted = deleted_books(&*request.site.store).map_err(|error| Box::new(request.failed(&error)))?;
    let deleted: Vec<DeletedBook> = deleted.into_iter().filter(|deleted| deleted.purged.is_none()).collect();
    if deleted.is_empty() {
        return Ok(());
    }
    body.push_str(
        "<h2>Deleted logbooks</h2>\n<table class=\"selection\"><tr><th>Logbook</th><th>Entries</th><th>Deleted</th><th>User</th>\
         <th></th></tr>\n",
    );
    for book in deleted {
        let at = request.site_time(book.at);
        put!(body, "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>", book.name, book.entries, at, book.by);
        begin_small_form(request, body, &[("act", "undelete-book"), ("number", &book.number.to_string())]);
        body.push_str("<button name=\"cmd\" value=\"Users\">Restore</button></form></td></tr>\n");
    }
    body.push_str("</table>\n");
    Ok(())
}

fn choice(books: &[BookInfo], name: &str, body: &mut String) {
    put!(body, "<select id=\"{}\" name=\"book\">", name);
    for info in books {
        put!(body, "<option>{}</option>", info.book.name);
    }
    body.push_str("</select>");
}

fn invalid(error: StoreError) -> PeopleError {
    match error {
        StoreError::Invalid(_) | StoreError::NoBook(_) | StoreError::BookExists(_) | StoreError::NoDeletedBook(_) => {
            PeopleError::Invalid(error.to_string())
        }
        other => PeopleError::Store(other),
    }
}

/// Forgets what the pages know about logbooks by their names.
fn changed(request: &PageRequest<'_>) {
    request.site.rendered.forget_all();
    if let Some(people) = &request.site.people {
        people.forget();
    }
}

/// Gives a logbook another name; returns the audit record.
pub fn rename(request: &PageRequest<'_>, sent: &ReceivedForm) -> Result<String, PeopleError> {
    let (name, to) = (sent.text("book"), sent.text("to").trim());
    let book = request.site.store.rename_book(name, to, &request.caller.login).map_err(invalid)?;
    changed(request);
    Ok(format!("logbook '{name}': renamed to '{}'", book.name))
}

/// Deletes a logbook; returns the audit record.
pub fn delete(request: &PageRequest<'_>, sent: &ReceivedForm) -> Result<String, PeopleError> {
    let deleted = request.site.store.delete_book(sent.text("book"), &request.caller.login).map_err(invalid)?;
    changed(request);
    Ok(format!("logbook '{}': deleted; its number is {}", deleted.name, deleted.number))
}

/// Restores a deleted logbook; returns the audit record.
pub fn undelete(request: &PageRequest<'_>, sent: &ReceivedForm) -> Result<String, PeopleError> {
    let number = sent.number("number").unwrap_or_default();
    let book = request.site.store.undelete_book(number, None, &request.caller.login).map_err(invalid)?;
    changed(request);
    Ok(format!("logbook '{}': restored", book.name))
}
