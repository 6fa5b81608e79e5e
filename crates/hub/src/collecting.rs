//! The collector's role in a hub: its start, and log records about its archive.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_archive::{Archive, ArchiveError, LocalArchive, News, Removal, Retention};
use tampu_bus::{Participant, access::Access};
use tampu_log::{
    Logger, alert,
    collector::{Collector, CollectorError, CollectorOptions, router::Router, status::Report},
    error, notice, warning,
};
use tampu_workers::{OnPanic, WorkerThread};

use crate::{
    config::Config,
    routes::{RouteError, switch::RouteSwitch},
};

/// A running collector.
pub(crate) struct Collecting {
    directory: PathBuf,
    // The watch logs, so it ends while the collector still keeps records.
    _watch: Watch,
    // Ends before its archive.
    collector: Collector,
    archive: Arc<LocalArchive>,
    routes: Arc<RouteSwitch>,
    logger: Logger,
}

/// Errors of starting the collector.
#[derive(Debug, thiserror::Error)]
pub enum CollectingError {
    /// The archive cannot be opened.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The collector cannot join the bus.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    /// The routes cannot start.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// The system has no more threads.
    #[error("watching the archive: {0}")]
    Watch(std::io::Error),
}

/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Period of the check of the archive's state.
const LOOK: Duration = Duration::from_millis(250);

/// Logs when the archive cannot be written or compacted, when it can be again, and which records it removed. Nothing is
/// lost meanwhile: senders cache unacknowledged records, up to the limit of their caches. An operator has to free disk
/// space.
pub(crate) struct Watch {
    // Dropped first: that ends the worker.
    stop: Option<Sender<()>>,
    worker: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the watch of the archive of this name, through the archive's own status.
    pub(crate) fn start(
        name: &'static str,
        stuck: impl Fn() -> Option<String> + Send + 'static,
        compaction_stuck: impl Fn() -> Option<String> + Send + 'static,
        news: impl Fn() -> Vec<News> + Send + 'static,
        logger: Logger,
    ) -> std::io::Result<Watch> {
        let (stop, stopped) = channel::<()>();
        let work = move || {
            let (mut written, mut compacted) = (None, None);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
                let stuck = stuck();
                match &stuck {
                    Some(why) if stuck != written => alert!(logger, "{name} cannot be written: {why}"),
                    None if written.is_some() => notice!(logger, "{name} is written again"),
                    _ => {}
                }
                written = stuck;
                let stuck = compaction_stuck();
                match &stuck {
                    Some(why) if stuck != compacted => error!(logger, "{name} cannot be compacted: {why}"),
                    None if compacted.is_some() => notice!(logger, "{name} is compacted again"),
                    _ => {}
                }
                compacted = stuck;
                news().iter().for_each(|news| tell(name, &logger, news));
            }
        };
        let worker = WorkerThread::named("archive-watch").spawn_restarting(RESTART, work)?;
        Ok(Watch { stop: Some(stop), worker: Some(worker) })
    }
}

fn tell(name: &str, logger: &Logger, news: &News) {
    match *news {
        News::Removed { files, records, bytes, earliest, latest } => {
            let (earliest, latest) = (earliest.to_acs(), latest.to_acs());
            notice!(
                logger,
                "{name} removed expired data: {records} records of {earliest} to {latest}, in {files} files of {bytes} bytes"
            );
        }
        News::RemovedForRoom { files, records, bytes, earliest, latest } => {
            let (earliest, latest) = (earliest.to_acs(), latest.to_acs());
            warning!(
                logger,
                "{name} removed its oldest data, because the disk had less than collector.min_free_gb: {records} records of \
                 {earliest} to {latest}, in {files} files of {bytes} bytes; lower collector.keep_gb, or free some space there"
            );
        }
        News::NoRoom { missing } => error!(
            logger,
            "{missing} bytes are missing on the disk of {name}, and retention may remove no more; free some space there, or \
             lower collector.keep_at_least_days"
        ),
        News::Far { records } => notice!(
            logger,
            "{name} has {records} more records whose own time is more than two days from their reception; they are in parquet/far"
        ),
        News::TooLarge { over } => warning!(
            logger,
            "{name} is {over} bytes larger than collector.keep_gb, but collector.keep_at_least_days keeps everything in it"
        ),
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Collecting {
    pub fn start(
        config: &Config,
        participant: Participant,
        access: Access,
        logger: Logger,
    ) -> Result<Collecting, CollectingError> {
        let directory = config.log_dir();
        let archive = Arc::new(LocalArchive::open(&directory, config.archive())?);
        let routes = RouteSwitch::start(&config.route, &config.target, directory.join("routes"), logger.clone())?;
        let routes = Arc::new(routes);
        let options = CollectorOptions {
            access,
            quotas: config.quota.clone(),
            keep_attached: config.collector.keep_attached,
            backups: config.backups(),
            router: Some(routes.clone() as Arc<dyn Router>),
            on_panic: OnPanic::EndProcess,
            ..CollectorOptions::new(directory.join("rejected"))
        };
        let collector = Collector::start(participant, archive.clone(), options)?;
        let watched = (archive.clone(), archive.clone(), archive.clone());
        let watch = Watch::start(
            "the archive",
            move || watched.0.stuck(),
            move || watched.1.compaction_stuck(),
            move || watched.2.news(),
            logger.clone(),
        )
        .map_err(CollectingError::Watch)?;
        Ok(Collecting { directory, _watch: watch, collector, archive, routes, logger })
    }

    /// Uses changed retention, quotas and routes.
    pub fn follow(&self, config: &Config) {
        self.archive.set_retention(config.archive().retention());
        self.collector.set_quotas(config.quota.clone());
        if let Err(why) = self.routes.change(&config.route, &config.target) {
            error!(self.logger, "the routes stay as they were: {why}");
        }
    }

    /// Returns the records that limits would remove at once.
    pub fn removal(&self, retention: &Retention) -> Removal {
        self.archive.removal(retention)
    }

    /// Returns the archive's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of records at the start, and the faults that were found in the files.
    pub fn found(&self) -> (u64, Vec<String>) {
        let health = self.archive.health();
        let fault = |fault: &tampu_archive::Fault| format!("{}: {}", fault.file.display(), fault.what);
        (health.records, health.faults.iter().map(fault).collect())
    }

    /// Returns the state of the collector and its archive.
    pub fn report(&self) -> Report {
        self.collector.status()
    }

    /// Returns the number of batches that could not be read.
    pub fn rejected(&self) -> u64 {
        self.collector.status().rejected
    }
}
