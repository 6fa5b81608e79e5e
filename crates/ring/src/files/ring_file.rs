//! The fixed part of a ring's file: its kind and its size.
//!
//! ```text
//!  0  u8[8] 'TAMPULRG'
//!  8  u32 mark 0x01020304        in the order of the host that wrote it, as all numbers here
//! 12  u16 version 1   u16 0
//! 16  u32 length of the header: the data begin there
//! 20  u32 number of the ring
//! 24  u64 bytes of data          a power of two
//! 32  u8[16] incarnation
//! 48  u32 CRC-32C of the bytes before
//! ```

use tampu_types::Incarnation;

use crate::header::HEADER_LEN;

/// First bytes of a ring's file.
pub(crate) const MAGIC: [u8; 8] = *b"TAMPULRG";
/// Mark of the byte order of numbers.
pub(crate) const MARK: u32 = 0x0102_0304;
pub(crate) const VERSION: u16 = 1;
/// Bytes of the fixed part.
pub(crate) const FIXED_LEN: usize = 52;
/// The smallest ring.
pub const SMALLEST: u64 = 4096;
/// The largest ring.
pub const LARGEST: u64 = 1 << 30;
const LONGEST_HEADER: u32 = 1 << 20;

/// Fixed part of a ring's file: sizes and identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingFile {
    /// Offset of the data in bytes: a multiple of the page size of the writer's host.
    pub header: u32,
    /// The ring's number within its process.
    pub number: u32,
    /// Bytes of data.
    pub size: u64,
    /// The life it belongs to.
    pub incarnation: Incarnation,
}

/// Error of bytes that are not a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRing {
    /// Too short even for a header.
    #[error("a ring has at least {HEADER_LEN} bytes, this file has {0}")]
    Short(u64),
    /// The file begins with other bytes.
    #[error("byte 0: it does not begin as a ring does")]
    Magic,
    /// A file of another host.
    #[error("byte 8: its numbers are in another host's byte order (mark {0:#010x})")]
    Order(u32),
    /// A file of a later release.
    #[error("byte 12: version {0}, this release reads version {VERSION}")]
    Version(u16),
    /// The header was changed.
    #[error("byte 48: the checksum of the header does not match")]
    Checksum,
    /// The sizes make no sense, or do not match the file.
    #[error("byte 16: a header of {header} and {size} bytes of data do not make a file of {length}")]
    Size {
        /// Length of the header, as the file states it.
        header: u32,
        /// Bytes of data, as the file states them.
        size: u64,
        /// Bytes of the file.
        length: u64,
    },
    /// The writer's and the drainer's words contradict each other.
    #[error("byte 128: published up to {head}, handed off up to {position}, in a ring of {size} bytes")]
    Words {
        /// Up to where records are complete.
        head: u64,
        /// Up to where they have been handed off.
        position: u64,
        /// Bytes of data.
        size: u64,
    },
    /// A damaged record; later records of this ring cannot be found.
    #[error("byte {offset}: {flaw}; {unread} bytes from there on are unreadable")]
    Record {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Defect of the record.
        flaw: crate::record::Flaw,
        /// Number of unreadable bytes.
        unread: u64,
    },
}

impl RingFile {
    /// Encodes the fixed part for the file.
    pub fn encode(&self) -> [u8; FIXED_LEN] {
        let mut bytes = [0; FIXED_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&MARK.to_ne_bytes());
        bytes[12..14].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.header.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.number.to_ne_bytes());
        bytes[24..32].copy_from_slice(&self.size.to_ne_bytes());
        bytes[32..48].copy_from_slice(&self.incarnation.to_bytes());
        let checksum = crc32c::crc32c(&bytes[..48]);
        bytes[48..].copy_from_slice(&checksum.to_ne_bytes());
        bytes
    }

    /// Reads the beginning of a file of this length.
    pub fn decode(bytes: &[u8], length: u64) -> Result<RingFile, BadRing> {
        let fixed: &[u8; FIXED_LEN] = bytes.first_chunk().ok_or(BadRing::Short(length))?;
        if length < HEADER_LEN as u64 {
            return Err(BadRing::Short(length));
        }
        let half = |at: usize| u32::from_ne_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let version = u16::from_ne_bytes([fixed[12], fixed[13]]);
        if fixed[..8] != MAGIC {
            return Err(BadRing::Magic);
        } else if half(8) != MARK {
            return Err(BadRing::Order(half(8)));
        } else if version != VERSION {
            return Err(BadRing::Version(version));
        } else if half(48) != crc32c::crc32c(&fixed[..48]) {
            return Err(BadRing::Checksum);
        }
        let (mut size, mut life) = ([0; 8], [0; 16]);
        size.copy_from_slice(&fixed[24..32]);
        life.copy_from_slice(&fixed[32..48]);
        let (header, size) = (half(16), u64::from_ne_bytes(size));
        let possible = (SMALLEST..=LARGEST).contains(&size) && size.is_power_of_two();
        let headed = (HEADER_LEN as u32..=LONGEST_HEADER).contains(&header) && header.is_multiple_of(8);
        if !possible || !headed || u64::from(header) + size != length {
            return Err(BadRing::Size { header, size, length });
        }
        Ok(RingFile { header, number: half(20), size, incarnation: Incarnation::from_bytes(life) })
    }
}
