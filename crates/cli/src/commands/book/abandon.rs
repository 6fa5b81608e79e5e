//! Ends a search that has lost its reader: after Ctrl-C, or when standard output is a pipe that was closed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tampu_logbook::search::{Stop, StopReason};

use crate::{failure::Failure, interrupt::Interrupt};

/// Time between two checks.
const LOOK: Duration = Duration::from_millis(50);

/// A stop signal that is set as soon as the output has no reader; it is watched until this is dropped.
pub struct Abandoned {
    pub stop: Stop,
    done: Arc<AtomicBool>,
}

impl Abandoned {
    /// Begins to watch. Without a thread for it only a second Ctrl-C ends the search.
    pub fn watch(interrupt: &Interrupt) -> Abandoned {
        let (stop, done) = (Stop::default(), Arc::new(AtomicBool::new(false)));
        let (told, ended, interrupt) = (stop.clone(), done.clone(), interrupt.clone());
        let watch = move || {
            while !ended.load(Ordering::Relaxed) {
                if interrupt.wait(LOOK) || nobody_reads() {
                    return told.stop();
                }
            }
        };
        let _ = std::thread::Builder::new().name("abandoned".to_owned()).spawn(watch);
        Abandoned { stop, done }
    }
}

impl Abandoned {
    /// Returns the failure of a search that was stopped: none is printed if the reader of standard output is gone, as with `head`.
    pub fn failure(&self) -> Failure {
        if nobody_reads() { Failure::Closed } else { Failure::Failed("interrupted".to_owned()) }
    }

    /// Returns the failure of a stopped search if the search was stopped; else the other failure.
    pub fn or(&self, other: Failure) -> Failure {
        if self.stop.reason() == Some(StopReason::Requested) { self.failure() } else { other }
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

/// Returns true if standard output is a pipe without a reader.
fn nobody_reads() -> bool {
    let mut polled = libc::pollfd { fd: libc::STDOUT_FILENO, events: 0, revents: 0 };
    // SAFETY: the pointer is to one `pollfd`, as the count states, and it outlives the call. A zero timeout returns at once.
    let found = unsafe { libc::poll(&raw mut polled, 1, 0) };
    found == 1 && polled.revents & libc::POLLERR != 0
}
