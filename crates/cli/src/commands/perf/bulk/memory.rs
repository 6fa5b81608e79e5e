//! Memory of a part at the beginning and the end of its work: growth without stored data is a leak.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::measure;

/// Time between two samples.
const EVERY: Duration = Duration::from_millis(100);

/// Resident memory of this process, sampled while it works.
#[derive(Debug)]
pub struct Memory {
    seen: Vec<u64>,
    due: Instant,
}

impl Memory {
    /// Looks for the first time.
    pub fn new() -> Memory {
        Memory { seen: vec![measure::resident()], due: Instant::now() + EVERY }
    }

    /// Looks, if it is time to.
    pub fn look(&mut self) {
        if Instant::now() >= self.due {
            self.seen.push(measure::resident());
            self.due = Instant::now() + EVERY;
        }
    }

    /// Bytes: the most in the first tenth of the time, the most in the last, and now.
    pub fn report(&mut self) -> Json {
        self.seen.push(measure::resident());
        let [begin, end] = tenths(&self.seen);
        json!({"begin": begin, "end": end, "now": self.seen.last()})
    }
}

fn tenths(seen: &[u64]) -> [u64; 2] {
    let part = (seen.len() / 10).max(1).min(seen.len());
    let most = |seen: &[u64]| seen.iter().copied().max().unwrap_or(0);
    [most(&seen[..part]), most(&seen[seen.len() - part..])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_compared_and_not_the_middle() {
        let mut seen = vec![5; 100];
        (seen[3], seen[50], seen[97]) = (7, 100, 9);
        assert_eq!(tenths(&seen), [7, 9]);
        assert_eq!((tenths(&[4]), tenths(&[])), ([4, 4], [0, 0]));
    }
}
