//! Frame: the unit of transfer between a sender and a receiver (`spec/bulk.md`).
//!
//! ```text
//!  0        4      5       6      8         12       16         24         32       40        44        48
//! +--------+------+-------+------+---------+--------+----------+----------+--------+---------+---------+--
//! | "TBLK" | kind | flags | zero | session | length | transfer | sequence | offset | crc32c  | crc32c  | payload
//! | u8[4]  | u8   | u8    | u16  | u32     | u32    | u64      | u64      | u64    | payload | of 0-43 | u8[length]
//! +--------+------+-------+------+---------+--------+----------+----------+--------+---------+---------+--
//! ```
//! All numbers are little endian. The header always has its own checksum, so that a damaged length is never used. The
//! payload has a checksum if both ends agreed on it.

/// Length of a header in bytes.
pub const HEADER_LEN: usize = 48;

/// Longest payload of any frame, even by agreement, in bytes.
pub const LENGTH_LIMIT: u32 = 16 << 20;

const MAGIC: [u8; 4] = *b"TBLK";

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Start of a transfer; the payload is its parameter.
    Start = 0,
    /// Piece of a transfer's data.
    Data = 1,
    /// End of a transfer, without payload.
    Stop = 2,
    /// Abort of a transfer, without payload.
    Reset = 3,
    /// First frame of a connection, from the sender.
    Hello = 16,
    /// Acceptance by the receiver.
    Welcome = 17,
    /// Refusal by the receiver.
    Refuse = 18,
    /// The receiver's position.
    Ack = 19,
    /// Sign of life of a sender without data.
    Ping = 20,
    /// Data that is lost.
    Lost = 21,
    /// Fault at the receiver.
    Fault = 22,
    /// Missing frames at the receiver.
    Nack = 23,
    /// First frame of a protected connection, from the sender.
    KeyOffer = 24,
    /// The receiver's answer to it.
    KeyReply = 25,
}

impl Kind {
    /// All frame kinds.
    pub const ALL: [Kind; 14] = [
        Kind::Start,
        Kind::Data,
        Kind::Stop,
        Kind::Reset,
        Kind::Hello,
        Kind::Welcome,
        Kind::Refuse,
        Kind::Ack,
        Kind::Ping,
        Kind::Lost,
        Kind::Fault,
        Kind::Nack,
        Kind::KeyOffer,
        Kind::KeyReply,
    ];

    fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// Flag: the payload's checksum is in the header.
pub const CHECKED: u8 = 1;
/// Flag: the last frame of a block.
pub const END: u8 = 2;
/// Flag: the frame should be acknowledged at once.
pub const ASK: u8 = 4;

/// The header before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind of the frame.
    pub kind: Kind,
    /// [`CHECKED`], [`END`], [`ASK`]; bits of a later release are kept.
    pub flags: u8,
    /// The session of stream and flow: the number in the sender's Hello.
    pub session: u32,
    /// Length of the payload in bytes.
    pub length: u32,
    /// The number of the transfer; 0 for frames outside of transfers.
    pub transfer: u64,
    /// Number of the Start, Data or Stop frame of the flow in this incarnation of its sender, from 1. Of an Ack: the next
    /// expected one.
    pub sequence: u64,
    /// The payload's offset in the transfer's data, in bytes. Of a Stop: the length of all data. Of an Ack: the finished bytes.
    pub offset: u64,
    /// The payload's checksum, with [`CHECKED`]; else 0.
    pub crc: u32,
}

