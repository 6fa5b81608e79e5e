//! Processor share of the archive's keeper.
//!
//! The keeper compares its thread's own CPU time with the clock and sleeps off any excess. Unused time is lost to it,
//! except for one second.

use std::time::{Duration, Instant};

/// Most unused time that the account keeps.
const SAVED: Duration = Duration::from_secs(1);

/// A share of one processor.
#[derive(Debug)]
pub(crate) struct Budget {
    share: f64,
    /// Clock and CPU time of the thread at the last moment of a balanced account.
    clock: Instant,
    cpu: Duration,
}

impl Budget {
    pub(crate) fn new(share: f64, now: Instant, cpu: Duration) -> Budget {
        Budget { share, clock: now, cpu }
    }

    /// Returns the sleep that restores the share.
    pub(crate) fn due(&mut self, now: Instant, cpu: Duration) -> Duration {
        if self.share >= 1.0 || self.share <= 0.0 {
            (self.clock, self.cpu) = (now, cpu);
            return Duration::ZERO;
        }
        let needed = cpu.saturating_sub(self.cpu).div_f64(self.share);
        let passed = now.saturating_duration_since(self.clock);
        if passed > needed + SAVED {
            self.clock += passed - needed - SAVED;
        }
        needed.saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_too_much_is_slept_off_and_little_is_saved() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut budget = Budget::new(0.25, start, ms(0));
        // Half a second of work is the share of two seconds, so a pause of 1.5 s is due.
        assert_eq!(budget.due(start + ms(500), ms(500)), ms(1500));
        assert_eq!(budget.due(start + ms(2000), ms(500)), ms(0));
        // An hour without work saves one second.
        let later = start + ms(3_600_000);
        assert_eq!(budget.due(later, ms(500)), ms(0));
        assert_eq!(budget.due(later, ms(1000)), ms(1000));
        let mut free = Budget::new(1.0, start, ms(0));
        assert_eq!(free.due(start, ms(500)), ms(0));
    }
}
