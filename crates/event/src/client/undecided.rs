//! Events of an attribute that came before it was known whether its subscriptions are older than it.
//!
//! A subscription that is older than an attribute is given each event from the first one on, and is told of those that it missed.
//! A younger one begins with the current value. UTC cannot tell which it is: the clocks of two hosts may be an hour apart, and
//! that of one host may have been set meanwhile. So the answer of the server has the age of the attribute, by the server's steady
//! clock. Until it comes, the events wait here. UTC decides only within the time that the question and its answer took, and without
//! an answer: if the server ends, or the events are too many.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tampu_bus::clock::Clock;

use super::{event::SampleTimes, subscriber::SubscriptionState};

/// Bytes kept of all attributes of a source.
const MOST: usize = 16 << 20;

/// Bytes of such events of one source.
pub(super) type UndecidedBytes = Arc<AtomicUsize>;

pub(super) struct Undecided {
    clock: Arc<dyn Clock>,
    begun_utc: u64,
    asked: Option<u64>,
    samples: Vec<(Box<[u8]>, SampleTimes)>,
    bytes: usize,
    total: UndecidedBytes,
}

impl Undecided {
    /// Begins for an attribute that began at this time by the clock of its server, ns UTC.
    pub fn new(clock: Arc<dyn Clock>, begun_utc: u64, total: UndecidedBytes) -> Undecided {
        Undecided { clock, begun_utc, asked: None, samples: Vec::new(), bytes: 0, total }
    }

    /// Notes that the server is asked for the current value at this time, monotonic ns.
    pub fn ask(&mut self, now: u64) {
        self.asked.get_or_insert(now);
    }

    /// Keeps an event. Returns false if there is no room for more.
    pub fn keep(&mut self, bytes: &[u8], times: SampleTimes) -> bool {
        self.bytes += bytes.len();
        let total = self.total.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        self.samples.push((bytes.into(), times));
        total <= MOST
    }

    /// Decides whether a subscription is older than the attribute, whose age in ns the server tells at this moment.
    pub fn is_older(&self, sub: &SubscriptionState, age: Option<u64>) -> bool {
        let seems_older = self.begun_utc > sub.created.max(0).cast_unsigned();
        let Some(age) = age else { return seems_older };
        // The server looked at its clock between the question and now.
        let first = self.asked.map_or(0, |asked| asked.saturating_sub(age));
        let last = self.clock.monotonic().saturating_sub(age);
        sub.created_at < first || sub.created_at < last && seems_older
    }

    /// Returns the events, and keeps them no longer.
    pub fn take(&mut self) -> Vec<(Box<[u8]>, SampleTimes)> {
        std::mem::take(&mut self.samples)
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
