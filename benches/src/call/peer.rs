//! The measured loggers, one file each. All of them log two integers and a short string.

pub mod fast;
pub mod floor;
pub mod ours;
pub mod slog;
pub mod spdlog;
pub mod tracing;

use crate::call::cost::{self, Account, Ask};

/// Name and set-up of a logger.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Name in the tables.
    pub name: &'static str,
    /// Set-up of the logger.
    pub about: &'static str,
    /// True if its text goes to a file whose lines are counted afterwards.
    pub text: bool,
}

const fn known(name: &'static str, text: bool, about: &'static str) -> Known {
    Known { name, about, text }
}

/// All measured loggers.
pub const PEERS: &[Known] = &[
    known("floor", false, "reads the time-stamp counter and stores 40 bytes"),
    known(ours::NAME, false, "ours with proxy, collector and archive; until committed"),
    known(ours::TEXT, true, "ours, printing to a file only"),
    known("spdlog-sync", true, "spdlog, basic_file_sink_mt"),
    known("spdlog-async", true, "the same behind its thread pool: 8192 records, 1 thread, block when full"),
    known("tracing", true, "tracing-subscriber's fmt into tracing-appender's non-blocking writer, lossless"),
    known("fast_log", true, "log with fast_log: an unbounded channel to its workers"),
    known("slog-async", true, "slog-term behind slog-async: 8192 records, block when full"),
];

/// Measures the requested logger, in a process of its own.
pub fn run(ask: &Ask) -> Result<Account, String> {
    match ask.peer.as_str() {
        "floor" => cost::measure(ask, floor::Floor),
        ours::NAME => cost::measure(ask, ours::Ours::archived(ask.threads)?),
        ours::TEXT => cost::measure(ask, ours::Ours::printing(&ask.sink)?),
        "tracing" => cost::measure(ask, tracing::Tracing::to(&ask.sink)?),
        "fast_log" => cost::measure(ask, fast::Fast::to(&ask.sink)?),
        "slog-async" => cost::measure(ask, slog::Slog::to(&ask.sink)?),
        other => Err(format!("no logger here is called {other}")),
    }
}
