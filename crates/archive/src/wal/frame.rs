//! One frame of a write-ahead segment: committed content, with the position of its stream after it.
//!
//! ```text
//!  0  u8[4] 'T' 'P' 'F' 'R'      u32 CRC-32C of everything from byte 8 to the frame's end
//!  8  u32 length of the frame    u8 kind   u8 reserved (0)   u16 header length = 88
//! 16  u64 length of the file that was on disk when this frame was written
//! 24  i64 received, ns UTC
//! 32  u8[16] incarnation         whose stream advances
//! 48  u32 stream                 u32 records in the body
//! 56  u64 number of the first sample of that stream that is still to come
//! 64  i64 earliest time of its records, ns UTC
//! 72  i64 latest
//! 80  u16 levels (bit n: ordinal n occurs)   u8[6] reserved (0)
//! 88  body; then zeros up to a multiple of 8, not counted in the length
//! ```
//! All numbers are little endian. The body of a batch frame is a batch in its wire format. It is a `BatchHeader`, then
//! samples, each `u32 length, bytes, zeros up to a multiple of 4`, each a `LogBatch`. An offset frame has no body: its
//! stream advanced without content to keep. The marker makes the next frame findable behind a damaged one. Contract:
//! `spec/log-segment.md`.

use tampu_types::{Incarnation, Level, Time, log_batch::JoinedBatch};

use crate::framed::{self, BadFrame, FrameKind};

/// Bytes before the body.
pub(crate) const HEADER: usize = 88;
/// Frames of a segment.
pub(crate) const FRAMES: FrameKind = FrameKind { marker: *b"TPFR", header: HEADER };

/// Kind of a frame's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A batch of records.
    Batch,
    /// New offset of a stream, without records.
    Offset,
    /// Kind of a later release. It is stored and not read.
    Unknown(u8),
}

/// Fields before the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) kind: Kind,
    pub(crate) header_length: u16,
    pub(crate) durable: u64,
    pub(crate) received: Time,
    pub(crate) incarnation: Incarnation,
    pub(crate) stream: u32,
    pub(crate) records: u32,
    pub(crate) next: u64,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    pub(crate) levels: LevelSet,
}

/// Set of levels that occur: bit n is ordinal n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LevelSet(pub(crate) u16);

impl LevelSet {
    pub(crate) fn add(&mut self, level: Level) {
        self.0 |= 1 << level.ordinal();
    }

    pub(crate) fn meets(self, other: LevelSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl FrameHeader {
    /// Appends the header. The caller appends the body and then calls [`seal`].
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            Kind::Batch => 1,
            Kind::Offset => 2,
            Kind::Unknown(number) => number,
        };
        FRAMES.begin(kind, self.length, out);
        out.extend_from_slice(&self.durable.to_le_bytes());
        out.extend_from_slice(&self.received.0.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_bytes());
        out.extend_from_slice(&self.stream.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&self.next.to_le_bytes());
        out.extend_from_slice(&self.earliest.0.to_le_bytes());
        out.extend_from_slice(&self.latest.0.to_le_bytes());
        out.extend_from_slice(&self.levels.0.to_le_bytes());
        out.extend_from_slice(&[0; 6]);
    }

    /// Returns the bytes that this frame takes in the file, with padding.
    pub(crate) fn stride(&self) -> usize {
        (self.length as usize).next_multiple_of(8)
    }
}

/// Completes a frame just before it goes to disk: writes the length of the file on disk, and the checksum.
pub(crate) fn seal(frame: &mut [u8], durable: u64) {
    frame[16..24].copy_from_slice(&durable.to_le_bytes());
    framed::seal(frame);
}

