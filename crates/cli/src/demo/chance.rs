//! Repeatable random numbers: splitmix64.

use std::time::Duration;

/// A generator of decisions.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from 0 up to, not including, the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit.max(1)
    }

    /// A number between the two.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true once in so many calls.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn seconds(&mut self, from: f64, to: f64) -> Duration {
        Duration::from_secs_f64(self.between(from, to))
    }
}
