//! The form of an entry: new, changed, answered or like another.
//!
//! What a form sends, as [`super::post`] gets it:
//!
//! | field | what |
//! |-|-|
//! | `tampu_form` | [`csrf`] |
//! | `cmd` | Submit, Update (the form again, because a choice decides what else it has) or Save (as a draft) |
//! | `edit_id`, `reply_to`, `orig_id` | the entry that is changed, answered, or that this one is like |
//! | `entry_revision` | the revision that is changed |
//! | `draft_id` | the draft that this was |
//! | [`field_name`] | the value of an attribute; nothing for a box that is not ticked |
//! | the same with `_0`, `_1`... | values of an attribute that has several; the last is a new option, where there can be one |
//! | `m3`, `d3`, `y3`, `h3`, `n3`, `c3` | the parts of attribute 3, from 0, which is a date or a time |
//! | `encoding`, `Text` | the text |
//! | `attachment0`... | attachments that are there, by their name in addresses; `delatt0` takes one away |
//! | `attfile1`... | new ones |
//! | `suppress`, `resubmit` | `1` where ticked |

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use http::StatusCode;
use sha2::{Digest, Sha256};

use super::{
    BookAsk, Response,
    command::Command,
    csrf, entry,
    html::{Raw, put},
    layout::Page,
    post,
    settings::{Occasion, Set},
    subst::Names,
    values,
};
use crate::{
    attachment::hex,
    book::{AttributeDef, same_name},
    entry::{Content, Encoding, Entry, EntryRef},
    store::StoreError,
};
use field::{Field, field_name};
use fill::{preset, set, substitute};

pub mod field;
mod fill;

/// Bytes of a value that ELOG takes.
const MAX_VALUE: usize = 1500;
/// Files that a form can bring at once.
const FILES: usize = 3;
/// How long an entry stays locked for who opened its form.
const LOCKED: Duration = Duration::from_secs(3600);

/// The field of [`Form::lock_key`].
pub const LOCK_KEY: &str = "lock_key";

/// What a form shows.
#[derive(Debug, Clone)]
pub struct Form {
    /// For what.
    pub occasion: Occasion,
    /// The entry that is changed or answered, or that this one is like.
    pub of: Option<u32>,
    /// The revision that is changed.
    pub revision: Option<u32>,
    /// Values, text, encoding, attachments.
    pub content: Content,
    /// What was wrong with what was sent, said above it.
    pub error: Option<String>,
    /// The draft it is kept as.
    pub draft: Option<i64>,
    /// Whether no mail is to be sent.
    pub suppress: bool,
    /// Whether a change becomes a new entry.
    pub resubmit: bool,
    /// What tells the lock of a guest's form from that of another's.
    pub lock_key: Option<String>,
}

/// An empty form, with what the book presets.
pub fn new(ask: &BookAsk<'_>) -> Response {
    let mut form = empty(ask, Occasion::New);
    if let Some(number) = ask.query.number::<i64>("draft")
        && !ask.caller.login.is_empty()
    {
        match ask.site.store.drafts(&ask.caller.login) {
            Ok(drafts) => {
                if let Some(draft) =
                    drafts.into_iter().find(|draft| draft.number == number && same_name(&draft.book, &ask.book.name))
                {
                    (form.content, form.draft) = (draft.content, Some(number));
                    (form.occasion, form.of) = match (draft.edits, draft.parent) {
                        (Some(id), _) => (Occasion::Edit, Some(id)),
                        (_, Some(id)) => (Occasion::Reply, Some(id)),
                        _ => (Occasion::New, None),
                    };
                    return show(ask, &form, StatusCode::OK);
                }
            }
            Err(error) => return ask.failed(&error),
        }
    }
    let names = names(ask, None);
    preset(ask, &mut form, &names);
    // ?cmd=New&pSubject=... fills a field in.
    for def in &ask.book.attributes {
        let wanted = format!("p{}", def.name).to_lowercase();
        if let Some((_, value)) = ask.query.0.iter().find(|(name, _)| name.to_lowercase() == wanted) {
            set(&mut form.content, def, value);
        }
    }
    form.content.text = names.expand(&ask.settings.preset_text().replace("\\n", "\n"));
    show(ask, &form, StatusCode::OK)
}