/// Error for bytes that are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// The bytes belong to another protocol, or begin inside a frame.
    #[error("invalid frame: wrong magic number")]
    Magic,
    /// The header was damaged on its way.
    #[error("wrong checksum of the frame's header")]
    Header,
    /// The kind belongs to a later release, or is invalid.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// The payload is longer than the agreed limit.
    #[error("the frame has a length of {length} bytes, but at most {limit} were agreed on")]
    TooLong {
        /// The length in the header, in bytes.
        length: u32,
        /// The agreed limit, in bytes.
        limit: u32,
    },
    /// The payload was damaged on its way.
    #[error("wrong checksum of the payload of frame {sequence}")]
    Payload {
        /// The number of the frame.
        sequence: u64,
    },
    /// The payload ends inside a field.
    #[error("the frame ends inside its {0}")]
    Short(&'static str),
    /// A record of a protected connection does not open.
    #[error("record {record} does not open: it was changed, repeated, moved or left out on its way")]
    Sealed {
        /// The number of the record in its direction, from 0.
        record: u64,
    },
    /// The length of a record was damaged, or the record is not the next one.
    #[error("wrong checksum of the length of record {record}: it was changed, repeated, moved or left out on its way")]
    RecordLength {
        /// The number of the expected record in its direction, from 0.
        record: u64,
    },
    /// A field has an invalid value.
    #[error("invalid {0} in the frame")]
    Senseless(&'static str),
}

impl Header {
    /// Makes a header of this kind that belongs to no transfer.
    pub fn of(kind: Kind) -> Header {
        Header { kind, flags: 0, session: 0, length: 0, transfer: 0, sequence: 0, offset: 0, crc: 0 }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4] = self.kind as u8;
        out[5] = self.flags;
        out[8..12].copy_from_slice(&self.session.to_le_bytes());
        out[12..16].copy_from_slice(&self.length.to_le_bytes());
        out[16..24].copy_from_slice(&self.transfer.to_le_bytes());
        out[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        out[32..40].copy_from_slice(&self.offset.to_le_bytes());
        out[40..44].copy_from_slice(&self.crc.to_le_bytes());
        let check = crc32c::crc32c(&out[..44]);
        out[44..48].copy_from_slice(&check.to_le_bytes());
        out
    }

    /// Decodes a header. `limit` is the agreed length limit of a payload.
    pub fn decode(bytes: &[u8; HEADER_LEN], limit: u32) -> Result<Header, BadFrame> {
        if bytes[..4] != MAGIC {
            return Err(BadFrame::Magic);
        }
        if crc32c::crc32c(&bytes[..44]) != u32_at(bytes, 44) {
            return Err(BadFrame::Header);
        }
        let kind = Kind::from_number(bytes[4]).ok_or(BadFrame::Kind(bytes[4]))?;
        let length = u32_at(bytes, 12);
        let limit = limit.min(LENGTH_LIMIT);
        if length > limit {
            return Err(BadFrame::TooLong { length, limit });
        }
        Ok(Header {
            kind,
            flags: bytes[5],
            session: u32_at(bytes, 8),
            length,
            transfer: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            offset: u64_at(bytes, 32),
            crc: u32_at(bytes, 40),
        })
    }

    /// Returns the header with the length of this payload and, if `checked`, its checksum.
    pub fn over(mut self, payload: &[u8], checked: bool) -> Header {
        // Callers cut payloads to what was agreed on, far below 4 GiB.
        self.length = payload.len() as u32;
        if checked {
            self.flags |= CHECKED;
            self.crc = crc32c::crc32c(payload);
        }
        self
    }

    /// Checks the payload against its checksum, if it has one.
    pub fn check(&self, payload: &[u8]) -> Result<(), BadFrame> {
        if self.flags & CHECKED != 0 && crc32c::crc32c(payload) != self.crc {
            return Err(BadFrame::Payload { sequence: self.sequence });
        }
        Ok(())
    }

    /// Returns true if this flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn u32_at(bytes: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER_LEN], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_that_nobody_agreed_on_is_refused_and_a_changed_header_too() {
        let header = Header { length: 1000, ..Header::of(Kind::Data) };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes, 1000), Ok(header));
        assert_eq!(Header::decode(&bytes, 999), Err(BadFrame::TooLong { length: 1000, limit: 999 }));
        let long = Header { length: u32::MAX, ..header }.encode();
        assert_eq!(Header::decode(&long, u32::MAX), Err(BadFrame::TooLong { length: u32::MAX, limit: LENGTH_LIMIT }));
        for bit in 0..HEADER_LEN * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&changed, 1000).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_kind_of_a_later_release_is_told_by_its_number() {
        let mut bytes = Header::of(Kind::Ping).encode();
        bytes[4] = 99;
        let check = crc32c::crc32c(&bytes[..44]);
        bytes[44..].copy_from_slice(&check.to_le_bytes());
        assert_eq!(Header::decode(&bytes, 0), Err(BadFrame::Kind(99)));
    }

    #[test]
    fn a_changed_payload_is_found_where_it_is_checked() {
        let header = Header::of(Kind::Data).over(b"abc", true);
        assert_eq!(header.check(b"abc"), Ok(()));
        assert_eq!(header.check(b"abd"), Err(BadFrame::Payload { sequence: 0 }));
        assert_eq!(Header::of(Kind::Data).over(b"abc", false).check(b"abd"), Ok(()));
    }

    proptest! {
        #[test]
        fn headers_lead_back(
            kind in 0..Kind::ALL.len(), flags: u8, session: u32, length in 0..=LENGTH_LIMIT, transfer: u64, sequence: u64, offset: u64,
            crc: u32,
        ) {
            let header = Header { kind: Kind::ALL[kind], flags, session, length, transfer, sequence, offset, crc };
            prop_assert_eq!(Header::decode(&header.encode(), LENGTH_LIMIT), Ok(header));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: [u8; HEADER_LEN], limit: u32) {
            if let Ok(header) = Header::decode(&bytes, limit) {
                prop_assert!(header.length <= limit);
            }
        }
    }
}
