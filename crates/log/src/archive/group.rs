//! What gathers between two commits: frames in the making, and which records go into them.

use tampu_types::{
    BatchHeader, Incarnation, Time,
    log_batch::{LogBatchBuilder, LogBatchView},
};

use super::{
    Appended, Arrival, StreamOffset,
    digest::{self, Digest},
    frame::{self, FrameHeader, Kind, Levels},
    local::Gathering,
    seen::Run,
    segment::Entry,
};

/// What an arrival takes at most besides its samples: frame header, batch header with two long names, padding.
pub(super) const OVERHEAD: usize = frame::HEADER + 72 + 2 * 200 + 24;
/// A frame that has reached this many bytes takes no further samples: searches leave out whole frames.
const FRAME: usize = 256 << 10;
/// Samples share a frame, and its time of reception, only if they arrived within this many ns.
const TOGETHER: i64 = 1_000_000;

/// Frames that wait for the disk.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    /// Their places are counted from the group's beginning.
    pub(super) entries: Vec<Entry>,
    pub(super) runs: Vec<(Incarnation, Run)>,
    pub(super) ticket: u64,
    pub(super) records: u64,
    open: Option<Open>,
}

/// The frame at the group's end, which further samples of its stream may join.
#[derive(Debug)]
struct Open {
    start: usize,
    frame: FrameHeader,
    batch: Option<(usize, BatchHeader)>,
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Makes it an empty group that keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.runs.clear();
        self.records = 0;
        self.open = None;
    }

    /// Adds one sample, number `number` of its stream, to the frame at the end or to a new one.
    fn push(&mut self, arrival: &Arrival<'_>, number: u64, offset: StreamOffset, sample: &[u8], digest: &Digest) {
        if !self.open.as_ref().is_some_and(|open| open.takes(arrival, number, offset, self.bytes.len())) {
            self.close();
            let start = self.bytes.len();
            let header = BatchHeader { first: number, count: 0, ..arrival.header.clone() };
            self.bytes.resize(start + frame::HEADER + header.encoded_len(), 0);
            let frame = empty_frame(Kind::Batch, arrival.received, offset);
            self.open = Some(Open { start, frame, batch: Some((start + frame::HEADER, header)) });
        }
        frame::push_sample(sample, &mut self.bytes);
        self.records += u64::from(digest.records);
        self.runs.extend_from_slice(&digest.runs);
        if let Some(Open { frame, batch: Some((_, header)), .. }) = &mut self.open {
            header.count += 1;
            frame.records += digest.records;
            frame.next = frame.next.max(offset.next);
            frame.earliest = frame.earliest.min(digest.earliest);
            frame.latest = frame.latest.max(digest.latest);
            frame.levels = Levels(frame.levels.0 | digest.levels.0);
        }
    }

    /// The stream moved on without anything to keep.
    fn advance(&mut self, received: Time, offset: StreamOffset) {
        if let Some(open) = &mut self.open
            && (open.frame.incarnation, open.frame.stream) == (offset.incarnation, offset.stream)
        {
            open.frame.next = open.frame.next.max(offset.next);
            // Its samples would no longer be consecutive.
            self.close();
            return;
        }
        self.close();
        let start = self.bytes.len();
        self.bytes.resize(start + frame::HEADER, 0);
        self.open = Some(Open { start, frame: empty_frame(Kind::Offset, received, offset), batch: None });
        self.close();
    }

    /// Completes the frame at the end.
    pub(super) fn close(&mut self) {
        let Some(Open { start, mut frame, batch }) = self.open.take() else { return };
        frame.length = (self.bytes.len() - start) as u32;
        if frame.records == 0 {
            // The middle of nothing: a search for any time may leave it out.
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
        levels: Levels::default(),
    }
}

impl Open {
    fn takes(&self, arrival: &Arrival<'_>, number: u64, offset: StreamOffset, end: usize) -> bool {
        let Some((_, batch)) = &self.batch else { return false };
        let header = arrival.header;
        batch.next() == number
            && (batch.incarnation, batch.stream) == (header.incarnation, header.stream)
            && (batch.type_id, batch.type_version) == (header.type_id, header.type_version)
            && (batch.clock, batch.tai_offset) == (header.clock, header.tai_offset)
            && (self.frame.incarnation, self.frame.stream) == (offset.incarnation, offset.stream)
            && (arrival.received.0.saturating_sub(self.frame.received.0)).unsigned_abs() < TOGETHER as u64
            && end - self.start < FRAME
    }
}

