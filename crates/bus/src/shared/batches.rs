//! Whole batches in shared memory: readers on the writer's host take them there instead of being sent them.
//!
//! A batch that goes through the node is copied into a socket and out of it for the node, and again for every reader, and
//! wakes two workers in each process on its way. Here it is copied in once by the writer and out once by each reader, and
//! wakes the reader's application alone. Nothing waits for the ring: it goes round, and who finds a batch overwritten fetches
//! it from the writer's cache like any other that was dropped on its way. So it needs only to be somewhat longer than the
//! writer's credit, and stays small enough for a processor's cache.
//!
//! Before the ring stands the *board*, which says what was put in, in order: a word that counts the batches, then entries.
//!
//! ```text
//! entry: u64 number of the batch, from 1; 0 while it changes | u64 position | u64 length | u64 reserved
//! ```
//! Readers that are not attached to the board are sent where a batch lies, or the batch itself.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering, fence},
};

use bytes::Bytes;

use super::{
    map::{RingMemory, RingView},
    ring::ALIGNMENT,
};
use crate::wire::batch::Loaned;

/// The ring's size for streams of the default credit, and the most it takes for others, bytes.
const LEAST: usize = 2 << 20;
const MOST: usize = 64 << 20;

/// The size for a stream of this credit: twice as much, so that what a reader that keeps up has not looked at is there.
pub(crate) fn size_for(credit: usize) -> usize {
    credit.saturating_mul(2).clamp(LEAST, MOST).next_power_of_two()
}
/// How many batches the board remembers.
const ENTRIES: u64 = 1024;
/// Where the ring begins: after a page for the counts, and the entries.
const RING_AT: usize = 4096 + ENTRIES as usize * 32;

/// Words before the ring.
const COUNT: usize = 0;
fn entry_word(index: u64, field: usize) -> usize {
    const FIRST: usize = (4096 - 128) / 8;
    FIRST + (index % ENTRIES) as usize * 4 + field
}

/// The writer's side. The file goes with it.
pub(crate) struct BatchRing {
    memory: RingMemory,
    path: PathBuf,
    /// Where the next batch begins, in the count of all bytes the ring ever held.
    position: u64,
    /// How many batches were put in.
    count: u64,
}

impl BatchRing {
    /// Makes the file with a ring of this size, a power of two.
    pub fn create(path: PathBuf, size: usize) -> io::Result<BatchRing> {
        Ok(BatchRing { memory: RingMemory::create(&path, RING_AT, size)?, path, position: 0, count: 0 })
    }

    /// Puts a batch in, and up on the board; `None` where it would push out too much of the others.
    pub fn put(&mut self, batch: &[u8]) -> Option<Loaned> {
        let size = self.memory.size() as u64;
        if batch.len() as u64 > size / 4 {
            return None;
        }
        let taken = batch.len().next_multiple_of(ALIGNMENT) as u64;
        if self.position % size + taken > size {
            self.position = self.position.next_multiple_of(size);
        }
        let position = self.position;
        let offset = (position % size) as usize;
        // What lies one round back is overwritten now, and readers must know before it is.
        self.memory.take_back((position + taken).saturating_sub(size));
        // SAFETY: the slice is the only one of this ring: it ends with this statement, and `put` has `self` exclusively.
        unsafe { self.memory.lease(offset, batch.len()) }?.copy_from_slice(batch);
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
        // Readers that are about to sleep look at it after they have said so, and whoever wakes them looks at that after this.
        self.memory.word(COUNT).store(self.count, Ordering::SeqCst);
    }
}

impl Drop for BatchRing {
    fn drop(&mut self) {
        // As with loans: readers keep what they mapped.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A reader's side.
pub(crate) struct BatchView {
    view: RingView,
    /// The next batch on the board that this reader has not looked at.
    at: AtomicU64,
}

impl BatchView {
    /// Maps the file; the board is read from here on.
    pub fn open(path: &Path) -> io::Result<BatchView> {
        let view = RingView::open(path, RING_AT)?;
        let at = AtomicU64::new(view.word(COUNT).load(Ordering::SeqCst));
        Ok(BatchView { view, at })
    }

    /// The batch at a place it was told.
    pub fn at(&self, place: Loaned) -> Option<Bytes> {
        self.copy(place.position, place.place as usize * ALIGNMENT, place.length as usize)
    }

    /// The next batch on the board. What was overwritten meanwhile is left out.
    pub fn next(&self) -> Option<Bytes> {
        loop {
            let at = self.at.load(Ordering::Acquire);
            let count = self.view.word(COUNT).load(Ordering::SeqCst);
            if at >= count {
                return None;
            }
            // Who comes too late for the board begins anew where it is now; the rest is fetched from the writer.
            let next = if count - at > ENTRIES { count } else { at + 1 };
            let found = self.entry(at).and_then(|(position, length)| {
                self.copy(position, (position % self.view.size() as u64) as usize, length as usize)
            });
            // Several workers may look at once: each batch is taken by one of them.
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

    fn copy(&self, position: u64, offset: usize, length: usize) -> Option<Bytes> {
        self.view.with(position, offset, length, Bytes::copy_from_slice).ok()
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
            prop_assert_eq!(std::iter::from_fn(|| view.next()).collect::<Vec<_>>(), there, "the board leaves out what is gone");
            drop(ring);
            prop_assert!(!path.exists());
        }
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
            // One of them takes the first end.
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
