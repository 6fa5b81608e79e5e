//! Payloads: a sequence number, a time, and bytes that differ in every message.
//!
//! ```text
//! 0        8        16                                   size
//! +--------+--------+------------------------------------+
//! | number | sent   | words: mix(number) + i * STEP ...  |   little endian
//! +--------+--------+------------------------------------+
//! ```
//! Every word follows from the number. So the writer has to write a whole payload, and a reader can check it without
//! stored data. The check is one addition and one comparison for each word, which a compiler turns into vector code. It
//! runs at the speed of memory, so a bench of 1 MB messages measures the bus and not the check.

/// The number of a probe, which tests the connection; readers do not count probes.
const PROBE: u64 = u64::MAX;
/// The mark of the last message of a run, in place of the time.
const FINAL: u64 = u64::MAX;
const HEAD: usize = 16;
/// Number of bytes that are made in the processor's cache before they are copied to a long buffer.
const BLOCK: usize = 4096;
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The length of the shortest payload.
pub const SHORTEST: usize = HEAD;

/// One message to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    number: u64,
    sent: u64,
    /// Length in bytes.
    pub size: usize,
}

impl Message {
    /// Returns the message with this number. `sent` is the monotonic time in ns if latency is measured, else 0.
    pub fn new(number: u64, sent: u64, size: usize) -> Message {
        Message { number, sent, size: size.max(SHORTEST) }
    }

    /// Returns a message that tests whether readers are connected.
    pub fn probe(size: usize) -> Message {
        Message::new(PROBE, 0, size)
    }

    /// Returns true for a message that only finds out which readers are there.
    pub fn is_probe(&self) -> bool {
        self.number == PROBE
    }

    /// Returns the last message of a run.
    pub fn last(number: u64, size: usize) -> Message {
        Message::new(number, FINAL, size)
    }

    /// Writes all of it; the place must be [`Message::size`] long.
    #[inline]
    pub fn write(&self, place: &mut [u8]) {
        debug_assert_eq!(place.len(), self.size);
        let (head, body) = place.split_at_mut(HEAD);
        head[..8].copy_from_slice(&self.number.to_le_bytes());
        head[8..].copy_from_slice(&self.sent.to_le_bytes());
        let mut word = mix(self.number);
        let mut words = body.chunks_exact_mut(8);
        for slot in &mut words {
            slot.copy_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(STEP);
        }
        let tail = words.into_remainder();
        let length = tail.len();
        tail.copy_from_slice(&word.to_le_bytes()[..length]);
    }

    /// Adds it to a buffer, with one pass over the buffer's memory however long it is.
    #[inline]
    pub fn append(&self, buffer: &mut Vec<u8>) {
        if self.size <= BLOCK {
            let start = buffer.len();
            buffer.resize(start + self.size, 0);
            self.write(&mut buffer[start..]);
            return;
        }
        buffer.reserve(self.size);
        buffer.extend_from_slice(&self.number.to_le_bytes());
        buffer.extend_from_slice(&self.sent.to_le_bytes());
        let mut word = mix(self.number);
        let mut block = [0; BLOCK];
        let mut left = self.size - HEAD;
        while left > 0 {
            for slot in block.chunks_exact_mut(8) {
                slot.copy_from_slice(&word.to_le_bytes());
                word = word.wrapping_add(STEP);
            }
            let length = left.min(BLOCK);
            buffer.extend_from_slice(&block[..length]);
            left -= length;
        }
    }

    /// Returns the message in a buffer of its own.
    #[inline]
    pub fn to_vec(self) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(self.size);
        self.append(&mut buffer);
        buffer
    }
}

/// Result of checking a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Probe,
    /// A message: its number, the time of sending (ns, 0 if not measured), and whether it is the last.
    Number(u64, u64, bool),
    /// A payload that no writer has written.
    Corrupt,
}

