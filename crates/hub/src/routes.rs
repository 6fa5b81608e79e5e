//! Rules that lead records elsewhere than into the archive: into files, and to other hosts by syslog.
//!
//! ```text
//! collector --after its commit--> packets --rules--> target's queue --its worker--> file, syslog
//!              never waits        16 MiB               8 MiB each
//! ```
//! Decision: what is full loses, counted and told in the log, instead of holding up whoever fills it: the archive has all that is
//! missing, and the collector must acknowledge. A target that cannot be written is tried again until it can, and its queue holds
//! what comes meanwhile. Records are routed once they are durable, so around the death of a hub a target may miss some that the
//! archive has. Rejected: routing from the live topics, where a reader that is behind would get other records than the archive.
//!
//! | part | module |
//! |-|-|
//! | what a site says | [`settings`] |
//! | which records go where | `rules` |
//! | a target's queue, worker and counts | `target` |
//! | files that are rotated | `file` |
//! | syslog to another host | `syslog` |
//! | a record as text | `shape` |

use std::{
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
    collector::router::{Router, Sifted, TargetReport},
    warning,
};
use tampu_types::log_batch::LogBatchView;

use self::{
    rules::Rules,
    settings::{RouteSettings, TargetSettings},
    target::Target,
};
use crate::{
    config::{Config, ConfigError, Role},
    inputs::settings::Door,
};

mod file;
mod rules;
pub mod settings;
mod shape;
mod syslog;
mod target;

/// Bytes of packets that may wait for the rules; what comes beyond is lost to all targets, counted and told.
const QUEUE: usize = 16 << 20;
/// How often losses and failures are told.
const PERIOD: Duration = Duration::from_secs(10);
/// How often they are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// What losses before the rules are told as.
const RULES: &str = "(rules)";

/// Checks what a configuration says of routes.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    Rules::new(&config.route, &config.target)?;
    if !config.route.is_empty() && !config.roles.contains(&Role::Collector) {
        let why = "the role 'collector' follows these rules, and this hub has it not".to_owned();
        return Err(ConfigError::Value { setting: "route".to_owned(), why });
    }
    // Each record would come back as another one, for ever.
    for (name, target) in config.target.iter().filter(|_| config.syslog.enabled) {
        for (way, door) in [("udp", config.syslog.udp), ("tcp", config.syslog.tcp)] {
            let Door::At(own) = door else { continue };
            let place = target.syslog.as_deref().and_then(|place| place.strip_prefix(way)?.trim().rsplit_once(':'));
            let own_host = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "[::1]") || host == own.ip().to_string();
            if place.is_some_and(|(host, port)| own_host(host) && port == own.port().to_string()) {
                let why = "it is this hub's own [syslog]: every record would come back as another one".to_owned();
                return Err(ConfigError::Value { setting: format!("[target.{name}] syslog"), why });
            }
        }
    }
    Ok(())
}

/// The rules at work.
#[derive(Debug)]
pub(crate) struct Routes {
    rules: Arc<Rules>,
    targets: Arc<Vec<Target>>,
    packets: Option<Sender<Vec<u8>>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    worker: Option<JoinHandle<()>>,
}

impl Routes {
    /// Starts a site's rules; `None` where it has none. Files without a path are in the directory.
    pub fn start(
        routes: &[RouteSettings],
        targets: &std::collections::BTreeMap<String, TargetSettings>,
        directory: &Path,
        logger: Logger,
    ) -> Result<Option<Routes>, RouteError> {
        if routes.is_empty() {
            return Ok(None);
        }
        let rules = Arc::new(Rules::new(routes, targets)?);
        let targets: Result<Vec<Target>, RouteError> =
            targets.iter().map(|(name, settings)| Target::start(name, settings, directory)).collect();
        let targets = Arc::new(targets?);
        let (packets, taken) = channel();
        let (waiting, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let teller = Teller { targets: targets.clone(), lost: lost.clone(), logger, told: Vec::new(), at: None };
        let leading =
            Leading { rules: rules.clone(), targets: targets.clone(), packets: taken, waiting: waiting.clone(), teller };
        let worker = std::thread::Builder::new().name("routes".to_owned()).spawn(move || leading.run());
        let worker = worker.map_err(RouteError::Worker)?;
        Ok(Some(Routes { rules, targets, packets: Some(packets), waiting, lost, worker: Some(worker) }))
    }
}

/// Why rules cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// They are said wrongly.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system has no more threads.
    #[error("starting the routes: {0}")]
    Worker(std::io::Error),
}

impl Router for Routes {
    fn sift(&self, packet: &[u8]) -> Option<Sifted> {
        self.rules.sift(packet)
    }

    fn route(&self, packet: Vec<u8>) {
        let length = packet.len();
        let lose = || self.lost.fetch_add(LogBatchView::parse(&packet).map_or(1, |view| view.count() as u64), Ordering::Relaxed);
        if self.waiting.fetch_add(length, Ordering::AcqRel) + length > QUEUE {
            self.waiting.fetch_sub(length, Ordering::AcqRel);
            lose();
            return;
        }
        if let Some(packets) = &self.packets {
            // The worker is there as long as this is.
            let _ = packets.send(packet);
        }
    }

    fn report(&self) -> Vec<TargetReport> {
        report(&self.targets, &self.lost)
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
        // What waits is led where it goes; the targets end with the worker, the last who has them.
        self.packets = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
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
    fn run(mut self) {
        let mut looked = Instant::now();
        loop {
            match self.packets.recv_timeout(LOOK) {
                Ok(packet) => {
                    self.rules.lead(&packet, &self.targets);
                    self.waiting.fetch_sub(packet.len(), Ordering::AcqRel);
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

/// Tells what went wrong: at once, then once a period.
struct Teller {
    targets: Arc<Vec<Target>>,
    lost: Arc<AtomicU64>,
    logger: Logger,
    /// What was last told.
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
