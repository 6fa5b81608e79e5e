//! A day's file of entries.
//!
//! ```text
//! $@MID@$: 12
//! Date: Wed, 10 Sep 2008 00:20:50 +0200
//! Reply to: 13, 27                        the replies to it
//! In reply to: 11                         the answered entry
//! Author: Zoe                             attributes, in the configuration's order
//! Attachment: 080910_002050_plot.png
//! Encoding: plain
//! ========================================
//! text
//! ```
//! Nothing is escaped, so a text can hold the line that begins an entry. Here an entry begins only at a line that holds
//! the mark and a number alone, if a date follows. Everything else is text, and is reported.

use std::ops::Range;

use memchr::memmem;
use tampu_logbook::{
    book::{MAX_VALUE, same_name},
    entry::{MAX_ID, MAX_TEXT},
};

use crate::decode;

/// The beginning of an entry.
pub const MARK: &[u8] = b"$@MID@$:";
/// The end of an entry's head.
pub const DELIMITER: [u8; 40] = [b'='; 40];

/// The attribute that keeps the lines of a head without a name.
const NAMELESS: &str = "Lines without a name";

/// An entry of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileEntry {
    /// The number; 0 if it is invalid, or not from 1 to [`MAX_ID`].
    pub id: u32,
    /// The text of an invalid number.
    pub number: String,
    /// The text of the date.
    pub date: String,
    /// The replies to it.
    pub replies: Vec<u32>,
    /// The parent, if the entry is a reply.
    pub parent: Option<u32>,
    /// The other lines of its head, in order.
    pub attributes: Vec<(String, String)>,
    /// Files, by their stored names.
    pub attachments: Vec<String>,
    /// The encoding of its text, as ELOG names it.
    pub encoding: String,
    /// The user who was editing it.
    pub locked_by: Option<String>,
    /// The owner, if it is a draft.
    pub draft: Option<String>,
    pub text: String,
    /// False if some of its bytes are not UTF-8.
    pub is_utf8: bool,
    /// The faults that were found.
    pub faults: Vec<String>,
}

/// Returns the byte ranges of a file's entries, and the faults between them with their positions.
pub fn split(file: &[u8]) -> (Vec<Range<usize>>, Vec<(usize, String)>) {
    let (mut begins, mut faults) = (Vec::new(), Vec::new());
    for at in memmem::find_iter(file, MARK) {
        if at > 0 && file[at - 1] != b'\n' {
            faults.push((at, "the mark of an entry inside a line: read as text".to_owned()));
        } else if is_head(&file[at + MARK.len()..]) {
            begins.push(at);
        } else {
            faults.push((at, "the mark of an entry without a number and a date after it: read as text".to_owned()));
        }
    }
    let junk = begins.first().copied().unwrap_or(file.len());
    if !file[..junk].trim_ascii().is_empty() {
        faults.insert(0, (0, format!("{junk} bytes before the first entry: left out")));
    }
    let ends = begins.iter().skip(1).copied().chain([file.len()]);
    (begins.iter().copied().zip(ends).map(|(begin, end)| begin..end).collect(), faults)
}

/// Returns true if a number, a line end and a date follow. The number can be a bad one, because elogd takes any word here.
pub fn is_head(after: &[u8]) -> bool {
    let Some(end) = after.iter().take(32).position(|&byte| byte == b'\n') else { return false };
    let number = after[..end].trim_ascii();
    number.iter().all(u8::is_ascii_graphic) && after[end + 1..].starts_with(b"Date: ")
}

/// Returns the line between head and text: the first 40 `=` that are followed by a line end.
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

/// Returns the bytes that identify an entry: all lines except those that ELOG changes for a reply or an edit.
pub fn lasting(entry: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = delimiter(entry).map_or(entry.len(), |ends| ends.start);
    let (head, rest) = entry.split_at(head);
    let passing = |line: &&[u8]| line.starts_with(b"Reply to:") || line.starts_with(b"Locked by:");
    head.split_inclusive(|&byte| byte == b'\n').filter(move |line| !passing(line)).chain([rest])
}

