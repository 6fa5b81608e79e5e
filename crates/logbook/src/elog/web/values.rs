//! Attributes, texts and attachments as pages show them; the same in lists and on an entry's page.

use std::ops::Range;

use super::{
    BookAsk,
    address::escape,
    html::{Raw, Shown, put},
    subst::{Names, shown_value},
};
use crate::{
    attachment::Attachment,
    book::AttributeKind,
    elog::written::stored_name,
    entry::{Encoding, Entry},
    render,
};

/// The value of an attribute of an entry, or a column of a list: HTML.
pub fn value(ask: &BookAsk<'_>, entry: &Entry, name: &str, marks: Option<&[Range<usize>]>) -> Raw {
    let (settings, zone) = (&ask.settings, &ask.site.config.zone);
    let said = entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default();
    let kind = ask.book.attribute(name).map(|def| def.kind).unwrap_or_default();
    let mut out = String::new();
    if let Some(display) = settings.display(name).filter(|_| !said.is_empty()) {
        let names = Names::new(ask.caller, &ask.book, settings, zone, ask.now).with_entry(entry, &ask.book, settings, zone);
        let text = names.expand(display);
        if settings.allows_html() {
            return Raw(render::html(Encoding::Html, &text, &|_| String::new()));
        }
        linked(&text, &mut out);
        return Raw(out);
    }
    match (kind, marks) {
        (AttributeKind::Boolean, _) => out.push_str(match said.as_str() {
            "1" => "<span class=\"yes\" title=\"yes\">&#9745;</span>",
            _ => "<span class=\"no\" title=\"no\">&#9744;</span>",
        }),
        (AttributeKind::Date | AttributeKind::DateTime, _) => {
            put!(&mut out, "{}", shown_value(kind, name, &said, settings, zone, entry.zone));
        }
        (_, Some(marks)) => marked(&said, marks, &mut out),
        (_, None) => linked(&said, &mut out),
    }
    Raw(out)
}

/// Text with what was found in it marked.
pub fn marked(text: &str, marks: &[Range<usize>], out: &mut String) {
    let mut at = 0;
    for mark in marks {
        let (Some(before), Some(inside)) = (text.get(at..mark.start), text.get(mark.clone())) else { continue };
        put!(out, "{}<mark>{}</mark>", before, inside);
        at = mark.end;
    }
    put!(out, "{}", text.get(at..).unwrap_or_default());
}

/// Text with its addresses of the web as links.
pub fn linked(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = ["http://", "https://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let end = rest[at..]
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\''))
            .map_or(rest.len(), |end| at + end);
        // A sentence ends behind an address more often than an address ends so.
        let end = at + rest[at..end].trim_end_matches(['.', ',', ';', ':', ')', '!', '?']).len();
        put!(out, "{}<a href=\"{}\" rel=\"noopener noreferrer nofollow\">{}</a>", &rest[..at], &rest[at..end], &rest[at..end]);
        rest = &rest[end..];
    }
    put!(out, "{}", rest);
}

/// When an entry was written, as the book writes times.
pub fn when(ask: &BookAsk<'_>, entry: &Entry) -> String {
    ask.site.config.zone.write(entry.date, entry.zone, ask.settings.time_format(None))
}