impl Gathering {
    /// Takes what is new of an arrival.
    pub(super) fn take(&mut self, arrival: &Arrival<'_>, digests: &[Digest]) -> Appended {
        let header = arrival.header;
        let mut appended = Appended { ticket: self.ticket, ..Appended::default() };
        let mut known = 0;
        let mut own_stream = true;
        if let Some(offset) = arrival.advances {
            own_stream = (offset.incarnation, offset.stream) == (header.incarnation, header.stream);
            if let Some(&stored) = self.offsets.get(&(offset.incarnation, offset.stream)) {
                if offset.next <= stored {
                    known = digests.len();
                } else if own_stream {
                    known = stored.saturating_sub(header.first).min(digests.len() as u64) as usize;
                }
            }
            let again = known == digests.len() && self.offsets.get(&(offset.incarnation, offset.stream)) >= Some(&offset.next);
            if again {
                appended.duplicates = digests.iter().map(|digest| u64::from(digest.records)).sum();
                self.duplicates += appended.duplicates;
                return appended;
            }
        }
        let stays = StreamOffset { incarnation: header.incarnation, stream: header.stream, next: 0 };
        for (place, (sample, digest)) in arrival.samples.iter().zip(digests).enumerate() {
            let number = header.first + place as u64;
            let offset = match arrival.advances {
                Some(offset) if own_stream => StreamOffset { next: number + 1, ..offset },
                // Told with the last sample, so that a commit cut short tells it again.
                Some(offset) if place + 1 == digests.len() => offset,
                Some(offset) => StreamOffset { next: 0, ..offset },
                None => stays,
            };
            let total = u64::from(digest.records);
            let kept = if place < known { Sifted::Nothing } else { self.sift(sample, digest) };
            let new = match kept {
                Sifted::All => {
                    self.group.push(arrival, number, offset, sample, digest);
                    total
                }
                Sifted::Some(sample, digest) => {
                    self.group.push(arrival, number, offset, &sample, &digest);
                    u64::from(digest.records)
                }
                Sifted::Nothing => 0,
            };
            appended.records += new;
            appended.duplicates += total - new;
        }
        if let Some(offset) = arrival.advances {
            let last = self.group.open.as_ref().map(|open| (open.frame.incarnation, open.frame.stream, open.frame.next));
            if last != Some((offset.incarnation, offset.stream, offset.next)) {
                self.group.advance(arrival.received, offset);
            }
            self.offsets.insert((offset.incarnation, offset.stream), offset.next);
        }
        self.duplicates += appended.duplicates;
        // Where nothing was new and no stream has moved there is nothing to commit.
        if appended.records > 0 || arrival.advances.is_some() {
            self.ticket += 1;
            self.group.ticket = self.ticket;
            appended.ticket = self.ticket;
        }
        appended
    }

    /// What of a sample is new. Its ids are known from here on.
    fn sift(&mut self, sample: &[u8], digest: &Digest) -> Sifted {
        let identified = u64::from(digest.records - digest.anonymous);
        if !digest.doubled {
            let missing = self.seen.missing(&digest.runs);
            if missing == identified || digest.whole && missing > 0 {
                self.seen.insert(&digest.runs);
                return Sifted::All;
            }
            if missing == 0 && digest.anonymous == 0 {
                return Sifted::Nothing;
            }
        }
        let Ok(view) = LogBatchView::parse(sample) else { return Sifted::Nothing };
        let mut builder = LogBatchBuilder::new();
        for record in view.records().flatten() {
            let new = record.origin().incarnation().is_none_or(|incarnation| {
                let run = Run { ring: record.ring(), first: record.number(), count: 1 };
                self.seen.insert(&[(incarnation, run)]) == 1
            });
            // What fitted the batch it came in fits a smaller one.
            if new && builder.push_record(&record.to_record()).is_err() {
                break;
            }
        }
        let bytes = builder.finish();
        match digest::digest(&bytes) {
            Ok(digest) if digest.records > 0 => Sifted::Some(bytes, digest),
            _ => Sifted::Nothing,
        }
    }
}

enum Sifted {
    All,
    Some(Vec<u8>, Digest),
    Nothing,
}
