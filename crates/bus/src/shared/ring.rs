//! Lending the ring: which bytes are free, which are lent, which are published.
//!
//! The ring is lent front to back within a *span* that begins small and grows only while readers are behind: 1 MB written
//! into memory the caches still hold took 35 to 65 us, into memory they do not 90 to 200 us (spans of 2 to 8 and of 16 MB and more).

use std::{collections::VecDeque, io, path::PathBuf, sync::Arc};

use super::map::RingMemory;

/// Loans begin at multiples of this: a cache line, so that no two share one, and more than any encoding asks for.
pub(crate) const ALIGNMENT: usize = 64;

/// Where the ring of loans begins in its file.
pub(crate) const LOANS_AT: usize = 4096;

/// The span to begin with, in bytes. A writer and its only reader work side by side and want room between them (+ 20 % at 1 MB);
/// several readers share the cores with the writer, and find in the caches what is used again soon (+ 15 %).
const SPAN_OF_ONE: usize = 8 << 20;
const SPAN_OF_MANY: usize = 4 << 20;

/// A ring and what is lent of it. The file goes with it.
pub(crate) struct LoanRing {
    memory: Arc<RingMemory>,
    path: PathBuf,
    /// All bytes ever lent: where the next loan begins in the stream of them.
    position: u64,
    /// Where the next loan begins in the ring.
    offset: usize,
    /// Up to where the ring is known to be free from `offset` on.
    free_to: usize,
    /// How much of the ring is in use.
    span: usize,
    /// How much of it is while readers keep up.
    base: usize,
    /// Everything before this position has been taken back.
    valid_from: u64,
    /// What is lent and not taken back, oldest first.
    lent: VecDeque<Lent>,
    /// Loans not yet published, by position.
    open: Vec<u64>,
}

struct Lent {
    /// The position after it.
    end: u64,
    from: usize,
    to: usize,
}

/// What stands in the way of a loan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Nothing: it can begin at this offset.
    Free(usize),
    /// Loans before this position must be done with first.
    After(u64),
    /// It will never fit, or unpublished loans are in the way.
    Never,
}

/// A loan being filled.
pub(crate) struct Lease {
    memory: Arc<RingMemory>,
    pub position: u64,
    pub offset: usize,
    pub length: usize,
}

impl Lease {
    pub fn view(&self) -> &[u8] {
        // SAFETY: as below; `self` is borrowed shared, so no exclusive slice of these bytes lives meanwhile.
        unsafe { self.memory.lease(self.offset, self.length) }.unwrap_or_default()
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `LoanRing::lend` never gives out bytes that overlap a loan not yet taken back, and none is taken back before
        // its lease is settled; `self` is borrowed for as long as the slice.
        unsafe { self.memory.lease(self.offset, self.length) }.unwrap_or_default()
    }
}

impl LoanRing {
    pub fn create(path: PathBuf, size: usize) -> io::Result<LoanRing> {
        let memory = Arc::new(RingMemory::create(&path, LOANS_AT, size.next_multiple_of(4096).max(4096))?);
        let span = SPAN_OF_MANY.min(memory.size());
        Ok(LoanRing {
            memory,
            path,
            position: 0,
            offset: 0,
            free_to: span,
            span,
            base: span,
            valid_from: 0,
            lent: VecDeque::new(),
            open: Vec::new(),
        })
    }

    /// How many readers there are.
    pub fn read_by(&mut self, readers: usize) {
        self.base = if readers > 1 { SPAN_OF_MANY } else { SPAN_OF_ONE }.min(self.memory.size());
    }

    /// Whether and where `length` bytes can be lent.
    pub fn room(&mut self, length: usize) -> Room {
        let length = length.max(1).next_multiple_of(ALIGNMENT);
        if self.offset + length <= self.free_to {
            return Room::Free(self.offset);
        }
        if length > self.memory.size() {
            return Room::Never;
        }
        while length > self.span && self.grow() {}
        let begin = if self.offset + length <= self.span { self.offset } else { 0 };
        let in_the_way = |lent: &&Lent| lent.from < begin + length && begin < lent.to;
        let Some(needed) = self.lent.iter().filter(in_the_way).map(|lent| lent.end).max() else {
            let next = self.lent.iter().filter(|lent| lent.from >= begin).map(|lent| lent.from).min();
            (self.offset, self.free_to) = (begin, next.unwrap_or(self.span).min(self.span));
            return Room::Free(begin);
        };
        if self.open.iter().any(|&position| position < needed) { Room::Never } else { Room::After(needed) }
    }

