//! The entries since a user's last visit.

use tampu_types::Time;

use crate::pages::{
    html::put,
    list::links::{PLACE, here},
    request::{BookRequest, PageRequest},
};

/// The parameter of an address that asks for them.
pub const NEW_ENTRIES: &str = "new_entries";

/// Returns the end of the user's last visit; `None` for guests, programs, and at the first visit.
pub fn last(request: &PageRequest<'_>) -> Option<Time> {
    let people = request.site.people.as_ref()?;
    let is_user = !request.caller.login.is_empty() && request.session.is_some() && !request.site.is_open();
    // A store that fails here fails for the list itself, too, and says so there.
    if is_user { people.visit(&request.caller.login).ok().flatten() } else { None }
}

/// Writes the link to the entries since the last visit; or, where they are shown, the reason if they cannot be told.
pub fn link(request: &BookRequest<'_>, out: &mut String) {
    let last = last(request);
    match (last, request.query.is_on(NEW_ENTRIES)) {
        (Some(last), false) => {
            let address = here(&request.query.without(&PLACE).with(NEW_ENTRIES, "1"));
            let time = request.zone.write(last, 0, request.settings.time_format(None));
            put!(out, " <a href=\"{}\">{} {}</a>", address, request.word("New entries since:"), time);
        }
        (None, true) => {
            let text = if request.caller.login.is_empty() {
                "The time of your last visit is known after a login: all entries are shown"
            } else {
                "This is your first visit: all entries are shown"
            };
            put!(out, "<div class=\"note\">{}</div>", text);
        }
        _ => {}
    }
}
