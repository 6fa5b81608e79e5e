//! Account of a ring's bytes: the free, the lent and the published ones.
//!
//! The ring is lent front to back within a *span* that begins small and grows only while readers are behind. Writing 1
//! MB took 35 to 65 us into memory that the processor's caches still hold (spans of 2 to 8 MB). It took 90 to 200 us
//! into other memory (spans of 16 MB and more).

use std::{collections::VecDeque, io, path::PathBuf, sync::Arc};

use crate::ring::{Overwritten, RingMemory};

/// Loans begin at multiples of this, in bytes: a cache line, so that no two share one, and more than any encoding needs.
pub const LOAN_ALIGNMENT: usize = 64;

/// Byte of the file at which the ring of loans begins.
pub const LOANS_AT: usize = 4096;

/// First span for one reader, in bytes. The writer and its only reader work side by side and need room between them (+ 20 % at
/// 1 MB).
const SPAN_OF_ONE: usize = 8 << 20;
/// First span for several readers, in bytes. They share the cores with the writer, and find memory that is used again soon in the
/// caches (+ 15 %).
const SPAN_OF_MANY: usize = 4 << 20;

/// A ring and its loans. The file is removed when the value is dropped.
pub struct LoanRing {
    memory: Arc<RingMemory>,
    path: PathBuf,
    /// Bytes ever lent: the position of the next loan.
    position: u64,
    /// Byte of the ring at which the next loan begins.
    offset: usize,
    /// The ring is known to be free from `offset` to here.
    free_to: usize,
    /// Bytes of the ring in use.
    span: usize,
    /// Bytes of the ring in use while readers keep up.
    base: usize,
    /// Everything before this position has been taken back.
    valid_from: u64,
    /// Loans that were not taken back, oldest first.
    lent: VecDeque<Lent>,
    /// Positions of the loans that were not published.
    open: Vec<u64>,
}

struct Lent {
    /// The position after the loan.
    end: u64,
    from: usize,
    to: usize,
}

/// Result of looking for room for a loan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoanRoom {
    /// The loan can begin at this offset.
    Free(usize),
    /// Readers must be done with the loans before this position first.
    After(u64),
    /// The loan never fits, or unpublished loans are in the way.
    Never,
}

/// A loan that its owner fills.
pub struct Lease {
    memory: Arc<RingMemory>,
    /// Position in the count of all bytes ever lent.
    pub position: u64,
    /// Byte of the ring at which the loan begins.
    pub offset: usize,
    /// Bytes of the loan.
    pub length: usize,
}

/// A loan's memory, for its owner to read again.
#[derive(Clone)]
pub struct LoanMemory {
    memory: Arc<RingMemory>,
    position: u64,
    offset: usize,
    length: usize,
}

impl LoanMemory {
    /// Copies the loan to the end of `out`. Fails, and leaves `out`, if the ring has taken its memory back.
    pub fn copy_to(&self, out: &mut Vec<u8>) -> Result<(), Overwritten> {
        let before = out.len();
        let copied = self.memory.with(self.position, self.offset, self.length, |bytes| out.extend_from_slice(bytes));
        if copied.is_err() {
            out.truncate(before);
        }
        copied
    }
}

impl Lease {
    /// Returns its memory, to read it later.
    pub fn memory(&self) -> LoanMemory {
        let Lease { memory, position, offset, length } = self;
        LoanMemory { memory: memory.clone(), position: *position, offset: *offset, length: *length }
    }

    /// The bytes as filled so far.
    pub fn view(&self) -> &[u8] {
        // SAFETY: as below; `self` is borrowed shared, so no exclusive slice of these bytes lives meanwhile.
        unsafe { self.memory.lease(self.offset, self.length) }.unwrap_or_default()
    }

    /// The bytes to fill.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `LoanRing::lend` never lends bytes that overlap an open loan, and no loan is taken back before its lease is
        // settled. `self` is borrowed for as long as the slice.
        unsafe { self.memory.lease(self.offset, self.length) }.unwrap_or_default()
    }
}

impl LoanRing {
    /// Creates the file with a ring of `size` bytes, rounded up to whole pages.
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

