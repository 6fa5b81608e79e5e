//! The archive: stores every record once and finds it again.
//!
//! [`Archive`] is the interface for a collector and its clients; [`LocalArchive`] is the built-in implementation. It
//! stores new records in write-ahead segments and moves older ones into Parquet files. A batch is stored in its wire
//! format. So ingest costs a checksum and a copy, and no caller waits for an encoder. Fields that a later release added
//! to a record survive an older collector. In Parquet, segments are a tenth as large, quick to search, and readable for
//! other people's tools. A database was rejected: at a million records a second, an index per record costs more than
//! everything else together. A search that skips whole files, row groups and frames needs no such index.
//!
//! | part | module |
//! |-|-|
//! | frames and files of write-ahead segments, group commit | `wal` |
//! | the ids of stored records | `ids` |
//! | Parquet files | `parquet` |
//! | the list of the archive's files | `manifest` |
//! | moving segments to Parquet, in a share of one processor; retention | `keeper` |
//! | the archive itself: opening, gathering, checking, copying | `local` |
//! | queries | [`query`] |
//! | searching and counting | `search` |
//! | answers in columns, as Arrow has them | [`columns`] |
//! | maintenance of an archive | [`upkeep`] |
//! | directories for backups that other hosts request | [`BackupPlaces`] |
//! | the same machinery for tables other than the log | `tables` |
//!
//! The files' contract is `spec/log-archive.md` and `spec/log-segment.md`.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_types::{BatchHeader, Incarnation, Time};

use crate::{
    columns::{ColumnBatch, ColumnType},
    query::Query,
};

mod backup_places;
pub mod columns;
pub mod framed;
mod ids;
mod keeper;
mod local;
mod manifest;
mod parquet;
pub mod query;
mod search;
mod tables;
pub mod upkeep;
mod wal;

pub use backup_places::BackupPlaces;
pub use keeper::keep::Keep;
pub use local::{
    LocalArchive,
    backup::BackedUp,
    check::Checked,
    options::{Options, Retention},
};
pub use parquet::{ColumnSpec, Layout, ParquetWriter, Shape};
pub use search::{
    Found, Scanned,
    counts::{Counts, Grouping},
    patterns::{Pattern, Patterns, PatternsWanted},
};
pub use tampu_workers::Stop;

pub use tables::{Cell, Find, KEYS, Place, Row, RowWriter, Schema, Swept, TableArchive};

/// Position up to which a stream is stored: everything before `next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StreamOffset {
    /// Incarnation of the writer.
    pub incarnation: Incarnation,
    /// Stream of that incarnation.
    pub stream: u32,
    /// Number of the first sample that is not stored yet.
    pub next: u64,
}

/// Samples to store, in their wire format.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Header of the stream; `first` and `count` number the samples.
    pub header: &'a BatchHeader,
    /// Each one `LogBatch`.
    pub samples: &'a [&'a [u8]],
    /// Time of reception.
    pub received: Time,
    /// Position of a stream after these samples, committed together with them. Usually it is the header's own stream. A
    /// record about a gap advances the stream that has the gap. An arrival that does not advance its stream is a
    /// duplicate and is not stored.
    pub advances: Option<StreamOffset>,
}

impl<'a> Arrival<'a> {
    /// Makes an arrival of a stream's samples that advances this stream.
    pub fn of_stream(header: &'a BatchHeader, samples: &'a [&'a [u8]], received: Time) -> Arrival<'a> {
        let advances = StreamOffset { incarnation: header.incarnation, stream: header.stream, next: header.next() };
        Arrival { header, samples, received, advances: Some(advances) }
    }
}

/// Result of one [`Archive::append`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appended {
    /// Ticket of the append. It is durable once [`Archive::committed`] has reached this value.
    pub ticket: u64,
    /// Number of records stored.
    pub records: u64,
    /// Number of records that were stored before.
    pub duplicates: u64,
}

/// Callback for the ticket up to which everything is durable.
pub type Told = Box<dyn Fn(u64) + Send + Sync>;

/// Damage of a stored file. The archive still serves everything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub file: PathBuf,
    /// Start of the damage, in bytes.
    pub from: u64,
    /// First good byte behind the damage.
    pub to: u64,
    /// Description of the damage and of the reaction to it.
    pub what: String,
}

