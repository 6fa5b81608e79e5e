//! Events while processes are killed, stopped, put to sleep and in one another's way. Everything that takes part is a process of its
//! own: this program again, in a role ([`part`]). What was published is what the sources wrote down before they died
//! ([`source`]); what came is counted number by number ([`account`]).
//!
//! Each scene is run by a test, briefly, and by the example `event_faults`, as long as one likes. Nothing here asserts a time: times are
//! in the figures that each scene prints.

#![allow(dead_code, reason = "the example runs some of it, the tests the rest")]

pub mod account;
pub mod killed;
pub mod node_killed;
pub mod part;
pub mod rivals;
pub mod source;
pub mod stopped;
pub mod subscriber;

use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The attribute that all scenes use unless they name another.
pub const ATTRIBUTE: &str = "lab/fault/1/value";

#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A small generator whose whole state is a seed (Steele's SplitMix64).
pub struct Chance(pub u64);

impl Chance {
    /// A number below this.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// The seed of a run: `TAMPU_SEED`, or another one each time.
pub fn seed() -> u64 {
    std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id().into())
}
