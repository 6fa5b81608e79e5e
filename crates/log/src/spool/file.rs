//! One file of a spool: its header, and the frames in it.
//!
//! ```text
//!  0  u8[8] "TAMPUSPL"      u16 version = 1   u16 header length (a multiple of 8)
//! 12  u32 CRC-32C of the header with these four bytes zero
//! 16  u64 number            i64 created, ns UTC
//! 32  u8 domain length      u8[7] reserved (0)
//! 40  domain (UTF-8), zeros up to the header length; frames (see `frame`), each at a multiple of 8
//! ```

use std::ops::Range;

use tampu_types::{Domain, Time};

use super::frame::{self, BadFrame, Frame, MARKER};

const MAGIC: [u8; 8] = *b"TAMPUSPL";
const VERSION: u16 = 1;
const FIXED: usize = 40;

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFile {
    #[error("it does not begin as a spool's file does")]
    Foreign,
    #[error("its header is cut off or damaged")]
    Header,
    #[error("it is of version {0}; this release reads version {VERSION}")]
    Later(u16),
    #[error("it belongs to domain '{0}'")]
    OtherDomain(String),
}

/// `spool-00000012.wal`.
pub(crate) fn file_name(number: u64) -> String {
    format!("spool-{number:08}.wal")
}

/// The number in a file's name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("spool-")?.strip_suffix(".wal")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The header of a new file.
pub(crate) fn encode_header(number: u64, created: Time, domain: &Domain) -> Vec<u8> {
    let name = domain.as_str().as_bytes();
    let length = (FIXED + name.len()).next_multiple_of(8);
    let mut header = Vec::with_capacity(length);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
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

/// Checks a header; returns its length.
pub(crate) fn check_header(bytes: &[u8], domain: &Domain) -> Result<usize, BadFile> {
    let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(BadFile::Header)?;
    if fixed[..8] != MAGIC {
        return Err(BadFile::Foreign);
    }
    let version = u16::from_le_bytes([fixed[8], fixed[9]]);
    if version != VERSION {
        return Err(BadFile::Later(version));
    }
    let length = usize::from(u16::from_le_bytes([fixed[10], fixed[11]]));
    let mut header = bytes.get(..length).filter(|header| header.len() >= FIXED).ok_or(BadFile::Header)?.to_vec();
    header[12..16].fill(0);
    if crc32c::crc32c(&header).to_le_bytes() != fixed[12..16] {
        return Err(BadFile::Header);
    }
    let name = header.get(FIXED..FIXED + usize::from(fixed[32])).ok_or(BadFile::Header)?;
    if name != domain.as_str().as_bytes() {
        return Err(BadFile::OtherDomain(String::from_utf8_lossy(name).into_owned()));
    }
    Ok(length)
}

/// What lies in a file behind its header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A frame, at this place.
    Frame(u64, Frame<'a>),
    /// Bytes that are none, with a frame behind them.
    Damage(Range<u64>, BadFrame),
    /// The end: everything behind this place was being written when the node died.
    Torn(u64),
}

/// Walks over a file's bytes from `at` on; the last item is [`Found::Torn`], unless the file ends with a frame.
pub(crate) fn walk(bytes: &[u8], at: usize) -> impl Iterator<Item = Found<'_>> {
    let mut at = at;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        match frame::read(rest) {
            Ok((frame, length)) => {
                let begin = at;
                at += length.next_multiple_of(8);
                Some(Found::Frame(begin as u64, frame))
            }
            Err(why) => {
                let begin = at;
                match next_frame(bytes, at + 8) {
                    Some(next) => {
                        at = next;
                        Some(Found::Damage(begin as u64..next as u64, why))
                    }
                    None => {
                        at = bytes.len();
                        Some(Found::Torn(begin as u64))
                    }
                }
            }
        }
    })
}

/// The next place at which a good frame begins.
fn next_frame(bytes: &[u8], from: usize) -> Option<usize> {
    let places = (from.next_multiple_of(8)..bytes.len()).step_by(8);
    places.into_iter().find(|&at| bytes[at..].starts_with(&MARKER) && frame::read(&bytes[at..]).is_ok())
}

#[cfg(test)]
mod tests {
    use super::{super::frame::tests::packet, *};

    fn file(packets: usize) -> (Vec<u8>, Vec<usize>, Domain) {
        let domain = Domain::new("test").unwrap();
        let mut bytes = encode_header(7, Time(1), &domain);
        let mut places = Vec::new();
        for number in 0..packets {
            places.push(bytes.len());
            packet("CORR", number as u64, 1, &vec![b'x'; number * 3]).encode(&mut bytes);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        (bytes, places, domain)
    }

    fn numbers(bytes: &[u8], domain: &Domain) -> (Vec<u64>, Vec<Range<u64>>, Option<u64>) {
        let (mut numbers, mut damage, mut torn) = (Vec::new(), Vec::new(), None);
        for found in walk(bytes, check_header(bytes, domain).unwrap()) {
            match found {
                Found::Frame(_, Frame::Packet(packet)) => numbers.push(packet.header.first),
                Found::Frame(..) => panic!("no other frames were written"),
                Found::Damage(range, _) => damage.push(range),
                Found::Torn(at) => torn = Some(at),
            }
        }
        (numbers, damage, torn)
    }

    #[test]
    fn a_file_cut_anywhere_has_the_frames_before_the_cut() {
        let (bytes, places, domain) = file(5);
        for cut in check_header(&bytes, &domain).unwrap()..bytes.len() {
            let (numbers, damage, torn) = numbers(&bytes[..cut], &domain);
            // Padding may be missing: then the frame is there.
            let last = numbers.len();
            let begun = places.iter().filter(|place| **place < cut).count();
            assert!(last == begun || last + 1 == begun, "{last} of {begun} at {cut}");
            assert_eq!((damage.len(), torn), (0, (last < begun).then(|| places[last] as u64)), "cut at {cut}");
        }
    }

    #[test]
    fn damage_costs_the_frame_it_is_in_and_is_told() {
        let (bytes, places, domain) = file(5);
        for at in places[0]..places[4] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let (numbers, damage, torn) = numbers(&damaged, &domain);
            let hit = places.iter().rposition(|place| *place <= at).unwrap();
            if numbers.len() == 4 {
                let expected = places[hit] as u64..places[hit + 1] as u64;
                assert_eq!(damage.as_slice(), std::slice::from_ref(&expected));
            } else {
                assert_eq!((numbers.len(), damage.len()), (5, 0), "only padding is worth nothing: {at}");
            }
            assert_eq!(torn, None);
        }
    }

    #[test]
    fn what_is_no_file_of_ours_says_why() {
        let (bytes, _, domain) = file(1);
        let wrong = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = bytes.clone();
            change(&mut bytes);
            check_header(&bytes, &domain).unwrap_err()
        };
        assert_eq!(wrong(&|bytes| bytes[0] = b'X'), BadFile::Foreign);
        assert_eq!(wrong(&|bytes| bytes[8] = 2), BadFile::Later(2));
        assert_eq!(wrong(&|bytes| bytes[17] = 2), BadFile::Header);
        assert_eq!(wrong(&|bytes| bytes.truncate(20)), BadFile::Header);
        assert_eq!(check_header(&bytes, &Domain::new("other").unwrap()), Err(BadFile::OtherDomain("test".into())));
        assert_eq!(
            (number_of(&file_name(12)), number_of("spool-1x.wal"), number_of("spool-1.wal.damaged")),
            (Some(12), None, None)
        );
    }
}
