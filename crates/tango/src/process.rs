//! One process of the Python side: start, reading, requests and end.
//!
//! The script is part of this program. It lies in a directory of its own while Python reads it, and is removed once the
//! process has said hello. So nothing is left behind, however either side ends. The process ends when its standard
//! input is closed, so it does not outlive this program.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder},
    io::{self, BufRead, BufReader, Read},
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    line::{FailureMessage, Hello, Line, Message, PROTOCOL},
    request::{Request, RequestQueue},
    settings::Database,
};

/// The longest line that is read.
const LINE_BOUND: u64 = 1 << 30;
/// Longest time to the first line: Python and Tango are read from the disk.
const HELLO: Duration = Duration::from_secs(60);
/// Longest time to its end after its standard input was closed.
const END: Duration = Duration::from_secs(4);
/// Lines of standard error kept for the message about its end, and their greatest age. Tango prints unrelated lines
/// from time to time.
const ERROR_LINES_KEPT: usize = 8;
const RECENT: Duration = Duration::from_secs(2);

/// The Python side, file by file.
const FILES: [(&str, &str); 5] = [
    ("tango_bridge.py", include_str!("../python/tango_bridge.py")),
    ("bridge_lines.py", include_str!("../python/bridge_lines.py")),
    ("bridge_values.py", include_str!("../python/bridge_values.py")),
    ("bridge_from_tango.py", include_str!("../python/bridge_from_tango.py")),
    ("bridge_to_tango.py", include_str!("../python/bridge_to_tango.py")),
];
/// The one of them that is started.
const MAIN: &str = FILES[0].0;

/// Errors of starting the Python process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The interpreter cannot be started.
    #[error(
        "{python} cannot be started: {why}; install Python 3.9 or later, or name another one with --python PATH ([tango] python)"
    )]
    Python { python: PathBuf, why: io::Error },
    /// PyTango is not there.
    #[error(
        "PyTango is missing for {python}: {why}; or name the python3 of an environment that has it with --python PATH ([tango] python)"
    )]
    PyTango {
        python: PathBuf,
        /// Message of the script, with the remedy.
        why: String,
    },
    /// Its files cannot be put anywhere.
    #[error("the bridge's Python files cannot be written below {directory}: {why}")]
    Files { directory: PathBuf, why: io::Error },
    /// It ended, or said something else first.
    #[error("the bridge's Python process did not begin: {0}")]
    Silent(String),
    /// It is of another release.
    #[error("the bridge's Python process speaks protocol {0}, not {PROTOCOL}")]
    Protocol(u32),
    /// The Tango database does not answer.
    #[error(
        "the Tango database at {database} does not answer: {why}; start it, name another with --tango-host HOST:PORT, or give --no-database and write tango://HOST:PORT/domain/family/member/attribute#dbase=no"
    )]
    Database {
        database: String,
        /// Error that Tango reports.
        why: String,
    },
}

/// A directory that goes with the value.
struct ScriptDirectory(PathBuf);

impl ScriptDirectory {
    fn new() -> Result<ScriptDirectory, ProcessError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = std::env::temp_dir();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let path = directory.join(format!("tampu-tango-{}-{number}-{since_1970}", std::process::id()));
        let write = || {
            // Fails if the directory exists, so that no other user can place files there.
            DirBuilder::new().mode(0o700).create(&path)?;
            FILES.iter().try_for_each(|(name, text)| fs::write(path.join(name), text))
        };
        match write() {
            Ok(()) => Ok(ScriptDirectory(path)),
            Err(why) => {
                let _ = fs::remove_dir_all(&path);
                Err(ProcessError::Files { directory, why })
            }
        }
    }
}

impl Drop for ScriptDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A handle for ending a process.
#[derive(Clone)]
pub struct ProcessHandle {
    child: Arc<Mutex<Child>>,
    /// Requests to the process.
    pub requests: RequestQueue,
    /// Time of its last line, ms since `begun`.
    heard: Arc<AtomicU64>,
    begun: Instant,
    /// True if it was ended from here.
    ended: Arc<AtomicBool>,
    /// Reason for which this side killed it.
    why: Arc<Mutex<Option<String>>>,
}

impl ProcessHandle {
    /// Returns the time since its last line.
    pub fn silent_for(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.heard.load(Ordering::Relaxed)))
    }

    /// Ends it at once.
    pub fn kill(&self) {
        let _ = self.child.lock().kill();
    }

    /// Ends it at once, because of this.
    pub fn abandon(&self, why: String) {
        *self.why.lock() = Some(why);
        self.kill();
    }

    /// Requests its end; it is killed if that takes too long.
    pub fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        self.requests.close();
        let until = Instant::now() + END;
        while Instant::now() < until && !self.has_ended() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }

    /// Returns whether this side ended it.
    pub fn was_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn has_ended(&self) -> bool {
        // An error means that the child is not ours.
        !matches!(self.child.lock().try_wait(), Ok(None))
    }
}

