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

use super::{
    dropped::DroppedEvents,
    event::{Event, Update},
};

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

    /// Waits for a running call, and drops the callback: it is not called again.
    pub fn end_calls(&self) {
        if let Sink::Call(call) = self {
            let before = std::mem::replace(&mut *call.lock(), Box::new(|_| {}));
            drop(before);
        }
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
    dropped: DroppedEvents,
    wakers: Vec<Waker>,
}

impl Waiting {
    fn pop(&mut self) -> Option<Update> {
        let mut update = self.updates.pop_front()?;
        self.dropped.report(&mut update);
        Some(update)
    }
}

/// Bounded queue of events. When it is full, the oldest event is dropped and counted, and the next one of its attribute
/// reports it as missing.
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
            if let Some(oldest) = waiting.updates.pop_front() {
                waiting.dropped.note(&oldest);
            }
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
        self.waiting.lock().pop()
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
        match waiting.pop() {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tampu_bus::SourceInfo;
    use tampu_types::{
        Incarnation, SourceName, Time,
        event::{AttributeConfig, DataType, Format, Missed},
    };

    use super::*;
    use crate::client::event::{AttributeInfo, source_event};

    /// An event of a life of an attribute's source, or a report without a reading.
    fn update(name: &str, boot: u32, number: u64, missed: Missed, reads: bool) -> Update {
        let config = AttributeConfig::new(AttributeName::new(name).unwrap(), DataType::Long, Format::Scalar);
        let info = Arc::new(AttributeInfo { number: 1, epoch: 1, config });
        let source =
            SourceInfo { source: SourceName::new("s").unwrap(), incarnation: Incarnation { boot, ..Incarnation::default() } };
        let mut update = source_event(&info, &source, Reason::Update, Time(0)).to_update();
        (update.number, update.missed) = (number, missed);
        if reads {
            update.set_bytes(b"event");
        }
        update
    }

    fn came(queue: &Queue) -> Vec<(u64, Missed)> {
        std::iter::from_fn(|| queue.pop()).map(|update| (update.number, update.missed)).collect()
    }

    #[test]
    fn what_a_full_queue_drops_is_missing_before_the_attributes_next_event() {
        let (queue, delivered) = (Queue::bounded(3), AtomicU64::new(0));
        let put = |name, boot, number, missed, reads| queue.put(update(name, boot, number, missed, reads), &delivered);
        for number in 1..=4 {
            put("a/b/c/d", 1, number, Missed::Nothing, true);
        }
        put("a/b/c/e", 1, 7, Missed::Nothing, true);
        assert_eq!(came(&queue), [(3, Missed::Exactly(1, 3)), (4, Missed::Nothing), (7, Missed::Nothing)]);
        // A gap that is dropped counts with those before and behind it; one that comes is longer.
        put("a/b/c/d", 1, 5, Missed::Nothing, true);
        put("a/b/c/d", 1, 0, Missed::Exactly(6, 9), false);
        put("a/b/c/e", 1, 8, Missed::Nothing, true);
        put("a/b/c/e", 1, 9, Missed::Nothing, true);
        put("a/b/c/d", 1, 11, Missed::Exactly(9, 11), true);
        assert_eq!(came(&queue), [(8, Missed::Nothing), (9, Missed::Nothing), (11, Missed::Exactly(5, 11))]);
        assert_eq!(queue.dropped(), 4);
    }

    #[test]
    fn of_another_life_the_number_of_dropped_events_is_unknown_and_reports_count_for_nothing() {
        let (queue, delivered) = (Queue::bounded(1), AtomicU64::new(0));
        let put = |name, boot, number, missed, reads| queue.put(update(name, boot, number, missed, reads), &delivered);
        put("a/b/c/d", 1, 5, Missed::Nothing, true);
        put("a/b/c/d", 2, 1, Missed::Nothing, true);
        assert_eq!(came(&queue), [(1, Missed::Unknown)]);
        put("a/b/c/d", 2, 0, Missed::Nothing, false);
        put("a/b/c/d", 2, 2, Missed::Nothing, true);
        assert_eq!(came(&queue), [(2, Missed::Nothing)]);
        assert_eq!(queue.dropped(), 2);
    }
}
