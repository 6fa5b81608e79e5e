//! Feeds: entries as Atom (RFC 4287) for feed readers, and as iCalendar (RFC 5545) for calendars.
//!
//! A calendar has an event for each attribute of the types date and date with time that has a value. An entry without
//! such a value is an event at its own date. Both formats are made entry by entry.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
};

use super::html::{
    links::encoded,
    markup::{escaped, title},
};
use crate::{
    book::{AttributeKind, Book},
    entry::Entry,
    people::decide::is_imported,
    plain::plain,
    render,
};
use tampu_types::Time;

/// Bytes of a line of a calendar, without its end.
const LINE: usize = 75;

/// Settings of a feed beside its search.
#[derive(Debug, Clone, Default)]
pub struct FeedSettings {
    /// The address of the public pages, which ends in `/`; empty if entries have no address.
    pub pages: String,
    /// The number of entries; all of them if it is `None`.
    pub limit: Option<usize>,
}

impl FeedSettings {
    /// Returns the address of an entry's page.
    fn page(&self, book: &str, id: impl fmt::Display) -> Option<String> {
        (!self.pages.is_empty()).then(|| format!("{}/{}/{id}", self.pages.trim_end_matches('/'), encoded(book)))
    }
}

/// Returns the identity of an entry in feeds, which never changes.
fn identity(entry: &Entry) -> String {
    format!("urn:x-tampu:entry:{}/{}", encoded(&entry.at.book), entry.at.id)
}

/// Returns the beginning of an Atom feed of these books; `updated` is the time of its newest change.
pub fn atom_begin(books: &[Book], query: &str, updated: Time) -> Vec<u8> {
    let names: Vec<&str> = books.iter().map(|book| book.name.as_str()).collect();
    let all: Vec<String> = names.iter().map(|name| encoded(name)).collect();
    let what = if query.trim().is_empty() { String::new() } else { format!(": {}", query.trim()) };
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<title>{}</title>\n\
         <id>urn:x-tampu:search:{}?{}</id>\n<updated>{}</updated>\n<generator>Tampu</generator>\n",
        escaped(&format!("{}{what}", names.join(", "))),
        all.join(","),
        encoded(query.trim()),
        updated.to_rfc3339()
    )
    .into_bytes()
}

/// Returns who wrote an entry, as readers know it. An import has no login of its author, but perhaps a name.
fn author(entry: &Entry) -> String {
    let named = entry.content.attribute("Author").map(|author| author.joined()).filter(|name| !name.trim().is_empty());
    named.filter(|_| is_imported(entry)).unwrap_or_else(|| entry.by.clone())
}

/// The end of an Atom feed.
pub const ATOM_END: &[u8] = b"</feed>\n";

/// Appends an entry to an Atom feed.
pub fn atom_entry(settings: &FeedSettings, entry: &Entry, out: &mut Vec<u8>) {
    let content = &entry.content;
    let mut text = format!(
        "<entry><id>{}</id><title>{}</title><updated>{}</updated><published>{}</published><author><name>{}</name></author>\n",
        identity(entry),
        escaped(&format!("{}: {}", entry.at, title(entry))),
        entry.changed.to_rfc3339(),
        entry.date.to_rfc3339(),
        escaped(&author(entry))
    );
    if let Some(page) = settings.page(&entry.at.book, entry.at.id) {
        let _ = writeln!(text, "<link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>", escaped(&page));
    }
    for said in &content.attributes {
        for value in &said.values {
            let (name, value) = (escaped(&said.name), escaped(&value.replace(['\n', '\t'], " ")));
            let _ = writeln!(text, "<category term=\"{value}\" label=\"{name}: {value}\"/>");
        }
    }
    let link = |target: &str| match target.rsplit_once('/') {
        Some((book, id)) => settings.page(book, id),
        None => settings.page(&entry.at.book, target),
    };
    let html = render::html(content.encoding, &content.text, &|target| link(target).unwrap_or_else(|| "#".to_owned()));
    let _ = writeln!(text, "<content type=\"html\">{}</content></entry>", escaped(&html));
    out.extend_from_slice(text.as_bytes());
}

/// The beginning of a calendar.
pub const CALENDAR_BEGIN: &[u8] =
    b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Tampu//Logbook//EN\r\nCALSCALE:GREGORIAN\r\nMETHOD:PUBLISH\r\n";
