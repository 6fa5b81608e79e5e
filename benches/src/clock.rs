//! The monotonic clock that all processes of one host share.

use rustix::time::{ClockId, clock_gettime};

/// The clock that all processes of one host share, in ns.
#[inline]
pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
