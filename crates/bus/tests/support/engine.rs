//! Parts of the tests of an engine: collected callbacks, waiting, questions, and child processes.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tampu_bus::{
    clock::Gate,
    engine::{Answer, Class, Engine, Guard, Presence},
};
use tampu_types::Domain;

/// Longest wait of a test for a required event; far longer than it takes, because machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Collects what callbacks bring and lets a test wait for it.
pub struct Seen<T> {
    items: Mutex<Vec<T>>,
    more: Condvar,
}

impl<T: Clone + Send + 'static> Seen<T> {
    pub fn new() -> Arc<Seen<T>> {
        Arc::new(Seen { items: Mutex::new(Vec::new()), more: Condvar::new() })
    }

    pub fn push(&self, item: T) {
        self.items.lock().unwrap().push(item);
        self.more.notify_all();
    }

    pub fn all(&self) -> Vec<T> {
        self.items.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn wait(&self, what: &str, enough: impl Fn(&[T]) -> bool) -> Vec<T>
    where
        T: std::fmt::Debug,
    {
        let items = self.items.lock().unwrap();
        let (items, timeout) = self.more.wait_timeout_while(items, PATIENCE, |items| !enough(items)).unwrap();
        assert!(!timeout.timed_out(), "{what} did not happen; seen: {items:?}");
        items.clone()
    }
}

pub fn domain(name: &str) -> Domain {
    Domain::new(name).unwrap()
}

pub fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Subscribes and collects texts.
pub fn receive(engine: &Arc<dyn Engine>, pattern: &str) -> (Arc<Seen<String>>, Guard) {
    let seen = Seen::new();
    let into = seen.clone();
    let guard = engine.subscribe(pattern, Arc::new(move |bytes, _| into.push(text(&bytes)))).unwrap();
    (seen, guard)
}

pub fn watch(engine: &Arc<dyn Engine>, pattern: &str) -> (Arc<Seen<Presence>>, Guard) {
    let seen = Seen::new();
    let into = seen.clone();
    let guard = engine.watch(pattern, Arc::new(move |presence| into.push(presence)), None).unwrap();
    (seen, guard)
}

/// Sends again and again until it arrives: the engine promises nothing, and what is declared takes a while to be known.
#[track_caller]
pub fn send_until_received(engine: &Arc<dyn Engine>, key: &str, what: &str, seen: &Seen<String>) {
    let outlet = engine.outlet(key, Class::Data).unwrap();
    repeat_until(&format!("'{what}' arriving under {key}"), || {
        outlet.send(Bytes::from(what.to_owned())).unwrap();
        seen.all().iter().any(|item| item == what)
    });
}

/// Tries again until it is so.
#[track_caller]
pub fn repeat_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    let pause = Gate::default();
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not happen");
        pause.wait_host(0, Duration::from_millis(10));
    }
}

pub fn ask(engine: &Arc<dyn Engine>, key: &str, question: &str, timeout: Duration) -> Vec<Answer> {
    let seen = Seen::new();
    let into = seen.clone();
    engine.ask(key, Bytes::from(question.to_owned()), timeout, Box::new(move |answer| into.push(answer))).unwrap();
    seen.wait("an end of the answers", |answers| answers.iter().any(|answer| matches!(answer, Answer::End | Answer::Unanswered)))
}

pub fn part(text: &str) -> Answer {
    Answer::Part(Bytes::from(text.to_owned()))
}

pub fn here(key: &str) -> Presence {
    Presence { key: key.to_owned(), here: true }
}

pub fn gone(key: &str) -> Presence {
    Presence { key: key.to_owned(), here: false }
}

/// A child process: a line from it answers every line to it.
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(role: &str, directory: &Path, domain: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_process", "--nocapture", "--test-threads=1"])
            .env("TAMPU_TEST_ROLE", role)
            .env("TAMPU_RUN_DIR", directory)
            .env("TAMPU_DOMAIN", domain)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Process { child, input, output };
        process.line("ready");
        process
    }

    /// Waits for a line that begins so and returns the rest of it.
    #[track_caller]
    pub fn line(&mut self, beginning: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the process ended before '{beginning}'");
            // The test harness writes its own words before the process's on the same line.
            if let Some(at) = line.find(&format!(">{beginning}")) {
                return line[at + 1 + beginning.len()..].trim().to_owned();
            }
        }
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
