//! Files of frames: the header of such a file, and the envelope of a frame in it.
//!
//! Write-ahead segments and a node's spool are such files. Both begin with the same header:
//!
//! ```text
//!  0  u8[8] magic            u16 version    u16 header length (a multiple of 8)
//! 12  u32 CRC-32C of the header with these four bytes zero
//! 16  u64 number             i64 created, ns UTC
//! 32  u8 domain length       u8[7] reserved (0)
//! 40  domain (UTF-8), zeros up to the header length; frames, each at a multiple of 8
//! ```
//!
//! Both have frames that begin alike. Fields of its own follow in each kind of frame:
//!
//! ```text
//!  0  u8[4] marker           u32 CRC-32C of everything from byte 8 to the frame's end
//!  8  u32 length of the frame    u8 kind   u8 reserved (0)   u16 header length
//! ```
//!
//! All numbers are little endian. The marker makes the next frame findable behind a damaged one. Contracts:
//! `spec/log-segment.md` and `spec/log-spool.md`.

use tampu_types::{Domain, Time};

const FIXED: usize = 40;
/// Longest frame that a reader accepts, in bytes. A longer length is damage.
pub const LONGEST: usize = 256 << 20;

/// A kind of files of frames.
#[derive(Debug)]
pub struct FileKind {
    /// First bytes of a file.
    pub magic: [u8; 8],
    /// Version that this release writes, and the only one that it reads.
    pub version: u16,
    /// Text before the number in a file's name: `spool-` gives `spool-00000012.wal`.
    pub prefix: &'static str,
}

/// Reason why a file's header is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// The file begins with another magic.
    #[error("it does not begin as such a file does")]
    Foreign,
    /// The header is too short, or its checksum is wrong.
    #[error("its header is cut off or damaged")]
    Damaged,
    /// A later release wrote the file.
    #[error("it is of version {found}; this release reads version {known}")]
    Later {
        /// Version of the file.
        found: u16,
        /// Version of this release.
        known: u16,
    },
    /// The file belongs to another domain.
    #[error("it belongs to domain '{0}'")]
    OtherDomain(String),
}

impl FileKind {
    /// Returns the name of file `number`.
    pub fn file_name(&self, number: u64) -> String {
        format!("{}{number:08}.wal", self.prefix)
    }

    /// Returns the number in a file's name, or `None` if the name is not of this kind.
    pub fn number_of(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.prefix)?.strip_suffix(".wal")?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    /// Returns the header of a new file.
    pub fn encode_header(&self, number: u64, created: Time, domain: &Domain) -> Vec<u8> {
        let name = domain.as_str().as_bytes();
        let length = (FIXED + name.len()).next_multiple_of(8);
        let mut header = Vec::with_capacity(length);
        header.extend_from_slice(&self.magic);
        header.extend_from_slice(&self.version.to_le_bytes());
        header.extend_from_slice(&(length as u16).to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&number.to_le_bytes());
        header.extend_from_slice(&created.0.to_le_bytes());
        // A domain has at most 200 bytes.
        header.extend_from_slice(&[name.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
        header.extend_from_slice(name);
        header.resize(length, 0);
        let sum = crc32c::crc32c(&header);
        header[12..16].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Checks the header at the start of `bytes`; returns its length.
    pub fn check_header(&self, bytes: &[u8], domain: &Domain) -> Result<usize, BadHeader> {
        if bytes.len() < self.magic.len() || bytes[..8] != self.magic {
            // A file that was created a moment before a crash may be shorter than its magic.
            return Err(if self.magic.starts_with(bytes) { BadHeader::Damaged } else { BadHeader::Foreign });
        }
        let u16_at = |at: usize| bytes.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]])).ok_or(BadHeader::Damaged);
        let version = u16_at(8)?;
        if version != self.version {
            return Err(BadHeader::Later { found: version, known: self.version });
        }
        let length = usize::from(u16_at(10)?);
        let mut header = bytes.get(..length).filter(|header| header.len() >= FIXED).ok_or(BadHeader::Damaged)?.to_vec();
        let sum = [header[12], header[13], header[14], header[15]];
        header[12..16].fill(0);
        if crc32c::crc32c(&header).to_le_bytes() != sum {
            return Err(BadHeader::Damaged);
        }
        let name = header.get(FIXED..FIXED + usize::from(header[32])).ok_or(BadHeader::Damaged)?;
        if name != domain.as_str().as_bytes() {
            return Err(BadHeader::OtherDomain(String::from_utf8_lossy(name).into_owned()));
        }
        Ok(length)
    }
}

/// A kind of frames.
#[derive(Debug)]
pub struct FrameKind {
    /// First bytes of a frame.
    pub marker: [u8; 4],
    /// Bytes before the body that this release writes. A later release may write more.
    pub header: usize,
}

/// Reason why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// The bytes begin with another marker.
    #[error("no frame begins here")]
    Foreign,
    /// The bytes end before the frame does.
    #[error("the frame is cut off")]
    Short,
    /// The length is shorter than the header, or above 256 MiB.
    #[error("the frame's length is impossible")]
    Length,
    /// The checksum does not fit the bytes.
    #[error("the frame's checksum is wrong")]
    Checksum,
    /// The frame is whole, but its content is invalid.
    #[error("invalid content of the frame: {0}")]
    Content(&'static str),
}

