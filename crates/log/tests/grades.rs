//! Grades hold when the collector is killed: a kept record is in the archive, a received one is
//! not promised to be there, and comes again. The child process is this test program again.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use tampu_archive::{
    Appended, Archive, ArchiveError, Arrival, BackedUp, Checked, Compacted, Counts, Doing, Found, Grouping, Health, LocalArchive,
    Patterns, PatternsWanted, Scanned, Stop, StreamOffset, Told,
    columns::{ColumnBatch, ColumnType},
    query::Query,
};
use tampu_bus::{
    Participant, QosTable,
    connect::{Node, NodeSettings, Settings},
};
use tampu_log::{
    Grade, LogSettings, Logger, Outcome,
    collector::{Collector, CollectorOptions},
};
use tampu_types::SourceName;

#[path = "../../archive/tests/support/mod.rs"]
mod support;
use support::*;

const PATIENCE: Duration = Duration::from_secs(120);

fn join(config: &Settings, name: &str) -> Participant {
    let engine = config.open().unwrap();
    Participant::on(engine, config.domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}

/// Not a test: the work of the child process. Ends with its input.
#[test]
fn child_process() {
    let Ok(disk) = std::env::var("TAMPU_TEST_DISK") else { return };
    let dir = std::env::var("TAMPU_TEST_DATA").unwrap();
    let archive = LocalArchive::open(&dir, tampu_archive::Options::new(domain())).unwrap();
    let archive: Arc<dyn Archive> =
        if disk == "works" { Arc::new(archive) } else { Arc::new(InMemory { archive, appended: AtomicU64::new(0) }) };
    let options = CollectorOptions::new(format!("{dir}/rejected"));
    let _collector = Collector::start(join(&Settings::from_env().unwrap(), "collector"), archive, options).unwrap();
    println!(">ready");
    std::io::stdin().lines().map_while(Result::ok).for_each(drop);
}

/// A collector in a process of its own.
struct Process {
    child: Child,
    _input: Option<ChildStdin>,
}

impl Process {
    fn collector(run_dir: &Path, data: &Path, disk: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_process", "--nocapture"])
            .env("TAMPU_TEST_DISK", disk)
            .env("TAMPU_TEST_DATA", data)
            .env("TAMPU_RUN_DIR", run_dir)
            .env("TAMPU_DOMAIN", domain().as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with(">ready")), "the collector started");
        // Its output at the end needs a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Process { child, _input: input }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// An archive whose disk takes nothing: what it accepts is in its memory.
struct InMemory {
    archive: LocalArchive,
    appended: AtomicU64,
}

impl Archive for InMemory {
    fn append(&self, _: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        let ticket = 1 + self.appended.fetch_add(1, Ordering::SeqCst);
        Ok(Appended { ticket, records: 1, ..Appended::default() })
    }

    fn committed(&self) -> u64 {
        0
    }

    fn on_commit(&self, told: Told) {
        self.archive.on_commit(told);
    }

    fn flush(&self, timeout: Duration) -> bool {
        self.archive.flush(timeout)
    }

    fn search(&self, query: &Query, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError> {
        self.archive.search(query, stop, sink)
    }

    fn columns(
        &self,
        _: &Query,
        _: &[(&'static str, ColumnType)],
        _: &Stop,
        _: &mut dyn FnMut(ColumnBatch) -> bool,
    ) -> Result<Scanned, ArchiveError> {
        unreachable!("nobody asks for columns")
    }

    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
        self.archive.count(query, by, stop)
    }

    fn patterns(&self, query: &Query, wanted: &PatternsWanted, stop: &Stop) -> Result<Patterns, ArchiveError> {
        self.archive.patterns(query, wanted, stop)
    }

    fn compact(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Compacted, ArchiveError> {
        self.archive.compact(stop, doing)
    }

    fn check(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Checked, ArchiveError> {
        self.archive.check(stop, doing)
    }

    fn backup(&self, target: &Path, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<BackedUp, ArchiveError> {
        self.archive.backup(target, stop, doing)
    }

    fn offsets(&self) -> Vec<StreamOffset> {
        self.archive.offsets()
    }

    fn health(&self) -> Health {
        self.archive.health()
    }
}

/// The messages in the archive after the collector has been killed.
fn stored(data: &Path) -> Vec<String> {
    let archive = LocalArchive::open(data, tampu_archive::Options::new(domain())).unwrap();
    all(&archive).into_iter().map(|record| record.message).collect()
}

#[test]
fn a_killed_collector_has_what_was_kept_and_gets_again_what_was_only_received() {
    let dir = tempfile::tempdir().unwrap();
    let (run_dir, data) = (dir.path().join("run"), dir.path().join("data"));
    let config = Settings::isolated(&run_dir).in_domain(domain());
    let _node = Node::start(NodeSettings::new(config.clone())).unwrap();
    let settings = LogSettings::isolated(domain(), SourceName::new("DV01").unwrap());
    let logger = Logger::on(join(&config, "DV01"), settings).unwrap();
    let hasty = logger.acknowledged_as(Grade::Received, Duration::from_millis(200));
    tampu_log::info!(hasty, "received 0");
    assert_eq!(hasty.unconfirmed(), 1, "no collector has it yet");

    let collector = Process::collector(&run_dir, &data, "takes nothing");
    assert_eq!(logger.wait_until(Grade::Received, PATIENCE), Outcome::Received);
    let (tell, told) = mpsc::channel();
    let reported = logger.reporting(Grade::Received, PATIENCE, move |number, outcome| tell.send((number, outcome)).unwrap());
    for number in 0..20 {
        tampu_log::info!(reported, "received {}", number + 1);
        assert_eq!(told.recv_timeout(PATIENCE), Ok((number, Outcome::Received)));
    }
    assert_eq!(logger.wait_until(Grade::Kept, Duration::from_millis(100)), Outcome::Unconfirmed);
    collector.kill();
    assert!(stored(&data).is_empty(), "its memory is gone");

    let collector = Process::collector(&run_dir, &data, "works");
    assert_eq!(logger.wait_until(Grade::Kept, PATIENCE), Outcome::Kept, "they come again");
    let sure = logger.acknowledged(PATIENCE);
    for number in 0..20 {
        tampu_log::warning!(sure, "kept {number}");
    }
    assert!(sure.is_confirmed());
    collector.kill();
    let mut expected: Vec<_> = (0..21).map(|number| format!("received {number}")).collect();
    expected.extend((0..20).map(|number| format!("kept {number}")));
    let mut found = stored(&data);
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "each once");
}