/// The end of a calendar.
pub const CALENDAR_END: &[u8] = b"END:VCALENDAR\r\n";

/// The attributes of each book that are dates.
pub struct DateAttributes(HashMap<String, Vec<(String, AttributeKind)>>);

impl DateAttributes {
    /// Finds the dates among the attributes of these books.
    pub fn of(books: &[Book]) -> DateAttributes {
        let is_date = |kind| matches!(kind, AttributeKind::Date | AttributeKind::DateTime);
        let of = |book: &Book| {
            let dates = book.attributes.iter().filter(|attribute| is_date(attribute.kind));
            (book.name.clone(), dates.map(|attribute| (attribute.name.clone(), attribute.kind)).collect())
        };
        DateAttributes(books.iter().map(of).collect())
    }

    /// Appends the events of an entry.
    pub fn events(&self, settings: &FeedSettings, entry: &Entry, out: &mut Vec<u8>) {
        let mut is_first = true;
        for (name, kind) in self.0.get(&entry.at.book).into_iter().flatten() {
            let said = entry.content.attribute(name).and_then(|said| said.values.first());
            let Some(seconds) = said.and_then(|seconds| seconds.parse::<i64>().ok()) else { continue };
            let start = match kind {
                AttributeKind::Date => {
                    let local = seconds.saturating_add(i64::from(entry.zone) * 60);
                    format!("DTSTART;VALUE=DATE:{}", &compact(Time::from_unix(local, 0))[..8])
                }
                _ => format!("DTSTART:{}", compact(Time::from_unix(seconds, 0))),
            };
            event(settings, entry, Some(name), &start, out);
            is_first = false;
        }
        if is_first {
            event(settings, entry, None, &format!("DTSTART:{}", compact(entry.date)), out);
        }
    }
}

/// `20261122T081530Z`.
fn compact(time: Time) -> String {
    let text = time.to_ns_text();
    text[..19].chars().filter(|c| !matches!(c, '-' | ':')).collect::<String>() + "Z"
}

fn event(settings: &FeedSettings, entry: &Entry, attribute: Option<&str>, start: &str, out: &mut Vec<u8>) {
    let content = &entry.content;
    let title = title(entry);
    let summary = match attribute {
        Some(name) => format!("{title} ({name})"),
        None => title,
    };
    let of = attribute.map(|name| format!("?{}", encoded(name))).unwrap_or_default();
    line("BEGIN:VEVENT", out);
    line(&format!("UID:{}{of}", identity(entry)), out);
    line(&format!("DTSTAMP:{}", compact(entry.changed)), out);
    line(&format!("LAST-MODIFIED:{}", compact(entry.changed)), out);
    line(&format!("SEQUENCE:{}", entry.revision), out);
    line(start, out);
    line(&format!("SUMMARY:{}", value(&format!("{}: {summary}", entry.at))), out);
    let mut text = String::new();
    for said in content.attributes.iter().filter(|said| !said.values.is_empty()) {
        let _ = writeln!(text, "{}: {}", said.name, said.joined());
    }
    let _ = write!(text, "By: {}\n\n{}", author(entry), plain(content.encoding, &content.text).trim());
    line(&format!("DESCRIPTION:{}", value(&text)), out);
    if let Some(page) = settings.page(&entry.at.book, entry.at.id) {
        line(&format!("URL:{page}"), out);
    }
    line("TRANSP:TRANSPARENT", out);
    line("END:VEVENT", out);
}

/// Returns a text as a calendar's value.
fn value(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' | ';' | ',' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Appends a line, folded where it is too long.
fn line(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    let mut room = LINE;
    while rest.len() > room {
        let mut end = room;
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        out.extend_from_slice(&rest.as_bytes()[..end]);
        out.extend_from_slice(b"\r\n ");
        rest = &rest[end..];
        // The blank before a continued line counts.
        room = LINE - 1;
    }
    out.extend_from_slice(rest.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_calendar_are_folded_between_characters() {
        let mut out = Vec::new();
        line(&("SUMMARY:".to_owned() + &"ä".repeat(100)), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.split("\r\n").all(|line| line.len() <= LINE), "{text}");
        assert_eq!(text.replace("\r\n ", "").trim_end(), "SUMMARY:".to_owned() + &"ä".repeat(100));
        assert_eq!(value("a;b,c\\d\ne\u{7}"), "a\\;b\\,c\\\\d\\ne");
    }
}
