//! The repeat limit: of a repeated statement the first record passes, and the next are suppressed and counted. The
//! record that passes after them has their number in `repeatCount`.
//!
//! Decision: a repetition is the same statement of the same logger with any arguments. Records such as "no lock after 1
//! try" and "no lock after 2 tries" are the flood that a user wants to avoid. Some statements have no text of their own
//! (`"{}"`, statements of bridges and C's printf, records made by hand). Those are distinguished by their text.
//!
//! A run of suppressed records is always reported in the end. Either the next passing record reports it, or a record of
//! its own does. That record is made after ten quiet seconds or a longer interval, when the slot is needed, and when
//! the process ends. ACS's guard never reports the last suppressed records. Time is the records' own.
//!
//! Bound: [`RUNS`] statements are watched at a time; the half that has been quiet longest makes room for more.

use std::{collections::HashMap, hash::Hash, time::Duration};

use serde::{Deserialize, Serialize};
use tampu_types::Time;

/// Largest number of statements watched.
const RUNS: usize = 4096;
/// The least time without a call after which a run is over.
const QUIET: Duration = Duration::from_secs(10);

/// Conditions under which a repeated record passes. The default suppresses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepeatGuard {
    /// So long after the one that passed last, in ms; 0: time does not count.
    pub interval_ms: u64,
    /// Suppressed records after which one passes; 0: their number does not count.
    pub count: u64,
    /// Combination of interval and count, where both are set.
    pub when: Combine,
}

/// Combination of the interval and the count of a [`RepeatGuard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// A record passes when both conditions hold.
    And,
    /// One of them.
    #[default]
    Or,
}

impl RepeatGuard {
    /// Returns whether it can suppress anything.
    pub fn is_on(&self) -> bool {
        self.interval_ms > 0 || self.count > 0
    }

    fn passes(&self, since: Duration, suppressed: u64) -> bool {
        let late = since >= Duration::from_millis(self.interval_ms);
        let enough = suppressed >= self.count;
        match (self.interval_ms > 0, self.count > 0, self.when) {
            (true, false, _) => late,
            (false, true, _) => enough,
            (_, _, Combine::And) => late && enough,
            (_, _, Combine::Or) => late || enough,
        }
    }
}

/// Decision about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Passes, after so many suppressed records.
    Pass(u64),
    /// Suppressed and counted.
    Suppressed,
}

/// A run that a record of its own reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told<W> {
    pub what: W,
    pub suppressed: u64,
    /// The last of them.
    pub time: Time,
}

struct Run<W> {
    passed: Time,
    last: Time,
    suppressed: u64,
    quiet: Duration,
    /// Data for the record about the suppression.
    what: W,
}

/// All watched runs. `K` distinguishes statements, `W` is the data for the report of a run.
pub(crate) struct Runs<K, W> {
    runs: HashMap<K, Run<W>>,
    limit: usize,
    over: Vec<Told<W>>,
}

impl<K: Hash + Eq + Clone, W> Runs<K, W> {
    pub fn new() -> Runs<K, W> {
        Runs { runs: HashMap::new(), limit: RUNS, over: Vec::new() }
    }

    /// Decides about a record of this time; calls `what` for the first record of a run.
    pub fn judge(&mut self, guard: RepeatGuard, key: &K, time: Time, what: impl FnOnce() -> W) -> Verdict {
        if let Some(run) = self.runs.get_mut(key) {
            run.last = run.last.max(time);
            if guard.passes(since(run.passed, time), run.suppressed) {
                run.passed = time;
                return Verdict::Pass(std::mem::take(&mut run.suppressed));
            }
            run.suppressed += 1;
            return Verdict::Suppressed;
        }
        if self.runs.len() >= self.limit {
            self.make_room();
        }
        let quiet = QUIET.max(Duration::from_millis(guard.interval_ms));
        self.runs.insert(key.clone(), Run { passed: time, last: time, suppressed: 0, quiet, what: what() });
        Verdict::Pass(0)
    }

    /// Restores the count of suppressed records, because the record that would report it was not sent.
    pub fn take_back(&mut self, key: &K, suppressed: u64) {
        if let Some(run) = self.runs.get_mut(key) {
            run.suppressed += suppressed;
        }
    }

    /// Takes the runs that are over: those that have been quiet, or all.
    pub fn take_over(&mut self, now: Time, at_last: bool) -> Vec<Told<W>> {
        self.end(|run| at_last || since(run.last, now) >= run.quiet);
        std::mem::take(&mut self.over)
    }

