//! Reports of records that the collector dropped on purpose: counted at once, logged once a period.
//!
//! A record about every dropped packet would be a flood of its own. The first drop of a source is logged at once,
//! because an operator should know. Later drops are added up and logged when the period is over, when the source
//! leaves, or when the collector ends.

use std::{collections::BTreeMap, time::Duration};

use tampu_types::SourceName;

/// Interval between two records about one source's drops.
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// Drops of one source for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) source: SourceName,
    pub(super) why: String,
    /// Records; a packet that cannot be read counts as one.
    pub(super) records: u64,
    /// Bytes of their packets.
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
struct Account {
    records: u64,
    bytes: u64,
    /// Time of the last record about it, monotonic ns.
    told: Option<u64>,
}

/// Drops that wait to be reported.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<(SourceName, String), Account>);

impl Ledger {
    /// Counts a dropped packet.
    pub(super) fn add(&mut self, source: &SourceName, why: String, records: u64, bytes: u64) {
        let account = self.0.entry((source.clone(), why)).or_default();
        account.records += records;
        account.bytes += bytes;
    }

    /// Returns whether nothing was dropped for a period.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns the drops that are due to be reported.
    pub(super) fn due(&mut self, now: u64) -> Vec<Dropped> {
        let period = PERIOD.as_nanos() as u64;
        self.take(|_, account| account.told.is_none_or(|told| now >= told + period), Some(now))
    }

    /// Takes all of a source that has gone, and forgets it.
    pub(super) fn of(&mut self, source: &SourceName) -> Vec<Dropped> {
        let taken = self.take(|of, _| of == source, None);
        self.0.retain(|(of, _), _| of != source);
        taken
    }

    /// Takes all pending drops.
    pub(super) fn all(&mut self) -> Vec<Dropped> {
        self.take(|_, _| true, None)
    }

    fn take(&mut self, wanted: impl Fn(&SourceName, &Account) -> bool, now: Option<u64>) -> Vec<Dropped> {
        let mut taken = Vec::new();
        for ((source, why), account) in &mut self.0 {
            if wanted(source, account) {
                if account.records > 0 {
                    let (source, why) = (source.clone(), why.clone());
                    taken.push(Dropped { source, why, records: account.records, bytes: account.bytes });
                    (account.records, account.bytes) = (0, 0);
                    account.told = now;
                } else {
                    // A whole period passed without a drop, so the next drop is reported again.
                    account.told = None;
                }
            }
        }
        self.0.retain(|_, account| account.records > 0 || account.told.is_some());
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(number: u8) -> SourceName {
        SourceName::new(format!("source {number}")).unwrap()
    }

    #[test]
    fn the_first_drop_is_told_at_once_and_the_rest_once_a_period() {
        let period = PERIOD.as_nanos() as u64;
        let mut ledger = Ledger::default();
        ledger.add(&name(1), "why".into(), 3, 30);
        assert_eq!(ledger.due(0), [Dropped { source: name(1), why: "why".into(), records: 3, bytes: 30 }]);
        for _ in 0..100 {
            ledger.add(&name(1), "why".into(), 1, 10);
            assert_eq!(ledger.due(period - 1), []);
        }
        assert_eq!(ledger.due(period)[0].records, 100);
        assert_eq!(ledger.due(2 * period), []);
        ledger.add(&name(1), "why".into(), 1, 10);
        assert_eq!(ledger.due(2 * period + 1).len(), 1, "after a quiet period a drop is news");
    }

    proptest! {
        #[test]
        fn every_drop_is_told_exactly_once(steps in proptest::collection::vec((0u8..4, 0u8..3, 1u64..5, 0u64..20), 0..200)) {
            let mut ledger = Ledger::default();
            let (mut now, mut added, mut told) = (0, 0, 0);
            let sum = |dropped: Vec<Dropped>| dropped.iter().map(|dropped| dropped.records).sum::<u64>();
            for (what, source, records, seconds) in steps {
                now += seconds * 1_000_000_000;
                match what {
                    0 | 1 => {
                        ledger.add(&name(source), "why".into(), records, 1);
                        added += records;
                    }
                    2 => told += sum(ledger.due(now)),
                    _ => told += sum(ledger.of(&name(source))),
                }
            }
            prop_assert_eq!(told + sum(ledger.all()), added);
            prop_assert_eq!(ledger.all(), []);
        }
    }
}
