//! What one reader got: counted, checked, timed.

use serde::{Deserialize, Serialize};

use crate::{
    payload::{Found, verify},
    process::monotonic,
};

/// A reader looks at the clock once in so many small messages: looking costs more than checking 92 bytes.
const LOOK_EVERY: u64 = 32;
const SMALL: usize = 16 * 1024;

/// A reader's account of a run.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Messages that arrived, in order and whole.
    pub received: u64,
    /// Numbers passed over.
    pub skipped: u64,
    /// Messages with a number that was due earlier.
    pub repeated: u64,
    /// Payloads with a wrong byte.
    pub corrupt: u64,
    /// Losses that the bus itself told of.
    pub told: u64,
    /// When the last one arrived, monotonic ns.
    pub last: u64,
    /// Whether the message marked as the last one arrived.
    pub finished: bool,
    /// One-way latencies in ns, where measured.
    pub latencies: Vec<u64>,
    /// Bytes that came out of its socket, where they are counted.
    pub wire: Option<u64>,
    /// What went wrong, if anything.
    pub error: Option<String>,
}

/// The running count of one reader.
#[derive(Debug)]
pub struct Tally {
    size: usize,
    report: Report,
    next: u64,
    /// Whether anything at all has arrived.
    pub connected: bool,
}

impl Tally {
    /// A count of payloads of this size.
    pub fn new(size: usize) -> Tally {
        Tally { size, report: Report::default(), next: 0, connected: false }
    }

    /// Takes one payload; true when it was the last of the run.
    #[inline]
    pub fn take(&mut self, payload: &[u8]) -> bool {
        self.count(self.check(payload))
    }

    /// What a payload is, without counting it: whoever reads memory of others counts when it knows that the memory stayed.
    #[inline]
    pub fn check(&self, payload: &[u8]) -> Found {
        if payload.len() == self.size { verify(payload) } else { Found::Corrupt }
    }

    /// Counts what was found; true when it was the last of the run.
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

    /// How many have arrived so far.
    pub fn received(&self) -> u64 {
        self.report.received
    }

    /// Notes a loss the bus told of.
    pub fn told(&mut self, count: u64) {
        self.report.told += count;
    }

    /// Notes why the reader gave up.
    pub fn failed(&mut self, why: String) {
        self.report.error.get_or_insert(why);
    }

    /// Whether the run is over for this reader.
    pub fn over(&self) -> bool {
        self.report.finished || self.report.error.is_some()
    }

    /// The account so far.
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
