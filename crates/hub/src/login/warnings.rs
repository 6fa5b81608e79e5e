//! Warnings about refused requests, of which strangers can send any number: at most one in some seconds, with the number
//! of those left out.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tampu_log::{Logger, warning};

/// Shortest time between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// The warnings of one method.
pub struct Warnings {
    logger: Logger,
    /// Time of the last warning, and the number of refusals since then.
    warned: Mutex<(Option<Instant>, u64)>,
}

impl Warnings {
    /// Writes into this log.
    pub fn new(logger: Logger) -> Warnings {
        Warnings { logger, warned: Mutex::default() }
    }

    /// Logs a refusal, or counts it.
    pub fn warn(&self, text: &str) {
        let mut warned = self.warned.lock();
        if warned.0.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            let more = if warned.1 > 0 { format!("; {} more since the last warning", warned.1) } else { String::new() };
            warning!(self.logger, "{text}{more}");
            *warned = (Some(Instant::now()), 0);
        } else {
            warned.1 += 1;
        }
    }
}
