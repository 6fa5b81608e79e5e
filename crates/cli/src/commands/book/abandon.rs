//! Ends a search that nobody waits for any longer: after Ctrl-C, or when standard output is a pipe that was closed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tampu_logbook::search::{Stop, Stopped};

use crate::{failure::Failure, interrupt::Interrupt};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// A stop that is asked as soon as nobody waits; it is watched until this goes.
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
    /// How the command ends that asked for the search: quietly where nobody reads any longer, as with a pipe to `head`.
    pub fn failure(&self) -> Failure {
        if nobody_reads() { Failure::Closed } else { Failure::Failed("interrupted".to_owned()) }
    }

    /// The same where that was the reason; else what it says.
    pub fn or(&self, other: Failure) -> Failure {
        if self.stop.why() == Some(Stopped::Abandoned) { self.failure() } else { other }
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

/// Whether standard output is a pipe without a reader.
fn nobody_reads() -> bool {
    let mut polled = libc::pollfd { fd: libc::STDOUT_FILENO, events: 0, revents: 0 };
    // SAFETY: the pointer is to one `pollfd` that lives until the call returns, as the count says; with no time to wait it returns at once.
    let found = unsafe { libc::poll(&raw mut polled, 1, 0) };
    found == 1 && polled.revents & libc::POLLERR != 0
}