impl Fault {
    fn damaged(file: &Path, from: u64, to: u64, why: String) -> Fault {
        let what = format!("damaged ({why}): {} bytes are not served, the rest is", to - from);
        Fault { file: file.to_owned(), from, to, what }
    }

    fn torn(file: &Path, from: u64, to: u64) -> Fault {
        let what = format!("the last write was interrupted: {} bytes that were never acknowledged were cut off", to - from);
        Fault { file: file.to_owned(), from, to, what }
    }

    fn unreadable(file: &Path, at: u64, why: String) -> Fault {
        Fault { file: file.to_owned(), from: at, to: at, what: format!("a batch cannot be read: {why}") }
    }
}

/// Progress of a long operation, in bytes; in records for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub done: u64,
    /// Total amount of work.
    pub total: u64,
}

/// Size of the Parquet part of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compacted {
    /// Number of Parquet files.
    pub files: u64,
    /// Number of records in them.
    pub records: u64,
    /// Size of them in bytes.
    pub bytes: u64,
}

/// Data that were removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Removal {
    /// Number of files.
    pub files: u64,
    /// Number of records in them.
    pub records: u64,
    /// Size of them in bytes.
    pub bytes: u64,
    /// Time of the earliest record.
    pub earliest: Time,
    /// Time of the latest record.
    pub latest: Time,
}

/// Event in an archive that should stand in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // The fields name the removed items, in whole files.
pub enum News {
    /// Records were removed because their retention has ended.
    Removed { files: u64, records: u64, bytes: u64, earliest: Time, latest: Time },
    /// The archive exceeds its size limit by so many bytes, but nothing in it is old enough to be removed.
    TooLarge { over: u64 },
    /// Records were removed because less than the reserve was free on the disk, and retention has limits.
    RemovedForRoom { files: u64, records: u64, bytes: u64, earliest: Time, latest: Time },
    /// So many bytes are missing for the reserve, but nothing may be removed.
    NoRoom { missing: u64 },
    /// Records arrived whose own time is more than two days from their reception.
    Far { records: u64 },
}

/// State of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Number of stored records.
    pub records: u64,
    /// Number of duplicate records, which were not stored again.
    pub duplicates: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Number of write-ahead segments.
    pub segments: usize,
    /// Number of closed segments that wait for compaction.
    pub waiting: usize,
    /// Number of Parquet files.
    pub files: usize,
    /// Number of records in them.
    pub in_files: u64,
    /// Bytes accepted but not yet on disk.
    pub pending: u64,
    /// Number of group commits since the archive was opened.
    pub commits: u64,
    /// Duration of the longest commit, in microseconds.
    pub slowest_commit_us: u64,
    /// Earliest record's time.
    pub earliest: Option<Time>,
    /// Latest record's time.
    pub latest: Option<Time>,
    /// Reason why nothing can be written at present.
    pub stuck: Option<String>,
    /// Reason why nothing can be compacted at present; segments wait meanwhile.
    pub compaction_stuck: Option<String>,
    /// Damage found so far.
    pub faults: Vec<Fault>,
}

