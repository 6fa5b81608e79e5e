//! The loggers of this process, as a remote client sees them.

use std::sync::atomic::Ordering;

use tampu_bus::access::Access;
use tampu_types::Level;

use super::{AUDIT, Change, Controlled, Counted, LoggerState};
use crate::logger::{
    attached::Attached, levels::LoggerLevels, settings::BadSettings, shared::LoggerShared, stats::LoggerStats,
    threshold::Threshold,
};

impl Controlled for LoggerShared {
    fn loggers(&self) -> Vec<LoggerState> {
        let mut loggers: Vec<LoggerState> = self.named_loggers().into_iter().map(|(name, levels)| state(name, &levels)).collect();
        loggers.sort_by(|one, other| one.name.cmp(&other.name));
        loggers
    }

    fn set(&self, matches: &dyn Fn(&str) -> bool, change: Change) -> Vec<String> {
        let mut changed = Vec::new();
        for (name, levels) in self.named_loggers() {
            // Nobody silences the audit from outside.
            if name != AUDIT && matches(&name) {
                levels.set(change.central, change.local);
                changed.push(name);
            }
        }
        changed.sort();
        changed
    }

    fn refresh(&self) -> Result<(), BadSettings> {
        LoggerShared::refresh(self)
    }

    fn wake(&self) {
        self.rings.wake_drainer();
    }

    fn may_be_attached(&self) -> bool {
        self.settings.attach
    }

    fn attach(&self, change: &dyn Fn(&mut Attached)) {
        LoggerShared::attach(self, change);
    }

    fn stats(&self) -> LoggerStats {
        self.counted()
    }

    fn access(&self) -> &Access {
        &self.settings.access
    }
}

fn state(name: String, levels: &LoggerLevels) -> LoggerState {
    LoggerState {
        name,
        central: threshold(levels.central.load(Ordering::Relaxed)),
        local: threshold(levels.local.load(Ordering::Relaxed)),
        attached: Some(threshold(levels.attached.load(Ordering::Relaxed))).filter(|attached| *attached != Threshold::Off),
    }
}

/// Returns the threshold of a stored number.
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
