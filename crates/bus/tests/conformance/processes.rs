//! Real processes around a real node. Each is the test program again, in the role `TAMPU_TEST_PROCESS` gives it, and does
//! what it reads from its input. An engine's test program has a test `child_process` that calls the function of that name.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    marker::PhantomData,
    process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio},
    sync::Mutex,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::{Pid, Signal, kill_process};
use tampu_bus::{
    QosPatch,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
};
use tampu_types::Domain;

use super::{
    arena::{Arena, Process},
    command::{Command, Reply},
    member::Member,
};

/// Period at which a condition is checked.
const LOOK: Duration = Duration::from_millis(5);

/// The engine under test.
pub trait TestedEngine {
    /// Its name in settings.
    const NAME: &str;
}

/// Nodes and processes that meet in a directory of their own.
pub struct ProcessArena<E> {
    directory: tempfile::TempDir,
    nodes: Mutex<HashMap<String, Node>>,
    engine: PhantomData<E>,
}

/// A child process: a line from it answers every line to it.
pub struct ChildProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl<E: TestedEngine> ProcessArena<E> {
    fn config(&self, domain: &str) -> Settings {
        let engine = Some(E::NAME.to_owned());
        Settings { engine, ..Settings::isolated(self.directory.path()).in_domain(Domain::new(domain).unwrap()) }
    }
}

impl<E: TestedEngine> Arena for ProcessArena<E> {
    type Process = ChildProcess;

    fn new() -> ProcessArena<E> {
        ProcessArena { directory: tempfile::tempdir().unwrap(), nodes: Mutex::default(), engine: PhantomData }
    }

    fn start(&self, _host: &str, domain: &str, source: &str, patches: Vec<QosPatch>) -> ChildProcess {
        let mut nodes = self.nodes.lock().unwrap();
        nodes.entry(domain.to_owned()).or_insert_with(|| Node::start(NodeSettings::new(self.config(domain))).unwrap());
        let mut child = Program::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_process", "--nocapture", "--test-threads=1"])
            .env("TAMPU_TEST_PROCESS", source)
            .env("TAMPU_ENGINE", E::NAME)
            .env("TAMPU_TEST_QOS", serde_json::to_string(&patches).unwrap())
            .env("TAMPU_RUN_DIR", self.directory.path())
            .env("TAMPU_DOMAIN", domain)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = ChildProcess { child, input, output };
        let Reply::Done = process.reply() else { panic!("{source} could not join") };
        process
    }

    fn until(&self, mut is_so: impl FnMut() -> bool, limit: Duration) -> bool {
        let (end, pause) = (Instant::now() + limit, Gate::default());
        loop {
            // A condition that became true at the last moment counts, even if the check was slow.
            let over = Instant::now() >= end;
            if is_so() {
                return true;
            }
            if over {
                return false;
            }
            pause.wait_host(0, LOOK);
        }
    }

    fn allowed(&self, promised: Duration) -> Duration {
        // Tests run in parallel, each with several processes, on as few as two cores.
        2 * promised + Duration::from_secs(1)
    }

    fn utc(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
    }
}

impl ChildProcess {
    #[track_caller]
    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the process ended");
            // The test harness writes its own words before the member's on the same line.
            if let Some((_, reply)) = line.split_once('\u{1}') {
                return serde_json::from_str(reply).unwrap();
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Process for ChildProcess {
    fn call(&mut self, command: Command) -> Reply {
        writeln!(self.input, "{}", serde_json::to_string(&command).unwrap()).unwrap();
        self.reply()
    }

    fn stop(&mut self) {
        self.signal(Signal::STOP);
    }

    fn resume(&mut self) {
        self.signal(Signal::CONT);
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // The process may already be dead.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Body of the test `child_process`. It ends with its input.
pub fn child_process() {
    let Ok(source) = std::env::var("TAMPU_TEST_PROCESS") else { return };
    let say = |reply: &Reply| println!("\u{1}{}", serde_json::to_string(reply).unwrap());
    let config = Settings::from_env().unwrap();
    let patches: Vec<QosPatch> = serde_json::from_str(&std::env::var("TAMPU_TEST_QOS").unwrap()).unwrap();
    let domain = config.domain.to_string();
    let mut member = Member::join(config.open().unwrap(), &domain, &source, patches).unwrap();
    say(&Reply::Done);
    for line in std::io::stdin().lines().map_while(Result::ok) {
        say(&member.run(serde_json::from_str(&line).unwrap()));
    }
    // The end of the input means that this process has to end without farewells.
    std::process::exit(0);
}
