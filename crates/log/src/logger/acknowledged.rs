//! Calls that return when their record is kept.
//!
//! Decision: a separate logger handle, not a setting of all calls. A wait for a disk at every log statement suits the
//! few records on which an interlock or an audit depends. It ruins an instrument anywhere else. The statement is the
//! same.
//!
//! ```no_run
//! # fn close(logger: &tampu_log::Logger) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let sure = logger.acknowledged(Duration::from_secs(2));
//! tampu_log::critical!(sure, "shutter closed by the interlock"; wind = 22.5);
//! if !sure.is_confirmed() {
//!     // It is in the log ring, which survives this process; no collector has said within two seconds that it has it.
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tampu_text::{Arguments, Payload, Recorder, Statement};
use tampu_types::Level;

use crate::logger::handle::Logger;

/// A logger whose calls return when a collector has committed their record, or after a timeout.
#[derive(Debug)]
pub struct Acknowledged<'l> {
    logger: &'l Logger,
    timeout: Duration,
    unconfirmed: AtomicU64,
}

impl Logger {
    /// Returns this logger with calls that wait until a collector has committed their record, each at most this long.
    pub fn acknowledged(&self, timeout: Duration) -> Acknowledged<'_> {
        Acknowledged { logger: self, timeout, unconfirmed: AtomicU64::new(0) }
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
        self.logger.record_call(statement, payload);
        // A record that is only printed never reaches a collector.
        let published = Level::from_number(statement.level()).is_some_and(|level| self.logger.publishes(level));
        if published && !self.logger.flush_to_archive(self.timeout) {
            self.unconfirmed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
