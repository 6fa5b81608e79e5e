//! The way out of the process: what the backend hands packets to.

use std::{sync::Arc, time::Duration};

use crate::logger::{control::Controlled, lane::LaneKey};

/// Takes packets and publishes them.
pub(crate) trait Post: Send {
    /// Lets these loggers be asked and set from outside, where the way out leads both ways. Called once, before anything else.
    fn attend(&mut self, loggers: Arc<dyn Controlled>) {
        drop(loggers);
    }

    /// Hears what readers want of the loggers, where the way out leads both ways. Called again and again; does not wait.
    fn hear(&mut self) {}

    /// Publishes one packet of a lane; returns its number there. May block for as long as its own bounds allow; the application
    /// does not wait for it.
    fn publish(&mut self, lane: &LaneKey, urgent: bool, packet: &[u8]) -> Result<u64, Refused>;

    /// Up to which number a lane's packets are with everybody who keeps them; `None` while nobody is there to do so. (Of a lane for
    /// attached readers: with everybody they are waited for.)
    fn delivered(&mut self, lane: &LaneKey) -> Option<u64>;

    /// Whether somebody looks after what a process leaves in its rings when it ends.
    fn has_heir(&mut self) -> bool {
        false
    }

    /// Waits until all that was published has reached its readers; whether it has.
    fn flush(&mut self, timeout: Duration) -> bool;

    /// Waits until all that was published for everybody has been committed by somebody who keeps it; whether it has.
    fn keep(&mut self, timeout: Duration) -> bool;
}

/// Why a packet was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no way out yet; the same packet is worth another try.
    NotYet(String),
    /// This packet will never go out.
    Never(String),
}
