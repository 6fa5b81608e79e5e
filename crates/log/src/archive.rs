//! The archive: keeps every record once and finds it again.
//!
//! [`Archive`] is what a collector and its clients need of one; [`LocalArchive`] is the one built in. It keeps what comes in
//! write-ahead segments, and what has been there for a while in Parquet files. A batch is stored as it came from the wire, so
//! that ingest costs a checksum and a copy, nothing is re-encoded while somebody waits, and what a later release added to a
//! record survives an older collector. Taking closed segments into Parquet makes them a tenth as large, quick to search and
//! readable for other people's tools. We rejected a database: at a million records a second an index per record costs more than
//! everything else together, and a search that leaves out whole files, row groups and frames needs none.
//!
//! | part | module |
//! |-|-|
//! | one frame, as bytes | `frame` |
//! | one file of frames, and what survives damage | `segment`, `side` |
//! | the ids that are there | `seen`, `known` |
//! | what a batch holds, in one pass | `digest` |
//! | opening, gathering and group commit | `open`, `local`, `group`, `commit` |
//! | Parquet files | `parquet`, `stored` |
//! | which of them are the archive's | `manifest` |
//! | from segments to Parquet, in a share of one processor | `keeper`, `merge`, `budget` |
//! | what is kept how long | `keep` |
//! | checking, copying | `check`, `backup` |
//! | searching and counting | `search`, `counts`, `units` |
//! | the same machinery for other tables than the log | `content`, `plain` |
//!
//! The files' contract is `spec/log-archive.md` and `spec/log-segment.md`.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tampu_types::{BatchHeader, Incarnation, Time};

use crate::query::Query;

mod backup;
mod budget;
mod check;
mod commit;
mod content;
mod counts;
mod digest;
mod frame;
mod group;
mod hash;
mod keep;
mod keeper;
mod known;
mod local;
mod manifest;
mod merge;
mod open;
mod parquet;
mod plain;
mod search;
mod seen;
mod segment;
mod side;
mod stored;
mod units;

pub use backup::BackedUp;
pub use check::Checked;
pub use counts::{Counts, Grouping};
pub use keep::Keep;
pub use local::{LocalArchive, Options};
pub use parquet::{ColumnSpec, Layout, ParquetWriter, Shape};
pub use plain::{Cell, Find, KEYS, Place, Row, Schema, Swept, TableArchive};
pub use search::{Found, Scanned};

/// How far a stream has been stored: everything before `next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StreamOffset {
    /// The writer's life.
    pub incarnation: Incarnation,
    /// The stream of that life.
    pub stream: u32,
    /// The first sample that is still to come.
    pub next: u64,
}

/// Samples to store, as they came.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Whose they are; `first` and `count` say which.
    pub header: &'a BatchHeader,
    /// Each one `LogBatch`.
    pub samples: &'a [&'a [u8]],
    /// When they arrived.
    pub received: Time,
    /// Where a stream stands once they are stored, committed together with them. Usually the header's own stream; a record
    /// about a gap advances the stream that has the gap. What does not advance its stream is already there and is not stored.
    pub advances: Option<StreamOffset>,
}

