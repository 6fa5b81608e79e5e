//! The logger of an application: a call stores its values in a ring of its thread in 30 to 50 ns, and never blocks on
//! others.
//!
//! ```text
//!  info!(logger, ...)              the thread's ring                     backend thread
//!  raw values, no lock  --->  shared memory, survives us  ---texts--->  packets, publish on log/<level>, print
//!                                        ^                                        |
//!                                        '--- room, once it is acknowledged <-----'
//! ```
//!
//! A packet is sent when it is full or when its oldest record has waited for the flush period. Packets of an
//! *immediate* level are sent at once. The backend makes the texts; after the death of the process the host's node
//! makes them ([`crate::recovery`]).
//!
//! The rings fill while the bus stands still. A call then waits for at most the [`full_wait`](LogSettings::full_wait)
//! of its level, and records are lost until there is room. The ring counts the losses by level, and the log itself
//! reports them ("N records lost here"). Rejected: an unbounded queue, because the instrument runs out of memory.
//! Rejected: dropping records without a report, because nobody can trust such a log.
//!
//! Every record has an id: the incarnation of the process, the ring, and a number without gaps in that ring.
//!
//! | subject | module |
//! |-|-|
//! | the call; a logger's fields, identity, thresholds; settings | `handle`, `fields`, `identity`, `levels`, `settings`, `load` |
//! | state that all loggers of a process share | `shared` |
//! | packets from rings, release of room | `backend`, `renderer`, `packet_builder`, `packet`, `drain_batches` |
//! | whole records, without a statement, in a ring | `record` |
//! | requests to the backend without a ring | `command_queue` |
//! | output of packets | `packet_sink`, `bus_sink` |
//! | text on a terminal or in a file | [`local`] |
//! | levels read and set from outside | [`control`] |
//! | waits until records are kept or received, and functions called later | `confirm`, `promises`, `outcome` |
//! | calls that do this for their own record | `acknowledged` |
//! | readers that temporarily see records below the thresholds | [`attach`] |
//! | settings from a file and the environment, and their precedence | [`config`] |
//! | rate and repeat limits | [`repeat`], `throttle`, `rate_limits` |
//! | front ends of other languages | `ffi` |

pub(crate) mod acknowledged;
pub mod attach;
pub(crate) mod attached;
pub(crate) mod backend;
pub(crate) mod bus_sink;
pub(crate) mod clock;
pub(crate) mod command_queue;
pub mod config;
pub(crate) mod confirm;
pub mod control;
pub(crate) mod drain_batches;
pub(crate) mod ffi;
pub(crate) mod fields;
pub(crate) mod handle;
pub(crate) mod identity;
pub(crate) mod levels;
pub(crate) mod load;
pub mod local;
pub(crate) mod outcome;
pub(crate) mod packet;
pub(crate) mod packet_builder;
pub(crate) mod packet_sink;
pub(crate) mod promises;
pub(crate) mod rate_limits;
pub(crate) mod record;
pub(crate) mod renderer;
pub mod repeat;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod threshold;
pub(crate) mod throttle;
pub(crate) mod trace_ids;

pub use acknowledged::{Acknowledged, Reporting};
pub use bus_sink::{LOG_BATCH, default_qos, qos_of, topic_of};
pub use ffi::{Claim, FfiContext, PAYLOAD_MAX};
pub use handle::{Logger, OpenError};
pub use load::{Variables, variable};
pub use outcome::Outcome;
pub use settings::{BadSettings, LogSettings, Reread};
pub use stats::LoggerStats;
pub use tampu_bus::Grade;
pub use tampu_ring::RingStorage;
pub use threshold::Threshold;

#[cfg(test)]
mod tests;
