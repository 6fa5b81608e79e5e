//! How much of a processor the archive's keeper may take.
//!
//! Its thread's own CPU time is held against the clock, and it sleeps off what it took too much. What it did not take while
//! there was nothing to do it cannot take later, but for a second.

use std::time::{Duration, Instant};

/// The most time that is saved up.
const SAVED: Duration = Duration::from_secs(1);

/// The CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// A share of one processor.
#[derive(Debug)]
pub(crate) struct Budget {
    share: f64,
    /// What the clock and the thread's CPU time were when the account was last even.
    clock: Instant,
    cpu: Duration,
}

impl Budget {
    pub(crate) fn new(share: f64, now: Instant, cpu: Duration) -> Budget {
        Budget { share, clock: now, cpu }
    }

    /// How long to sleep now, so that the share is kept to.
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
        // Half a second of work in half a second: it has to last two.
        assert_eq!(budget.due(start + ms(500), ms(500)), ms(1500));
        assert_eq!(budget.due(start + ms(2000), ms(500)), ms(0));
        // An hour of nothing saves one second.
        let later = start + ms(3_600_000);
        assert_eq!(budget.due(later, ms(500)), ms(0));
        assert_eq!(budget.due(later, ms(1000)), ms(1000));
        let mut free = Budget::new(1.0, start, ms(0));
        assert_eq!(free.due(start, ms(500)), ms(0));
    }
}
