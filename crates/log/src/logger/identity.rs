//! The identity of a logger: its fields, its thresholds and its number in the log rings.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use tampu_types::{Level, Partition};

use crate::logger::{fields::LoggerFields, levels::LoggerLevels, repeat::RepeatGuard, stream::Reach};

/// One logger's fields, and the numbers of its records made by hand.
#[derive(Clone)]
pub(crate) struct LoggerIdentity {
    pub fields: Arc<LoggerFields>,
    /// Its number in the dictionary of the log rings; 0 without one.
    pub id: u32,
    /// The ring in the ids of its records made by hand.
    pub ring: u32,
    /// Number of the next record made by hand.
    pub next: Arc<AtomicU64>,
    /// Thresholds; unknown for another process, where the records have passed them already.
    levels: Option<Arc<LoggerLevels>>,
}

impl LoggerIdentity {
    pub fn new(fields: LoggerFields, id: u32, ring: u32, levels: Arc<LoggerLevels>) -> LoggerIdentity {
        LoggerIdentity { fields: Arc::new(fields), id, ring, next: Arc::default(), levels: Some(levels) }
    }

    /// Out of the rings of a process that is not this one.
    pub fn of_another_process(fields: LoggerFields) -> LoggerIdentity {
        LoggerIdentity { fields: Arc::new(fields), id: 0, ring: 0, next: Arc::default(), levels: None }
    }

    /// The partition its records are published in.
    pub fn partition(&self) -> Partition {
        Partition::of(self.fields.audiences.iter().map(String::as_str))
    }

    /// Returns the present repeat limits of its records.
    pub fn repeat(&self) -> RepeatGuard {
        self.levels.as_ref().map(|levels| levels.repeat()).unwrap_or_default()
    }

    /// Returns whether records of a level are printed at present; those of another process are not.
    pub fn prints(&self, level: Level) -> bool {
        self.levels.as_ref().is_some_and(|levels| levels.prints(level))
    }

    /// Returns the present audience of records of a level.
    pub fn reach(&self, level: Level) -> Reach {
        let passes = |cell: &AtomicU8| cell.load(Ordering::Relaxed) <= level.number();
        match &self.levels {
            Some(levels) if passes(&levels.central) => Reach::Central,
            Some(levels) if passes(&levels.attached) => Reach::Attached,
            Some(_) => Reach::Local,
            None => Reach::Central,
        }
    }
}
