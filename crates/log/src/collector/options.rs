//! The bounds of a collector.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tampu_archive::BackupPlaces;
use tampu_bus::access::Access;
use tampu_workers::OnPanic;

use super::{quota::Quotas, router::Router};

/// The collector's bounds.
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// Directory for batches that cannot be read.
    pub rejected: PathBuf,
    /// Size limit of that directory in bytes; beyond it unreadable batches are only counted.
    pub rejected_bytes: u64,
    /// Bytes that may wait on their way from the bus; beyond them batches are left to the writers' caches.
    pub queue: usize,
    /// Time limit of one search; at the limit it answers with the records found so far, and reports that it is not complete.
    pub search_time: Duration,
    /// Largest number of concurrent searches; more are refused.
    pub searches: usize,
    /// Access rules for writers and for questions.
    pub access: Access,
    /// Limits on the records of one source.
    pub quotas: Quotas,
    /// Directories into which other hosts may have backups made.
    pub backups: BackupPlaces,
    /// If true, records published for attached readers alone are kept too.
    pub keep_attached: bool,
    /// Destination of live records besides the archive.
    pub router: Option<Arc<dyn Router>>,
    /// Effect of a panic of a worker that stores records. A hub ends its process, so that its supervisor starts it
    /// again. By default the panic is only reported, and the collector stops reading the worker's topics.
    pub on_panic: OnPanic,
}

impl CollectorOptions {
    /// The default bounds: 64 MiB of rejected batches in this directory, 64 MiB on their way, 8 searches of at most 60 s; for
    /// this user's processes, without quotas.
    pub fn new(rejected: impl Into<PathBuf>) -> CollectorOptions {
        CollectorOptions {
            rejected: rejected.into(),
            rejected_bytes: 64 << 20,
            queue: 64 << 20,
            search_time: Duration::from_secs(60),
            searches: 8,
            access: Access::of_host(),
            quotas: Quotas::none(),
            backups: BackupPlaces::default(),
            keep_attached: false,
            router: None,
            on_panic: OnPanic::ReportOnly,
        }
    }
}
