//! Kills a host's node and its collector at random while processes log, and counts what the archive has of them.
//!
//! Node (with spool and ring keeper), collector and loggers are processes of their own, all of this program. A logger numbers its
//! records and says at its end how many it has logged; the archive must have each number of each logger once.

#![allow(dead_code)]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use tampu_archive::{Archive, ArchiveError, LocalArchive, Options, Stop, query::Query};
use tampu_bus::{
    Participant, QosTable,
    connect::{Node, NodeSettings, Settings},
    engine::Engine,
    run_dir::RunDir,
};
use tampu_log::{
    LogSettings, Logger,
    collector::{Collector, CollectorOptions},
    info,
    recovery::{RingKeeper, dead_in},
    spool::{Spool, SpoolOptions},
    warning,
};
use tampu_types::{Domain, SourceName};
use tampu_workers::OnPanic;

const ROLE: &str = "TAMPU_KILL_ROLE";
const DATA: &str = "TAMPU_KILL_DATA";
const NAME: &str = "TAMPU_KILL_NAME";
const PATIENCE: Duration = Duration::from_secs(180);
const LOGGERS: usize = 3;
/// Records of each logger between two rests of a millisecond.
const BURST: u64 = 3;

/// Sums over all kills.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    pub nodes: u64,
    pub collectors: u64,
    pub both: u64,
    pub produced: u64,
    pub kept: u64,
    pub lost: u64,
    pub doubled: u64,
    /// Records of which the loggers themselves say that they found no room.
    pub dropped: u64,
    /// Samples of which the log tells that they were lost.
    pub told: u64,
    pub seconds: u64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals { nodes, collectors, both, produced, kept, lost, doubled, dropped, told, seconds } = self;
        write!(
            f,
            "kills={} (node {nodes}, collector {collectors}, both {both}) seconds={seconds} produced={produced} kept={kept} lost={lost} doubled={doubled} dropped={dropped} told={told}",
            nodes + collectors + both
        )
    }
}

/// Runs the part of this process, if it is one, and ends it.
pub fn be_a_part() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let data = PathBuf::from(std::env::var(DATA).unwrap());
    let config = Settings::from_env().unwrap();
    match role.as_str() {
        "node" => node(&config, &data),
        "collector" => collector(&config, &data),
        _ => logger(&config),
    }
    std::process::exit(0);
}

fn until_the_end() {
    println!("\n>ready");
    std::io::stdin().lines().map_while(Result::ok).for_each(drop);
}

