//! The correlator: a dump every 0.96 s while a scan runs.

use std::time::Duration;

use tampu_log::{Logger, critical, debug, info, trace, warning};

use crate::demo::{actor::Actor, chance::Chance, sky::Sky};

const DUMP: Duration = Duration::from_millis(960);

pub struct Correlator {
    logger: Logger,
    for_operators: Logger,
    dumps: u64,
    integrating: bool,
    flagged: u32,
}

impl Correlator {
    pub fn new(process: &Logger) -> Correlator {
        let logger = process.named("correlator").for_object("CORR/CORRELATOR").in_context("Array001");
        Correlator {
            for_operators: logger.for_audiences(["Operator", "SciLog"]),
            logger,
            dumps: 0,
            integrating: false,
            flagged: 0,
        }
    }
}

impl Actor for Correlator {
    fn act(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        if sky.integrating != self.integrating {
            self.integrating = sky.integrating;
            let what = if sky.integrating { "begins" } else { "ends" };
            info!(self.logger, "integration {what} for scan {}", sky.scan; scan = sky.scan);
        }
        if !sky.integrating {
            return DUMP;
        }
        self.dumps += 1;
        let here = 8 - sky.unlocked.count_ones();
        let baselines = here * here.saturating_sub(1) / 2;
        debug!(self.logger, "dump {}: {baselines} baselines, 4 windows of 3840 channels", self.dumps; scan = sky.scan);
        trace!(self.logger, "delay model: {} ticks late by at most {:.1} us", 48, chance.between(0.1, 4.0));
        if sky.unlocked != self.flagged {
            let lost = (sky.unlocked & !self.flagged).count_ones();
            if lost > 0 {
                critical!(self.for_operators, "no coherent data from {lost} more antennas: their baselines are flagged");
            }
            self.flagged = sky.unlocked;
        }
        if chance.once_in(60) {
            warning!(self.logger, "quadrant {}: FPGA at {:.1} C", 1 + chance.below(4), chance.between(71.0, 84.0); limit = 85);
        }
        DUMP
    }
}
