//! The processor's time-stamp counter: the cheapest clock there is, and even so about as dear as a good log call.
//!
//! Rejected: `clock_gettime`, which costs two to four times as much and would be most of what is measured.

use std::time::Duration;

use crate::process::monotonic;

/// Long enough for the counter's rate to be known to a ten-thousandth.
const CALIBRATION: Duration = Duration::from_millis(50);
/// How many readings the price of one is the median of.
const READINGS: usize = 10_001;

/// The counter's reading.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: the instruction is part of x86-64, touches no memory, and Linux lets programs use it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Where there is no such counter, the system's clock in ns.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn now() -> u64 {
    monotonic()
}

/// What a tick of the counter is.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Nanoseconds in a tick.
    pub ns_per_tick: f64,
}

impl Scale {
    /// Held against the system's clock for a moment.
    pub fn measure() -> Scale {
        let (begun, first) = (monotonic(), now());
        std::thread::sleep(CALIBRATION);
        let (ended, last) = (monotonic(), now());
        Scale { ns_per_tick: (ended - begun) as f64 / last.wrapping_sub(first).max(1) as f64 }
    }

    /// What a reading costs, and so what every timed call seems to cost beside its own: the median of two in a row.
    pub fn reading_ns(self) -> f64 {
        let mut between: Vec<u64> = (0..READINGS).map(|_| std::hint::black_box(now()).abs_diff(now())).collect();
        between.sort_unstable();
        between[READINGS / 2] as f64 * self.ns_per_tick
    }
}
