//! The mapped memory: the only place that touches it.
//!
//! ```text
//! 0        8         16        24      40        64     128            192                4096     8192                      data_at
//! +--------+---------+---------+-------+---------+------+--------------+------------------+--------+-------------------------+------
//! | magic  | data    | entries | token | zeros   | head | zeros        |                  | slots  | entries, 64 B each      | data
//! | u64    | u64     | u64     | u8[16]|         | u64  |              |                  | 64 x 64|                         |
//! +--------+---------+---------+-------+---------+------+--------------+------------------+--------+-------------------------+------
//! ```
//! The file has no name, its size is sealed: nobody can shorten it under a mapping, so a mapping never faults. The sender writes all but
//! a slot's `done`, `wake_at` and `asleep`, which are its reader's; the reader maps the same pages and is trusted with no more than these
//! words: what it writes there is compared with what it can be.

use std::{
    fs::File,
    io,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use crate::frame::HEADER_LEN;

const MAGIC: u64 = u64::from_le_bytes(*b"tampublk");
/// Readers of one flow.
pub(crate) const SLOTS: u32 = 64;
/// Frames that are told of at a time.
pub(crate) const ENTRIES: u64 = 8192;
const SLOTS_AT: usize = 4096;
const ENTRIES_AT: usize = SLOTS_AT + 64 * SLOTS as usize;
const DATA_AT: usize = ENTRIES_AT + 64 * ENTRIES as usize;

#[repr(C, align(64))]
struct Front {
    magic: AtomicU64,
    data: AtomicU64,
    entries: AtomicU64,
    token: [AtomicU64; 2],
    zeros: [AtomicU64; 3],
    /// The frame after the last one that is told of.
    head: AtomicU64,
}

/// A reader's place.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// The reader has done with all frames before this one.
    pub done: AtomicU64,
    /// Frames before this one are not to be read, or not any more; `u64::MAX`: none yet.
    pub begin: AtomicU64,
    /// The sender wants to hear when `done` comes to this.
    pub wake_at: AtomicU64,
    /// The reader sleeps at the bell.
    pub asleep: AtomicU32,
    pub bell: AtomicU32,
}

/// Where a frame is: its header, and the place of its payload.
#[repr(C, align(64))]
struct Entry {
    words: [AtomicU64; 8],
}

/// The memory, mapped.
pub(crate) struct Map {
    memory: MmapRaw,
    data: usize,
}

