//! Programs and libraries that log through the `log` crate or through `tracing`: what they say becomes records here.
//!
//! ```text
//!  log::info!      -> LogBridge --.   the text, formatted at the call, and a text for each value;
//!                                 |-> a statement made when its place first speaks            ->  this thread's ring
//!  tracing::info!  -> Layer ------'   the logger named after the target
//! ```
//!
//! | theirs | Trace | Debug | Info | Warn | Error |
//! |-|-|-|-|-|-|
//! | ours | Trace | Debug | Info | Warning | Error |
//!
//! Both front ends hand over a text that is still to be formatted and borrows the caller's values, so it is formatted at the
//! call, which is what a call through a bridge costs beyond one of our statements. All else is as with those: the record goes into
//! the thread's ring and survives a crash, a full ring is told, and levels are those of the logger named after the *target*, to
//! be changed while the program runs. Nothing is allocated and no lock is taken once a place has spoken.
//!
//! A place that speaks is described once, and its description is kept for ever, because records in a ring only say which one
//! they are of. That is bounded: beyond [`SITES_MAX`] places, [`TARGETS_MAX`] targets or [`VALUES_MAX`] values a record is made
//! by hand and goes beside the rings. Rejected: to make every record by hand. It costs an allocation for each text, and what was
//! logged just before a crash is what one wants to read.
//!
//! What the bus below us says of itself (the targets `zenoh...` and `uhlc`) is not taken: each record would be carried by the bus,
//! which would speak of that, without end.

#[cfg(feature = "log")]
pub mod log;
#[cfg(feature = "tracing")]
pub mod tracing;

mod said;
mod speakers;
mod table;

use std::time::Duration;

pub use said::VALUES_MAX;
pub use speakers::TARGETS_MAX;

use crate::logger::Logger;

/// Places in the program that are described; what is logged at others is made by hand.
pub const SITES_MAX: usize = 10_000;

/// How long the end of a program waits for what it has logged.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// Waits, where it is dropped, until what was logged has arrived, two seconds at most. A logger that was installed for the whole
/// program is itself never dropped.
#[derive(Debug)]
#[must_use = "dropped at once it waits for nothing; keep it until the program ends"]
pub struct FlushAtEnd {
    logger: Logger,
}

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        // What has not arrived by then is in the rings, where the host's node finds it.
        self.logger.flush(FLUSH_WAIT);
    }
}
