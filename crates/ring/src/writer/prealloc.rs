//! Rings made ahead: a thread's first call finds one ready. The call then costs a rename instead of a file of a
//! megabyte.
//!
//! Decision: the drainer makes them, one at a time between its passes, under a name that readers ignore. The thread
//! that takes a ring gives it its own name. So no reader of the directory finds a ring that no thread has had, also
//! after a death. A few rings are enough where threads begin now and then. A process gets one more for each thread that
//! found none, up to a bound. It frees them after a while without demand, because each is a megabyte of memory. A
//! process that has logged nothing yet has none.
//!
//! Rejected: rings for all possible threads, because a host has hundreds of processes. Rejected: rings that become
//! files only when they are full, because earlier records would not survive. Rejected: publishing empty rings, because
//! every drainer and every recovery would read them.
//!
//! The memory of a ring is made present in pieces, because the drainer sends no record meanwhile: a ring of 8 MiB on a disk
//! took 40 ms in one piece. A thread may take a ring before its memory is complete.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{header::RingMap, writer::producer::Ring};

/// Rings that are ready at first.
const FEW: usize = 2;
/// Largest number of rings made ahead.
const MANY: usize = 16;
/// Time without demand after which rings above [`FEW`] are freed.
const UNWANTED: Duration = Duration::from_secs(60);
/// Pause after a ring could not be made.
const RETRY: Duration = Duration::from_secs(1);

/// A ring that is complete but for its name.
pub(crate) struct ReadyRing {
    pub number: u32,
    pub map: RingMap,
    /// Else it is in memory and needs no name.
    pub in_file: bool,
    /// Byte of the mapping up to which its memory is present; `None` if all of it is.
    pub present: Option<usize>,
}

/// A ring that a thread has, with the byte of the mapping up to which its memory is present.
pub(crate) struct RawRing {
    pub ring: Arc<Ring>,
    pub present: usize,
}

/// Counts of rings made ahead of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreallocStats {
    /// Rings that are ready now.
    pub ready: usize,
    /// Number of rings to keep ready.
    pub aim: usize,
    /// Threads that found one ready.
    pub taken: u64,
    /// Threads that found none and made their own.
    pub missed: u64,
}

pub(crate) struct Prealloc {
    inner: Mutex<Inner>,
    /// True if there may be work: the drainer asks after every pass.
    wanting: AtomicBool,
}

struct Inner {
    ready: VecDeque<ReadyRing>,
    aim: usize,
    /// Rings that were taken before all of their memory was present.
    raw: Vec<RawRing>,
    taken: u64,
    missed: u64,
    wanted_at: Instant,
    not_before: Option<Instant>,
}

impl Default for Prealloc {
    fn default() -> Prealloc {
        let inner = Inner {
            ready: VecDeque::new(),
            aim: FEW,
            raw: Vec::new(),
            taken: 0,
            missed: 0,
            wanted_at: Instant::now(),
            not_before: None,
        };
        Prealloc { inner: Mutex::new(inner), wanting: AtomicBool::new(true) }
    }
}

impl Prealloc {
    /// The one that was made first, for a thread.
    pub fn take(&self) -> Option<ReadyRing> {
        let mut inner = self.lock();
        inner.wanted_at = Instant::now();
        let found = inner.ready.pop_front()?;
        inner.taken += 1;
        self.wanting.store(true, Ordering::Release);
        Some(found)
    }

    /// A thread had to make this one: with one more it would not have. Of the first in a process nothing follows.
    pub fn missed(&self, ring: Arc<Ring>, is_first: bool) {
        let mut inner = self.lock();
        inner.missed += 1;
        if !is_first {
            inner.aim = (inner.aim + 1).min(MANY);
        }
        inner.raw.push(RawRing { ring, present: 0 });
        self.wanting.store(true, Ordering::Release);
    }

    /// Returns true if so few rings are left that more are needed soon.
    pub fn is_low(&self) -> bool {
        let inner = self.lock();
        inner.ready.len() * 2 < inner.aim
    }

    /// Returns true if there may be work.
    pub fn is_wanting(&self) -> bool {
        self.wanting.load(Ordering::Acquire)
    }

    /// Removes and returns a ring whose memory is not all present.
    pub fn take_raw(&self) -> Option<RawRing> {
        self.lock().raw.pop()
    }

    /// Returns a ring whose memory is not all present yet.
    pub fn put_raw(&self, raw: RawRing) {
        self.lock().raw.push(raw);
        self.wanting.store(true, Ordering::Release);
    }

    /// Removes and returns the ring that was made last, if its memory is not all present.
    pub fn take_incomplete(&self) -> Option<ReadyRing> {
        self.lock().ready.pop_back_if(|last| last.present.is_some())
    }

    /// Returns true if a ring should be made; at most `room` threads can still get one of their own.
    pub fn is_short(&self, room: usize) -> bool {
        let inner = self.lock();
        if inner.not_before.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        let short = inner.ready.len() < inner.aim.min(room);
        let is_incomplete = inner.ready.back().is_some_and(|last| last.present.is_some());
        self.wanting.store(short || is_incomplete || !inner.raw.is_empty(), Ordering::Release);
        short
    }

    /// One is ready.
    pub fn put(&self, ahead: ReadyRing) {
        let mut inner = self.lock();
        inner.not_before = None;
        inner.ready.push_back(ahead);
    }

    /// One could not be made: not again for a while. Says that nothing was done.
    pub fn gives_up(&self) -> bool {
        self.lock().not_before = Some(Instant::now() + RETRY);
        false
    }

    /// Removes and returns a ring that has been unused for long.
    pub fn surplus(&self) -> Option<ReadyRing> {
        let mut inner = self.lock();
        let is_unwanted = inner.aim > FEW && inner.wanted_at.elapsed() >= UNWANTED;
        if is_unwanted {
            inner.aim -= 1;
        }
        if inner.ready.len() > inner.aim { inner.ready.pop_back() } else { None }
    }

    pub fn stats(&self) -> PreallocStats {
        let inner = self.lock();
        PreallocStats { ready: inner.ready.len(), aim: inner.aim, taken: inner.taken, missed: inner.missed }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_made_than_threads_can_have_and_a_failure_gives_a_pause() {
        let stock = Prealloc::default();
        assert!(stock.is_wanting() && stock.is_short(1));
        assert!(!stock.is_short(0) && !stock.is_wanting(), "all rings are in use");
        assert!(stock.is_short(9));
        assert!(!stock.gives_up() && !stock.is_short(9));
        assert!(stock.is_wanting(), "it is looked again later");
        assert!(stock.take().is_none() && stock.surplus().is_none());
    }

    #[test]
    fn what_nobody_wants_is_given_up_down_to_a_few() {
        let stock = Prealloc::default();
        stock.lock().aim = FEW + 3;
        assert!(stock.surplus().is_none() && stock.stats().aim == FEW + 3, "somebody wanted one just now");
        for _ in 0..10 {
            stock.lock().wanted_at = Instant::now().checked_sub(UNWANTED).unwrap();
            stock.surplus();
        }
        assert_eq!(stock.stats().aim, FEW);
    }
}