/// How far from UTC the times of an entry are shown, as `UTC+02:00`.
pub fn zone(ask: &BookAsk<'_>, entry: &Entry) -> String {
    match ask.site.config.zone.minutes(entry.date, entry.zone) {
        0 => "UTC".to_owned(),
        minutes => {
            let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
            format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

/// The number of an entry, as `ID display` has it.
pub fn id(ask: &BookAsk<'_>, entry: &Entry) -> String {
    let Some(display) = ask.settings.id_display() else { return entry.at.id.to_string() };
    let zone = &ask.site.config.zone;
    Names::new(ask.caller, &ask.book, &ask.settings, zone, ask.now)
        .with_entry(entry, &ask.book, &ask.settings, zone)
        .expand(display)
}

/// The text of an entry as it is read.
pub fn text(ask: &BookAsk<'_>, entry: &Entry) -> Raw {
    let link = |target: &str| {
        let here = target.bytes().all(|byte| byte.is_ascii_digit());
        if here { ask.link(&entry.at.book, target) } else { format!("{}{target}", ask.root) }
    };
    Raw(render::html(entry.content.encoding, &entry.content.text, &link))
}

/// The name an attachment has in addresses: ELOG's, or one like it.
pub fn address_name(attachment: &Attachment) -> String {
    attachment.elog.clone().unwrap_or_else(|| stored_name(attachment))
}

/// Where an attachment is.
pub fn attachment_link(ask: &BookAsk<'_>, entry: &Entry, attachment: &Attachment) -> String {
    let name = address_name(attachment);
    ask.link(&entry.at.book, &format!("{}/{}", entry.at.id, escape(&name)))
}

/// Whether a browser shows it as a picture.
pub fn is_image(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp")
}

/// The attachments of an entry, with pictures where they are pictures.
pub fn attachments(ask: &BookAsk<'_>, entry: &Entry) -> String {
    let mut out = String::new();
    if entry.content.attachments.is_empty() {
        return out;
    }
    out.push_str("<table class=\"listframe attachments\">\n");
    for (nth, attachment) in entry.content.attachments.iter().enumerate() {
        let link = attachment_link(ask, entry, attachment);
        put!(&mut out, "<tr><td class=\"attachment\">Attachment {}: <a href=\"{}\">{}</a> ", nth + 1, link, attachment.name);
        match &attachment.sha {
            Some(_) => put!(&mut out, "<span class=\"uploaded\">{}", bytes(attachment.size)),
            None => put!(&mut out, "<span class=\"missing\">{}", "the file was not there when the entry was imported"),
        }
        if attachment.added.0 > 0 {
            let added = ask.site.config.zone.write(attachment.added, entry.zone, ask.settings.time_format(None));
            put!(&mut out, " Uploaded {}", added);
        }
        out.push_str("</span></td></tr>\n");
        let size = ask.settings.thumbnail();
        if attachment.sha.is_some() && size > 0 && is_image(&attachment.name) {
            put!(
                &mut out,
                "<tr><td class=\"attachmentframe\"><a href=\"{}\"><img src=\"{}?thumb=1\" alt=\"{}\" loading=\"lazy\" \
                 style=\"max-width:{}px;max-height:{}px\"></a></td></tr>\n",
                link,
                link,
                attachment.name,
                size,
                size
            );
        }
    }
    out.push_str("</table>\n");
    out
}

/// A number of bytes as people read it.
pub fn bytes(count: u64) -> String {
    match count {
        0..=1023 => format!("{count} Bytes"),
        1024..=1_048_575 => format!("{} kB", count / 1024),
        _ => format!("{:.1} MB", count as f64 / 1_048_576.0),
    }
}

impl BookAsk<'_> {
    /// From a page to a place in a book.
    pub fn link(&self, book: &str, rest: &str) -> String {
        format!("{}{}/{rest}", self.root, escape(book))
    }
}

/// One of several choices of a list, chosen or not.
pub fn option(out: &mut String, value: &(impl Shown + ?Sized), text: &(impl Shown + ?Sized), chosen: bool) {
    put!(out, "<option value=\"{}\"{}>{}</option>", value, Raw(if chosen { " selected" } else { "" }), text);
}

/// A value as text, times in the book's formats.
pub fn plain_value(ask: &BookAsk<'_>, entry: &Entry, name: &str) -> String {
    let said = entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default();
    let kind = ask.book.attribute(name).map(|def| def.kind).unwrap_or_default();
    shown_value(kind, name, &said, &ask.settings, &ask.site.config.zone, entry.zone)
}