/// Checks every byte of a payload.
#[inline]
pub fn verify(payload: &[u8]) -> Found {
    if payload.len() < HEAD {
        return Found::Corrupt;
    }
    let number = word_at(payload, 0);
    let sent = word_at(payload, 8);
    let mut expected = mix(number);
    let mut difference = 0;
    let mut words = payload[HEAD..].chunks_exact(8);
    for slot in &mut words {
        difference |= word_at(slot, 0) ^ expected;
        expected = expected.wrapping_add(STEP);
    }
    let tail = words.remainder();
    if difference != 0 || *tail != expected.to_le_bytes()[..tail.len()] {
        return Found::Corrupt;
    }
    match (number, sent) {
        (PROBE, _) => Found::Probe,
        (number, FINAL) => Found::Number(number, 0, true),
        (number, sent) => Found::Number(number, sent, false),
    }
}

/// A payload that is checked piece by piece as it arrives, so that no reader has to store it. The head comes first,
/// then pieces of whole words.
#[derive(Debug, Clone, Copy)]
pub struct Piecewise {
    number: u64,
    sent: u64,
    expected: u64,
    difference: u64,
}

impl Piecewise {
    /// Bytes of the head.
    pub const HEAD: usize = HEAD;

    /// Begins with the head.
    pub fn begin(head: &[u8; HEAD]) -> Piecewise {
        let (number, sent) = (word_at(head, 0), word_at(head, 8));
        Piecewise { number, sent, expected: mix(number), difference: 0 }
    }

    /// Checks the next piece.
    #[inline]
    pub fn take(&mut self, piece: &[u8]) {
        let mut expected = self.expected;
        let mut words = piece.chunks_exact(8);
        for slot in &mut words {
            self.difference |= word_at(slot, 0) ^ expected;
            expected = expected.wrapping_add(STEP);
        }
        self.expected = expected;
        self.difference |= words.remainder().len() as u64;
    }

    /// Result of the check.
    pub fn found(self) -> Found {
        match (self.difference, self.number, self.sent) {
            (0, PROBE, _) => Found::Probe,
            (0, number, FINAL) => Found::Number(number, 0, true),
            (0, number, sent) => Found::Number(number, sent, false),
            _ => Found::Corrupt,
        }
    }
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Spreads neighbouring numbers over all bits (the finaliser of SplitMix64).
#[inline]
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_checked_as_the_whole_is() {
        let mut bytes = Message::new(9, 0, 4096).to_vec();
        let check = |bytes: &[u8]| {
            let mut pieces = Piecewise::begin(bytes[..HEAD].first_chunk().unwrap());
            bytes[HEAD..].chunks(24).for_each(|piece| pieces.take(piece));
            pieces.found()
        };
        assert_eq!((check(&bytes), verify(&bytes)), (Found::Number(9, 0, false), Found::Number(9, 0, false)));
        assert_eq!(check(&Message::last(3, 64).to_vec()), Found::Number(3, 0, true));
        assert_eq!(check(&Message::probe(64).to_vec()), Found::Probe);
        bytes[4095] ^= 1;
        assert_eq!(check(&bytes), Found::Corrupt);
    }

    #[test]
    fn what_was_written_is_found() {
        for size in [16, 17, 23, 24, 92, 4096, 4113, 8208, 1_000_003] {
            assert_eq!(verify(&Message::new(7, 99, size).to_vec()), Found::Number(7, 99, false));
            assert_eq!(verify(&Message::last(8, size).to_vec()), Found::Number(8, 0, true));
            assert_eq!(verify(&Message::probe(size).to_vec()), Found::Probe);
        }
    }

    #[test]
    fn every_flipped_bit_of_the_body_or_number_is_noticed() {
        let good = Message::new(123_456, 0, 93).to_vec();
        for byte in (0..8).chain(HEAD..93) {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[byte] ^= 1 << bit;
                assert_eq!(verify(&bad), Found::Corrupt, "byte {byte} bit {bit}");
            }
        }
        assert_eq!(verify(&good[..15]), Found::Corrupt);
        assert_eq!(verify(&good[..92]), Found::Number(123_456, 0, false), "a shorter payload is another, valid one");
    }
}
