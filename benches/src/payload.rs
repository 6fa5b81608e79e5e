//! What travels: a sequence number, a time, and bytes that differ in every message.
//!
//! ```text
//! 0        8        16                                   size
//! +--------+--------+------------------------------------+
//! | number | sent   | words: mix(number) + i * STEP ...  |   little endian
//! +--------+--------+------------------------------------+
//! ```
//!
//! Every word follows from the number, so the writer has to write all of a payload and a reader can check all of it without
//! keeping anything. The check is one addition and one comparison a word, which a compiler turns into vector code: it runs at
//! the speed of memory, so that a bench of 1 MB messages measures the bus and not the check.

/// The number of a message that only says "are you there"; readers count none of them.
const PROBE: u64 = u64::MAX;
/// In place of the time: the last message of a run.
const FINAL: u64 = u64::MAX;
const HEAD: usize = 16;
/// What is made in the processor's cache before it goes to a long buffer.
const BLOCK: usize = 4096;
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The shortest payload that can be made.
pub const SHORTEST: usize = HEAD;

/// One message to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    number: u64,
    sent: u64,
    /// How many bytes it has.
    pub size: usize,
}

impl Message {
    /// The message with this number; `sent` is the monotonic time in ns where latency is measured, else 0.
    pub fn new(number: u64, sent: u64, size: usize) -> Message {
        Message { number, sent, size: size.max(SHORTEST) }
    }

    /// A message that finds out whether readers are connected.
    pub fn probe(size: usize) -> Message {
        Message::new(PROBE, 0, size)
    }

    /// Whether it only finds out who is there.
    pub fn is_probe(&self) -> bool {
        self.number == PROBE
    }

    /// The last message of a run.
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

    /// It alone in a buffer of its own.
    #[inline]
    pub fn to_vec(self) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(self.size);
        self.append(&mut buffer);
        buffer
    }
}

/// What a payload turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A probe.
    Probe,
    /// A message: its number, when it was sent (ns, 0 if not measured), and whether it is the last.
    Number(u64, u64, bool),
    /// Something that nobody wrote.
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

/// A payload that is checked as it comes, piece by piece, so that nobody has to keep it: its head first, then pieces of whole words.
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

    /// Takes what follows.
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

    /// What it was.
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
