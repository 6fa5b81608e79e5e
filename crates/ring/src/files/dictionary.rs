//! The file `dictionary`: the meaning of the numbers in records. Append-only.
//!
//! ```text
//!  0  u8[8] 'TAMPULDC'   u32 mark 0x01020304   u16 version 1   u16 0
//! 16  u8[16] incarnation
//! 32  entries, one after the other:
//!      0  u32 CRC-32C of everything from byte 4 to the end of the bytes
//!      4  u32 id          from 1, one more each
//!      8  u32 kind        1 call site, 2 logger, 3 records made by hand; others are a later release's
//!     12  u32 length
//!     16  bytes, then zeros up to a multiple of 8
//! ```
//! An entry is written with one write, and its number is returned only after that. So no record refers to a missing
//! entry. The meaning of an entry's bytes belongs to the writers and readers of records.
//!
//! An unfinished entry at the end comes from a process that died while writing it; no record refers to it.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{Arc, Mutex, PoisonError},
};

use tampu_types::Incarnation;

use crate::{
    files::{
        directory::read_at,
        ring_file::{MARK, VERSION},
    },
    record::padded,
};

const MAGIC: [u8; 8] = *b"TAMPULDC";
const HEADER: usize = 32;
const ENTRY_HEADER: usize = 16;
/// The longest entry.
pub const LONGEST_ENTRY: usize = 1 << 20;
/// The longest dictionary that is read, in bytes.
pub(crate) const LONGEST: u64 = 256 << 20;

/// Subject of a dictionary entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A call site.
    Site,
    /// A logger: the identity under which records are logged.
    Voice,
    /// Records that no call site made: their payload is all there is of them.
    Made,
    /// Something a later release knows.
    Other(u32),
}

impl Kind {
    fn number(self) -> u32 {
        match self {
            Kind::Site => 1,
            Kind::Voice => 2,
            Kind::Made => 3,
            Kind::Other(number) => number,
        }
    }

    fn from_number(number: u32) -> Kind {
        match number {
            1 => Kind::Site,
            2 => Kind::Voice,
            3 => Kind::Made,
            other => Kind::Other(other),
        }
    }
}

/// One entry of the dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Subject of the entry.
    pub kind: Kind,
    /// Bytes of the entry.
    pub bytes: Vec<u8>,
}

/// The entries of one incarnation, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    entries: Vec<Definition>,
}

/// Error of bytes that are not a dictionary, or of one that ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDictionary {
    /// Something else, another host's or a later release's.
    #[error("byte 0: it does not begin as a dictionary of this release does")]
    Header,
    /// The bytes from here on cannot be read; the entries before them can. Place and length of the file, in bytes.
    #[error("byte {0}: a damaged entry; {1} bytes from there on are not used")]
    Entry(u64, u64),
}

impl Definitions {
    /// The entry of this number.
    pub fn get(&self, id: u32) -> Option<&Definition> {
        self.entries.get((id as usize).checked_sub(1)?)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Definition)> {
        (1..).zip(&self.entries)
    }

    /// Reads a complete dictionary. An unfinished entry ends it, and is returned beside the entries before it.
    pub fn parse(bytes: &[u8]) -> Result<(Definitions, Option<BadDictionary>), BadDictionary> {
        let entries = bytes.get(HEADER..).filter(|_| is_header(bytes)).ok_or(BadDictionary::Header)?;
        let mut definitions = Definitions::default();
        let read = definitions.extend(entries);
        let left = entries.len() - read;
        Ok((definitions, (left > 0).then_some(BadDictionary::Entry((HEADER + read) as u64, left as u64))))
    }

    /// Reads further entries and returns the number of their bytes.
    fn extend(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some((definition, length)) = decode(&bytes[at..], self.entries.len() as u32 + 1) {
            self.entries.push(definition);
            at += length;
        }
        at
    }
}

fn header(incarnation: Incarnation) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&MARK.to_ne_bytes());
    bytes[12..14].copy_from_slice(&VERSION.to_ne_bytes());
    bytes[16..].copy_from_slice(&incarnation.to_bytes());
    bytes
}

fn is_header(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER && bytes[..16] == header(Incarnation::default())[..16]
}

fn encode(id: u32, kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut entry = vec![0; 4];
    for number in [id, kind.number(), bytes.len() as u32] {
        entry.extend_from_slice(&number.to_ne_bytes());
    }
    entry.extend_from_slice(bytes);
    let checksum = crc32c::crc32c(&entry[4..]);
    entry[..4].copy_from_slice(&checksum.to_ne_bytes());
    entry.resize(padded(entry.len()), 0);
    entry
}

fn decode(bytes: &[u8], expected: u32) -> Option<(Definition, usize)> {
    let head: &[u8; ENTRY_HEADER] = bytes.first_chunk()?;
    let half = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = half(12) as usize;
    let end = ENTRY_HEADER + length;
    let sound = half(4) == expected && length <= LONGEST_ENTRY && padded(end) <= bytes.len();
    if !sound || crc32c::crc32c(&bytes[4..end]) != half(0) {
        return None;
    }
    Some((Definition { kind: Kind::from_number(half(8)), bytes: bytes[ENTRY_HEADER..end].to_vec() }, padded(end)))
}

