//! Logging from an application's side: a call costs about a hundred nanoseconds and never waits for the network.
//!
//! ```text
//!  info!(logger, ...)          one lane per level and audiences           backend thread
//!  format, no lock held  --->  encode into the filling packet  --full-->  publish on log/<level>, print, tell losses
//!                              (short mutex)                    bounded queue
//! ```
//!
//! A packet goes out when it is full, when its oldest record has waited for the flush period, or at once where its level is
//! *immediate*; what comes while the backend is busy travels together. Records are encoded by the caller, so the application's
//! values need not outlive the call and the backend moves bytes only.
//!
//! When the bus stands still, packets queue up to a bound; then a call waits at most
//! [`full_wait`](LogSettings::full_wait) once, and records are dropped until there is room. Drops are counted per logger and
//! level, and told in the log itself ("N records lost here"), with the time of the first. Rejected: an unbounded queue (the
//! instrument runs out of memory), and dropping without a word (nobody can trust the log any more).
//!
//! Every record has an id: this life of the process, the logger's ring, and a number without holes in that ring.

pub(crate) mod backend;
pub(crate) mod bus_post;
pub(crate) mod clock;
pub(crate) mod foreign;
pub(crate) mod handle;
pub(crate) mod inlet;
pub(crate) mod lane;
pub(crate) mod packet;
pub(crate) mod post;
pub(crate) mod print;
pub(crate) mod pump;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod voice;

pub use bus_post::{LOG_BATCH, qos_of, topic_of};
pub use foreign::{Claim, PAYLOAD_MAX};
pub use handle::{Logger, OpenError};
pub use settings::{BadSettings, LogSettings, Threshold};
pub use shared::LoggerStats;
pub use tampu_ring::Shelter;

#[cfg(test)]
mod tests;
