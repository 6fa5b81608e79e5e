//! State of a running collector.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::RwLock;
use tampu_archive::Archive;
use tampu_bus::{
    Participant,
    access::{Denied, Resource, Verb},
};
use tampu_types::{SourceName, TopicName};

use super::{
    latency::Latency,
    options::CollectorOptions,
    quota::Quotas,
    rejected::Rejected,
    spooled::Spooled,
    status::{self, Status},
};

/// State that the workers and services of a collector share.
pub(super) struct CollectorShared {
    pub(super) participant: Participant,
    pub(super) archive: Arc<dyn Archive>,
    pub(super) options: CollectorOptions,
    /// The quotas in force, and the number of their changes. They begin as in the options.
    pub(super) quotas: RwLock<Arc<Quotas>>,
    pub(super) quota_changes: AtomicU64,
    pub(super) status: Status,
    pub(super) rejected: Rejected,
    pub(super) latency: Latency,
    pub(super) spooled: Spooled,
    /// Batches taken and not yet durable.
    pub(super) waiting: AtomicU64,
    /// Streams of writers that are here.
    pub(super) streams: AtomicU64,
    /// Numbers the collector's own records.
    pub(super) numbers: AtomicU64,
    pub(super) stopping: AtomicBool,
}

impl CollectorShared {
    /// Asks the access hook if a sender on this proved host may write records of a source under a topic.
    pub(super) fn may_write(&self, host: Option<&str>, topic: &TopicName, source: &SourceName) -> Result<(), Denied> {
        let access = &self.options.access;
        let sender = self.participant.sender(access, host);
        access.ask_for(&sender, Verb::Write, &Resource::Topic(topic.to_string()))?;
        access.ask_for(&sender, Verb::Write, &Resource::Source(source.to_string()))
    }

    pub(super) fn new(participant: Participant, archive: Arc<dyn Archive>, options: CollectorOptions) -> Arc<CollectorShared> {
        let options = CollectorOptions { access: options.access.bound_to(&participant), ..options };
        Arc::new(CollectorShared {
            rejected: Rejected::new(options.rejected.clone(), options.rejected_bytes),
            quotas: RwLock::new(Arc::new(options.quotas.clone())),
            quota_changes: AtomicU64::new(0),
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

    pub(super) fn report(&self) -> status::Report {
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