fn node(config: &Settings, data: &Path) {
    let begun = Instant::now();
    let node = loop {
        match Node::start(NodeSettings::new(config.clone())) {
            // The previous process has been killed, but may not have ended yet.
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            started => break started.unwrap(),
        }
    };
    let engine: Arc<dyn Engine> = node.engine().unwrap();
    let join = |name: &str| {
        Participant::on(engine.clone(), config.domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
    };
    let spool = loop {
        match Spool::start(join("spool"), &data.join("spool"), SpoolOptions::default(), |news| eprintln!("{news:?}")) {
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            started => break started.unwrap(),
        }
    };
    let keeper =
        RingKeeper::start(join("rings"), node.dir().log_rings(), OnPanic::ReportOnly, |_, news| eprintln!("{news:?}")).unwrap();
    until_the_end();
    drop((keeper, spool));
}

/// Small segments, so that it is killed in the middle of compactions too.
fn options(domain: Domain) -> Options {
    Options { roll: 256 << 10, share: 1.0, ..Options::new(domain) }
}

fn collector(config: &Settings, data: &Path) {
    let begun = Instant::now();
    let archive = loop {
        match LocalArchive::open(data, options(config.domain.clone())) {
            Err(ArchiveError::InUse { .. }) if begun.elapsed() < PATIENCE => std::thread::yield_now(),
            opened => break Arc::new(opened.unwrap()),
        }
    };
    let participant = loop {
        // The node may also have been killed a moment ago.
        match config.open() {
            Ok(engine) => {
                let name = SourceName::new("collector").unwrap();
                break Participant::on(engine, config.domain.clone(), name, QosTable::default()).unwrap();
            }
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    };
    let _collector = Collector::start(participant, archive, CollectorOptions::new(data.join("rejected"))).unwrap();
    until_the_end();
}

/// Numbers its records until its input ends; says how many, and how many it lost by itself.
fn logger(config: &Settings) {
    let name = SourceName::new(std::env::var(NAME).unwrap()).unwrap();
    let mut settings = LogSettings::from_env(name).unwrap();
    settings.full_wait = Duration::from_millis(200);
    let logger = Logger::open(settings).unwrap();
    assert_eq!(config.domain.as_str(), "kills");
    let (tell, ended) = mpsc::channel::<()>();
    println!("\n>ready");
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(drop);
        drop(tell);
    });
    let mut number = 0_u64;
    while ended.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
        for _ in 0..BURST {
            match number % 7 {
                0 => warning!(logger, "number {number}"),
                _ => info!(logger, "number {number}"),
            }
            number += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let dropped = logger.stats().dropped;
    drop(logger);
    println!("\n>logged {number} {dropped}");
}

struct Part {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Part {
    fn start(program: &Command, dir: &Path, role: &str, name: &str) -> Part {
        let mut command = Command::new(program.get_program());
        let said = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("said")).unwrap();
        command
            .args(program.get_args())
            .env(ROLE, role)
            .env(NAME, name)
            .env(DATA, dir)
            .env("TAMPU_RUN_DIR", dir.join("run"))
            .env("TAMPU_DOMAIN", "kills")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (put, lines) = mpsc::channel();
        std::thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| put.send(line)));
        Part { child, input, lines }
    }

    fn wait_for(&self, begin: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|why| panic!("no '{begin}': {why}"));
            if let Some(rest) = line.strip_prefix(begin) {
                return rest.trim().to_owned();
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A small generator whose whole state is a seed (Steele's SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Kills so often, at moments that follow from the seed.
pub fn kill(kills: u64, seed: u64, program: &Command) -> Totals {
    let dir = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
    let dir = dir.path();
    let begun = Instant::now();
    let (mut chance, mut totals) = (Chance(seed), Totals::default());
    let start = |role: &str, name: &str| Part::start(program, dir, role, name);
    let mut node = Some(start("node", ""));
    node.as_ref().unwrap().wait_for(">ready");
    let mut collector = Some(start("collector", ""));
    collector.as_ref().unwrap().wait_for(">ready");
    let loggers: Vec<Part> = (0..LOGGERS).map(|number| start("logger", &format!("LOGGER{number}"))).collect();
    loggers.iter().for_each(|logger| drop(logger.wait_for(">ready")));
    for _ in 0..kills {
        let which = chance.below(5);
        // Half of them return at once, the others only after the spool has taken over.
        let away = if chance.below(2) == 0 { chance.below(300) } else { 1200 + chance.below(1000) };
        std::thread::sleep(Duration::from_millis(chance.below(1500)));
        if which != 0 {
            collector.take().unwrap().kill();
        }
        if which <= 1 {
            node.take().unwrap().kill();
        }
        match which {
            0 => totals.nodes += 1,
            1 => totals.both += 1,
            _ => totals.collectors += 1,
        }
        if node.is_none() {
            std::thread::sleep(Duration::from_millis(chance.below(200)));
            node = Some(start("node", ""));
            // A third of the collectors is killed before the node works again.
            if chance.below(3) != 0 {
                node.as_ref().unwrap().wait_for(">ready");
            }
        }
        if collector.is_none() {
            std::thread::sleep(Duration::from_millis(away));
            collector = Some(start("collector", ""));
            if chance.below(3) != 0 {
                collector.as_ref().unwrap().wait_for(">ready");
            }
        }
    }
    let mut produced = HashMap::new();
    for (number, mut logger) in loggers.into_iter().enumerate() {
        drop(logger.input.take());
        let said = logger.wait_for(">logged");
        let (logged, dropped) = said.split_once(' ').unwrap();
        produced.insert(format!("LOGGER{number}"), logged.parse::<u64>().unwrap());
        totals.dropped += dropped.parse::<u64>().unwrap();
        assert!(logger.child.wait().unwrap().success());
    }
    totals.seconds = begun.elapsed().as_secs();
    let rings = RunDir::at(dir.join("run")).domain(&Domain::new("kills").unwrap()).unwrap().log_rings();
    let is_spooled = || {
        let files = std::fs::read_dir(dir.join("spool")).into_iter().flatten().flatten();
        files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "wal")).count() > 0
    };
    let waiting = Instant::now();
    while !dead_in(&rings).is_empty() || is_spooled() {
        let said = || std::fs::read_to_string(dir.join("said")).unwrap_or_default();
        assert!(waiting.elapsed() < PATIENCE, "seed {seed}: not all comes to the collector: {}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    collector.take().unwrap().end();
    node.take().unwrap().end();
    count(dir, &produced, &mut totals);
    if totals.lost + totals.doubled + totals.told > 0 {
        eprintln!("{}", std::fs::read_to_string(dir.join("said")).unwrap_or_default());
    }
    totals
}

fn count(dir: &Path, produced: &HashMap<String, u64>, totals: &mut Totals) {
    let archive = LocalArchive::open(dir, options(Domain::new("kills").unwrap())).unwrap();
    let mut seen: HashMap<String, Vec<u8>> = HashMap::new();
    let mut take = |found: tampu_archive::Found<'_>| {
        let record = found.record;
        if record.logger == "collector" && record.routine == "gap" {
            let number =
                |name: &str| record.data.iter().find(|datum| datum.name == name).and_then(|datum| datum.value.parse().ok());
            totals.told += number("to").unwrap_or(0) - number("from").unwrap_or(0_u64);
            eprintln!("told: {}", record.message);
        }
        if let Some(number) = record.message.strip_prefix("number ").and_then(|number| number.parse::<usize>().ok()) {
            let counts = seen.entry(record.process.clone()).or_default();
            counts.resize(counts.len().max(number + 1), 0);
            counts[number] += 1;
        }
        true
    };
    archive.search(&Query::default(), &Stop::default(), &mut take).unwrap();
    for (name, produced) in produced {
        let counts = seen.remove(name).unwrap_or_default();
        let kept = counts.iter().filter(|count| **count > 0).count() as u64;
        assert!(counts.len() as u64 <= *produced);
        totals.produced += produced;
        totals.kept += kept;
        totals.lost += produced - kept;
        totals.doubled += counts.iter().map(|count| u64::from(count.saturating_sub(1))).sum::<u64>();
        if kept < *produced {
            let missing = |number: &u64| counts.get(*number as usize).is_none_or(|count| *count == 0);
            let (first, last) = ((0..*produced).find(missing), (0..*produced).rfind(missing));
            eprintln!("{name}: {} of {produced} are missing, {first:?} to {last:?}", produced - kept);
        }
    }
    assert!(seen.is_empty(), "records of {:?}", seen.keys());
}
