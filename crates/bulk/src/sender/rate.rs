//! Rate in bytes a second, over about the last second. A value without I/O.

use std::time::{Duration, Instant};

const SPAN: Duration = Duration::from_millis(500);

/// Counter of bytes in time spans. It reports the last two spans.
#[derive(Debug)]
pub(crate) struct Rate {
    begin: Instant,
    bytes: usize,
    before: Option<(Duration, usize)>,
}

impl Rate {
    pub fn new() -> Rate {
        Rate { begin: Instant::now(), bytes: 0, before: None }
    }

    pub fn add(&mut self, bytes: usize, now: Instant) {
        self.turn(now);
        self.bytes += bytes;
    }

    fn turn(&mut self, now: Instant) {
        let span = now.saturating_duration_since(self.begin);
        if span >= SPAN {
            self.before = Some((span, self.bytes));
            self.begin = now;
            self.bytes = 0;
        }
    }

    pub fn per_second(&mut self, now: Instant) -> f64 {
        self.turn(now);
        let (span, bytes) = self.before.unwrap_or_default();
        let span = span + now.saturating_duration_since(self.begin);
        if span.is_zero() { 0.0 } else { (bytes + self.bytes) as f64 / span.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_spans() {
        let mut rate = Rate::new();
        let mut now = rate.begin;
        for _ in 0..100 {
            now += Duration::from_millis(100);
            rate.add(1000, now);
        }
        let measured = rate.per_second(now);
        assert!((8_000.0..=12_500.0).contains(&measured), "{measured}");
        assert!(rate.per_second(now + Duration::from_secs(5)) < 1_000.0);
        assert_eq!(rate.per_second(now + Duration::from_secs(10)), 0.0);
    }
}