/// A process that has said hello.
pub struct Process {
    /// Content of its first line: protocol and versions.
    pub hello: Hello,
    /// To end it and to ask it.
    pub handle: ProcessHandle,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    errors: Arc<Mutex<VecDeque<(Instant, String)>>>,
    workers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts it and waits until it is there.
    pub fn start(python: &Path, database: &Database) -> Result<Process, ProcessError> {
        let place = ScriptDirectory::new()?;
        let mut command = Command::new(python);
        // Python writes no compiled files, which would never be used.
        command.arg("-B").arg(place.0.join(MAIN)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on a terminal is for this program alone, which ends the child in order.
        command.process_group(0);
        match database {
            Database::At(address) => command.env("TANGO_HOST", address),
            Database::None => command.env_remove("TANGO_HOST"),
        };
        let no_python = |why| ProcessError::Python { python: python.to_owned(), why };
        let mut child = command.spawn().map_err(no_python)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(no_python(io::ErrorKind::BrokenPipe.into()));
        };
        let handle = ProcessHandle {
            child: Arc::new(Mutex::new(child)),
            requests: RequestQueue::default(),
            heard: Arc::default(),
            begun: Instant::now(),
            ended: Arc::default(),
            why: Arc::default(),
        };
        let mut process = Process {
            hello: Hello::default(),
            handle: handle.clone(),
            stdout: BufReader::with_capacity(256 << 10, stdout),
            line: Vec::new(),
            errors: Arc::default(),
            workers: Vec::new(),
        };
        let requests = handle.requests.clone();
        process.work("tango asks", move || requests.write_to(stdin))?;
        let errors = process.errors.clone();
        process.work("tango errors", move || keep_error_lines(BufReader::new(stderr), &errors))?;
        process.await_hello(python, handle)?;
        // Python has read all scripts by this point.
        drop(place);
        Ok(process)
    }

    fn work(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ProcessError> {
        let begun = WorkerThread::named(name).stack_size(256 << 10).spawn(OnPanic::ReportOnly, work);
        self.workers.push(begun.map_err(|why| ProcessError::Silent(why.to_string()))?);
        Ok(())
    }

    /// Hears the first line.
    fn await_hello(&mut self, python: &Path, handle: ProcessHandle) -> Result<(), ProcessError> {
        let answered = Arc::new(AtomicBool::new(false));
        let seen = answered.clone();
        // A child that hangs before its first line is killed, which ends the read below.
        let watch = WorkerThread::named("tango hello").stack_size(64 << 10).spawn(OnPanic::ReportOnly, move || {
            std::thread::park_timeout(HELLO);
            if !seen.load(Ordering::Acquire) {
                handle.kill();
            }
        });
        let first = self.next_line();
        answered.store(true, Ordering::Release);
        if let Ok(watch) = watch {
            watch.thread().unpark();
            let _ = watch.join();
        }
        match first {
            Some(Ok(Line { message: Message::Hello(hello), .. })) if hello.protocol == PROTOCOL => {
                self.hello = hello;
                Ok(())
            }
            Some(Ok(Line { message: Message::Hello(hello), .. })) => Err(ProcessError::Protocol(hello.protocol)),
            Some(Ok(Line { message: Message::Error(FailureMessage { failure, .. }), .. }))
                if failure.reason == "Tampu_NoPyTango" =>
            {
                Err(ProcessError::PyTango { python: python.to_owned(), why: failure.description })
            }
            Some(Ok(line)) => Err(ProcessError::Silent(format!("it said {:?} before hello", line.message))),
            Some(Err(bad)) => Err(ProcessError::Silent(bad.to_string())),
            None => Err(ProcessError::Silent(self.end_reason())),
        }
    }

    /// Asks whether the database is there.
    pub fn check_database(&mut self, database: &str) -> Result<(), ProcessError> {
        let silent = |why: String| ProcessError::Database { database: database.to_owned(), why };
        // No device matches this pattern: only the database answers.
        self.handle.requests.send(Some(0), &Request::List("tampu/no/such/device"));
        loop {
            match self.next_line() {
                Some(Ok(Line { id: Some(0), message: Message::Listed(_) })) => return Ok(()),
                Some(Ok(Line { id: Some(0), message: Message::Error(told) })) => return Err(silent(told.failure.description)),
                Some(_) => {}
                None => return Err(silent(self.end_reason())),
            }
        }
    }

    /// The next line; `None` when there will be none.
    pub fn next_line(&mut self) -> Option<Result<Line, super::line::BadLine>> {
        loop {
            self.line.clear();
            // A huge value does not keep its memory.
            self.line.shrink_to(64 << 20);
            let read = (&mut self.stdout).take(LINE_BOUND).read_until(b'\n', &mut self.line).unwrap_or(0);
            if read == 0 {
                return None;
            }
            self.handle.heard.store(self.handle.begun.elapsed().as_millis() as u64, Ordering::Relaxed);
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Some(Line::parse(&self.line));
            }
        }
    }

    /// Ends the process, waits for it and returns the reason of its end.
    pub fn end_reason(&mut self) -> String {
        self.handle.end();
        let status = self.handle.child.lock().wait();
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
        if let Some(why) = self.handle.why.lock().take() {
            return why;
        }
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let errors = self.errors.lock();
        match errors.back().filter(|(at, _)| at.elapsed() < RECENT) {
            Some((_, last)) => format!("it ended ({how}); its last words: {last}"),
            None => format!("it ended ({how})"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end_reason();
    }
}

/// Reads the output of Python and Tango, so that they never block, and keeps the end of it.
fn keep_error_lines(errors: impl BufRead, kept: &Mutex<VecDeque<(Instant, String)>>) {
    for line in errors.split(b'\n').map_while(Result::ok) {
        let mut text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        text.truncate(text.floor_char_boundary(500));
        let mut kept = kept.lock();
        if kept.len() == ERROR_LINES_KEPT {
            kept.pop_front();
        }
        kept.push_back((Instant::now(), text));
    }
}
