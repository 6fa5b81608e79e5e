//! One frame of a spool's file: an unchanged packet with its topic. A frame is also one sample of the topic
//! `log-spool`.
//!
//! ```text
//!  0  u8[4] 'T' 'P' 'S' 'P'      u32 CRC-32C of everything from byte 8 to the frame's end
//!  8  u32 length of the frame    u8 kind   u8 reserved (0)   u16 header length = 32
//! 16  i64 received by the node, ns UTC
//! 24  u32 records                u16 topic length   u16 partition length
//! 32  topic, partition's key (UTF-8), zeros up to a multiple of 8
//!     body; in a file then zeros up to a multiple of 8, not counted in the length
//! ```
//! All numbers are little endian. The body of a packet's frame (kind 1) is a batch of one sample as on the wire:
//! `BatchHeader` of the original stream, then `u32 length, bytes, zeros up to a multiple of 4`. The body of a tally
//! (kind 2, never in a file) is JSON. The marker makes the next frame findable behind a damaged one. Contract:
//! `spec/log-spool.md`.

use tampu_types::{BatchHeader, Partition, Time, TopicName};

use crate::framed::{self, BadFrame, FrameKind};

/// Bytes before the names.
pub(crate) const HEADER: usize = 32;
/// Frames of a spool.
pub(crate) const FRAMES: FrameKind = FrameKind { marker: *b"TPSP", header: HEADER };

/// Decoded content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Packet(Packet<'a>),
    /// Counters of the spool, as JSON.
    Tally(&'a [u8]),
    /// Something a later release writes.
    Unknown(u8),
}

/// A packet as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    /// Time of reception by the node.
    pub(crate) received: Time,
    /// Number of records counted in it.
    pub(crate) records: u32,
    pub(crate) topic: TopicName,
    pub(crate) partition: Partition,
    /// Header of the batch; `first` is the packet's number, `count` is 1.
    pub(crate) header: BatchHeader,
    pub(crate) bytes: &'a [u8],
}

const PACKET: u8 = 1;
const TALLY: u8 = 2;

impl Packet<'_> {
    /// Appends the frame; without padding behind it.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (topic, partition) = (self.topic.as_str(), self.partition.key());
        let start = begin(PACKET, self.received, self.records, topic, &partition, out);
        let body = (4 + self.bytes.len()).next_multiple_of(4);
        self.header.encode(body as u32, out);
        out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(self.bytes);
        out.resize(out.len() + body - 4 - self.bytes.len(), 0);
        seal(&mut out[start..]);
    }
}

/// The frame of a tally.
pub(crate) fn tally(json: &[u8], now: Time) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + json.len());
    begin(TALLY, now, 0, "", "", &mut out);
    out.extend_from_slice(json);
    seal(&mut out);
    out
}

fn begin(kind: u8, received: Time, records: u32, topic: &str, partition: &str, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    FRAMES.begin(kind, 0, out);
    out.extend_from_slice(&received.0.to_le_bytes());
    out.extend_from_slice(&records.to_le_bytes());
    // Names on the bus are far shorter than 64 KiB.
    out.extend_from_slice(&(topic.len() as u16).to_le_bytes());
    out.extend_from_slice(&(partition.len() as u16).to_le_bytes());
    out.extend_from_slice(topic.as_bytes());
    out.extend_from_slice(partition.as_bytes());
    out.resize(start + (out.len() - start).next_multiple_of(8), 0);
    start
}

/// Writes length and checksum into a frame that is complete.
pub(crate) fn seal(frame: &mut [u8]) {
    let length = frame.len() as u32;
    frame[8..12].copy_from_slice(&length.to_le_bytes());
    framed::seal(frame);
}

