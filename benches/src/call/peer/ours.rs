//! Our own logger.

use std::{hint::black_box, path::Path, time::Duration};

use tampu_log::{Logger, Threshold};

use crate::call::{
    cost::Peer,
    gang::thread_cpu,
    program::{PATIENCE, settings},
};

/// How often a call is made whose level is off.
const NOOPS: u64 = 20_000_000;
/// Records without a pause shall wait for room rather than be dropped, as they do with the peers.
const ROOM: Duration = Duration::from_secs(10);

/// Ours, in one of its uses.
#[derive(Debug)]
pub struct Ours {
    logger: Logger,
}

/// What ours is called among the loggers.
pub const NAME: &str = "tampu";
/// And where it prints only.
pub const TEXT: &str = "tampu-text";

/// The sources' name; the number of threads makes it one of a run's own.
pub fn name(threads: usize) -> String {
    format!("bench-cost-{threads}")
}

impl Ours {
    /// On the bus, with a collector that commits; nothing is printed.
    pub fn archived(threads: usize) -> Result<Ours, String> {
        let ours = Ours::open(&name(threads), None, true)?;
        tampu_log::info!(ours.logger, "{} threads begin", threads);
        if !ours.logger.flush(PATIENCE) {
            return Err(format!("no collector within {PATIENCE:?}"));
        }
        Ok(ours)
    }

    /// Printing into a file; nothing is published.
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
        // Where nothing is published, nobody can confirm; the last handle's end then is when everything is printed.
        Ok(self.logger.flush(PATIENCE))
    }

    fn noop_ns(&self) -> Option<f64> {
        let off = self.logger.named("off");
        off.set_central(Threshold::Off);
        off.set_local(Threshold::Off);
        let logger = black_box(&off);
        let before = thread_cpu();
        // Of arguments that cost nothing to have: the compiler may work them out before it looks at the level.
        for number in 0..NOOPS {
            tampu_log::info!(logger, "antenna {} at {} is {}", number, number, "off");
        }
        Some((thread_cpu() - before) as f64 / NOOPS as f64)
    }

    fn dropped(&self) -> u64 {
        self.logger.stats().dropped
    }
}
