//! Ctrl-C and SIGTERM: the first requests the end of everything, a second one ends the process at once.
//!
//! Handlers are installed here, in the program; libraries install none.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tampu_bus::clock::Gate;

use crate::failure::Failure;

/// A request to end the program.
#[derive(Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    gate: Arc<Gate>,
}

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP.
    pub fn install() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt::default();
        let told = interrupt.clone();
        ctrlc::set_handler(move || {
            if told.asked.swap(true, Ordering::SeqCst) {
                crate::terminal::restore();
                std::process::exit(130);
            }
            told.gate.open();
        })
        .map_err(|error| Failure::failed("installing the handler for Ctrl-C", error))?;
        Ok(interrupt)
    }

    /// Asks the program to end, as Ctrl-C does.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.gate.open();
    }

    /// Returns true once the program has been asked to end.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until it is asked, or the time is over; returns whether it was.
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        let seen = self.gate.openings();
        if !self.asked() {
            self.gate.wait_host(seen, timeout);
        }
        self.asked()
    }
}
