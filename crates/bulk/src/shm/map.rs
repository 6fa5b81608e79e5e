//! Layout of the shared memory.
//!
//! ```text
//! 0        8         16        24      40        64     128            192                4096     8192                      data_at
//! +--------+---------+---------+-------+---------+------+--------------+------------------+--------+-------------------------+------
//! | magic  | data    | entries | token | zeros   | head | zeros        |                  | slots  | entries, 64 B each      | data
//! | u64    | u64     | u64     | u8[16]|         | u64  |              |                  | 64 x 64|                         |
//! +--------+---------+---------+-------+---------+------+--------------+------------------+--------+-------------------------+------
//! ```
//! The file has no name and its size is sealed. No process can shorten it under a mapping, so a mapping never faults.
//! The sender writes everything except a slot's `done`, `wake_at` and `asleep`, which its reader writes. The reader
//! maps the same pages and is trusted with no more than these words. The sender checks their values against the
//! possible range.

use std::{
    fs::File,
    io,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use tampu_shm::{Mapping, create_sealed, is_shrink_sealed, shared_words};

use crate::frame::HEADER_LEN;

const MAGIC: u64 = u64::from_le_bytes(*b"tampublk");
/// Most readers of one flow.
pub(crate) const SLOTS: u32 = 64;
/// Number of announced frames at a time.
pub(crate) const ENTRIES: u64 = 8192;
const SLOTS_AT: usize = 4096;
const ENTRIES_AT: usize = SLOTS_AT + 64 * SLOTS as usize;
const DATA_AT: usize = ENTRIES_AT + 64 * ENTRIES as usize;

shared_words! {
    /// Words at the start of the memory.
    struct Front {
        magic: AtomicU64,
        data: AtomicU64,
        entries: AtomicU64,
        token: [AtomicU64; 2],
        zeros: [AtomicU64; 3],
        /// The frame after the last announced one.
        head: AtomicU64,
    }
}

shared_words! {
    /// Words of a reader.
    pub(crate) struct Slot {
        /// The reader is done with all frames before this one.
        pub done: AtomicU64,
        /// The reader must not read frames before this one; `u64::MAX`: none yet.
        pub begin: AtomicU64,
        /// The sender wants a notice when `done` reaches this frame.
        pub wake_at: AtomicU64,
        /// 1 while the reader sleeps on `futex`.
        pub asleep: AtomicU32,
        pub futex: AtomicU32,
    }
}

shared_words! {
    /// A frame's header, and the position of its payload.
    struct Entry {
        words: [AtomicU64; 8],
    }
}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<Entry>() == 64);

/// Mapped shared memory.
pub(crate) struct Map {
    memory: Mapping,
    data: usize,
}

impl Map {
    /// Creates memory for so many bytes of data, and the file by which others map it.
    pub fn create(data: usize, token: [u64; 2]) -> io::Result<(Map, File)> {
        let size = DATA_AT + data;
        let file = create_sealed("tampu-bulk", size)?;
        let map = Map { memory: Mapping::read_write(&file, size)?, data };
        for slot in 0..SLOTS {
            map.slot(slot).begin.store(u64::MAX, Ordering::Relaxed);
            map.slot(slot).wake_at.store(u64::MAX, Ordering::Relaxed);
        }
        let front = map.front();
        front.data.store(data as u64, Ordering::Relaxed);
        front.entries.store(ENTRIES, Ordering::Relaxed);
        front.token.iter().zip(token).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        front.magic.store(MAGIC, Ordering::Release);
        Ok((map, file))
    }

    /// Maps the memory of another process.
    pub fn open(file: &File, token: [u64; 2]) -> io::Result<Map> {
        let foreign = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if !is_shrink_sealed(file)? {
            return foreign("the memory could be taken away");
        }
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if size <= DATA_AT {
            return foreign("the memory is too small");
        }
        let map = Map { memory: Mapping::read_write(file, size)?, data: size - DATA_AT };
        let front = map.front();
        let same = front.magic.load(Ordering::Acquire) == MAGIC
            && front.data.load(Ordering::Relaxed) == map.data as u64
            && front.entries.load(Ordering::Relaxed) == ENTRIES
            && front.token.iter().zip(token).all(|(word, value)| word.load(Ordering::Relaxed) == value);
        if same { Ok(map) } else { foreign("the memory is another's") }
    }

