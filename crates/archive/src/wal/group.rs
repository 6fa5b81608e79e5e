//! A group between two commits: its unfinished frames, and the records in them.

use std::ops::Range;

use tampu_types::{BatchHeader, Incarnation, Time};

use crate::{
    Arrival, StreamOffset,
    ids::seen::Run,
    wal::{
        digest::{Digest, Stored},
        frame::{self, FrameHeader, Kind, LevelSet},
        segment::Entry,
    },
};

/// Largest overhead of an arrival besides its samples: frame header, batch header with two long names, padding.
pub(crate) const OVERHEAD: usize = frame::HEADER + 72 + 2 * 200 + 24;
/// Size in bytes at which a frame is full. Searches skip whole frames, so frames are short.
const FRAME: usize = 256 << 10;
/// Longest time in ns between samples of one frame, which share its time of reception.
const TOGETHER: i64 = 1_000_000;

/// Returns whether these samples are no more than a frame holds.
pub(crate) fn fits_a_frame(samples: &[&[u8]]) -> bool {
    samples.iter().map(|sample| sample.len() + 8).sum::<usize>() <= FRAME
}

/// Frames that wait for the disk.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    /// Entries of the frames, positions counted from the group's beginning.
    pub(crate) entries: Vec<Entry>,
    pub(crate) runs: Vec<(Incarnation, Run)>,
    pub(crate) ticket: u64,
    pub(crate) records: u64,
    open: Option<Open>,
}

/// Open frame at the group's end, which further samples of its stream may join.
#[derive(Debug)]
struct Open {
    start: usize,
    frame: FrameHeader,
    batch: Option<(usize, BatchHeader)>,
    /// Number of the sample that may join it.
    number: u64,
}

impl Group {
    /// Returns the stream and position of the open frame.
    pub(crate) fn last_offset(&self) -> Option<StreamOffset> {
        let frame = &self.open.as_ref()?.frame;
        Some(StreamOffset { incarnation: frame.incarnation, stream: frame.stream, next: frame.next })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Empties the group and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.runs.clear();
        self.records = 0;
        self.open = None;
    }

    /// Adds the samples with these numbers of their stream to the open frame or to a new one. `contents` holds them as
    /// they are stored, and `digest` summarises them.
    pub(crate) fn push(
        &mut self,
        arrival: &Arrival<'_>,
        numbers: Range<u64>,
        offset: StreamOffset,
        contents: &[Stored<'_>],
        digest: &Digest,
    ) {
        if !self.open.as_ref().is_some_and(|open| open.takes(arrival, numbers.start, offset, self.bytes.len())) {
            self.close();
            let start = self.bytes.len();
            let header = BatchHeader { first: numbers.start, count: 0, ..arrival.header.clone() };
            self.bytes.resize(start + frame::HEADER + header.encoded_len(), 0);
            let frame = empty_frame(Kind::Batch, arrival.received, offset);
            self.open = Some(Open { start, frame, batch: Some((start + frame::HEADER, header)), number: 0 });
        }
        for stored in contents {
            match stored {
                Stored::Sample(sample) => frame::push_sample(sample, &mut self.bytes),
                Stored::Joined(joined) => frame::push_joined(joined, &mut self.bytes),
            }
        }
        self.records += u64::from(digest.records);
        self.runs.extend_from_slice(&digest.runs);
        if let Some(open) = &mut self.open
            && let Some((_, header)) = &mut open.batch
        {
            header.count += contents.len() as u32;
            open.number = numbers.end;
            let frame = &mut open.frame;
            frame.records += digest.records;
            frame.next = frame.next.max(offset.next);
            frame.earliest = frame.earliest.min(digest.earliest);
            frame.latest = frame.latest.max(digest.latest);
            frame.levels = LevelSet(frame.levels.0 | digest.levels.0);
        }
    }

    /// Records that a stream advanced without content to keep.
    pub(crate) fn advance(&mut self, received: Time, offset: StreamOffset) {
        if let Some(open) = &mut self.open
            && (open.frame.incarnation, open.frame.stream) == (offset.incarnation, offset.stream)
        {
            open.frame.next = open.frame.next.max(offset.next);
            // Further samples of this frame would not be consecutive.
            self.close();
            return;
        }
        self.close();
        let start = self.bytes.len();
        self.bytes.resize(start + frame::HEADER, 0);
        self.open = Some(Open { start, frame: empty_frame(Kind::Offset, received, offset), batch: None, number: 0 });
        self.close();
    }

    /// Closes the open frame.
    pub(crate) fn close(&mut self) {
        let Some(Open { start, mut frame, batch, .. }) = self.open.take() else { return };
        frame.length = (self.bytes.len() - start) as u32;
        if frame.records == 0 {
            // The frame has no records: a search for any time may skip it.
            (frame.earliest, frame.latest) = (Time(0), Time(0));
        }
        let mut encoded = Vec::with_capacity(OVERHEAD);
        frame.encode(&mut encoded);
        if let Some((at, header)) = batch {
            let body = self.bytes.len() - at - header.encoded_len();
            header.encode(body as u32, &mut encoded);
        }
        self.bytes[start..start + encoded.len()].copy_from_slice(&encoded);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.entries.push(Entry::new(start as u64, &frame));
    }
}

fn empty_frame(kind: Kind, received: Time, offset: StreamOffset) -> FrameHeader {
    FrameHeader {
        length: 0,
        kind,
        header_length: frame::HEADER as u16,
        durable: 0,
        received,
        incarnation: offset.incarnation,
        stream: offset.stream,
        records: 0,
        next: offset.next,
        earliest: Time(i64::MAX),
        latest: Time(i64::MIN),
        levels: LevelSet::default(),
    }
}

impl Open {
    fn takes(&self, arrival: &Arrival<'_>, number: u64, offset: StreamOffset, end: usize) -> bool {
        let Some((_, batch)) = &self.batch else { return false };
        let header = arrival.header;
        self.number == number
            && (batch.incarnation, batch.stream) == (header.incarnation, header.stream)
            && (batch.type_id, batch.type_version) == (header.type_id, header.type_version)
            && (batch.clock, batch.tai_offset) == (header.clock, header.tai_offset)
            && (self.frame.incarnation, self.frame.stream) == (offset.incarnation, offset.stream)
            && (arrival.received.0.saturating_sub(self.frame.received.0)).unsigned_abs() < TOGETHER as u64
            && end - self.start < FRAME
    }
}
