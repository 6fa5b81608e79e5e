//! A subscription, as its subscriber holds it: dropping it ends it.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tampu_types::event::{AttributeName, AttributePattern, Kinds};

use super::{
    Command, Shared,
    event::{Event, Update},
    filter::Filter,
    sink::{Latest, Queue, Sink},
};

/// What is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Which attributes: names, patterns, as many as one likes.
    pub attributes: Vec<AttributePattern>,
    /// Which kinds of events. Word of the source, gaps and configurations come in any case.
    pub kinds: Kinds,
    /// Whether the current value comes first.
    pub first: bool,
    /// Whether what a link drops is fetched again. If not, newer values replace what is lost, and nobody is ever waited for.
    pub reliable: bool,
    /// See [`Wish::in_place`].
    pub in_place: bool,
    /// Which readings are wanted.
    pub filter: Filter,
}

impl Wish {
    /// Changes of these attributes, the current value first.
    pub fn of(attributes: impl IntoIterator<Item = AttributePattern>) -> Wish {
        Wish {
            attributes: attributes.into_iter().collect(),
            kinds: Kinds::CHANGE,
            first: true,
            reliable: true,
            in_place: false,
            filter: Filter::default(),
        }
    }

    /// The same for other kinds.
    pub fn kinds(mut self, kinds: Kinds) -> Wish {
        self.kinds = kinds;
        self
    }

    /// Only such readings.
    pub fn filter(mut self, filter: Filter) -> Wish {
        self.filter = filter;
        self
    }

    /// Without the current value.
    pub fn without_first(mut self) -> Wish {
        self.first = false;
        self
    }

    /// Without healing: for screens that only want what is newest.
    pub fn unreliable(mut self) -> Wish {
        self.reliable = false;
        self
    }

    /// For callbacks: long values of numbers are seen where their server on this host wrote them, without a copy, if all
    /// subscriptions of this client to the attribute want that. A server that no longer waits for this reader may take the memory
    /// back while the callback looks at it; then a [`tampu_types::event::Reason::Gap`] with the event's number follows at once,
    /// and what was seen of it is to be thrown away.
    pub fn in_place(mut self) -> Wish {
        self.in_place = true;
        self
    }
}

/// A subscription inside this process.
pub(super) struct Sub {
    pub id: u64,
    pub wish: Wish,
    pub sink: Sink,
    pub active: AtomicBool,
    /// When it was made, ns UTC: lives that began later are told from their first event on.
    pub created: i64,
    pub delivered: AtomicU64,
    pub unknown: AtomicU64,
    pub held_back: AtomicU64,
    pub panicked: AtomicU64,
    pub bound: AtomicUsize,
}

impl Sub {
    /// Hands an event over.
    pub fn hand(&self, event: &Event<'_>) {
        if !self.active.load(Ordering::Acquire) {
            return;
        }
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if !self.sink.take(event) {
            self.panicked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionStats {
    /// Attributes that a living server has.
    pub bound: usize,
    /// Events handed over.
    pub delivered: u64,
    /// Events of kinds that this release does not know; they were stepped over.
    pub unknown_kinds: u64,
    /// Readings that the filter held back.
    pub held_back: u64,
    /// Events that a full queue dropped, or that newer values replaced before they were looked at.
    pub dropped: u64,
    /// Calls of the callback that ended in a panic.
    pub panicked: u64,
}

/// A subscription whose events go to a callback. Ends when it is dropped; a call that has begun meanwhile is finished.
pub struct Subscription {
    pub(super) sub: Arc<Sub>,
    pub(super) shared: Weak<Shared>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.sub.active.store(false, Ordering::Release);
        if let Some(shared) = self.shared.upgrade() {
            shared.command(Command::Unsubscribe(self.sub.clone()));
        }
    }
}

impl Subscription {
    /// Its counters.
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

/// A subscription whose events are pulled. They wait in a bounded queue; when it is full the oldest is dropped, counted in
/// [`SubscriptionStats::dropped`].
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

    /// The next event, if there is one.
    pub fn try_next(&self) -> Option<Update> {
        self.queue()?.pop()
    }

    /// The next event within this time.
    pub fn next(&self, timeout: Duration) -> Option<Update> {
        self.queue()?.next(timeout)
    }

    /// The next event, as a runtime asks for it.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Update> {
        self.queue().map_or(Poll::Pending, |queue| queue.poll(context))
    }

    /// The next event, for `await`; needs no runtime of a certain make.
    pub async fn recv(&self) -> Update {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Its counters.
    pub fn stats(&self) -> SubscriptionStats {
        self.subscription.stats()
    }
}

/// A subscription that keeps the latest of each attribute.
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

    /// What is new since the last call, each attribute once.
    pub fn changed(&self) -> Vec<Update> {
        self.latest().map(Latest::changed).unwrap_or_default()
    }

    /// The latest of one attribute.
    pub fn get(&self, name: &AttributeName) -> Option<Update> {
        self.latest()?.get(name)
    }

    /// Its counters.
    pub fn stats(&self) -> SubscriptionStats {
        self.subscription.stats()
    }
}
