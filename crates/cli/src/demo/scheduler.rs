//! The scheduler: a sequence of blocks, each of some scans.

use std::time::Duration;

use tampu_log::{Logger, debug, error, info, notice, warning};

use crate::demo::{
    Actor,
    chance::Chance,
    sky::{Sky, TARGETS},
};

pub struct Scheduler {
    logger: Logger,
    /// Logger of the current run.
    in_run: Logger,
    for_science: Logger,
    scans_left: u32,
    blocks: u32,
}

impl Scheduler {
    pub fn new(process: &Logger) -> Scheduler {
        let logger = process.named("scheduler").for_object("SCHEDULING/Array001").in_context("Array001");
        Scheduler { for_science: logger.for_audiences(["SciLog"]), in_run: logger.clone(), logger, scans_left: 0, blocks: 0 }
    }

    fn begin_block(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        self.blocks += 1;
        sky.run_id = format!("uid://A002/X{:x}/X{:x}", 0x0f_a000 + chance.below(0xfff), self.blocks);
        self.in_run = self.logger.in_run(&sky.run_id);
        self.for_science = self.in_run.for_audiences(["SciLog", "Operator"]);
        self.scans_left = 3 + chance.below(5) as u32;
        notice!(self.for_science, "scheduling block {} started", sky.run_id; scans = self.scans_left);
        debug!(self.in_run, "array Array001: 8 antennas, band {}, {} spectral windows", 3 + chance.below(7), 4);
        if chance.once_in(12) {
            // A chain in the form of ACS: the outermost error first, each cause one level deeper.
            let chain = format!("chain-{:08x}", chance.bits() as u32);
            error!(self.in_run.in_stack(&chain, 0), "block {}: preparing calibration failed", sky.run_id);
            error!(self.in_run.in_stack(&chain, 1), "archive: query for calibrators timed out"; timeout_s = 30);
            error!(self.in_run.in_stack(&chain, 2), "connection to archive-gw-2:8443 refused"; errno = "ECONNREFUSED");
            warning!(self.in_run, "using calibrators of the previous block"; count = 4);
        }
        Duration::from_millis(800)
    }
}

impl Actor for Scheduler {
    fn act(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        if sky.integrating {
            sky.integrating = false;
            info!(self.for_science, "scan {} on {} finished", sky.scan, sky.target; scan = sky.scan);
            return chance.seconds(0.5, 1.5);
        }
        if self.scans_left == 0 {
            if self.blocks > 0 {
                notice!(self.for_science, "scheduling block {} finished", sky.run_id; scans = sky.scan);
            }
            sky.scan = 0;
            return self.begin_block(sky, chance);
        }
        self.scans_left -= 1;
        sky.scan += 1;
        sky.target = TARGETS[chance.below(TARGETS.len() as u64) as usize];
        sky.integrating = true;
        let length = chance.seconds(8.0, 20.0);
        let seconds = length.as_secs();
        info!(self.for_science, "scan {} on {}: {seconds} s", sky.scan, sky.target; scan = sky.scan, target = sky.target);
        length
    }
}
