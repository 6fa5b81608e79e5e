//! Logs: the logger, the collector and the archive.
//!
//! An application logs through a [`Logger`]. Its records travel on the bus, one topic a level (`log/warning`) and one partition
//! a set of audiences, to every client that asked for them and to the collector, which commits them to its archive and only
//! then acknowledges. Queries go to the collector.
//!
//! | subject | module |
//! |-|-|
//! | the application's side | [`logger`], and a macro a level: [`info!`], [`warning!`], ... |
//! | the same for programs that speak through the `log` crate or `tracing` (features of these names) | `bridge` |
//! | what takes records off the bus and answers questions | [`collector`] |
//! | what somebody wants to find | [`query`] |
//! | where records are kept | [`archive`] |
//! | what keeps a host's records while no collector does | [`spool`] |
//! | what the dead have left in their log rings | [`recovery`] |
//!
//! Applications that prefer the short name depend on it as `tampu = { package = "tampu-log" }` and write `tampu::info!`.

pub mod archive;
#[cfg(any(feature = "log", feature = "tracing"))]
pub mod bridge;
pub mod collector;
pub mod logger;
mod macros;
pub mod query;
pub mod recovery;
pub mod spool;

pub use logger::{LogSettings, Logger, Threshold};
#[doc(hidden)]
pub use tampu_text as text;
pub use tampu_types::Level;

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
