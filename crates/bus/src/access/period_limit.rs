//! Limit that keeps causes which anybody can repeat from flooding a log.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Records of one cause that are logged in a period. Further ones are counted.
const IN_PERIOD: u64 = 5;
/// Length of a period.
const PERIOD: Duration = Duration::from_secs(60);
/// Causes that are counted apart. Further ones share one place.
const PLACES: usize = 1024;

/// Limit for the records of each cause: some a minute, usually five, and a count of the others.
#[derive(Debug)]
pub struct PeriodLimit<K> {
    in_period: u64,
    periods: Mutex<HashMap<Option<K>, Period>>,
}

#[derive(Debug)]
struct Period {
    began: Instant,
    seen: u64,
}

impl<K> Default for PeriodLimit<K> {
    fn default() -> Self {
        PeriodLimit::of(IN_PERIOD)
    }
}

impl<K> PeriodLimit<K> {
    /// Makes a limit of so many records of a cause a minute.
    pub fn of(in_period: u64) -> PeriodLimit<K> {
        PeriodLimit { in_period, periods: Mutex::default() }
    }
}

impl<K: Hash + Eq> PeriodLimit<K> {
    /// Returns the number of cases without a record since the last record if this case gets one, else `None`.
    pub fn admit(&self, cause: K, now: Instant) -> Option<u64> {
        let mut periods = self.periods.lock();
        let cause = Some(cause);
        let cause = if periods.contains_key(&cause) || periods.len() < PLACES { cause } else { None };
        let period = periods.entry(cause).or_insert(Period { began: now, seen: 0 });
        let mut untold = 0;
        if now.saturating_duration_since(period.began) >= PERIOD {
            untold = period.seen.saturating_sub(self.in_period);
            *period = Period { began: now, seen: 0 };
        }
        period.seen += 1;
        (period.seen <= self.in_period).then_some(untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_five_records_a_minute_and_a_count() {
        let limit = PeriodLimit::default();
        let start = Instant::now();
        let at = |cause: &'static str, seconds| limit.admit(cause, start + Duration::from_secs(seconds));
        assert_eq!((0..1000).filter(|_| at("set", 1).is_some()).count(), 5);
        assert_eq!(at("backup", 1), Some(0), "another cause has its own records");
        assert_eq!(at("set", 60), None);
        assert_eq!(at("set", 61), Some(996));
        assert_eq!(at("set", 62), Some(0));
    }

    #[test]
    fn a_limit_of_one_counts_all_others() {
        let limit = PeriodLimit::of(1);
        let start = Instant::now();
        let at = |seconds| limit.admit("topic", start + Duration::from_secs(seconds));
        assert_eq!((at(0), at(1), at(59), at(60), at(61)), (Some(0), None, None, Some(2), None));
    }

    #[test]
    fn many_causes_take_a_bounded_place() {
        let limit = PeriodLimit::default();
        let now = Instant::now();
        let told = (0..5000).filter(|name| limit.admit(name.to_string(), now).is_some()).count();
        assert_eq!(told, PLACES + IN_PERIOD as usize);
        assert_eq!(limit.periods.lock().len(), PLACES + 1);
    }
}
