//! The first events of an attribute, for readers on other hosts.
//!
//! A subscriber that is older than an attribute is given every event from the first on. The stream of another host has
//! the attribute's events only from the moment its wish arrives. So the events of an attribute's first seconds are kept,
//! and written to that stream first.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Time for which the first events are kept, ns: a wish comes within milliseconds, on a busy host within seconds.
const EARLY: u64 = 5_000_000_000;
/// Bytes kept of all attributes of a server together. An attribute whose event exceeds it keeps none; the events that a
/// subscriber was not given are reported to it by number.
pub(super) const EARLY_BYTES: usize = 4 << 20;
/// Bytes that each event counts beside its own.
const OVERHEAD: usize = 48;

/// Bytes that the attributes of a server keep.
pub(super) type EarlyBytes = Arc<AtomicUsize>;

/// Encoded first events of one attribute, from number 1.
pub(super) struct EarlyEvents {
    /// None once they are kept no longer.
    events: Option<Vec<Box<[u8]>>>,
    bytes: usize,
    /// Time until which they are kept, monotonic ns.
    until: u64,
    total: EarlyBytes,
}

impl EarlyEvents {
    /// Returns the start at this time, monotonic ns.
    pub fn since(now: u64, total: EarlyBytes) -> EarlyEvents {
        EarlyEvents { events: Some(Vec::new()), bytes: 0, until: now + EARLY, total }
    }

    /// Keeps an event.
    #[inline]
    pub fn keep(&mut self, event: &[u8], now: u64) {
        if self.events.is_some() {
            self.keep_early(event, now);
        }
    }

    fn keep_early(&mut self, event: &[u8], now: u64) {
        let bytes = event.len() + OVERHEAD;
        if now > self.until || self.total.fetch_add(bytes, Ordering::Relaxed) + bytes > EARLY_BYTES {
            if now <= self.until {
                self.total.fetch_sub(bytes, Ordering::Relaxed);
            }
            return self.end();
        }
        self.bytes += bytes;
        self.events.get_or_insert_default().push(event.into());
    }

    /// Returns those of an attribute that needs none.
    pub fn none() -> EarlyEvents {
        EarlyEvents { events: None, bytes: 0, until: 0, total: EarlyBytes::default() }
    }

    /// Returns whether further events are kept.
    pub fn is_kept(&self) -> bool {
        self.events.is_some()
    }

    /// Returns all events so far, if they are kept.
    pub fn all(&self) -> &[Box<[u8]>] {
        self.events.as_deref().unwrap_or_default()
    }

    /// Ends keeping them if their time is over.
    pub fn expire(&mut self, now: u64) {
        if now > self.until {
            self.end();
        }
    }

    /// Ends keeping them.
    pub fn end(&mut self) {
        self.events = None;
        self.total.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for EarlyEvents {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_kept_for_a_while_and_up_to_a_number_of_bytes() {
        let total = EarlyBytes::default();
        let mut one = EarlyEvents::since(0, total.clone());
        let mut other = EarlyEvents::since(0, total.clone());
        one.keep(&[1; 100], 1);
        other.keep(&[2; 100], EARLY);
        assert_eq!((one.all().len(), other.all().len()), (1, 1));
        other.keep(&[0; EARLY_BYTES], EARLY);
        assert!(other.all().is_empty(), "a part of the first events is not all of them");
        one.expire(EARLY);
        assert_eq!(one.all().len(), 1);
        one.keep(&[3; 100], EARLY + 1);
        assert!(one.all().is_empty());
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
