//! The processor's time-stamp counter: the cheapest clock. Reading it still costs about as much as a good log call.
//!
//! Rejected: `clock_gettime`, which costs two to four times as much and would be most of the measured time.

use std::time::Duration;

use crate::clock::monotonic;

/// Duration of the calibration, long enough for the counter's rate to be exact to a ten-thousandth.
const CALIBRATION: Duration = Duration::from_millis(50);
/// Number of readings that the price of one is the median of.
const READINGS: usize = 10_001;

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: the instruction is part of x86-64, touches no memory, and Linux lets programs use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the system's clock in ns, for processors without such a counter.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn now() -> u64 {
    monotonic()
}

/// Length of a tick of the counter.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Nanoseconds in a tick.
    pub ns_per_tick: f64,
}

impl Scale {
    /// Calibrates the counter against the system's clock.
    pub fn measure() -> Scale {
        let (begun, first) = (monotonic(), now());
        std::thread::sleep(CALIBRATION);
        let (ended, last) = (monotonic(), now());
        Scale { ns_per_tick: (ended - begun) as f64 / last.wrapping_sub(first).max(1) as f64 }
    }

    /// Returns the cost of a reading, which every timed call includes: the median of two readings in a row.
    pub fn reading_ns(self) -> f64 {
        let mut between: Vec<u64> = (0..READINGS).map(|_| std::hint::black_box(now()).abs_diff(now())).collect();
        between.sort_unstable();
        between[READINGS / 2] as f64 * self.ns_per_tick
    }
}