impl<'a> Arrival<'a> {
    /// Samples of a stream, advancing it.
    pub fn of_stream(header: &'a BatchHeader, samples: &'a [&'a [u8]], received: Time) -> Arrival<'a> {
        let advances = StreamOffset { incarnation: header.incarnation, stream: header.stream, next: header.next() };
        Arrival { header, samples, received, advances: Some(advances) }
    }
}

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appended {
    /// It is durable once [`Archive::committed`] has reached this.
    pub ticket: u64,
    /// Records taken.
    pub records: u64,
    /// Records that were there already.
    pub duplicates: u64,
}

/// Called with the ticket up to which everything is durable.
pub type Told = Box<dyn Fn(u64) + Send + Sync>;

/// Ends a search from outside, or when its time is up.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    stopped: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Stop {
    /// Ends after this time.
    pub fn after(time: Duration) -> Stop {
        Stop { until: Instant::now().checked_add(time), ..Stop::default() }
    }

    /// Ends whatever looks at it.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for or the time is up.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Something wrong with a stored file; the rest of the archive is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub from: u64,
    /// Where it is good again.
    pub to: u64,
    /// What is wrong and what was done.
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

/// How far a long piece of work is: bytes, but records for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    /// Dealt with.
    pub done: u64,
    /// All there is.
    pub total: u64,
}

/// What is in an archive's lasting form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compacted {
    /// Parquet files.
    pub files: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Something that has happened in an archive and should stand in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // What was removed, in whole files; the fields say it.
pub enum News {
    /// Records were removed, as they had been kept long enough.
    Removed { files: u64, records: u64, bytes: u64, earliest: Time, latest: Time },
    /// The archive is so many bytes larger than it should be, but nothing in it is old enough to be removed.
    TooLarge { over: u64 },
}

/// How an archive is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Records in it.
    pub records: u64,
    /// Records that came again and were not stored again.
    pub duplicates: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Segments.
    pub segments: usize,
    /// Of these, how many are closed and wait for compaction.
    pub waiting: usize,
    /// Parquet files.
    pub files: usize,
    /// Records in them.
    pub in_files: u64,
    /// Bytes taken but not yet on disk.
    pub pending: u64,
    /// Group commits since it was opened.
    pub commits: u64,
    /// How long the longest of them took, in microseconds.
    pub slowest_commit_us: u64,
    /// Earliest record's time.
    pub earliest: Option<Time>,
    /// Latest record's time.
    pub latest: Option<Time>,
    /// Why nothing can be written now.
    pub stuck: Option<String>,
    /// Why nothing can be compacted now; segments wait meanwhile.
    pub compaction_stuck: Option<String>,
    /// Damage found.
    pub faults: Vec<Fault>,
}

/// Why an archive could not do something.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Another process writes there.
    #[error("the archive in {dir} is in use by {by}: stop it, or give this one another directory (--data DIR)")]
    InUse {
        /// Where.
        dir: PathBuf,
        /// The other process, as far as it is known.
        by: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("{doing} {path}: {source}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What waits for the disk has reached its bound. Nothing of the arrival was taken; it can be tried again.
    #[error("{pending} bytes wait to be written to {dir}, no more are taken: {why}")]
    Full {
        /// Where.
        dir: PathBuf,
        /// Bytes that wait.
        pending: u64,
        /// What holds them up.
        why: String,
    },
    /// A sample is no `LogBatch`. Nothing of the arrival was taken.
    #[error("sample {sample} cannot be read: {why}")]
    Undecodable {
        /// Which of the arrival's samples, from 0.
        sample: usize,
        /// Why.
        why: String,
    },
    /// The query cannot be understood.
    #[error(transparent)]
    Query(#[from] crate::query::BadQuery),
    /// Not everything is in Parquet files.
    #[error("the compaction is not complete: {0}")]
    Compaction(String),
    /// It was to end before it was done.
    #[error("{0} was stopped before its end")]
    Stopped(&'static str),
    /// No memory for reading what is compressed.
    #[error("nothing compressed can be read: {0}")]
    Decompressor(io::Error),
    /// The archive is closing.
    #[error("the archive is closed")]
    Closed,
}

/// A place that keeps log records: the seam behind which other stores stand.
pub trait Archive: Send + Sync + 'static {
    /// Takes samples. They are durable, and visible to searches, once [`Archive::committed`] has reached the ticket. Waits a
    /// bounded time where the disk is behind, then refuses.
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError>;

    /// The ticket up to which everything is durable.
    fn committed(&self) -> u64;

    /// Calls `told` with the ticket after every commit, on the archive's own worker; it must be quick.
    fn on_commit(&self, told: Told);

    /// Waits until everything taken so far is durable; returns whether it is.
    fn flush(&self, timeout: Duration) -> bool;

    /// Calls `sink` with what the query asks for, in its order, until it returns `false`, the limit is reached or `stop` is.
    fn search(&self, query: &Query, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError>;

    /// Counts what the query asks for.
    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError>;

    /// Puts everything taken so far into the form it stays in; tells how far it is.
    fn compact(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Compacted, ArchiveError>;

    /// Reads everything and holds it against what is said of it; tells how far it is.
    fn check(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Checked, ArchiveError>;

    /// Makes `target` a copy of it that can be opened in its place, or brings such a copy up to date; tells how far it is.
    fn backup(&self, target: &Path, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<BackedUp, ArchiveError>;

    /// Where every stream stands, committed.
    fn offsets(&self) -> Vec<StreamOffset>;

    /// How it is.
    fn health(&self) -> Health;

    /// Why nothing can be written now; cheap enough to ask often.
    fn stuck(&self) -> Option<String> {
        self.health().stuck
    }
}
