//! Datagrams of a group: sealed pieces of messages, beacons of their source, and reports of its members. See
//! `spec/wire/group.md`.

use ring::{
    aead,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};

use crate::wire::cursor::{BadMessage, Cursor};

/// Length of the part in front that is not sealed.
pub const HEAD: usize = 20;
/// Length of the tag behind the sealed part.
pub const TAG: usize = 16;
/// Length of the fields before the bytes of a piece.
pub const PIECE: usize = 12;
/// Most ranges of missing datagrams that a report names.
pub const RANGES: usize = 64;

const VERSION: u8 = 1;
/// Numbers of beacons begin here. Those of pieces are below, so no two datagrams of a key have one number.
const BEACONS: u64 = 1 << 63;
/// Numbers of reports begin here, with 40 bits for each member.
const REPORTS: u64 = 1 << 62;

/// The key of a group's source, with the number that datagrams name it by.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Number of the key.
    pub epoch: u64,
    /// Bytes of the key.
    pub secret: [u8; 32],
}

/// Part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Position among the pieces of its message. The number of the message is that of its first piece.
    pub index: u32,
    /// Position of its bytes in the message.
    pub offset: u32,
    /// Length of the message.
    pub total: u32,
    /// Bytes of the message from the offset on.
    pub bytes: &'a [u8],
}

/// Word of a member about what it has received from a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The number after the highest datagram received.
    pub seen: u64,
    /// Count of the datagrams that did not come at first.
    pub lost: u64,
    /// Room of the member's socket, bytes.
    pub room: u32,
    /// Length of the longest datagram that came lately. The largest number stands for a member of an earlier release.
    pub longest: u32,
    /// Missing datagrams that the member requests: the first of each range, and their count.
    pub missing: Vec<(u64, u32)>,
}

/// Content of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// A piece of a message, with the datagram's number.
    Piece(u64, Piece<'a>),
    /// Word of a source: the number of its next datagram, and the oldest that it can send again.
    Beacon {
        /// Number of the next datagram.
        next: u64,
        /// Number of the oldest datagram that can be sent again.
        lowest: u64,
    },
    /// Word of a member, with the number that its source gave it.
    Report(u16, Report),
}

impl Key {
    /// Makes a new key.
    pub fn random() -> Option<Key> {
        let mut bytes = [0; 40];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let (epoch, secret) = bytes.split_at(8);
        Some(Key { epoch: u64::from_le_bytes(epoch.try_into().ok()?), secret: secret.try_into().ok()? })
    }

    fn cipher(&self) -> Option<aead::LessSafeKey> {
        aead::UnboundKey::new(&aead::AES_256_GCM, &self.secret).ok().map(aead::LessSafeKey::new)
    }
}

/// Sealer and opener of datagrams under one key.
pub struct Seal {
    epoch: u64,
    cipher: aead::LessSafeKey,
}

fn nonce(number: u64) -> aead::Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    aead::Nonce::assume_unique_for_key(nonce)
}

impl Seal {
    /// Makes the seal of a key.
    pub fn new(key: &Key) -> Option<Seal> {
        Some(Seal { epoch: key.epoch, cipher: key.cipher()? })
    }

    /// Returns the sealed datagram of a piece with this number.
    pub fn piece(&self, number: u64, piece: &Piece<'_>) -> Vec<u8> {
        self.sealed(1, number, PIECE + piece.bytes.len(), |out| {
            [piece.index, piece.offset, piece.total].iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
            out.extend_from_slice(piece.bytes);
        })
    }

    /// Returns a sealed beacon. `count` is that of the beacons before. Zeros fill it up to `length`.
    pub fn beacon(&self, count: u64, next: u64, lowest: u64, length: usize) -> Vec<u8> {
        self.sealed(2, BEACONS | count, length.saturating_sub(HEAD + TAG).max(16), |out| {
            [next, lowest].iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
            out.resize(length.saturating_sub(TAG).max(out.len()), 0);
        })
    }

    /// Returns a sealed report of a member. `count` is that of its reports before.
    pub fn report(&self, member: u16, count: u64, report: &Report) -> Vec<u8> {
        self.sealed(3, REPORTS | u64::from(member) << 40 | (count & ((1 << 40) - 1)), 64, |out| {
            [report.seen, report.lost].iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
            out.extend_from_slice(&report.room.to_le_bytes());
            let ranges = &report.missing[..report.missing.len().min(RANGES)];
            out.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
            for (from, count) in ranges {
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
            }
            out.extend_from_slice(&report.longest.to_le_bytes());
        })
    }

    fn sealed(&self, kind: u8, number: u64, room: usize, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + room + TAG);
        out.extend_from_slice(&[b'T', b'G', VERSION, kind]);
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        body(&mut out);
        let (head, rest) = out.split_at_mut(HEAD);
        match self.cipher.seal_in_place_separate_tag(nonce(number), aead::Aad::from(&*head), rest) {
            Ok(tag) => out.extend_from_slice(tag.as_ref()),
            // It fails for gigabytes only. The empty datagram is refused.
            Err(_) => out.clear(),
        }
        out
    }

    /// Opens a datagram in place and returns its content, if it was sealed with this key.
    pub fn open<'a>(&self, datagram: &'a mut [u8]) -> Result<Content<'a>, BadMessage> {
        let (kind, epoch, number) = head(datagram)?;
        if epoch != self.epoch {
            return Err(BadMessage::Senseless("key"));
        }
        let (head, rest) = datagram.split_at_mut(HEAD);
        let opened = self.cipher.open_in_place(nonce(number), aead::Aad::from(&*head), rest);
        decode(kind, number, opened.map_err(|_| BadMessage::Senseless("seal"))?)
    }
}