/// The form of an entry.
pub fn edit(ask: &BookAsk<'_>, id: u32) -> Response {
    let found = match read(ask, id) {
        Ok(found) => found,
        Err(error) => return ask.failed(&error),
    };
    if let Err(denied) = entry::may_change(ask, &found, Command::Edit) {
        return ask.refuse(denied);
    }
    let mut form = empty(ask, Occasion::Edit);
    // A picture that leads here is not somebody who edits.
    if ask.settings.use_lock() && !ask.query.is_on("skiplock") && ask.coming.for_a_page {
        let host = ask.caller.from.to_string();
        form.lock_key = ask.caller.login.is_empty().then(|| fresh_key(ask));
        let by = form.lock_key.as_deref().map_or_else(|| ask.by().to_owned(), post::guest_with);
        match ask.site.store.lock(&found.at, &by, &host, LOCKED) {
            Ok(_) => {}
            Err(StoreError::Locked { lock, .. }) => return locked(ask, id, &lock.by, &lock.host),
            Err(error) => return ask.failed(&error),
        }
    }
    let names = names(ask, Some(&found));
    (form.of, form.revision, form.content) = (Some(id), Some(found.revision), found.content.clone());
    preset(ask, &mut form, &names);
    let (before, after) = ask.settings.around(Occasion::Edit);
    if !before.is_empty() || !after.is_empty() {
        let around = |text: &str| names.expand(&text.replace("\\n", "\n"));
        form.content.text = format!("{}{}{}", around(before), form.content.text, around(after));
    }
    show(ask, &form, StatusCode::OK)
}

/// The form of an answer.
pub fn reply(ask: &BookAsk<'_>, id: u32) -> Response {
    let found = match read(ask, id) {
        Ok(found) => found,
        Err(error) => return ask.failed(&error),
    };
    let first = match ask.site.store.thread(&found.at) {
        Ok(thread) => !thread.iter().any(|answer| answer.parent == Some(id)),
        Err(error) => return ask.failed(&error),
    };
    let occasion = if first { Occasion::FirstReply } else { Occasion::Reply };
    let mut form = empty(ask, occasion);
    form.of = Some(id);
    form.content.attributes = found.content.attributes.clone();
    form.content.attributes.retain(|said| !ask.settings.is_removed_on_reply(&said.name));
    // An answer is written as what it answers is, where the book has that.
    if ask.settings.encodings().contains(&found.content.encoding) {
        form.content.encoding = found.content.encoding;
    }
    let names = names(ask, Some(&found));
    preset(ask, &mut form, &names);
    substitute(ask, &mut form.content, occasion, &names);
    let (before, after) = ask.settings.around(occasion);
    let around = |text: &str| names.expand(&text.replace("\\n", "\n"));
    let quoted = ask.settings.quote().map(|mark| quote(&found, form.content.encoding, mark)).unwrap_or_default();
    form.content.text = format!("{}{quoted}{}", around(before), around(after));
    show(ask, &form, StatusCode::OK)
}

/// The form of an entry like another.
pub fn duplicate(ask: &BookAsk<'_>, id: u32) -> Response {
    let found = match read(ask, id) {
        Ok(found) => found,
        Err(error) => return ask.failed(&error),
    };
    let mut form = empty(ask, Occasion::Duplicate);
    form.of = Some(id);
    form.content = found.content.clone();
    preset(ask, &mut form, &names(ask, Some(&found)));
    show(ask, &form, StatusCode::OK)
}

fn read(ask: &BookAsk<'_>, id: u32) -> Result<Entry, StoreError> {
    ask.site.store.entry(&EntryRef::new(&ask.book.name, id))
}

/// A key that no other form has.
fn fresh_key(ask: &BookAsk<'_>) -> String {
    static FORMS: AtomicU64 = AtomicU64::new(0);
    let nth = FORMS.fetch_add(1, Ordering::Relaxed);
    let of =
        Sha256::new().chain_update(ask.site.config.secret).chain_update(ask.now.0.to_be_bytes()).chain_update(nth.to_be_bytes());
    hex(&of.chain_update(ask.caller.from.to_string()).finalize()[..6])
}

fn locked(ask: &BookAsk<'_>, id: u32, by: &str, host: &str) -> Response {
    let mut body = String::from("<table class=\"dlgframe\"><tr><td class=\"errormsg\">");
    let by = if by.starts_with(post::GUEST) { post::GUEST } else { by };
    put!(&mut body, "Entry is currently edited by {} on {}</td></tr>\n", by, host);
    put!(
        &mut body,
        "<tr><td><a href=\"{}?cmd=Edit&amp;skiplock=1\">Edit it anyway</a> | <a href=\"{}\">Cancel</a></td></tr></table>\n",
        id,
        id
    );
    Page::new(ask, "Locked", body).answer(StatusCode::OK)
}

