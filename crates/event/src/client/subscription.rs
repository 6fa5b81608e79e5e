//! Subscription handles of a program. Dropping a handle ends its subscription.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use tampu_types::event::AttributeName;

use super::{
    commands::{Command, SubscriptionCommands},
    event::Update,
    sink::{Latest, Queue, Sink},
    subscriber::SubscriptionState,
};

/// Counters of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionStats {
    /// Number of bound attributes, which a living server has.
    pub bound: usize,
    /// Number of delivered events.
    pub delivered: u64,
    /// Number of skipped events, whose kinds this release does not know.
    pub unknown_kinds: u64,
    /// Number of readings that the filter rejected.
    pub held_back: u64,
    /// Number of events that a full queue dropped, or that newer values replaced before they were read.
    pub dropped: u64,
    /// Number of calls of the callback that ended in a panic.
    pub panicked: u64,
}

/// Subscription with a callback. It ends when it is dropped; a running call is finished.
pub struct Subscription {
    pub(super) sub: Arc<SubscriptionState>,
    pub(super) commands: Weak<SubscriptionCommands>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.sub.active.store(false, Ordering::Release);
        if let Some(commands) = self.commands.upgrade() {
            commands.send(Command::Unsubscribe(self.sub.clone()));
        }
    }
}

impl Subscription {
    /// Ends the subscription, and waits for a call that runs in another thread. Afterwards the callback is not called, and it
    /// is dropped. A callback must not call this for its own subscription: it would wait for itself.
    pub fn end(self) {
        self.sub.active.store(false, Ordering::Release);
        self.sub.sink.end_calls();
    }

    /// Returns the subscription's counters.
    pub fn stats(&self) -> SubscriptionStats {
        let dropped = match &self.sub.sink {
            Sink::Call(_) => 0,
            Sink::Queue(queue) => queue.dropped(),
            Sink::Latest(latest) => latest.conflated(),
        };
        SubscriptionStats {
            bound: self.sub.bound.load(Ordering::Relaxed),
            delivered: self.sub.delivered.load(Ordering::Relaxed),
            unknown_kinds: self.sub.unknown.load(Ordering::Relaxed),
            held_back: self.sub.held_back.load(Ordering::Relaxed),
            dropped,
            panicked: self.sub.panicked.load(Ordering::Relaxed),
        }
    }
}

/// Subscription with a bounded queue. When the queue is full, the oldest event is dropped, counted in
/// [`SubscriptionStats::dropped`], and reported as missing by the next event of its attribute.
pub struct EventStream {
    pub(super) subscription: Subscription,
}

impl EventStream {
    fn queue(&self) -> Option<&Queue> {
        match &self.subscription.sub.sink {
            Sink::Queue(queue) => Some(queue),
            _ => None,
        }
    }

    /// Returns the next event, if there is one.
    pub fn try_next(&self) -> Option<Update> {
        self.queue()?.pop()
    }

    /// Returns the next event within this time.
    pub fn next(&self, timeout: Duration) -> Option<Update> {
        self.queue()?.next(timeout)
    }

    /// Polls for the next event, for a runtime.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Update> {
        self.queue().map_or(Poll::Pending, |queue| queue.poll(context))
    }

    /// Waits for the next event with `await`, in any runtime.
    pub async fn recv(&self) -> Update {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Returns the subscription's counters.
    pub fn stats(&self) -> SubscriptionStats {
        self.subscription.stats()
    }
}

/// Subscription that keeps the latest event of each attribute.
pub struct LatestValues {
    pub(super) subscription: Subscription,
}

impl LatestValues {
    fn latest(&self) -> Option<&Latest> {
        match &self.subscription.sub.sink {
            Sink::Latest(latest) => Some(latest),
            _ => None,
        }
    }

    /// Returns the attributes that changed since the last call, each once.
    pub fn changed(&self) -> Vec<Update> {
        self.latest().map(Latest::changed).unwrap_or_default()
    }

    /// Returns the latest event of one attribute.
    pub fn get(&self, name: &AttributeName) -> Option<Update> {
        self.latest()?.get(name)
    }

    /// Returns the subscription's counters.
    pub fn stats(&self) -> SubscriptionStats {
        self.subscription.stats()
    }
}
