//! The restarts of the Python side: it is started, watched, and started again when it dies, later each time. All
//! earlier requests are then sent again.
//!
//! Each direction has a process of its own. So a restart of the device server does not interrupt the events from Tango.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tampu_workers::{OnPanic, WorkerThread, guard};

use super::{
    line::Line,
    process::{Process, ProcessError, ProcessHandle},
    request::Request,
};
use crate::{
    bridge_state::BridgeState,
    notice::{BridgeNotice, Direction},
};

/// First and longest pause before a process is restarted.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Life after which a failure is not blamed on the start.
const LONG_LIFE: Duration = Duration::from_secs(60);
/// Period of checks of a living process.
const LOOK: Duration = Duration::from_millis(250);
/// Period of requests for a sign of life, and the longest silence.
const ASK_AFTER: Duration = Duration::from_secs(10);
const SILENT: Duration = Duration::from_secs(45);

/// One direction of the bridge, as its supervisor runs it.
pub(super) trait BridgeSide {
    fn direction(&self) -> Direction;

    /// Waits until a process is needed; returns false if none will be needed again.
    fn wanted(&mut self, shared: &BridgeState) -> bool;

    /// A life has begun.
    fn begin(&mut self, handle: &ProcessHandle);

    /// Handles a line of the process.
    fn take(&mut self, line: Line, handle: &ProcessHandle);

    /// Handles the unexpected end of the process.
    fn broken(&mut self, why: &str);

    /// Returns a task that another thread runs from time to time.
    fn periodic_task(&mut self) -> Box<dyn FnMut(&ProcessHandle) + Send>;
}

/// Lives until everything ends.
pub(super) fn run(part: &mut impl BridgeSide, shared: &BridgeState) {
    let mut pause = PAUSE;
    while part.wanted(shared) && !shared.stopped() {
        let begun = Instant::now();
        // A panic ends this run like an error, so that `broken` restores the state before the next run.
        let life = guard("tango supervisor", || run_once(part, shared));
        let why = life.unwrap_or_else(|panicked| Some(panicked.to_string()));
        let Some(why) = why.filter(|_| !shared.stopped()) else { continue };
        if begun.elapsed() >= LONG_LIFE {
            pause = PAUSE;
        }
        part.broken(&why);
        shared.counts.restarts.fetch_add(1, Ordering::Relaxed);
        shared.notify(BridgeNotice::Ended { direction: part.direction(), why, again: pause });
        shared.wait(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Runs one process; returns the reason for its end, unless the end was requested.
fn run_once(part: &mut impl BridgeSide, shared: &BridgeState) -> Option<String> {
    let mut process = match start(shared) {
        Ok(process) => process,
        Err(why) => return Some(why.to_string()),
    };
    let handle = process.handle.clone();
    shared.notify(BridgeNotice::Began { direction: part.direction(), hello: process.hello.clone() });
    part.begin(&handle);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The scope waits for the watch, also when this thread panics.
        let _over = SetOnDrop(&over);
        let (mut periodic, over, watched) = (part.periodic_task(), &over, handle.clone());
        let watch = WorkerThread::named("tango watch").stack_size(512 << 10);
        let watching =
            watch.spawn_scoped(scope, OnPanic::ReportOnly, move || watch_process(&watched, shared, over, &mut *periodic));
        if let Err(error) = watching {
            handle.end();
            return Some(error.to_string());
        }
        while let Some(line) = process.next_line() {
            match line {
                Ok(line) => part.take(line, &handle),
                Err(bad) => {
                    shared.counts.unreadable.fetch_add(1, Ordering::Relaxed);
                    shared.notify(BridgeNotice::Unreadable(bad));
                }
            }
        }
        over.store(true, Ordering::Release);
        let end_was_requested = handle.was_ended();
        let why = process.end_reason();
        (!end_was_requested).then_some(why)
    })
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn start(shared: &BridgeState) -> Result<Process, ProcessError> {
    Process::start(&shared.settings.python, &shared.database)
}

/// Sees that it answers, and ends it when all ends.
fn watch_process(
    handle: &ProcessHandle,
    shared: &BridgeState,
    over: &AtomicBool,
    periodic: &mut (dyn FnMut(&ProcessHandle) + Send),
) {
    let mut asked = Instant::now();
    while !over.load(Ordering::Acquire) {
        if shared.wait(LOOK) {
            handle.end();
            return;
        }
        if handle.silent_for() > SILENT {
            handle.abandon(format!("the Python process has said nothing for {} s", handle.silent_for().as_secs()));
            return;
        }
        if asked.elapsed() >= ASK_AFTER {
            asked = Instant::now();
            handle.requests.send(None, &Request::Counts {});
        }
        periodic(handle);
    }
}
