//! Arithmetic for times that may be arbitrarily far away.

use std::time::{Duration, Instant};

/// Duration that counts as for ever: no process runs that long.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the time this long after `from`, for any duration.
pub(crate) fn after(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).or_else(|| from.checked_add(FOR_EVER)).unwrap_or(from)
}

/// Returns the time this long after the present, for any duration.
pub(crate) fn until(time: Duration) -> Instant {
    after(Instant::now(), time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_can_be_waited_for() {
        for time in [Duration::ZERO, Duration::from_secs(3600), Duration::from_secs(u64::MAX), Duration::MAX] {
            let until = until(time);
            assert!(until > Instant::now() || time.is_zero(), "{time:?}");
            assert!(after(until, time) >= until);
        }
    }
}
