//! Outcome of samples: delivered, still cached, lost.

use std::ops::Range;

/// Outcome of the samples since the last receipt, by ranges of sequence numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// Samples acknowledged by every matched reliable reader.
    pub delivered: Vec<Range<u64>>,
    /// Samples not acknowledged by all of them (or without readers), but still in the cache.
    pub cached: Vec<Range<u64>>,
    /// Samples that are out of the cache and not acknowledged by all readers.
    pub lost: Vec<Range<u64>>,
}

impl Receipt {
    /// Reports if every sample was delivered.
    pub fn complete(&self) -> bool {
        self.cached.is_empty() && self.lost.is_empty()
    }

    /// Splits `range` by the writer's knowledge: its losses, the position of all acknowledgements, and the start of its
    /// cache.
    pub(super) fn sort(range: Range<u64>, lost: &[Range<u64>], acked: Option<u64>, lowest: u64) -> Receipt {
        let mut receipt = Receipt::default();
        let mut at = range.start;
        let present = |from: u64, to: u64, receipt: &mut Receipt| {
            let delivered_to = acked.unwrap_or(0).clamp(from, to);
            push(&mut receipt.delivered, from..delivered_to);
            // `lost` holds samples that were evicted unacknowledged. This range holds samples that had no reader.
            let gone_to = lowest.clamp(delivered_to, to);
            push(&mut receipt.lost, delivered_to..gone_to);
            push(&mut receipt.cached, gone_to..to);
        };
        for hole in lost {
            let (from, to) = (hole.start.clamp(at, range.end), hole.end.clamp(at, range.end));
            present(at, from, &mut receipt);
            push(&mut receipt.lost, from..to);
            at = to;
        }
        present(at, range.end.max(at), &mut receipt);
        receipt
    }
}

/// Appends a range, joined to the last if they are adjacent; empty ones are skipped.
pub(super) fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    if range.is_empty() {
        return;
    }
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn every_sample_is_in_exactly_one_place() {
        let receipt = Receipt::sort(2..20, &[0..4, 8..10], Some(12), 11);
        assert_eq!(receipt.lost, [2..4, 8..10]);
        assert_eq!(receipt.delivered, [4..8, 10..12]);
        assert_eq!(receipt.cached, [12..20]);

        let nobody = Receipt::sort(0..10, &[], None, 3);
        assert_eq!((nobody.lost, nobody.cached), (vec![0..3], vec![3..10]));
    }
}
