//! `cmd=Editing`: the state of an entry, for its open form.

use std::time::Instant;

use http::StatusCode;

use crate::pages::{
    command::PageCommand,
    editors::OpenForm,
    entry,
    request::BookRequest,
    response::{self, Response},
};

/// Answers a form that asks for the state of its entry: a line with its revision, and a line with the name of each other
/// user who has its form open.
pub fn answer(request: &BookRequest<'_>, id: u32) -> Response {
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
    let place = request.session.clone().unwrap_or_else(|| caller.from.to_string());
    let by = (caller.login.clone(), place);
    let form = OpenForm { book: request.book.name.clone(), id, by, name, seen: Instant::now() };
    let mut lines = vec![found.revision.to_string()];
    lines.extend(request.site.editors.look(form).iter().map(|name| name.replace(['\r', '\n'], " ")));
    response::with_bytes(StatusCode::OK, "text/plain; charset=utf-8", lines.join("\n").into_bytes())
}
