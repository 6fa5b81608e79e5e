//! The history of events: a subscriber that keeps the events of attributes, and the services that answer questions
//! about them.
//!
//! ```text
//! all attributes -> intake (selection, missing numbers) -> queue -> writer -> archive (segments, then Parquet)
//!                                                                      questions: event/history, event/archive <-'
//! ```
//! The history is an ordinary subscriber. Its table uses the archive's machinery (`tampu_archive::TableArchive`) and
//! stands beside the log's directory. Some events cannot be kept: the bus lost them, no hub was running, the queue was
//! full, or they are too long. The history records them as gaps, so it never pretends to be complete. The contract is
//! `spec/event-archive.md`.
//!
//! | part | module |
//! |-|-|
//! | the numbers of an attribute that are in rows | `ledger` |
//! | selecting events | `intake` |
//! | the queue, and the thread that writes | `queue`, `writer` |
//! | events that the archive rejected | `unwritten` |
//! | the table: columns, rows from events and back | `table` |
//! | settings of a site; notices for its log | [`HistorySettings`], [`HistoryNotice`] |
//! | answering questions | `service` |
//! | asking questions | [`ask`] |

pub mod ask;
mod intake;
mod ledger;
mod notice;
mod queue;
mod service;
mod settings;
mod table;
mod unwritten;
mod writer;

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use parking_lot::RwLock;
use tampu_archive::{ArchiveError, Fault, Options, TableArchive};
use tampu_bus::{BusError, Participant, access::Access, engine::Guard};
use tampu_types::event::{AttributePattern, Kinds};

use self::{intake::EventIntake, queue::EventQueue, service::Services, writer::HistoryWriter};
pub use self::{
    notice::HistoryNotice,
    service::DIRECTORY,
    settings::{HistorySettings, LONGEST_KB},
    table::{SCHEMA, kept, row},
};
use crate::{
    Client,
    client::{ClientSettings, SubscribeOptions, Subscription},
};

/// Errors of starting the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The archive cannot be opened.
    #[error("events: {0}")]
    Archive(#[from] ArchiveError),
    /// The bus rejected a reader or a service.
    #[error("events: {0}")]
    Bus(#[from] BusError),
    /// The system could not start a thread.
    #[error("events: cannot start a thread: {0}")]
    Worker(std::io::Error),
}

/// Counters and sizes of the history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryReport {
    /// Number of rows written since the start.
    pub kept: u64,
    /// Number of events that could not be kept since the start.
    pub lost: u64,
    /// Number of events that the access rules refused since the start.
    pub refused: u64,
    /// Number of events that wait for the archive.
    pub waiting: u64,
    /// Bytes of these events.
    pub waiting_bytes: u64,
    /// Number of rows in the archive.
    pub rows: u64,
    /// Bytes of the archive on disk.
    pub bytes: u64,
    /// True while the archive cannot write.
    pub stuck: bool,
}

/// Source of reports. It can outlive the history.
pub struct HistoryReporter {
    archive: Arc<TableArchive>,
    queue: Arc<EventQueue>,
}

impl HistoryReporter {
    /// Returns the present counters and sizes.
    pub fn report(&self) -> HistoryReport {
        let (waiting, waiting_bytes, kept, lost) = self.queue.counts();
        let refused = self.queue.refused.load(Ordering::Relaxed);
        let health = self.archive.health();
        let stuck = self.archive.stuck().is_some();
        let (waiting, waiting_bytes) = (waiting as u64, waiting_bytes as u64);
        HistoryReport { kept, lost, refused, waiting, waiting_bytes, rows: health.records, bytes: health.bytes, stuck }
    }
}

/// Running history. Dropping it ends it, after the waiting events are written.
pub struct History {
    // The fields end in this order: services, then the subscription, then the writer.
    _services: Vec<Guard>,
    _subscription: Subscription,
    _client: Client,
    writer: HistoryWriter,
    archive: Arc<TableArchive>,
    settings: Arc<RwLock<HistorySettings>>,
}

impl History {
    /// Starts to keep events in `dir`. `report` gets notices of problems, on the writer's thread.
    pub fn start(
        settings: &HistorySettings,
        dir: &Path,
        options: Options,
        participant: Participant,
        access: Access,
        report: impl Fn(&HistoryNotice) + Send + 'static,
    ) -> Result<History, HistoryError> {
        let access = access.bound_to(&participant);
        let backups = options.backups.clone();
        let archive = Arc::new(TableArchive::open(dir, &SCHEMA, options)?);
        let writer = HistoryWriter::start(&participant, archive.clone(), Box::new(report)).map_err(HistoryError::Worker)?;
        let client = Client::start(participant.clone(), ClientSettings::default())?;
        // All kinds, because most attributes have some events for the archive; the intake skips the others.
        let all = AttributePattern::new("*").into_iter().collect::<Vec<_>>();
        let settings = Arc::new(RwLock::new(settings.clone()));
        let mut intake = EventIntake::new(settings.clone(), archive.clone(), writer.queue(), access.clone(), participant.clone());
        let subscription = client.subscribe(SubscribeOptions::of(all).kinds(Kinds(u32::MAX)), move |event| intake.take(event));
        let services = Services::declare(&participant, &archive, &access, backups)?;
        Ok(History { _services: services, _subscription: subscription, _client: client, writer, archive, settings })
    }

    /// Returns the number of rows found at the start, and the faults of the files.
    pub fn found(&self) -> (u64, Vec<String>) {
        let health = self.archive.health();
        let fault = |fault: &Fault| format!("{}: {}", fault.file.display(), fault.what);
        (health.records, health.faults.iter().map(fault).collect())
    }

    /// Returns the directory of the files.
    pub fn directory(&self) -> &Path {
        self.archive.directory()
    }

    /// Returns the archive, for a watch over its writes.
    pub fn archive(&self) -> &Arc<TableArchive> {
        &self.archive
    }

    /// Returns the selection of events, which can change at any time. `history` has no effect here.
    pub fn settings(&self) -> &Arc<RwLock<HistorySettings>> {
        &self.settings
    }

    /// Returns a source of reports.
    pub fn reporter(&self) -> HistoryReporter {
        HistoryReporter { archive: self.archive.clone(), queue: self.writer.queue() }
    }
}
