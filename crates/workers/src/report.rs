//! Reports and counts of panics in worker threads.
//!
//! The reporter is process-wide: a panic is rare, and the code in which it happens has no logger to hand. The default
//! reporter writes one line to standard error. The hub replaces it with one that writes to its log.

use std::{any::Any, collections::BTreeMap, fmt, io::Write, panic, time::Duration};

use parking_lot::{Mutex, RwLock};

/// Largest number of worker names that are counted apart; further names share the count of [`OTHERS`].
pub const MAX_NAMES: usize = 256;

/// Name under which workers beyond [`MAX_NAMES`] are counted.
pub const OTHERS: &str = "other workers";

/// Effect of a panic on the worker and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// The work starts again after this pause.
    Restart(Duration),
    /// The process aborts.
    EndProcess,
    /// The worker has ended, the process continues.
    WorkerEnded,
    /// One task failed, the worker continues.
    TaskFailed,
}

impl fmt::Display for Consequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Consequence::Restart(pause) => write!(f, "it restarts in {} ms", pause.as_millis()),
            Consequence::EndProcess => f.pad("the process ends"),
            Consequence::WorkerEnded => f.pad("the worker has ended"),
            Consequence::TaskFailed => f.pad("this task failed, the worker continues"),
        }
    }
}

/// One panic of a worker, as the reporter receives it. Its text is one line for a log.
#[derive(Debug, Clone, Copy)]
pub struct PanicReport<'a> {
    /// The name the worker was started with.
    pub worker: &'a str,
    /// The panic's message.
    pub message: &'a str,
    /// Effect on the worker and its process.
    pub consequence: Consequence,
}

impl fmt::Display for PanicReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker '{}' panicked: {}; {}", self.worker, self.message, self.consequence)
    }
}

/// Threads and panics counted under one worker name since the process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCount {
    /// The name the workers were started with.
    pub worker: String,
    /// Threads of this name that run at this moment.
    pub running: u64,
    /// Panics caught so far.
    pub panics: u64,
}

type Reporter = Box<dyn Fn(&PanicReport<'_>) + Send + Sync>;

static REPORTER: RwLock<Option<Reporter>> = RwLock::new(None);

#[derive(Default, Clone, Copy)]
struct Numbers {
    running: u64,
    panics: u64,
}

static COUNTS: Mutex<BTreeMap<String, Numbers>> = Mutex::new(BTreeMap::new());

/// Replaces the process-wide reporter. It is called on the thread that panicked, before the consequence takes effect.
/// So a reporter that logs has to flush when the process ends.
pub fn set_reporter(reporter: impl Fn(&PanicReport<'_>) + Send + Sync + 'static) {
    *REPORTER.write() = Some(Box::new(reporter));
}

/// Counts of all worker names seen so far, sorted by name.
pub fn counts() -> Vec<WorkerCount> {
    let counts = COUNTS.lock();
    let count = |(worker, numbers): (&String, &Numbers)| WorkerCount {
        worker: worker.clone(),
        running: numbers.running,
        panics: numbers.panics,
    };
    counts.iter().map(count).collect()
}

/// Counts a panic and passes it to the reporter.
pub(crate) fn report(worker: &str, payload: &(dyn Any + Send), consequence: Consequence) {
    change(worker, |numbers| numbers.panics += 1);
    let report = PanicReport { worker, message: message(payload), consequence };
    // A reporter that panics itself must not undo the guard.
    let reported = panic::catch_unwind(panic::AssertUnwindSafe(|| match &*REPORTER.read() {
        Some(reporter) => reporter(&report),
        None => to_stderr(&report),
    }));
    if reported.is_err() {
        to_stderr(&report);
    }
}

/// Standard error may be closed, which must not panic as `eprintln!` does.
fn to_stderr(report: &PanicReport<'_>) {
    let _ = writeln!(std::io::stderr(), "tampu: {report}");
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn change(worker: &str, change: impl FnOnce(&mut Numbers)) {
    let mut counts = COUNTS.lock();
    let is_counted = counts.contains_key(worker) || counts.len() < MAX_NAMES;
    let name = if is_counted { worker } else { OTHERS };
    change(counts.entry(name.to_owned()).or_default());
}

/// Counts a thread as running until it is dropped.
pub(crate) struct Alive(String);

impl Alive {
    pub(crate) fn new(worker: &str) -> Alive {
        change(worker, |numbers| numbers.running += 1);
        Alive(worker.to_owned())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        change(&self.0, |numbers| numbers.running = numbers.running.saturating_sub(1));
    }
}
