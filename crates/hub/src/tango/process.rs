//! One life of the Python side: started, heard, asked, ended.
//!
//! The script is part of this program. It is put into a directory of its own for the moment in which Python reads it, and is gone once the
//! process has said hello: nothing is left behind, however either side ends. Its standard input is kept open, because it ends with that;
//! so it does not outlive us.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder},
    io::{self, BufRead, BufReader, Read},
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{
    ask::{Ask, Asks},
    line::{Hello, Line, PROTOCOL, Said, Told},
    settings::Database,
};

/// The longest line that is read.
const LINE_BOUND: u64 = 1 << 30;
/// How long it may take until it says hello: Python and Tango are read from the disk.
const HELLO: Duration = Duration::from_secs(60);
/// How long it may take to end when its standard input has.
const END: Duration = Duration::from_secs(4);
/// How many lines of its standard error are kept for the message about its end, and how old they may be then: Tango says something from time
/// to time that has nothing to do with it.
const LAST_WORDS: usize = 8;
const LATELY: Duration = Duration::from_secs(2);

/// The Python side, file by file.
const FILES: [(&str, &str); 5] = [
    ("tango_bridge.py", include_str!("../../python/tango_bridge.py")),
    ("bridge_lines.py", include_str!("../../python/bridge_lines.py")),
    ("bridge_values.py", include_str!("../../python/bridge_values.py")),
    ("bridge_from_tango.py", include_str!("../../python/bridge_from_tango.py")),
    ("bridge_to_tango.py", include_str!("../../python/bridge_to_tango.py")),
];
/// The one of them that is started.
const MAIN: &str = FILES[0].0;

/// Why there is no Python side.
#[derive(Debug, thiserror::Error)]
pub enum NoProcess {
    /// The interpreter cannot be started.
    #[error(
        "{python} cannot be started: {why}; install Python 3.9 or later, or name another one with --python PATH ([tango] python)"
    )]
    Python {
        /// Which.
        python: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// PyTango is not there.
    #[error(
        "PyTango is missing for {python}: {why}; or name the python3 of an environment that has it with --python PATH ([tango] python)"
    )]
    PyTango {
        /// Which interpreter lacks it.
        python: PathBuf,
        /// What it said, with the way out.
        why: String,
    },
    /// Its files cannot be put anywhere.
    #[error("the bridge's Python files cannot be written below {directory}: {why}")]
    Files {
        /// Where.
        directory: PathBuf,
        /// What the system said.
        why: io::Error,
    },
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
        /// Which.
        database: String,
        /// What Tango said.
        why: String,
    },
}

/// A directory that goes with the value.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Place, NoProcess> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = std::env::temp_dir();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let path = directory.join(format!("tampu-tango-{}-{number}-{since_1970}", std::process::id()));
        let write = || {
            // Fails where somebody else has made it, so that nobody can put files of theirs there.
            DirBuilder::new().mode(0o700).create(&path)?;
            FILES.iter().try_for_each(|(name, text)| fs::write(path.join(name), text))
        };
        match write() {
            Ok(()) => Ok(Place(path)),
            Err(why) => {
                let _ = fs::remove_dir_all(&path);
                Err(NoProcess::Files { directory, why })
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process, as those see it who end it.
#[derive(Clone)]
pub struct Handle {
    child: Arc<Mutex<Child>>,
    /// What it is asked.
    pub asks: Asks,
    /// When it was heard last, ms of `begun`.
    heard: Arc<AtomicU64>,
    begun: Instant,
    /// It was ended from here.
    ended: Arc<AtomicBool>,
    /// Why it was given up.
    why: Arc<Mutex<Option<String>>>,
}

impl Handle {
    /// How long it has said nothing.
    pub fn silent_for(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.heard.load(Ordering::Relaxed)))
    }

    /// Ends it at once.
    pub fn kill(&self) {
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// Ends it at once, because of this.
    pub fn give_up(&self, why: String) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.kill();
    }

    /// Has it end in order; it is killed if that takes too long.
    pub fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        self.asks.close();
        let until = Instant::now() + END;
        while Instant::now() < until && !self.has_ended() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }

    /// Whether it was ended from here.
    pub fn was_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn has_ended(&self) -> bool {
        // An error means that it is none of ours any more.
        !matches!(self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait(), Ok(None))
    }
}

