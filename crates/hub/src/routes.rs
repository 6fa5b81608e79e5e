//! Rules that send records to files, and to other hosts by syslog, in addition to the archive.
//!
//! ```text
//! collector --after its commit--> packets --rules--> target's queue --its worker--> file, syslog
//!              never waits        16 MiB               8 MiB each
//! ```
//! Decision: a full queue drops records, counts and logs them, and never delays its producer. The archive has the
//! dropped records, and the collector must acknowledge. A write that fails is retried until it succeeds, and the
//! target's queue holds the records meanwhile. Records are routed once they are durable, so around the death of a hub a
//! target may miss some that the archive has. Rejected: routing from the live topics, where a slow reader would get
//! other records than the archive.
//!
//! | part | module |
//! |-|-|
//! | configuration | [`settings`] |
//! | change of the routes while the hub runs | [`switch`] |
//! | choice of the targets of a record | `rules` |
//! | a target's queue, worker and counts | `target` |
//! | files that are rotated | `file` |
//! | syslog to another host | `syslog` |
//! | a record as text | `shape` |

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_log::{
    Logger,
    collector::router::{Sifted, TargetReport},
    warning,
};
use tampu_types::log_batch::LogBatchView;
use tampu_workers::WorkerThread;

use self::{
    rules::Rules,
    settings::{RouteSettings, TargetSettings},
    target::Target,
};
pub use error::RouteError;

mod bundle;
pub(crate) mod check;
mod error;
mod file;
mod rules;
pub mod settings;
mod shape;
pub(crate) mod switch;
mod syslog;
mod target;

/// Maximum size in bytes of packets in the queue before the rules. Further packets are lost to all targets, counted and
/// logged.
const QUEUE: usize = 16 << 20;
/// Shortest period between two log messages about losses and failures.
const PERIOD: Duration = Duration::from_secs(10);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Period of the check of the targets.
const LOOK: Duration = Duration::from_secs(1);
/// The target name under which losses before the rules are reported.
const RULES: &str = "(rules)";

/// The running routes.
#[derive(Debug)]
pub(crate) struct Routes {
    rules: Arc<Rules>,
    /// Missing until they are started; packets wait meanwhile.
    targets: Option<Arc<Vec<Target>>>,
    packets: Option<Sender<Vec<u8>>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    worker: Option<JoinHandle<()>>,
}

/// Routes that are not started, and the packets that wait for them.
type PreparedRoutes = (Routes, Receiver<Vec<u8>>);

impl Routes {
    /// Makes the configured routes, whose packets wait until [`Routes::start`] takes them. Returns `None` if there are no
    /// routes.
    fn prepare(
        routes: &[RouteSettings],
        targets: &BTreeMap<String, TargetSettings>,
    ) -> Result<Option<PreparedRoutes>, RouteError> {
        if routes.is_empty() {
            return Ok(None);
        }
        let (packets, taken) = channel();
        let prepared = Routes {
            rules: Arc::new(Rules::new(routes, targets)?),
            targets: None,
            packets: Some(packets),
            waiting: Arc::default(),
            lost: Arc::default(),
            worker: None,
        };
        Ok(Some((prepared, taken)))
    }

    /// Starts the targets and the worker. Files without a path are in `directory`.
    fn start(
        &mut self,
        packets: Receiver<Vec<u8>>,
        targets: &BTreeMap<String, TargetSettings>,
        directory: &Path,
        logger: Logger,
    ) -> Result<(), RouteError> {
        let targets: Result<Vec<Target>, RouteError> =
            targets.iter().map(|(name, settings)| Target::start(name, settings, directory)).collect();
        let targets = Arc::new(targets?);
        let teller = Teller { targets: targets.clone(), lost: self.lost.clone(), logger, told: Vec::new(), at: None };
        let mut leading =
            Leading { rules: self.rules.clone(), targets: targets.clone(), packets, waiting: self.waiting.clone(), teller };
        let worker = WorkerThread::named("routes").spawn_restarting(RESTART, move || leading.run());
        self.targets = Some(targets);
        self.worker = Some(worker.map_err(RouteError::Worker)?);
        Ok(())
    }

    /// Routes what waits, ends the targets, and returns the names of those that lost records by that, with their numbers.
    fn finish(mut self) -> Vec<(String, u64)> {
        self.stop();
        let targets = self.targets.take().and_then(Arc::into_inner).unwrap_or_default();
        targets.into_iter().map(Target::finish).filter(|(_, lost)| *lost > 0).collect()
    }

    fn stop(&mut self) {
        // Waiting packets are still routed.
        self.packets = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }

    fn sift(&self, packet: &[u8]) -> Option<Sifted> {
        self.rules.sift(packet)
    }

    /// Accepts a packet. Never blocks.
    fn route(&self, packet: Vec<u8>) {
        let length = packet.len();
        let lose = || self.lost.fetch_add(LogBatchView::parse(&packet).map_or(1, |view| view.count() as u64), Ordering::Relaxed);
        if self.waiting.fetch_add(length, Ordering::AcqRel) + length > QUEUE {
            self.waiting.fetch_sub(length, Ordering::AcqRel);
            lose();
            return;
        }
        if let Some(packets) = &self.packets {
            // The worker runs as long as this value exists.
            let _ = packets.send(packet);
        }
    }

    fn report(&self) -> Vec<TargetReport> {
        report(self.targets.as_deref().map(Vec::as_slice).unwrap_or_default(), &self.lost)
    }
}

fn report(targets: &[Target], lost: &AtomicU64) -> Vec<TargetReport> {
    let mut reports: Vec<TargetReport> = targets.iter().map(Target::report).collect();
    let lost = lost.load(Ordering::Relaxed);
    if lost > 0 {
        reports.push(TargetReport { target: RULES.to_owned(), lost, ..TargetReport::default() });
    }
    reports
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The worker that applies the rules.
struct Leading {
    rules: Arc<Rules>,
    targets: Arc<Vec<Target>>,
    packets: Receiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    teller: Teller,
}

impl Leading {
    fn run(&mut self) {
        let mut looked = Instant::now();
        loop {
            match self.packets.recv_timeout(LOOK) {
                Ok(packet) => {
                    // First, so that a panic of a rule keeps no room in the queue.
                    self.waiting.fetch_sub(packet.len(), Ordering::AcqRel);
                    self.rules.lead(&packet, &self.targets);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.teller.look();
            }
        }
    }
}

/// Logs losses and failures: at once, then once a period.
struct Teller {
    targets: Arc<Vec<Target>>,
    lost: Arc<AtomicU64>,
    logger: Logger,
    /// The target reports at the last log message.
    told: Vec<TargetReport>,
    at: Option<Instant>,
}

impl Teller {
    fn look(&mut self) {
        if self.at.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        self.at = None;
        let now = report(&self.targets, &self.lost);
        for report in &now {
            let before = self.told.iter().find(|before| before.target == report.target);
            let lost = report.lost - before.map_or(0, |before| before.lost);
            let was_failing = before.is_some_and(|before| before.failing.is_some());
            let name = report.target.as_str();
            if lost > 0 {
                warning!(self.logger, "{lost} records lost to the target '{name}': its queue was full; they are in the archive"; target = name);
                self.at = Some(Instant::now());
            }
            match &report.failing {
                Some(why) if !was_failing => {
                    warning!(self.logger, "the target '{name}' cannot be written: {why}"; target = name);
                    self.at = Some(Instant::now());
                }
                None if was_failing => tampu_log::notice!(self.logger, "the target '{name}' is written again"; target = name),
                _ => {}
            }
        }
        self.told = now;
    }
}
