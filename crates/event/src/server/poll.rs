//! Polls of attributes, when they are due.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    time::Duration,
};

use parking_lot::Mutex;
use tampu_bus::clock::Gate;

/// Reads an attribute once and returns its period, ns; `None` when the attribute has ended.
pub(super) type Read = Box<dyn FnMut() -> Option<u64> + Send>;

/// Work for the poller's thread.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Longest sleep, because periods may be changed meanwhile.
const LONGEST: Duration = Duration::from_millis(250);
/// Most polls in one turn before the clock is read again.
const AT_ONCE: usize = 1024;

struct Poll {
    read: Read,
    /// Time of the next poll, monotonic ns; heap entries with another time are outdated.
    next: u64,
}

#[derive(Default)]
struct Due {
    /// Due times (monotonic ns) with the attribute's number, in order.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// Polls by the attribute's number.
    polls: HashMap<u32, Poll>,
    /// The attribute whose poll runs at present, unless its polls were ended meanwhile.
    running: Option<u32>,
}

#[derive(Default)]
pub(super) struct Polls {
    due: Mutex<Due>,
    /// Reads that questions wait for: at most one of an attribute.
    soon: Mutex<VecDeque<Job>>,
    pub gate: Gate,
}

impl Polls {
    /// Adds or replaces the poll of an attribute.
    pub fn add(&self, index: u32, read: Read, now: u64) {
        let mut due = self.due.lock();
        due.polls.insert(index, Poll { read, next: now });
        due.heap.push(Reverse((now, index)));
        drop(due);
        self.gate.open();
    }

    /// Ends the polls of an attribute.
    pub fn remove(&self, index: u32) {
        let mut due = self.due.lock();
        due.polls.remove(&index);
        if due.running == Some(index) {
            due.running = None;
        }
    }

    /// Runs a job before the next poll.
    pub fn run_soon(&self, job: Job) {
        self.soon.lock().push_back(job);
        self.gate.open();
    }

    /// Handles a new period of an attribute: it is read at once, and then at the new period.
    pub fn poll_now(&self, index: u32, now: u64) {
        let mut due = self.due.lock();
        // One that is being read goes by the new period anyway.
        if let Some(poll) = due.polls.get_mut(&index) {
            poll.next = now;
            due.heap.push(Reverse((now, index)));
        }
        drop(due);
        self.gate.open();
    }

    /// Runs the polls that are due. Returns the time until the next one. No lock is held during a poll.
    pub fn run(&self, now: u64) -> Duration {
        for _ in 0..AT_ONCE {
            let job = self.soon.lock().pop_front();
            if let Some(job) = job {
                job();
                continue;
            }
            let (at, id, mut poll) = {
                let mut due = self.due.lock();
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
                due.running = Some(id);
                (at, id, poll)
            };
            let Some(period) = (poll.read)() else { continue };
            // A late poll keeps its beat and does not catch up on missed ones.
            let late = now.saturating_sub(at) / period;
            poll.next = at + (late + 1) * period;
            let mut due = self.due.lock();
            if due.running.take() != Some(id) {
                continue;
            }
            due.heap.push(Reverse((poll.next, id)));
            // Reading it may have put another in its place.
            due.polls.entry(id).or_insert(poll);
        }
        Duration::ZERO
    }
}
