//! The interface of the simulated devices.

use std::time::Duration;

use crate::demo::{chance::Chance, sky::Sky};

/// Something that does one thing after another.
pub trait Actor: Send {
    /// Performs the next action and returns the time until the following one.
    fn act(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration;
}
