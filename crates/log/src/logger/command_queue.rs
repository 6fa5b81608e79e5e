//! Requests to the backend that bypass the log rings: flush requests and, where there are no files beside the rings,
//! records that are too long for a ring.
//!
//! Bound: the bytes of the waiting records. When the queue is full, the caller waits up to its bound, then drops the
//! record. A wait in vain marks the queue as stalled, and no other caller waits until the backend has removed an item.
//! So a stalled bus costs an application one wait, not one a record.

use std::{
    collections::VecDeque,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use tampu_bus::Grade;
use tampu_types::LogRecord;

use crate::logger::promises::Tell;

/// One request to the backend.
pub(crate) enum BackendCommand {
    /// A record without a stream, and its reach.
    Record(Box<LogRecord>, crate::logger::stream::Reach),
    /// Somebody waits until everything before it is delivered, at most this long.
    Flush(Duration, Sender<bool>),
    /// A request to tell by this time what has become of all records until now.
    Tell(Grade, Instant, Tell),
    /// A caller whose record was refused when it was logged.
    Refused(Tell),
}

/// Bounded queue from callers to the backend.
pub(crate) struct CommandQueue {
    queue: Mutex<Queue>,
    room: Condvar,
    stalled: AtomicBool,
    limit: usize,
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<BackendCommand>,
    bytes: usize,
    closing: bool,
}

impl CommandQueue {
    pub fn new(limit: usize) -> CommandQueue {
        CommandQueue { queue: Mutex::default(), room: Condvar::new(), stalled: AtomicBool::new(false), limit }
    }

    /// Queues a record of this many bytes; waits at most this long for room, and returns false if there is none.
    pub fn push(&self, command: BackendCommand, bytes: usize, wait: Duration) -> bool {
        let mut queue = self.lock();
        // A record longer than the whole queue is still accepted when the queue is empty.
        let full = |queue: &mut Queue| queue.bytes > 0 && queue.bytes + bytes > self.limit;
        let wait = if self.stalled.load(Ordering::Relaxed) { Duration::ZERO } else { wait };
        let waited = self.room.wait_while_for(&mut queue, full, wait);
        // There may be room since the last check: after its timeout `wait_while_for` does not check the condition again.
        if waited.timed_out() && full(&mut queue) {
            self.stalled.fetch_or(!wait.is_zero(), Ordering::Relaxed);
            return false;
        }
        queue.bytes += bytes;
        queue.commands.push_back(command);
        true
    }

    /// Queues a command regardless of the length of the queue.
    pub fn force(&self, command: BackendCommand) {
        self.lock().commands.push_back(command);
    }

    /// Removes and returns the waiting commands, and whether the last handle was dropped.
    pub fn take(&self) -> (VecDeque<BackendCommand>, bool) {
        let mut queue = self.lock();
        queue.bytes = 0;
        let taken = (std::mem::take(&mut queue.commands), queue.closing);
        drop(queue);
        if !taken.0.is_empty() {
            self.stalled.store(false, Ordering::Relaxed);
            self.room.notify_all();
        }
        taken
    }

    /// Returns whether no command waits.
    pub fn is_empty(&self) -> bool {
        self.lock().commands.is_empty()
    }

    /// Removes and returns the callers that wanted to be told by this time.
    pub fn take_late(&self, now: Instant) -> Vec<Tell> {
        let mut queue = self.lock();
        let is_late = |command: &BackendCommand| matches!(command, BackendCommand::Tell(_, until, _) if *until <= now);
        let (late, rest) = std::mem::take(&mut queue.commands).into_iter().partition::<Vec<_>, _>(is_late);
        queue.commands = rest.into();
        let tell = |command| if let BackendCommand::Tell(.., tell) = command { Some(tell) } else { None };
        late.into_iter().filter_map(tell).collect()
    }

    /// Closes the queue: no commands follow.
    pub fn close(&self) {
        self.lock().closing = true;
    }

    /// Returns whether the queue is closed.
    pub fn is_closing(&self) -> bool {
        self.lock().closing
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;
    use crate::logger::stream::Reach;

    #[test]
    fn a_full_inlet_makes_callers_wait_once_until_something_is_taken() {
        let commands = CommandQueue::new(100);
        let record = || BackendCommand::Record(Box::new(LogRecord::new(Level::Info, "x")), Reach::Central);
        assert!(commands.push(record(), 60, Duration::ZERO));
        assert!(!commands.push(record(), 60, Duration::from_millis(1)));
        // No caller waits while it is stalled: an hour would otherwise pass here.
        assert!(!commands.push(record(), 60, Duration::from_secs(3600)));
        assert_eq!(commands.take().0.len(), 1);
        assert!(commands.push(record(), 200, Duration::ZERO), "a long record passes an empty commands");
        commands.close();
        assert!(commands.take().1);
    }
}
