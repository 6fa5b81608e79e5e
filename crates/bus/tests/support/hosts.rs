//! Two hosts for tests: network namespaces joined by a cable, each with its own boot id, so that the processes in them take
//! each other for processes of different hosts. A process is the test program itself, in a role that `TAMPU_TEST_ROLE` names.
//!
//! Needs root and iproute2, so these tests are ignored and belong to `make test-all`; there they fail where that is missing. The
//! tests of events use this file as well.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use tampu_bus::{
    Participant, QosTable,
    connect::{Encryption, Endpoint, Key, Node, NodeSettings, Settings},
};
use tampu_types::SourceName;

/// Longer than what it waits for ever takes, because machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Addresses of the two hosts.
pub const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
/// Address at which the node of the first host listens.
pub const LISTENS: &str = "10.77.0.1:7447";
/// The test that a process runs: it must end with [`role`].
const PROCESS: &str = "host_process";

/// Runs `ip` and returns its output.
#[track_caller]
pub fn ip(arguments: &str) -> String {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    let done = done.unwrap_or_else(|why| panic!("ip {arguments}: {why}; this test needs root and iproute2"));
    assert!(done.status.success(), "ip {arguments}: {}; this test needs root", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Two namespaces joined by a cable; gone when dropped.
pub struct Hosts {
    pub names: [String; 2],
    _one: MutexGuard<'static, ()>,
}

impl Hosts {
    /// Makes them. One pair exists at a time in a process.
    pub fn new() -> Hosts {
        static ONE: Mutex<()> = Mutex::new(());
        static MADE: AtomicU32 = AtomicU32::new(0);
        let one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|side| format!("tampu-{side}-{}-{number}", std::process::id()));
        let hosts = Hosts { names, _one: one };
        let [a, b] = &hosts.names;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("-n {a} link add cable type veth peer name cable netns {b}"));
        for (name, address) in hosts.names.iter().zip(ADDRESSES) {
            ip(&format!("-n {name} addr add {address}/24 dev cable"));
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {name} link set cable up"));
        }
        hosts
    }

    /// Cuts the cable (`down`) or mends it (`up`).
    #[allow(dead_code, reason = "not every test cuts it")]
    pub fn cable(&self, state: &str) {
        ip(&format!("-n {} link set cable {state}", self.names[0]));
    }

    /// Returns the bytes that have passed the second host's interface, in both directions.
    #[allow(dead_code, reason = "not every test counts them")]
    pub fn bytes(&self) -> u64 {
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
pub struct Process {
    child: Child,
    _input: ChildStdin,
    lines: Receiver<String>,
    pub seen: Vec<String>,
}

impl Process {
    /// Starts it with files of its own below the directory: one for each host, as the two digits of its boot id say.
    pub fn start(host: &str, role: &str, boot: &str, directory: &Path) -> Process {
        let directory = directory.join(boot);
        std::fs::create_dir_all(&directory).unwrap();
        let boot_id = directory.join("boot_id");
        std::fs::write(&boot_id, format!("{boot}{boot}{boot}{boot}-0000-4000-8000-000000000001\n")).unwrap();
        // `ip netns exec` also gives the process its own mounts.
        let script = "mount --bind \"$BOOT_ID\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
        let mut child = Command::new("ip")
            .args(["netns", "exec", host, "sh", "-c", script, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", PROCESS, "--nocapture", "--ignored", "--test-threads=1"])
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

    /// Waits for this line and returns when it came. A line that begins with `bad` fails the test.
    #[track_caller]
    pub fn wait(&mut self, line: &str) -> Instant {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(said) => {
                    assert!(!said.starts_with("bad"), "{said}");
                    let found = said == line;
                    self.seen.push(said);
                    if found {
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

/// In a process on a host: its role, and a flag that is set when the test wants its end. `None` in any other process.
pub fn role() -> Option<(String, Arc<AtomicBool>)> {
    let role = std::env::var("TAMPU_TEST_ROLE").ok()?;
    let over = Arc::new(AtomicBool::new(false));
    let at_end = over.clone();
    std::thread::spawn(move || {
        std::io::stdin().lines().for_each(drop);
        at_end.store(true, Ordering::Relaxed);
    });
    Some((role, over))
}

/// In a process on a host: says a line to the test.
pub fn say(line: &str) {
    println!(">{line}");
    std::io::stdout().flush().unwrap();
}

/// In a process on a host: its node, which listens or connects at [`LISTENS`], and a participant on it.
#[allow(dead_code, reason = "tests of one engine name it")]
pub fn host(listens: bool, name: &str, encryption: Encryption) -> (Node, Participant) {
    host_on(None, listens, name, encryption)
}

/// The same, on the engine of this name.
pub fn host_on(engine: Option<&str>, listens: bool, name: &str, encryption: Encryption) -> (Node, Participant) {
    let endpoint: Endpoint = LISTENS.parse().unwrap();
    let (listen, connect) = if listens { (vec![endpoint], Vec::new()) } else { (Vec::new(), vec![endpoint]) };
    let config = NodeSettings {
        listen,
        connect,
        key: Some(Key::new("between two hosts").unwrap()),
        encryption,
        ..NodeSettings::new(Settings { engine: engine.map(str::to_owned), ..Settings::from_env().unwrap() })
    };
    let node = Node::start(config).unwrap();
    let engine = node.client_settings().open().unwrap();
    let domain = node.client_settings().domain;
    let participant = Participant::on(engine, domain, SourceName::new(name).unwrap(), QosTable::default()).unwrap();
    (node, participant)
}
