//! One test's installation: a run-time directory, a data directory and a domain that nobody else uses.

use std::{
    fs::Permissions,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any process of a test lives. What hangs is killed then, so that its test fails and says of what.
const LONGEST: Duration = Duration::from_secs(400);

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub struct Site {
    directory: TempDir,
}

/// Output and exit code of a command.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Asserts that it ended well.
    #[track_caller]
    pub fn ok(self) -> Said {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Its standard output as JSON lines.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

impl Site {
    pub fn new() -> Site {
        // Socket paths are limited in length, and some systems' directories for temporary files are too long.
        let directory = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
        Site { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file of this content and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    }

    /// Writes a program of this content.
    pub fn executable(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    }

    /// This program with this site's surroundings, and nothing of the user's.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tampu"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.directory.path())
            .env("TAMPU_RUN_DIR", self.path("run"))
            .env("TAMPU_DATA_DIR", self.path("data"))
            .env("TAMPU_BOOK_LISTEN", "127.0.0.1:0")
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub fn tampu(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).spawn().unwrap())
    }

    /// Runs a command that reads this.
    pub fn tampu_reading(&self, input: &[u8], arguments: &[&str]) -> Said {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let said = said(child);
        writer.join().unwrap();
        said
    }

    /// Runs a command that reads this and does not know a variable.
    pub fn tampu_without(&self, variable: &str, input: &[u8], arguments: &[&str]) -> Said {
        let mut child = self.command(arguments).env_remove(variable).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let said = said(child);
        writer.join().unwrap();
        said
    }

    /// Starts a hub in one process and waits until it says that it is up. Most tests have another subject than its roles.
    pub fn hub(&self, arguments: &[&str]) -> Hub {
        self.hub_as(&["up", "--in-process"], arguments)
    }

    /// The same with a process for each role, as without further options.
    pub fn hub_of_roles(&self, arguments: &[&str]) -> Hub {
        self.hub_as(&["up"], arguments)
    }

    /// Starts a hub by a whole command.
    pub fn hub_with(&self, command: &[&str]) -> Hub {
        self.hub_as(command, &[])
    }

    fn hub_as(&self, up: &[&str], arguments: &[&str]) -> Hub {
        let mut all = up.to_vec();
        all.extend(arguments);
        let mut child = self.command(&all).spawn().unwrap();
        let leash = Leash::on(&child);
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut heard = String::new();
        while !heard.contains("is up") {
            assert!(errors.read_line(&mut heard).unwrap() > 0, "the hub ended: {heard}");
        }
        Hub { child, errors, heard, _leash: leash }
    }

    /// Repeats a query until it finds this many records.
    #[track_caller]
    pub fn find(&self, count: usize, arguments: &[&str]) -> Vec<Value> {
        let mut all = vec!["log", "query", "--json"];
        all.extend(arguments);
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.tampu(&all).ok().json();
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < until, "only {} of {count} records: {found:?}", found.len());
        }
    }
}

/// Kills a process that lives too long. Dropped before that, it does nothing.
struct Leash {
    _held: Sender<()>,
}

impl Leash {
    fn on(child: &Child) -> Leash {
        let (held, dropped) = channel();
        let pid = Pid::from_child(child);
        std::thread::spawn(move || {
            if dropped.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                eprintln!("process {} is killed after {LONGEST:?}", pid.as_raw_nonzero());
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Leash { _held: held }
    }
}

fn said(child: Child) -> Said {
    let _leash = Leash::on(&child);
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A running hub; killed when dropped.
pub struct Hub {
    child: Child,
    errors: BufReader<ChildStderr>,
    pub heard: String,
    _leash: Leash,
}

impl Hub {
    /// Ends it with this signal and returns its exit code (none if the signal killed it) and all it said on standard error.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let _ = self.errors.read_to_string(&mut self.heard);
        let status = self.child.wait().unwrap();
        (status.code(), std::mem::take(&mut self.heard))
    }

    /// Waits until the hub has printed this text on standard error.
    pub fn wait_for(&mut self, text: &str) {
        while !self.heard.contains(text) {
            assert!(self.errors.read_line(&mut self.heard).unwrap() > 0, "the hub ended before '{text}': {}", self.heard);
        }
    }

    /// Id of the hub's process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The lines of its standard output.
    pub fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.child.stdout.take().unwrap()).lines().map_while(Result::ok)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Something running in the background whose lines are read as they come.
pub struct Following {
    child: Child,
    pub lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    _leash: Leash,
}

impl Following {
    pub fn start(site: &Site, arguments: &[&str]) -> Following {
        let mut child = site.command(arguments).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let leash = Leash::on(&child);
        Following { child, lines, _leash: leash }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns true if it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A small ACS file with these messages, a record each, a second apart.
pub fn acs_file(messages: &[&str]) -> String {
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<Log>\n<Header Name=\"test\" Type=\"LOGFILE\" />\n");
    for (second, message) in messages.iter().enumerate() {
        text.push_str(&format!(
            "<Info TimeStamp=\"2005-02-01T15:33:{second:02}.592\" Host=\"te1\" Process=\"maci\"><![CDATA[{message}]]></Info>\n"
        ));
    }
    text + "</Log>\n"
}
