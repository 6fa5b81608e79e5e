//! Events that the archive rejected: one gap for each attribute, and the changes of sources in their order.

use std::collections::BTreeMap;

use tampu_types::event::{Reason, kept::KeptEvent};

use super::ledger::Key;

/// Reason of these gaps in the history.
const WHY: &str = "the archive could not write them";
/// Limit in bytes for the remembered gaps and changes of sources. Beyond it events are only counted.
const REMEMBERED: usize = 8 << 20;

/// Gaps by attribute, and changes of sources in their order.
#[derive(Default)]
pub(super) struct UnwrittenEvents {
    gaps: BTreeMap<Key, Vec<u8>>,
    words: Vec<Vec<u8>>,
    bytes: usize,
}

impl UnwrittenEvents {
    /// Remembers samples that could not be written. Returns the number of samples that no row will mention.
    pub fn add(&mut self, samples: &[Vec<u8>]) -> u64 {
        samples.iter().map(|sample| u64::from(!self.remember(sample))).sum()
    }

    fn remember(&mut self, sample: &[u8]) -> bool {
        let Ok(kept) = KeptEvent::parse(sample) else { return false };
        if self.bytes >= REMEMBERED {
            return false;
        }
        if kept.number == 0 {
            self.bytes += sample.len();
            self.words.push(sample.to_vec());
            return true;
        }
        let key = (kept.incarnation, kept.attribute);
        let before = self.gaps.remove(&key).unwrap_or_default();
        self.bytes -= before.len();
        // A gap from before keeps its reason.
        let note = if kept.reason == Reason::Gap { kept.note } else { WHY };
        let gap = KeptEvent { reason: Reason::Gap, note, event: &[], ..kept };
        let gap = match KeptEvent::parse(&before) {
            Ok(before) => KeptEvent { from: before.from.min(kept.from), number: before.number.max(kept.number), ..before },
            Err(_) => gap,
        };
        let mut bytes = Vec::new();
        gap.encode(&mut bytes);
        self.bytes += bytes.len();
        self.gaps.insert(key, bytes);
        true
    }

    /// Takes everything, to be written before the next samples.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        let UnwrittenEvents { gaps, words, .. } = std::mem::take(self);
        gaps.into_values().chain(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{ClockState, Incarnation, Time};

    use super::*;

    fn sample(reason: Reason, attribute: u32, from: u64, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let kept = KeptEvent {
            reason,
            clock: ClockState::Free,
            attribute,
            from,
            number,
            time: Time(number as i64),
            received: Time(9),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            source: "server",
            name: "a/b/c/d",
            unit: "mbar",
            note: if reason == Reason::Gap { "lost on the way" } else { "" },
            event: b"event",
        };
        kept.encode(&mut bytes);
        bytes
    }

    #[test]
    fn what_could_not_be_written_becomes_one_gap_for_each_attribute() {
        let mut unwritten = UnwrittenEvents::default();
        let update = |attribute, from, number| sample(Reason::Update, attribute, from, number);
        let lost = unwritten.add(&[update(1, 4, 5), sample(Reason::Gap, 2, 1, 3), update(1, 6, 9), update(2, 4, 4)]);
        assert_eq!((lost, unwritten.add(&[sample(Reason::SourceDied, 1, 0, 0), b"none".to_vec()])), (0, 1));
        // A repeated failure, with one more event behind it.
        let again = unwritten.take();
        assert_eq!(unwritten.add(&again) + unwritten.add(&[update(1, 10, 10)]), 0);
        let taken = unwritten.take();
        let told: Vec<_> = taken
            .iter()
            .map(|sample| KeptEvent::parse(sample).unwrap())
            .map(|kept| (kept.reason, kept.attribute, kept.from, kept.number, kept.time.0, kept.note))
            .collect();
        assert_eq!(
            told,
            [(Reason::Gap, 1, 4, 10, 5, WHY), (Reason::Gap, 2, 1, 4, 3, "lost on the way"), (Reason::SourceDied, 1, 0, 0, 0, "")]
        );
        assert!(unwritten.take().is_empty() && unwritten.bytes == 0);
    }
}
