//! Which numbers of each attribute's events have been dealt with: a value that is told what came and says what to write.
//!
//! Events of an attribute are numbered from 1 in each life of its source. A row stands for the numbers behind the one told before
//! it; those that were of no kind that is kept are stood for by the next row. What is lost gets a row of its own.

use std::collections::HashMap;

use tampu_types::{Incarnation, Time};

/// An attribute in one life of its source.
pub(super) type Key = (Incarnation, u32);

/// Numbers that are missing, the last included, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub from: u64,
    pub to: u64,
    /// Of the last reading before; none where there was none.
    pub time: Option<Time>,
    pub why: String,
}

/// What is to be written for an event: what is missing before it, and the first number it stands for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    pub missing: Option<Missing>,
    pub from: u64,
}

#[derive(Debug)]
struct Account {
    /// All up to this number is in a row, or was passed over with one.
    told: u64,
    /// When the last reading that came was taken.
    time: Option<Time>,
    /// What could not be written: to be told with the next row.
    owed: Option<Missing>,
}

/// The accounts of all attributes.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    kept: HashMap<Key, Account>,
    /// What the bus lost of attributes of which nothing has been kept yet: the first that is kept tells it.
    early: HashMap<Key, (u64, u64)>,
}

/// What is missing because nobody was there to keep it.
const NOBODY: &str = "no hub was there to keep them";
/// Because the bus lost it.
pub(super) const LOST: &str = "lost on the way";
/// Because another source of the attribute was followed meanwhile.
pub(super) const UNHEARD: &str = "not heard here";

impl Accounts {
    /// An event that is to be kept came; what is missing before it was told to [`gap`](Self::gap). `stored` says up to where rows are
    /// there from before, and is asked once for each life of an attribute. Nothing if it is dealt with already.
    pub fn event(&mut self, key: Key, number: u64, time: Time, stored: impl FnOnce() -> Option<u64>) -> Option<Taken> {
        let early = &mut self.early;
        let account = self.kept.entry(key).or_insert_with(|| {
            let lost = early.remove(&key);
            let (first, last, why) = match (stored(), lost) {
                (Some(stored), _) => (stored.saturating_add(1), number.saturating_sub(1), NOBODY),
                // What was before the first event ever heard of is nobody's business, unless it is known to be lost.
                (None, Some((from, to))) => (from.min(number), to.min(number.saturating_sub(1)), LOST),
                (None, None) => (number, number.saturating_sub(1), LOST),
            };
            let owed = (first <= last).then(|| Missing { from: first, to: last, time: None, why: why.to_owned() });
            Account { told: first.saturating_sub(1), time: None, owed }
        });
        if number <= account.told {
            return None;
        }
        let missing = account.owed.take();
        let from = account.told.max(missing.as_ref().map_or(0, |missing| missing.to)) + 1;
        account.told = number;
        account.time = Some(time);
        Some(Taken { missing, from: from.min(number) })
    }

