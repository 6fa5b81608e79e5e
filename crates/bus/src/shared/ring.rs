//! Lending the ring: which bytes are free, which are lent, which are published.

use std::{io, path::PathBuf, sync::Arc};

use super::map::RingMemory;

/// Loans begin at multiples of this: a cache line, so that no two share one, and more than any encoding asks for.
const ALIGNMENT: u64 = 64;

/// A ring and what is lent of it. The file goes with it.
pub(crate) struct LoanRing {
    memory: Arc<RingMemory>,
    path: PathBuf,
    /// Where the next loan begins.
    head: u64,
    /// Everything before has been taken back.
    valid_from: u64,
    /// Loans not yet published, by where they begin.
    open: Vec<u64>,
}

/// What stands in the way of a loan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Nothing: it can begin here.
    Free(u64),
    /// Loans before this position must be done with first.
    After(u64),
    /// It will never fit, or unpublished loans are in the way.
    Never,
}

/// A loan being filled.
pub(crate) struct Lease {
    memory: Arc<RingMemory>,
    pub position: u64,
    pub length: usize,
}

impl Lease {
    pub fn view(&self) -> &[u8] {
        // SAFETY: as below; `self` is borrowed shared, so no exclusive slice of these bytes lives meanwhile.
        unsafe { self.memory.lease(self.position, self.length) }.unwrap_or_default()
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `LoanRing::lend` gives a position out once until its lease is given back, and never bytes that overlap an
        // open lease; `self` is borrowed for as long as the slice.
        unsafe { self.memory.lease(self.position, self.length) }.unwrap_or_default()
    }
}

impl LoanRing {
    pub fn create(path: PathBuf, size: usize) -> io::Result<LoanRing> {
        let memory = RingMemory::create(&path, size.next_multiple_of(4096).max(4096))?;
        Ok(LoanRing { memory: Arc::new(memory), path, head: 0, valid_from: 0, open: Vec::new() })
    }

    /// Whether and where `length` bytes can be lent.
    pub fn room(&self, length: usize) -> Room {
        let size = self.memory.size() as u64;
        let length = (length.max(1) as u64).next_multiple_of(ALIGNMENT);
        if length > size {
            return Room::Never;
        }
        let to_end = size - self.head % size;
        let begin = if length > to_end { self.head + to_end } else { self.head };
        let needed = (begin + length).saturating_sub(size);
        if self.open.iter().any(|&position| position < needed) {
            Room::Never
        } else if needed <= self.valid_from {
            Room::Free(begin)
        } else {
            Room::After(needed)
        }
    }

    /// Where the loans lent so far end.
    pub fn lent_to(&self) -> u64 {
        self.open.iter().copied().min().unwrap_or(self.head)
    }

    /// How much is taken back at once beyond what is needed.
    pub fn share(&self) -> u64 {
        self.memory.size() as u64 / 8
    }

    /// Takes back everything before `position`.
    pub fn take_back(&mut self, position: u64) {
        if position > self.valid_from {
            self.valid_from = position;
            self.memory.take_back(position);
        }
    }

    /// Lends what [`LoanRing::room`] found free.
    pub fn lend(&mut self, begin: u64, length: usize) -> Lease {
        self.head = begin + (length.max(1) as u64).next_multiple_of(ALIGNMENT);
        self.open.push(begin);
        Lease { memory: self.memory.clone(), position: begin, length }
    }

    /// A lease was published or dropped.
    pub fn settle(&mut self, position: u64) {
        self.open.retain(|&open| open != position);
    }

    /// Where lending would begin anew to stay in memory the caches still hold, once this much of the ring has been walked and
    /// nobody needs what was lent.
    pub fn rewind_to(&self, walked: usize) -> Option<u64> {
        let size = self.memory.size() as u64;
        let offset = self.head % size;
        (self.open.is_empty() && offset >= walked as u64).then(|| self.head + (size - offset))
    }

    pub fn rewind(&mut self, begin: u64) {
        self.take_back(begin);
        self.head = begin;
    }
}

impl Drop for LoanRing {
    fn drop(&mut self) {
        // Readers that have it mapped keep what they mapped; a file that is gone already was tidied up by the node.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loans_go_round_and_never_overlap_what_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = LoanRing::create(dir.path().join("r"), 4096).unwrap();
        assert_eq!(ring.room(5000), Room::Never);
        let first = ring.lend(0, 3000);
        assert_eq!(ring.room(2000), Room::Never, "an unpublished loan is in the way");
        ring.settle(first.position);
        // 3000 bytes end at 3008; 2000 do not fit behind them, so they begin at the next turn and need all of the first.
        assert_eq!(ring.room(2000), Room::After(4096 + 2048 - 4096));
        ring.take_back(3008);
        assert_eq!(ring.room(2000), Room::Free(4096));
        assert_eq!(ring.room(1000), Room::Free(3008));
        let path = ring.path.clone();
        drop(ring);
        assert!(!path.exists());
    }
}
