//! A living ELOG that the hub's logbook follows, in a thread of its own; what happens is told in the log.

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
use tampu_log::{Logger, info, warning};
use tampu_logbook::{
    elog::{
        follow::{Follower, Told},
        import::{BookReport, Source},
    },
    store::Store,
};

/// How long it waits until it tries again to begin.
const AGAIN: Duration = Duration::from_secs(10);
/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Faults of a report that are told one by one.
const FAULTS: usize = 20;

/// Which ELOG is followed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FollowSettings {
    /// elogd.cfg; without it every folder is a logbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// The folder the logbooks' folders are in.
    pub logbooks: PathBuf,
    /// Only these logbooks; none means all.
    pub books: Vec<String>,
    /// Zone of dates that do not say theirs, minutes east of UTC.
    pub zone_minutes: i16,
    /// Whether the files are looked at again and again, though the kernel would tell of changes.
    pub poll: bool,
}

/// Follows until it is dropped.
pub struct Following {
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl Following {
    /// Begins to follow.
    pub fn start(store: Arc<dyn Store>, settings: FollowSettings, logger: Logger) -> std::io::Result<Following> {
        let stopping = Arc::new(AtomicBool::new(false));
        let told = stopping.clone();
        let work = move || follow(&*store, &settings, &logger, &told);
        let worker = std::thread::Builder::new().name("book-follow".to_owned()).spawn(work)?;
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
        let FollowSettings { config, logbooks, books, zone_minutes, poll } = settings.clone();
        let source = Source { config, logbooks, only: books, zone: zone_minutes, poll };
        match Follower::begin(store, source, &mut |_, _| go_on()) {
            Ok((mut follower, report)) => {
                report.books.iter().for_each(|book| tell(book, logger));
                if let Some(why) = follower.polls() {
                    info!(logger, "ELOG's files are looked at again and again: {why}");
                }
                return follower.run(&mut || go_on(), &mut |what| match what {
                    Told::Book(report) => tell(&report, logger),
                    Told::Again(report) => report.books.iter().for_each(|book| tell(book, logger)),
                    Told::Trouble(why) => warning!(logger, "ELOG cannot be followed for now: {why}"),
                });
            }
            Err(error) => {
                let why = error.to_string();
                if why != said {
                    warning!(logger, "ELOG cannot be followed for now: {why}");
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
