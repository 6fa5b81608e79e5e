//! Whole batches in shared memory: readers on the writer's host are sent where a batch lies instead of the batch.
//!
//! A batch that goes through the node is copied into a socket and out of it for the node, and again for every reader; here it
//! is copied in once by the writer and out once by each reader. Nothing waits for the ring: it goes round, and who finds a
//! batch overwritten fetches it from the writer's cache like any other that was dropped on its way. So it needs only to be
//! somewhat longer than the writer's credit, and stays small enough for a processor's cache.

use std::{io, path::PathBuf};

use super::{map::RingMemory, ring::ALIGNMENT};
use crate::wire::batch::Loaned;

/// Twice the default credit.
const SIZE: usize = 2 << 20;

/// The writer's side. The file goes with it.
pub(crate) struct BatchRing {
    memory: RingMemory,
    path: PathBuf,
    /// Where the next batch begins, in the count of all bytes the ring ever held.
    position: u64,
}

impl BatchRing {
    pub fn create(path: PathBuf) -> io::Result<BatchRing> {
        Ok(BatchRing { memory: RingMemory::create(&path, SIZE)?, path, position: 0 })
    }

    /// Puts a batch in; `None` where it would push out too much of the others.
    pub fn put(&mut self, batch: &[u8]) -> Option<Loaned> {
        let size = SIZE as u64;
        if batch.len() > SIZE / 4 {
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
        // SAFETY: the slice is the only one of this ring: it ends with this function, which has `self` exclusively.
        unsafe { self.memory.lease(offset, batch.len()) }?.copy_from_slice(batch);
        self.position = position + taken;
        Some(Loaned { position, place: (offset / ALIGNMENT) as u32, length: batch.len() as u32 })
    }
}

impl Drop for BatchRing {
    fn drop(&mut self) {
        // As with loans: readers keep what they mapped.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shared::{LOAN_UNIT, RingView};

    proptest! {
        #[test]
        fn a_batch_is_read_as_it_was_or_known_to_be_overwritten(lengths in proptest::collection::vec(1usize..400_000, 1..40)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("b");
            let mut ring = BatchRing::create(path.clone()).unwrap();
            let view = RingView::open(&path).unwrap();
            let mut put = Vec::new();
            for (index, length) in lengths.into_iter().enumerate() {
                let bytes = vec![index as u8; length];
                let place = ring.put(&bytes).unwrap();
                put.push((place, bytes));
                let mut held = 0;
                for (place, bytes) in put.iter().rev() {
                    let read = view.with(place.position, place.place as usize * LOAN_UNIT, place.length as usize, <[u8]>::to_vec);
                    held += bytes.len();
                    match read {
                        Ok(read) => prop_assert!(read == *bytes),
                        Err(_) => prop_assert!(held > SIZE / 2, "overwritten after {held} bytes"),
                    }
                }
            }
            prop_assert!(ring.put(&vec![0; SIZE / 2]).is_none());
            drop(ring);
            prop_assert!(!path.exists());
        }
    }
}
