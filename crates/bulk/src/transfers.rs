//! Account of bulk transfers. Senders report each start and end on the bus. The account counts them, calls a callback
//! on every change, keeps them in an archive, and answers queries for running and kept transfers.
//!
//! It is independent of the log: the hub passes a callback that writes log records. A sender's note has a place on the
//! bus, which is its place in the archive too. So an account that starts again asks the senders for their last notes,
//! and keeps only new ones.
//!
//! | subject | module |
//! |-|-|
//! | a transfer | `transfer` |
//! | notes of senders make transfers | `account` |
//! | the table; writing and finding | `table`, `archive` |
//! | the question, and the services that answer | `query`, `service` |

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_archive::{ArchiveError, Options, TableArchive};
use tampu_bus::{
    Alarm, BusError, Event, History, Participant, Reader, ReaderQos, Sample, SourceState, access::Access, engine::Guard,
};
use tampu_types::{Incarnation, PartitionFilter, Time, TopicFilter};
use tampu_workers::{WorkerThread, host::host_name};

use crate::directory;

mod account;
mod archive;
mod query;
mod service;
mod table;
mod transfer;

use account::{Account, Note, NoteSender};
pub use account::{REMEMBERED, TransferCounts};
use archive::{NO_NOTE, NotePlace, TransferArchive};
pub use query::{PAGE, TransferPage, TransferQuery};
pub use service::{DIRECTORY, archive_in};
pub use table::{SCHEMA, transfer};
pub use transfer::{Outcome, ReceiverOutcome, Transfer};

const IDLE: Duration = Duration::from_millis(250);
/// Pause after a panic of the account.
const RESTART: Duration = Duration::from_millis(100);
/// Time after the start in which senders of resumed transfers are found.
const MEETING: Duration = Duration::from_secs(15);

/// News of the account.
#[derive(Debug)]
pub enum TransferNews<'a> {
    /// A transfer began, ended or was broken off.
    Changed(&'a Transfer),
    /// A transfer could not be kept in the archive.
    NotKept(&'a Transfer, ArchiveError),
}

/// The running account of bulk transfers. Dropping it stops its thread.
pub struct Transfers {
    account: Arc<Mutex<Account>>,
    archive: Arc<TransferArchive>,
    closing: Arc<AtomicBool>,
    alarm: Alarm,
    worker: Option<JoinHandle<()>>,
    _answering: Vec<Guard>,
}

impl Transfers {
    /// Follows the transfers of all senders in the domain, keeps them in `dir`, and answers
    /// [`asking`](crate::asking). `report` gets each transfer when it begins, ends or is broken off, on the account's own
    /// thread.
    pub fn start(
        participant: &Participant,
        dir: &Path,
        options: Options,
        access: Access,
        report: impl Fn(TransferNews<'_>) + Send + 'static,
    ) -> Result<Transfers, TransfersError> {
        let access = access.bound_to(participant);
        let backups = options.backups.clone();
        let archive = Arc::new(TransferArchive::open(dir, options, participant)?);
        let clock = participant.clock();
        let account = Arc::new(Mutex::new(Account::default()));
        account.lock().resume(archive.running(clock.utc())?);
        let filter = TopicFilter::new(directory::TRANSFERS).map_err(BusError::from)?;
        // Senders that were there before tell what this account missed.
        let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
        let reader = participant.reader(&filter, &PartitionFilter::All, qos)?;
        let answering = service::declare(participant, &access, &account, &archive, backups)?;
        let (closing, alarm) = (Arc::new(AtomicBool::new(false)), reader.alarm());
        let mut listener = Listener {
            reader,
            account: account.clone(),
            archive: archive.clone(),
            participant: participant.clone(),
            started: Some((Instant::now(), clock.utc())),
            report,
        };
        let stop = closing.clone();
        let work = move || {
            while !stop.load(Ordering::Acquire) {
                listener.step();
            }
        };
        let worker = WorkerThread::named("bulk transfers").spawn_restarting(RESTART, work).map_err(TransfersError::Thread)?;
        Ok(Transfers { account, archive, closing, alarm, worker: Some(worker), _answering: answering })
    }

    /// Returns the counters.
    pub fn counts(&self) -> TransferCounts {
        self.account.lock().counts
    }

    /// Returns the archive, for a watch over its writes.
    pub fn archive(&self) -> &Arc<TableArchive> {
        &self.archive.archive
    }
}

/// Errors of [`Transfers::start`].
#[derive(Debug, thiserror::Error)]
pub enum TransfersError {
    /// The archive cannot be opened.
    #[error("transfers: {0}")]
    Archive(#[from] ArchiveError),
    /// The bus rejected the reader or the service.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The system could not start the thread.
    #[error("cannot start the thread of the account of bulk transfers: {0}")]
    Thread(std::io::Error),
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.alarm.ring();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// The account's thread.
struct Listener<F> {
    reader: Reader,
    account: Arc<Mutex<Account>>,
    archive: Arc<TransferArchive>,
    participant: Participant,
    /// Time of the start, until the senders of resumed transfers were looked for.
    started: Option<(Instant, Time)>,
    report: F,
}

impl<F: Fn(TransferNews<'_>)> Listener<F> {
    /// Takes the next event, if one arrives soon.
    fn step(&mut self) {
        let now = self.participant.clock().utc();
        let mut changed: Vec<(Transfer, NotePlace)> = Vec::new();
        let without_note = |all: Vec<Transfer>| all.into_iter().map(|one| (one, NO_NOTE));
        if let Some((begun, at)) = self.started
            && begun.elapsed() > MEETING
        {
            self.started = None;
            let is_present = |process: Incarnation| self.participant.is_present(process);
            changed.extend(without_note(self.account.lock().absent(is_present, at)));
        }
        match self.reader.next(IDLE) {
            Some(Event::Sample(sample)) if sample.stream.type_tag.id == directory::TRANSFER.id => {
                let (incarnation, place) = (sample.stream.incarnation, (sample.stream.stream, sample.sequence + 1));
                if let Some(note) = read(&sample)
                    && !self.archive.has(incarnation, place)
                {
                    let host = host_of(&sample, &self.participant);
                    let sender = NoteSender { source: sample.stream.source.as_str(), incarnation, host: &host };
                    // Notes of an earlier time arrive late, so their own time counts.
                    let at = if sample.acquired == Time(0) { now } else { sample.acquired };
                    let mut account = self.account.lock();
                    changed.extend(without_note(account.overtaken(&note, incarnation, at)));
                    changed.push((account.enter(note, sender, at), place));
                }
            }
            Some(Event::Source(change)) if matches!(change.state, SourceState::Left | SourceState::Died) => {
                changed.extend(without_note(self.account.lock().gone(change.incarnation, now)));
            }
            _ => {}
        }
        for (one, place) in &changed {
            if let Err(error) = self.archive.keep(one, *place, now) {
                (self.report)(TransferNews::NotKept(one, error));
            }
            (self.report)(TransferNews::Changed(one));
        }
    }
}

/// Returns the proved name of a sender's host, or that of this host if the sender runs here; else the host's boot.
fn host_of(sample: &Sample<'_>, participant: &Participant) -> String {
    let boot = sample.stream.incarnation.boot;
    match &sample.stream.host {
        Some(host) => host.clone(),
        None if boot == participant.incarnation().boot => host_name(),
        None => format!("{boot:08x}"),
    }
}

fn read(sample: &Sample<'_>) -> Option<Note> {
    sample.payload.with(account::parse).ok().flatten()
}
