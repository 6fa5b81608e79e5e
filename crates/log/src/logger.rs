//! Logging from an application's side: a call stores its values in a ring of its thread, 30 to 50 ns, and waits for nobody.
//!
//! ```text
//!  info!(logger, ...)              the thread's ring                     backend thread
//!  raw values, no lock  --->  shared memory, survives us  ---texts--->  packets, publish on log/<level>, print
//!                                        ^                                        |
//!                                        '--- room, once it is acknowledged <-----'
//! ```
//!
//! A packet goes out when it is full, when its oldest record has waited for the flush period, or at once where its level is
//! *immediate*. Texts are made by the backend, or by the host's node after our death ([`crate::recovery`]).
//!
//! When the bus stands still, rings fill; then a call waits as long as its level says ([`full_wait`](LogSettings::full_wait)),
//! and records are lost until there is room. That is counted in the ring by level, and told in the log itself ("N records lost
//! here"). Rejected: an unbounded queue (the instrument runs out of memory), and dropping without a word (nobody can trust the
//! log any more).
//!
//! Every record has an id: this life of the process, the ring, and a number without holes in that ring.
//!
//! | subject | module |
//! |-|-|
//! | the call; what a logger says of itself; how large and how long | `handle`, `voice`, `settings` |
//! | what all loggers of a process share | `shared` |
//! | from rings to packets, and when rings get their room back | `backend`, `taken`, `pump`, `lane`, `packet`, `rounds` |
//! | records that no statement made, in a ring | `made` |
//! | what goes without a ring | `inlet` |
//! | the way out | `post`, `bus_post` |
//! | text on a terminal or in a file | [`local`] |
//! | levels seen and set from outside | [`control`] |
//! | calls that wait until their record is kept | `acknowledged` |
//! | who looks at more than levels let out, while it looks | [`attach`] |
//! | settings from a file and the environment, and which of them decides | [`config`] |
//! | what is suppressed where somebody wants that, and told | [`repeat`], `throttle`, `restraint` |

pub(crate) mod acknowledged;
pub mod attach;
pub(crate) mod backend;
pub(crate) mod bus_post;
pub(crate) mod clock;
pub mod config;
pub mod control;
pub(crate) mod foreign;
pub(crate) mod handle;
pub(crate) mod inlet;
pub(crate) mod lane;
pub mod local;
pub(crate) mod made;
pub(crate) mod packet;
pub(crate) mod post;
pub(crate) mod pump;
pub mod repeat;
pub(crate) mod restraint;
pub(crate) mod rounds;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod taken;
pub(crate) mod throttle;
pub(crate) mod voice;

pub use acknowledged::Acknowledged;
pub use bus_post::{LOG_BATCH, qos_of, topic_of};
pub use foreign::{Claim, Front, PAYLOAD_MAX};
pub use handle::{Logger, OpenError};
pub use settings::{BadSettings, LogSettings, Reread, Threshold, Variables, variable};
pub use shared::LoggerStats;
pub use tampu_ring::Shelter;

#[cfg(test)]
mod tests;