/// A form with nothing in it.
pub fn empty(ask: &BookAsk<'_>, occasion: Occasion) -> Form {
    Form {
        occasion,
        of: None,
        revision: None,
        content: Content { encoding: ask.settings.encoding(), ..Content::default() },
        error: None,
        draft: None,
        suppress: matches!(ask.settings.suppress(), 1 | 3),
        resubmit: ask.settings.resubmit() == 1,
        lock_key: None,
    }
}

/// What `$name` stands for in a form; `of` is the entry that is changed or answered.
pub fn names(ask: &BookAsk<'_>, of: Option<&Entry>) -> Names {
    let zone = &ask.site.config.zone;
    let names = Names::new(ask.caller, &ask.book, &ask.settings, zone, ask.now);
    match of {
        Some(entry) => names.with_entry(entry, &ask.book, &ask.settings, zone),
        None => names,
    }
}

/// The conditions that an entry's values set.
pub fn conditions(ask: &BookAsk<'_>, content: &Content) -> Set {
    let joined: Vec<(String, String)> = content.attributes.iter().map(|said| (said.name.clone(), said.joined())).collect();
    ask.settings.set_by(|name| joined.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str()))
}

/// What an answer quotes, as its encoding has it.
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

/// Shows a form; `post` does it again with what was sent, for Update and where something was wrong.
pub fn show(ask: &BookAsk<'_>, form: &Form, status: StatusCode) -> Response {
    let conditions = conditions(ask, &form.content);
    let mut body = String::with_capacity(form.content.text.len() + 8192);
    let out = &mut body;
    if let Some(error) = &form.error {
        put!(out, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", error);
    }
    if form.occasion == Occasion::New && form.draft.is_none() {
        drafts(ask, out);
    }
    out.push_str("<form class=\"entry\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n");
    hidden(ask, form, out);
    out.push_str("<table class=\"listframe\">\n");
    let mut unseen = String::new();
    let decides = attributes(ask, form, &conditions, &mut unseen, out);
    if ask.settings.show_text() {
        text(ask, form, out);
    }
    if ask.settings.attachments() {
        attachments(ask, form, out);
    }
    put!(out, "</table>\n{}<p class=\"buttons\">", Raw(&unseen));
    boxes(ask, form, out);
    out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Submit\">Submit</button> ");
    if !ask.caller.login.is_empty() {
        out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Save\" formnovalidate>Save as draft</button> ");
    }
    if decides {
        out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Update\" id=\"update\" formnovalidate>Update</button> ");
    }
    let back = form.of.map_or_else(|| "./".to_owned(), |id| id.to_string());
    match form.occasion {
        // Who leaves the form gives the lock back.
        Occasion::Edit if ask.settings.use_lock() => {
            out.push_str("<button type=\"submit\" name=\"cmd\" value=\"Back\" formnovalidate>Back</button></p>\n</form>\n");
        }
        _ => put!(out, "<a href=\"{}\">Back</a></p>\n</form>\n", back),
    }
    let title = match form.occasion {
        Occasion::New | Occasion::Duplicate => "New entry",
        Occasion::Edit => "Edit",
        Occasion::Reply | Occasion::FirstReply => "Reply",
    };
    let mut page = Page::new(ask, title, body);
    (page.kind, page.script) = ("edit", decides);
    page.answer(status)
}

fn drafts(ask: &BookAsk<'_>, out: &mut String) {
    if ask.caller.login.is_empty() {
        return;
    }
    let drafts = ask.site.store.drafts(&ask.caller.login).unwrap_or_default();
    let own: Vec<_> = drafts.into_iter().filter(|draft| same_name(&draft.book, &ask.book.name)).collect();
    if own.is_empty() {
        return;
    }
    out.push_str("<ul class=\"drafts\">Drafts:\n");
    for draft in own {
        let saved = ask.site.config.zone.write(draft.saved, 0, ask.settings.time_format(None));
        let subject = draft.content.attribute("Subject").map(|said| said.joined()).unwrap_or_default();
        put!(out, "<li><a href=\"./?cmd=New&amp;draft={}\">{} {}</a></li>\n", draft.number, saved, subject);
    }
    out.push_str("</ul>\n");
}

fn hidden(ask: &BookAsk<'_>, form: &Form, out: &mut String) {
    let mut field = |name: &str, value: &str| put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    field(csrf::FIELD, &csrf::token(ask.site, ask.caller));
    let of = form.of.map(|id| id.to_string()).unwrap_or_default();
    match form.occasion {
        Occasion::Edit => {
            field("edit_id", &of);
            if ask.query.is_on("skiplock") {
                field("skiplock", "1");
            }
            if let Some(key) = &form.lock_key {
                field(LOCK_KEY, key);
            }
        }
        Occasion::Reply | Occasion::FirstReply => field("reply_to", &of),
        Occasion::Duplicate => field("orig_id", &of),
        Occasion::New => {}
    }
    if let Some(revision) = form.revision {
        field("entry_revision", &revision.to_string());
    }
    if let Some(draft) = form.draft {
        field("draft_id", &draft.to_string());
    }
}

