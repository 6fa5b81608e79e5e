//! A day's file of entries.
//!
//! ```text
//! $@MID@$: 12
//! Date: Wed, 10 Sep 2008 00:20:50 +0200
//! Reply to: 13, 27                        the answers to it
//! In reply to: 11                         what it answers
//! Author: Zoe                             attributes, in the configuration's order
//! Attachment: 080910_002050_plot.png
//! Encoding: plain
//! ========================================
//! text
//! ```
//! Nothing is escaped, so a text can hold the line an entry begins with. Here an entry begins only where that line stands alone, with a
//! number, and a date follows; anything else is text, and is told.

use std::ops::Range;

use memchr::memmem;

use super::decode;
use crate::book::{MAX_VALUE, same_name};

/// What begins an entry.
pub const MARK: &[u8] = b"$@MID@$:";
/// The highest number an entry can have: ELOG's are of a C `int`. A book that took a higher one would soon have none left to give.
pub const MAX_ID: u32 = i32::MAX as u32;
/// What ends its head.
pub const DELIMITER: [u8; 40] = [b'='; 40];

/// An entry as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileEntry {
    /// Its number.
    pub id: u32,
    /// The date as it stands there.
    pub date: String,
    /// The answers to it.
    pub replies: Vec<u32>,
    /// What it answers.
    pub parent: Option<u32>,
    /// Everything else of its head, in order.
    pub attributes: Vec<(String, String)>,
    /// Files, by the names they are stored under.
    pub attachments: Vec<String>,
    /// How its text is written.
    pub encoding: String,
    /// Who was editing it.
    pub locked_by: Option<String>,
    /// Whose draft it is.
    pub draft: Option<String>,
    /// Its text.
    pub text: String,
    /// What is not as it should be.
    pub faults: Vec<String>,
}

/// Where the entries of a file are, and what else is there, with its place.
pub fn split(file: &[u8]) -> (Vec<Range<usize>>, Vec<(usize, String)>) {
    let (mut begins, mut faults) = (Vec::new(), Vec::new());
    for at in memmem::find_iter(file, MARK) {
        if at > 0 && file[at - 1] != b'\n' {
            faults.push((at, "the mark of an entry inside a line: taken as text".to_owned()));
        } else if is_head(&file[at + MARK.len()..]) {
            begins.push(at);
        } else {
            faults.push((at, "the mark of an entry without a number and a date after it: taken as text".to_owned()));
        }
    }
    let junk = begins.first().copied().unwrap_or(file.len());
    if !file[..junk].trim_ascii().is_empty() {
        faults.insert(0, (0, format!("{junk} bytes before the first entry: left out")));
    }
    let ends = begins.iter().skip(1).copied().chain([file.len()]);
    (begins.iter().copied().zip(ends).map(|(begin, end)| begin..end).collect(), faults)
}

/// Whether a number, the line's end and a date follow.
fn is_head(after: &[u8]) -> bool {
    let Some(end) = after.iter().take(32).position(|&byte| byte == b'\n') else { return false };
    let number = after[..end].trim_ascii();
    !number.is_empty() && number.iter().all(u8::is_ascii_digit) && after[end + 1..].starts_with(b"Date: ")
}

/// Where the head ends and the text begins: after the first 40 `=` with a line end behind them.
fn delimiter(entry: &[u8]) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(at) = memmem::find(&entry[from..], &DELIMITER).map(|at| at + from) {
        let end = at + DELIMITER.len();
        if matches!(entry.get(end), Some(b'\r' | b'\n')) {
            let text = if entry[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
            return Some(at..text);
        }
        from = end;
    }
    None
}

/// The bytes by which an entry is known again: all but the lines ELOG itself changes in it, when it is answered and while it is edited.
pub fn lasting(entry: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = delimiter(entry).map_or(entry.len(), |ends| ends.start);
    let (head, rest) = entry.split_at(head);
    let passing = |line: &&[u8]| line.starts_with(b"Reply to:") || line.starts_with(b"Locked by:");
    head.split_inclusive(|&byte| byte == b'\n').filter(move |line| !passing(line)).chain([rest])
}

/// Reads one entry. `known` are the attributes' names where they are known, so that a name with a colon in it is read whole.
/// `None` where its number is none, or not from 1 to [`MAX_ID`].
pub fn parse(bytes: &[u8], known: &[String]) -> Option<FileEntry> {
    let mut entry = FileEntry::default();
    let ends = delimiter(bytes);
    let (head, text) = match &ends {
        Some(ends) => (&bytes[..ends.start], &bytes[ends.end..]),
        None => {
            entry.faults.push("no line of 40 '=': all of it taken as head, without a text".to_owned());
            (bytes, &b""[..])
        }
    };
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    entry.text = decode(text.strip_suffix(b"\r").unwrap_or(text));
    let head = decode(head);
    let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let first = lines.next()?.as_bytes().strip_prefix(MARK)?.trim_ascii();
    entry.id = std::str::from_utf8(first).ok()?.parse().ok().filter(|id| (1..=MAX_ID).contains(id))?;
    let mut seen: Vec<String> = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let whole = known.iter().find(|name| line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(':')));
        let split = match whole {
            Some(name) => Some((name.as_str(), &line[name.len() + 1..])),
            None => line.split_once(':'),
        };
        let Some((name, value)) = split else {
            entry.faults.push(format!("a line of the head without ':': '{}' left out", cut(line)));
            continue;
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        if seen.iter().any(|seen| same_name(seen, name)) {
            entry.faults.push(format!("'{}' a second time: left out", cut(name)));
            continue;
        }
        seen.push(name.to_owned());
        entry.line(name, value);
    }
    Some(entry)
}

