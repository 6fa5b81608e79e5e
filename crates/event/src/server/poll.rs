//! Reading what is polled, when it is due.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::Mutex,
    time::Duration,
};

use tampu_bus::clock::Gate;

use super::{
    attribute::{Attribute, WeakAttribute},
    lock,
};

type Read = Box<dyn FnMut(&Attribute) + Send>;

/// The longest sleep: periods may be changed meanwhile.
const LONGEST: Duration = Duration::from_millis(250);
/// How many are read before others get a look at the clock.
const AT_ONCE: usize = 1024;

struct Poll {
    attribute: WeakAttribute,
    read: Read,
}

#[derive(Default)]
struct Due {
    /// By when they are due (monotonic ns), then in the order they were made.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    polls: HashMap<u64, Poll>,
    next_id: u64,
}

#[derive(Default)]
pub(super) struct Polls {
    due: Mutex<Due>,
    pub gate: Gate,
}

impl Polls {
    pub fn add(&self, attribute: WeakAttribute, read: Read, now: u64) {
        let mut due = lock(&self.due);
        let id = due.next_id;
        due.next_id += 1;
        due.polls.insert(id, Poll { attribute, read });
        due.heap.push(Reverse((now, id)));
        drop(due);
        self.gate.open();
    }

    /// Reads what is due; returns how long nothing will be. No lock is held while something is read.
    pub fn run(&self, now: u64) -> Duration {
        for _ in 0..AT_ONCE {
            let (at, id, mut poll) = {
                let mut due = lock(&self.due);
                match due.heap.peek() {
                    Some(&Reverse((at, _))) if at > now => return Duration::from_nanos(at - now).min(LONGEST),
                    None => return LONGEST,
                    Some(_) => {}
                }
                let Some(Reverse((at, id))) = due.heap.pop() else { return LONGEST };
                let Some(poll) = due.polls.remove(&id) else { continue };
                (at, id, poll)
            };
            let Some(attribute) = poll.attribute.upgrade() else { continue };
            (poll.read)(&attribute);
            let period = u64::from(attribute.config().polled_ms.unwrap_or(1000).max(1)) * 1_000_000;
            // A poll that was late keeps its beat, and does not catch up on what it missed.
            let late = now.saturating_sub(at) / period;
            let mut due = lock(&self.due);
            due.polls.insert(id, poll);
            due.heap.push(Reverse((at + (late + 1) * period, id)));
        }
        Duration::ZERO
    }
}
