//! The one source of chance of a simulated network.

/// Splitmix64 generator: small, sufficient, and the same on every machine and in every release.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Returns a number from the first to the last, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        match last.saturating_sub(first).checked_add(1) {
            Some(span) => first + self.next() % span,
            None => self.next(),
        }
    }
}
