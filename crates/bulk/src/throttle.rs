//! Limit of bytes a second, by sleeping. A value that returns the time to sleep.

use std::time::{Duration, Instant};

/// The lead of a sender over its rate, so that sleeps are long enough to be exact.
const BURST: Duration = Duration::from_millis(5);

/// Delay that a sender may still make up: a long sleep, or the work between two sleeps. A longer one was a pause.
const ARREARS: Duration = Duration::from_millis(50);

/// Limiter of a rate.
#[derive(Debug, Clone)]
pub struct Throttle {
    bytes_per_second: Option<f64>,
    /// The time at which everything sent is due.
    due: Option<Instant>,
}

impl Throttle {
    /// Makes a limiter of so many bytes a second; `None` or zero means no limit.
    pub fn new(bytes_per_second: Option<f64>) -> Throttle {
        Throttle { bytes_per_second: bytes_per_second.filter(|rate| *rate > 0.0 && rate.is_finite()), due: None }
    }

    /// Sets another rate; `None` or zero means no limit. Bytes that are sent and not yet due are due at the new rate.
    pub fn set_rate(&mut self, bytes_per_second: Option<f64>, now: Instant) {
        let before = std::mem::replace(self, Throttle::new(bytes_per_second));
        if let (Some(old), Some(new), Some(due)) = (before.bytes_per_second, self.bytes_per_second, before.due) {
            let left = due.saturating_duration_since(now).as_secs_f64() * old / new;
            self.due = Some(if due > now { now + Duration::from_secs_f64(left.min(3600.0)) } else { due });
        }
    }

    /// Returns the time until everything sent is due.
    pub fn ahead(&self, now: Instant) -> Duration {
        self.due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now))
    }

    /// Returns the limit in bytes a second.
    pub fn rate(&self) -> Option<f64> {
        self.bytes_per_second
    }

    /// Accounts for bytes sent at `now`. Returns the time to sleep before the next.
    pub fn sent(&mut self, bytes: usize, now: Instant) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        // A pause earns no credit beyond the arrears, so the rate is a limit at any time.
        let from = self.due.filter(|due| *due + ARREARS >= now).unwrap_or(now);
        let due = from + Duration::from_secs_f64((bytes as f64 / rate).min(3600.0));
        self.due = Some(due);
        let ahead = due.saturating_duration_since(now);
        if ahead > BURST { ahead } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_rates_release_nothing_before_it_is_due() {
        let (mut throttle, now) = (Throttle::new(Some(1e6)), Instant::now());
        assert_eq!(throttle.sent(1_000_000, now), Duration::from_secs(1));
        for _ in 0..10 {
            throttle.set_rate(Some(1e6), now);
        }
        assert_eq!(throttle.ahead(now), Duration::from_secs(1));
        throttle.set_rate(Some(4e6), now + Duration::from_millis(500));
        assert_eq!(throttle.ahead(now + Duration::from_millis(500)), Duration::from_millis(125));
        throttle.set_rate(None, now);
        assert_eq!(throttle.ahead(now), Duration::ZERO);
    }

    #[test]
    fn a_rate_is_kept_over_time_and_a_pause_is_not_made_up_for() {
        let mut throttle = Throttle::new(Some(64e6));
        let begin = Instant::now();
        let mut now = begin;
        let send = |now: &mut Instant, throttle: &mut Throttle| {
            for _ in 0..1000 {
                *now += throttle.sent(64_000, *now);
            }
        };
        send(&mut now, &mut throttle);
        let took = (now - begin).as_secs_f64();
        assert!((0.99..=1.0).contains(&took), "{took}");
        now += Duration::from_secs(100);
        let again = now;
        send(&mut now, &mut throttle);
        assert!((now - again).as_secs_f64() > 0.99);
        // Longer sleeps, and work between them, do not lower the rate.
        let begin = now;
        for _ in 0..1000 {
            let pause = throttle.sent(64_000, now);
            now += pause + Duration::from_micros(if pause.is_zero() { 100 } else { 1500 });
        }
        let took = (now - begin).as_secs_f64();
        assert!((0.99..=1.01).contains(&took), "{took}");
        assert_eq!(Throttle::new(None).sent(usize::MAX, now), Duration::ZERO);
        assert_eq!(Throttle::new(Some(0.0)).sent(1, now), Duration::ZERO);
    }
}