    /// The bus lost events; what is to be told now. What is lost before anything is kept is remembered: nobody knows yet whether
    /// anything will be.
    pub fn gap(&mut self, key: Key, from: u64, to: u64) -> Option<Missing> {
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

    /// The life is heard again from `number` on, after nobody listened to it here. Nothing, where nothing of it has been kept.
    pub fn unheard(&mut self, key: Key, number: u64) -> Option<Missing> {
        self.missing(key, 0, number.checked_sub(1)?, UNHEARD)
    }

    fn missing(&mut self, key: Key, from: u64, to: u64, why: &str) -> Option<Missing> {
        let account = self.kept.get_mut(&key)?;
        let from = from.max(account.told.saturating_add(1));
        if from > to {
            return None;
        }
        account.told = to;
        let lost = Missing { from, to, time: account.time, why: why.to_owned() };
        match account.owed.take() {
            Some(owed) => Some(Missing { to, ..owed }),
            None => Some(lost),
        }
    }

    /// What was to be written could not be. It is told with the next row that can.
    pub fn owe(&mut self, key: Key, from: u64, to: u64, why: &str) {
        let Some(account) = self.kept.get_mut(&key) else { return };
        let owed = account.owed.get_or_insert_with(|| Missing { from, to, time: account.time, why: why.to_owned() });
        owed.from = owed.from.min(from);
        owed.to = owed.to.max(to);
    }

    /// Whether events of this attribute are kept.
    pub fn knows(&self, key: Key) -> bool {
        self.kept.contains_key(&key)
    }

    /// What is owed, before word of the source that is written now.
    pub fn settle(&mut self, key: Key) -> Option<Missing> {
        self.kept.get_mut(&key)?.owed.take()
    }

    /// A life has ended.
    pub fn end(&mut self, key: Key) {
        self.kept.remove(&key);
        self.early.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (Incarnation { boot: 1, pid: 2, start: 3 }, 4);

    fn event(accounts: &mut Accounts, number: u64, stored: Option<u64>) -> Option<(Option<(u64, u64)>, u64)> {
        let taken = accounts.event(KEY, number, Time(number as i64), || stored)?;
        Some((taken.missing.map(|missing| (missing.from, missing.to)), taken.from))
    }

    #[test]
    fn each_number_is_stood_for_once() {
        let mut accounts = Accounts::default();
        assert_eq!(event(&mut accounts, 7, None), Some((None, 7)), "nothing is known of what was before");
        assert_eq!(event(&mut accounts, 7, None), None);
        assert_eq!(event(&mut accounts, 8, None), Some((None, 8)));
        assert_eq!(event(&mut accounts, 12, None), Some((None, 9)), "those between were of other kinds");
        let gap = accounts.gap(KEY, 13, 15).unwrap();
        assert_eq!((gap.from, gap.to, gap.time), (13, 15, Some(Time(12))));
        assert_eq!(accounts.gap(KEY, 13, 15), None);
        assert_eq!(event(&mut accounts, 16, None), Some((None, 16)));
        accounts.end(KEY);
        assert_eq!(event(&mut accounts, 1, None), Some((None, 1)));
    }

    #[test]
    fn what_is_lost_before_the_first_event_of_a_life_is_missing() {
        let after_gap = |from, to, number, stored| {
            let mut accounts = Accounts::default();
            assert_eq!(accounts.gap(KEY, from, to), None, "nothing is kept yet");
            assert!(!accounts.knows(KEY));
            event(&mut accounts, number, stored)
        };
        assert_eq!(after_gap(1, 3, 4, None), Some((Some((1, 3)), 4)));
        assert_eq!(after_gap(1, 3, 4, Some(2)), Some((Some((3, 3)), 4)));
        assert_eq!(after_gap(5, 6, 9, None), Some((Some((5, 6)), 7)), "7 and 8 were of other kinds");
        assert_eq!(event(&mut Accounts::default(), 1, None), Some((None, 1)));
        let mut accounts = Accounts::default();
        accounts.gap(KEY, 2, 2);
        accounts.gap(KEY, 4, 5);
        assert_eq!(event(&mut accounts, 6, None), Some((Some((2, 5)), 6)));
        accounts.gap(KEY, 7, 7);
        accounts.end(KEY);
        assert_eq!(event(&mut accounts, 9, None), Some((None, 9)), "another life");
        let mut accounts = Accounts::default();
        assert!(!accounts.knows(KEY));
        assert_eq!(event(&mut accounts, 3, Some(u64::MAX)), None);
    }

    #[test]
    fn what_came_while_no_hub_was_there_is_missing() {
        let mut accounts = Accounts::default();
        assert_eq!(event(&mut accounts, 9, Some(5)), Some((Some((6, 8)), 9)));
        let mut accounts = Accounts::default();
        assert_eq!(event(&mut accounts, 5, Some(5)), None);
        assert_eq!(event(&mut accounts, 6, Some(5)), Some((None, 6)));
        let mut accounts = Accounts::default();
        assert_eq!(event(&mut accounts, 6, Some(5)), Some((None, 6)), "nothing was missed");
    }

    #[test]
    fn what_came_while_another_source_was_followed_is_missing() {
        let mut accounts = Accounts::default();
        assert_eq!(accounts.unheard(KEY, 9), None, "nothing of it was kept");
        assert_eq!(event(&mut accounts, 9, None), Some((None, 9)));
        assert_eq!(accounts.unheard(KEY, 9), None);
        assert_eq!(accounts.unheard(KEY, 10), None, "the next one");
        assert_eq!(accounts.unheard(KEY, 0), None);
        let missing = accounts.unheard(KEY, 20).unwrap();
        assert_eq!((missing.from, missing.to, missing.time, missing.why.as_str()), (10, 19, Some(Time(9)), UNHEARD));
        assert_eq!(event(&mut accounts, 20, None), Some((None, 20)));
    }

    #[test]
    fn what_could_not_be_written_is_told_with_the_next_that_can() {
        let mut accounts = Accounts::default();
        event(&mut accounts, 1, None);
        for number in 2..5 {
            let (missing, from) = event(&mut accounts, number, None).unwrap();
            accounts.owe(KEY, missing.map_or(from, |(from, _)| from), number, "no room");
        }
        assert_eq!(event(&mut accounts, 5, None), Some((Some((2, 4)), 5)));
        accounts.owe(KEY, 5, 5, "no room");
        let gap = accounts.gap(KEY, 6, 9).unwrap();
        assert_eq!((gap.from, gap.to, gap.why.as_str()), (5, 9, "no room"));
        assert_eq!(accounts.settle(KEY), None);
    }
}
