//! Questions about what has become of records: waits, and functions that are called later.
//!
//! Decision: the backend answers all of them, in the order in which it was asked, and goes on draining the rings. So the
//! calls of many threads share one commit. Rejected: a wait inside the backend, because each call then paid for a
//! commit of its own and delayed the records of all other threads.

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use tampu_bus::Grade;
use tampu_workers::{OnPanic, WorkerThread};

use crate::logger::{command_queue::BackendCommand, handle::Logger, outcome::Outcome, promises::Tell};

/// Time beyond its timeout for which a caller waits for the backend's own answer.
const GRACE: Duration = Duration::from_millis(100);

impl Logger {
    /// Waits until everything logged before has reached every reader that is there; false if that took longer.
    pub fn flush(&self, timeout: Duration) -> bool {
        if self.is_in_child() {
            return self.keeper.shared.rings.wait_until_drained(timeout);
        }
        let (tell, told) = mpsc::channel();
        self.ask(BackendCommand::Flush(timeout, tell));
        told.recv_timeout(timeout.saturating_add(GRACE)).unwrap_or(false)
    }

    /// Waits until a collector has committed all records published before. Returns false after the timeout, also if
    /// there is no collector. Does not wait for attached readers and viewers. A collector also acknowledges the records
    /// that it drops on purpose (a quota, a rule), and reports them in the log.
    pub fn flush_to_archive(&self, timeout: Duration) -> bool {
        self.wait_until(Grade::Kept, timeout) == Outcome::Kept
    }

    /// Waits until a collector has all records published before, in this grade, at most so long. [`Grade::Received`] does
    /// not wait for a disk; [`Outcome::Received`] says what it promises.
    pub fn wait_until(&self, grade: Grade, timeout: Duration) -> Outcome {
        if self.is_in_child() {
            let drained = self.keeper.shared.rings.wait_until_drained(timeout);
            return if drained { Outcome::of(grade) } else { Outcome::Unconfirmed };
        }
        let (tell, told) = mpsc::channel();
        let tell = move |outcome| {
            // The asker may have stopped waiting.
            let _ = tell.send(outcome);
        };
        self.ask(BackendCommand::Tell(grade, Instant::now() + timeout, Box::new(tell)));
        told.recv_timeout(timeout.saturating_add(GRACE)).unwrap_or(Outcome::Unconfirmed)
    }

    /// Returns at once, and calls `tell` later, once: with true when a collector has committed all records published before
    /// this call, else with false. See [`Logger::when`].
    pub fn when_kept(&self, timeout: Duration, tell: impl FnOnce(bool) + Send + 'static) {
        self.when(Grade::Kept, timeout, move |outcome| tell(outcome == Outcome::Kept));
    }

    /// Returns at once, and calls `tell` later, once, with what has become of all records published before this call:
    /// when a collector has them in this grade, after the timeout, at the end of the logging, or if records could not be
    /// sent since the last such call.
    ///
    /// The logger's worker calls it, so it must be quick. A panic in it is reported and harms nobody. It may log, but the
    /// logging ends only when the handles that it holds are dropped as well. While 16384 callers wait, a further one is
    /// told [`Outcome::Unconfirmed`] at once. In a child made by `fork`, a thread of its own calls it.
    pub fn when(&self, grade: Grade, timeout: Duration, tell: impl FnOnce(Outcome) + Send + 'static) {
        self.tell_when(grade, timeout, Box::new(tell));
    }

    pub(super) fn tell_when(&self, grade: Grade, timeout: Duration, tell: Tell) {
        if !self.is_in_child() {
            return self.ask(BackendCommand::Tell(grade, Instant::now() + timeout, tell));
        }
        let waiting = self.keeper.shared.clone();
        let wait = move || {
            let drained = waiting.rings.wait_until_drained(timeout);
            tell(if drained { Outcome::of(grade) } else { Outcome::Unconfirmed });
        };
        // Without a thread nobody is told, as if the process had ended.
        let _ = WorkerThread::named("tampu-log-kept").spawn(OnPanic::ReportOnly, wait);
    }

    /// Has the backend call `tell` because there was no room for the caller's record.
    pub(super) fn tell_refused(&self, tell: Tell) {
        if !self.is_in_child() {
            return self.ask(BackendCommand::Refused(tell));
        }
        // Without a thread nobody is told, as if the process had ended.
        let _ = WorkerThread::named("tampu-log-kept").spawn(OnPanic::ReportOnly, || tell(Outcome::Refused));
    }

    fn ask(&self, command: BackendCommand) {
        self.keeper.shared.commands.force(command);
        self.keeper.shared.rings.wake_drainer();
    }

    /// Returns whether this is a child made by `fork`: the backend's thread is in its parent.
    fn is_in_child(&self) -> bool {
        self.keeper.process != std::process::id()
    }
}
