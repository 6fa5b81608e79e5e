//! The spool: what keeps a host's records on its disk while no collector does.
//!
//! Decision: the host's node becomes the durable reader of its host's log streams when no collector has kept them for a while. It
//! reads each stream from where the last keeper stopped ([`tampu_bus::Hold::Interim`]), writes the packets as they came into files,
//! and acknowledges what is synced; so processes may end or log on without loss, and a record is in a ring, in a spool or in an
//! archive at any time. When a collector is back, the spool leaves the streams and gives it what it has, by a topic of its own;
//! ids are those the records have always had, so whatever comes twice (from the spool and from a writer's cache) is kept once.
//! A file goes when everything in it is acknowledged. Whoever dies in between, node or collector, begins again where it was.
//!
//! An acknowledgement of the spool lets a ring go on; it never confirms a call of [`crate::Logger::acknowledged`], which waits for a
//! collector's commit. Rejected: that the node always writes everything (twice the disk for what is nearly never needed); that a spool
//! per process does it (a thousand files to sync, and nobody to replay those of the dead); that packets are published again in
//! their streams (sequence numbers are their writer's).
//!
//! | part | module |
//! |-|-|
//! | one packet, as bytes | `frame` |
//! | one file of them | `file` |
//! | the directory, its bounds | `store` |
//! | what is known of packets that have gone | `ledger` |
//! | whether a collector keeps records | `watch` |
//! | reading, and giving back | `work` |
//! | telling | `answer` |
//!
//! The files' contract, and what travels, is `spec/log-spool.md`.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde::Serialize;
use tampu_bus::{BusError, Participant, TypeTag, engine::Guard};
use tampu_types::{Incarnation, SourceName, Time, name::BadTopic};

use self::{store::Store, watch::Watch};
use crate::archive::Fault;

mod answer;
pub(crate) mod file;
pub(crate) mod frame;
mod ledger;
mod store;
mod watch;
mod work;

pub use answer::{SPOOL, reports, taken};
pub use ledger::Lost;
pub(crate) use ledger::Ranges;

/// The topic by which a spool gives back what it holds.
pub const SPOOL_TOPIC: &str = "log-spool";

/// What its samples are: frames of the spool's files.
pub const SPOOLED: TypeTag = TypeTag { id: 6, version: 1 };

/// A spool's bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolOptions {
    /// Bytes on disk that one source may take. Beyond them its newest packets are refused: counted, told, and not kept.
    pub per_source: u64,
    /// Bytes that all sources may take together.
    pub total: u64,
    /// A file that has reached this many bytes is followed by a new one.
    pub file: u64,
    /// How long no collector must have kept records before the spool does.
    pub after: Duration,
    /// How long packets gather before they go to the disk together.
    pub linger: Duration,
    /// How long is waited after the disk has refused.
    pub retry: Duration,
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
        }
    }
}

/// Why there is no spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process writes there.
    #[error("the spool in {0} is in use by another process")]
    InUse(PathBuf),
    /// The directory or a file in it cannot be used.
    #[error("{doing} {path}: {source}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A topic of ours is none.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// No worker could be started.
    #[error("the spool's worker cannot be started: {0}")]
    Worker(std::io::Error),
}

/// What a spool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    /// Nothing: a collector keeps records, or has only just gone.
    #[default]
    Watching,
    /// It takes what is logged on its host.
    Spooling,
    /// It gives a collector what it holds.
    Replaying,
}

/// How a spool is: what `log/spool` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpoolReport {
    /// Its name on the bus.
    pub spool: String,
    /// Its life.
    pub incarnation: Incarnation,
    /// Where its files are.
    pub directory: PathBuf,
    /// What it does now.
    pub doing: Doing,
    /// Bytes that lie in it.
    pub bytes: u64,
    /// Records that lie in it.
    pub records: u64,
    /// When the oldest of them came, ns UTC.
    pub since: Option<Time>,
    /// Records given to collectors since it started.
    pub replayed: u64,
    /// Why it cannot write.
    pub stuck: Option<String>,
    /// Everybody of whom something lies in it, or was lost.
    pub sources: Vec<SourceSpool>,
    /// Damage found.
    pub faults: Vec<Fault>,
}

/// What lies in a spool of one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SourceSpool {
    /// Its name.
    pub source: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// When the oldest came, ns UTC.
    pub since: Option<Time>,
    /// What was lost of it here, ever.
    pub lost: Lost,
}

/// What a spool tells as it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// It takes what is logged from now on, because of this.
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
        /// Whose.
        source: SourceName,
        /// Records in them.
        records: u64,
        /// Their bytes.
        bytes: u64,
        /// The bound that was reached.
        why: &'static str,
    },
    /// Samples had gone before the spool got them.
    Missed {
        /// Whose.
        source: SourceName,
        /// Which and why.
        what: String,
    },
    /// It cannot write, because of this; or it can again.
    Stuck(Option<String>),
    /// A file of it was found damaged.
    Damaged(Fault),
    /// It could not read or write the bus.
    Failed(String),
}

/// A spool at work; ends when dropped. What is in it stays for the next.
pub struct Spool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    _services: Vec<Guard>,
}

struct Shared {
    participant: Participant,
    directory: PathBuf,
    options: SpoolOptions,
    store: Mutex<Store>,
    watch: Watch,
    state: Mutex<State>,
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    doing: Doing,
    stuck: Option<String>,
    replayed: u64,
}

impl Spool {
    /// Opens the directory and looks after this host's records from now on. Tells what happens; `tell` may log, and must not wait.
    pub fn start(
        participant: Participant,
        directory: &Path,
        options: SpoolOptions,
        tell: impl Fn(News) + Send + 'static,
    ) -> Result<Spool, SpoolError> {
        let store = Store::open(directory, participant.domain(), options.clone())?;
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            options,
            store: Mutex::new(store),
            watch: Watch::default(),
            state: Mutex::default(),
            stopping: AtomicBool::new(false),
            participant,
        });
        let mut spool = Spool { shared: shared.clone(), workers: Vec::new(), _services: Vec::new() };
        spool._services = answer::declare(&shared)?;
        let watched = shared.clone();
        spool.work("tampu-spool-eye", move || watched.watch.run(&watched.participant, || watched.is_stopping()))?;
        spool.work("tampu-spool", move || work::Work::new(shared, Box::new(tell)).run())?;
        Ok(spool)
    }

    fn work(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), SpoolError> {
        let worker = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.workers.push(worker.map_err(SpoolError::Worker)?);
        Ok(())
    }

    /// How it is.
    pub fn report(&self) -> SpoolReport {
        self.shared.report()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self._services.clear();
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> SpoolReport {
        let store = self.store();
        let mut report = SpoolReport {
            spool: self.participant.source().to_string(),
            incarnation: self.participant.incarnation(),
            directory: self.directory.clone(),
            bytes: store.bytes(),
            faults: store.faults.clone(),
            ..SpoolReport::default()
        };
        let lost = store.ledger().lost();
        let mut accounts = store.accounts();
        lost.keys().for_each(|source| {
            accounts.entry(source.clone()).or_default();
        });
        for (source, account) in accounts {
            report.records += account.records;
            report.since = match (report.since, account.since) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            let lost = lost.get(&source).copied().unwrap_or_default();
            let store::Account { bytes, records, since } = account;
            report.sources.push(SourceSpool { source, bytes, records, since, lost });
        }
        drop(store);
        let state = self.state();
        (report.doing, report.replayed) = (state.doing, state.replayed);
        report.stuck.clone_from(&state.stuck);
        report
    }
}
