//! The form of an entry: a new entry, an edit, a reply, or a duplicate.
//!
//! [`super::post`] receives these fields:
//!
//! | field | content |
//! |-|-|
//! | `tampu_form` | the token of [`csrf`] |
//! | `cmd` | Submit, Update (shows the form again, because a choice decides about other fields) or Save (as a draft) |
//! | `edit_id`, `reply_to`, `orig_id` | the entry that is changed, answered or duplicated |
//! | `entry_revision` | the revision that is changed |
//! | `draft_id` | the draft of this form |
//! | [`field_name`] | the value of an attribute; missing for a box that is not ticked |
//! | the same with `_0`, `_1`... | values of an attribute with several values; the last may be a new option |
//! | `m3`, `d3`, `y3`, `h3`, `n3`, `c3` | the parts of attribute 3, counted from 0, which is a date or a time |
//! | `encoding`, `Text` | the text |
//! | `attachment0`... | present attachments, by their name in addresses; `delatt0` removes one |
//! | `attfile1`... | new attachments |
//! | `suppress`, `resubmit` | `1` if ticked |

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::StatusCode;
use sha2::{Digest, Sha256};
use tampu_logbook::{
    attachment::hex,
    book::{AttributeDef, same_name},
    entry::{Content, Encoding, Entry},
    store::StoreError,
};

use crate::pages::{
    author,
    command::PageCommand,
    csrf, entry,
    form::{
        field::{AttributeField, field_name},
        fill::{preset, set, substitute},
        model::{EntryForm, LOCK_KEY, conditions, empty, names},
    },
    html::{SafeHtml, put},
    layout::BookPage,
    request::BookRequest,
    response::Response,
    settings::{ActiveConditions, FormOccasion},
    values,
};

pub mod field;
mod fill;
pub mod model;

/// Maximum number of new files in one form.
const FILES: usize = 3;
/// The time for which an entry stays locked after its form was opened.
const LOCKED: Duration = Duration::from_secs(3600);

