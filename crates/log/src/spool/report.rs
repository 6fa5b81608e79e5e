//! Reports of a spool: its state, and its events.

use std::path::PathBuf;

use serde::Serialize;
use tampu_archive::Fault;
use tampu_types::{Incarnation, SourceName, Time};

use super::ledger::Lost;

/// Activity of a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    /// Nothing: a collector keeps records, or has only just gone.
    #[default]
    Watching,
    /// Storing the log packets of its host.
    Spooling,
    /// Sending its contents to a collector.
    Replaying,
}

/// State of a spool, as `log/spool` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpoolReport {
    /// Its name on the bus.
    pub spool: String,
    /// Incarnation of the node.
    pub incarnation: Incarnation,
    /// Directory of its files.
    pub directory: PathBuf,
    /// Its present activity.
    pub doing: Doing,
    /// Bytes that lie in it.
    pub bytes: u64,
    /// Limit of these bytes.
    pub limit: u64,
    /// Limit of the bytes of one source.
    pub source_limit: u64,
    /// Records that lie in it.
    pub records: u64,
    /// Reception time of the oldest packet, ns UTC.
    pub since: Option<Time>,
    /// Records given to collectors since it started.
    pub replayed: u64,
    /// Reason why it cannot write.
    pub stuck: Option<String>,
    /// All sources with records in the spool, or with losses.
    pub sources: Vec<SourceSpool>,
    /// Damage found in its files.
    pub faults: Vec<Fault>,
}

/// Content of a spool from one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SourceSpool {
    /// Name of the source.
    pub source: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Number of records.
    pub records: u64,
    /// Reception time of the oldest packet, ns UTC.
    pub since: Option<Time>,
    /// All losses of this source in this spool, since its directory was made.
    pub lost: Lost,
}

/// Event that a spool reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Start of storing log packets, with the reason.
    Began(String),
    /// A collector has all that was in it.
    Replayed {
        /// So many records.
        records: u64,
        /// Files that were removed.
        files: u64,
    },
    /// Packets of a source found no room.
    Refused {
        /// Name of the source.
        source: SourceName,
        /// Records in them.
        records: u64,
        /// Size of these packets in bytes.
        bytes: u64,
        /// The bound that was reached.
        why: &'static str,
    },
    /// Samples had gone before the spool got them.
    Missed {
        /// Name of the source.
        source: SourceName,
        /// Description of the loss and its reason.
        what: String,
    },
    /// Failure to write, with the reason; or its end.
    Stuck(Option<String>),
    /// A file of it was found damaged.
    Damaged(Fault),
    /// Failure to read or write the bus.
    Failed(String),
}
