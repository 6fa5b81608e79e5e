//! The rate limit: at most a set number of records a second from one process. Records beyond it are counted by level
//! and reported.
//!
//! The limit is off by default: rings, credit and quotas already keep one process from harming the others. It serves
//! sites that want a number in their configuration (ACS's `maxLogsPerSecond`). ACS drops the excess without a report in
//! C++.
//!
//! A window lasts a second and begins with the first record after the previous window; time is the records' own.
//! Records from Error on have a second share of the same size. So a flood of Debug does not displace the error that
//! explains it.

use std::num::NonZeroU64;

use tampu_types::{Level, Time};

const WINDOW: i64 = 1_000_000_000;

/// Counter of records in a window of time.
#[derive(Debug)]
pub(crate) struct Throttle {
    limit: NonZeroU64,
    /// Start of the window; `None` before the first record.
    begun: Option<Time>,
    passed: [u64; 2],
    excess: [u64; 10],
}

/// Number of dropped records by the ordinal of their level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excess {
    pub limit: u64,
    /// The end of the window.
    pub time: Time,
    pub counts: [u64; 10],
}

impl Throttle {
    pub fn new(limit: NonZeroU64) -> Throttle {
        Throttle { limit, begun: None, passed: [0; 2], excess: [0; 10] }
    }

    /// Returns whether a record passes. The caller calls [`Throttle::turn`] first.
    pub fn admit(&mut self, level: Level) -> bool {
        let passed = &mut self.passed[usize::from(level >= Level::Error)];
        if *passed < self.limit.get() {
            *passed += 1;
            return true;
        }
        self.excess[level.ordinal()] += 1;
        false
    }

    /// Advances the time; returns the excess of the window that ends.
    pub fn turn(&mut self, now: Time) -> Option<Excess> {
        match self.begun {
            Some(begun) if now.0.saturating_sub(begun.0) < WINDOW => return None,
            _ => {}
        }
        let begun = self.begun.replace(now);
        self.passed = [0; 2];
        let time = Time(begun.unwrap_or(now).0.saturating_add(WINDOW));
        self.take(time)
    }

    /// Takes the drops of a window that no later record will end.
    pub fn take_last(&mut self, now: Time) -> Option<Excess> {
        self.take(now)
    }

    fn take(&mut self, time: Time) -> Option<Excess> {
        let counts = std::mem::take(&mut self.excess);
        counts.iter().any(|count| *count > 0).then_some(Excess { limit: self.limit.get(), time, counts })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn throttle(limit: u64) -> Throttle {
        Throttle::new(NonZeroU64::new(limit).unwrap())
    }

    #[test]
    fn the_excess_of_a_window_is_told_by_level_when_the_next_begins() {
        let mut throttle = throttle(2);
        let mut at = |ns: i64, level| (throttle.turn(Time(ns)), throttle.admit(level));
        assert_eq!(at(5, Level::Debug), (None, true));
        assert_eq!(at(6, Level::Debug), (None, true));
        assert_eq!(at(7, Level::Debug), (None, false));
        assert_eq!(at(7, Level::Info), (None, false));
        assert_eq!(at(7, Level::Error), (None, true), "grave ones have their own share");
        // A record of another ring may be a little older.
        assert_eq!(at(1, Level::Info), (None, false));
        let (told, passed) = at(WINDOW + 5, Level::Info);
        let mut counts = [0; 10];
        (counts[Level::Debug.ordinal()], counts[Level::Info.ordinal()]) = (1, 2);
        assert_eq!((told, passed), (Some(Excess { limit: 2, time: Time(WINDOW + 5), counts }), true));
        assert_eq!(at(3 * WINDOW, Level::Info), (None, true), "nothing was over it");
    }

    proptest! {
        #[test]
        fn what_does_not_pass_is_counted_and_no_window_has_more_than_its_share(
            calls in proptest::collection::vec((0i64..400_000_000, 0usize..10), 0..200), limit in 1u64..10,
        ) {
            let mut throttle = throttle(limit);
            let (mut now, mut passed, mut told) = (Time(0), 0u64, 0u64);
            let mut count = |excess: Option<Excess>| told += excess.map_or(0, |excess| excess.counts.iter().sum());
            for (later, level) in &calls {
                now.0 += later;
                count(throttle.turn(now));
                passed += u64::from(throttle.admit(Level::ALL[*level]));
                prop_assert!(throttle.passed.iter().all(|passed| *passed <= limit));
            }
            count(throttle.take_last(now));
            prop_assert_eq!(passed + told, calls.len() as u64);
        }
    }
}
