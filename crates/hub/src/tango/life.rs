//! The lives of the Python side: it is started, watched, and started again when it dies, later each time; what it was asked is asked again.
//!
//! Each direction has a process of its own, so that a device server that has to begin anew does not cost events that come from Tango.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{
    ask::Ask,
    line::Line,
    process::{Handle, NoProcess, Process},
};
use crate::tango::{Direction, News, Shared};

/// How long it waits before it starts a process again, at first and at most.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// One that lived so long has not failed because of how it was begun.
const LONG_LIFE: Duration = Duration::from_secs(60);
/// How often a living process is looked after.
const LOOK: Duration = Duration::from_millis(250);
/// How often it is asked for a sign of life, and how long it may give none.
const ASK_AFTER: Duration = Duration::from_secs(10);
const SILENT: Duration = Duration::from_secs(45);

/// What a direction does in each life.
pub(super) trait Part {
    /// Which it is.
    fn direction(&self) -> Direction;

    /// Waits until a process is wanted; false: never again.
    fn wanted(&mut self, shared: &Shared) -> bool;

    /// A life has begun.
    fn begin(&mut self, handle: &Handle);

    /// It said this.
    fn take(&mut self, line: Line, handle: &Handle);

    /// It has ended, though nobody asked it to.
    fn broken(&mut self, why: &str);

    /// What is to be done from time to time, on another thread.
    fn ticker(&mut self) -> Box<dyn FnMut(&Handle) + Send>;
}

/// Lives until everything ends.
pub(super) fn live(part: &mut impl Part, shared: &Shared) {
    let mut pause = PAUSE;
    while part.wanted(shared) && !shared.stopped() {
        let begun = Instant::now();
        let why = one_life(part, shared);
        let Some(why) = why.filter(|_| !shared.stopped()) else { continue };
        if begun.elapsed() >= LONG_LIFE {
            pause = PAUSE;
        }
        part.broken(&why);
        shared.counts.restarts.fetch_add(1, Ordering::Relaxed);
        shared.tell(News::Ended { direction: part.direction(), why, again: pause });
        shared.wait(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// One life; says why it ended, unless it was to.
fn one_life(part: &mut impl Part, shared: &Shared) -> Option<String> {
    let mut process = match start(shared) {
        Ok(process) => process,
        Err(why) => return Some(why.to_string()),
    };
    let handle = process.handle.clone();
    shared.tell(News::Began { direction: part.direction(), hello: process.hello.clone() });
    part.begin(&handle);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (mut tick, over, watched) = (part.ticker(), &over, handle.clone());
        let watch = std::thread::Builder::new().name("tango watch".to_owned()).stack_size(512 << 10);
        let watching = watch.spawn_scoped(scope, move || look_after(&watched, shared, over, &mut *tick));
        if let Err(error) = watching {
            handle.end();
            return Some(error.to_string());
        }
        while let Some(line) = process.next_line() {
            match line {
                Ok(line) => part.take(line, &handle),
                Err(bad) => {
                    shared.counts.unreadable.fetch_add(1, Ordering::Relaxed);
                    shared.tell(News::Unreadable(bad));
                }
            }
        }
        over.store(true, Ordering::Release);
        let was_to_end = handle.was_ended();
        let why = process.obituary();
        (!was_to_end).then_some(why)
    })
}

fn start(shared: &Shared) -> Result<Process, NoProcess> {
    Process::start(&shared.settings.python, &shared.database)
}

/// Sees that it answers, and ends it when all ends.
fn look_after(handle: &Handle, shared: &Shared, over: &AtomicBool, tick: &mut (dyn FnMut(&Handle) + Send)) {
    let mut asked = Instant::now();
    while !over.load(Ordering::Acquire) {
        if shared.wait(LOOK) {
            handle.end();
            return;
        }
        if handle.silent_for() > SILENT {
            handle.give_up(format!("the Python process has said nothing for {} s", handle.silent_for().as_secs()));
            return;
        }
        if asked.elapsed() >= ASK_AFTER {
            asked = Instant::now();
            handle.asks.ask(None, &Ask::Counts {});
        }
        tick(handle);
    }
}
