//! Two hosts and a cable between them that is cut: two network namespaces, each with its own boot id, so that the processes
//! in them take each other for processes of different hosts. Needs root and iproute2, so it belongs to `make test-all`;
//! there it fails where they are missing.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant, SystemTime},
};

use tampu_bus::{
    Event, Participant, Qos, QosTable, ReaderQos, TypeTag,
    clock::Gate,
    connect::{Encryption, Endpoint, Key, Node, NodeSettings, Settings},
};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
use tampu_types::{Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// Longer than what it waits for ever takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Duration of the cut.
const CUT: Duration = Duration::from_secs(5);
const PORT: &str = "7447";

#[track_caller]
fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    let done = status.as_ref().is_ok_and(|status| status.success());
    assert!(done, "ip {arguments}: {status:?}; this test needs root and iproute2");
}

/// Two namespaces joined by a cable.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    fn new() -> Hosts {
        let names = ["a", "b"].map(|side| format!("tampu-{side}-{}", std::process::id()));
        let hosts = Hosts { names };
        let [a, b] = &hosts.names;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("-n {a} link add cable type veth peer name cable netns {b}"));
        for (name, address) in [(a, "10.77.0.1/24"), (b, "10.77.0.2/24")] {
            ip(&format!("-n {name} addr add {address} dev cable"));
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {name} link set cable up"));
        }
        hosts
    }

    fn cable(&self, state: &str) {
        ip(&format!("-n {} link set cable {state}", self.names[0]));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

/// This program in a role, on one of the hosts.
struct Process {
    child: Child,
    _input: ChildStdin,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    fn start(host: &str, role: &str, boot: &str, directory: &Path) -> Process {
        let directory = directory.join(role);
        std::fs::create_dir_all(&directory).unwrap();
        let boot_id = directory.join("boot_id");
        std::fs::write(&boot_id, boot).unwrap();
        // `ip netns exec` also gives the process its own mounts.
        let script = "mount --bind \"$BOOT_ID\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
        let mut child = Command::new("ip")
            .args(["netns", "exec", host, "sh", "-c", script, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "host_process", "--nocapture", "--ignored", "--test-threads=1"])
            .env("BOOT_ID", boot_id)
            .env("TAMPU_TEST_ROLE", role)
            .env("TAMPU_RUN_DIR", directory.join("run"))
            .env("TAMPU_DOMAIN", "two hosts")
            .env("TAMPU_CERTIFICATES", directory.join("cert"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            // The test harness writes its own words before the process's first line.
            let ours = |line: String| line.split_once('>').map(|(_, said)| said.to_owned());
            output.lines().map_while(Result::ok).filter_map(ours).try_for_each(|line| send.send(line))
        });
        Process { child, _input: input, lines, seen: Vec::new() }
    }

    /// Waits for this line and returns when it came.
    #[track_caller]
    fn wait(&mut self, line: &str) -> Instant {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(said) => {
                    self.seen.push(said.clone());
                    if said == line {
                        return Instant::now();
                    }
                }
                Err(why) => panic!("'{line}' was not said ({why}), but {:?}", self.seen),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A host's node and a participant on it.
fn host(connect: Option<&str>, listen: Option<&str>, name: &str) -> (Node, Participant) {
    let process = Settings::from_env().unwrap();
    let endpoints = |address: Option<&str>| address.iter().map(|address| address.parse::<Endpoint>().unwrap()).collect();
    let config = NodeSettings {
        listen: endpoints(listen),
        connect: endpoints(connect),
        key: Some(Key::new("between two hosts").unwrap()),
        encryption: Encryption::from_env().unwrap(),
        ..NodeSettings::new(process)
    };
    let node = Node::start(config).unwrap();
    let engine = node.client_settings().open().unwrap();
    let domain = node.client_settings().domain;
    let participant = Participant::on(engine, domain, SourceName::new(name).unwrap(), QosTable::default()).unwrap();
    (node, participant)
}

/// Not a test by itself: what the processes on the two hosts do until their input ends.
#[test]
#[ignore = "a part of the cable test, which make test-all runs"]
fn host_process() {
    let Ok(role) = std::env::var("TAMPU_TEST_ROLE") else { return };
    let over = Arc::new(AtomicBool::new(false));
    let at_end = over.clone();
    std::thread::spawn(move || {
        std::io::stdin().lines().for_each(drop);
        at_end.store(true, Ordering::Relaxed);
    });
    match role.as_str() {
        "writer" => write(&over),
        _ => read(&over),
    }
}

fn say(line: &str) {
    println!(">{line}");
    std::io::stdout().flush().unwrap();
}

/// Writes a hundred samples a second; says when a reader is matched, and the longest a write ever took.
fn write(over: &AtomicBool) {
    let (_node, participant) = host(None, Some(&format!("10.77.0.1:{PORT}")), "writer");
    let topic = TopicName::new("cable/numbers").unwrap();
    let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    let (pause, mut matched, mut longest) = (Gate::default(), false, Duration::ZERO);
    say("ready");
    for number in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let begin = Instant::now();
        let written = writer.write(&number.to_le_bytes()).unwrap();
        longest = longest.max(begin.elapsed());
        if written.matched > 0 && !std::mem::replace(&mut matched, true) {
            say("matched");
        }
        assert!(longest < Duration::from_secs(1), "a write took {longest:?}");
        pause.wait_host(0, Duration::from_millis(10));
    }
}

/// Says what it hears of the writer, and every hundredth sample; ends if one is missing or out of order.
fn read(over: &AtomicBool) {
    let (_node, participant) = host(Some(&format!("10.77.0.1:{PORT}")), None, "reader");
    let topics = TopicFilter::new("cable/**").unwrap();
    let mut reader = participant.reader(&topics, &PartitionFilter::All, ReaderQos::default()).unwrap();
    let mut next = None;
    say("ready");
    while !over.load(Ordering::Relaxed) {
        match reader.next(Duration::from_millis(200)) {
            Some(Event::Sample(sample)) => {
                let number = u64::from_le_bytes(sample.payload.bytes().unwrap().try_into().unwrap());
                assert_eq!(number, next.unwrap_or(number), "in order and without holes");
                next = Some(number + 1);
                if number % 100 == 0 {
                    say("samples");
                }
            }
            Some(Event::Gap(gap)) => say(&format!("gap {gap:?}")),
            Some(Event::Source(change)) => say(&format!("{:?}", change.state)),
            None => {}
        }
    }
}

/// Makes the certificates of both hosts, where each looks for its own.
fn certify(directory: &Path) {
    let now = SystemTime::now();
    let authority = Authority::create(&CertificateDir::new(directory.join("authority")), "two hosts", now).unwrap();
    for (role, address) in [("writer", "10.77.0.1"), ("reader", "10.77.0.2")] {
        let names = HostNames::new(role, &[address.to_owned()]).unwrap();
        let own = CertificateDir::new(directory.join(role).join("cert"));
        authority.issue(&own, &names, KeyPairChoice::New, now).unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn a_cable_cut_for_five_seconds_loses_nothing_and_is_told() {
    // One test at a time: the addresses are fixed, but the namespaces belong to this test alone.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    certify(directory.path());
    let mut writer = Process::start(a, "writer", "11111111-0000-4000-8000-000000000001\n", directory.path());
    writer.wait("ready");
    let mut reader = Process::start(b, "reader", "22222222-0000-4000-8000-000000000002\n", directory.path());
    writer.wait("matched");
    reader.wait("Appeared");
    reader.wait("samples");

    hosts.cable("down");
    let cut = Instant::now();
    let told = reader.wait("Silent") - cut;
    Gate::default().wait_host(0, CUT.saturating_sub(cut.elapsed()));
    hosts.cable("up");
    let back = Instant::now();
    let returned = reader.wait("Returned") - back;
    for _ in 0..7 {
        reader.wait("samples");
    }
    println!("silence told {told:?} after the cut, return {returned:?} after the cable was back");
    assert!(told < CUT, "the silence was told while it lasted: {told:?}");
    assert!(!reader.seen.iter().any(|line| line.starts_with("gap") || line == "Died"), "{:?}", reader.seen);
}