impl FileEntry {
    fn line(&mut self, name: &str, value: &str) {
        let numbers = |value: &str| value.split(',').filter_map(|id| id.trim().parse().ok()).collect::<Vec<u32>>();
        let some = |value: &str| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        match name {
            "Date" => self.date = value.trim().to_owned(),
            "Reply to" => self.replies = numbers(value),
            "In reply to" => self.parent = numbers(value).first().copied(),
            "Attachment" => {
                self.attachments = value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
            }
            "Encoding" => self.encoding = value.trim().to_owned(),
            "Locked by" => self.locked_by = some(value),
            "Draft" => self.draft = some(value),
            name => {
                let mut value = value.replace('\0', "");
                if value.len() > MAX_VALUE {
                    let end = (0..=MAX_VALUE).rev().find(|&end| value.is_char_boundary(end)).unwrap_or(0);
                    value.truncate(end);
                    self.faults.push(format!("the value of '{}' has more than {MAX_VALUE} bytes: cut", cut(name)));
                }
                self.attributes.push((name.to_owned(), value));
            }
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENTRY: &str = "$@MID@$: 12\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nReply to: 13, 27\nIn reply to: 11\nAuthor: Zoe: x\n\
        Empty: \nAttachment: a,b\nEncoding: plain\n========================================\ntext\n\n";

    fn all(file: &[u8]) -> (Vec<FileEntry>, usize) {
        let (ranges, faults) = split(file);
        (ranges.into_iter().filter_map(|range| parse(&file[range], &[])).collect(), faults.len())
    }

    #[test]
    fn an_entry_is_read_whole() {
        let (entries, faults) = all(ENTRY.as_bytes());
        let entry = &entries[0];
        assert_eq!((entry.id, entry.parent, entry.replies.as_slice(), faults), (12, Some(11), &[13, 27][..], 0));
        assert_eq!(
            (entry.text.as_str(), entry.encoding.as_str(), entry.attachments.as_slice()),
            ("text\n", "plain", &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(entry.attributes, [("Author".to_owned(), "Zoe: x".to_owned()), ("Empty".to_owned(), String::new())]);
        // The same with the line ends of Windows.
        let (windows, _) = all(ENTRY.replace('\n', "\r\n").as_bytes());
        assert_eq!((windows[0].id, windows[0].text.as_str(), &windows[0].attributes), (12, "text\r\n", &entry.attributes));
    }

    #[test]
    fn what_is_malformed_is_told_and_costs_only_itself() {
        let forged = format!("{ENTRY}$@MID@$: 99\nAuthor: forged\nand $@MID@$: 5 inside\n{ENTRY}");
        let (entries, faults) = all(forged.as_bytes());
        assert_eq!((entries.len(), faults), (2, 2));
        assert_eq!(entries[0].text, "text\n\n$@MID@$: 99\nAuthor: forged\nand $@MID@$: 5 inside");
        assert_eq!(all(format!("junk\n{ENTRY}").as_bytes()).1, 1);
        // A longer line of '=' is passed over in steps of 40.
        let long = ENTRY.replace(&"=".repeat(40), &format!("{}\n{}", "=".repeat(45), "=".repeat(40)));
        assert_eq!(all(long.as_bytes()).0[0].text, "text\n");
        for (from, to) in [
            ("========================================\n", ""),
            ("Author: Zoe: x", "no colon here"),
            ("Empty: ", "Author: again"),
        ] {
            let (entries, _) = all(ENTRY.replace(from, to).as_bytes());
            assert_eq!(
                (entries[0].id, entries[0].faults.len()),
                (12, if to.is_empty() { 2 } else { 1 }),
                "{:?}",
                entries[0].faults
            );
        }
        assert_eq!(all(ENTRY.replace("$: 12", "$: 0").as_bytes()).0.len(), 0);
        for (id, read) in [("2147483647", 1), ("2147483648", 0), ("4294967294", 0), ("99999999999", 0)] {
            assert_eq!(all(ENTRY.replace("$: 12", &format!("$: {id}")).as_bytes()).0.len(), read, "{id}");
        }
        let colon = parse(ENTRY.as_bytes(), &["Author: Zoe".to_owned()]).unwrap();
        assert_eq!(colon.attributes[0], ("Author: Zoe".to_owned(), "x".to_owned()));
    }

    #[test]
    fn an_answer_and_an_editor_leave_an_entry_what_it_was() {
        let known = |entry: &str| lasting(entry.as_bytes()).collect::<Vec<_>>().concat();
        let before = ENTRY.replace("Reply to: 13, 27\n", "");
        let edited = before.replace("Encoding", "Locked by: Max on pc7\nEncoding");
        assert_eq!(known(&before), before.as_bytes());
        assert!(known(ENTRY) == known(&before) && known(&edited) == known(&before));
        assert_ne!(known(&ENTRY.replace("text", "Reply to: 13")), known(ENTRY));
        assert_ne!(known(&ENTRY.replace("\ntext", "\nReply to: 13\ntext")), known(ENTRY));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..200usize, cut in 0..240usize) {
            let mut file = ENTRY.as_bytes().to_vec();
            file.splice(at.min(file.len())..at.min(file.len()), bytes);
            file.truncate(file.len() - cut.min(file.len()));
            file.extend_from_slice(ENTRY.as_bytes());
            let (entries, _) = all(&file);
            prop_assert!(entries.iter().map(|entry| entry.text.len()).sum::<usize>() <= 3 * file.len());
        }
    }
}
