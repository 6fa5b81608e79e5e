//! Tables by RFC 4180: UTF-8, commas, lines that end in CR LF, and quotation marks around values that need them.
//!
//! The columns are the same for every entry: the fields of every entry, then each attribute of the books in their
//! order. Other attributes are `name=value` in `Other`. A cell that a spreadsheet would take for a formula gets an
//! apostrophe ([`harmless_cell`]), unless the raw values are asked for.

use std::borrow::Cow;

use tampu_types::spreadsheet::harmless_cell;

use crate::{
    book::{Book, same_name},
    entry::Entry,
};

/// The columns of every entry before and after its attributes.
const BEFORE: [&str; 9] = ["Book", "ID", "Date", "Zone", "By", "Revision", "Changed", "Reply to", "Thread"];
const AFTER: [&str; 5] = ["Other", "Encoding", "Attachments", "Links", "Text"];

/// The names of the attributes' columns.
pub fn columns(books: &[Book]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for attribute in books.iter().flat_map(|book| &book.attributes) {
        if !names.iter().any(|name| same_name(name, &attribute.name)) {
            names.push(attribute.name.clone());
        }
    }
    names
}

/// The first line.
pub fn header(columns: &[String], raw: bool) -> Vec<u8> {
    let mut out = Vec::new();
    line(BEFORE.into_iter().chain(columns.iter().map(String::as_str)).chain(AFTER), raw, &mut out);
    out
}

/// The line of an entry. `raw` leaves every cell as it is.
pub fn row(columns: &[String], entry: &Entry, raw: bool, out: &mut Vec<u8>) {
    let content = &entry.content;
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    let mut values = vec![
        entry.at.book.clone(),
        entry.at.id.to_string(),
        entry.date.to_acs(),
        entry.zone.to_string(),
        entry.by.clone(),
        entry.revision.to_string(),
        entry.changed.to_acs(),
        number(entry.parent),
        entry.thread.to_string(),
    ];
    values.extend(columns.iter().map(|name| content.attribute(name).map(|said| said.joined()).unwrap_or_default()));
    let is_column = |name: &str| columns.iter().any(|column| same_name(column, name));
    let joined = |items: Vec<String>| items.join("; ");
    let other = content.attributes.iter().filter(|said| !is_column(&said.name));
    values.push(joined(other.map(|said| format!("{}={}", said.name, said.joined())).collect()));
    values.push(content.encoding.name().to_owned());
    values.push(joined(content.attachments.iter().map(|attachment| attachment.name.clone()).collect()));
    values.push(joined(content.links.iter().map(ToString::to_string).collect()));
    values.push(content.text.clone());
    line(values.iter().map(String::as_str), raw, out);
}

fn line<'a>(values: impl Iterator<Item = &'a str>, raw: bool, out: &mut Vec<u8>) {
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let value = if raw { Cow::Borrowed(value) } else { harmless_cell(value) };
        if value.contains([',', '"', '\r', '\n']) || value.starts_with(' ') || value.ends_with(' ') {
            out.push(b'"');
            out.extend_from_slice(value.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_unless_raw_cells_are_asked_for() {
        let text = |raw| {
            let mut out = Vec::new();
            line(["=1+1", "-7", "@x", "plain"].into_iter(), raw, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(false), "'=1+1,-7,'@x,plain\r\n");
        assert_eq!(text(true), "=1+1,-7,@x,plain\r\n");
    }
}
