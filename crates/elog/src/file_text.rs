//! The text of an entry in ELOG's file format, for exports and for downloads by ELOG's programs.

use tampu_logbook::entry::{Encoding, Entry};

use crate::{date, entries::DELIMITER};

/// The beginning of an entry. It would also begin one in the middle of a text.
const MARK: &str = "$@MID@$:";

/// The loss of an entry in Markdown, which an export reports once for a book.
pub const MARKDOWN: &str = "ELOG does not know Markdown: written as plain";

/// The replacement for [`MARK`] inside a text.
const MARK_APART: &str = "$@MID @$:";

/// Returns a line of an entry's head in a form that ELOG reads as one line. It contains neither the mark of an entry
/// nor the end of a head.
fn head_line(name: &str, value: &str, notes: &mut Vec<String>) -> String {
    let mut line = format!("{name}: {value}");
    if line.contains('\n') {
        notes.push(format!("'{name}' has several lines, and ELOG has one: blanks join them"));
        line = line.replace('\n', " ");
    }
    if line.contains(MARK) {
        notes.push(format!("'{name}' has the mark of an entry, which ELOG would read as one: a blank was inserted"));
        line = line.replace(MARK, MARK_APART);
    }
    if line.bytes().rev().take_while(|byte| *byte == b'=').count() >= DELIMITER.len() {
        notes.push(format!("'{name}' ends with the line that ends an entry's head in ELOG: a blank was appended"));
        line.push(' ');
    }
    line.push('\n');
    line
}

/// Returns an entry in ELOG's file format, together with the losses. `answers` are the ids of its replies, by date;
/// `names` the stored names of its attachments.
pub fn file_text(entry: &Entry, answers: &[u32], names: &[String]) -> (String, Vec<String>) {
    let (content, mut lost) = (&entry.content, Vec::<String>::new());
    if !content.links.is_empty() {
        lost.push("its links have no place in ELOG's files".to_owned());
    }
    let encoding = match content.encoding {
        Encoding::Markdown => {
            lost.push(MARKDOWN.to_owned());
            Encoding::Plain
        }
        encoding => encoding,
    };
    let mut out = format!("{MARK} {}\nDate: {}\n", entry.at.id, date::write(entry.date, entry.zone));
    if !answers.is_empty() {
        out.push_str(&format!("Reply to: {}\n", answers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")));
    }
    if let Some(parent) = entry.parent {
        out.push_str(&format!("In reply to: {parent}\n"));
    }
    for attribute in &content.attributes {
        out.push_str(&head_line(&attribute.name, &attribute.joined(), &mut lost));
    }
    out.push_str(&head_line("Attachment", &names.join(","), &mut lost));
    out.push_str(&format!("Encoding: {}\n{}\n", encoding.name(), "=".repeat(DELIMITER.len())));
    if content.text.contains(MARK) {
        lost.push("its text has the mark of an entry, which ELOG would read as one: a blank was inserted".to_owned());
        out.push_str(&content.text.replace(MARK, MARK_APART));
    } else {
        out.push_str(&content.text);
    }
    out.push('\n');
    (out, lost)
}
