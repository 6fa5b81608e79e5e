//! The loggers of this process, as who asks from outside sees them.

use std::sync::atomic::Ordering;

use tampu_bus::access::Access;
use tampu_types::Level;

use super::{Change, Controlled, Counted, LoggerState};
use crate::logger::{
    attach::Attached,
    settings::{BadSettings, Threshold},
    shared::{LoggerStats, Shared},
    voice::Levels,
};

impl Controlled for Shared {
    fn loggers(&self) -> Vec<LoggerState> {
        let mut loggers: Vec<LoggerState> = self.named_loggers().into_iter().map(|(name, levels)| state(name, &levels)).collect();
        loggers.sort_by(|one, other| one.name.cmp(&other.name));
        loggers
    }

    fn set(&self, matches: &dyn Fn(&str) -> bool, change: Change) -> Vec<String> {
        let mut changed = Vec::new();
        for (name, levels) in self.named_loggers() {
            if matches(&name) {
                store(&levels, change);
                changed.push(name);
            }
        }
        changed.sort();
        changed
    }

    fn refresh(&self) -> Result<(), BadSettings> {
        Shared::refresh(self)
    }

    fn may_be_attached(&self) -> bool {
        self.settings.attach
    }

    fn attach(&self, change: &dyn Fn(&mut Attached)) {
        Shared::attach(self, change);
    }

    fn stats(&self) -> LoggerStats {
        self.counted()
    }

    fn access(&self) -> &Access {
        &self.settings.access
    }
}

fn state(name: String, levels: &Levels) -> LoggerState {
    LoggerState {
        name,
        central: threshold(levels.central.load(Ordering::Relaxed)),
        local: threshold(levels.local.load(Ordering::Relaxed)),
        attached: Some(threshold(levels.attached.load(Ordering::Relaxed))).filter(|attached| *attached != Threshold::Off),
    }
}

/// Changes a logger's thresholds: from the next call on, in every thread.
pub(in crate::logger) fn store(levels: &Levels, Change { central, local }: Change) {
    for (cell, threshold) in [(&levels.central, central), (&levels.local, local)] {
        if let Some(threshold) = threshold {
            cell.store(threshold.number(), Ordering::SeqCst);
        }
    }
    levels.renew();
}

/// The threshold that a stored number stands for.
fn threshold(number: u8) -> Threshold {
    Level::from_number(number).map_or(Threshold::Off, Threshold::From)
}

impl From<LoggerStats> for Counted {
    fn from(stats: LoggerStats) -> Counted {
        let by_level = Level::ALL.into_iter().map(|level| (level, stats.by_level[level.ordinal()]));
        Counted {
            published: stats.published,
            by_level: by_level.filter(|(_, records)| *records > 0).collect(),
            dropped: stats.dropped,
            waited: stats.waited,
            bytes: stats.bytes,
            high_water: Some(stats.high_water),
            unprinted: stats.unprinted,
            suppressed: stats.suppressed,
        }
    }
}
