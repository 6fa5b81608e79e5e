//! The state of one subscription: its options, its sink and its counters.
//!
//! The directory and the stream workers share it with the program's handle.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tampu_types::{Incarnation, event::AttributeName};

use super::{event::Event, options::SubscribeOptions, sink::Sink};

/// Most attributes of one subscription whose last numbers are kept when their source is gone.
const POSITIONS: usize = 10_000;

/// State of a subscription inside this process.
pub(super) struct SubscriptionState {
    pub id: u64,
    pub options: SubscribeOptions,
    pub sink: Sink,
    pub active: AtomicBool,
    /// Time of the subscription, ns UTC.
    pub created: i64,
    /// The same in monotonic ns. Events of attributes that begin later are delivered from their first one.
    pub created_at: u64,
    pub delivered: AtomicU64,
    pub unknown: AtomicU64,
    pub held_back: AtomicU64,
    pub panicked: AtomicU64,
    pub bound: AtomicUsize,
    pub positions: Mutex<LastPositions>,
}

/// The last events that were delivered of incarnations that count as dead.
///
/// A host that cannot be reached for long counts as dead, and so do its processes. When such a process is heard again,
/// its events are still counted from its start, so the missing ones are known exactly.
#[derive(Default)]
pub(super) struct LastPositions {
    by_name: HashMap<AttributeName, (Incarnation, u64)>,
}

impl LastPositions {
    /// Keeps the number of an attribute's last event, if there is room.
    pub fn keep(&mut self, name: &AttributeName, incarnation: Incarnation, number: u64) {
        if self.by_name.len() < POSITIONS || self.by_name.contains_key(name) {
            self.by_name.insert(name.clone(), (incarnation, number));
        }
    }

    /// Forgets an attribute's number, and returns it if it is of this incarnation.
    pub fn take(&mut self, name: &AttributeName, incarnation: Incarnation) -> Option<u64> {
        self.by_name.remove(name).filter(|(kept, _)| *kept == incarnation).map(|(_, number)| number)
    }
}

impl SubscriptionState {
    /// Delivers an event to the sink.
    pub fn deliver(&self, event: &Event<'_>) {
        if !self.active.load(Ordering::Acquire) {
            return;
        }
        if !self.sink.take(event, &self.delivered) {
            self.panicked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_of_one_incarnation_and_used_once() {
        let name = AttributeName::new("a/b/c/d").unwrap();
        let life = |start| Incarnation { start, ..Incarnation::default() };
        let mut positions = LastPositions::default();
        positions.keep(&name, life(1), 7);
        assert_eq!((positions.take(&name, life(1)), positions.take(&name, life(1))), (Some(7), None));
        positions.keep(&name, life(1), 7);
        assert_eq!((positions.take(&name, life(2)), positions.take(&name, life(1))), (None, None), "another took over");
    }
}
