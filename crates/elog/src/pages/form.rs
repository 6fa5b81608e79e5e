//! The form of an entry: a new entry, an edit, a reply, or a duplicate.
//!
//! [`super::post`] receives these fields:
//!
//! | field | content |
//! |-|-|
//! | `tampu_form` | the token of [`csrf`] |
//! | `cmd` | Submit, Save (as a draft), Preview or Update (show the form again, with the text or for other fields) |
//! | `scripted` | `1` from the page's script: the response is `OK` and an address or a number, and no page |
//! | `edit_id`, `reply_to`, `orig_id` | the entry that is changed, answered or duplicated |
//! | `entry_revision` | the revision that is changed |
//! | `draft_id` | the draft of this form |
//! | [`field_name`] | the value of an attribute; missing for a box that is not ticked |
//! | the same with `_0`, `_1`... | values of an attribute with several values; the last may be a new option |
//! | `m3`, `d3`, `y3`, `h3`, `n3`, `c3` | the parts of attribute 3, counted from 0, which is a date or a time |
//! | `encoding`, `Text` | the text |
//! | `attachment0`... | present attachments, by their name in addresses; `delatt0` removes one |
//! | `attfile1`... | new attachments, several under each name |
//! | `suppress`, `resubmit` | `1` if ticked |

use http::StatusCode;
use tampu_logbook::{entry::Entry, store::StoreError};

use crate::pages::{
    command::PageCommand,
    entry,
    form::{
        fill::set,
        lock::lock,
        model::{EntryForm, empty},
    },
    request::BookRequest,
    response::Response,
    settings::FormOccasion,
};

pub mod drafts;
pub mod field;
pub mod fields;
mod files;
mod fill;
pub mod first;
mod lock;
pub mod model;
mod page;
mod resume;
pub mod source;

pub use page::show;
pub use resume::{drop_draft, dropped, kept};

/// Answers with an empty form, filled with the book's presets.
pub fn new(request: &BookRequest<'_>) -> Response {
    let mut form = empty(request, FormOccasion::New);
    if let Some(answer) = resume::resumed(request) {
        return answer;
    }
    let source = request.form_source();
    form.content = match first::values(&source, form.occasion, None) {
        Ok(content) => content,
        Err(error) => return request.failed(&error),
    };
    // ?cmd=New&pSubject=... fills in a field.
    for def in &request.book.attributes {
        let wanted = format!("p{}", def.name).to_lowercase();
        if let Some((_, value)) = request.query.0.iter().find(|(name, _)| name.to_lowercase() == wanted) {
            set(&mut form.content, def, value);
        }
    }
    form.content.text = first::text(&source, form.occasion, None, &form.content);
    show(request, &form, StatusCode::OK)
}

/// Answers with the form of an entry.
pub fn edit(request: &BookRequest<'_>, id: u32) -> Response {
    let found = match read(request, id) {
        Ok(found) => found,
        Err(error) => return request.failed(&error),
    };
    if let Err(denied) = entry::may_change(request, &found, PageCommand::Edit) {
        return request.refuse(denied);
    }
    let mut form = empty(request, FormOccasion::Edit);
    if let Err(answer) = lock(request, &found, &mut form) {
        return *answer;
    }
    (form.of, form.revision) = (Some(id), Some(found.revision));
    begun(request, form, &found)
}

/// Answers with the form of a reply.
pub fn reply(request: &BookRequest<'_>, id: u32) -> Response {
    let found = match read(request, id) {
        Ok(found) => found,
        Err(error) => return request.failed(&error),
    };
    let first = match request.site.store.answers(&found.at.book, &[id]) {
        Ok(answers) => answers.is_empty(),
        Err(error) => return request.failed(&error),
    };
    if let Err(denied) = entry::may_reply(request, id, first) {
        return request.refuse(denied);
    }
    let occasion = if first { FormOccasion::FirstReply } else { FormOccasion::Reply };
    begun(request, EntryForm { of: Some(id), ..empty(request, occasion) }, &found)
}

/// Answers with the form of a duplicate.
pub fn duplicate(request: &BookRequest<'_>, id: u32) -> Response {
    let found = match read(request, id) {
        Ok(found) => found,
        Err(error) => return request.failed(&error),
    };
    begun(request, EntryForm { of: Some(id), ..empty(request, FormOccasion::Duplicate) }, &found)
}

/// Answers with a form that begins with the content of an entry.
fn begun(request: &BookRequest<'_>, mut form: EntryForm, of: &Entry) -> Response {
    let source = request.form_source();
    form.content = match first::values(&source, form.occasion, Some(of)) {
        Ok(content) => content,
        Err(error) => return request.failed(&error),
    };
    form.content.text = first::text(&source, form.occasion, Some(of), &form.content);
    show(request, &form, StatusCode::OK)
}

fn read(request: &BookRequest<'_>, id: u32) -> Result<Entry, StoreError> {
    request.read_entry(id)
}
