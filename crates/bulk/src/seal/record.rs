//! A record: one frame on a protected connection.
//!
//! ```text
//! 0        4        8                    8 + length - 16
//! +--------+--------+--------------------+--------------+
//! | length | crc32c | header and payload | tag          |
//! | u32    | u32    | encrypted          | u8[16]       |
//! +--------+--------+--------------------+--------------+
//! ```
//! The tag covers the first 8 bytes too. Its nonce has the record's number, which is not sent. The checksum covers the
//! length and this number: a damaged length is found at once, and not after the bytes that it announces.

use super::{Cipher, Half, LEAST, SealError, TAG};
use crate::frame::{BadFrame, HEADER_LEN, Header};

/// Length of the fields before a record's frame, in bytes.
pub const PREFIX: usize = 8;

/// Seals the frames of one direction.
pub struct RecordSealer {
    cipher: Cipher,
    number: u64,
}

/// Opens the records of one direction.
pub struct RecordOpener {
    cipher: Cipher,
    number: u64,
}

fn prefix(length: u32, number: u64) -> [u8; PREFIX] {
    let mut bytes = [0; PREFIX];
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..].copy_from_slice(&check(length, number).to_le_bytes());
    bytes
}

fn check(length: u32, number: u64) -> u32 {
    let mut covered = [0; 12];
    covered[..4].copy_from_slice(&length.to_le_bytes());
    covered[4..].copy_from_slice(&number.to_le_bytes());
    crc32c::crc32c(&covered)
}

impl RecordSealer {
    /// Makes a sealer whose next record is the first.
    pub fn new(half: &Half) -> Result<RecordSealer, SealError> {
        Ok(RecordSealer { cipher: half.cipher()?, number: 0 })
    }

    /// Appends a frame as the next record. Callers keep payloads below the limit of a frame.
    pub fn seal(&mut self, head: &[u8; HEADER_LEN], payload: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let length = (HEADER_LEN + payload.len() + TAG) as u32;
        let from = out.len();
        out.reserve(PREFIX + HEADER_LEN + payload.len() + TAG);
        out.extend_from_slice(&prefix(length, self.number));
        out.extend_from_slice(head);
        out.extend_from_slice(payload);
        self.cipher.seal(self.number, out, from, from + PREFIX)?;
        self.number += 1;
        Ok(())
    }
}

impl RecordOpener {
    /// Makes an opener whose next record is the first.
    pub fn new(half: &Half) -> Result<RecordOpener, SealError> {
        Ok(RecordOpener { cipher: half.cipher()?, number: 0 })
    }

    /// Returns the length of the next record behind its prefix. `limit` is the limit of a payload.
    pub fn length(&self, prefix: &[u8; PREFIX], limit: u32) -> Result<usize, BadFrame> {
        let [a, b, c, d, e, f, g, h] = *prefix;
        let length = u32::from_le_bytes([a, b, c, d]);
        if u32::from_le_bytes([e, f, g, h]) != check(length, self.number) {
            return Err(BadFrame::RecordLength { record: self.number });
        }
        let length = length as usize;
        match length.checked_sub(LEAST) {
            None => Err(BadFrame::Short("record")),
            Some(payload) if payload > limit.min(crate::frame::LENGTH_LIMIT) as usize => {
                Err(BadFrame::TooLong { length: payload.try_into().unwrap_or(u32::MAX), limit })
            }
            Some(_) => Ok(length),
        }
    }

