//! Calls that return when their record is kept or received, and calls that are answered later.
//!
//! Decision: a separate logger handle, not a setting of all calls. A wait for a disk at every log statement suits the
//! few records on which an interlock or an audit depends. It ruins an instrument anywhere else. The statement is the
//! same.
//!
//! ```no_run
//! # fn close(logger: &tampu_log::Logger) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tampu_log::Grade;
//!
//! let sure = logger.acknowledged(Duration::from_secs(2));
//! tampu_log::critical!(sure, "shutter closed by the interlock"; wind = 22.5);
//! if !sure.is_confirmed() {
//!     // It is in the log ring, which survives this process; no collector has said within two seconds that it has it.
//! }
//!
//! let reported = logger.reporting(Grade::Kept, Duration::from_secs(2), |number, outcome| {
//!     if !outcome.is_confirmed() {
//!         eprintln!("step {number} of the interlock: {outcome:?}");
//!     }
//! });
//! tampu_log::info!(reported, "shutter closing");
//! # Ok(())
//! # }
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tampu_bus::Grade;
use tampu_text::{Arguments, Payload, Recorder, Statement};
use tampu_types::Level;

use crate::logger::{handle::Logger, outcome::Outcome};

/// A logger whose calls return when a collector has their record, or after a timeout.
#[derive(Debug)]
pub struct Acknowledged<'l> {
    logger: &'l Logger,
    grade: Grade,
    timeout: Duration,
    unconfirmed: AtomicU64,
}

impl Logger {
    /// Returns this logger with calls that wait until a collector has committed their record, each at most this long.
    pub fn acknowledged(&self, timeout: Duration) -> Acknowledged<'_> {
        self.acknowledged_as(Grade::Kept, timeout)
    }

    /// Returns this logger with calls that wait until a collector has their record in this grade, each at most this long.
    pub fn acknowledged_as(&self, grade: Grade, timeout: Duration) -> Acknowledged<'_> {
        Acknowledged { logger: self, grade, timeout, unconfirmed: AtomicU64::new(0) }
    }

    /// Returns this logger with calls that do not wait, and are answered: for each published record, `tell` is called
    /// once with the record's number among those of this handle, from 0, and with what has become of it. It is called as
    /// [`Logger::when`] says, never by the thread that logs, and in the order of the calls of each thread, but for
    /// records that were refused.
    pub fn reporting(&self, grade: Grade, timeout: Duration, tell: impl Fn(u64, Outcome) + Send + Sync + 'static) -> Reporting {
        Reporting { logger: self.clone(), grade, timeout, tell: Arc::new(tell), next: AtomicU64::new(0) }
    }

    /// Returns whether a collector ever gets a record of this statement: one that is only printed never reaches it.
    fn publishes_call(&self, statement: &'static Statement) -> bool {
        Level::from_number(statement.level()).is_some_and(|level| self.publishes(level))
    }
}

impl Acknowledged<'_> {
    /// Returns whether every call so far was confirmed in time.
    pub fn is_confirmed(&self) -> bool {
        self.unconfirmed() == 0
    }

    /// Returns the number of calls that were not confirmed in time.
    pub fn unconfirmed(&self) -> u64 {
        self.unconfirmed.load(Ordering::Relaxed)
    }
}

impl Recorder for Acknowledged<'_> {
    fn wants(&self, level: u8) -> bool {
        self.logger.wants(level)
    }

    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        let is_taken = self.logger.try_record(statement, payload);
        if !self.logger.publishes_call(statement) {
            return;
        }
        // Nobody need be asked about a record for which there was no room.
        if !is_taken || !self.logger.wait_until(self.grade, self.timeout).is_confirmed() {
            self.unconfirmed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A logger whose calls do not wait, and are each answered later; made by [`Logger::reporting`].
pub struct Reporting {
    logger: Logger,
    grade: Grade,
    timeout: Duration,
    tell: Arc<dyn Fn(u64, Outcome) + Send + Sync>,
    next: AtomicU64,
}

impl Recorder for Reporting {
    fn wants(&self, level: u8) -> bool {
        self.logger.wants(level)
    }

    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        let is_taken = self.logger.try_record(statement, payload);
        if !self.logger.publishes_call(statement) {
            return;
        }
        let (number, tell) = (self.next.fetch_add(1, Ordering::Relaxed), self.tell.clone());
        let tell = Box::new(move |outcome| tell(number, outcome));
        if is_taken {
            self.logger.tell_when(self.grade, self.timeout, tell);
        } else {
            self.logger.tell_refused(tell);
        }
    }
}

impl std::fmt::Debug for Reporting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporting").field("logger", &self.logger).field("grade", &self.grade).finish_non_exhaustive()
    }
}
