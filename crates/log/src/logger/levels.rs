//! The thresholds of a named logger, which may change while the process runs.

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use tampu_types::Level;

use crate::logger::{config::Named, repeat::RepeatGuard, threshold::Threshold};

/// Lowest published and printed levels of a named logger; shared by all its handles and changed at run time.
#[derive(Debug)]
pub(crate) struct LoggerLevels {
    /// The lowest of the three thresholds below: a disabled call reads this value only.
    pub any: AtomicU8,
    /// Lowest level that is published.
    pub central: AtomicU8,
    /// Lowest level that is printed.
    pub local: AtomicU8,
    /// Published from for attached readers.
    pub attached: AtomicU8,
    /// Limits on repeated records.
    pub repeat: Mutex<RepeatGuard>,
}

impl LoggerLevels {
    /// Makes the levels of the settings.
    pub fn new(named: Named) -> LoggerLevels {
        let (central, local) = (named.central.number(), named.local.number());
        LoggerLevels {
            any: AtomicU8::new(central.min(local)),
            central: AtomicU8::new(central),
            local: AtomicU8::new(local),
            attached: AtomicU8::new(Threshold::Off.number()),
            repeat: Mutex::new(named.repeat),
        }
    }

    /// Returns the present repeat limits.
    pub fn repeat(&self) -> RepeatGuard {
        *self.repeat.lock()
    }

    /// Updates the threshold that a disabled call reads. Two threads may change the two thresholds at once, so the last
    /// thread to store reads them again. Otherwise one thread could store a value that the other has just replaced, and
    /// an enabled level would stay disabled.
    pub fn renew(&self) {
        let cells = [&self.central, &self.local, &self.attached];
        let lower = || cells.iter().map(|cell| cell.load(Ordering::SeqCst)).fold(u8::MAX, u8::min);
        let mut stored = lower();
        self.any.store(stored, Ordering::SeqCst);
        while lower() != stored {
            stored = lower();
            self.any.store(stored, Ordering::SeqCst);
        }
    }

    /// Changes the thresholds that are given: from the next call on, in every thread.
    pub fn set(&self, central: Option<Threshold>, local: Option<Threshold>) {
        for (cell, threshold) in [(&self.central, central), (&self.local, local)] {
            if let Some(threshold) = threshold {
                cell.store(threshold.number(), Ordering::SeqCst);
            }
        }
        self.renew();
    }

    /// Returns whether records of this level are printed.
    pub fn prints(&self, level: Level) -> bool {
        self.local.load(Ordering::Relaxed) <= level.number()
    }
}
