//! The processes of a scene: this program again, told what it is by its environment, spoken to in lines.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    str::FromStr,
    sync::mpsc,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use tampu_bus::{
    Participant, QosTable,
    connect::{Node, NodeSettings, Settings},
};
use tampu_types::{Domain, SourceName};

use super::{PATIENCE, source, subscriber};

const ROLE: &str = "TAMPU_FAULT_ROLE";
const RUN_DIR: &str = "TAMPU_RUN_DIR";
const DOMAIN: &str = "faults";

/// Arguments of a part: `name=source life=3`.
pub struct Told(HashMap<String, String>);

impl Told {
    fn read(text: &str) -> Told {
        let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        Told(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A value that must be there.
    pub fn get<T: FromStr>(&self, name: &str) -> T {
        self.find(name).unwrap_or_else(|| panic!("{name} is not told"))
    }

    /// A value, if it is there.
    pub fn find<T: FromStr>(&self, name: &str) -> Option<T> {
        self.0.get(name).and_then(|value| value.parse().ok())
    }
}

/// Does the work of a part and ends the process, if this process is one.
pub fn be_a_part() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, told) = role.split_once(' ').unwrap_or((&role, ""));
    let (told, config) = (Told::read(told), Settings::from_env().unwrap());
    match role {
        "node" => node(&config),
        "source" => source::be(&config, &told),
        _ => subscriber::be(&config, &told),
    }
    std::process::exit(0);
}

/// Says a line. The test harness may have begun one.
pub fn say(line: &str) {
    println!("\n>{line}");
}

fn node(config: &Settings) {
    let begun = Instant::now();
    let _node = loop {
        match Node::start(NodeSettings::new(config.clone())) {
            // The process before was killed, but may still exist.
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(std::time::Duration::from_millis(5)),
            started => break started.unwrap(),
        }
    };
    say("ready");
    std::io::stdin().lines().map_while(Result::ok).for_each(drop);
}

/// Joins the scene's domain.
pub fn join(config: &Settings, name: &str) -> Participant {
    let engine = config.open().unwrap();
    Participant::on(engine, config.domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}

/// Directory of a scene's processes, and the program to start for a part.
pub struct Place {
    pub dir: tempfile::TempDir,
    program: Command,
}

impl Place {
    /// A place of its own. The program is this one with the arguments that lead to [`be_a_part`].
    pub fn new(program: Command) -> Place {
        // Socket paths are limited in length, and some systems' directories for temporary files are too long.
        Place { dir: tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap(), program }
    }

    /// Returns the bus configuration of a participant of this process.
    pub fn config(&self) -> Settings {
        Settings::isolated(self.dir.path().join("run")).in_domain(Domain::new(DOMAIN).unwrap())
    }

    /// Starts a part.
    pub fn start(&self, role: &str) -> Part {
        Part::start(&self.program, self.dir.path(), role)
    }

    /// Starts a node and waits until it is ready.
    pub fn node(&self) -> Part {
        let node = self.start("node");
        node.wait_for("ready");
        node
    }

    /// Returns the file in which a source records its progress.
    pub fn mark(&self, source: &str, life: u64) -> std::path::PathBuf {
        source::mark(self.dir.path(), source, life)
    }

    /// Returns the standard error of the parts.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("said")).unwrap_or_default()
    }
}

/// A process, killed when dropped.
pub struct Part {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Part {
    fn start(program: &Command, dir: &Path, role: &str) -> Part {
        let mut command = Command::new(program.get_program());
        let said = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("said")).unwrap();
        command
            .args(program.get_args())
            .env(ROLE, format!("{role} dir={}", dir.display()))
            .env(RUN_DIR, dir.join("run"))
            .env("TAMPU_DOMAIN", DOMAIN)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (put, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .filter(|line| line.starts_with('>'))
                .try_for_each(|line| put.send(line))
        });
        Part { child, input, lines }
    }

    /// Its next line that begins so; the rest of it.
    #[track_caller]
    pub fn wait_for(&self, begin: &str) -> String {
        self.wait_for_one(&[begin])
    }

    /// The same with one of these.
    #[track_caller]
    pub fn wait_for_one(&self, begins: &[&str]) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|why| panic!("no {begins:?}: {why}"));
            if let Some(rest) = begins.iter().find_map(|begin| line[1..].strip_prefix(begin)) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Returns the lines of its standard output that were not read yet.
    pub fn heard(&self) -> Vec<String> {
        self.lines.try_iter().map(|line| line[1..].to_owned()).collect()
    }

    /// Tells it a line.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Tells it a line and waits for one that begins so.
    #[track_caller]
    pub fn ask(&mut self, line: &str, begin: &str) -> String {
        self.tell(line);
        self.wait_for(begin)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end in order.
    pub fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
