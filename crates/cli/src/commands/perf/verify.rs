//! Records that a receiver can check byte by byte: a number, and a text that follows from it.

use std::fmt::Write as _;

use tampu_types::{
    Incarnation, Level,
    log_batch::{LogBatchBuilder, OriginParts, RecordParts},
};

/// Digits of the number at the start of a message.
const DIGITS: usize = 16;
/// Number of different texts.
const TEXTS: usize = 256;

/// The texts after the numbers.
pub struct Texts {
    texts: Vec<String>,
}

impl Texts {
    /// Makes texts for records of this many bytes each in a batch.
    pub fn for_record_size(size: usize) -> Texts {
        let fixed = encoded_overhead() + DIGITS + 1;
        Texts::of_length(size.saturating_sub(fixed).max(1))
    }

    fn of_length(length: usize) -> Texts {
        let words =
            ["antenna", "correlator", "lock", "phase", "cryostat", "az", "el", "0x7f3a", "scan", "timeout", "retry", "ok"];
        let text = |number: usize| {
            let mut text = String::new();
            let mut seed = number.wrapping_mul(0x9e37_79b9) | 1;
            while text.len() < length {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push_str(words[(seed >> 16) % words.len()]);
                text.push(' ');
            }
            text.truncate(length);
            text
        };
        Texts { texts: (0..TEXTS).map(text).collect() }
    }

    /// Returns the text of a number.
    pub fn of(&self, number: u64) -> &str {
        &self.texts[number as usize % TEXTS]
    }

    /// The number of a message, if every byte of it is right.
    pub fn check(&self, message: &str) -> Option<u64> {
        let (number, text) = message.split_at_checked(DIGITS)?;
        let number = number.parse().ok()?;
        (text.as_bytes().first() == Some(&b' ') && &text[1..] == self.of(number)).then_some(number)
    }
}

/// Immediate records: a number and when they were made.
pub mod urgent {
    use rustix::time::{ClockId, clock_gettime};

    const MARK: &str = "immediate ";

    /// The clock that all processes of one host share, ns.
    pub fn now() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    /// The message of the record with this number, made now.
    pub fn message(number: u64) -> String {
        format!("{MARK}{number} {}", now())
    }

    /// The number and the time of such a message.
    pub fn read(message: &str) -> Option<(u64, u64)> {
        let (number, made) = message.strip_prefix(MARK)?.split_once(' ')?;
        Some((number.parse().ok()?, made.parse().ok()?))
    }
}

/// Returns the number of bytes of a record in a batch besides its message.
fn encoded_overhead() -> usize {
    let mut builder = LogBatchBuilder::new();
    let origin = builder.origin(&OriginParts { incarnation: Some(Incarnation::default()), ..OriginParts::default() });
    let mut lengths = [0; 3];
    for length in &mut lengths {
        let mut message = String::new();
        let _ = write!(message, "{:16}", 0);
        let record = RecordParts { level: Level::Info, message: &message, ..RecordParts::default() };
        // An empty batch has room for three short records.
        let _ = builder.push(origin, &record, []);
        *length = builder.len();
    }
    lengths[2].saturating_sub(lengths[1]).saturating_sub(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_checked_byte_by_byte() {
        let texts = Texts::for_record_size(250);
        let message = format!("{:016} {}", 42, texts.of(42));
        assert_eq!(texts.check(&message), Some(42));
        assert_eq!(texts.check(&message.replace("0042", "0043")), None);
        assert_eq!(texts.check("short"), None);
        let before = urgent::now();
        let (number, made) = urgent::read(&urgent::message(7)).unwrap();
        assert!(number == 7 && (before..=urgent::now()).contains(&made));
        assert_eq!(urgent::read(&message), None);
        assert!((150..250).contains(&message.len()), "{}", message.len());
    }
}