/// Reason for which an entry was not stored.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// More than an entry may have.
    #[error("an entry of {0} bytes; {LONGEST_ENTRY} are possible")]
    Long(usize),
    /// The dictionary is as long as one may be.
    #[error("the dictionary is full")]
    Full,
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The writer's side: the file and where it ends.
#[derive(Debug)]
pub(crate) struct Dictionary {
    file: Arc<File>,
    end: Mutex<End>,
}

#[derive(Debug)]
struct End {
    offset: u64,
    next: u32,
}

impl Dictionary {
    /// Begins a dictionary with these entries, which keep their numbers.
    pub fn begin(file: File, incarnation: Incarnation, entries: &Definitions) -> io::Result<Dictionary> {
        let mut bytes = header(incarnation).to_vec();
        for (id, definition) in entries.iter() {
            bytes.extend(encode(id, definition.kind, &definition.bytes));
        }
        file.write_all_at(&bytes, 0)?;
        let end = End { offset: bytes.len() as u64, next: entries.len() as u32 + 1 };
        Ok(Dictionary { file: Arc::new(file), end: Mutex::new(end) })
    }

    /// Writes an entry and returns its number. The next entry overwrites a failed one.
    pub fn define(&self, kind: Kind, bytes: &[u8]) -> Result<u32, DefineError> {
        if bytes.len() > LONGEST_ENTRY {
            return Err(DefineError::Long(bytes.len()));
        }
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = encode(end.next, kind, bytes);
        if end.offset + entry.len() as u64 > LONGEST {
            return Err(DefineError::Full);
        }
        self.file.write_all_at(&entry, end.offset)?;
        end.offset += entry.len() as u64;
        end.next += 1;
        Ok(end.next - 1)
    }

    /// Reads all entries, also in a child whose parent held the lock at the fork: the file needs no lock.
    pub fn read(&self) -> io::Result<Definitions> {
        let mut reader = Reader::new(self.file.clone());
        reader.refresh()?;
        Ok(reader.definitions)
    }

    pub fn reader(&self) -> Reader {
        Reader::new(self.file.clone())
    }
}

/// A reader's side: follows a dictionary that may still grow.
#[derive(Debug)]
pub struct Reader {
    file: Arc<File>,
    read: u64,
    definitions: Definitions,
}

impl Reader {
    pub(crate) fn new(file: Arc<File>) -> Reader {
        Reader { file, read: 0, definitions: Definitions::default() }
    }

    /// Reads the entries added since the last read.
    pub fn refresh(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len().min(LONGEST);
        if self.read == 0 {
            let bytes = read_at(&self.file, 0, HEADER)?;
            if !is_header(&bytes) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, BadDictionary::Header));
            }
            self.read = HEADER as u64;
        }
        if length > self.read {
            let bytes = read_at(&self.file, self.read, (length - self.read) as usize)?;
            self.read += self.definitions.extend(&bytes) as u64;
        }
        Ok(())
    }

    /// Returns the entry of this number; reads the file again if the number is new. `None` for an unknown number.
    pub fn get(&mut self, id: u32) -> Option<&Definition> {
        if self.definitions.get(id).is_none() && self.refresh().is_err() {
            return None;
        }
        self.definitions.get(id)
    }

    /// The entries read so far.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn entries_are_read_back_and_a_cut_one_ends_them(
            entries in proptest::collection::vec((1u32..4, proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
            cut in 0usize..60,
        ) {
            let file = tempfile::tempfile().unwrap();
            let dictionary = Dictionary::begin(file, Incarnation::default(), &Definitions::default()).unwrap();
            let mut reader = dictionary.reader();
            for (index, (kind, bytes)) in entries.iter().enumerate() {
                let id = dictionary.define(Kind::from_number(*kind), bytes).unwrap();
                prop_assert_eq!(id as usize, index + 1);
                let expected = Definition { kind: Kind::from_number(*kind), bytes: bytes.clone() };
                prop_assert_eq!(reader.get(id), Some(&expected));
            }
            prop_assert_eq!(reader.get(99), None);
            let bytes = read_at(&dictionary.file, 0, 100_000).unwrap();
            prop_assert_eq!(Definitions::parse(&bytes), Ok((reader.definitions().clone(), None)));
            let cut = &bytes[..bytes.len().saturating_sub(cut).max(HEADER)];
            let (kept, _) = Definitions::parse(cut).unwrap();
            prop_assert!(kept.iter().all(|(id, definition)| reader.definitions().get(id) == Some(definition)));
        }
    }

    #[test]
    fn a_child_goes_on_with_the_numbers_it_knows() {
        let parent = Dictionary::begin(tempfile::tempfile().unwrap(), Incarnation::default(), &Definitions::default()).unwrap();
        let id = parent.define(Kind::Site, b"Mount.cpp:52").unwrap();
        let child = Dictionary::begin(tempfile::tempfile().unwrap(), Incarnation::default(), &parent.read().unwrap()).unwrap();
        assert_eq!(child.define(Kind::Voice, b"mount").unwrap(), id + 1);
        assert_eq!(child.reader().get(id).unwrap().bytes, b"Mount.cpp:52");
    }
}
