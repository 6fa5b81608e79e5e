//! The collector: moves every log batch from the bus to the archive, acknowledges durable batches, and answers queries.
//!
//! The collector acknowledges a stream only after the commit that made it durable. It resumes every stream at the
//! position that the archive reports. A collector may therefore die at any moment. Acknowledged records are in the
//! archive. All others are still in their writer's cache and are sent again; duplicates are kept once. A batch that
//! cannot be read is set aside and never stops the collector. A loss that the bus reports becomes a record of its own,
//! so that a reader of the archive sees the gap years later.
//!
//! | part | module |
//! |-|-|
//! | reading batches, acknowledging them | `intake` |
//! | the record about a gap | `gaps` |
//! | batches that cannot be read | `rejected` |
//! | limits on one source | [`quota`] |
//! | reports of records that were dropped on purpose | `dropped` |
//! | packets from a spool | `spooled` |
//! | traffic and losses of each source | [`status`] |
//! | times until batches are durable | [`latency`] |
//! | destinations besides the archive | [`router`] |
//! | maintenance of the archive | `tampu_archive::upkeep` |
//! | requests and replies | `services`, and their client side [`ask`] |
//!
//! | topic or service | content |
//! |-|-|
//! | `log/*` (topics) | live records, one topic a level |
//! | `log-import` (topic) | records from files: kept, never shown live |
//! | `log-attached/*` (topics) | records for attached readers: kept only where the collector's options allow it |
//! | `log-spool` (topic) | packets that nodes kept while no collector ran: see [`crate::spool`] |
//! | `log/query`, `log/stat`, `log/status`, `log/offsets`, `log/keeps`, `log/archive` (services) | see [`ask`] |

use std::{
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
};

use tampu_archive::Archive;
use tampu_bus::{Ack, History, Hold, Participant, ReaderQos, engine::Guard};
use tampu_types::{PartitionFilter, TopicFilter};
use tampu_workers::WorkerThread;

use self::{intake::Intake, quota::Quotas, services::Services, state::CollectorShared};
use crate::spool::topic::SPOOL_TOPIC;

pub mod ask;
mod dropped;
mod error;
mod gaps;
mod intake;
pub mod latency;
mod messages;
mod options;
pub mod quota;
mod rejected;
mod ring_losses;
pub mod router;
mod services;
mod spooled;
mod state;
pub mod status;
pub(crate) mod topics;

pub use self::{
    error::CollectorError,
    options::CollectorOptions,
    topics::{ATTACHED_TOPICS, IMPORT_TOPIC, LIVE_TOPICS},
};

/// A running collector; ends when dropped.
pub struct Collector {
    shared: Arc<CollectorShared>,
    workers: Vec<JoinHandle<()>>,
    _services: Vec<Guard>,
}

impl Collector {
    /// Starts taking records into the archive and answering for it.
    pub fn start(
        participant: Participant,
        archive: Arc<dyn Archive>,
        options: CollectorOptions,
    ) -> Result<Collector, CollectorError> {
        let shared = CollectorShared::new(participant, archive, options);
        let mut collector = Collector { shared: shared.clone(), workers: Vec::new(), _services: Vec::new() };
        // Services first: a process that finds the collector may send it a request.
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
        let on_panic = shared.options.on_panic;
        let intake = Intake::new(shared, reader, router);
        let worker =
            WorkerThread::named(format!("collect {topics}")).counted_as("collector intake").spawn(on_panic, move || intake.run());
        self.workers.push(worker.map_err(CollectorError::Worker)?);
        Ok(())
    }

    /// Changes the quotas. They hold for the next packets; what a source has sent before stays counted.
    pub fn set_quotas(&self, quotas: Quotas) {
        *self.shared.quotas.write() = Arc::new(quotas);
        self.shared.quota_changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the records received by source, and the state of the archive.
    pub fn status(&self) -> status::Report {
        self.shared.report()
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
