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
use tampu_logbook::{
    entry::{Encoding, Entry},
    store::StoreError,
};

use crate::pages::{
    command::PageCommand,
    entry,
    form::{
        fill::{preset, set, substitute},
        lock::lock,
        model::{conditions, empty, names},
    },
    request::BookRequest,
    response::Response,
    settings::FormOccasion,
};

pub mod drafts;
pub mod field;
mod files;
mod fill;
mod lock;
pub mod model;
mod page;
mod resume;

pub use page::show;
pub use resume::{drop_draft, dropped, kept};

/// Answers with an empty form, filled with the book's presets.
pub fn new(request: &BookRequest<'_>) -> Response {
    let mut form = empty(request, FormOccasion::New);
    if let Some(answer) = resume::resumed(request) {
        return answer;
    }
    let names = names(request, None);
    if let Err(error) = preset(request, &mut form, &names) {
        return request.failed(&error);
    }
    // ?cmd=New&pSubject=... fills in a field.
    for def in &request.book.attributes {
        let wanted = format!("p{}", def.name).to_lowercase();
        if let Some((_, value)) = request.query.0.iter().find(|(name, _)| name.to_lowercase() == wanted) {
            set(&mut form.content, def, value);
        }
    }
    let set = conditions(request, &form.content);
    form.content.text = names.expand(&request.settings.preset_text(&set).replace("\\n", "\n"));
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
    let names = names(request, Some(&found));
    (form.of, form.revision, form.content) = (Some(id), Some(found.revision), found.content.clone());
    if let Err(error) = preset(request, &mut form, &names) {
        return request.failed(&error);
    }
    let (before, after) = request.settings.around(FormOccasion::Edit);
    if !before.is_empty() || !after.is_empty() {
        let around = |text: &str| names.expand(&text.replace("\\n", "\n"));
        form.content.text = format!("{}{}{}", around(before), form.content.text, around(after));
    }
    show(request, &form, StatusCode::OK)
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
    let mut form = empty(request, occasion);
    form.of = Some(id);
    form.content.attributes = found.content.attributes.clone();
    form.content.attributes.retain(|said| !request.settings.is_removed_on_reply(&said.name));
    // A reply has the encoding of the answered entry, if the book allows it.
    if request.settings.encodings().contains(&found.content.encoding) {
        form.content.encoding = found.content.encoding;
    }
    let names = names(request, Some(&found));
    if let Err(error) = preset(request, &mut form, &names) {
        return request.failed(&error);
    }
    substitute(request, &mut form.content, occasion, &names);
    let (before, after) = request.settings.around(occasion);
    let around = |text: &str| names.expand(&text.replace("\\n", "\n"));
    let quoted = request.settings.quote().map(|mark| quote(&found, form.content.encoding, mark)).unwrap_or_default();
    form.content.text = format!("{}{quoted}{}", around(before), around(after));
    show(request, &form, StatusCode::OK)
}

/// Answers with the form of a duplicate.
pub fn duplicate(request: &BookRequest<'_>, id: u32) -> Response {
    let found = match read(request, id) {
        Ok(found) => found,
        Err(error) => return request.failed(&error),
    };
    let mut form = empty(request, FormOccasion::Duplicate);
    form.of = Some(id);
    form.content = found.content.clone();
    if let Err(error) = preset(request, &mut form, &names(request, Some(&found))) {
        return request.failed(&error);
    }
    show(request, &form, StatusCode::OK)
}

fn read(request: &BookRequest<'_>, id: u32) -> Result<Entry, StoreError> {
    request.read_entry(id)
}

/// Returns the quotation for a reply, in the encoding of the reply.
fn quote(of: &Entry, encoding: Encoding, mark: &str) -> String {
    let text = &of.content.text;
    let author = of.content.attribute("Author").map(|said| said.joined()).unwrap_or_default();
    match encoding {
        Encoding::ElCode => format!("[quote=\"{}\"]{text}[/quote]\n\n", author.replace(['"', ']'], "")),
        Encoding::Html => format!("<blockquote>{text}</blockquote>\n<p></p>\n"),
        Encoding::Plain | Encoding::Markdown => {
            let mark = if encoding == Encoding::Markdown { "> " } else { mark };
            let quoted: Vec<String> = text.lines().map(|line| format!("{mark}{line}\n")).collect();
            format!("{}\n", quoted.concat())
        }
    }
}
