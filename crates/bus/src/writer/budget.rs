//! Time that a writer may still wait for readers with a limited right to delay it: a bucket that fills with time. Streams
//! that one program writes together share a bucket, so that several of them cost it no more than one.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::links::lock;

#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Mutex<Bucket>>);

#[derive(Debug)]
struct Bucket {
    most: u64,
    period: u64,
    left: u64,
    filled: u64,
}

impl Bucket {
    /// Fills it up to `now`, and returns the time left.
    fn left(&mut self, now: u64) -> u64 {
        // Another stream may have filled it since this one began to wait.
        let elapsed = now.saturating_sub(self.filled);
        let gained = u128::from(elapsed) * u128::from(self.most) / u128::from(self.period);
        self.left = self.left.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX)).min(self.most);
        self.filled = self.filled.max(now);
        self.left
    }
}

impl Budget {
    pub fn new(max_wait: Duration, period: Duration, now: u64) -> Budget {
        let most = max_wait.as_nanos() as u64;
        let bucket = Bucket { most, period: (period.as_nanos() as u64).max(1), left: most, filled: now };
        Budget(Arc::new(Mutex::new(bucket)))
    }

    /// Changes the time and its period, for all streams that share them. What has been spent stays spent.
    pub fn retune(&self, max_wait: Duration, period: Duration, now: u64) {
        let mut bucket = lock(&self.0);
        let spent = bucket.most.saturating_sub(bucket.left(now));
        bucket.most = max_wait.as_nanos() as u64;
        bucket.period = (period.as_nanos() as u64).max(1);
        bucket.left = bucket.most.saturating_sub(spent);
    }

    /// Returns the time left at `now`, in ns.
    pub fn left(&self, now: u64) -> u64 {
        lock(&self.0).left(now)
    }

    /// Subtracts the time waited.
    pub fn spend(&self, waited: u64) {
        let mut bucket = lock(&self.0);
        bucket.left = bucket.left.saturating_sub(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_time_and_no_more() {
        let budget = Budget::new(Duration::from_millis(100), Duration::from_secs(1), 0);
        assert_eq!(budget.left(0), 100_000_000);
        budget.spend(100_000_000);
        assert_eq!(budget.left(0), 0);
        assert_eq!(budget.left(500_000_000), 50_000_000);
        assert_eq!(budget.left(60_000_000_000), 100_000_000);
        budget.spend(30_000_000);
        budget.retune(Duration::from_millis(50), Duration::from_millis(50), 60_000_000_000);
        assert_eq!(budget.left(60_000_000_000), 20_000_000);
        assert_eq!(budget.left(61_000_000_000), 50_000_000);
    }

    #[test]
    fn streams_that_share_it_spend_it_together() {
        let budget = Budget::new(Duration::from_millis(100), Duration::from_secs(1), 0);
        let beside = budget.clone();
        budget.spend(60_000_000);
        beside.spend(40_000_000);
        assert_eq!((budget.left(0), beside.left(0)), (0, 0));
        assert_eq!((beside.left(1_000_000_000), budget.left(500_000_000)), (100_000_000, 100_000_000));
    }
}
