//! The collector: takes every log batch off the bus into the archive, acknowledges what is durable, and answers questions.
//!
//! It acknowledges a stream only after the commit that made it durable, and resumes every stream where the archive says it
//! stands. So a collector may die at any moment: what was acknowledged is in the archive, what was not is still in its
//! writer's cache and comes again, and what comes twice is kept once. A batch that cannot be read is set aside and never stops
//! it. What the bus tells as lost becomes a record of its own, so that a reader of the archive years later sees the hole.
//!
//! | part | module |
//! |-|-|
//! | taking batches, acknowledging | `intake` |
//! | the record about a gap | `gaps` |
//! | batches that cannot be read | `rejected` |
//! | what one source may send | [`quota`] |
//! | telling what was not taken on purpose | `dropped` |
//! | what comes by way of a spool | `spooled` |
//! | who sends how much | [`status`] |
//! | how long it takes | [`latency`] |
//! | where records go besides | [`router`] |
//! | looking after the archive | [`upkeep`] |
//! | questions and answers | `services`, and their asking side [`ask`] |
//!
//! | topic or service | what |
//! |-|-|
//! | `log/*` (topics) | live records, one topic a level |
//! | `log-import` (topic) | records from files: kept, never shown live |
//! | `log-attached/*` (topics) | records for attached readers: kept only where its options say so |
//! | `log-spool` (topic) | what nodes have kept meanwhile: see [`crate::spool`] |
//! | `log/query`, `log/stat`, `log/status`, `log/offsets`, `log/keeps`, `log/archive` (services) | see [`ask`] |

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_bus::{Ack, BusError, History, Hold, Participant, ReaderQos, access::Access, engine::Guard};
use tampu_types::{PartitionFilter, TopicFilter, name::BadTopic};

use self::{
    intake::Intake, latency::Latency, quota::Quotas, rejected::Rejected, router::Router, services::Services, spooled::Spooled,
    status::Status,
};
use crate::{archive::Archive, spool::SPOOL_TOPIC};

pub mod ask;
mod dropped;
mod gaps;
mod intake;
pub mod latency;
pub mod quota;
mod rejected;
pub mod router;
mod services;
mod spooled;
pub mod status;
pub mod upkeep;

/// The topics of live records, one a level.
pub const LIVE_TOPICS: &str = "log/*";
/// The topic of records from files.
pub const IMPORT_TOPIC: &str = "log-import";

/// The topics of what is published for attached readers alone.
pub const ATTACHED_TOPICS: &str = "log-attached/*";

/// The collector's bounds.
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// Where batches that cannot be read are set aside.
    pub rejected: PathBuf,
    /// How many bytes of them are kept there; beyond it they are only counted.
    pub rejected_bytes: u64,
    /// Bytes that may wait on their way from the bus; beyond them batches are left to the writers' caches.
    pub queue: usize,
    /// How long one search may take; then it answers with what it has and says so.
    pub search_time: Duration,
    /// How many searches may run at once; more are refused.
    pub searches: usize,
    /// Who may write to it and ask it.
    pub access: Access,
    /// What one source may send to be kept.
    pub quotas: Quotas,
    /// Whether records are kept that are published for attached readers alone.
    pub keep_attached: bool,
    /// Where live records go besides the archive.
    pub router: Option<Arc<dyn Router>>,
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
            access: Access::same_user(),
            quotas: Quotas::none(),
            keep_attached: false,
            router: None,
        }
    }
}

/// Why a collector could not start.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A topic of ours is none.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// No worker could be started.
    #[error("the collector's worker cannot be started: {0}")]
    Worker(std::io::Error),
}

/// A running collector; ends when dropped.
pub struct Collector {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    _services: Vec<Guard>,
}

struct Shared {
    participant: Participant,
    archive: Arc<dyn Archive>,
    options: CollectorOptions,
    status: Status,
    rejected: Rejected,
    latency: Latency,
    spooled: Spooled,
    /// Batches taken and not yet durable.
    waiting: AtomicU64,
    /// Streams of writers that are here.
    streams: AtomicU64,
    /// Numbers the collector's own records.
    numbers: AtomicU64,
    stopping: AtomicBool,
}

impl Collector {
    /// Starts taking records into the archive and answering for it.
    pub fn start(
        participant: Participant,
        archive: Arc<dyn Archive>,
        options: CollectorOptions,
    ) -> Result<Collector, CollectorError> {
        let shared = Shared::new(participant, archive, options);
        let mut collector = Collector { shared: shared.clone(), workers: Vec::new(), _services: Vec::new() };
        // Answers first: who finds the collector may ask it.
        collector._services = Services::declare(&shared)?;
        let attached = shared.options.keep_attached.then_some(ATTACHED_TOPICS);
        for topics in [LIVE_TOPICS, IMPORT_TOPIC, SPOOL_TOPIC].into_iter().chain(attached) {
            collector.take_in(topics)?;
        }
        Ok(collector)
    }

    fn take_in(&mut self, topics: &str) -> Result<(), CollectorError> {
        let shared = self.shared.clone();
        let resume = shared.archive.offsets();
        let qos = ReaderQos {
            reliable: true,
            history: History::All,
            ack: Ack::Manual,
            hold: Hold::Full,
            direct: false,
            queue: shared.options.queue,
            resume: resume.into_iter().map(|offset| (offset.incarnation, offset.stream, offset.next)).collect(),
        };
        let reader = shared.participant.reader(&TopicFilter::new(topics)?, &PartitionFilter::All, qos)?;
        let router = if topics == LIVE_TOPICS || topics == SPOOL_TOPIC { shared.options.router.clone() } else { None };
        let intake = Intake::new(shared, reader, router);
        let worker = std::thread::Builder::new().name(format!("collect {topics}")).spawn(move || intake.run());
        self.workers.push(worker.map_err(CollectorError::Worker)?);
        Ok(())
    }

    /// What it has taken, from whom, and how its archive is.
    pub fn status(&self) -> status::Report {
        self.shared.report()
    }
}

impl Shared {
    fn new(participant: Participant, archive: Arc<dyn Archive>, options: CollectorOptions) -> Arc<Shared> {
        Arc::new(Shared {
            rejected: Rejected::new(options.rejected.clone(), options.rejected_bytes),
            status: Status::default(),
            latency: Latency::default(),
            spooled: Spooled::default(),
            waiting: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            participant,
            archive,
            options,
        })
    }

    fn report(&self) -> status::Report {
        let (rejected, kept) = self.rejected.counts();
        status::Report {
            collector: self.participant.source().to_string(),
            incarnation: self.participant.incarnation(),
            rejected,
            rejected_kept: kept,
            streams: self.streams.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            durable: self.latency.read(),
            targets: self.options.router.as_ref().map(|router| router.report()).unwrap_or_default(),
            sources: self.status.sources(self.participant.clock().utc()),
            archive: self.archive.health(),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self._services.clear();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