/// Reads the frame that begins with `bytes`; returns it with its length.
pub(crate) fn read(bytes: &[u8]) -> Result<(Frame<'_>, usize), BadFrame> {
    let checked = FRAMES.check(bytes)?;
    let (frame, length) = (checked.bytes, checked.bytes.len());
    let fixed: &[u8; HEADER] = frame.first_chunk().ok_or(BadFrame::Short)?;
    let (names, topic_len) = (checked.header, usize::from(u16_at(fixed, 28)));
    let names_end = names + topic_len + usize::from(u16_at(fixed, 30));
    let outside = BadFrame::Content("its names reach beyond its end");
    let topic = frame.get(names..names + topic_len).ok_or(outside)?;
    let partition = frame.get(names + topic_len..names_end).ok_or(outside)?;
    let body = frame.get(names_end.next_multiple_of(8)..);
    match checked.kind {
        PACKET => {
            let (header, samples) =
                BatchHeader::decode(body.ok_or(outside)?).map_err(|_| BadFrame::Content("it holds no batch"))?;
            let name = |bytes| std::str::from_utf8(bytes).ok();
            let topic = name(topic).and_then(|name| TopicName::new(name).ok()).ok_or(BadFrame::Content("invalid topic"))?;
            let partition = name(partition).and_then(Partition::from_key).ok_or(BadFrame::Content("invalid partition"))?;
            if header.count != 1 {
                return Err(BadFrame::Content("it does not hold exactly one packet"));
            }
            let sample_len = samples.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
            let bytes = sample_len
                .and_then(|length| samples.get(4..4usize.checked_add(length)?))
                .ok_or(BadFrame::Content("its packet reaches beyond its end"))?;
            let (received, records) = (Time(u64_at(fixed, 16) as i64), u32_at(fixed, 24));
            Ok((Frame::Packet(Packet { received, records, topic, partition, header, bytes }), length))
        }
        TALLY => Ok((Frame::Tally(body.ok_or(outside)?), length)),
        other => Ok((Frame::Unknown(other), length)),
    }
}

fn u16_at(bytes: &[u8; HEADER], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use tampu_types::{ClockState, Domain, Incarnation, SourceName};

    use super::*;

    pub(in crate::spool) fn packet<'a>(source: &str, first: u64, records: u32, bytes: &'a [u8]) -> Packet<'a> {
        Packet {
            received: Time(1_795_000_000_000_000_000),
            records,
            topic: TopicName::new("log/info").unwrap(),
            partition: Partition::of(["Operator"]),
            header: BatchHeader {
                domain: Domain::new("test").unwrap(),
                source: SourceName::new(source).unwrap(),
                incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
                stream: 4,
                first,
                count: 1,
                type_id: 2,
                type_version: 1,
                acquired: Time(8),
                sent: Time(9),
                clock: ClockState::Synchronised,
                tai_offset: 37,
                flags: 0,
            },
            bytes,
        }
    }

    /// `testdata/log-spool/packet.hex` is this frame, as this release writes it.
    #[test]
    fn the_vector_is_what_is_written_and_read() {
        let text = include_str!("../../../../testdata/log-spool/packet.hex");
        let digits: String = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect();
        let vector: Vec<u8> =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
        let packet = packet("CONTROL/DV01", 5, 2, b"seven b");
        let mut written = Vec::new();
        packet.encode(&mut written);
        let hex: Vec<String> = written.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, vector, "{}", hex.join(" "));
        assert_eq!(read(&vector), Ok((Frame::Packet(packet), vector.len())));
    }

    #[test]
    fn a_longer_header_and_another_kind_of_a_later_release_are_stepped_over() {
        let mut bytes = Vec::new();
        packet("a", 1, 1, b"x").encode(&mut bytes);
        let mut later = bytes.clone();
        later.splice(HEADER..HEADER, [9; 8]);
        later[14] += 8;
        seal(&mut later);
        assert_eq!(read(&later).unwrap().0, Frame::Packet(packet("a", 1, 1, b"x")));
        bytes[12] = 9;
        seal(&mut bytes);
        assert_eq!(read(&bytes), Ok((Frame::Unknown(9), bytes.len())));
        let told = tally(b"{}", Time(7));
        assert_eq!(read(&told), Ok((Frame::Tally(b"{}"), told.len())));
    }

    proptest! {
        #[test]
        fn packets_lead_back(first: u32, records: u32, bytes in proptest::collection::vec(any::<u8>(), 0..100), behind in 0usize..9) {
            let packet = packet("CORR", first.into(), records, &bytes);
            let mut written = Vec::new();
            packet.encode(&mut written);
            let length = written.len();
            written.resize(length + behind, 0x55);
            prop_assert_eq!(read(&written), Ok((Frame::Packet(packet), length)));
        }

        #[test]
        fn no_damaged_byte_goes_unseen(at in 0usize..160, bit in 0u8..8, cut in 0usize..160) {
            let mut written = Vec::new();
            packet("CORR", 1, 1, b"12345678").encode(&mut written);
            prop_assert!(read(&written[..cut.min(written.len() - 1)]).is_err());
            let at = at % written.len();
            written[at] ^= 1 << bit;
            prop_assert!(read(&written).is_err());
        }

        #[test]
        fn hostile_content_is_an_error_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 40..200), kind in 0u8..3) {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(&FRAMES.marker);
            bytes[12] = kind;
            bytes[14..16].copy_from_slice(&32u16.to_le_bytes());
            bytes[28] %= 64;
            bytes[29..32].fill(0);
            seal(&mut bytes);
            let _ = read(&bytes);
        }
    }
}
