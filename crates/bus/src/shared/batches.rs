//! Whole batches in shared memory: readers on the writer's host read them there and need no message.
//!
//! A batch through the node is copied into a socket and out of it for the node, and again for every reader. On its way
//! it wakes two workers in each process. Through the ring, the writer copies it in once, each reader copies it out
//! once, and only the reader's application wakes. Nothing waits for the ring, which overwrites its oldest batches. A
//! reader that finds a batch overwritten fetches it from the writer's cache like any other dropped batch. So the ring
//! needs only to be somewhat longer than the writer's credit, and stays small enough for a processor's cache.
//!
//! The *announcements* precede the ring and list the batches in order: a counter, then entries.
//!
//! ```text
//! entry: u64 number of the batch, from 1; 0 while it changes | u64 position | u64 length | u64 reserved
//! ```
//! Readers that do not follow the announcements are sent the position of a batch, or the batch itself.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering, fence},
};

use bytes::Bytes;
use tampu_shm::{LOAN_ALIGNMENT as ALIGNMENT, RingMemory, RingView};

use super::reused;
use crate::wire::batch::Loaned;

/// Smallest ring size, for streams of the default credit, and largest size for others, in bytes.
const LEAST: usize = 2 << 20;
const MOST: usize = 64 << 20;

/// Returns the ring size for a stream of this credit: twice as much, so that a reader that keeps up finds every batch.
pub(crate) fn size_for(credit: usize) -> usize {
    credit.saturating_mul(2).clamp(LEAST, MOST).next_power_of_two()
}

/// Returns the length of the longest batch for the ring of a stream of this credit.
pub(crate) fn longest_for(credit: usize) -> usize {
    size_for(credit) / PARTS
}

/// A batch takes at most this part of the ring; a longer one would overwrite too many others.
const PARTS: usize = 4;

/// Batches that the announcements hold.
const ENTRIES: u64 = 1024;
/// Start of the ring in bytes: after a page for the counts, and the entries.
const RING_AT: usize = 4096 + ENTRIES as usize * 32;

/// Words before the ring.
const COUNT: usize = 0;
fn entry_word(index: u64, field: usize) -> usize {
    const FIRST: usize = (4096 - 128) / 8;
    FIRST + (index % ENTRIES) as usize * 4 + field
}

/// Writer's side of the ring. Dropping it removes the file.
pub(crate) struct BatchRing {
    memory: RingMemory,
    path: PathBuf,
    /// Position of the next batch, counted over all bytes that the ring ever held.
    position: u64,
    /// Number of batches written so far.
    count: u64,
}

impl BatchRing {
    /// Creates the file with a ring of this size, a power of two.
    pub fn create(path: PathBuf, size: usize) -> io::Result<BatchRing> {
        Ok(BatchRing { memory: RingMemory::create(&path, RING_AT, size)?, path, position: 0, count: 0 })
    }

    /// Writes a batch and announces it; returns `None` if it would overwrite too many others.
    pub fn put(&mut self, batch: &[u8]) -> Option<Loaned> {
        let size = self.memory.size() as u64;
        if batch.len() as u64 > size / PARTS as u64 {
            return None;
        }
        let taken = batch.len().next_multiple_of(ALIGNMENT) as u64;
        if self.position % size + taken > size {
            self.position = self.position.next_multiple_of(size);
        }
        let position = self.position;
        let offset = (position % size) as usize;
        // The bytes one round back are about to be overwritten, and readers must know before that.
        self.memory.take_back((position + taken).saturating_sub(size));
        if !self.memory.write(offset, batch) {
            return None;
        }
        self.position = position + taken;
        self.announce(position, batch.len() as u64);
        Some(Loaned { position, place: (offset / ALIGNMENT) as u32, length: batch.len() as u32 })
    }

