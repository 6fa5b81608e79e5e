//! Follows an ELOG that runs elsewhere, in a worker of its own, and logs the results.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tampu_elog::{
    follow::{FollowEvent, Follower},
    import::{BookReport, ImportSource},
    site_zone::SourceZone,
};
use tampu_log::{Logger, info, warning};
use tampu_logbook::store::Store;
use tampu_workers::WorkerThread;

/// Pause before a failed start is retried.
const AGAIN: Duration = Duration::from_secs(10);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Period of the check whether the worker must end.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum number of a report's faults that are logged one by one.
const FAULTS: usize = 20;

/// Settings of the followed ELOG.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowSettings {
    /// The file elogd.cfg; without it every folder is a logbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// The folder that contains the logbooks' folders.
    pub logbooks: PathBuf,
    /// The logbooks to follow; empty means all.
    pub books: Vec<String>,
    /// Zone of elogd's computer, such as `Europe/Zurich` or `+01:00`; without it, this computer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// If true, the files are polled, and the kernel's notifications are not used.
    pub poll: bool,
}

/// A worker that follows an ELOG until it is dropped.
pub struct Following {
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl Following {
    /// Starts the worker.
    pub fn start(store: Arc<dyn Store>, settings: FollowSettings, logger: Logger) -> std::io::Result<Following> {
        let stopping = Arc::new(AtomicBool::new(false));
        let told = stopping.clone();
        let work = move || follow(&*store, &settings, &logger, &told);
        let worker = WorkerThread::named("book-follow").spawn_restarting(RESTART, work)?;
        Ok(Following { stopping, worker: Some(worker) })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

fn follow(store: &dyn Store, settings: &FollowSettings, logger: &Logger, stopping: &AtomicBool) {
    let go_on = || !stopping.load(Ordering::Relaxed);
    let mut said = String::new();
    while go_on() {
        let FollowSettings { config, logbooks, books, zone, poll } = settings.clone();
        // The check of the settings leaves zones that are known.
        let zone = zone.and_then(|name| SourceZone::chosen(&name).ok()).unwrap_or_else(SourceZone::of_this_host);
        let source = ImportSource { config, logbooks, only: books, zone, poll, guests: None };
        match Follower::begin(store, source, &mut |_, _| go_on()) {
            Ok((mut follower, report)) => {
                report.books.iter().for_each(|book| tell(book, logger));
                if let Some(why) = follower.polls() {
                    info!(logger, "ELOG's files are polled: {why}");
                }
                return follower.run(&mut || go_on(), &mut |what| match what {
                    FollowEvent::Book(report) => tell(&report, logger),
                    FollowEvent::Reimported(report) => report.books.iter().for_each(|book| tell(book, logger)),
                    FollowEvent::Failed(why) => warning!(logger, "cannot follow ELOG: {why}; the hub retries"),
                });
            }
            Err(error) => {
                let why = error.to_string();
                if why != said {
                    warning!(logger, "cannot follow ELOG: {why}; the hub retries");
                    said = why;
                }
            }
        }
        let begun = Instant::now();
        while go_on() && begun.elapsed() < AGAIN {
            std::thread::sleep(LOOK);
        }
    }
}

fn tell(report: &BookReport, logger: &Logger) {
    let BookReport { book, new, changed, deleted, conflicts, .. } = report;
    for fault in report.faults.iter().take(FAULTS) {
        warning!(logger, "ELOG: {fault}");
    }
    if new + changed + deleted + conflicts > 0 {
        info!(logger, "ELOG's {book}: {new} new, {changed} changed, {deleted} deleted, {conflicts} changed here too");
    }
}
