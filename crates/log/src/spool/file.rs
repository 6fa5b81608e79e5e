//! One file of a spool: its header, and the frames in it.
//!
//! The file begins as [`tampu_archive::framed`] says; frames follow (see `frame`).

use std::ops::Range;

use tampu_archive::framed::{BadFrame, FileKind};

use super::frame::{self, Frame};

/// Files of a spool.
pub(crate) const FILES: FileKind = FileKind { magic: *b"TAMPUSPL", version: 1, prefix: "spool-" };

/// Item of a file behind its header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A frame, at this place.
    Frame(u64, Frame<'a>),
    /// Invalid bytes with a frame behind them.
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
    frame::FRAMES.candidates(bytes, from).find(|&at| frame::read(&bytes[at..]).is_ok())
}

#[cfg(test)]
mod tests {
    use tampu_types::{Domain, Time};

    use super::{super::frame::tests::packet, *};

    fn file(packets: usize) -> (Vec<u8>, Vec<usize>, Domain) {
        let domain = Domain::new("test").unwrap();
        let mut bytes = FILES.encode_header(7, Time(1), &domain);
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
        for found in walk(bytes, FILES.check_header(bytes, domain).unwrap()) {
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
        for cut in FILES.check_header(&bytes, &domain).unwrap()..bytes.len() {
            let (numbers, damage, torn) = numbers(&bytes[..cut], &domain);
            // If only padding is missing, the frame is complete.
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
}