/// Reads and checks the frame at the start of `bytes`; returns its header and its body.
pub(crate) fn read(bytes: &[u8]) -> Result<(FrameHeader, &[u8]), BadFrame> {
    let frame = FRAMES.check(bytes)?;
    let fixed: &[u8; HEADER] = frame.bytes.first_chunk().ok_or(BadFrame::Short)?;
    let kind = match frame.kind {
        1 => Kind::Batch,
        2 => Kind::Offset,
        other => Kind::Unknown(other),
    };
    let mut incarnation = [0; 16];
    incarnation.copy_from_slice(&fixed[32..48]);
    let header = FrameHeader {
        length: frame.bytes.len() as u32,
        kind,
        header_length: frame.header as u16,
        durable: u64_at(fixed, 16),
        received: Time(u64_at(fixed, 24) as i64),
        incarnation: Incarnation::from_bytes(incarnation),
        stream: u32_at(fixed, 48),
        records: u32_at(fixed, 52),
        next: u64_at(fixed, 56),
        earliest: Time(u64_at(fixed, 64) as i64),
        latest: Time(u64_at(fixed, 72) as i64),
        levels: LevelSet(u16::from_le_bytes([fixed[80], fixed[81]])),
    };
    Ok((header, &frame.bytes[frame.header..]))
}

/// Iterates over the samples of a batch's body. An item is `None` where a length leads outside.
pub(crate) fn samples(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let sample = rest.first_chunk::<4>().and_then(|length| {
            // The top bit marks a descriptor of shared memory, which is never stored.
            let length = u32::from_le_bytes(*length) as usize;
            rest.get(4..4 + length)
        });
        rest = sample.and_then(|sample| rest.get((4 + sample.len()).next_multiple_of(4)..)).unwrap_or(&[]);
        Some(sample)
    })
}

/// Appends one sample in the format of [`samples`].
pub(crate) fn push_sample(sample: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(sample.len() as u32).to_le_bytes());
    out.extend_from_slice(sample);
    out.resize(out.len() + sample.len().next_multiple_of(4) - sample.len(), 0);
}

/// Appends samples that are joined into one.
pub(crate) fn push_joined(joined: &JoinedBatch<'_>, out: &mut Vec<u8>) {
    debug_assert!(out.len().is_multiple_of(4), "a batch begins at a multiple of 4");
    out.extend_from_slice(&(joined.length() as u32).to_le_bytes());
    joined.put(out);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(body: &[u8]) -> (FrameHeader, Vec<u8>) {
        let mut levels = LevelSet::default();
        levels.add(Level::Error);
        let header = FrameHeader {
            length: (HEADER + body.len()) as u32,
            kind: Kind::Batch,
            header_length: HEADER as u16,
            durable: 4096,
            received: Time(-7),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            stream: 4,
            records: 5,
            next: 6,
            earliest: Time(7),
            latest: Time(8),
            levels,
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        bytes.extend_from_slice(body);
        seal(&mut bytes, 4096);
        (header, bytes)
    }

    #[test]
    fn a_frame_leads_back_and_a_longer_header_of_a_later_release_is_skipped() {
        let (header, bytes) = frame(b"body");
        assert_eq!(read(&bytes), Ok((header, &b"body"[..])));

        let mut later = bytes.clone();
        later.splice(HEADER..HEADER, [9; 8]);
        later[14] += 8;
        later[8] += 8;
        seal(&mut later, 4096);
        let (_, body) = read(&later).unwrap();
        assert_eq!(body, b"body");
    }

    proptest! {
        #[test]
        fn no_damaged_byte_goes_unseen(at in 0usize..96, bit in 0u8..8) {
            let (_, mut bytes) = frame(b"12345678");
            bytes[at] ^= 1 << bit;
            prop_assert!(read(&bytes).is_err());
        }

        #[test]
        fn samples_lead_back(all in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..5)) {
            let mut body = Vec::new();
            all.iter().for_each(|sample| push_sample(sample, &mut body));
            let read: Vec<_> = samples(&body).map(|sample| sample.map(<[u8]>::to_vec)).collect();
            prop_assert_eq!(read, all.into_iter().map(Some).collect::<Vec<_>>());
        }

        #[test]
        fn hostile_bodies_end(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(samples(&body).count() <= 17);
        }
    }
}
