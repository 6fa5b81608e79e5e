//! The collector's role in a hub.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_bus::{Participant, access::Access};
use tampu_log::{
    Logger, alert,
    archive::{Archive, ArchiveError, LocalArchive, News},
    collector::{Collector, CollectorError, CollectorOptions, router::Router, status::Report},
    error, notice, warning,
};

use crate::{
    config::Config,
    routes::{RouteError, Routes},
};

/// A collector at work.
pub(crate) struct Collecting {
    directory: PathBuf,
    // It logs, so it ends while its records can still be kept.
    _watch: Watch,
    // Ends before its archive does.
    collector: Collector,
    archive: Arc<LocalArchive>,
}

/// Why there is no collector.
#[derive(Debug, thiserror::Error)]
pub enum CollectingError {
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The collector.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    /// Its routes.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// The system has no more threads.
    #[error("watching the archive: {0}")]
    Watch(std::io::Error),
}

/// How often it is looked whether the archive can be written.
const LOOK: Duration = Duration::from_millis(250);

/// Tells in the log when the archive cannot be written or compacted, when it can again, and what it removed. Nothing is lost meanwhile (writers keep what
/// is not acknowledged, up to their caches), but somebody has to make room.
pub(crate) struct Watch {
    // Dropped first: that ends the worker.
    stop: Option<Sender<()>>,
    worker: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the archive of this name, by what it says of itself.
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
        let worker = std::thread::Builder::new().name("archive watch".to_owned()).spawn(work)?;
        Ok(Watch { stop: Some(stop), worker: Some(worker) })
    }
}

fn tell(name: &str, logger: &Logger, news: &News) {
    match *news {
        News::Removed { files, records, bytes, earliest, latest } => {
            let (earliest, latest) = (earliest.to_acs(), latest.to_acs());
            notice!(
                logger,
                "{name} removed what it need not keep: {records} records of {earliest} to {latest}, in {files} files of {bytes} bytes"
            );
        }
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
        let directory = config.domain_data().join("log");
        let archive = Arc::new(LocalArchive::open(&directory, config.archive())?);
        let routes = Routes::start(&config.route, &config.target, &directory.join("routes"), logger.clone())?;
        let options = CollectorOptions {
            access,
            quotas: config.quota.clone(),
            keep_attached: config.collector.keep_attached,
            router: routes.map(|routes| Arc::new(routes) as Arc<dyn Router>),
            ..CollectorOptions::new(directory.join("rejected"))
        };
        let collector = Collector::start(participant, archive.clone(), options)?;
        let watched = (archive.clone(), archive.clone(), archive.clone());
        let watch = Watch::start(
            "the archive",
            move || watched.0.stuck(),
            move || watched.1.compaction_stuck(),
            move || watched.2.news(),
            logger,
        )
        .map_err(CollectingError::Watch)?;
        Ok(Collecting { directory, _watch: watch, collector, archive })
    }

    /// Where records are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many records were there at the start, and what was found wrong with the files.
    pub fn found(&self) -> (u64, Vec<String>) {
        let health = self.archive.health();
        let fault = |fault: &tampu_log::archive::Fault| format!("{}: {}", fault.file.display(), fault.what);
        (health.records, health.faults.iter().map(fault).collect())
    }

    /// How the collector and its archive are.
    pub fn report(&self) -> Report {
        self.collector.status()
    }

    /// Batches that could not be read so far.
    pub fn rejected(&self) -> u64 {
        self.collector.status().rejected
    }
}