/// A whole frame with a correct checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked<'a> {
    /// Kind of the body.
    pub kind: u8,
    /// Bytes before the body, at least those that this release knows.
    pub header: usize,
    /// All bytes of the frame, without padding.
    pub bytes: &'a [u8],
}

impl FrameKind {
    /// Appends the first 16 bytes of a frame. [`seal`] writes the checksum later.
    pub fn begin(&self, kind: u8, length: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.marker);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&[kind, 0]);
        out.extend_from_slice(&(self.header as u16).to_le_bytes());
    }

    /// Checks the frame at the start of `bytes`.
    pub fn check<'a>(&self, bytes: &'a [u8]) -> Result<Checked<'a>, BadFrame> {
        if bytes.len() < self.header {
            return Err(BadFrame::Short);
        }
        if bytes[..4] != self.marker {
            return Err(BadFrame::Foreign);
        }
        let length = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
        let header = usize::from(u16::from_le_bytes([bytes[14], bytes[15]])).max(self.header);
        if length < header || length > LONGEST {
            return Err(BadFrame::Length);
        }
        let frame = bytes.get(..length).ok_or(BadFrame::Short)?;
        if crc32c::crc32c(&frame[8..]).to_le_bytes() != frame[4..8] {
            return Err(BadFrame::Checksum);
        }
        Ok(Checked { kind: bytes[12], header, bytes: frame })
    }

    /// Returns the positions from `from` on at which a frame may begin: multiples of 8 with the marker.
    pub fn candidates<'a>(&self, bytes: &'a [u8], from: usize) -> impl Iterator<Item = usize> + use<'a> {
        let marker = self.marker;
        (from.next_multiple_of(8)..bytes.len()).step_by(8).filter(move |&at| bytes[at..].starts_with(&marker))
    }
}

/// Writes the checksum of a complete frame.
pub fn seal(frame: &mut [u8]) {
    let sum = crc32c::crc32c(&frame[8..]);
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: FileKind = FileKind { magic: *b"TAMPUTST", version: 1, prefix: "test-" };
    const FRAMES: FrameKind = FrameKind { marker: *b"TPTS", header: 24 };

    fn domain() -> Domain {
        Domain::new("test").unwrap()
    }

    #[test]
    fn an_invalid_header_is_refused_with_the_reason() {
        let bytes = FILES.encode_header(7, Time(1), &domain());
        assert_eq!(FILES.check_header(&bytes, &domain()), Ok(bytes.len()));
        let wrong = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = bytes.clone();
            change(&mut bytes);
            FILES.check_header(&bytes, &domain()).unwrap_err()
        };
        assert_eq!(wrong(&|bytes| bytes[0] = b'X'), BadHeader::Foreign);
        assert_eq!(wrong(&|bytes| bytes[8] = 2), BadHeader::Later { found: 2, known: 1 });
        assert_eq!(wrong(&|bytes| bytes[17] = 2), BadHeader::Damaged);
        for length in [0, 5, 8, 9, 11, 20, 40] {
            assert_eq!(wrong(&|bytes| bytes.truncate(length)), BadHeader::Damaged, "{length}");
        }
        let other = FILES.check_header(&bytes, &Domain::new("other").unwrap());
        assert_eq!(other, Err(BadHeader::OtherDomain("test".into())));
    }

    #[test]
    fn a_name_has_the_number_of_its_file() {
        assert_eq!(FILES.file_name(12), "test-00000012.wal");
        let numbers = ["test-00000012.wal", "test-1x.wal", "test-1.wal.damaged", "other-1.wal"].map(|name| FILES.number_of(name));
        assert_eq!(numbers, [Some(12), None, None, None]);
    }

    #[test]
    fn a_frame_is_checked_whole() {
        let mut bytes = Vec::new();
        FRAMES.begin(3, 28, &mut bytes);
        bytes.resize(28, 7);
        seal(&mut bytes);
        assert_eq!(FRAMES.check(&bytes), Ok(Checked { kind: 3, header: 24, bytes: &bytes }));
        assert_eq!(FRAMES.check(&bytes[..27]), Err(BadFrame::Short));
        assert_eq!(FRAMES.check(&bytes[..23]), Err(BadFrame::Short));
        for (at, expected) in [(0, BadFrame::Foreign), (11, BadFrame::Length), (27, BadFrame::Checksum)] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            assert_eq!(FRAMES.check(&wrong), Err(expected), "{at}");
        }
        let mut short = bytes.clone();
        short[8] = 23;
        assert_eq!(FRAMES.check(&short), Err(BadFrame::Length));
    }

    #[test]
    fn candidates_stand_at_multiples_of_eight() {
        let mut bytes = vec![0; 40];
        bytes[12..16].copy_from_slice(b"TPTS");
        bytes[16..20].copy_from_slice(b"TPTS");
        bytes[32..36].copy_from_slice(b"TPTS");
        assert_eq!(FRAMES.candidates(&bytes, 0).collect::<Vec<_>>(), [16, 32]);
        assert_eq!(FRAMES.candidates(&bytes, 17).collect::<Vec<_>>(), [32]);
    }
}