/// Answers with an empty form, filled with the book's presets.
pub fn new(request: &BookRequest<'_>) -> Response {
    let mut form = empty(request, FormOccasion::New);
    if let Some(number) = request.query.number::<i64>("draft")
        && !request.caller.login.is_empty()
    {
        match request.site.store.drafts(&request.caller.login) {
            Ok(drafts) => {
                if let Some(draft) =
                    drafts.into_iter().find(|draft| draft.number == number && same_name(&draft.book, &request.book.name))
                {
                    (form.content, form.draft) = (draft.content, Some(number));
                    (form.occasion, form.of) = match (draft.edits, draft.parent) {
                        (Some(id), _) => (FormOccasion::Edit, Some(id)),
                        (_, Some(id)) => (FormOccasion::Reply, Some(id)),
                        _ => (FormOccasion::New, None),
                    };
                    return show(request, &form, StatusCode::OK);
                }
            }
            Err(error) => return request.failed(&error),
        }
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
    // An image that leads here is not a user who edits.
    if request.settings.use_lock() && !request.query.is_on("skiplock") && request.origin.for_a_page {
        let host = request.caller.from.to_string();
        form.lock_key = request.caller.login.is_empty().then(|| fresh_key(request));
        let by = form.lock_key.as_deref().map_or_else(|| request.by().to_owned(), author::guest_with);
        match request.site.store.lock(&found.at, &by, &host, LOCKED) {
            Ok(_) => {}
            Err(StoreError::Locked { lock, .. }) => return locked(request, id, &lock.by, &lock.host),
            Err(error) => return request.failed(&error),
        }
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

/// Returns a key that no other form has.
fn fresh_key(request: &BookRequest<'_>) -> String {
    static FORMS: AtomicU64 = AtomicU64::new(0);
    let nth = FORMS.fetch_add(1, Ordering::Relaxed);
    let of = Sha256::new()
        .chain_update(request.site.config.secret)
        .chain_update(request.now.0.to_be_bytes())
        .chain_update(nth.to_be_bytes());
    hex(&of.chain_update(request.caller.from.to_string()).finalize()[..6])
}

fn locked(request: &BookRequest<'_>, id: u32, by: &str, host: &str) -> Response {
    let mut body = String::from("<table class=\"dlgframe\"><tr><td class=\"errormsg\">");
    let by = if by.starts_with(author::GUEST) { author::GUEST } else { by };
    put!(&mut body, "Entry is currently edited by {} on {}</td></tr>\n", by, host);
    put!(
        &mut body,
        "<tr><td><a href=\"{}?cmd=Edit&amp;skiplock=1\">Edit it anyway</a> | <a href=\"{}\">Cancel</a></td></tr></table>\n",
        id,
        id
    );
    BookPage::new(request, "Locked", body).answer(StatusCode::OK)
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

/// Shows a form; `post` shows it again with the received values, for Update and after an error.
pub fn show(request: &BookRequest<'_>, form: &EntryForm, status: StatusCode) -> Response {
    let conditions = conditions(request, &form.content);
    let mut body = String::with_capacity(form.content.text.len() + 8192);
    let out = &mut body;
    if let Some(error) = &form.error {
        put!(out, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", error);
    }
    if form.occasion == FormOccasion::New && form.draft.is_none() {
        drafts(request, out);
    }
    out.push_str("<form class=\"entry\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n");
    hidden(request, form, out);
    out.push_str("<table class=\"listframe\">\n");
    let mut hidden_fields = String::new();
    let decides = attributes(request, form, &conditions, &mut hidden_fields, out);
    if request.settings.show_text() {
        text(request, form, out);
    }
    if request.settings.attachments() {
        attachments(request, form, out);
    }
    put!(out, "</table>\n{}<p class=\"buttons\">", SafeHtml(&hidden_fields));
    boxes(request, form, out);
    out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Submit\">Submit</button> ");
    if !request.caller.login.is_empty() {
        out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Save\" formnovalidate>Save as draft</button> ");
    }
    if decides {
        out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Update\" id=\"update\" formnovalidate>Update</button> ");
    }
    let back = form.of.map_or_else(|| "./".to_owned(), |id| id.to_string());
    match form.occasion {
        // Leaving the form releases the lock.
        FormOccasion::Edit if request.settings.use_lock() => {
            out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Back\" formnovalidate>Back</button></p>\n</form>\n");
        }
        _ => put!(out, "<a href=\"{}\">Back</a></p>\n</form>\n", back),
    }
    let title = match form.occasion {
        FormOccasion::New | FormOccasion::Duplicate => "New entry",
        FormOccasion::Edit => "Edit",
        FormOccasion::Reply | FormOccasion::FirstReply => "Reply",
    };
    let mut page = BookPage::new(request, title, body);
    (page.kind, page.script) = ("edit", decides);
    page.answer(status)
}

fn drafts(request: &BookRequest<'_>, out: &mut String) {
    if request.caller.login.is_empty() {
        return;
    }
    let drafts = request.site.store.drafts(&request.caller.login).unwrap_or_default();
    let own: Vec<_> = drafts.into_iter().filter(|draft| same_name(&draft.book, &request.book.name)).collect();
    if own.is_empty() {
        return;
    }
    out.push_str("<ul class=\"drafts\">Drafts:\n");
    for draft in own {
        let saved = request.site.config.zone.write(draft.saved, 0, request.settings.time_format(None));
        let subject = draft.content.attribute("Subject").map(|said| said.joined()).unwrap_or_default();
        put!(out, "<li><a href=\"./?cmd=New&amp;draft={}\">{} {}</a></li>\n", draft.number, saved, subject);
    }
    out.push_str("</ul>\n");
}

fn hidden(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    let mut field = |name: &str, value: &str| put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    field(csrf::FIELD, &csrf::token(request.site, request.caller, request.session.as_deref()));
    let of = form.of.map(|id| id.to_string()).unwrap_or_default();
    match form.occasion {
        FormOccasion::Edit => {
            field("edit_id", &of);
            if request.query.is_on("skiplock") {
                field("skiplock", "1");
            }
            if let Some(key) = &form.lock_key {
                field(LOCK_KEY, key);
            }
        }
        FormOccasion::Reply | FormOccasion::FirstReply => field("reply_to", &of),
        FormOccasion::Duplicate => field("orig_id", &of),
        FormOccasion::New => {}
    }
    if let Some(revision) = form.revision {
        field("entry_revision", &revision.to_string());
    }
    if let Some(draft) = form.draft {
        field("draft_id", &draft.to_string());
    }
}

/// Writes the fields of attributes; returns true if one of them decides about others. Hidden attributes go into `hidden_fields`.
fn attributes(
    request: &BookRequest<'_>,
    form: &EntryForm,
    conditions: &ActiveConditions,
    hidden_fields: &mut String,
    out: &mut String,
) -> bool {
    let (mut open, mut any) = (false, false);
    let mut defs: Vec<_> = request.book.attributes.iter().enumerate().collect();
    defs.sort_by_key(|(_, def)| request.settings.place_in_form(&def.name, conditions));
    for (index, def) in defs {
        let def = request.settings.attribute(def, conditions);
        let decides = request.settings.sets_conditions(&def.name);
        if !request.settings.in_form(&def.name, conditions) {
            // A field that a form does not show keeps its value.
            let value = value_of(&form.content, &def.name);
            if !value.is_empty() {
                put!(hidden_fields, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", field_name(&def.name), value);
            }
            continue;
        }
        any |= decides;
        let format = request.settings.format(&def.name);
        if open && format.flags & 1 == 0 {
            out.push_str("</tr>\n");
            open = false;
        }
        if !open {
            out.push_str("<tr>");
            open = true;
        }
        let tooltip = request.settings.tooltip(&def.name, conditions);
        put!(out, "<th class=\"attribname\" title=\"{}\">{}", tooltip, def.name);
        if def.required {
            out.push_str("<span class=\"required\" title=\"required\">*</span>");
        }
        put!(out, ":</th><td class=\"attribvalue {}\">", format.class);
        let fixed = def.locked || request.settings.is_fixed(&def.name, form.occasion);
        if fixed {
            locked_field(request, form, &def, out);
        } else {
            AttributeField {
                request,
                def: &def,
                index,
                decides,
                said: said(&form.content, &def.name),
                width: format.width,
                class: &format.field_class,
            }
            .write(out);
        }
        if !def.comment.is_empty() {
            put!(out, " <span class=\"comment\">{}</span>", def.comment);
        }
        out.push_str("</td>");
    }
    if open {
        out.push_str("</tr>\n");
    }
    any
}

fn said(content: &Content, name: &str) -> Vec<String> {
    content.attribute(name).map(|said| said.values.clone()).unwrap_or_default()
}

fn value_of(content: &Content, name: &str) -> String {
    content.attribute(name).map(|said| said.joined()).unwrap_or_default()
}

/// Writes an attribute that is shown and sent back unchanged.
fn locked_field(request: &BookRequest<'_>, form: &EntryForm, def: &AttributeDef, out: &mut String) {
    let value = value_of(&form.content, &def.name);
    let shown = crate::pages::subst::shown_value(def.kind, &def.name, &value, &request.settings, &request.site.config.zone, 0);
    put!(out, "<span class=\"fixed\">{}</span>", shown);
    put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", field_name(&def.name), value);
}

fn text(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    let (width, height) = request.settings.message_size();
    out.push_str("<tr><td colspan=\"20\" class=\"messageedit\">");
    let answers = matches!(form.occasion, FormOccasion::Reply | FormOccasion::FirstReply);
    let comment = if answers && !request.settings.reply_comment().is_empty() {
        request.settings.reply_comment()
    } else {
        request.settings.message_comment()
    };
    if !comment.is_empty() {
        put!(out, "<div class=\"comment\">{}</div>", comment);
    }
    // Browsers drop the first line end of a text area.
    put!(
        out,
        "<textarea name=\"Text\" cols=\"{}\" rows=\"{}\" aria-label=\"Text\">\n{}</textarea>",
        width,
        height,
        form.content.text
    );
    out.push_str("<div class=\"encodings\">Encoding: ");
    let mut encodings = request.settings.encodings();
    if !encodings.contains(&form.content.encoding) {
        encodings.push(form.content.encoding);
    }
    for encoding in encodings {
        let checked = SafeHtml(if encoding == form.content.encoding { " checked" } else { "" });
        put!(
            out,
            "<label><input type=\"radio\" name=\"encoding\" value=\"{}\"{}> {}</label> ",
            encoding.name(),
            checked,
            encoding.name()
        );
    }
    out.push_str("</div></td></tr>\n");
}

fn attachments(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    for (nth, attachment) in form.content.attachments.iter().enumerate() {
        let name = values::address_name(attachment);
        put!(out, "<tr><th class=\"attribname\">Attachment {}:</th><td>{} ", nth + 1, attachment.name);
        put!(out, "<input type=\"hidden\" name=\"attachment{}\" value=\"{}\">", nth, name);
        put!(out, "<label><input type=\"checkbox\" name=\"delatt{}\" value=\"Delete\"> Delete</label></td></tr>\n", nth);
    }
    let begun = form.content.attachments.len();
    for nth in 1..=FILES {
        put!(out, "<tr><th class=\"attribname\">Attachment {}:</th><td>", begun + nth);
        put!(out, "<input type=\"file\" name=\"attfile{}\" aria-label=\"Attachment {}\">", nth, begun + nth);
        if nth == 1 && !request.settings.attachment_comment().is_empty() {
            put!(out, " <span class=\"comment\">{}</span>", request.settings.attachment_comment());
        }
        out.push_str("</td></tr>\n");
    }
}

fn boxes(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    match request.settings.suppress() {
        0 | 1 => {
            let checked = SafeHtml(if form.suppress { " checked" } else { "" });
            put!(
                out,
                "<label><input type=\"checkbox\" name=\"suppress\" value=\"1\"{}> Suppress Email notification</label> ",
                checked
            );
        }
        3 => out.push_str("<input type=\"hidden\" name=\"suppress\" value=\"1\">"),
        _ => {}
    }
    if form.occasion == FormOccasion::Edit && request.settings.resubmit() < 2 {
        let checked = SafeHtml(if form.resubmit { " checked" } else { "" });
        put!(out, "<label><input type=\"checkbox\" name=\"resubmit\" value=\"1\"{}> Resubmit as new entry</label> ", checked);
    }
}