    fn announce(&mut self, position: u64, length: u64) {
        let index = self.count;
        let word = |field| self.memory.word(entry_word(index, field));
        word(0).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        word(1).store(position, Ordering::Relaxed);
        word(2).store(length, Ordering::Relaxed);
        self.count = index + 1;
        word(0).store(self.count, Ordering::Release);
        // A reader that is about to sleep sets its flag and then reads this count. The process that wakes it reads the flag after
        // this store.
        self.memory.word(COUNT).store(self.count, Ordering::SeqCst);
    }
}

impl Drop for BatchRing {
    fn drop(&mut self) {
        // As with loans: readers keep their mappings.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reader's side of the ring.
pub(crate) struct BatchView {
    view: RingView,
    /// Number of the next announcement to read.
    at: AtomicU64,
}

impl BatchView {
    /// Maps the file. Announcements are read from here on.
    pub fn open(path: &Path) -> io::Result<BatchView> {
        let view = RingView::open(path, RING_AT)?;
        let at = AtomicU64::new(view.word(COUNT).load(Ordering::SeqCst));
        Ok(BatchView { view, at })
    }

    /// Reports if the writer's file was shortened: nothing more arrives here.
    pub fn is_lost(&self) -> bool {
        self.view.is_lost()
    }

    /// Returns the batch at a received position.
    pub fn at(&self, place: Loaned) -> Option<Bytes> {
        self.copy(place.position, place.place as usize * ALIGNMENT, place.length as usize)
    }

    /// Returns the next announced batch. Batches that were overwritten meanwhile are skipped.
    pub fn next(&self) -> Option<Bytes> {
        loop {
            let at = self.at.load(Ordering::Acquire);
            let count = self.view.word(COUNT).load(Ordering::SeqCst);
            if at >= count {
                return None;
            }
            // A reader that is too late for the announcements restarts at their end. The writer's refetch server supplies the rest.
            let next = if count - at > ENTRIES { count } else { at + 1 };
            let found = self.entry(at).and_then(|(position, length)| {
                self.copy(position, (position % self.view.size() as u64) as usize, length as usize)
            });
            // Several workers may call this at once: each batch is taken by one of them.
            let mine = self.at.compare_exchange(at, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if let (true, Some(batch)) = (mine, found) {
                return Some(batch);
            }
        }
    }

    fn entry(&self, index: u64) -> Option<(u64, u64)> {
        let word = |field| self.view.word(entry_word(index, field));
        let number = word(0).load(Ordering::Acquire);
        let (position, length) = (word(1).load(Ordering::Relaxed), word(2).load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (number == index + 1 && word(0).load(Ordering::Relaxed) == number).then_some((position, length))
    }

    /// Copies a batch. The length stands in memory that another process writes, so it is checked against the writer's own
    /// rule, and against the largest ring: a sparse file may claim any size.
    fn copy(&self, position: u64, offset: usize, length: usize) -> Option<Bytes> {
        if length > self.view.size().min(MOST) / PARTS {
            return None;
        }
        self.view.with(position, offset, length, reused::copy).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_batch_is_read_as_it_was_or_known_to_be_overwritten(lengths in proptest::collection::vec(1usize..400_000, 1..40)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("b");
            let mut ring = BatchRing::create(path.clone(), LEAST).unwrap();
            let (view, keen) = (BatchView::open(&path).unwrap(), BatchView::open(&path).unwrap());
            let mut put = Vec::new();
            for (index, length) in lengths.into_iter().enumerate() {
                let bytes = vec![index as u8; length];
                let place = ring.put(&bytes).unwrap();
                prop_assert!(keen.next().is_some_and(|read| read == bytes));
                prop_assert!(keen.next().is_none());
                put.push((place, bytes));
                let mut held = 0;
                for (place, bytes) in put.iter().rev() {
                    held += bytes.len();
                    match view.at(*place) {
                        Some(read) => prop_assert!(read == *bytes),
                        None => prop_assert!(held > LEAST / 2, "overwritten after {held} bytes"),
                    }
                }
            }
            prop_assert!(ring.put(&vec![0; LEAST / 2]).is_none());
            let there: Vec<Bytes> = put.iter().filter_map(|(place, _)| view.at(*place)).collect();
            prop_assert_eq!(std::iter::from_fn(|| view.next()).collect::<Vec<_>>(), there, "announcements of batches that are gone are left out");
            drop(ring);
            prop_assert!(!path.exists());
        }
    }

    #[test]
    fn an_announced_length_beyond_the_rule_of_writers_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let mut ring = BatchRing::create(path.clone(), LEAST).unwrap();
        let view = BatchView::open(&path).unwrap();
        for length in [LEAST as u64 / 4 + 1, LEAST as u64, u64::MAX] {
            ring.announce(0, length);
        }
        assert_eq!(view.next(), None);
        ring.put(b"good").unwrap();
        assert_eq!(view.next().as_deref(), Some(&b"good"[..]));
    }

    #[test]
    fn a_file_that_is_shortened_gives_no_batch_and_takes_none() {
        tampu_shm::survive_truncation().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let mut ring = BatchRing::create(path.clone(), LEAST).unwrap();
        let view = BatchView::open(&path).unwrap();
        let place = ring.put(b"good").unwrap();
        assert_eq!(view.at(place).as_deref(), Some(&b"good"[..]));
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!((view.at(place), view.next()), (None, None), "zeros are no batch");
        assert!(view.is_lost() && ring.put(b"lost").is_none());
    }

    #[test]
    fn a_sparse_file_with_a_forged_length_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        // A file of 1 TiB without content, whose header and entry are those of a ring of that size.
        let size = 1u64 << 40;
        let file = std::fs::File::options().write(true).create_new(true).open(&path).unwrap();
        file.set_len(RING_AT as u64 + size).unwrap();
        let put = |at: usize, word: u64| std::os::unix::fs::FileExt::write_all_at(&file, &word.to_ne_bytes(), at as u64).unwrap();
        put(0, u64::from_le_bytes(*b"tampurng"));
        put(8, size);
        let Ok(view) = BatchView::open(&path) else { return };
        let at = |word: usize| 128 + 8 * word;
        for (field, word) in [1, 0, size / 4].into_iter().enumerate() {
            put(at(entry_word(0, field)), word);
        }
        put(at(COUNT), 1);
        assert_eq!(view.next(), None);
    }

    #[test]
    fn who_is_a_board_behind_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let mut ring = BatchRing::create(path.clone(), LEAST).unwrap();
        let view = BatchView::open(&path).unwrap();
        for _ in 0..=ENTRIES {
            ring.put(b"old").unwrap();
        }
        assert_eq!(view.next(), None);
        ring.put(b"new").unwrap();
        assert_eq!(view.next().as_deref(), Some(&b"new"[..]));
    }

    #[test]
    fn workers_that_look_at_once_take_each_batch_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let mut ring = BatchRing::create(path.clone(), LEAST).unwrap();
        let view = BatchView::open(&path).unwrap();
        let taken = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut taken: Vec<u32> = Vec::new();
                        while taken.last() != Some(&u32::MAX) {
                            taken.extend(view.next().map(|batch| u32::from_le_bytes(batch[..4].try_into().unwrap())));
                        }
                        taken
                    })
                })
                .collect();
            for number in 0..500_u32 {
                ring.put(&number.to_le_bytes().repeat(20)).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(5));
            }
            ring.put(&u32::MAX.to_le_bytes()).unwrap();
            // One of them takes the first end marker.
            std::thread::sleep(std::time::Duration::from_millis(5));
            ring.put(&u32::MAX.to_le_bytes()).unwrap();
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).filter(|&number| number < u32::MAX).collect::<Vec<_>>()
        });
        let mut once = taken.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), taken.len(), "none twice");
        assert_eq!(once.len(), 500, "and none left out");
    }
}
