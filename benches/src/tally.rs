//! The count of one reader: messages that were received, checked and timed.

use serde::{Deserialize, Serialize};

use crate::{
    clock::monotonic,
    payload::{Found, verify},
};

/// Number of small messages between two readings of the clock by a reader: a reading costs more than the check of 92
/// bytes.
const LOOK_EVERY: u64 = 32;
const SMALL: usize = 16 * 1024;

/// A reader's account of a run.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Messages that arrived in order and intact.
    pub received: u64,
    /// Numbers that were skipped.
    pub skipped: u64,
    /// Messages with a number that was due earlier.
    pub repeated: u64,
    /// Payloads with a wrong byte.
    pub corrupt: u64,
    /// Losses that the bus itself reported.
    pub told: u64,
    /// Arrival of the last message, in monotonic ns.
    pub last: u64,
    /// True if the message marked as the last one arrived.
    pub finished: bool,
    /// One-way latencies in ns, where measured.
    pub latencies: Vec<u64>,
    /// Bytes that were read from its socket, if they are counted.
    pub wire: Option<u64>,
    /// Error of the reader, if there was one.
    pub error: Option<String>,
}

/// The running count of one reader.
#[derive(Debug)]
pub struct Tally {
    size: usize,
    report: Report,
    next: u64,
    /// True if any message has arrived.
    pub connected: bool,
}

impl Tally {
    /// Creates a count of payloads of this size.
    pub fn new(size: usize) -> Tally {
        Tally { size, report: Report::default(), next: 0, connected: false }
    }

    /// Checks and counts one payload. Returns true if it was the last of the run.
    #[inline]
    pub fn take(&mut self, payload: &[u8]) -> bool {
        self.count(self.check(payload))
    }

    /// Checks a payload without counting it. A reader of shared memory counts only after it has verified that the
    /// memory stayed unchanged.
    #[inline]
    pub fn check(&self, payload: &[u8]) -> Found {
        if payload.len() == self.size { verify(payload) } else { Found::Corrupt }
    }

    /// Counts a received payload. Returns true if it was the last of the run.
    #[inline]
    pub fn count(&mut self, found: Found) -> bool {
        match found {
            Found::Number(number, sent, last) => {
                if number == self.next {
                    self.report.received += 1;
                } else if number > self.next {
                    self.report.skipped += number - self.next;
                    self.report.received += 1;
                } else {
                    self.report.repeated += 1;
                    return false;
                }
                self.next = number + 1;
                if sent != 0 {
                    self.report.latencies.push(monotonic().saturating_sub(sent));
                }
                if last || self.size > SMALL || number % LOOK_EVERY == 0 {
                    self.report.last = monotonic();
                }
                self.report.finished |= last;
                last
            }
            Found::Probe => {
                self.connected = true;
                false
            }
            Found::Corrupt => {
                self.report.corrupt += 1;
                false
            }
        }
    }

    /// Number of have that arrived so far.
    pub fn received(&self) -> u64 {
        self.report.received
    }

    /// Counts a loss that the bus reported.
    pub fn told(&mut self, count: u64) {
        self.report.told += count;
    }

    /// Records the error that ended the reader.
    pub fn failed(&mut self, why: String) {
        self.report.error.get_or_insert(why);
    }

    /// Returns true if the run is over for this reader.
    pub fn over(&self) -> bool {
        self.report.finished || self.report.error.is_some()
    }

    /// Returns the account so far.
    pub fn report(&self) -> Report {
        self.report.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Message;

    #[test]
    fn gaps_repetitions_and_the_end_are_counted() {
        let mut tally = Tally::new(40);
        assert!(!tally.take(&Message::probe(40).to_vec()));
        assert!(tally.connected);
        for number in [0, 1, 4, 3, 5] {
            assert!(!tally.take(&Message::new(number, 0, 40).to_vec()));
        }
        assert!(!tally.take(b"rubbish"));
        assert!(tally.take(&Message::last(6, 40).to_vec()));
        let report = tally.report();
        assert_eq!((report.received, report.skipped, report.repeated, report.corrupt), (5, 2, 1, 1));
        assert!(report.finished);
    }
}
