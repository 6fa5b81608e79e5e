//! An entry as it stands in ELOG's files: what an export writes there, and what ELOG's programs download.

use tampu_types::Time;

use super::{date, entries::DELIMITER};
use crate::{
    attachment::Attachment,
    entry::{Encoding, Entry},
};

/// What begins an entry, and would begin one in the middle of a text.
const MARK: &str = "$@MID@$:";

/// What is written in its place.
const MARK_APART: &str = "$@MID @$:";

/// A line of an entry's head, so that ELOG reads it as one: without the mark of an entry, and not ending as a head does.
fn head_line(name: &str, value: &str, notes: &mut Vec<String>) -> String {
    let mut line = format!("{name}: {value}");
    if line.contains(MARK) {
        notes.push(format!("'{name}' has the mark of an entry, which ELOG would take for one: a blank put into it"));
        line = line.replace(MARK, MARK_APART);
    }
    if line.bytes().rev().take_while(|byte| *byte == b'=').count() >= DELIMITER.len() {
        notes.push(format!("'{name}' ends with what ends an entry's head in ELOG: a blank put behind it"));
        line.push(' ');
    }
    line.push('\n');
    line
}

/// An entry, and what of it has no place in ELOG's files. `answers` are the ids of the answers to it, by date, `names` what its attachments are called there.
pub fn written(entry: &Entry, answers: &[u32], names: &[String]) -> (String, Vec<String>) {
    let (content, mut lost) = (&entry.content, Vec::<String>::new());
    if !content.links.is_empty() {
        lost.push("its links have no place in ELOG's files".to_owned());
    }
    let encoding = match content.encoding {
        Encoding::Markdown => {
            lost.push("ELOG does not know Markdown: written as plain".to_owned());
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
        lost.push("its text has the mark of an entry, which ELOG would take for one: a blank put into it".to_owned());
        out.push_str(&content.text.replace(MARK, MARK_APART));
    } else {
        out.push_str(&content.text);
    }
    out.push('\n');
    (out, lost)
}

/// What an attachment is called in ELOG's files: as ELOG called it, or as it would: `080910_002050_a_plot.png`, with the time it was added.
pub fn stored_name(attachment: &Attachment) -> String {
    attachment.elog.clone().filter(|name| is_stamped(name)).unwrap_or_else(|| {
        let added = if attachment.added.0 > 0 { attachment.added } else { Time(0) };
        stamped(&attachment.name, added, 0)
    })
}

/// The name ELOG gives a file that is added at a time, in a zone, minutes east.
pub fn stamped(name: &str, added: Time, zone: i16) -> String {
    let plain: String = name.chars().map(|c| if matches!(c, ' ' | ',' | ';' | '+' | '=' | ':') { '_' } else { c }).collect();
    format!("{}_{plain}", date::stamp(added, zone).1)
}

/// Another name for a second file of one name: `_1` stands before the first point.
pub fn another(name: &str) -> String {
    let (stem, rest) = name.split_at(name.find('.').unwrap_or(name.len()));
    format!("{stem}_1{rest}")
}

/// Whether a name has ELOG's time before it.
pub fn is_stamped(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() > 14
        && bytes[..14].iter().enumerate().all(|(at, byte)| if at % 7 == 6 { *byte == b'_' } else { byte.is_ascii_digit() })
        && !name.contains(['/', '\\', ',', ':'])
        && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_called_as_elog_would() {
        let of = |name: &str, elog: Option<&str>| Attachment {
            name: name.to_owned(),
            sha: None,
            size: 0,
            added: Time(1_221_000_000_000_000_000),
            elog: elog.map(str::to_owned),
        };
        assert_eq!(stored_name(&of("a plot;1.png", None)), "080909_224000_a_plot_1.png");
        assert_eq!(stored_name(&of("x", Some("080910_002050_a.png"))), "080910_002050_a.png");
        assert_eq!(stored_name(&of("x", Some("../../080910"))), "080909_224000_x");
        assert_eq!((another("a.tar.gz"), another("a")), ("a_1.tar.gz".to_owned(), "a_1".to_owned()));
        assert!(!is_stamped("080910_002050x.png") && !is_stamped("080910_002050_"));
    }
}
