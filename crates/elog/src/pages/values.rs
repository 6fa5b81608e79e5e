//! HTML of attributes, texts and attachments; the same in lists and on an entry's page.

use std::{io::Read, ops::Range, sync::Arc};

use tampu_logbook::{
    attachment::{Attachment, stored_name::stored_name},
    book::AttributeKind,
    elcode::web_address,
    entry::{Encoding, Entry},
    render::{self, Unfinished},
};

use crate::{
    decode,
    pages::{
        address::escape,
        ere,
        html::{SafeHtml, put},
        request::BookRequest,
        settings::BookSettings,
        smileys,
        subst::{Substitutions, shown_value},
    },
};

/// The value of an attribute of an entry, or a column of a list: HTML.
pub fn value(request: &BookRequest<'_>, entry: &Entry, name: &str, marks: Option<&[Range<usize>]>) -> SafeHtml {
    shown((request, &request.settings), entry, name, marks, false)
}

/// A request, and the settings of a line of its list.
pub type InLine<'a, 'r> = (&'a BookRequest<'r>, &'a BookSettings);

/// The value of an attribute of an entry in a list: HTML.
pub fn value_in_list(of: InLine<'_, '_>, entry: &Entry, name: &str, marks: Option<&[Range<usize>]>) -> SafeHtml {
    shown(of, entry, name, marks, true)
}

fn shown(
    (request, settings): InLine<'_, '_>,
    entry: &Entry,
    name: &str,
    marks: Option<&[Range<usize>]>,
    in_list: bool,
) -> SafeHtml {
    let zone = &request.zone;
    let said = entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default();
    let kind = request.book.attribute(name).map(|def| def.kind).unwrap_or_default();
    let mut out = String::new();
    if let Some((display, as_html)) = settings.display(name, in_list).filter(|_| !said.is_empty()) {
        let names = Substitutions::new(request.caller, &request.book, settings, zone, request.now).with_entry(
            entry,
            &request.book,
            settings,
            zone,
        );
        let text = names.expand(display);
        if as_html {
            return SafeHtml(render::html(Encoding::Html, &text, &|_| String::new()));
        }
        linked(&text, &mut out);
        return SafeHtml(out);
    }
    // The text of the value follows such an image, so a missing image needs no other text.
    if let Some(image) = settings.icon(name, &said).filter(|image| request.site.has_image(image)) {
        icon(request, entry, image, &mut out);
    }
    match (kind, marks) {
        (AttributeKind::Radio, _) if !said.is_empty() && settings.is_icon(name) => icon(request, entry, &said, &mut out),
        (AttributeKind::Tags, _) => {
            let values = entry.content.attribute(name).map_or(&[][..], |said| &said.values);
            for tag in values {
                let list = request.link(&entry.at.book, &format!("?{}={}", escape(name), escape(&ere::part(tag))));
                put!(&mut out, "<a class=\"tag\" href=\"{}\">{}</a> ", list, tag);
            }
        }
        (AttributeKind::Text, None) if said.contains('\n') => {
            out.push_str("<span class=\"lines\">");
            linked(&said, &mut out);
            out.push_str("</span>");
        }
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
    SafeHtml(out)
}

/// Writes an image that the configuration names, with its comment. The comment replaces an image that the import has not
/// found.
pub fn icon(request: &BookRequest<'_>, entry: &Entry, image: &str, out: &mut String) {
    let comment = request.settings.icon_comment(image);
    if !request.site.has_image(image) {
        put!(out, "{} ", comment);
        return;
    }
    let address = request.link(&entry.at.book, &format!("icons/{}", escape(image)));
    put!(out, "<img class=\"icon\" src=\"{}\" alt=\"{}\" title=\"{}\"> ", address, comment, comment);
}

/// Writes a text with its matches marked.
pub fn marked(text: &str, marks: &[Range<usize>], out: &mut String) {
    let mut at = 0;
    for mark in marks {
        let (Some(before), Some(inside)) = (text.get(at..mark.start), text.get(mark.clone())) else { continue };
        put!(out, "{}<mark>{}</mark>", before, inside);
        at = mark.end;
    }
    put!(out, "{}", text.get(at..).unwrap_or_default());
}

/// Writes a text with its web addresses as links.
pub fn linked(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((at, length)) = rest.match_indices("http").find_map(|(at, _)| Some((at, web_address(&rest[at..])?))) {
        let end = at + length;
        put!(out, "{}<a href=\"{}\" rel=\"noopener noreferrer nofollow\">{}</a>", &rest[..at], &rest[at..end], &rest[at..end]);
        rest = &rest[end..];
    }
    put!(out, "{}", rest);
}

/// Returns the date of an entry, in the book's format.
pub fn when(request: &BookRequest<'_>, entry: &Entry) -> String {
    request.zone.write(entry.date, entry.zone, request.settings.time_format(None))
}

/// Returns the offset from UTC of an entry's times, as `UTC+02:00`.
pub fn zone(request: &BookRequest<'_>, entry: &Entry) -> String {
    match request.zone.minutes(entry.date, entry.zone) {
        0 => "UTC".to_owned(),
        minutes => {
            let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
            format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

/// Writes the number of an entry, in the format of `ID display`.
pub fn id(request: &BookRequest<'_>, entry: &Entry) -> String {
    let Some(display) = request.settings.id_display() else { return entry.at.id.to_string() };
    let zone = &request.zone;
    Substitutions::new(request.caller, &request.book, &request.settings, zone, request.now)
        .with_entry(entry, &request.book, &request.settings, zone)
        .expand(display)
}

/// Returns the address of the entry that `elog:12` in a text of this book names.
fn named_entry(request: &BookRequest<'_>, book: &str, target: &str) -> String {
    let here = target.bytes().all(|byte| byte.is_ascii_digit());
    if here { request.link(book, target) } else { format!("{}{target}", request.root) }
}

/// Renders a text that is not yet one of an entry.
pub fn rendered(request: &BookRequest<'_>, encoding: Encoding, text: &str) -> SafeHtml {
    let link = |target: &str| named_entry(request, &request.book.name, target);
    let html = render::html_until(encoding, text, &link, &request.stop);
    let html = html.unwrap_or_else(|Unfinished| render::NOT_RENDERED.to_owned());
    SafeHtml(if encoding == Encoding::ElCode && request.settings.smileys() { smileys::shown(&html) } else { html })
}

/// Writes the text of an entry for display.
pub fn text(request: &BookRequest<'_>, entry: &Entry) -> SafeHtml {
    let link = |target: &str| named_entry(request, &entry.at.book, target);
    // Links depend on the page that they are on.
    let smiles = entry.content.encoding == Encoding::ElCode && request.settings.smileys();
    let links = format!("{} {}{}", request.link(&entry.at.book, ""), request.root, if smiles { " :-)" } else { "" });
    let render = || {
        let html = render::html_until(entry.content.encoding, &entry.content.text, &link, &request.stop)?;
        Ok(if smiles { smileys::shown(&html) } else { html })
    };
    let html = request.site.rendered.html(entry, &links, &request.stop, render);
    SafeHtml(html.map_or_else(|Unfinished| render::NOT_RENDERED.to_owned(), Arc::unwrap_or_clone))
}

/// Returns the name of an attachment in addresses: ELOG's, or one like it.
pub fn address_name(attachment: &Attachment) -> String {
    attachment.elog.clone().unwrap_or_else(|| stored_name(attachment))
}

/// Returns the link to an attachment.
pub fn attachment_link(request: &BookRequest<'_>, entry: &Entry, attachment: &Attachment) -> String {
    let name = address_name(attachment);
    request.link(&entry.at.book, &format!("{}/{}", entry.at.id, escape(&name)))
}

/// Returns true if browsers show the file as an image.
pub fn is_image(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp")
}

/// Endings of the names of files that are shown as text.
const TEXTS: [&str; 16] =
    ["txt", "log", "asc", "csv", "dat", "md", "ini", "cfg", "conf", "sh", "py", "c", "h", "cpp", "xml", "json"];
/// Bytes of a text file that a page shows.
const MAX_SHOWN: u64 = 64 << 10;
/// The number of text files that a page shows.
const MAX_TEXTS: usize = 20;

/// Writes the first lines of a text file: `Attachment lines`. A file that cannot be read has its link alone.
fn beginning(request: &BookRequest<'_>, attachment: &Attachment, out: &mut String) -> bool {
    let lines = request.settings.attachment_lines();
    let ending = attachment.name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let (Some(sha), true) = (&attachment.sha, lines > 0 && TEXTS.contains(&ending.as_str())) else { return false };
    let Ok(file) = request.site.store.attachment(sha) else { return false };
    let mut bytes = Vec::new();
    if file.take(MAX_SHOWN).read_to_end(&mut bytes).is_err() || bytes.contains(&0) {
        return false;
    }
    let text = decode(&bytes);
    let shown = text.split_inclusive('\n').take(lines).map(str::len).sum();
    put!(out, "<tr><td class=\"attachmentframe\"><pre class=\"attachmenttext\">{}</pre>", &text[..shown]);
    if shown < text.len() || bytes.len() as u64 == MAX_SHOWN && attachment.size > MAX_SHOWN {
        out.push_str("<span class=\"note\">The file is longer: its name leads to all of it</span>");
    }
    out.push_str("</td></tr>\n");
    true
}

/// Writes the attachments of an entry, with images and the first lines of texts shown inline.
pub fn attachments_with_texts(request: &BookRequest<'_>, entry: &Entry) -> String {
    written_attachments(request, entry, MAX_TEXTS)
}

/// Writes the attachments of an entry, with images shown inline.
pub fn attachments(request: &BookRequest<'_>, entry: &Entry) -> String {
    written_attachments(request, entry, 0)
}

fn written_attachments(request: &BookRequest<'_>, entry: &Entry, mut texts: usize) -> String {
    let mut out = String::new();
    if entry.content.attachments.is_empty() {
        return out;
    }
    out.push_str("<table class=\"listframe attachments\">\n");
    for (nth, attachment) in entry.content.attachments.iter().enumerate() {
        let link = attachment_link(request, entry, attachment);
        put!(
            &mut out,
            "<tr><td class=\"attachment\">{} {}: <a href=\"{}\">{}</a> ",
            request.word("Attachment"),
            nth + 1,
            link,
            attachment.name
        );
        match &attachment.sha {
            Some(_) => put!(&mut out, "<span class=\"uploaded\">{}", bytes(attachment.size)),
            None => put!(&mut out, "<span class=\"missing\">{}", "the file was missing when the entry was imported"),
        }
        if attachment.added.0 > 0 {
            let added = request.zone.write(attachment.added, entry.zone, request.settings.time_format(None));
            put!(&mut out, " Uploaded {}", added);
        }
        out.push_str("</span></td></tr>\n");
        let size = request.settings.thumbnail();
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
        } else if texts > 0 && beginning(request, attachment, &mut out) {
            texts -= 1;
        }
    }
    out.push_str("</table>\n");
    out
}

/// Returns a number of bytes in a readable unit.
pub fn bytes(count: u64) -> String {
    match count {
        0..=1023 => format!("{count} Bytes"),
        1024..=1_048_575 => format!("{} kB", count / 1024),
        _ => format!("{:.1} MB", count as f64 / 1_048_576.0),
    }
}

/// Returns a value as text, with times in the book's formats.
pub fn plain_value(request: &BookRequest<'_>, entry: &Entry, name: &str) -> String {
    let said = entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default();
    let kind = request.book.attribute(name).map(|def| def.kind).unwrap_or_default();
    shown_value(kind, name, &said, &request.settings, &request.zone, entry.zone)
}