/// The fields of attributes; whether one of them decides what else there is. What is not shown goes into `unseen`.
fn attributes(ask: &BookAsk<'_>, form: &Form, conditions: &Set, unseen: &mut String, out: &mut String) -> bool {
    let (mut open, mut any) = (false, false);
    for (index, def) in ask.book.attributes.iter().enumerate() {
        let def = ask.settings.attribute(def, conditions);
        let decides = ask.settings.sets_conditions(&def.name);
        if !ask.settings.in_form(&def.name, conditions) {
            // What a form does not show it does not change.
            let value = value_of(&form.content, &def.name);
            if !value.is_empty() {
                put!(unseen, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", field_name(&def.name), value);
            }
            continue;
        }
        any |= decides;
        let format = ask.settings.format(&def.name);
        if open && format.flags & 1 == 0 {
            out.push_str("</tr>\n");
            open = false;
        }
        if !open {
            out.push_str("<tr>");
            open = true;
        }
        let tooltip = ask.settings.tooltip(&def.name, conditions);
        put!(out, "<th class=\"attribname\" title=\"{}\">{}", tooltip, def.name);
        if def.required {
            out.push_str("<span class=\"required\" title=\"required\">*</span>");
        }
        put!(out, ":</th><td class=\"attribvalue {}\">", format.class);
        let fixed = def.locked || ask.settings.is_fixed(&def.name, form.occasion);
        if fixed {
            locked_field(ask, form, &def, out);
        } else {
            Field {
                ask,
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

/// An attribute that is shown and sent back as it is.
fn locked_field(ask: &BookAsk<'_>, form: &Form, def: &AttributeDef, out: &mut String) {
    let value = value_of(&form.content, &def.name);
    let shown = super::subst::shown_value(def.kind, &def.name, &value, &ask.settings, &ask.site.config.zone, 0);
    put!(out, "<span class=\"fixed\">{}</span>", shown);
    put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", field_name(&def.name), value);
}

fn text(ask: &BookAsk<'_>, form: &Form, out: &mut String) {
    let (width, height) = ask.settings.message_size();
    out.push_str("<tr><td colspan=\"20\" class=\"messageedit\">");
    let answers = matches!(form.occasion, Occasion::Reply | Occasion::FirstReply);
    let comment = if answers && !ask.settings.reply_comment().is_empty() {
        ask.settings.reply_comment()
    } else {
        ask.settings.message_comment()
    };
    if !comment.is_empty() {
        put!(out, "<div class=\"comment\">{}</div>", comment);
    }
    // The first line end of a text area is not its text's.
    put!(
        out,
        "<textarea name=\"Text\" cols=\"{}\" rows=\"{}\" aria-label=\"Text\">\n{}</textarea>",
        width,
        height,
        form.content.text
    );
    out.push_str("<div class=\"encodings\">Encoding: ");
    let mut encodings = ask.settings.encodings();
    if !encodings.contains(&form.content.encoding) {
        encodings.push(form.content.encoding);
    }
    for encoding in encodings {
        let checked = Raw(if encoding == form.content.encoding { " checked" } else { "" });
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

fn attachments(ask: &BookAsk<'_>, form: &Form, out: &mut String) {
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
        if nth == 1 && !ask.settings.attachment_comment().is_empty() {
            put!(out, " <span class=\"comment\">{}</span>", ask.settings.attachment_comment());
        }
        out.push_str("</td></tr>\n");
    }
}

fn boxes(ask: &BookAsk<'_>, form: &Form, out: &mut String) {
    match ask.settings.suppress() {
        0 | 1 => {
            let checked = Raw(if form.suppress { " checked" } else { "" });
            put!(
                out,
                "<label><input type=\"checkbox\" name=\"suppress\" value=\"1\"{}> Suppress Email notification</label> ",
                checked
            );
        }
        3 => out.push_str("<input type=\"hidden\" name=\"suppress\" value=\"1\">"),
        _ => {}
    }
    if form.occasion == Occasion::Edit && ask.settings.resubmit() < 2 {
        let checked = Raw(if form.resubmit { " checked" } else { "" });
        put!(out, "<label><input type=\"checkbox\" name=\"resubmit\" value=\"1\"{}> Resubmit as new entry</label> ", checked);
    }
}
