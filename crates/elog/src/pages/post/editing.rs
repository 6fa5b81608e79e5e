//! `cmd=Editing`: the state of an entry, for its open form.

use std::time::Instant;

use http::StatusCode;

use crate::pages::{
    command::PageCommand,
    editors::OpenForm,
    entry,
    request::BookRequest,
    response::{self, Response},
    sent::ReceivedForm,
};

/// The field with the key of the browser's tab.
const KEY: &str = "form_key";

/// Answers a form that asks for the state of its entry: a line with its revision, and a line with the name of each other
/// user who has its form open.
pub fn answer(request: &BookRequest<'_>, form: &ReceivedForm, id: u32) -> Response {
    let found = match request.read_entry(id) {
        Ok(found) => found,
        Err(error) => return request.failed(&error),
    };
    if let Err(denied) = entry::may_change(request, &found, PageCommand::Edit) {
        return request.refuse(denied);
    }
    let caller = request.caller;
    let name = match (caller.full_name.as_str(), caller.login.as_str()) {
        ("", "") => format!("somebody at {}", caller.from),
        ("", login) => login.to_owned(),
        (name, _) => name.to_owned(),
    };
    // Guests of one address are distinguished by the tabs of their browsers.
    let key: String = form.text(KEY).chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let place = request.session.clone().unwrap_or_else(|| format!("{} {key}", caller.from));
    let by = (caller.login.clone(), place);
    let form = OpenForm { book: request.book.name.clone(), id, by, name, seen: Instant::now() };
    let mut lines = vec![found.revision.to_string()];
    lines.extend(request.site.editors.look(form).iter().map(|name| name.replace(['\r', '\n'], " ")));
    response::with_bytes(StatusCode::OK, "text/plain; charset=utf-8", lines.join("\n").into_bytes())
}
