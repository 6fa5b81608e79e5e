//! The collector process is killed ten times under load: what it had acknowledged is in its archive each time, and in the end
//! every record is there once. The child process is this test program again, in the role `TAMPU_TEST_ROLE` names.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_archive::{Archive, ArchiveError, LocalArchive, Options};
use tampu_bus::{
    Participant, Qos, QosTable, TypeTag, Writer,
    connect::{Node, NodeSettings, Settings},
};
use tampu_log::collector::{Collector, CollectorOptions};
use tampu_types::{
    Domain, Incarnation, Partition, RecordId, SourceName, TopicName,
    log_batch::{TYPE_ID, VERSION, encode_records},
};

#[path = "../../archive/tests/support/mod.rs"]
mod support;
use support::*;

const KILLS: usize = 10;
const PACKET: u64 = 10;
/// Packets a writer may be ahead of what is acknowledged: all of them fit its cache.
const AHEAD: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(120);

fn join(config: &Settings, name: &str) -> Participant {
    let engine = config.open().unwrap();
    Participant::on(engine, config.domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}

/// Not a test: what the child process does. Ends with its input.
#[test]
fn child_process() {
    if std::env::var("TAMPU_TEST_ROLE").as_deref() != Ok("collector") {
        return;
    }
    let dir = std::env::var("TAMPU_TEST_DATA").unwrap();
    let config = Settings::from_env().unwrap();
    let options = options(&config.domain);
    let begun = Instant::now();
    let archive = loop {
        match LocalArchive::open(&dir, options.clone()) {
            // The previous process has been killed, but may not have ended yet.
            Err(ArchiveError::InUse { .. }) if begun.elapsed() < PATIENCE => std::thread::yield_now(),
            opened => break Arc::new(opened.unwrap()),
        }
    };
    let _collector =
        Collector::start(join(&config, "collector"), archive, CollectorOptions::new(format!("{dir}/rejected"))).unwrap();
    println!(">ready");
    std::io::stdin().lines().map_while(Result::ok).for_each(drop);
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
}

impl Process {
    fn collector(run_dir: &Path, domain: &Domain, data: &Path) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_process", "--nocapture"])
            .env("TAMPU_TEST_ROLE", "collector")
            .env("TAMPU_TEST_DATA", data)
            .env("TAMPU_RUN_DIR", run_dir)
            .env("TAMPU_DOMAIN", domain.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with(">ready")), "the collector started");
        // Its output at the end needs a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Process { child, input }
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

/// Progress of one writer.
#[derive(Default)]
struct Progress {
    delivered: Mutex<u64>,
    more: Condvar,
}

impl Progress {
    fn wait_for(&self, packets: u64) {
        let delivered = self.delivered.lock().unwrap();
        let (delivered, timeout) = self.more.wait_timeout_while(delivered, PATIENCE, |delivered| *delivered < packets).unwrap();
        assert!(!timeout.timed_out(), "no acknowledgement comes: {} of {packets}", *delivered);
    }

    fn now(&self) -> u64 {
        *self.delivered.lock().unwrap()
    }
}

/// Writes until told to end, then until all is acknowledged; returns how many packets.
fn write_on(participant: &Participant, ring: u32, writer: &Writer, progress: &Progress, ending: &AtomicBool) -> u64 {
    let mut packets = 0;
    while !ending.load(Ordering::Acquire) {
        let numbers = packets * PACKET..(packets + 1) * PACKET;
        let records: Vec<_> = numbers.map(|number| record(participant.incarnation(), ring, number)).collect();
        writer.write(&encode_records(&records).unwrap()).unwrap();
        packets += 1;
        progress.wait_for(packets.saturating_sub(AHEAD));
    }
    progress.wait_for(packets);
    packets
}

fn ids_of(participant: &Participant, ring: u32, packets: u64) -> impl Iterator<Item = RecordId> + use<> {
    let incarnation = participant.incarnation();
    (0..packets * PACKET).map(move |number| RecordId { incarnation, ring, number })
}

/// Small segments, so that it is killed in the middle of compactions too.
fn options(domain: &Domain) -> Options {
    Options { roll: 64 << 10, share: 1.0, ..Options::new(domain.clone()) }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Waits until a compaction has committed a file to the manifest, however slow the machine is.
fn wait_for_compaction(data: &Path) {
    let begun = Instant::now();
    // A file that no line of the manifest names is removed at the next start.
    while !std::fs::read_to_string(data.join("manifest.jsonl")).is_ok_and(|manifest| manifest.contains(".parquet")) {
        assert!(begun.elapsed() < PATIENCE, "no compaction comes");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Counts the packets of each writer that a start after the kill finds, on a copy.
fn stored(data: &Path, domain: &Domain) -> HashMap<(Incarnation, u32), u64> {
    let copy = support::dir();
    copy_all(data, copy.path());
    let archive = LocalArchive::open(copy.path(), options(domain)).unwrap();
    let offsets: HashMap<_, _> =
        archive.offsets().into_iter().map(|offset| ((offset.incarnation, offset.stream), offset.next)).collect();
    // The archive holds as many records as the offsets say, so none is missing and none is there twice.
    assert_eq!(archive.health().records, offsets.values().sum::<u64>() * PACKET);
    offsets
}

#[test]
fn killed_ten_times_under_load_every_acknowledged_record_is_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let (run_dir, data) = (dir.path().join("run"), dir.path().join("data"));
    let config = Settings::isolated(&run_dir).in_domain(Domain::new("killed").unwrap());
    let _node = Node::start(NodeSettings::new(config.clone())).unwrap();
    let participants = [join(&config, "DV01"), join(&config, "DV02")];
    let lanes: Vec<_> = [(0, 0, "log/info"), (0, 1, "log/debug"), (1, 0, "log/info")]
        .map(|(place, ring, topic)| {
            let tag = TypeTag { id: TYPE_ID, version: VERSION };
            // Kept until a collector acknowledges it, also while no collector runs.
            let qos = Qos { keep: 64 << 20, ..Qos::default() };
            let topic = TopicName::new(topic).unwrap();
            let writer = participants[place].writer(&topic, &Partition::everybody(), tag, qos).unwrap();
            let progress = Arc::new(Progress::default());
            writer.on_delivery({
                let progress = progress.clone();
                move |next| {
                    *progress.delivered.lock().unwrap() = next;
                    progress.more.notify_all();
                }
            });
            (&participants[place], ring, writer, progress)
        })
        .into();

    let ending = AtomicBool::new(false);
    let written: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = lanes
            .iter()
            .map(|(participant, ring, writer, progress)| scope.spawn(|| write_on(participant, *ring, writer, progress, &ending)))
            .collect();
        for kill in 0..KILLS {
            let collector = Process::collector(&run_dir, &config.domain, &data);
            // A moment between the first acknowledgement and many commits later.
            let (.., progress) = &lanes[kill % lanes.len()];
            progress.wait_for(progress.now() + 1 + (kill as u64 * 7919) % 397);
            // The kills of the second half find files of earlier compactions, too.
            if kill == KILLS / 2 {
                wait_for_compaction(&data);
            }
            let acknowledged: Vec<u64> = lanes.iter().map(|(.., progress)| progress.now()).collect();
            collector.kill();
            let stored = stored(&data, &config.domain);
            for ((participant, ring, ..), packets) in lanes.iter().zip(&acknowledged) {
                // A participant's streams are numbered as its writers were made: here as the rings.
                let kept = stored.get(&(participant.incarnation(), *ring)).copied().unwrap_or(0);
                assert!(kept >= *packets, "of {packets} packets acknowledged before kill {kill} {kept} are there");
            }
        }
        let collector = Process::collector(&run_dir, &config.domain, &data);
        ending.store(true, Ordering::Release);
        let written = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        collector.end();
        written
    });

    let archive = LocalArchive::open(&data, options(&config.domain)).unwrap();
    let mut expected: Vec<RecordId> =
        lanes.iter().zip(&written).flat_map(|((participant, ring, ..), packets)| ids_of(participant, *ring, *packets)).collect();
    expected.sort();
    let found = ids(&archive);
    let health = archive.health();
    println!("{} records, {} of them in Parquet, {KILLS} kills, damage told: {:?}", found.len(), health.in_files, health.faults);
    assert!(health.in_files > 0, "some of it was compacted between the kills");
    assert_eq!(found.len(), expected.len());
    assert!(found == expected);
}