/// A process that has said hello.
pub struct Process {
    /// What it is.
    pub hello: Hello,
    /// To end it and to ask it.
    pub handle: Handle,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    errors: Arc<Mutex<VecDeque<(Instant, String)>>>,
    workers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts it and waits until it is there.
    pub fn start(python: &Path, database: &Database) -> Result<Process, NoProcess> {
        let place = Place::new()?;
        let mut command = Command::new(python);
        // Without compiled files, which would be for nobody.
        command.arg("-B").arg(place.0.join(MAIN)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on a terminal is for us alone: we end it in order.
        command.process_group(0);
        match database {
            Database::At(address) => command.env("TANGO_HOST", address),
            Database::None => command.env_remove("TANGO_HOST"),
        };
        let no_python = |why| NoProcess::Python { python: python.to_owned(), why };
        let mut child = command.spawn().map_err(no_python)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(no_python(io::ErrorKind::BrokenPipe.into()));
        };
        let handle = Handle {
            child: Arc::new(Mutex::new(child)),
            asks: Asks::default(),
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
        let asks = handle.asks.clone();
        process.work("tango asks", move || asks.write_to(stdin))?;
        let errors = process.errors.clone();
        process.work("tango errors", move || keep_last_words(BufReader::new(stderr), &errors))?;
        process.greet(python, handle)?;
        // Everything has been read by now.
        drop(place);
        Ok(process)
    }

    fn work(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), NoProcess> {
        let begun = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work);
        self.workers.push(begun.map_err(|why| NoProcess::Silent(why.to_string()))?);
        Ok(())
    }

    /// Hears the first line.
    fn greet(&mut self, python: &Path, handle: Handle) -> Result<(), NoProcess> {
        let greeted = Arc::new(AtomicBool::new(false));
        let seen = greeted.clone();
        // One that hangs before it says anything is ended, and then the read below is over.
        let watch = std::thread::Builder::new().name("tango hello".to_owned()).stack_size(64 << 10).spawn(move || {
            std::thread::park_timeout(HELLO);
            if !seen.load(Ordering::Acquire) {
                handle.kill();
            }
        });
        let first = self.next_line();
        greeted.store(true, Ordering::Release);
        if let Ok(watch) = watch {
            watch.thread().unpark();
            let _ = watch.join();
        }
        match first {
            Some(Ok(Line { said: Said::Hello(hello), .. })) if hello.protocol == PROTOCOL => {
                self.hello = hello;
                Ok(())
            }
            Some(Ok(Line { said: Said::Hello(hello), .. })) => Err(NoProcess::Protocol(hello.protocol)),
            Some(Ok(Line { said: Said::Error(Told { failure, .. }), .. })) if failure.reason == "Tampu_NoPyTango" => {
                Err(NoProcess::PyTango { python: python.to_owned(), why: failure.description })
            }
            Some(Ok(line)) => Err(NoProcess::Silent(format!("it said {:?} before hello", line.said))),
            Some(Err(bad)) => Err(NoProcess::Silent(bad.to_string())),
            None => Err(NoProcess::Silent(self.obituary())),
        }
    }

    /// Asks whether the database is there.
    pub fn check_database(&mut self, database: &str) -> Result<(), NoProcess> {
        let silent = |why: String| NoProcess::Database { database: database.to_owned(), why };
        // A pattern under which nothing falls: the database is asked, and no device.
        self.handle.asks.ask(Some(0), &Ask::List("tampu/no/such/device"));
        loop {
            match self.next_line() {
                Some(Ok(Line { id: Some(0), said: Said::Listed(_) })) => return Ok(()),
                Some(Ok(Line { id: Some(0), said: Said::Error(told) })) => return Err(silent(told.failure.description)),
                Some(_) => {}
                None => return Err(silent(self.obituary())),
            }
        }
    }

    /// The next line; `None` when there will be none.
    pub fn next_line(&mut self) -> Option<Result<Line, super::line::BadLine>> {
        loop {
            self.line.clear();
            // One huge value does not stay in memory for ever.
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

    /// How it ended, once it has.
    pub fn obituary(&mut self) -> String {
        self.handle.end();
        let status = self.handle.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
        if let Some(why) = self.handle.why.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return why;
        }
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match errors.back().filter(|(at, _)| at.elapsed() < LATELY) {
            Some((_, last)) => format!("it ended ({how}); its last words: {last}"),
            None => format!("it ended ({how})"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.obituary();
    }
}

/// Reads what Python and Tango print, so that they never wait, and keeps the end of it.
fn keep_last_words(errors: impl BufRead, kept: &Mutex<VecDeque<(Instant, String)>>) {
    for line in errors.split(b'\n').map_while(Result::ok) {
        let mut text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        text.truncate(text.floor_char_boundary(500));
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_WORDS {
            kept.pop_front();
        }
        kept.push_back((Instant::now(), text));
    }
}