/// Error of an archive operation.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Another process has the archive open for writing.
    #[error("the archive in {dir} is in use by {by}: stop it, or give this one another directory (--data DIR)")]
    InUse {
        /// Directory of the archive.
        dir: PathBuf,
        /// Name of the other process, if it is known.
        by: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("{doing} {path}: {source}")]
    File {
        /// Operation that failed, as `writing`.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The directory of a backup is not this archive's.
    #[error("{target} is not a backup of this archive: {why}; name an empty directory, or one with an earlier backup of it")]
    NotOurs {
        /// Directory of the backup.
        target: PathBuf,
        /// Reason, which names the present content.
        why: String,
    },
    /// Too much data waits for the disk. Nothing of the arrival was stored; the caller can retry.
    #[error("{pending} bytes wait to be written to {dir}, no more are taken: {why}")]
    Full {
        /// Directory of the archive.
        dir: PathBuf,
        /// Bytes that wait for the disk.
        pending: u64,
        /// Reason why the disk is behind.
        why: String,
    },
    /// A sample is not a valid `LogBatch`. Nothing of the arrival was stored.
    #[error("sample {sample} cannot be read: {why}")]
    Undecodable {
        /// Index of the sample in the arrival, from 0.
        sample: usize,
        /// Error of the decoder.
        why: String,
    },
    /// The query is invalid.
    #[error(transparent)]
    Query(#[from] crate::query::BadQuery),
    /// Compaction is incomplete: some records are not in Parquet files.
    #[error("the compaction is not complete: {0}")]
    Compaction(String),
    /// The operation was stopped before it was complete.
    #[error("{0} was stopped before its end")]
    Stopped(&'static str),
    /// No memory for decompression.
    #[error("nothing compressed can be read: {0}")]
    Decompressor(io::Error),
    /// The archive is closing.
    #[error("the archive is closed")]
    Closed,
}

/// Store for log records. Other stores can implement this interface.
pub trait Archive: Send + Sync + 'static {
    /// Stores samples. They are durable, and visible to searches, once [`Archive::committed`] has reached the ticket.
    /// If the disk is behind, it waits for a limited time and then refuses.
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError>;

    /// Returns the ticket up to which everything is durable.
    fn committed(&self) -> u64;

    /// Has the samples that wait committed without waiting for more: a caller waits for them. Does not wait itself.
    fn hurry(&self) {}

    /// Calls `told` with the ticket after every commit, on the archive's own worker. The callback must be quick.
    fn on_commit(&self, told: Told);

    /// Waits until every accepted record is durable; returns whether it is.
    fn flush(&self, timeout: Duration) -> bool;

    /// Calls `sink` with the matching records, in the query's order. It ends when `sink` returns `false`, at the limit,
    /// or when `stop` is set.
    fn search(&self, query: &Query, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError>;

    /// Calls `sink` with the matching records in columns of this schema, in the query's order. Ends as [`Archive::search`].
    fn columns(
        &self,
        query: &Query,
        schema: &[(&'static str, ColumnType)],
        stop: &Stop,
        sink: &mut dyn FnMut(ColumnBatch) -> bool,
    ) -> Result<Scanned, ArchiveError>;

    /// Counts the matching records.
    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError>;

    /// Counts the matching records by the place in the program that logged them.
    fn patterns(&self, query: &Query, wanted: &PatternsWanted, stop: &Stop) -> Result<Patterns, ArchiveError>;

    /// Moves every accepted record into Parquet files; reports progress to `doing`.
    fn compact(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Compacted, ArchiveError>;

    /// Reads everything and compares it with its description; reports progress to `doing`.
    fn check(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Checked, ArchiveError>;

    /// Makes `target` a backup that can be opened in the archive's place, or updates such a backup; reports progress to
    /// `doing`.
    fn backup(&self, target: &Path, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<BackedUp, ArchiveError>;

    /// Returns the committed position of every stream.
    fn offsets(&self) -> Vec<StreamOffset>;

    fn health(&self) -> Health;

    /// Returns the data that these limits would remove at once. A store without limits removes nothing.
    fn removal(&self, _retention: &Retention) -> Removal {
        Removal::default()
    }

    /// Returns the reason why nothing can be written at present. The call is cheap.
    fn stuck(&self) -> Option<String> {
        self.health().stuck
    }
}