    /// Opens the next record, which begins with its prefix, in place. Returns the header; the payload lies behind it. A
    /// connection with an error is of no more use.
    pub fn open(&mut self, record: &mut [u8], limit: u32) -> Result<Header, BadFrame> {
        let number = self.number;
        if !self.cipher.open(number, record, PREFIX) {
            return Err(BadFrame::Sealed { record: number });
        }
        self.number += 1;
        let head = record[PREFIX..].first_chunk::<HEADER_LEN>().ok_or(BadFrame::Short("header"))?;
        let header = Header::decode(head, limit)?;
        if header.length as usize != record.len() - PREFIX - LEAST {
            return Err(BadFrame::Senseless("length"));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::LinkKeys, *};
    use crate::{frame::Kind, message::Token};

    const LIMIT: u32 = 1 << 20;

    fn ends() -> (RecordSealer, RecordOpener) {
        let keys = LinkKeys::derive(&[3; 32], &Token([7; 16]), &[5; 32]).unwrap();
        (RecordSealer::new(&keys.sender).unwrap(), RecordOpener::new(&keys.sender).unwrap())
    }

    fn record(sealer: &mut RecordSealer, kind: Kind, payload: &[u8]) -> Vec<u8> {
        let header = Header::of(kind).over(payload, false);
        let mut out = Vec::new();
        sealer.seal(&header.encode(), payload, &mut out).unwrap();
        out
    }

    fn open(opener: &mut RecordOpener, record: &[u8]) -> Result<(Kind, Vec<u8>), BadFrame> {
        let length = opener.length(record.first_chunk().ok_or(BadFrame::Short("prefix"))?, LIMIT)?;
        let mut bytes = record.get(..PREFIX + length).ok_or(BadFrame::Short("record"))?.to_vec();
        let header = opener.open(&mut bytes, LIMIT)?;
        Ok((header.kind, bytes[PREFIX + HEADER_LEN..bytes.len() - TAG].to_vec()))
    }

    #[test]
    fn every_changed_bit_is_found() {
        let sealed = record(&mut ends().0, Kind::Data, b"spectra");
        assert_eq!(open(&mut ends().1, &sealed), Ok((Kind::Data, b"spectra".to_vec())));
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&mut ends().1, &changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn records_open_once_and_in_order() {
        let (mut sealer, mut opener) = ends();
        let all: Vec<Vec<u8>> = (0..3u8).map(|number| record(&mut sealer, Kind::Data, &[number])).collect();
        assert_eq!(open(&mut opener, &all[0]).unwrap().1, [0]);
        for wrong in [&all[0], &all[2]] {
            assert_eq!(open(&mut opener, wrong), Err(BadFrame::RecordLength { record: 1 }));
            // Somebody who mends the checksum of the length gains nothing.
            let mut mended = wrong.clone();
            let length = u32::from_le_bytes(mended[..4].try_into().unwrap());
            mended[..PREFIX].copy_from_slice(&prefix(length, 1));
            assert_eq!(open(&mut opener, &mended), Err(BadFrame::Sealed { record: 1 }));
        }
        assert_eq!(open(&mut opener, &all[1]).unwrap().1, [1]);
        assert_eq!(open(&mut opener, &all[2]).unwrap().1, [2]);
    }

    #[test]
    fn a_direction_or_another_token_does_not_open_it() {
        let keys = |token| LinkKeys::derive(&[3; 32], &Token([token; 16]), &[5; 32]).unwrap();
        let sealed = record(&mut ends().0, Kind::Data, b"spectra");
        for half in [keys(7).receiver, keys(7).datagrams, keys(8).sender] {
            let mut opener = RecordOpener::new(&half).unwrap();
            assert_eq!(open(&mut opener, &sealed), Err(BadFrame::Sealed { record: 0 }));
        }
    }

    #[test]
    fn an_announced_length_is_believed_within_the_limit_alone() {
        let opener = ends().1;
        assert_eq!(opener.length(&prefix(63, 0), 100), Err(BadFrame::Short("record")));
        assert_eq!(opener.length(&prefix(64, 0), 100), Ok(64));
        assert_eq!(opener.length(&prefix(164, 0), 100), Ok(164));
        assert_eq!(opener.length(&prefix(165, 0), 100), Err(BadFrame::TooLong { length: 101, limit: 100 }));
        assert!(matches!(opener.length(&prefix(u32::MAX, 0), u32::MAX), Err(BadFrame::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn records_lead_back(payloads in proptest::collection::vec((0usize..12, proptest::collection::vec(any::<u8>(), 0..300)), 1..8)) {
            let (mut sealer, mut opener) = ends();
            for (kind, payload) in payloads {
                let kind = Kind::ALL[kind];
                let sealed = record(&mut sealer, kind, &payload);
                prop_assert_eq!(open(&mut opener, &sealed), Ok((kind, payload)));
            }
        }

        #[test]
        fn any_bytes_are_read_without_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), limit: u32) {
            let mut opener = ends().1;
            if let Some(prefix) = bytes.first_chunk() {
                let _ = opener.length(prefix, limit);
            }
            prop_assert!(opener.open(&mut bytes, limit).is_err());
        }
    }
}
