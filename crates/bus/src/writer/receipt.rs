//! What became of samples: delivered, still cached, lost.

use std::ops::Range;

/// What became of the samples since the last receipt, by ranges of sequence numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// Acknowledged by every reliable reader that was matched.
    pub delivered: Vec<Range<u64>>,
    /// Not acknowledged by all of them (or nobody was there), but still to be had from the cache.
    pub cached: Vec<Range<u64>>,
    /// No longer to be had, and not acknowledged by everybody.
    pub lost: Vec<Range<u64>>,
}

impl Receipt {
    /// Whether every sample was delivered.
    pub fn complete(&self) -> bool {
        self.cached.is_empty() && self.lost.is_empty()
    }

    /// Sorts `range` by what the writer knows: what it lost, up to where all have acknowledged, and from where it still has.
    pub(super) fn sort(range: Range<u64>, lost: &[Range<u64>], acked: Option<u64>, lowest: u64) -> Receipt {
        let mut receipt = Receipt::default();
        let mut at = range.start;
        let present = |from: u64, to: u64, receipt: &mut Receipt| {
            let delivered_to = acked.unwrap_or(0).clamp(from, to);
            push(&mut receipt.delivered, from..delivered_to);
            // What was evicted unacknowledged is in `lost`; this covers what nobody was there to want.
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

/// Appends a range, joined to the last where they touch; empty ones are left out.
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
