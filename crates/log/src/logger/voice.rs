//! What a logger says about itself in every record, and the numbers it has given out.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use tampu_types::{Level, LogRecord, Partition};

use crate::logger::{
    clock::now,
    lane::{Lane, Reach},
    scratch::ThreadMark,
    settings::LogSettings,
};

/// From which level a named logger's records are published and printed; shared by all its handles and changed at run time.
#[derive(Debug)]
pub(crate) struct Levels {
    /// The lower of the two below: what a disabled call looks at, and all it looks at.
    pub any: AtomicU8,
    /// Published from.
    pub central: AtomicU8,
    /// Printed from.
    pub local: AtomicU8,
}

impl Levels {
    /// Renews what a disabled call looks at. Two threads may change the two thresholds at once, so whoever stores last looks
    /// again: what it had read may be what the other has just replaced, and a level would stay disabled that is not.
    pub fn renew(&self) {
        let lower = || self.central.load(Ordering::SeqCst).min(self.local.load(Ordering::SeqCst));
        let mut stored = lower();
        self.any.store(stored, Ordering::SeqCst);
        while lower() != stored {
            stored = lower();
            self.any.store(stored, Ordering::SeqCst);
        }
    }

    /// Whether records of this level are printed.
    pub fn prints(&self, level: Level) -> bool {
        self.local.load(Ordering::Relaxed) <= level.number()
    }
}

/// The fields a logger adds to its records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity {
    pub logger: String,
    pub source_object: String,
    pub context: String,
    pub audiences: Vec<String>,
    pub array: String,
    pub antenna: String,
    pub run_id: String,
    pub stack_id: String,
    pub stack_level: Option<i32>,
}

impl Identity {
    /// Fills in what a record made by hand leaves empty.
    pub fn complete(&self, record: &mut LogRecord, settings: &LogSettings) {
        if record.time.0 == 0 {
            record.time = now();
        }
        for (field, own) in [
            (&mut record.logger, &self.logger),
            (&mut record.source_object, &self.source_object),
            (&mut record.context, &self.context),
            (&mut record.array, &self.array),
            (&mut record.antenna, &self.antenna),
            (&mut record.run_id, &self.run_id),
            (&mut record.stack_id, &self.stack_id),
            (&mut record.host, &settings.host),
            (&mut record.process, &settings.process),
        ] {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if record.thread.is_empty() {
            record.thread = ThreadMark::name();
        }
        if record.audiences.is_empty() {
            record.audiences.clone_from(&self.audiences);
        }
        record.stack_level = record.stack_level.or(self.stack_level);
    }
}

/// One logger's identity with its ring: its records are numbered from 0 without holes, dropped ones excepted by not being numbered.
pub(crate) struct Voice {
    pub identity: Identity,
    pub ring: u32,
    pub next: AtomicU64,
    /// One per level and reach, found when it is first used.
    lanes: [[OnceLock<Arc<Lane>>; 2]; 10],
    /// Records dropped since the last report, by the level's ordinal.
    pub dropped: [AtomicU64; 10],
    /// When the first of them was dropped, ns UTC; 0 where none was.
    pub dropped_since: AtomicU64,
}

impl Voice {
    pub fn new(ring: u32, identity: Identity) -> Voice {
        Voice {
            identity,
            ring,
            next: AtomicU64::new(0),
            lanes: Default::default(),
            dropped: Default::default(),
            dropped_since: AtomicU64::new(0),
        }
    }

    /// The partition its records are published in.
    pub fn partition(&self) -> Partition {
        Partition::of(self.identity.audiences.iter().map(String::as_str))
    }

    /// The lane of a level, made by `make` the first time.
    pub fn lane(&self, level: Level, reach: Reach, make: impl FnOnce() -> Arc<Lane>) -> &Arc<Lane> {
        self.lanes[level.ordinal()][reach as usize].get_or_init(make)
    }
}