    /// Sets the number of readers, which decides the first span.
    pub fn read_by(&mut self, readers: usize) {
        self.base = if readers > 1 { SPAN_OF_MANY } else { SPAN_OF_ONE }.min(self.memory.size());
    }

    /// Looks for room for `length` bytes.
    pub fn room(&mut self, length: usize) -> LoanRoom {
        let length = length.max(1).next_multiple_of(LOAN_ALIGNMENT);
        if self.offset + length <= self.free_to {
            return LoanRoom::Free(self.offset);
        }
        if length > self.memory.size() {
            return LoanRoom::Never;
        }
        while length > self.span && self.grow() {}
        let begin = if self.offset + length <= self.span { self.offset } else { 0 };
        let in_the_way = |lent: &&Lent| lent.from < begin + length && begin < lent.to;
        let Some(needed) = self.lent.iter().filter(in_the_way).map(|lent| lent.end).max() else {
            let next = self.lent.iter().filter(|lent| lent.from >= begin).map(|lent| lent.from).min();
            (self.offset, self.free_to) = (begin, next.unwrap_or(self.span).min(self.span));
            return LoanRoom::Free(begin);
        };
        if self.open.iter().any(|&position| position < needed) { LoanRoom::Never } else { LoanRoom::After(needed) }
    }

    /// Doubles the used part of the ring. Returns false if all of it is in use already.
    pub fn grow(&mut self) -> bool {
        if self.span == self.memory.size() {
            return false;
        }
        let begin = self.span;
        self.span = (self.span * 2).min(self.memory.size());
        (self.offset, self.free_to) = (begin, self.span);
        true
    }

    /// Position up to which all loans are published.
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
            // No reader is behind: the span returns to memory that the caches hold.
            self.span = self.base;
            (self.offset, self.free_to) = (0, self.span);
        }
    }

    /// Lends `length` bytes at the offset that [`LoanRing::room`] found free.
    pub fn lend(&mut self, begin: usize, length: usize) -> Lease {
        let taken = length.max(1).next_multiple_of(LOAN_ALIGNMENT);
        let position = self.position;
        self.position += taken as u64;
        self.offset = begin + taken;
        self.lent.push_back(Lent { end: self.position, from: begin, to: begin + taken });
        self.open.push(position);
        Lease { memory: self.memory.clone(), position, offset: begin, length }
    }

    /// Marks the lease at `position` as published or dropped.
    pub fn settle(&mut self, position: u64) {
        self.open.retain(|&open| open != position);
    }
}

impl Drop for LoanRing {
    fn drop(&mut self) {
        // Readers keep their mappings. If the file is missing, the node has removed it.
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
        assert_eq!(ring.room(5000), LoanRoom::Never);
        assert_eq!(ring.room(3000), LoanRoom::Free(0));
        let first = ring.lend(0, 3000);
        assert_eq!(ring.room(2000), LoanRoom::Never, "an unpublished loan is in the way");
        ring.settle(first.position);
        assert_eq!(ring.room(2000), LoanRoom::After(3008));
        assert_eq!(ring.room(1000), LoanRoom::Free(3008));
        ring.take_back(3008);
        assert_eq!(ring.room(2000), LoanRoom::Free(0));
        let mut lease = ring.lend(0, 3);
        lease.bytes().copy_from_slice(b"abc");
        ring.settle(lease.position);
        let (memory, mut copy) = (lease.memory(), b"0".to_vec());
        assert_eq!((memory.copy_to(&mut copy), &*copy), (Ok(()), &b"0abc"[..]));
        ring.take_back(ring.lent_to());
        assert_eq!((memory.copy_to(&mut copy), &*copy), (Err(Overwritten), &b"0abc"[..]));
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
                    LoanRoom::Free(begin) => {
                        let lease = ring.lend(begin, length);
                        ring.settle(lease.position);
                    }
                    LoanRoom::After(_) if grow && ring.grow() => {}
                    LoanRoom::After(needed) => {
                        ring.take_back(needed);
                        prop_assert!(matches!(ring.room(length), LoanRoom::Free(_)));
                    }
                    LoanRoom::Never => prop_assert!(false, "nothing is open and it fits"),
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
