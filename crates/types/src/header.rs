//! The header before every batch: writer, stream, numbers, type, times and the quality of the clock.
//!
//! ```text
//!   0  u8[2] 'T' 'B'     u8 layout = 1      u8 flags (0)
//!   4  u16 header length u8 clock state     u8 reserved (0)
//!   8  u32 type id
//!  12  u16 type version  i16 TAI - UTC in seconds (0: unknown)
//!  16  u8[16] incarnation (boot, pid, start)
//!  32  u32 stream        u32 count of samples
//!  40  u64 number of the first sample in its stream
//!  48  i64 acquired: when the first sample was written, ns UTC
//!  56  i64 sent: when the batch was sealed, ns UTC
//!  64  u32 body length   u8 domain length  u8 source length  u16 reserved (0)
//!  72  domain, source (UTF-8), zeros up to the header length, a multiple of 8
//!      body
//! ```
//! All numbers are little endian. A later layout may lengthen the header: readers use its length and skip unknown
//! members. The body begins at a multiple of 8 from the header's start. Contract: `spec/wire/batch-header.md`.

use crate::{
    identity::{Domain, Incarnation, SourceName},
    time::{ClockState, Time},
};

const FIXED: usize = 72;

/// Header of every batch on the wire and in the write-ahead segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchHeader {
    /// Name of the installation.
    pub domain: Domain,
    /// The writer's stable name.
    pub source: SourceName,
    /// The writer's life.
    pub incarnation: Incarnation,
    /// The stream within that life: one topic and partition of one writer.
    pub stream: u32,
    /// Sequence number of the first sample, counted from 0 per stream.
    pub first: u64,
    /// Number of samples in the batch.
    pub count: u32,
    /// Type of the samples; see `spec/types.md`.
    pub type_id: u32,
    /// Release of that type.
    pub type_version: u16,
    /// Time at which the first sample was handed to the writer.
    pub acquired: Time,
    /// Time at which the batch was sealed.
    pub sent: Time,
    /// Trust in both times.
    pub clock: ClockState,
    /// TAI - UTC in seconds, 0 where unknown.
    pub tai_offset: i16,
    /// Bits a later release may define; 0 now.
    pub flags: u8,
}

/// Error of bytes that are not a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Fewer bytes than the header or the body it announces.
    #[error("the batch ends after {have} bytes, {need} are announced")]
    Short {
        /// Bytes there are.
        have: usize,
        /// Bytes there should be.
        need: usize,
    },
    /// Not a batch, or one of a layout this release cannot read.
    #[error("no batch begins here: found {0:02x?}, expected 'T' 'B' and layout 1")]
    Foreign([u8; 3]),
    /// A length that contradicts another.
    #[error("the header's {0} contradicts its length")]
    Inconsistent(&'static str),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] crate::identity::BadName),
}

impl BatchHeader {
    /// Length of the encoded header, a multiple of 8.
    pub fn encoded_len(&self) -> usize {
        (FIXED + self.domain.as_str().len() + self.source.as_str().len()).next_multiple_of(8)
    }

    /// Appends the header for a body of this length.
    pub fn encode(&self, body_len: u32, out: &mut Vec<u8>) {
        let start = out.len();
        let header_len = self.encoded_len();
        out.extend_from_slice(&[b'T', b'B', 1, self.flags]);
        out.extend_from_slice(&(header_len as u16).to_le_bytes());
        out.extend_from_slice(&[self.clock as u8, 0]);
        out.extend_from_slice(&self.type_id.to_le_bytes());
        out.extend_from_slice(&self.type_version.to_le_bytes());
        out.extend_from_slice(&self.tai_offset.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_bytes());
        out.extend_from_slice(&self.stream.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.acquired.0.to_le_bytes());
        out.extend_from_slice(&self.sent.0.to_le_bytes());
        out.extend_from_slice(&body_len.to_le_bytes());
        // Names are at most 200 bytes, so their lengths fit a byte and the header's fits sixteen bits.
        out.extend_from_slice(&[self.domain.as_str().len() as u8, self.source.as_str().len() as u8, 0, 0]);
        out.extend_from_slice(self.domain.as_str().as_bytes());
        out.extend_from_slice(self.source.as_str().as_bytes());
        out.resize(start + header_len, 0);
    }

