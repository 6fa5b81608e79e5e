//! State that an archive shares with its workers.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use crate::{
    Fault, Told,
    keeper::requests::KeeperRequests,
    local::{
        gathering::Gathering,
        options::{Options, Retention},
    },
    manifest::Manifest,
    parquet::stored::{Stored, Tables},
    wal::{content::Content, segment::Segment},
};

/// State of an open archive.
pub(crate) struct ArchiveState {
    pub(crate) options: Options,
    /// The retention in force. It begins as in the options.
    pub(crate) retention: RwLock<Retention>,
    pub(crate) content: Content,
    pub(crate) dir: PathBuf,
    pub(crate) gathering: Mutex<Gathering>,
    /// Signals the commit writer: there is work, or the archive closes.
    pub(crate) work: Condvar,
    /// Signals that a group has been taken or committed.
    pub(crate) moved: Condvar,
    pub(crate) contents: RwLock<Contents>,
    /// Highest number of a closed segment.
    pub(crate) closed: AtomicU64,
    pub(crate) tables: Arc<Tables>,
    /// The manifest. Its lock is held while files are added or removed.
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) requests: Mutex<KeeperRequests>,
    /// Signals a call to the keeper.
    pub(crate) call: Condvar,
    /// Signals a completed action of the keeper.
    pub(crate) called: Condvar,
    pub(crate) committed: AtomicU64,
    pub(crate) told: Mutex<Vec<Told>>,
    pub(crate) faults: Mutex<Vec<Fault>>,
}

/// Segments and Parquet files; each record is in exactly one of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) files: Arc<Vec<Arc<Stored>>>,
}

impl ArchiveState {
    pub(crate) fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock()
    }

    /// Returns a consistent list of segments and files for one search, while the archive continues to run.
    pub(crate) fn contents(&self) -> Contents {
        self.contents.read().clone()
    }

    pub(crate) fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock()
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, KeeperRequests> {
        self.requests.lock()
    }

    /// Returns the number of closed segments that are not yet in Parquet.
    pub(crate) fn waiting(&self) -> usize {
        let closed = self.closed.load(Ordering::Acquire);
        let contents = self.contents.read();
        contents.segments.iter().filter(|segment| segment.number <= closed).count()
    }

    /// Returns whether damage of a segment is known.
    pub(crate) fn is_damaged(&self, segment: &Segment) -> bool {
        let faults = self.faults.lock();
        faults.iter().any(|fault| fault.file == segment.path) || !segment.met.lock().is_empty()
    }

    /// Returns the error of a worker that could not be started.
    pub(crate) fn not_started(&self, source: std::io::Error) -> crate::ArchiveError {
        crate::ArchiveError::File { doing: "starting a worker of", path: self.dir.clone(), source }
    }
}
