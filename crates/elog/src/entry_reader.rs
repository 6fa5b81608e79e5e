//! Reads the entries of a day's file a piece at a time, so that a file of any length costs a bounded memory.
//!
//! [`crate::entries::split`] defines where an entry begins. Rejected: to map the file into memory, because elogd truncates files that it writes.

use std::{
    collections::VecDeque,
    io::{self, Read},
    ops::Range,
};

use memchr::memmem;

use crate::entries::{MARK, is_head};

/// Bytes of an entry in a file. A longer one has more text than an entry can have, and its rest is left out.
pub const MAX_FILE_ENTRY: usize = 24 << 20;
/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;
/// Bytes after the mark of an entry that decide whether it begins one.
const LOOK: usize = 64;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePart {
    /// An entry, and its place in the file.
    Entry(Range<u64>, Vec<u8>),
    /// A fault, and its place.
    Fault(u64, String),
}

/// The entries of a file, and the faults between them, in order.
pub struct EntryReader<R> {
    file: R,
    limit: usize,
    piece: usize,
    buffer: Vec<u8>,
    /// The place of the buffer in the file.
    base: u64,
    /// The first byte in the buffer that belongs to no part yet.
    at: usize,
    /// The first byte in the buffer where a mark was not looked for.
    scanned: usize,
    /// The last byte before the buffer.
    before: Option<u8>,
    open: OpenPart,
    /// Parts that were found together with another one.
    pending: VecDeque<FilePart>,
    /// True if the file has no more bytes than the buffer.
    is_over: bool,
    /// True if the last part was returned.
    is_done: bool,
}

/// The part that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenPart {
    /// Bytes before the first entry: how many were dropped, and whether one of them was no blank.
    Junk(bool),
    /// An entry whose bytes are in the buffer.
    Entry,
    /// The rest of an entry with too many bytes, which are dropped: its place and its number.
    Long(u64, String),
}

impl<R: Read> EntryReader<R> {
    /// Reads the entries of a file.
    pub fn new(file: R) -> EntryReader<R> {
        EntryReader::with_sizes(file, MAX_FILE_ENTRY, PIECE)
    }

    /// The same, with another limit of an entry's bytes, and so many bytes at a time.
    fn with_sizes(file: R, limit: usize, piece: usize) -> EntryReader<R> {
        let (open, buffer) = (OpenPart::Junk(false), Vec::new());
        let (base, at, scanned, before, pending) = (0, 0, 0, None, VecDeque::new());
        EntryReader { file, limit, piece, buffer, base, at, scanned, before, open, pending, is_over: false, is_done: false }
    }

    /// Returns the next part; `None` at the end of the file.
    pub fn read_part(&mut self) -> io::Result<Option<FilePart>> {
        loop {
            if let Some(part) = self.pending.pop_front() {
                return Ok(Some(part));
            }
            let found = memmem::find(&self.buffer[self.scanned..], MARK).map(|found| found + self.scanned);
            let Some(found) = found else {
                // The mark may begin with the last bytes.
                self.scanned = self.scanned.max(self.buffer.len().saturating_sub(MARK.len() - 1));
                if self.is_over {
                    let is_done = std::mem::replace(&mut self.is_done, true);
                    return Ok(if is_done { None } else { self.close(self.buffer.len()) });
                }
                self.fill()?;
                continue;
            };
            let after = found + MARK.len();
            if self.buffer.len() < after + LOOK && !self.is_over {
                self.scanned = found;
                self.fill()?;
                continue;
            }
            self.scanned = after;
            let previous = if found == 0 { self.before } else { Some(self.buffer[found - 1]) };
            let place = self.base + found as u64;
            if previous.is_some_and(|byte| byte != b'\n') {
                return Ok(Some(FilePart::Fault(place, "the mark of an entry inside a line: read as text".to_owned())));
            }
            if !is_head(&self.buffer[after..]) {
                let what = "the mark of an entry without a number and a date after it: read as text";
                return Ok(Some(FilePart::Fault(place, what.to_owned())));
            }
            let part = self.close(found);
            self.open = OpenPart::Entry;
            if part.is_some() {
                return Ok(part);
            }
        }
    }

    /// Ends the open part before a byte of the buffer.
    fn close(&mut self, end: usize) -> Option<FilePart> {
        let begin = std::mem::replace(&mut self.at, end);
        let (bytes, place) = (&self.buffer[begin..end], self.base + begin as u64);
        let too_long = |place: u64, number: &str| {
            let limit = self.limit >> 20;
            FilePart::Fault(place, format!("entry {number} has more than {limit} MiB in the file: the rest is left out"))
        };
        match &self.open {
            OpenPart::Junk(some) if *some || !bytes.trim_ascii().is_empty() => {
                let count = self.base + end as u64;
                Some(FilePart::Fault(0, format!("{count} bytes before the first entry: left out")))
            }
            OpenPart::Junk(_) => None,
            OpenPart::Entry if bytes.len() > self.limit => {
                self.pending.push_back(too_long(place, &number(bytes)));
                Some(entry(place, whole_characters(&bytes[..self.limit])))
            }
            OpenPart::Entry => Some(entry(place, bytes)),
            OpenPart::Long(place, number) => Some(too_long(*place, number)),
        }
    }

