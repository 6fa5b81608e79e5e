//! Reading what is polled, when it is due.

use std::{
    any::Any,
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    time::Duration,
};

use tampu_bus::clock::Gate;
use tampu_types::event::Failure;

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
    /// When it is due; what the heap says else is of the past.
    next: u64,
}

#[derive(Default)]
struct Due {
    /// By when they are due (monotonic ns), then by the attribute's number.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// By the attribute's number.
    polls: HashMap<u32, Poll>,
}

#[derive(Default)]
pub(super) struct Polls {
    due: Mutex<Due>,
    pub gate: Gate,
}

impl Polls {
    /// Begins to read an attribute; what read it before is replaced.
    pub fn add(&self, index: u32, attribute: WeakAttribute, read: Read, now: u64) {
        let mut due = lock(&self.due);
        due.polls.insert(index, Poll { attribute, read, next: now });
        due.heap.push(Reverse((now, index)));
        drop(due);
        self.gate.open();
    }

    /// The period of an attribute is another: it is read at once, and then by the new one.
    pub fn hasten(&self, index: u32, now: u64) {
        let mut due = lock(&self.due);
        // One that is being read goes by the new period anyway.
        if let Some(poll) = due.polls.get_mut(&index) {
            poll.next = now;
            due.heap.push(Reverse((now, index)));
        }
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
                if due.polls.get(&id).is_none_or(|poll| poll.next != at) {
                    continue;
                }
                let Some(poll) = due.polls.remove(&id) else { continue };
                (at, id, poll)
            };
            let Some(attribute) = poll.attribute.upgrade() else { continue };
            // One that panics fails by itself; the others are read on.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (poll.read)(&attribute))) {
                let _ = attribute.fail(&[Failure::new("Tampu_PollPanicked", said(panic.as_ref()))]);
            }
            let period = u64::from(attribute.config().polled_ms.unwrap_or(1000).max(1)) * 1_000_000;
            // A poll that was late keeps its beat, and does not catch up on what it missed.
            let late = now.saturating_sub(at) / period;
            poll.next = at + (late + 1) * period;
            let mut due = lock(&self.due);
            due.heap.push(Reverse((poll.next, id)));
            // Reading it may have put another in its place.
            due.polls.entry(id).or_insert(poll);
        }
        Duration::ZERO
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // What an error's description can hold.
    text.unwrap_or("it panicked").chars().take(1000).collect()
}
