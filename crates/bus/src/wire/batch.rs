//! A batch's body: consecutive samples.
//!
//! ```text
//! repeated: u32 length and flag | bytes | zeros up to a multiple of 4
//! ```
//! The top bit of the length marks a sample in the writer's shared memory. Its bytes are then a [`Loaned`], and the
//! length is the descriptor's. Samples begin at multiples of 4 from the body's start, which XCDR2 needs for reading in
//! place.

use bytes::{BufMut, Bytes, BytesMut};
use tampu_types::BatchHeader;

use super::cursor::{BadMessage, Cursor};

const LOANED: u32 = 1 << 31;

/// Bit of a batch header's flags: the writer wants an acknowledgement as soon as the batch is finished.
pub const FLAG_ANSWER: u8 = 1;

/// Bit of a batch header's flags: the batch lies in the writer's batch ring, and the body here is a [`Loaned`] with its
/// position.
pub const FLAG_ELSEWHERE: u8 = 2;

/// Bit of a batch header's flags: a caller waits until the batch is on a disk. A reader that commits in groups does not
/// wait for more.
pub const FLAG_SOON: u8 = 4;

/// Bit of a batch header's flags: a caller waits until the batch is in the memory of a reader that keeps it. The reader
/// reports this at once ([`Mark::received`](super::control::Mark)).
pub const FLAG_RECEIPT: u8 = 8;

/// Makes the message for a batch that lies elsewhere: its header, and its position.
pub fn elsewhere(batch: &[u8], place: Loaned) -> Bytes {
    let header = BatchHeader::of_encoded(batch);
    let mut out = BytesMut::with_capacity(header.len() + LOANED_LEN);
    out.extend_from_slice(header);
    place.put(&mut out);
    BatchHeader::set_flag(&mut out, FLAG_ELSEWHERE);
    BatchHeader::set_body_len(&mut out, LOANED_LEN as u32);
    out.freeze()
}

/// Position of a loaned sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaned {
    /// Position in the stream of all bytes that the ring ever lent. Bytes before the ring's `valid_from` are gone.
    pub position: u64,
    /// Position in the ring, in units of 64 bytes.
    pub place: u32,
    /// Its length in bytes.
    pub length: u32,
}

/// Length of an encoded [`Loaned`].
const LOANED_LEN: usize = 16;

impl Loaned {
    fn put(self, out: &mut BytesMut) {
        out.put_u64_le(self.position);
        out.put_u32_le(self.place);
        out.put_u32_le(self.length);
    }

    /// Decodes a position.
    pub fn decode(bytes: &[u8]) -> Result<Loaned, BadMessage> {
        let mut cursor = Cursor::new(bytes);
        let (position, place) = (cursor.u64("loan's position")?, cursor.u32("loan's place")?);
        Ok(Loaned { position, place, length: cursor.u32("loan's length")? })
    }
}

/// One sample of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Octets of the sample.
    Bytes(&'a [u8]),
    /// Position of the sample in shared memory.
    Loaned(Loaned),
}

/// Returns the bytes that a sample of this length takes in a body.
pub fn framed_len(length: usize) -> usize {
    4 + length.next_multiple_of(4)
}

/// Appends a sample. Its length is below 2 GiB: writers refuse more.
pub fn put_sample(body: &mut BytesMut, sample: &[u8]) {
    body.put_u32_le(sample.len() as u32);
    body.put_slice(sample);
    body.put_bytes(0, framed_len(sample.len()) - 4 - sample.len());
}

/// Appends a loaned sample's descriptor.
pub fn put_loaned(body: &mut BytesMut, loaned: Loaned) {
    body.put_u32_le(LOANED | LOANED_LEN as u32);
    loaned.put(body);
}

/// Reads the sample at `at`; returns it with the position of the next.
pub fn sample_at(body: &[u8], at: usize) -> Result<(Piece<'_>, usize), BadMessage> {
    let rest = body.get(at..).ok_or(BadMessage::Short("sample"))?;
    let mut cursor = Cursor::new(rest);
    let word = cursor.u32("sample length")?;
    let length = (word & !LOANED) as usize;
    let bytes = cursor.bytes(length, "sample")?;
    let next = at + framed_len(length);
    if word & LOANED == 0 {
        return Ok((Piece::Bytes(bytes), next));
    }
    Ok((Piece::Loaned(Loaned::decode(bytes)?), next))
}

/// Returns true if a batch has the bytes of all its samples, so that it depends on no memory of the writer.
pub fn has_all_bytes(batch: &[u8]) -> bool {
    let Ok((header, body)) = BatchHeader::decode(batch) else { return false };
    let mut at = 0;
    header.flags & FLAG_ELSEWHERE == 0
        && (0..header.count).all(|_| match sample_at(body, at) {
            Ok((Piece::Bytes(_), next)) => {
                at = next;
                true
            }
            Ok((Piece::Loaned(_), _)) | Err(_) => false,
        })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use tampu_types::{Domain, Incarnation, SourceName};

    use super::*;

    /// The header of an empty batch.
    pub fn header() -> BatchHeader {
        BatchHeader {
            domain: Domain::new("lab").unwrap(),
            source: SourceName::new("a").unwrap(),
            incarnation: Incarnation { boot: 1, pid: 1, start: 1 },
            stream: 0,
            first: 0,
            count: 0,
            type_id: 1,
            type_version: 1,
            acquired: Default::default(),
            sent: Default::default(),
            clock: Default::default(),
            tai_offset: 0,
            flags: 0,
        }
    }

    proptest! {
        #[test]
        fn samples_lead_back(samples in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..10)) {
            let mut body = BytesMut::new();
            for sample in &samples {
                put_sample(&mut body, sample);
            }
            put_loaned(&mut body, Loaned { position: 1 << 40, place: 3, length: 9 });
            let mut at = 0;
            for sample in &samples {
                let (piece, next) = sample_at(&body, at).unwrap();
                prop_assert_eq!(piece, Piece::Bytes(sample));
                at = next;
            }
            prop_assert_eq!(sample_at(&body, at), Ok((Piece::Loaned(Loaned { position: 1 << 40, place: 3, length: 9 }), body.len())));
        }

        #[test]
        fn hostile_bodies_are_errors(body in proptest::collection::vec(any::<u8>(), 0..64), at in 0usize..80) {
            let _ = sample_at(&body, at);
        }
    }
}