    /// Reads one more piece, after the bytes that are not needed any longer were dropped.
    fn fill(&mut self) -> io::Result<()> {
        // A byte before the mark tells whether it stands at the beginning of a line.
        let searched = self.scanned.max(self.at);
        match &mut self.open {
            OpenPart::Junk(some) => {
                *some |= !self.buffer[self.at..searched].trim_ascii().is_empty();
                self.at = searched;
            }
            OpenPart::Entry if searched - self.at > self.limit => {
                let begin = self.base + self.at as u64;
                let kept = whole_characters(&self.buffer[self.at..self.at + self.limit]);
                self.pending.push_back(entry(begin, kept));
                self.open = OpenPart::Long(begin, number(kept));
                self.at = searched;
            }
            OpenPart::Entry => {}
            OpenPart::Long(..) => self.at = searched,
        }
        if self.at > 0 {
            self.before = Some(self.buffer[self.at - 1]);
            self.base += self.at as u64;
            self.scanned -= self.at;
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.reserve_exact(self.piece);
        let read = (&mut self.file).take(self.piece as u64).read_to_end(&mut self.buffer)?;
        self.is_over = read == 0;
        Ok(())
    }
}

fn entry(place: u64, bytes: &[u8]) -> FilePart {
    FilePart::Entry(place..place + bytes.len() as u64, bytes.to_vec())
}

/// Returns bytes without a UTF-8 character that is cut at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let from = bytes.len().saturating_sub(4);
    let cut = bytes[from..].iter().rposition(|byte| *byte >= 0xc0).map(|at| from + at);
    match cut {
        Some(cut) if std::str::from_utf8(&bytes[cut..]).is_err_and(|error| error.error_len().is_none()) => &bytes[..cut],
        _ => bytes,
    }
}

/// The number in the first line of an entry.
fn number(entry: &[u8]) -> String {
    let line = entry[MARK.len().min(entry.len())..].split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line.get(..32).unwrap_or(line)).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entries::split;

    const HEAD: &str =
        "$@MID@$: 7\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nEncoding: plain\n========================================\n";

    type Entries = Vec<(Range<u64>, Vec<u8>)>;
    type Faults = Vec<(u64, String)>;

    fn all<R: Read>(mut reader: EntryReader<R>) -> (Entries, Faults) {
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        while let Some(part) = reader.read_part().unwrap() {
            match part {
                FilePart::Entry(place, bytes) => entries.push((place, bytes)),
                FilePart::Fault(at, what) => faults.push((at, what)),
            }
        }
        assert_eq!(reader.read_part().unwrap(), None);
        faults.sort();
        (entries, faults)
    }

    /// The parts of a file that is whole in memory.
    fn expected(file: &[u8]) -> (Entries, Faults) {
        let (ranges, faults) = split(file);
        let entries = ranges.into_iter().map(|range| (range.start as u64..range.end as u64, file[range].to_vec())).collect();
        let mut faults: Vec<(u64, String)> = faults.into_iter().map(|(at, what)| (at as u64, what)).collect();
        faults.sort();
        (entries, faults)
    }

    #[test]
    fn an_endless_line_costs_no_more_memory_than_an_entry_may_have() {
        const LIMIT: usize = 2 << 20;
        let long = io::Cursor::new(HEAD).chain(io::repeat(b'x').take(64 << 20));
        let junk = io::repeat(b'y').take(16 << 20).chain(io::Cursor::new("\n"));
        let next = format!("\n{}text\n", HEAD.replace(": 7", ": 8"));
        let mut reader = EntryReader::with_sizes(junk.chain(long).chain(io::Cursor::new(next)), LIMIT, PIECE);
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        while let Some(part) = reader.read_part().unwrap() {
            assert!(reader.buffer.capacity() <= LIMIT + 3 * PIECE, "{} bytes", reader.buffer.capacity());
            match part {
                FilePart::Entry(_, bytes) => entries.push(bytes),
                FilePart::Fault(at, what) => faults.push((at, what)),
            }
        }
        assert_eq!(entries.len(), 2);
        assert!(entries[0].len() == LIMIT && entries[0].starts_with(HEAD.as_bytes()) && entries[0].ends_with(b"xxx"));
        assert_eq!(entries[1], format!("{}text\n", HEAD.replace(": 7", ": 8")).into_bytes());
        let begin = (16 << 20) + 1;
        assert_eq!(
            faults,
            [
                (0, format!("{begin} bytes before the first entry: left out")),
                (begin, "entry 7 has more than 2 MiB in the file: the rest is left out".to_owned()),
            ]
        );
    }

    #[test]
    fn the_rest_of_an_entry_just_over_the_limit_is_left_out_too() {
        let file = format!("{HEAD}{}\n{HEAD}short\n", "ä".repeat(1 << 19));
        let (entries, faults) = all(EntryReader::with_sizes(file.as_bytes(), (1 << 20) - 1, PIECE));
        assert_eq!((entries.len(), faults.len()), (2, 1), "{faults:?}");
        let kept = String::from_utf8(entries[0].1.clone()).unwrap();
        assert!(kept.len() + 2 > (1 << 20) - 1 && kept.ends_with("ää"));
        assert!(all(EntryReader::new(&b""[..])).0.is_empty());
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_file_gives(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            parts in proptest::collection::vec(0..7usize, 0..12),
            piece in 1..90usize,
        ) {
            let mut file = Vec::new();
            for part in parts {
                match part {
                    0 => file.extend_from_slice(HEAD.as_bytes()),
                    1 => file.extend_from_slice(MARK),
                    2 => file.extend_from_slice(&HEAD.as_bytes()[..20]),
                    3 => file.push(b'\n'),
                    4 => file.extend_from_slice(b"  \n"),
                    5 => file.extend_from_slice(&bytes),
                    _ => file.extend_from_slice(b"text\n"),
                }
            }
            prop_assert_eq!(all(EntryReader::with_sizes(&file[..], MAX_FILE_ENTRY, piece)), expected(&file));
        }
    }
}
