//! Answers in steps of time, so that their times do not tell words of other logbooks.
//!
//! All logbooks of a store share one vocabulary, by which a search expands parts of words. A word of a logbook that the
//! caller may not read costs some microseconds, which is enough to find such words letter by letter. So searches and
//! exports of callers who do not see everything are answered at the end of a step, counted from the request's arrival. No
//! worker waits meanwhile.
//!
//! Rejected: a vocabulary for each logbook, because words that logbooks share would be stored as often. Rejected: a
//! random delay, because a mean of many answers removes it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Length of a step. Most searches take less.
pub const STEP: Duration = Duration::from_millis(25);

/// The mark of a response that is sent at the end of a step, in its extensions.
#[derive(Debug, Clone, Copy)]
pub struct InSteps;

/// Waits until the step ends in which this moment is.
pub async fn rest_of_step(begun: Instant) {
    sleep_until(end_of_step(begun, Instant::now())).await;
}

/// Returns the end of the step in which `now` is.
fn end_of_step(begun: Instant, now: Instant) -> Instant {
    let steps = now.saturating_duration_since(begun).as_nanos() / STEP.as_nanos() + 1;
    begun + STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_about_the_same_time_have_the_same_end() {
        let begun = Instant::now();
        let end = |micros: u64| (end_of_step(begun, begun + Duration::from_micros(micros)) - begun).as_micros() as u64;
        for (micros, expected) in
            [(0, 25_000), (300, 25_000), (323, 25_000), (24_999, 25_000), (25_000, 50_000), (60_000, 75_000)]
        {
            assert_eq!(end(micros), expected, "{micros}");
        }
    }
}