/// Returns the kind of a datagram, the number of its key, and its own number.
pub fn head(datagram: &[u8]) -> Result<(u8, u64, u64), BadMessage> {
    let mut cursor = Cursor::new(datagram);
    if cursor.bytes(3, "kind")? != [b'T', b'G', VERSION] {
        return Err(BadMessage::Senseless("kind"));
    }
    Ok((cursor.u8("kind")?, cursor.u64("key")?, cursor.u64("number")?))
}

/// Decodes the opened part of a datagram.
pub fn decode(kind: u8, number: u64, body: &[u8]) -> Result<Content<'_>, BadMessage> {
    let mut cursor = Cursor::new(body);
    match kind {
        1 if number < REPORTS => {
            let (index, offset, total) = (cursor.u32("index")?, cursor.u32("offset")?, cursor.u32("total")?);
            let bytes = &body[PIECE..];
            let fits = u64::from(offset) + bytes.len() as u64 <= u64::from(total);
            if !fits || bytes.is_empty() || u64::from(index) > number {
                return Err(BadMessage::Senseless("piece"));
            }
            Ok(Content::Piece(number, Piece { index, offset, total, bytes }))
        }
        2 if number & BEACONS != 0 => {
            let (next, lowest) = (cursor.u64("next")?, cursor.u64("lowest")?);
            if lowest <= next && next < REPORTS {
                return Ok(Content::Beacon { next, lowest });
            }
            Err(BadMessage::Senseless("beacon"))
        }
        3 if number & (BEACONS | REPORTS) == REPORTS => {
            let (seen, lost, room) = (cursor.u64("seen")?, cursor.u64("lost")?, cursor.u32("room")?);
            let count = cursor.u32("ranges")? as usize;
            if count > RANGES {
                return Err(BadMessage::Senseless("ranges"));
            }
            let range = |cursor: &mut Cursor<'_>| Ok((cursor.u64("range")?, cursor.u32("range")?));
            let missing = (0..count).map(|_| range(&mut cursor)).collect::<Result<Vec<_>, BadMessage>>()?;
            let longest = cursor.u32("longest").unwrap_or(u32::MAX);
            Ok(Content::Report((number >> 40) as u16, Report { seen, lost, room, longest, missing }))
        }
        _ => Err(BadMessage::Senseless("kind")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seal(byte: u8) -> Seal {
        Seal::new(&Key { epoch: 0x1122, secret: [byte; 32] }).unwrap()
    }

    proptest! {
        #[test]
        fn datagrams_lead_back(number in 0u64..1 << 40, index in 0u32..9, bytes in proptest::collection::vec(any::<u8>(), 1..50)) {
            let seal = seal(7);
            let number = number + u64::from(index);
            let piece = Piece { index, offset: 3, total: 100, bytes: &bytes };
            let mut sealed = seal.piece(number, &piece);
            prop_assert_eq!(seal.open(&mut sealed), Ok(Content::Piece(number, piece)));
            let beacon = Content::Beacon { next: number, lowest: number / 2 };
            let mut sealed = seal.beacon(5, number, number / 2, 40 * bytes.len());
            prop_assert_eq!(sealed.len(), (40 * bytes.len()).max(HEAD + 16 + TAG));
            prop_assert_eq!(seal.open(&mut sealed), Ok(beacon));
            let report = Report { seen: number, lost: 4, room: 5, longest: 6, missing: vec![(number, index); bytes.len()] };
            let mut sealed = seal.report(9, number, &report);
            prop_assert_eq!(seal.open(&mut sealed), Ok(Content::Report(9, report)));
        }

        #[test]
        fn changed_datagrams_do_not_open(at in 0usize..60, change in 1u8..) {
            let mut bytes = seal(7).piece(4, &Piece { index: 1, offset: 3, total: 20, bytes: &[9; 12] });
            bytes[at] ^= change;
            prop_assert!(seal(7).open(&mut bytes).is_err());
        }

        #[test]
        fn hostile_bodies_are_errors(kind in 0u8..5, number: u64, body in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(Content::Piece(number, piece)) = decode(kind, number, &body) {
                prop_assert!(u64::from(piece.index) <= number && piece.offset as usize + piece.bytes.len() <= piece.total as usize);
            }
        }
    }

    #[test]
    fn another_key_opens_nothing() {
        let mut bytes = seal(7).beacon(0, 1, 0, 0);
        assert!(seal(8).open(&mut bytes.clone()).is_err());
        assert!(seal(7).open(&mut bytes).is_ok());
        assert!(seal(7).open(&mut []).is_err());
    }
}
