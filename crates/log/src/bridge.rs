//! Bridges for programs and libraries that log through the `log` crate or through `tracing`: their output becomes
//! records.
//!
//! ```text
//!  log::info!      -> LogBridge --.   the text, formatted at the call, and a text for each value;
//!                                 |-> a statement made when its call site first logs          ->  this thread's ring
//!  tracing::info!  -> Layer ------'   the logger named after the target
//! ```
//!
//! | front end | Trace | Debug | Info | Warn | Error |
//! |-|-|-|-|-|-|
//! | record | Trace | Debug | Info | Warning | Error |
//!
//! Both front ends pass an unformatted text that borrows the caller's values. The bridge therefore formats the text at
//! the call; one of Tampu's own statements does not have this cost. Everything else equals a native statement: the
//! record goes into the thread's ring and survives a crash, and a full ring is reported. The logger named after the
//! *target* has the levels, which can be changed while the program runs. After the first record of a call site, a call
//! allocates nothing and takes no lock.
//!
//! A call site is described once. The description is kept for ever, because a record in a ring refers to it by number.
//! The memory is bounded: beyond [`SITES_MAX`] call sites, [`TARGETS_MAX`] targets or [`VALUES_MAX`] values, the bridge
//! makes a whole record and sends it beside the rings. Rejected: whole records for every call. They cost an allocation
//! for each text, and the records just before a crash, which matter most, would not be in a ring.
//!
//! The bridge ignores records of the bus below it (the targets `zenoh...` and `uhlc`). The bus would carry each such
//! record, log about it, and so on without end.

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

/// Largest number of described call sites; records of further call sites are made whole.
pub const SITES_MAX: usize = 10_000;

/// Longest time the end of a program waits for its last records.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// On drop, waits at most two seconds until all records have arrived. A logger that is installed for the whole program
/// is itself never dropped.
#[derive(Debug)]
#[must_use = "dropped at once it waits for nothing; keep it until the program ends"]
pub struct FlushAtEnd {
    logger: Logger,
}

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        // Records that have not arrived by then are in the rings, where the host's node finds them.
        self.logger.flush(FLUSH_WAIT);
    }
}
