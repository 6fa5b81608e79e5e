//! The bounded queue between the subscription, which never waits, and the thread that writes to the disk.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tampu_bus::access::Denied;

/// Bytes of events that may wait for the archive. Events beyond it are dropped, counted, reported, and recorded as a gap.
pub(super) const WAITING: usize = 32 << 20;
/// Bytes that gaps and changes of sources may take beyond [`WAITING`], so that a report of missing events always finds
/// room.
const GAPS: usize = 8 << 20;
/// Bytes and number of events that are passed to the archive together.
const TOGETHER: usize = 1 << 20;
const AT_ONCE: usize = 1000;

/// Samples that wait for the archive.
#[derive(Default)]
pub(super) struct Waiting {
    pub samples: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Queue of encoded events.
#[derive(Default)]
pub(super) struct EventQueue {
    waiting: Mutex<Waiting>,
    more: Condvar,
    /// True when the history ends.
    ending: AtomicBool,
    /// Rows written since the start.
    pub(super) kept: AtomicU64,
    /// Events that could not be kept since the start.
    pub(super) lost: AtomicU64,
    /// Events that the access rules refused since the start.
    pub(super) refused: AtomicU64,
    /// Refusals since the last report: the number, and one of them in words.
    refusals: Mutex<(u64, String)>,
}

impl EventQueue {
    pub(super) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    /// Returns the waiting samples, their bytes, the rows written and the events lost.
    pub(super) fn counts(&self) -> (usize, usize, u64, u64) {
        let waiting = self.waiting();
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (waiting.samples.len(), waiting.bytes, now(&self.kept), now(&self.lost))
    }

    /// Counts an event that the access rules refuse.
    pub(super) fn refuse(&self, source: &str, denied: &Denied) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let mut refusals = self.refusals.lock();
        refusals.0 += 1;
        if refusals.1.is_empty() {
            refusals.1 = format!("from {source}: {denied}");
        }
    }

    /// Takes the refusals since the last call.
    pub(super) fn take_refusals(&self) -> Option<(u64, String)> {
        Some(std::mem::take(&mut *self.refusals.lock())).filter(|(events, _)| *events > 0)
    }

    /// Adds samples that belong together, or none of them. Returns whether there was room.
    pub(super) fn put(&self, samples: Vec<Vec<u8>>) -> bool {
        self.put_within(WAITING, samples)
    }

    /// Adds gaps and changes of a source. Returns whether there was room.
    pub(super) fn put_gaps(&self, samples: Vec<Vec<u8>>) -> bool {
        self.put_within(WAITING + GAPS, samples)
    }

    fn put_within(&self, bound: usize, samples: Vec<Vec<u8>>) -> bool {
        let bytes: usize = samples.iter().map(Vec::len).sum();
        let mut waiting = self.waiting();
        if waiting.bytes + bytes > bound {
            drop(waiting);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        waiting.bytes += bytes;
        waiting.samples.extend(samples);
        drop(waiting);
        self.more.notify_one();
        true
    }

    /// Takes as many samples as are written together; waits up to 1 s for the first.
    pub(super) fn next(&self) -> Vec<Vec<u8>> {
        let mut waiting = self.waiting();
        if waiting.samples.is_empty() && !self.is_ending() {
            self.more.wait_for(&mut waiting, Duration::from_secs(1));
        }
        let (mut samples, mut bytes) = (Vec::new(), 0);
        while samples.len() < AT_ONCE && bytes < TOGETHER {
            let Some(sample) = waiting.samples.pop_front() else { break };
            bytes += sample.len();
            samples.push(sample);
        }
        waiting.bytes -= bytes;
        samples
    }

    /// Drops the waiting samples and counts them as lost, with `taken` others. The next hub finds their numbers missing.
    pub(super) fn abandon(&self, taken: usize) {
        let waiting = std::mem::take(&mut *self.waiting());
        self.lost.fetch_add((taken + waiting.samples.len()) as u64, Ordering::Relaxed);
    }

    /// Notifies the writer to finish.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Release);
        self.more.notify_all();
    }

    /// Returns whether the history ends.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}
