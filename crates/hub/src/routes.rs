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

use parking_lot::Mutex;
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
    /// The packets that wait. The worker holds it.
    taken: Arc<Mutex<Receiver<Vec<u8>>>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    /// The target reports at the last log message.
    told: Arc<Mutex<Vec<TargetReport>>>,
    worker: Option<JoinHandle<()>>,
}

/// The end of a target, or of the rules.
#[derive(Debug)]
struct Ended {
    /// The last report.
    report: TargetReport,
    /// Number of lost records that no log message has told.
    untold: u64,
}

impl Routes {
    /// Makes the configured routes, whose packets wait until [`Routes::start`] takes them. Returns `None` if there are no
    /// routes.
    fn prepare(routes: &[RouteSettings], targets: &BTreeMap<String, TargetSettings>) -> Result<Option<Routes>, RouteError> {
        if routes.is_empty() {
            return Ok(None);
        }
        let (packets, taken) = channel();
        Ok(Some(Routes {
            rules: Arc::new(Rules::new(routes, targets)?),
            targets: None,
            packets: Some(packets),
            taken: Arc::new(Mutex::new(taken)),
            waiting: Arc::default(),
            lost: Arc::default(),
            told: Arc::default(),
            worker: None,
        }))
    }

    /// Starts the targets and the worker. Files without a path are in `directory`. The counts of former targets of the same
    /// names go on.
    fn start(
        &mut self,
        targets: &BTreeMap<String, TargetSettings>,
        former: &BTreeMap<String, TargetReport>,
        directory: &Path,
        logger: Logger,
    ) -> Result<(), RouteError> {
        let start = |(name, settings): (&String, &TargetSettings)| {
            let target = Target::start(name, settings, directory)?;
            former.get(name).into_iter().for_each(|former| target.carry_over(former));
            Ok(target)
        };
        let targets: Result<Vec<Target>, RouteError> = targets.iter().map(start).collect();
        let targets = Arc::new(targets?);
        self.lost.fetch_add(former.get(RULES).map_or(0, |former| former.lost), Ordering::Relaxed);
        *self.told.lock() = former.values().map(|former| TargetReport { failing: None, ..former.clone() }).collect();
        let (lost, told) = (self.lost.clone(), self.told.clone());
        let teller = Teller { targets: targets.clone(), lost, logger, told, at: None };
        let (packets, waiting) = (self.taken.clone(), self.waiting.clone());
        let mut leading = Leading { rules: self.rules.clone(), targets: targets.clone(), packets, waiting, teller };
        let worker = WorkerThread::named("routes").spawn_restarting(RESTART, move || leading.run());
        self.worker = Some(worker.map_err(RouteError::Worker)?);
        self.targets = Some(targets);
        Ok(())
    }

    /// Passes the packets that wait to other routes, if nothing takes them here.
    fn hand_over(&self, next: &Routes) {
        if self.worker.is_none() {
            let packets = self.taken.lock();
            packets.try_iter().for_each(|packet| next.route(packet));
        }
    }

    /// Routes what waits, ends the targets, and returns the last reports.
    fn finish(mut self) -> Vec<Ended> {
        self.stop();
        // Nothing took them.
        self.taken.lock().try_iter().for_each(|packet| self.lose(&packet));
        let targets = self.targets.take().and_then(Arc::into_inner).unwrap_or_default();
        let mut reports: Vec<TargetReport> = targets.into_iter().map(Target::finish).collect();
        reports.extend(of_rules(&self.lost));
        let told = std::mem::take(&mut *self.told.lock());
        let ended = |report: TargetReport| Ended { untold: report.lost - lost_before(&told, &report.target), report };
        reports.into_iter().map(ended).collect()
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
        if self.waiting.fetch_add(length, Ordering::AcqRel) + length > QUEUE {
            self.waiting.fetch_sub(length, Ordering::AcqRel);
            self.lose(&packet);
            return;
        }
        if let Some(packets) = &self.packets {
            // The receiver exists as long as this value.
            let _ = packets.send(packet);
        }
    }

    /// Counts the records of a packet as lost to all targets.
    fn lose(&self, packet: &[u8]) {
        self.lost.fetch_add(LogBatchView::parse(packet).map_or(1, |view| view.count() as u64), Ordering::Relaxed);
    }

    fn report(&self) -> Vec<TargetReport> {
        report(self.targets.as_deref().map(Vec::as_slice).unwrap_or_default(), &self.lost)
    }
}

fn report(targets: &[Target], lost: &AtomicU64) -> Vec<TargetReport> {
    targets.iter().map(Target::report).chain(of_rules(lost)).collect()
}

/// The report of the losses before the rules, if there are any.
fn of_rules(lost: &AtomicU64) -> Option<TargetReport> {
    let lost = lost.load(Ordering::Relaxed);
    (lost > 0).then(|| TargetReport { target: RULES.to_owned(), lost, ..TargetReport::default() })
}

/// Returns the losses of a target in earlier reports.
fn lost_before(reports: &[TargetReport], target: &str) -> u64 {
    reports.iter().find(|before| before.target == target).map_or(0, |before| before.lost)
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
    packets: Arc<Mutex<Receiver<Vec<u8>>>>,
    waiting: Arc<AtomicUsize>,
    teller: Teller,
}

impl Leading {
    fn run(&mut self) {
        let mut looked = Instant::now();
        let packets = self.packets.lock();
        loop {
            match packets.recv_timeout(LOOK) {
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
    told: Arc<Mutex<Vec<TargetReport>>>,
    at: Option<Instant>,
}

impl Teller {
    fn look(&mut self) {
        if self.at.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        self.at = None;
        let now = report(&self.targets, &self.lost);
        let mut told = self.told.lock();
        for report in &now {
            let before = told.iter().find(|before| before.target == report.target);
            let lost = report.lost - lost_before(&told, &report.target);
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
        *told = now;
    }
}
