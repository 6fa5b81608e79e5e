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

/// Limit for the records of each cause: five a minute, and a count of the others.
#[derive(Debug)]
pub struct PeriodLimit<K> {
    periods: Mutex<HashMap<Option<K>, Period>>,
}

#[derive(Debug)]
struct Period {
    began: Instant,
    seen: u64,
}

impl<K> Default for PeriodLimit<K> {
    fn default() -> Self {
        PeriodLimit { periods: Mutex::default() }
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
            untold = period.seen.saturating_sub(IN_PERIOD);
            *period = Period { began: now, seen: 0 };
        }
        period.seen += 1;
        (period.seen <= IN_PERIOD).then_some(untold)
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
    fn many_causes_take_a_bounded_place() {
        let limit = PeriodLimit::default();
        let now = Instant::now();
        let told = (0..5000).filter(|name| limit.admit(name.to_string(), now).is_some()).count();
        assert_eq!(told, PLACES + IN_PERIOD as usize);
        assert_eq!(limit.periods.lock().len(), PLACES + 1);
    }
}
