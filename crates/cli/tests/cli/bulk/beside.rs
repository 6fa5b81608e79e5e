//! Processes that run beside a test, and what they send.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::site::{PATIENCE, Said, Site};

/// A process that runs beside the test; killed when dropped.
pub struct Beside {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Beside {
    pub fn start(site: &Site, arguments: &[&str]) -> Beside {
        Beside::run(site.command(arguments))
    }

    /// Starts this program.
    pub fn run(mut command: Command) -> Beside {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (tell, told) = channel();
        // The thread ends with the process.
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        Beside { input: child.stdin.take(), child, lines: told }
    }

    /// A receiver of stream `s` into `out` that is ready.
    pub fn receiver(site: &Site, more: &[&str]) -> Beside {
        Beside::receiver_into(site, "out", more)
    }

    pub fn receiver_into(site: &Site, out: &str, more: &[&str]) -> Beside {
        let mut arguments = vec!["bulk", "recv", "--stream", "s", "-o", out, "--json", "--interval", "20ms"];
        arguments.extend(more);
        let receiver = Beside::start(site, &arguments);
        receiver.await_event("listening");
        receiver
    }

    /// Reads its events of this kind until one is as wanted.
    #[track_caller]
    pub fn await_such(&self, event: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.await_event(event);
            if wanted(&found) {
                return found;
            }
            assert!(Instant::now() < until, "no {event} as it should be; the last is {found}");
        }
    }

    /// Its next event of this kind.
    #[track_caller]
    pub fn await_event(&self, event: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).expect(event);
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["event"] == event {
                return value;
            }
        }
    }

    /// Gives it something to read; its standard input stays open.
    pub fn give(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Gives it this, and ends its standard input. Does not wait until it has read everything.
    pub fn give_rest(&mut self, bytes: Vec<u8>) {
        let mut input = self.input.take().unwrap();
        // The thread ends with the process.
        std::thread::spawn(move || drop(input.write_all(&bytes)));
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end: code and standard error.
    pub fn end(mut self) -> (i32, String) {
        let mut text = String::new();
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut text);
        (self.child.wait().unwrap().code().unwrap_or(-1), text)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes that are different everywhere.
pub fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

pub fn send(site: &Site, more: &[&str]) -> Said {
    let mut arguments = vec!["bulk", "send", "--stream", "s", "--json"];
    arguments.extend(more);
    site.tampu(&arguments)
}

pub fn last<'a>(events: &'a [Value], event: &str) -> &'a Value {
    events.iter().rfind(|value| value["event"] == event).unwrap_or_else(|| panic!("no {event}: {events:?}"))
}

/// The names of all files below a directory.
pub fn files(path: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => all.push(entry.path().strip_prefix(path).unwrap().to_string_lossy().into_owned()),
            }
        }
    }
    all.sort();
    all
}

/// The transfers of a stream that the hub has heard of, when there are so many and all have ended.
#[track_caller]
pub fn history(site: &Site, stream: &str, transfers: usize) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let history = site.tampu(&["bulk", "stat", "--past", "--json", "--stream", stream]).ok().json();
        if history.len() >= transfers && history.iter().all(|one| one["outcome"] != "under_way") {
            return history;
        }
        assert!(Instant::now() < until, "{history:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
