//! Times that are as far away as anybody likes.

use std::time::{Duration, Instant};

/// What stands for ever, where that cannot be said: nothing runs that long.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// This long after that; however long.
pub(crate) fn after(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).or_else(|| from.checked_add(FOR_EVER)).unwrap_or(from)
}

/// This long from now on; however long.
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
