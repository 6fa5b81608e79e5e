//! A host gets what its subscribers asked for: two network namespaces, each with its own boot id, so that the processes in
//! them take each other for processes of different hosts. A server with many fast attributes and a few slow ones is on one,
//! a subscriber of one slow attribute on the other, where the bytes at the interface are counted. Needs root and iproute2,
//! so it belongs to `make test-all`. `TAMPU_SECONDS=n` counts for another time than 20 s.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use tampu_bus::{
    Participant, QosTable,
    clock::Gate,
    connect::{Encryption, Endpoint, Key, Node, NodeSettings, Settings},
};
use tampu_event::{
    Client, Server,
    client::{ClientSettings, Filter, SubscribeOptions},
    server::ServerSettings,
};
use tampu_types::{
    SourceName,
    event::{AttributeConfig, AttributePattern, Criteria, DataType, Format, Kinds, Reason, Thresholds, Value},
};

/// Longer than what it waits for ever takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);
const ADDRESS: &str = "10.78.0.1:7447";
/// Fast attributes, and events a second of each.
const FAST: usize = 200;
const RATE: u32 = 50;
/// Elements of the slow spectrum. It is small enough for the stream that all attributes share.
const ELEMENTS: usize = 1000;

#[track_caller]
fn ip(arguments: &str) -> String {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    let done = done.unwrap_or_else(|why| panic!("ip {arguments}: {why}; this test needs root and iproute2"));
    assert!(done.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Two namespaces joined by a cable.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    fn new() -> Hosts {
        let hosts = Hosts { names: ["a", "b"].map(|side| format!("tampu-i{side}-{}", std::process::id())) };
        let [a, b] = &hosts.names;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("-n {a} link add cable type veth peer name cable netns {b}"));
        for (name, address) in [(a, "10.78.0.1/24"), (b, "10.78.0.2/24")] {
            ip(&format!("-n {name} addr add {address} dev cable"));
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {name} link set cable up"));
        }
        hosts
    }

    /// Returns the bytes that have passed the second host's interface, in both directions.
    fn bytes(&self) -> u64 {
        let count = |which: &str| {
            let file = format!("/sys/class/net/cable/statistics/{which}_bytes");
            ip(&format!("netns exec {} cat {file}", self.names[1])).trim().parse::<u64>().unwrap()
        };
        count("rx") + count("tx")
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
}

impl Process {
    fn start(host: &str, role: &str, boot: &str, directory: &Path) -> Process {
        let directory = directory.join(boot);
        std::fs::create_dir_all(&directory).unwrap();
        let boot_id = directory.join("boot_id");
        std::fs::write(&boot_id, format!("{boot}{boot}{boot}{boot}-0000-4000-8000-000000000001\n")).unwrap();
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
        Process { child, _input: input, lines }
    }

    #[track_caller]
    fn wait(&mut self, line: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.lines.recv_timeout(until.saturating_duration_since(Instant::now()));
            let said = said.unwrap_or_else(|why| panic!("'{line}' was not said: {why}"));
            assert!(!said.starts_with("bad"), "{said}");
            if said == line {
                return;
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
        encryption: Encryption::None,
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
#[ignore = "a part of the test below, which make test-all runs"]
fn host_process() {
    let Ok(role) = std::env::var("TAMPU_TEST_ROLE") else { return };
    let over = Arc::new(AtomicBool::new(false));
    let at_end = over.clone();
    std::thread::spawn(move || {
        std::io::stdin().lines().for_each(drop);
        at_end.store(true, Ordering::Relaxed);
    });
    match role.split_once(' ') {
        Some(("source", fast)) => publish(fast.parse().unwrap(), &over),
        Some(("subscriber", name)) => subscribe(name, &over),
        _ => panic!("no role {role}"),
    }
}

fn say(line: &str) {
    println!(">{line}");
    std::io::stdout().flush().unwrap();
}

fn every_value(name: &str, format: Format, max_x: u32) -> AttributeConfig {
    let change = Thresholds { abs: Some("1e-9".parse().unwrap()), rel: None };
    AttributeConfig {
        max_x,
        criteria: Criteria { change, period_ms: 1_000_000_000, ..Criteria::default() },
        ..AttributeConfig::new(name.parse().unwrap(), DataType::Double, format)
    }
}

/// Publishes fast attributes and, once a second, slow ones.
fn publish(fast: usize, over: &AtomicBool) {
    let (_node, participant) = host(None, Some(ADDRESS), "source");
    let server = Server::start(participant.clone(), ServerSettings::default()).unwrap();
    let declare = |name: &str, format, max_x| server.declare(every_value(name, format, max_x)).unwrap();
    let all: Vec<_> = (0..fast).map(|number| declare(&format!("lab/fast/{number}/value"), Format::Scalar, 1)).collect();
    let scalar = declare("lab/slow/1/scalar", Format::Scalar, 1);
    let spectrum = declare("lab/slow/1/spectrum", Format::Spectrum, ELEMENTS as u32);
    let client = Client::start(participant, ClientSettings::default()).unwrap();
    // A subscriber on this host reads everything, as a display or a history here would.
    let _here = client.subscribe(SubscribeOptions::of([AttributePattern::new("lab/*").unwrap()]), |_| {});
    let pause = Gate::default();
    say("ready");
    let begun = Instant::now();
    for round in 0_u32.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let value = f64::from(round);
        for attribute in &all {
            attribute.push(Value::scalar(&value)).unwrap();
        }
        if round % RATE == 0 {
            scalar.push(Value::scalar(&value)).unwrap();
            spectrum.push(Value::spectrum(&[value; ELEMENTS])).unwrap();
        }
        let next = Duration::from_secs(1) * (round + 1) / RATE;
        pause.wait_host(0, next.saturating_sub(begun.elapsed()));
    }
}

/// Says each value that it is given.
fn subscribe(name: &str, over: &AtomicBool) {
    let (_node, participant) = host(Some(ADDRESS), None, "subscriber");
    let client = Client::start(participant, ClientSettings::default()).unwrap();
    let (name, filter) = match name.split_once(" moved ") {
        Some((name, abs)) => {
            let moved = Thresholds { abs: Some(abs.parse().unwrap()), rel: None };
            (name, Filter { moved: Some(moved), ..Filter::default() })
        }
        None => (name, Filter::default()),
    };
    let wish = SubscribeOptions::of([AttributePattern::new(name).unwrap()]).kinds(Kinds::CHANGE).filter(filter);
    let (mut count, mut last) = (0, None);
    let _subscription = client.subscribe(wish, move |event| match event.reason {
        Reason::First => last = Some(event.number),
        Reason::Update if last.is_some_and(|last| event.number > last) => {
            (count, last) = (count + 1, Some(event.number));
            say(&format!("value {count}"));
        }
        Reason::SourceHung | Reason::SourceReturned | Reason::Resumed => {}
        reason => say(&format!("bad {reason:?} {} after {last:?}: {:?}", event.number, event.missed)),
    });
    let pause = Gate::default();
    while !over.load(Ordering::Relaxed) {
        pause.wait_host(0, Duration::from_millis(100));
    }
}

/// Returns the bytes at the interface of the subscriber's host while it is given this many values of an attribute.
fn bytes_for(fast: usize, name: &str, values: u64) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    let mut source = Process::start(a, &format!("source {fast}"), "11", directory.path());
    source.wait("ready");
    let mut subscriber = Process::start(b, &format!("subscriber {name}"), "22", directory.path());
    // By then everybody knows everybody.
    subscriber.wait("value 5");
    let before = hosts.bytes();
    subscriber.wait(&format!("value {}", 5 + values));
    hosts.bytes() - before
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn a_host_that_asked_for_a_slow_attribute_is_sent_no_fast_ones() {
    // One test at a time: the addresses are fixed, but the namespaces belong to this test alone.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap();
    let seconds: u64 = std::env::var("TAMPU_SECONDS").map_or(20, |text| text.parse().unwrap());

    let payload = seconds * 8 * ELEMENTS as u64;
    let bytes = bytes_for(FAST, "lab/slow/1/spectrum", seconds);
    println!("a spectrum of {payload} bytes in {seconds} s beside fast attributes: {bytes} bytes at the interface");
    assert!(bytes <= 2 * payload, "{bytes} bytes for {payload}");

    let alone = bytes_for(0, "lab/slow/1/scalar", seconds);
    let beside = bytes_for(FAST, "lab/slow/1/scalar", seconds);
    println!("a scalar in {seconds} s: {alone} bytes alone, {beside} bytes beside fast attributes");
    assert!(beside <= 2 * alone, "{beside} bytes beside fast attributes, {alone} alone");

    // One of fifty readings a second has moved enough.
    let filtered = bytes_for(FAST, &format!("lab/fast/1/value moved {RATE}"), seconds);
    println!("a fast scalar of which one reading a second is wanted, in {seconds} s: {filtered} bytes");
    assert!(filtered <= 2 * alone, "{filtered} bytes for one reading a second, {alone} for a slow attribute");
}
