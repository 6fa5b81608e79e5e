//! The entries that the first pass found.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use tampu_types::Time;

/// The position of an entry in its file, and the facts that its thread needs. There is one for each entry of a book, so it is small.
pub struct Found {
    pub id: u32,
    /// The number in the file; 0 for an invalid one.
    pub source: u32,
    pub file: u32,
    /// The number of its bytes, which the reader bounds.
    pub length: u32,
    pub begin: u64,
    pub date: Time,
    pub parent: Option<u32>,
    pub zone: i16,
}

impl Found {
    pub fn file(&self) -> usize {
        self.file as usize
    }

    pub fn place(&self) -> Range<u64> {
        self.begin..self.begin + u64::from(self.length)
    }
}

/// Adds an item to a long list, with room for an eighth more at a time instead of twice as many.
pub fn push_to_long<T>(list: &mut Vec<T>, one: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 1024);
    }
    list.push(one);
}

/// An entry whose number another one has, or that has no valid one.
pub struct SecondEntry {
    /// Its position among the entries that were found.
    pub nth: usize,
    /// Its number in reports.
    pub told: String,
    /// Its digests, with its parent and without.
    pub digests: [[u8; 16]; 2],
}

/// Reads the bytes of an entry. The first look at the file has bounded their number.
pub fn bytes_at(file: &File, place: &Range<u64>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(place.end - place.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, place.start)?;
    Ok(bytes)
}