    fn front(&self) -> &Front {
        self.memory.words(0)
    }

    pub fn head(&self) -> &AtomicU64 {
        &self.front().head
    }

    pub fn slot(&self, number: u32) -> &Slot {
        let number = number.min(SLOTS - 1) as usize;
        self.memory.words(SLOTS_AT + 64 * number)
    }

    fn entry(&self, sequence: u64) -> &Entry {
        let index = (sequence % ENTRIES) as usize;
        self.memory.words(ENTRIES_AT + 64 * index)
    }

    /// Writes the position of a frame.
    pub fn put_entry(&self, sequence: u64, head: &[u8; HEADER_LEN], position: u64) {
        let words = &self.entry(sequence).words;
        let (chunks, _) = head.as_chunks::<8>();
        for (word, chunk) in words.iter().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        words[6].store(position, Ordering::Relaxed);
        words[7].store(sequence, Ordering::Relaxed);
    }

    /// Returns the position of a frame; `None` if another frame has taken its entry.
    pub fn get_entry(&self, sequence: u64) -> Option<([u8; HEADER_LEN], u64)> {
        let words = &self.entry(sequence).words;
        let mut head = [0; HEADER_LEN];
        for (chunk, word) in head.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
        let position = words[6].load(Ordering::Relaxed);
        (words[7].load(Ordering::Relaxed) == sequence).then_some((head, position))
    }

    /// Returns the position of `bytes` in the data, if all of them lie there.
    pub fn position_of(&self, bytes: &[u8]) -> Option<usize> {
        self.memory.position_of(bytes)?.checked_sub(DATA_AT)
    }

    /// Returns the bytes of a region.
    ///
    /// # Safety
    /// The region is lent to the caller. No other part of this process writes to it: lent regions do not overlap.
    pub unsafe fn bytes(&self, position: usize, length: usize) -> &[u8] {
        // SAFETY: by the caller's promise this process does not write there. Other processes only read.
        unsafe { self.memory.bytes(position.saturating_add(DATA_AT), length) }
    }

    /// Returns the bytes of a region for writing.
    ///
    /// # Safety
    /// As [`Map::bytes`], and the caller is the only one in this process who has a slice of the region. The memory is the sender's own.
    #[expect(clippy::mut_from_ref, reason = "other processes share the memory; the caller keeps account of who has which region")]
    pub unsafe fn bytes_mut(&self, position: usize, length: usize) -> &mut [u8] {
        // SAFETY: every mapping here is writable, and the caller promises exclusive use. A reader of the old content may still look
        // at it. It discards the result, because its `begin` was moved first.
        unsafe { self.memory.bytes_mut(position.saturating_add(DATA_AT), length) }
    }

    /// Passes a frame's payload in place to `used`. The result counts only if the slot's `begin` was not moved beyond
    /// the frame.
    pub fn with<R>(&self, position: u64, length: usize, used: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.memory.with(usize::try_from(position).ok()?.checked_add(DATA_AT)?, length, used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_others_is_refused() {
        let (_, file) = Map::create(8192, [1, 2]).unwrap();
        assert!(Map::open(&file, [1, 2]).is_ok());
        assert!(Map::open(&file, [1, 3]).is_err());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![0; DATA_AT + 10]).unwrap();
        assert!(Map::open(&File::open(&path).unwrap(), [0, 0]).is_err());
    }

    #[test]
    fn places_beyond_the_end_are_nobodys() {
        let (map, _) = Map::create(8192, [1, 2]).unwrap();
        assert_eq!(map.with(8190, 2, <[u8]>::len), Some(2));
        for (position, length) in [(8190, 3), (u64::MAX, 1), (8193, 0), (0, usize::MAX)] {
            assert_eq!(map.with(position, length, <[u8]>::len), None);
        }
        assert_eq!(map.position_of(&[1, 2]), None);
    }
}
