//! The form of a new logbook, for administrators of the site.

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, change::BookEdit},
    people::PeopleError,
    store::{BookInfo, StoreError},
};

use super::dialog::begin_form;
use crate::pages::{html::put, request::PageRequest, sent::ReceivedForm};

/// Writes the form: the name, and a logbook whose configuration it begins with.
pub fn form(request: &PageRequest<'_>, books: &[BookInfo], body: &mut String) {
    body.push_str("<h2>New logbook</h2>\n");
    begin_form(request, body, &[("act", "make-book")]);
    body.push_str(
        "<table><tr><th><label for=\"book\">Name</label></th><td><input id=\"book\" type=\"text\" name=\"book\" size=\"32\" \
         maxlength=\"128\" required></td></tr>\n<tr><th><label for=\"like\">Configuration of</label></th><td><select id=\"like\" \
         name=\"like\"><option value=\"\">- a new one -</option>",
    );
    for info in books {
        put!(body, "<option>{}</option>", info.book.name);
    }
    body.push_str(
        "</select></td></tr>\n<tr><th></th><td><button name=\"cmd\" value=\"Users\">Make the logbook</button></td></tr>\n\
         </table></form>\n",
    );
}

/// Makes the logbook.
pub fn make(request: &PageRequest<'_>, sent: &ReceivedForm) -> Result<(), PeopleError> {
    let (name, like) = (sent.text("book"), sent.text("like"));
    let store = &request.site.store;
    let invalid = |error: StoreError| match error {
        StoreError::Invalid(_) | StoreError::NoBook(_) | StoreError::Full(_) => PeopleError::Invalid(error.to_string()),
        other => PeopleError::Store(other),
    };
    match store.book(name) {
        Ok(_) => return Err(PeopleError::Invalid(format!("there is a logbook '{name}' already"))),
        Err(StoreError::NoBook(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let book = if like.is_empty() {
        // The attributes of a logbook of ELOG that names none.
        let names = ["Author", "Type", "Category", "Subject"];
        Book::new(name, names.map(|name| AttributeDef::new(name, AttributeKind::Text)).to_vec())
    } else {
        Book { name: name.to_owned(), ..store.book(like).map_err(invalid)? }
    };
    store.change_book(BookEdit::of(&book, &request.caller.login)).map_err(invalid)?;
    if let Some(people) = &request.site.people {
        people.forget();
    }
    Ok(())
}
