//! Processor time of a thread: the measure of work where the clock also counts the work of others.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of the calling thread so far.
pub fn thread_cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}