    fn make_room(&mut self) {
        let mut times: Vec<Time> = self.runs.values().map(|run| run.last).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        self.end(|run| run.last <= middle);
    }

    fn end(&mut self, over: impl Fn(&Run<W>) -> bool) {
        let ended = self.runs.extract_if(|_, run| over(run)).map(|(_, run)| run).filter(|run| run.suppressed > 0);
        let told = ended.map(|Run { what, suppressed, last, .. }| Told { what, suppressed, time: last });
        self.over.extend(told);
    }
}

fn since(earlier: Time, later: Time) -> Duration {
    Duration::from_nanos(u64::try_from(later.0.saturating_sub(earlier.0)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn guard(interval_ms: u64, count: u64, when: Combine) -> RepeatGuard {
        RepeatGuard { interval_ms, count, when }
    }

    fn ms(ms: i64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Judges records at these times; returns a number for each that passes.
    fn passes(guard: RepeatGuard, times: &[i64]) -> Vec<Option<u64>> {
        let mut runs = Runs::new();
        let judge = |time: &i64| match runs.judge(guard, &1, ms(*time), || ()) {
            Verdict::Pass(suppressed) => Some(suppressed),
            Verdict::Suppressed => None,
        };
        times.iter().map(judge).collect()
    }

    #[test]
    fn interval_and_count_by_themselves_and_together() {
        let times = [0, 10, 20, 100, 110, 120, 130, 210];
        assert_eq!(passes(guard(100, 0, Combine::And), &times), [Some(0), None, None, Some(2), None, None, None, Some(3)]);
        assert_eq!(passes(guard(0, 2, Combine::And), &times), [Some(0), None, None, Some(2), None, None, Some(2), None]);
        assert_eq!(passes(guard(100, 2, Combine::Or), &times), [Some(0), None, None, Some(2), None, None, Some(2), None]);
        assert_eq!(
            passes(guard(100, 3, Combine::And), &times),
            [Some(0), None, None, None, Some(3), None, None, None],
            "late at 100 and not enough"
        );
        assert_eq!(passes(guard(100, 9, Combine::And), &times), [Some(0), None, None, None, None, None, None, None]);
    }

    #[test]
    fn a_run_is_told_when_it_is_quiet_and_at_last() {
        let mut runs = Runs::new();
        let guard = guard(0, 100, Combine::Or);
        for time in 0..5 {
            runs.judge(guard, &"a", ms(time), || "what a is");
        }
        runs.judge(guard, &"b", ms(0), || "what b is");
        assert_eq!(runs.take_over(ms(10_003), false), []);
        let told = Told { what: "what a is", suppressed: 4, time: ms(4) };
        assert_eq!(runs.take_over(ms(10_004), false), [told]);
        assert!(runs.runs.is_empty(), "nothing is kept of what was not suppressed");
        runs.judge(guard, &"a", ms(20_000), || "again");
        runs.judge(guard, &"a", ms(20_001), || "again");
        assert_eq!(runs.take_over(ms(20_001), true), [Told { what: "again", suppressed: 1, time: ms(20_001) }]);
    }

    proptest! {
        #[test]
        fn every_record_passes_or_is_told_however_little_room_there_is(
            calls in proptest::collection::vec((0u8..20, 0i64..200), 0..300), limit in 1usize..10, count in 0u64..5, interval in 0u64..100, and: bool,
        ) {
            let guard = guard(interval, count, if and { Combine::And } else { Combine::Or });
            let mut runs = Runs::new();
            runs.limit = limit;
            let (mut now, mut passed, mut told) = (0, 0u64, 0u64);
            for (key, later) in &calls {
                now += later;
                match runs.judge(guard, key, ms(now), || *key) {
                    // A record that passed but was not sent after all.
                    Verdict::Pass(suppressed) if *key == 7 => {
                        passed += 1;
                        runs.take_back(key, suppressed);
                    }
                    Verdict::Pass(suppressed) => {
                        passed += 1;
                        told += suppressed;
                    }
                    Verdict::Suppressed => {}
                }
                prop_assert!(runs.runs.len() <= limit.max(1));
            }
            told += runs.take_over(ms(now), true).iter().map(|run| run.suppressed).sum::<u64>();
            prop_assert_eq!(passed + told, calls.len() as u64);
        }
    }
}
