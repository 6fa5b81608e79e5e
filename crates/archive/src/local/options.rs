//! Limits of an archive.

use std::time::Duration;

use tampu_types::Domain;
use tampu_workers::OnPanic;

use crate::{backup_places::BackupPlaces, keeper::keep::Keep};

/// Limits of an archive.
#[derive(Debug, Clone)]
pub struct Options {
    /// Domain of the installation. Segments of another domain are not served.
    pub domain: Domain,
    /// Size in bytes at which a segment is closed and a new one begins.
    pub roll: u64,
    /// Most bytes that may wait for the disk. Beyond it arrivals are refused.
    pub pending: usize,
    /// Longest time an arrival waits for room before it is refused.
    pub wait: Duration,
    /// Shortest time between the beginnings of two commits, so that a fast disk is not kept busy with tiny commits.
    pub linger: Duration,
    /// Pause of the writer after the disk refused a group.
    pub retry: Duration,
    /// Compacts closed segments into Parquet files if true.
    pub compact: bool,
    /// Share of one processor that compaction may take, 0 to 1.
    pub share: f64,
    /// Closed segments that may wait for compaction. Beyond them it takes a whole processor.
    pub backlog: usize,
    /// A segment whose first record is older than this is closed.
    pub close_after: Duration,
    /// Retention: age and size limits.
    pub keep: Keep,
    /// Space in bytes that stays free on the disk, at most a twentieth of the disk; 0 for none. With less free space,
    /// nothing is written.
    pub min_free: u64,
    /// Directories for backups that other hosts request.
    pub backups: BackupPlaces,
    /// Effect of a panic of the commit writer. A hub ends its process, so that its supervisor restarts it. By default
    /// the panic is only reported, and arrivals are refused once [`Options::pending`] is reached.
    pub on_panic: OnPanic,
}

/// Limits of an archive that can change while it is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Age and size limits.
    pub keep: Keep,
    /// Space in bytes that stays free on the disk; see [`Options::min_free`].
    pub min_free: u64,
}

impl Options {
    /// Returns the limits that can change later.
    pub fn retention(&self) -> Retention {
        Retention { keep: self.keep.clone(), min_free: self.min_free }
    }

    /// The default bounds: segments of 128 MiB or an hour, 96 MiB pending, 2 s wait, 2 ms linger, 250 ms retry; a quarter of a
    /// processor for compaction, a backlog of 16 segments; everything kept for ever.
    pub fn new(domain: Domain) -> Options {
        Options {
            domain,
            roll: 128 << 20,
            pending: 96 << 20,
            wait: Duration::from_secs(2),
            linger: Duration::from_millis(2),
            retry: Duration::from_millis(250),
            compact: true,
            share: 0.25,
            backlog: 16,
            close_after: Duration::from_secs(3600),
            keep: Keep::default(),
            min_free: 0,
            backups: BackupPlaces::default(),
            on_panic: OnPanic::ReportOnly,
        }
    }
}
