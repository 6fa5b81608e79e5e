//! The state of one subscription: its options, its sink and its counters.
//!
//! The directory and the stream workers share it with the program's handle.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::{event::Event, options::SubscribeOptions, sink::Sink};

/// State of a subscription inside this process.
pub(super) struct SubscriptionState {
    pub id: u64,
    pub options: SubscribeOptions,
    pub sink: Sink,
    pub active: AtomicBool,
    /// Time of the subscription, ns UTC. Events of incarnations that start later are delivered from their first one.
    pub created: i64,
    pub delivered: AtomicU64,
    pub unknown: AtomicU64,
    pub held_back: AtomicU64,
    pub panicked: AtomicU64,
    pub bound: AtomicUsize,
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
