//! Logs: the logger and the collector.
//!
//! An application logs through a [`Logger`]. Its records travel on the bus, with one topic a level (`log/warning`) and
//! one partition a set of audiences. Every subscribed client and the collector receive them. The collector commits the
//! records to its archive and only then acknowledges them. Queries go to the collector. The archive is the crate
//! `tampu-archive`.
//!
//! ```no_run
//! use tampu_log::{LogSettings, Logger, info, warning};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Joins the domain of `TAMPU_DOMAIN`; the hub may come later, and no call waits for it.
//! let logger = Logger::open(LogSettings::from_env("CONTROL/DV01".parse()?)?)?;
//! let mount = logger.named("mount");
//! let azimuth = 269.4;
//! info!(mount, "following {azimuth:.1} deg");
//! warning!(mount, "cable wrap at {azimuth:.1} deg"; axis = "az", limit = 270);
//! # Ok(())
//! # }
//! ```
//! `tampu up` starts a hub, `tampu log tail` shows live records, `tampu log query` finds archived ones.
//!
//! | subject | module |
//! |-|-|
//! | logging from an application | [`logger`], and a macro for each level: [`info!`], [`warning!`], ... |
//! | records of programs that use the `log` crate or `tracing` (features of these names) | `bridge` |
//! | the collector, which stores records and answers queries | [`collector`] |
//! | the node's spool, which keeps a host's records while there is no collector | [`spool`] |
//! | records that dead processes left in their log rings | [`recovery`] |
//!
//! Applications that prefer the short name depend on it as `tampu = { package = "tampu-log" }` and write `tampu::info!`.

#![warn(missing_docs)]

#[cfg(any(feature = "log", feature = "tracing"))]
pub mod bridge;
pub mod collector;
pub mod logger;
mod macros;
pub mod recovery;
pub mod spool;

use tampu_archive::framed;

pub use logger::{Grade, LogSettings, Logger, Outcome, Threshold};
#[doc(hidden)]
pub use tampu_text as text;
pub use tampu_types::Level;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
