//! A longer lead for long samples.
//!
//! A sample between hosts passes from its process to the node, to the other node, and to the reader's process, and each of
//! them receives it whole before it sends it on. A writer whose credit is one such sample has one on the way, so one of the
//! three links works and two are idle. With four of them all links work, and one more can be lost and fetched again.

use crate::qos::Qos;

/// Number of samples that a writer may be ahead, whatever their length.
const AHEAD: usize = 4;
/// Number of batches after which a length is forgotten, at the earliest.
const REMEMBERED: u32 = 64;

/// The longest of the latest batches. It is remembered for 64 to 128 of them, so a long sample among short ones counts.
#[derive(Debug, Default)]
pub(super) struct LongSamples {
    latest: usize,
    before: usize,
    count: u32,
}

impl LongSamples {
    /// Notes the length of a batch.
    pub fn note(&mut self, length: usize) {
        if self.count == REMEMBERED {
            (self.before, self.latest, self.count) = (self.latest, 0, 0);
        }
        self.latest = self.latest.max(length);
        self.count += 1;
    }

    /// Returns the credit of a stream with these samples.
    pub fn credit(&self, qos: &Qos) -> usize {
        let longest = self.latest.max(self.before);
        // A lead that filled the cache would evict samples which readers need.
        qos.credit.max(longest.saturating_mul(AHEAD).min(qos.credit_limit).min(qos.cache / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credit_holds_four_of_the_latest_samples_within_its_limit() {
        let qos = Qos { credit: 1 << 20, credit_limit: 32 << 20, ..Qos::default() };
        let mut samples = LongSamples::default();
        assert_eq!(samples.credit(&qos), 1 << 20);
        samples.note(100 << 10);
        assert_eq!(samples.credit(&qos), 1 << 20, "more than four short ones fit");
        samples.note(1 << 20);
        assert_eq!(samples.credit(&qos), 4 << 20);
        samples.note(16 << 20);
        assert_eq!(samples.credit(&qos), 32 << 20, "two samples reach the limit");
        assert_eq!(samples.credit(&Qos { credit_limit: 1, ..qos.clone() }), 1 << 20, "a limit below the credit adds nothing");
        for _ in 0..REMEMBERED {
            samples.note(10);
        }
        assert_eq!(samples.credit(&qos), 32 << 20, "a long one among short ones counts");
        for _ in 0..REMEMBERED {
            samples.note(10);
        }
        assert_eq!(samples.credit(&qos), 1 << 20, "it is forgotten when there are no others");
    }
}