    /// The header's bytes of a batch that this release has encoded.
    pub fn of_encoded(batch: &[u8]) -> &[u8] {
        let length = batch.get(4..6).map_or(0, |bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
        &batch[..length.min(batch.len())]
    }

    /// Sets a flag in an encoded header.
    pub fn set_flag(header: &mut [u8], flag: u8) {
        header[3] |= flag;
    }

    /// Clears the flags in an encoded header.
    pub fn clear_flags(header: &mut [u8]) {
        header[3] = 0;
    }

    /// Sets the length of the body in an encoded header.
    pub fn set_body_len(header: &mut [u8], length: u32) {
        header[64..68].copy_from_slice(&length.to_le_bytes());
    }

    /// Reads a header; returns it with the body that follows. Bytes after the body are ignored.
    pub fn decode(bytes: &[u8]) -> Result<(BatchHeader, &[u8]), BadHeader> {
        let Some(fixed) = bytes.first_chunk::<FIXED>() else {
            return Err(BadHeader::Short { have: bytes.len(), need: FIXED });
        };
        if fixed[..3] != [b'T', b'B', 1] {
            return Err(BadHeader::Foreign([fixed[0], fixed[1], fixed[2]]));
        }
        let u16_at = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let header_len = usize::from(u16_at(4));
        let body_len = u32_at(fixed, 64) as usize;
        let domain_len = usize::from(fixed[68]);
        let source_len = usize::from(fixed[69]);
        if header_len < FIXED + domain_len + source_len || header_len % 8 != 0 {
            return Err(BadHeader::Inconsistent("names"));
        }
        let need = header_len + body_len;
        if bytes.len() < need {
            return Err(BadHeader::Short { have: bytes.len(), need });
        }
        let name = |from: usize, len: usize| String::from_utf8_lossy(&bytes[from..from + len]).into_owned();
        let mut incarnation = [0; 16];
        incarnation.copy_from_slice(&fixed[16..32]);
        let header = BatchHeader {
            domain: Domain::new(name(FIXED, domain_len))?,
            source: SourceName::new(name(FIXED + domain_len, source_len))?,
            incarnation: Incarnation::from_bytes(incarnation),
            stream: u32_at(fixed, 32),
            first: u64_at(fixed, 40),
            count: u32_at(fixed, 36),
            type_id: u32_at(fixed, 8),
            type_version: u16_at(12),
            acquired: Time(u64_at(fixed, 48) as i64),
            sent: Time(u64_at(fixed, 56) as i64),
            clock: ClockState::from_number(fixed[6]),
            tai_offset: u16_at(14) as i16,
            flags: fixed[3],
        };
        if header.first.checked_add(u64::from(header.count)).is_none() {
            return Err(BadHeader::Inconsistent("sequence"));
        }
        Ok((header, &bytes[header_len..need]))
    }

    /// The number after the batch's last sample.
    pub fn next(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

fn u32_at(bytes: &[u8; FIXED], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8; FIXED], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            domain: Domain::new("alma").unwrap(),
            source: SourceName::new("CONTROL/DV01").unwrap(),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            stream: 4,
            first: 5,
            count: 6,
            type_id: 7,
            type_version: 1,
            acquired: Time(8),
            sent: Time(9),
            clock: ClockState::Synchronised,
            tai_offset: 37,
            flags: 0,
        }
    }

    #[test]
    fn a_longer_header_of_a_later_release_is_read() {
        let mut bytes = Vec::new();
        header().encode(3, &mut bytes);
        bytes.extend_from_slice(b"abc");
        assert_eq!(BatchHeader::decode(&bytes), Ok((header(), &b"abc"[..])));

        let longer = bytes.len() as u16 - 3 + 8;
        bytes[4..6].copy_from_slice(&longer.to_le_bytes());
        let body = bytes.len() - 3;
        bytes.splice(body..body, [0xee; 8]);
        assert_eq!(BatchHeader::decode(&bytes), Ok((header(), &b"abc"[..])));
    }

    proptest! {
        #[test]
        fn cut_and_garbled_headers_are_errors_never_panics(cut in 0usize..96, at in 0usize..96, byte: u8) {
            let mut bytes = Vec::new();
            header().encode(0, &mut bytes);
            bytes[at % 88] = byte;
            let _ = BatchHeader::decode(&bytes);
            bytes.truncate(cut);
            if cut < 72 {
                prop_assert!(BatchHeader::decode(&bytes).is_err());
            }
        }
    }
}
