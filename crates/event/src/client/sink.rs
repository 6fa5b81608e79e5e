//! Sinks of a subscription: a callback, a bounded queue, or a table with the latest value of each attribute.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_bus::clock::Gate;
use tampu_types::event::{AttributeName, Reason, sample::FLAG_REMARK};

use super::event::{Event, Update};

pub(super) type Callback = Box<dyn FnMut(&Event<'_>) + Send>;

pub(super) enum Sink {
    Call(Mutex<Callback>),
    Queue(Queue),
    Latest(Latest),
}

impl Sink {
    /// Returns whether it keeps no event after it was delivered.
    pub fn keeps_nothing(&self) -> bool {
        matches!(self, Sink::Call(_))
    }

    /// Delivers an event, and counts it in `delivered`; returns whether that succeeded. A callback that panics ends neither
    /// its worker nor its subscription.
    pub fn take(&self, event: &Event<'_>, delivered: &AtomicU64) -> bool {
        match self {
            Sink::Call(call) => {
                let mut call = call.lock();
                count(delivered);
                return catch_unwind(AssertUnwindSafe(|| call(event))).is_ok();
            }
            Sink::Queue(queue) => queue.put(event.to_update(), delivered),
            Sink::Latest(latest) => latest.put(event, delivered),
        }
        true
    }
}

/// Counts one more, under the sink's lock: an atomic addition would be a noticeable part of an event's cost.
fn count(delivered: &AtomicU64) {
    delivered.store(delivered.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[derive(Default)]
struct Waiting {
    updates: VecDeque<Update>,
    wakers: Vec<Waker>,
}

/// Bounded queue of events. When it is full, the oldest event is dropped and counted.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    bound: usize,
    gate: Gate,
    dropped: AtomicU64,
}

impl Queue {
    pub fn bounded(bound: usize) -> Queue {
        Queue { waiting: Mutex::default(), bound: bound.max(1), gate: Gate::default(), dropped: AtomicU64::new(0) }
    }

    fn put(&self, update: Update, delivered: &AtomicU64) {
        let mut waiting = self.waiting.lock();
        count(delivered);
        if waiting.updates.len() >= self.bound {
            waiting.updates.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        let first = waiting.updates.is_empty();
        waiting.updates.push_back(update);
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
        if first {
            self.gate.open();
        }
    }

    pub fn pop(&self) -> Option<Update> {
        self.waiting.lock().updates.pop_front()
    }

    pub fn next(&self, timeout: Duration) -> Option<Update> {
        let until = Instant::now() + timeout;
        loop {
            let seen = self.gate.openings();
            if let Some(update) = self.pop() {
                return Some(update);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.gate.wait_host(seen, left);
        }
    }

    pub fn poll(&self, context: &mut Context<'_>) -> Poll<Update> {
        let mut waiting = self.waiting.lock();
        match waiting.updates.pop_front() {
            Some(update) => Poll::Ready(update),
            None => {
                waiting.wakers.retain(|waker| !waker.will_wake(context.waker()));
                waiting.wakers.push(context.waker().clone());
                Poll::Pending
            }
        }
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Table {
    by_name: HashMap<AttributeName, Update>,
    changed: Vec<AttributeName>,
    /// Set of the names in `changed`.
    listed: std::collections::HashSet<AttributeName>,
}

/// The latest event of each attribute: its reading and the state of its source. An event that is overwritten before it
/// was read is counted.
#[derive(Default)]
pub(super) struct Latest {
    table: Mutex<Table>,
    conflated: AtomicU64,
}

impl Latest {
    fn put(&self, event: &Event<'_>, delivered: &AtomicU64) {
        let name = &event.attribute.config.name;
        let mut table = self.table.lock();
        count(delivered);
        let Table { by_name, changed, listed } = &mut *table;
        let mut update = event.to_update();
        if let Some(before) = by_name.get_mut(name) {
            let remark = event.reading.is_some_and(|reading| reading.flags & FLAG_REMARK != 0);
            if (event.reading.is_none() || remark) && event.reason != Reason::ConfigChanged {
                // The last value stays visible, with the new state of its source.
                update.keep_reading_of(before);
            }
            *before = update;
        } else {
            by_name.insert(name.clone(), update);
        }
        if listed.insert(name.clone()) {
            changed.push(name.clone());
        } else {
            self.conflated.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn changed(&self) -> Vec<Update> {
        let mut table = self.table.lock();
        let changed = std::mem::take(&mut table.changed);
        table.listed.clear();
        changed.iter().filter_map(|name| table.by_name.get(name).cloned()).collect()
    }

    pub fn get(&self, name: &AttributeName) -> Option<Update> {
        self.table.lock().by_name.get(name).cloned()
    }

    pub fn conflated(&self) -> u64 {
        self.conflated.load(Ordering::Relaxed)
    }
}
