//! The ledger of event numbers: a value that gets events and gaps, and returns the rows to write.
//!
//! The events of an attribute are numbered from 1 in each incarnation of its source. A row stands for all numbers after
//! the previous row, so the next row covers events of kinds that are not kept. Lost events get a row of their own.

use std::collections::HashMap;

use tampu_types::{Incarnation, Time};

/// Key of an attribute in one incarnation of its source.
pub(super) type Key = (Incarnation, u32);

/// Missing numbers, including the last one, and the time of the reading before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingEvents {
    pub from: u64,
    pub to: u64,
    /// Time of the last reading before; `None` without one.
    pub time: Option<Time>,
    pub why: String,
}

/// Rows to write for an event: the gap before it, and the first number that its own row covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowNumbers {
    pub missing: Option<MissingEvents>,
    pub from: u64,
}

#[derive(Debug)]
struct LedgerEntry {
    /// Number up to which all events are covered by rows.
    told: u64,
    /// Time of the latest reading.
    time: Option<Time>,
    /// The gap of rows that could not be written. It is written before the next row.
    owed: Option<MissingEvents>,
}

/// Accounts of all attributes.
#[derive(Debug, Default)]
pub(super) struct NumberLedger {
    kept: HashMap<Key, LedgerEntry>,
    /// Ranges that the bus lost of attributes without a row yet. The first row records them.
    early: HashMap<Key, (u64, u64)>,
}

/// Reason for events that were sent while no hub kept them.
const NOBODY: &str = "no hub was there to keep them";
/// Reason for events that the bus lost.
pub(super) const LOST: &str = "lost on the way";
/// Reason for events of a time when another source of the attribute was followed.
pub(super) const UNHEARD: &str = "not received here";

impl NumberLedger {
    /// Takes an event that is kept; [`gap`](Self::gap) got the events missing before it. `stored` returns the last
    /// number in the archive and is called once for each incarnation of an attribute. Returns `None` if a row covers
    /// the number already.
    pub fn event(&mut self, key: Key, number: u64, time: Time, stored: impl FnOnce() -> Option<u64>) -> Option<RowNumbers> {
        let early = &mut self.early;
        let entry = self.kept.entry(key).or_insert_with(|| {
            let lost = early.remove(&key);
            let (first, last, why) = match (stored(), lost) {
                (Some(stored), _) => (stored.saturating_add(1), number.saturating_sub(1), NOBODY),
                // Events before the first one ever heard of do not count as missing, unless the bus reported their
                // loss.
                (None, Some((from, to))) => (from.min(number), to.min(number.saturating_sub(1)), LOST),
                (None, None) => (number, number.saturating_sub(1), LOST),
            };
            let owed = (first <= last).then(|| MissingEvents { from: first, to: last, time: None, why: why.to_owned() });
            LedgerEntry { told: first.saturating_sub(1), time: None, owed }
        });
        if number <= entry.told {
            return None;
        }
        let missing = entry.owed.take();
        let from = entry.told.max(missing.as_ref().map_or(0, |missing| missing.to)) + 1;
        entry.told = number;
        entry.time = Some(time);
        Some(RowNumbers { missing, from: from.min(number) })
    }

    /// Takes events that the bus lost and returns the gap to write. A loss before the first row of an attribute is
    /// remembered, because it may never get one.
    pub fn gap(&mut self, key: Key, from: u64, to: u64) -> Option<MissingEvents> {
        if from > to {
            return None;
        }
        if !self.kept.contains_key(&key) {
            let early = self.early.entry(key).or_insert((from, to));
            *early = (early.0.min(from), early.1.max(to));
            return None;
        }
        self.missing(key, from, to, LOST)
    }

    /// Takes an incarnation that is followed again from `number` on, after another one was followed. Returns `None` if
    /// it has no rows.
    pub fn unheard(&mut self, key: Key, number: u64) -> Option<MissingEvents> {
        self.missing(key, 0, number.checked_sub(1)?, UNHEARD)
    }

    fn missing(&mut self, key: Key, from: u64, to: u64, why: &str) -> Option<MissingEvents> {
        let entry = self.kept.get_mut(&key)?;
        let from = from.max(entry.told.saturating_add(1));
        if from > to {
            return None;
        }
        entry.told = to;
        let lost = MissingEvents { from, to, time: entry.time, why: why.to_owned() };
        match entry.owed.take() {
            Some(owed) => Some(MissingEvents { to, ..owed }),
            None => Some(lost),
        }
    }

    /// Remembers a range whose rows could not be written, for the next row that can.
    pub fn owe(&mut self, key: Key, from: u64, to: u64, why: &str) {
        let Some(entry) = self.kept.get_mut(&key) else { return };
        let owed = entry.owed.get_or_insert_with(|| MissingEvents { from, to, time: entry.time, why: why.to_owned() });
        owed.from = owed.from.min(from);
        owed.to = owed.to.max(to);
    }

    /// Returns whether the attribute has rows.
    pub fn knows(&self, key: Key) -> bool {
        self.kept.contains_key(&key)
    }

