//! A bounded queue of events from the crates' threads to a thread of Python.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use tampu_event::client::DroppedEvents;

use crate::{
    bell::{Bell, SIGNALS},
    event::holds::Holds,
};

/// Most bytes of events in one queue: a subscription's bound counts events, and images are long.
const MOST_BYTES: usize = 256 << 20;

/// Item of an inbox. One that is dropped may have the next one report it.
pub trait Queued {
    /// Bytes that the item holds beside its own.
    fn size(&self) -> usize {
        0
    }

    /// Returns whether a worker waits for the program's use of the item, which is in its server's memory.
    fn is_held(&self) -> bool {
        false
    }

    /// Notes that this item was dropped.
    fn dropped(&self, _events: &mut DroppedEvents) {}

    /// Reports the items that were dropped before this one.
    fn report(&mut self, _events: &mut DroppedEvents) {}
}

/// Number of a read that is due.
impl Queued for u64 {}

struct Waiting<T> {
    items: VecDeque<T>,
    /// Bytes that the items hold.
    bytes: usize,
    events: DroppedEvents,
    dropped: u64,
    closed: bool,
    /// The reader has found the queue empty and waits for the bell.
    armed: bool,
    /// Nobody waits for room any more: items for which there is none are dropped.
    let_go: bool,
}

impl<T: Queued> Waiting<T> {
    fn note_dropped(&mut self, item: &T) {
        item.dropped(&mut self.events);
        self.dropped += 1;
    }
}

/// Queue that drops its oldest items when it is full, and counts them.
pub struct Inbox<T> {
    waiting: Mutex<Waiting<T>>,
    filled: Condvar,
    emptied: Condvar,
    holds: Arc<Holds>,
    bound: usize,
    bell: Bell,
}

impl<T: Queued> Inbox<T> {
    /// Makes a queue of at most `bound` items.
    pub fn bounded(bound: usize) -> std::io::Result<Inbox<T>> {
        let waiting = Waiting {
            items: VecDeque::new(),
            bytes: 0,
            events: DroppedEvents::default(),
            dropped: 0,
            closed: false,
            armed: false,
            let_go: false,
        };
        Ok(Inbox {
            waiting: Mutex::new(waiting),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            holds: Arc::default(),
            bound: bound.max(1),
            bell: Bell::new()?,
        })
    }

    /// Adds an item. Never waits.
    pub fn put(&self, item: T) {
        self.add(&mut self.waiting.lock(), item);
    }

    fn add(&self, waiting: &mut Waiting<T>, mut item: T) {
        if waiting.let_go {
            // The bytes of a held item are not its own any more. Those behind report it, and not those before.
            if item.is_held() {
                return waiting.note_dropped(&item);
            }
            item.report(&mut waiting.events);
        }
        while !self.has_room(waiting, &item)
            && let Some(oldest) = waiting.items.pop_front()
        {
            waiting.bytes -= oldest.size();
            waiting.note_dropped(&oldest);
        }
        waiting.bytes += item.size();
        waiting.items.push_back(item);
        self.wake(waiting);
    }

    /// Returns whether the queue takes an item without dropping one. A queue takes one item of any length.
    fn has_room(&self, waiting: &Waiting<T>, item: &T) -> bool {
        let fits = waiting.bytes + item.size() <= MOST_BYTES || waiting.items.is_empty();
        waiting.items.len() < self.bound && fits
    }

    /// Adds an item once there is room.
    pub fn put_waiting(&self, item: T) {
        let mut waiting = self.waiting.lock();
        while !self.has_room(&waiting, &item) && !waiting.let_go {
            self.emptied.wait(&mut waiting);
        }
        self.add(&mut waiting, item);
    }

    /// Ends the waits for room in the queue, and for the program's use of an item. Such items are dropped, and counted.
    pub fn let_go(&self) {
        let mut waiting = self.waiting.lock();
        waiting.let_go = true;
        for mut item in std::mem::take(&mut waiting.items) {
            if item.is_held() {
                waiting.bytes -= item.size();
                waiting.note_dropped(&item);
            } else {
                item.report(&mut waiting.events);
                waiting.items.push_back(item);
            }
        }
        drop(waiting);
        self.emptied.notify_all();
        self.holds.end();
    }

    /// Returns the waits for the program's use of items.
    pub fn holds(&self) -> &Arc<Holds> {
        &self.holds
    }

    fn wake(&self, waiting: &mut Waiting<T>) {
        self.filled.notify_all();
        if std::mem::take(&mut waiting.armed) {
            self.bell.ring();
        }
    }

    /// Ends the queue: readers get what is in it, and then the end.
    pub fn close(&self) {
        self.let_go();
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        self.wake(&mut waiting);
    }

    /// Takes at most `most` items, without waiting. `None` at the end.
    pub fn take(&self, most: usize) -> Option<VecDeque<T>> {
        let mut waiting = self.waiting.lock();
        if waiting.items.is_empty() {
            return if waiting.closed { None } else { Some(VecDeque::new()) };
        }
        let mut taken = match waiting.items.len() <= most {
            true => std::mem::take(&mut waiting.items),
            false => waiting.items.drain(..most).collect(),
        };
        waiting.bytes -= taken.iter().map(T::size).sum::<usize>();
        taken.iter_mut().for_each(|item| item.report(&mut waiting.events));
        self.emptied.notify_all();
        Some(taken)
    }

    /// Takes items as [`Inbox::take`] does. If there are none, the bell rings with the next one.
    pub fn take_or_arm(&self, most: usize) -> Option<VecDeque<T>> {
        self.bell.silence();
        self.waiting.lock().armed = true;
        let taken = self.take(most);
        if taken.as_ref().is_none_or(|taken| !taken.is_empty()) {
            self.waiting.lock().armed = false;
        }
        taken
    }

    /// Waits for items, at most so long, and takes them. Other threads of Python run meanwhile, and signals are handled.
    pub fn wait(&self, py: Python<'_>, most: usize, timeout: Option<Duration>) -> PyResult<Option<VecDeque<T>>>
    where
        T: Send,
    {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let taken = self.take(most);
            let left = until.map_or(SIGNALS, |until| until.saturating_duration_since(Instant::now()).min(SIGNALS));
            match taken {
                Some(taken) if taken.is_empty() && !left.is_zero() => {}
                taken => return Ok(taken),
            }
            py.detach(|| {
                let mut waiting = self.waiting.lock();
                if waiting.items.is_empty() && !waiting.closed {
                    self.filled.wait_for(&mut waiting, left);
                }
            });
            py.check_signals()?;
        }
    }

    /// Returns the descriptor that becomes readable when the bell rings.
    pub fn descriptor(&self) -> i32 {
        self.bell.descriptor()
    }

    /// Returns the number of dropped items.
    pub fn dropped(&self) -> u64 {
        self.waiting.lock().dropped
    }
}
