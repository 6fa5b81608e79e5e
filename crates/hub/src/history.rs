//! The history of events: what the hub keeps of attributes, and how it is asked.
//!
//! ```text
//! all attributes -> accounts: is it kept, what does it stand for -> queue -> archive (segments, then Parquet) -> event/history
//! ```
//! It joins two services: it is a subscriber like any other, and what it keeps is a table in the log archive's machinery
//! (`tampu_log::archive::TableArchive`), beside the log's own directory. Neither knows of the other. What the bus lost, what came
//! while no hub was there, what the queue had no room for and what is too long to be kept stands in the history as a gap, so that
//! it never pretends to be whole. The contract is `spec/event-archive.md`.
//!
//! | part | module |
//! |-|-|
//! | which numbers of an attribute are dealt with | `accounts` |
//! | from the subscription into the archive | `intake` |
//! | what the archive refused to write | `unwritten` |
//! | the table: columns, rows from events and back | `table` |
//! | answering | `service` |
//! | asking | [`ask`] |

mod accounts;
pub mod ask;
mod intake;
mod service;
mod settings;
mod table;
mod unwritten;

use std::{path::Path, sync::Arc};

use tampu_bus::{BusError, Participant, access::Access, engine::Guard};
use tampu_event::{
    Client,
    client::{ClientSettings, Subscription, Wish},
};
use tampu_log::{
    Logger,
    archive::{ArchiveError, Fault, Options, TableArchive},
};
use tampu_types::event::{AttributePattern, Kinds};

use self::{
    intake::{Inlet, Intake, Keeping},
    service::Services,
};
pub use self::{
    settings::{Events, LONGEST_KB},
    table::{SCHEMA, kept},
};
use crate::collecting::Watch;

/// Where below a domain's directory it is kept.
pub const DIRECTORY: &str = "events";

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The archive.
    #[error("events: {0}")]
    Archive(#[from] ArchiveError),
    /// The bus.
    #[error("events: {0}")]
    Bus(#[from] BusError),
    /// A service has no name.
    #[error("events: {0}")]
    Topic(#[from] tampu_types::name::BadTopic),
    /// The system has no more threads.
    #[error("events: {0}")]
    Worker(std::io::Error),
}

/// How the history is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Rows that were written since the start.
    pub kept: u64,
    /// Events that could not be kept.
    pub lost: u64,
    /// What waits for the archive, and its bytes.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// What the archive holds.
    pub rows: u64,
    pub bytes: u64,
    /// Nothing can be written.
    pub stuck: bool,
}

/// Makes reports.
pub(crate) struct Reporter {
    archive: Arc<TableArchive>,
    inlet: Arc<Inlet>,
}

impl Reporter {
    pub(crate) fn report(&self) -> Report {
        let (waiting, waiting_bytes, kept, lost) = self.inlet.counts();
        let health = self.archive.health();
        let stuck = self.archive.stuck().is_some();
        let (waiting, waiting_bytes) = (waiting as u64, waiting_bytes as u64);
        Report { kept, lost, waiting, waiting_bytes, rows: health.records, bytes: health.bytes, stuck }
    }
}

/// The history at work.
pub(crate) struct History {
    // In this order: who asks, who brings, who writes.
    _services: Vec<Guard>,
    _subscription: Subscription,
    _client: Client,
    _watch: Watch,
    intake: Intake,
    archive: Arc<TableArchive>,
}

impl History {
    /// Begins to keep events in `dir`.
    pub(crate) fn start(
        settings: &Events,
        dir: &Path,
        options: Options,
        participant: Participant,
        access: Access,
        logger: Logger,
    ) -> Result<History, HistoryError> {
        let archive = Arc::new(TableArchive::open(dir, &SCHEMA, options)?);
        let intake = Intake::start(&participant, archive.clone(), logger.clone()).map_err(HistoryError::Worker)?;
        let watched = (archive.clone(), archive.clone(), archive.clone());
        let watch = Watch::start(
            "the events' archive",
            move || watched.0.stuck(),
            move || watched.1.compaction_stuck(),
            move || watched.2.news(),
            logger,
        )
        .map_err(HistoryError::Worker)?;
        let client = Client::start(participant.clone(), ClientSettings::default())?;
        // Everything, because of most attributes some events are for the archive; what is not is stepped over.
        let all = AttributePattern::new("*").into_iter().collect::<Vec<_>>();
        let mut keeping = Keeping::new(settings, archive.clone(), intake.inlet());
        let subscription = client.subscribe(Wish::of(all).kinds(Kinds(u32::MAX)), move |event| keeping.take(event));
        let services = Services::declare(&participant, &archive, &access)?;
        Ok(History { _services: services, _subscription: subscription, _client: client, _watch: watch, intake, archive })
    }

    /// How many rows were there at the start, and what was found wrong with the files.
    pub(crate) fn found(&self) -> (u64, Vec<String>) {
        let health = self.archive.health();
        let fault = |fault: &Fault| format!("{}: {}", fault.file.display(), fault.what);
        (health.records, health.faults.iter().map(fault).collect())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.archive.directory()
    }

    /// Says at any time how it is.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter { archive: self.archive.clone(), inlet: self.intake.inlet() }
    }
}