    /// Takes the remembered gap, to be written before a change of the source.
    pub fn settle(&mut self, key: Key) -> Option<MissingEvents> {
        self.kept.get_mut(&key)?.owed.take()
    }

    /// Forgets an incarnation that ended.
    pub fn end(&mut self, key: Key) {
        self.kept.remove(&key);
        self.early.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (Incarnation { boot: 1, pid: 2, start: 3 }, 4);

    fn event(ledger: &mut NumberLedger, number: u64, stored: Option<u64>) -> Option<(Option<(u64, u64)>, u64)> {
        let taken = ledger.event(KEY, number, Time(number as i64), || stored)?;
        Some((taken.missing.map(|missing| (missing.from, missing.to)), taken.from))
    }

    #[test]
    fn each_number_is_stood_for_once() {
        let mut ledger = NumberLedger::default();
        assert_eq!(event(&mut ledger, 7, None), Some((None, 7)), "nothing is known of what was before");
        assert_eq!(event(&mut ledger, 7, None), None);
        assert_eq!(event(&mut ledger, 8, None), Some((None, 8)));
        assert_eq!(event(&mut ledger, 12, None), Some((None, 9)), "those between were of other kinds");
        let gap = ledger.gap(KEY, 13, 15).unwrap();
        assert_eq!((gap.from, gap.to, gap.time), (13, 15, Some(Time(12))));
        assert_eq!(ledger.gap(KEY, 13, 15), None);
        assert_eq!(event(&mut ledger, 16, None), Some((None, 16)));
        ledger.end(KEY);
        assert_eq!(event(&mut ledger, 1, None), Some((None, 1)));
    }

    #[test]
    fn what_is_lost_before_the_first_event_of_a_life_is_missing() {
        let after_gap = |from, to, number, stored| {
            let mut ledger = NumberLedger::default();
            assert_eq!(ledger.gap(KEY, from, to), None, "nothing is kept yet");
            assert!(!ledger.knows(KEY));
            event(&mut ledger, number, stored)
        };
        assert_eq!(after_gap(1, 3, 4, None), Some((Some((1, 3)), 4)));
        assert_eq!(after_gap(1, 3, 4, Some(2)), Some((Some((3, 3)), 4)));
        assert_eq!(after_gap(5, 6, 9, None), Some((Some((5, 6)), 7)), "7 and 8 were of other kinds");
        assert_eq!(event(&mut NumberLedger::default(), 1, None), Some((None, 1)));
        let mut ledger = NumberLedger::default();
        ledger.gap(KEY, 2, 2);
        ledger.gap(KEY, 4, 5);
        assert_eq!(event(&mut ledger, 6, None), Some((Some((2, 5)), 6)));
        ledger.gap(KEY, 7, 7);
        ledger.end(KEY);
        assert_eq!(event(&mut ledger, 9, None), Some((None, 9)), "another life");
        let mut ledger = NumberLedger::default();
        assert!(!ledger.knows(KEY));
        assert_eq!(event(&mut ledger, 3, Some(u64::MAX)), None);
    }

    #[test]
    fn what_came_while_no_hub_was_there_is_missing() {
        let mut ledger = NumberLedger::default();
        assert_eq!(event(&mut ledger, 9, Some(5)), Some((Some((6, 8)), 9)));
        let mut ledger = NumberLedger::default();
        assert_eq!(event(&mut ledger, 5, Some(5)), None);
        assert_eq!(event(&mut ledger, 6, Some(5)), Some((None, 6)));
        let mut ledger = NumberLedger::default();
        assert_eq!(event(&mut ledger, 6, Some(5)), Some((None, 6)), "nothing was missed");
    }

    #[test]
    fn what_came_while_another_source_was_followed_is_missing() {
        let mut ledger = NumberLedger::default();
        assert_eq!(ledger.unheard(KEY, 9), None, "nothing of it was kept");
        assert_eq!(event(&mut ledger, 9, None), Some((None, 9)));
        assert_eq!(ledger.unheard(KEY, 9), None);
        assert_eq!(ledger.unheard(KEY, 10), None, "the next one");
        assert_eq!(ledger.unheard(KEY, 0), None);
        let missing = ledger.unheard(KEY, 20).unwrap();
        assert_eq!((missing.from, missing.to, missing.time, missing.why.as_str()), (10, 19, Some(Time(9)), UNHEARD));
        assert_eq!(event(&mut ledger, 20, None), Some((None, 20)));
    }

    #[test]
    fn what_could_not_be_written_is_told_with_the_next_that_can() {
        let mut ledger = NumberLedger::default();
        event(&mut ledger, 1, None);
        for number in 2..5 {
            let (missing, from) = event(&mut ledger, number, None).unwrap();
            ledger.owe(KEY, missing.map_or(from, |(from, _)| from), number, "no room");
        }
        assert_eq!(event(&mut ledger, 5, None), Some((Some((2, 4)), 5)));
        ledger.owe(KEY, 5, 5, "no room");
        let gap = ledger.gap(KEY, 6, 9).unwrap();
        assert_eq!((gap.from, gap.to, gap.why.as_str()), (5, 9, "no room"));
        assert_eq!(ledger.settle(KEY), None);
    }
}
