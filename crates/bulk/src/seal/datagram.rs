//! A sealed datagram: a frame with its own number.
//!
//! ```text
//! 0        8                            8 + 48 + length      + 16
//! +--------+----------------------------+--------------------+
//! | number | header and payload         | tag                |
//! | u64    | encrypted                  | u8[16]             |
//! +--------+----------------------------+--------------------+
//! ```
//! Numbers count the datagrams of one key from 0, repeated frames too. A datagram whose number has arrived before is
//! dropped, and so is one that does not open.

use super::{Cipher, DATAGRAM_SEAL, Half, SealError, TAG, replay::Replay};

const NUMBER: usize = 8;

/// Seals datagrams of one sender.
pub struct DatagramSealer {
    cipher: Cipher,
    number: u64,
}

/// Opens datagrams of one sender.
pub struct DatagramOpener {
    cipher: Cipher,
    replay: Replay,
}

impl std::fmt::Debug for DatagramSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatagramSealer")
    }
}

impl std::fmt::Debug for DatagramOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatagramOpener")
    }
}

impl DatagramSealer {
    /// Makes a sealer whose next datagram is the first.
    pub fn new(half: &Half) -> Result<DatagramSealer, SealError> {
        Ok(DatagramSealer { cipher: half.cipher()?, number: 0 })
    }

    /// Appends a frame as the next datagram.
    pub fn seal(&mut self, head: &[u8], payload: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let from = out.len();
        out.reserve(head.len() + payload.len() + DATAGRAM_SEAL);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(head);
        out.extend_from_slice(payload);
        self.cipher.seal(self.number, out, from, from + NUMBER)?;
        self.number += 1;
        Ok(())
    }
}

impl DatagramOpener {
    /// Makes an opener that has seen no datagram.
    pub fn new(half: &Half) -> Result<DatagramOpener, SealError> {
        Ok(DatagramOpener { cipher: half.cipher()?, replay: Replay::new() })
    }

    /// Opens a datagram in place, and returns its frame. `None`: it was changed, or has arrived before.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        let number = u64::from_le_bytes(*datagram.first_chunk::<NUMBER>()?);
        if !self.replay.is_new(number) || !self.cipher.open(number, datagram, NUMBER) {
            return None;
        }
        self.replay.note(number);
        datagram.get(NUMBER..datagram.len() - TAG)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::GroupKey;

    fn ends() -> (DatagramSealer, DatagramOpener) {
        let half = Half::of_group(&GroupKey([9; 32])).unwrap();
        (DatagramSealer::new(&half).unwrap(), DatagramOpener::new(&half).unwrap())
    }

    fn sealed(sealer: &mut DatagramSealer, frame: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        sealer.seal(frame, b"", &mut out).unwrap();
        assert_eq!(out.len(), frame.len() + DATAGRAM_SEAL);
        out
    }

    #[test]
    fn a_changed_or_repeated_datagram_is_dropped_and_an_overtaken_one_is_not() {
        let (mut sealer, mut opener) = ends();
        let all = [b"one", b"two"].map(|frame| sealed(&mut sealer, frame));
        assert!(!all[0].windows(3).any(|bytes| bytes == b"one"));
        for bit in 0..all[0].len() * 8 {
            let mut changed = all[0].clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(&mut changed), None, "bit {bit}");
        }
        assert_eq!(opener.open(&mut all[1].clone()), Some(&b"two"[..]));
        assert_eq!(opener.open(&mut all[0].clone()), Some(&b"one"[..]));
        assert_eq!(opener.open(&mut all[0].clone()), None, "it has arrived before");
        assert_eq!(opener.open(&mut all[1].clone()), None, "it has arrived before");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(ends().1.open(&mut bytes), None);
        }
    }
}
