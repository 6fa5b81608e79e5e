//! Pauses between the restarts of a role.

use std::time::Duration;

/// The longest pause.
pub(super) const LONGEST: Duration = Duration::from_secs(10);
/// The second pause; each further one is twice as long. The first restart comes at once.
const SECOND: Duration = Duration::from_millis(250);
/// Time of work after which a role counts as healthy again.
const HEALTHY: Duration = Duration::from_secs(30);

/// The pauses of one role.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Returns the pause before the next start, after a life of this length.
    pub(super) fn pause(&mut self, worked: Duration) -> Duration {
        if worked >= HEALTHY {
            self.next = Duration::ZERO;
        }
        let pause = self.next;
        self.next = if pause.is_zero() { SECOND } else { (pause * 2).min(LONGEST) };
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_pauses_grow_to_ten_seconds() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u128> = (0..9).map(|_| backoff.pause(Duration::ZERO).as_millis()).collect();
        assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(backoff.pause(HEALTHY), Duration::ZERO, "a role that worked starts again at once");
        assert_eq!(backoff.pause(Duration::ZERO), SECOND);
    }
}
