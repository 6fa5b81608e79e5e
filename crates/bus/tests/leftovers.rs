//! Files in shared memory of a process that is killed: its node removes them.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tampu_bus::{
    Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
};
use tampu_types::{Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// Set in the process that is killed: the run-time directory.
const VICTIM: &str = "TAMPU_LEFTOVERS_TEST";
/// Longest wait of the test; far longer than it takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn join(directory: &Path, name: &str) -> Participant {
    let settings = Settings::isolated(directory);
    let domain = settings.domain.clone();
    Participant::on(settings.open().unwrap(), domain, SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}

fn writer(participant: &Participant, topic: &str) -> Writer {
    let topic = TopicName::new(topic).unwrap();
    participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos { pool: 1 << 20, ..Qos::default() }).unwrap()
}

fn reader(participant: &Participant, topic: &str) -> Reader {
    participant.reader(&TopicFilter::new(topic).unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap()
}

/// Names of the files in shared memory that begin with this incarnation, or all names.
fn files(shared: &Path, of: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(shared).unwrap().flatten().map(|file| file.path());
    found.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(of)).collect()
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let (begun, pause) = (Instant::now(), Gate::default());
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        pause.wait_host(0, Duration::from_millis(10));
    }
}

/// Lives until it is killed, with a ring of loans and a page of progress.
fn be_the_victim(directory: &Path) {
    let participant = join(directory, "victim");
    let (writer, mut reader) = (writer(&participant, "out"), reader(&participant, "in"));
    let mut loan = writer.loan(1000).unwrap();
    loan.fill(1);
    loan.publish().unwrap();
    let own = participant.incarnation().to_string();
    until("its files", || {
        while reader.next(Duration::ZERO).is_some() {}
        files(&directory.join("local").join("shm"), &own).len() == 2
    });
    println!("\n>{own}");
    loop {
        std::thread::park();
    }
}

#[test]
fn the_node_removes_the_files_of_a_killed_process_and_no_others() {
    a_victim_leaves_nothing("the_node_removes_the_files_of_a_killed_process_and_no_others", None);
}

/// Its sockets have another incarnation of the process in their names than its files in shared memory.
#[cfg(feature = "zmq")]
#[test]
fn the_node_removes_the_sockets_of_a_killed_publisher() {
    a_victim_leaves_nothing("the_node_removes_the_sockets_of_a_killed_publisher", Some("zmq"));
}

/// `test` is the name of the calling test, which the victim runs too.
fn a_victim_leaves_nothing(test: &str, engine: Option<&str>) {
    if let Some(directory) = std::env::var_os(VICTIM) {
        return be_the_victim(Path::new(&directory));
    }
    let run = tempfile::tempdir().unwrap();
    let settings = Settings { engine: engine.map(str::to_owned), ..Settings::isolated(run.path()) };
    let node = Node::start(NodeSettings::new(settings)).unwrap();
    let shared = node.dir().rings();
    let other = join(run.path(), "other");
    let (to_victim, _from_victim) = (writer(&other, "in"), reader(&other, "out"));
    to_victim.write(b"sample").unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VICTIM, run.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with('>')).unwrap();
    let of_victim = &line[1..];
    let of_other = other.incarnation().to_string();
    until("the other one's page", || !files(&shared, &of_other).is_empty());
    let before = files(&shared, &of_other);
    assert_eq!(files(&shared, of_victim).len(), 2);
    // Boot and process number, without the time of the incarnation.
    let (peers, any_incarnation) = (node.dir().peers(), &of_victim[..17]);
    assert_eq!(files(&peers, any_incarnation).len(), if engine.is_some() { 2 } else { 0 });
    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the removal", || files(&shared, of_victim).is_empty());
    until("the removal of sockets", || files(&peers, any_incarnation).is_empty());
    assert_eq!(files(&shared, &of_other), before);
}