impl Map {
    /// Makes memory for so many bytes of data, and the file others map it by.
    pub fn create(data: usize, token: [u64; 2]) -> io::Result<(Map, File)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("tampu-bulk", flags)?);
        let size = DATA_AT + data;
        // Reserving now turns a lack of memory into an error here instead of a SIGBUS at the first write.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = Map { memory: MmapOptions::new().len(size).map_raw(&file)?, data };
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

    /// Maps what another process made.
    pub fn open(file: &File, token: [u64; 2]) -> io::Result<Map> {
        let foreign = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let seals = rustix::fs::fcntl_get_seals(file)?;
        if !seals.contains(SealFlags::SHRINK) {
            return foreign("the memory could be taken away");
        }
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if size <= DATA_AT {
            return foreign("the memory is too small");
        }
        let map = Map { memory: MmapOptions::new().len(size).map_raw(file)?, data: size - DATA_AT };
        let front = map.front();
        let same = front.magic.load(Ordering::Acquire) == MAGIC
            && front.data.load(Ordering::Relaxed) == map.data as u64
            && front.entries.load(Ordering::Relaxed) == ENTRIES
            && front.token.iter().zip(token).all(|(word, value)| word.load(Ordering::Relaxed) == value);
        if same { Ok(map) } else { foreign("the memory is another's") }
    }

    fn front(&self) -> &Front {
        // SAFETY: every mapping is longer than DATA_AT, so these bytes are in it; `Front` is atomics, for which any bytes are valid;
        // the mapping is page aligned; it lives as long as `self`.
        unsafe { &*self.memory.as_mut_ptr().cast::<Front>() }
    }

    pub fn head(&self) -> &AtomicU64 {
        &self.front().head
    }

    pub fn slot(&self, number: u32) -> &Slot {
        let number = number.min(SLOTS - 1) as usize;
        // SAFETY: slots 0 to SLOTS - 1 lie between SLOTS_AT and ENTRIES_AT; `Slot` is 64 bytes of atomics, for which any bytes are valid,
        // at a multiple of 64; it lives as long as `self`.
        unsafe { &*self.memory.as_mut_ptr().add(SLOTS_AT + 64 * number).cast::<Slot>() }
    }

    fn entry(&self, sequence: u64) -> &Entry {
        let index = (sequence % ENTRIES) as usize;
        // SAFETY: entries 0 to ENTRIES - 1 lie between ENTRIES_AT and DATA_AT; the rest as for `slot`.
        unsafe { &*self.memory.as_mut_ptr().add(ENTRIES_AT + 64 * index).cast::<Entry>() }
    }

    /// Tells where a frame is.
    pub fn put_entry(&self, sequence: u64, head: &[u8; HEADER_LEN], position: u64) {
        let words = &self.entry(sequence).words;
        let (chunks, _) = head.as_chunks::<8>();
        for (word, chunk) in words.iter().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        words[6].store(position, Ordering::Relaxed);
        words[7].store(sequence, Ordering::Relaxed);
    }

    /// Where a frame is; `None` where another has its place.
    pub fn get_entry(&self, sequence: u64) -> Option<([u8; HEADER_LEN], u64)> {
        let words = &self.entry(sequence).words;
        let mut head = [0; HEADER_LEN];
        for (chunk, word) in head.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
        let position = words[6].load(Ordering::Relaxed);
        (words[7].load(Ordering::Relaxed) == sequence).then_some((head, position))
    }

    fn place(&self, position: usize, length: usize) -> Option<NonNull<u8>> {
        if position > self.data || length > self.data - position {
            return None;
        }
        // SAFETY: the mapping is DATA_AT + data long, and position + length is within data.
        NonNull::new(unsafe { self.memory.as_mut_ptr().add(DATA_AT + position) })
    }

    /// Where these bytes lie in the data, if they do.
    pub fn position_of(&self, bytes: &[u8]) -> Option<usize> {
        let base = self.memory.as_mut_ptr() as usize + DATA_AT;
        let position = (bytes.as_ptr() as usize).checked_sub(base)?;
        (position <= self.data && bytes.len() <= self.data - position).then_some(position)
    }

    /// The bytes of a region.
    ///
    /// # Safety
    /// The region is lent to the caller, and to nobody else in this process who writes: regions do not overlap while they are lent.
    pub unsafe fn bytes(&self, position: usize, length: usize) -> &[u8] {
        match self.place(position, length) {
            // SAFETY: in bounds by `place`; nobody writes there by the caller's promise. Other processes only read.
            Some(place) => unsafe { std::slice::from_raw_parts(place.as_ptr(), length) },
            None => &[],
        }
    }

    /// The same, to write.
    ///
    /// # Safety
    /// As [`Map::bytes`], and the caller is the only one in this process who has a slice of the region.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is shared with other processes; who has which region is kept by the caller"
    )]
    pub unsafe fn bytes_mut(&self, position: usize, length: usize) -> &mut [u8] {
        match self.place(position, length) {
            // SAFETY: in bounds by `place`; alone by the caller's promise. A reader that was told of what lay here before may look at it
            // meanwhile, and distrusts what it saw, because its `begin` was moved first.
            Some(place) => unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), length) },
            None => &mut [],
        }
    }

    /// Uses a frame's payload where it is. Whatever `used` saw counts only if the slot's `begin` has not been moved beyond the frame.
    pub fn with<R>(&self, position: u64, length: usize, used: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let place = self.place(usize::try_from(position).ok()?, length)?;
        // SAFETY: in bounds by `place`; mapped for as long as `self`. The sender may write here while the bytes are used, after it has
        // moved `begin`: they are plain octets, any value of which is valid, and the caller looks at `begin` afterwards.
        Some(used(unsafe { std::slice::from_raw_parts(place.as_ptr(), length) }))
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
