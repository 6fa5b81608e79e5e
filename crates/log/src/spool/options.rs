//! The bounds of a spool.

use std::time::Duration;

use tampu_workers::OnPanic;

/// A spool's bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolOptions {
    /// Bytes on disk for one source. Beyond them its newest packets are refused: counted and reported, but not kept.
    pub per_source: u64,
    /// Limit of bytes for all sources together.
    pub total: u64,
    /// A file that has reached this many bytes is followed by a new one.
    pub file: u64,
    /// Time without a collector after which the spool begins to keep records.
    pub after: Duration,
    /// Time for which packets gather before they are written together.
    pub linger: Duration,
    /// Pause after the disk refused a write.
    pub retry: Duration,
    /// The consequence of a panic of its workers. A dead one would keep its last view of the collector, and never take over.
    pub on_panic: OnPanic,
}

impl Default for SpoolOptions {
    /// 256 MiB a source, 2 GiB in all, files of 16 MiB; after 1 s, groups of 5 ms, again after 250 ms.
    fn default() -> SpoolOptions {
        SpoolOptions {
            per_source: 256 << 20,
            total: 2 << 30,
            file: 16 << 20,
            after: Duration::from_secs(1),
            linger: Duration::from_millis(5),
            retry: Duration::from_millis(250),
            on_panic: OnPanic::ReportOnly,
        }
    }
}
