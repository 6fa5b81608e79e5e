//! What reaches the backend without a log ring: who waits for a flush, and, where there are no files beside the rings, records
//! that are too long for a ring.
//!
//! Bound: bytes of the records that wait. When full, the caller waits up to its bound, then drops the record; one that has
//! waited in vain marks the inlet as stalled, and nobody waits again until the backend has taken something: a bus that stands
//! still costs an application one wait, not one a record.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    time::Duration,
};

use tampu_types::LogRecord;

/// What waits.
pub(crate) enum Parcel {
    /// A record, complete but for where it goes, and whether it leaves the process.
    Record(Box<LogRecord>, crate::logger::lane::Reach),
    /// Somebody waits until everything before it is delivered, at most this long.
    Flush(Duration, Sender<bool>),
    /// The same until it is committed by a collector.
    Keep(Duration, Sender<bool>),
}

/// The queue.
pub(crate) struct Inlet {
    queue: Mutex<Queue>,
    room: Condvar,
    stalled: AtomicBool,
    limit: usize,
}

#[derive(Default)]
struct Queue {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    closing: bool,
}

impl Inlet {
    pub fn new(limit: usize) -> Inlet {
        Inlet { queue: Mutex::default(), room: Condvar::new(), stalled: AtomicBool::new(false), limit }
    }

    /// Queues a record that takes so many bytes, waiting at most this long for room; false if there is none.
    pub fn push(&self, parcel: Parcel, bytes: usize, wait: Duration) -> bool {
        let queue = self.lock();
        // A record longer than the whole queue still goes when the queue is empty.
        let full = |queue: &mut Queue| queue.bytes > 0 && queue.bytes + bytes > self.limit;
        let wait = if self.stalled.load(Ordering::Relaxed) { Duration::ZERO } else { wait };
        let (mut queue, waited) = self.room.wait_timeout_while(queue, wait, full).unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            self.stalled.fetch_or(!wait.is_zero(), Ordering::Relaxed);
            return false;
        }
        queue.bytes += bytes;
        queue.parcels.push_back(parcel);
        true
    }

    /// Queues something whatever waits already.
    pub fn force(&self, parcel: Parcel) {
        self.lock().parcels.push_back(parcel);
    }

    /// Takes what waits; says whether the last handle has gone.
    pub fn take(&self) -> (VecDeque<Parcel>, bool) {
        let mut queue = self.lock();
        queue.bytes = 0;
        let taken = (std::mem::take(&mut queue.parcels), queue.closing);
        drop(queue);
        if !taken.0.is_empty() {
            self.stalled.store(false, Ordering::Relaxed);
            self.room.notify_all();
        }
        taken
    }

    /// No more will come.
    pub fn close(&self) {
        self.lock().closing = true;
    }

    /// Whether no more will come.
    pub fn is_closing(&self) -> bool {
        self.lock().closing
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;
    use crate::logger::lane::Reach;

    #[test]
    fn a_full_inlet_makes_callers_wait_once_until_something_is_taken() {
        let inlet = Inlet::new(100);
        let record = || Parcel::Record(Box::new(LogRecord::new(Level::Info, "x")), Reach::Central);
        assert!(inlet.push(record(), 60, Duration::ZERO));
        assert!(!inlet.push(record(), 60, Duration::from_millis(1)));
        // Nobody waits while it is stalled: an hour would otherwise pass here.
        assert!(!inlet.push(record(), 60, Duration::from_secs(3600)));
        assert_eq!(inlet.take().0.len(), 1);
        assert!(inlet.push(record(), 200, Duration::ZERO), "a long record passes an empty inlet");
        inlet.close();
        assert!(inlet.take().1);
    }
}