/// Parses one entry. `known` are the names of the attributes, if they are known, so that a name with a colon is read as
/// a whole. Returns `None` if the bytes do not begin with the mark of an entry.
pub fn parse(bytes: &[u8], known: &[String]) -> Option<FileEntry> {
    let mut entry = FileEntry::default();
    let ends = delimiter(bytes);
    let (head, text) = match &ends {
        Some(ends) => (&bytes[..ends.start], &bytes[ends.end..]),
        None => {
            entry.faults.push("no line of 40 '=': read as a head without a text".to_owned());
            (bytes, &b""[..])
        }
    };
    entry.is_utf8 = std::str::from_utf8(bytes).is_ok();
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    entry.text = decode(text.strip_suffix(b"\r").unwrap_or(text));
    if entry.text.len() > MAX_TEXT {
        let fault = format!("its text has {} bytes; an entry has at most {MAX_TEXT}: the rest is left out", entry.text.len());
        entry.faults.push(fault);
        entry.text.truncate(entry.text.floor_char_boundary(MAX_TEXT));
    }
    let head = decode(head);
    let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let first = lines.next()?.as_bytes().strip_prefix(MARK)?.trim_ascii();
    let number = String::from_utf8_lossy(first);
    entry.id = number.parse().ok().filter(|id| (1..=MAX_ID).contains(id)).unwrap_or_default();
    if entry.id == 0 {
        entry.number = cut(&number);
    }
    let mut nameless: Vec<&str> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let whole = known.iter().find(|name| line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(':')));
        let split = match whole {
            Some(name) => Some((name.as_str(), &line[name.len() + 1..])),
            None => line.split_once(':'),
        };
        let Some((name, value)) = split else {
            entry.faults.push(format!("a line of the head without ':': '{}' kept as '{NAMELESS}'", cut(line)));
            nameless.push(line.trim());
            continue;
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        if seen.iter().any(|seen| same_name(seen, name)) {
            let free = (2..).map(|nth| format!("{name} {nth}"));
            let other = free.into_iter().find(|other| !seen.iter().any(|seen| same_name(seen, other))).unwrap_or_default();
            entry.faults.push(format!("'{}' a second time: kept as '{}'", cut(name), cut(&other)));
            entry.line(&other, value);
            seen.push(other);
            continue;
        }
        seen.push(name.to_owned());
        entry.line(name, value);
    }
    if !nameless.is_empty() {
        entry.line(NAMELESS, &nameless.join(" / "));
    }
    Some(entry)
}

impl FileEntry {
    fn line(&mut self, name: &str, value: &str) {
        let given = value.len();
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
                if value.len() < given {
                    self.faults.push(format!("the value of '{}' has zero bytes: left out", cut(name)));
                }
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
        // The same with line ends of Windows.
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
        // In a longer line of '=' the search advances in steps of 40.
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
        let nameless = all(ENTRY.replace("Author: Zoe: x", "no colon here").as_bytes()).0.remove(0);
        assert_eq!(nameless.attributes[1], (NAMELESS.to_owned(), "no colon here".to_owned()));
        let twice = all(ENTRY.replace("Empty: ", "Author: again").as_bytes()).0.remove(0);
        assert_eq!(twice.attributes[1], ("Author 2".to_owned(), "again".to_owned()));
        let bad = ["0", "2147483648", "4294967294", "99999999999", "-7", "12x", ""];
        for id in bad {
            let entry = all(ENTRY.replace("$: 12", &format!("$: {id}")).as_bytes()).0.remove(0);
            assert_eq!((entry.id, entry.number.as_str(), entry.text.as_str()), (0, id, "text\n"));
        }
        assert_eq!(all(ENTRY.replace("$: 12", "$: 2147483647").as_bytes()).0[0].id, MAX_ID);
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