    /// Uses more of the ring, from where nothing is lent yet; says whether there was more.
    pub fn grow(&mut self) -> bool {
        if self.span == self.memory.size() {
            return false;
        }
        let begin = self.span;
        self.span = (self.span * 2).min(self.memory.size());
        (self.offset, self.free_to) = (begin, self.span);
        true
    }

    /// Where the loans lent and published so far end.
    pub fn lent_to(&self) -> u64 {
        self.open.iter().copied().min().unwrap_or(self.position)
    }

    /// Takes back everything before `position`.
    pub fn take_back(&mut self, position: u64) {
        if position <= self.valid_from {
            return;
        }
        self.valid_from = position;
        self.memory.take_back(position);
        while self.lent.front().is_some_and(|lent| lent.end <= position) {
            self.lent.pop_front();
        }
        if self.lent.is_empty() {
            // Nobody is behind any more: back to memory the caches hold.
            self.span = self.base;
            (self.offset, self.free_to) = (0, self.span);
        }
    }

    /// Lends what [`LoanRing::room`] found free.
    pub fn lend(&mut self, begin: usize, length: usize) -> Lease {
        let taken = length.max(1).next_multiple_of(ALIGNMENT);
        let position = self.position;
        self.position += taken as u64;
        self.offset = begin + taken;
        self.lent.push_back(Lent { end: self.position, from: begin, to: begin + taken });
        self.open.push(position);
        Lease { memory: self.memory.clone(), position, offset: begin, length }
    }

    /// A lease was published or dropped.
    pub fn settle(&mut self, position: u64) {
        self.open.retain(|&open| open != position);
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn loans_go_round_and_never_overlap_what_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = LoanRing::create(dir.path().join("r"), 4096).unwrap();
        assert_eq!(ring.room(5000), Room::Never);
        assert_eq!(ring.room(3000), Room::Free(0));
        let first = ring.lend(0, 3000);
        assert_eq!(ring.room(2000), Room::Never, "an unpublished loan is in the way");
        ring.settle(first.position);
        assert_eq!(ring.room(2000), Room::After(3008));
        assert_eq!(ring.room(1000), Room::Free(3008));
        ring.take_back(3008);
        assert_eq!(ring.room(2000), Room::Free(0));
        let path = ring.path.clone();
        drop(ring);
        assert!(!path.exists());
    }

    proptest! {
        #[test]
        fn what_is_lent_and_not_taken_back_never_overlaps(
            steps in proptest::collection::vec((1usize..3_000_000, 0u64..4, any::<bool>()), 1..60),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut ring = LoanRing::create(dir.path().join("r"), 16 << 20).unwrap();
            for (length, keep, grow) in steps {
                match ring.room(length) {
                    Room::Free(begin) => {
                        let lease = ring.lend(begin, length);
                        ring.settle(lease.position);
                    }
                    Room::After(_) if grow && ring.grow() => {}
                    Room::After(needed) => {
                        ring.take_back(needed);
                        prop_assert!(matches!(ring.room(length), Room::Free(_)));
                    }
                    Room::Never => prop_assert!(false, "nothing is open and it fits"),
                }
                if keep == 0 {
                    let all = ring.lent_to();
                    ring.take_back(all);
                }
                let places: Vec<_> = ring.lent.iter().map(|lent| (lent.from, lent.to)).collect();
                for (index, one) in places.iter().enumerate() {
                    for other in &places[index + 1..] {
                        prop_assert!(one.1 <= other.0 || other.1 <= one.0, "{one:?} {other:?}");
                    }
                }
            }
        }
    }
}
