//! Tampu's own logger.

use std::{hint::black_box, path::Path, time::Duration};

use tampu_log::{Logger, Threshold};

use crate::call::{
    cost::Peer,
    gang::thread_cpu,
    program::{PATIENCE, settings},
};

/// Number of calls whose level is off.
const NOOPS: u64 = 20_000_000;
/// Time that records without a pause wait for space instead of being dropped, as with the peers.
const ROOM: Duration = Duration::from_secs(10);

/// Tampu's logger, in one of its uses.
#[derive(Debug)]
pub struct Ours {
    logger: Logger,
}

/// Name of Tampu among the loggers.
pub const NAME: &str = "tampu";
/// Name of Tampu's logger that only prints.
pub const TEXT: &str = "tampu-text";

/// Returns the sources' name. It contains the number of threads, so that it differs from that of other measurements.
pub fn name(threads: usize) -> String {
    format!("bench-cost-{threads}")
}

impl Ours {
    /// Creates a logger on the bus, with a collector that commits. It prints nothing.
    pub fn archived(threads: usize) -> Result<Ours, String> {
        let ours = Ours::open(&name(threads), None, true)?;
        tampu_log::info!(ours.logger, "{} threads begin", threads);
        if !ours.logger.flush(PATIENCE) {
            return Err(format!("no collector within {PATIENCE:?}"));
        }
        Ok(ours)
    }

    /// Creates a logger that prints into a file and publishes nothing.
    pub fn printing(sink: &Path) -> Result<Ours, String> {
        Ours::open("bench-cost-text", Some(sink), false)
    }

    fn open(name: &str, prints: Option<&Path>, publishes: bool) -> Result<Ours, String> {
        let mut settings = settings(name, prints, publishes)?;
        settings.full_wait = ROOM;
        Ok(Ours { logger: Logger::open(settings).map_err(|e| e.to_string())? })
    }
}

impl Peer for Ours {
    fn hand(&self) -> impl FnMut(u64, u64, &'static str) {
        let logger = self.logger.clone();
        move |number, angle, state| tampu_log::info!(logger, "antenna {} at {} is {}", number, angle, state)
    }

    fn finish(self) -> Result<bool, String> {
        // Without publishing nothing can confirm; everything is printed when the last handle ends.
        Ok(self.logger.flush(PATIENCE))
    }

    fn noop_ns(&self) -> Option<f64> {
        let off = self.logger.named("off");
        off.set_central(Threshold::Off);
        off.set_local(Threshold::Off);
        let logger = black_box(&off);
        let before = thread_cpu();
        // Arguments without a cost: the compiler may compute them before it checks the level.
        for number in 0..NOOPS {
            tampu_log::info!(logger, "antenna {} at {} is {}", number, number, "off");
        }
        Some((thread_cpu() - before) as f64 / NOOPS as f64)
    }

    fn dropped(&self) -> u64 {
        self.logger.stats().dropped
    }
}
