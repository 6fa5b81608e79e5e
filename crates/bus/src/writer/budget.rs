//! Time that a writer may still wait for readers with a limited right to delay it: a bucket that fills with time.

use std::time::Duration;

#[derive(Debug)]
pub(super) struct Budget {
    most: u64,
    period: u64,
    left: u64,
    filled: u64,
}

impl Budget {
    pub fn new(max_wait: Duration, period: Duration, now: u64) -> Budget {
        let most = max_wait.as_nanos() as u64;
        Budget { most, period: (period.as_nanos() as u64).max(1), left: most, filled: now }
    }

    /// Returns the time left at `now`, in ns.
    pub fn left(&mut self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.filled);
        let gained = u128::from(elapsed) * u128::from(self.most) / u128::from(self.period);
        self.left = self.left.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX)).min(self.most);
        self.filled = now;
        self.left
    }

    /// Subtracts the time waited.
    pub fn spend(&mut self, waited: u64) {
        self.left = self.left.saturating_sub(waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_time_and_no_more() {
        let mut budget = Budget::new(Duration::from_millis(100), Duration::from_secs(1), 0);
        assert_eq!(budget.left(0), 100_000_000);
        budget.spend(100_000_000);
        assert_eq!(budget.left(0), 0);
        assert_eq!(budget.left(500_000_000), 50_000_000);
        assert_eq!(budget.left(60_000_000_000), 100_000_000);
    }
}
