//! Searching: frames in the order of their times, records merged, nothing held that need not be.
//!
//! Frames are taken by their latest time (newest first; by their earliest when oldest first). A frame that cannot hold what is
//! wanted is never read. Of the others, matching records are remembered by time, id and place, 56 bytes each, and given out as
//! soon as no frame to come can hold an earlier one; with a limit no more are remembered than can still be given out. So the
//! newest hundred are found by reading a few frames of however many, and a search through everything needs memory only for
//! what lies within the frames that overlap in time. Texts are copied only for records that are given out.

use std::{
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tampu_types::{BatchHeader, LogRecord, Time, log_batch::LogBatchView};

use super::{
    ArchiveError, Stop,
    frame::{self, FrameHeader, Kind, Levels},
    segment::{Entry, Segment},
};
use crate::query::{Cursor, Matcher, Query};

/// Records given out at a time: their frames are read again, so too few would read each frame often.
const CHUNK: usize = 8192;

/// A record found.
#[derive(Debug)]
pub struct Found<'a> {
    /// The record, with its time of reception.
    pub record: &'a mut LogRecord,
}

/// What a search did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scanned {
    /// Records given out.
    pub found: u64,
    /// Records looked at.
    pub looked_at: u64,
    /// Frames read.
    pub frames: u64,
    /// Frames left out by what is known of them.
    pub left_out: u64,
    /// Frames that could not be read now although they could when they were written.
    pub damaged: u64,
    /// Whether everything asked for was given out; if not, the search was stopped or its limit reached.
    pub complete: bool,
    /// Where to go on, as the query's `after`.
    pub cursor: Option<Cursor>,
}

/// One frame, read and checked.
pub(super) struct Loaded<'a> {
    pub(super) header: FrameHeader,
    pub(super) body: &'a [u8],
}

/// Reads a batch frame and checks it; `None` if it is damaged.
pub(super) fn load<'a>(segment: &Segment, entry: &Entry, buffer: &'a mut Vec<u8>) -> Option<Loaded<'a>> {
    let (header, body) = segment.load(entry, buffer)?;
    let (_, body) = BatchHeader::decode(body).ok()?;
    Some(Loaded { header, body })
}

/// A frame to read.
struct Planned {
    key: i64,
    segment: Arc<Segment>,
    entry: Entry,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Planned) -> bool {
        self.key == other.key
    }
}
impl Eq for Planned {}
impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Planned {
    fn cmp(&self, other: &Planned) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A matching record, remembered until its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    place: Cursor,
    frame: u32,
    sample: u32,
    record: u32,
}

/// The frames a matcher cannot leave out, first in order on top, with the number of those left out.
pub(super) fn plan(segments: &[Arc<Segment>], wanted: &impl Fn(&Entry) -> bool) -> (Vec<(Arc<Segment>, Entry)>, u64) {
    let mut planned = Vec::new();
    let mut left_out = 0;
    for segment in segments {
        let entries = segment.select(|entry| entry.kind == Kind::Batch && entry.records > 0);
        let all = entries.len();
        let before = planned.len();
        planned.extend(entries.into_iter().filter(|entry| wanted(entry)).map(|entry| (segment.clone(), entry)));
        left_out += (all - (planned.len() - before)) as u64;
    }
    (planned, left_out)
}

pub(super) fn may_hold(matcher: &Matcher, entry: &Entry) -> bool {
    entry.levels.meets(Levels(matcher.levels())) && matcher.meets(entry.earliest, entry.latest)
}

struct Search<'q> {
    query: &'q Query,
    matcher: Matcher,
    frames: Vec<(Arc<Segment>, Entry)>,
    pending: Vec<Match>,
    buffer: Vec<u8>,
    scanned: Scanned,
}

pub(super) fn search(
    segments: &[Arc<Segment>],
    query: &Query,
    stop: &Stop,
    sink: &mut dyn FnMut(Found<'_>) -> bool,
) -> Result<Scanned, ArchiveError> {
    let matcher = query.compile()?;
    let newest_first = query.newest_first;
    let reaches_after = |entry: &Entry| match query.after {
        Some(after) if newest_first => entry.earliest <= after.time,
        Some(after) => entry.latest >= after.time,
        None => true,
    };
    let (planned, left_out) = plan(segments, &|entry: &Entry| may_hold(&matcher, entry) && reaches_after(entry));
    let key = |entry: &Entry| if newest_first { entry.latest.0 } else { !entry.earliest.0 };
    let mut frames: BinaryHeap<Planned> =
        planned.into_iter().map(|(segment, entry)| Planned { key: key(&entry), segment, entry }).collect();
    let scanned = Scanned { left_out, ..Scanned::default() };
    let mut search = Search { query, matcher, frames: Vec::new(), pending: Vec::new(), buffer: Vec::new(), scanned };
    loop {
        if stop.is_stopped() {
            return Ok(search.scanned);
        }
        let next = frames.pop();
        // What the next frame cannot come before is ready.
        let bound = next.as_ref().map(|next| if newest_first { next.entry.latest } else { next.entry.earliest });
        if !search.give_out(bound, stop, sink) {
            return Ok(search.scanned);
        }
        let Some(Planned { segment, entry, .. }) = next else { break };
        search.look_at(segment, entry, stop);
    }
    search.scanned.complete = true;
    Ok(search.scanned)
}

impl Search<'_> {
    fn follows(&self, place: Cursor, other: Cursor) -> bool {
        if self.query.newest_first { place < other } else { place > other }
    }

    fn left(&self) -> u64 {
        self.query.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.scanned.found))
    }

    /// Remembers what matches in one frame.
    fn look_at(&mut self, segment: Arc<Segment>, entry: Entry, stop: &Stop) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.scanned.frames += 1;
        match load(&segment, &entry, &mut buffer) {
            Some(loaded) => {
                let frame = self.frames.len() as u32;
                let before = self.pending.len();
                for (sample, bytes) in frame::samples(loaded.body).enumerate() {
                    if stop.is_stopped() {
                        break;
                    }
                    self.look_at_sample(bytes.unwrap_or_default(), frame, sample as u32);
                }
                if self.pending.len() > before {
                    self.frames.push((segment, entry));
                }
            }
            None => self.scanned.damaged += 1,
        }
        self.buffer = buffer;
        let left = self.left();
        if (self.pending.len() as u64) > left.saturating_mul(2).saturating_add(64) {
            self.sort_pending();
            // The last in the vector are the first in order.
            self.pending.drain(..self.pending.len() - left as usize);
        }
    }

    fn look_at_sample(&mut self, bytes: &[u8], frame: u32, sample: u32) {
        if !self.matcher.may_be_in(bytes) {
            return;
        }
        let Ok(view) = LogBatchView::parse(bytes) else { return };
        let mut origins: Vec<Option<bool>> = Vec::new();
        for (place, record) in view.records().enumerate() {
            let Ok(record) = record else { continue };
            self.scanned.looked_at += 1;
            let origin = record.origin();
            let index = origin.index();
            if origins.len() <= index {
                origins.resize(index + 1, None);
            }
            let wanted = *origins[index].get_or_insert_with(|| self.matcher.wants_origin(&origin));
            if !wanted || !self.matcher.wants_of_origin(&record) {
                continue;
            }
            let place_in_order = Cursor { time: record.time(), id: record.id().unwrap_or_default() };
            if self.query.after.is_none_or(|after| self.follows(place_in_order, after)) {
                self.pending.push(Match { place: place_in_order, frame, sample, record: place as u32 });
            }
        }
    }

    /// Sorts so that the first in order is the last in the vector.
    fn sort_pending(&mut self) {
        if self.query.newest_first {
            self.pending.sort_unstable();
        } else {
            self.pending.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Gives out what is before `bound` in order; `false` when the search is over.
    fn give_out(&mut self, bound: Option<Time>, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> bool {
        if self.left() == 0 {
            return false;
        }
        let newest_first = self.query.newest_first;
        let ready = |found: &Match| match bound {
            Some(bound) if newest_first => found.place.time > bound,
            Some(bound) => found.place.time < bound,
            None => true,
        };
        let count = self.pending.iter().filter(|found| ready(found)).count();
        // Few ready records wait for more, unless they end the search.
        if count == 0 || (bound.is_some() && count < CHUNK && (count as u64) < self.left()) {
            return true;
        }
        self.sort_pending();
        let mut ready_from = self.pending.len() - count;
        ready_from = ready_from.max(self.pending.len().saturating_sub(usize::try_from(self.left()).unwrap_or(usize::MAX)));
        let ready: Vec<Match> = self.pending.drain(ready_from..).rev().collect();
        for chunk in ready.chunks(CHUNK) {
            for record in &mut self.fetch(chunk) {
                if stop.is_stopped() {
                    return false;
                }
                let Some(record) = record else { continue };
                self.scanned.cursor = Some(Cursor::of(record));
                self.scanned.found += 1;
                if !sink(Found { record }) {
                    return false;
                }
            }
        }
        if self.pending.is_empty() {
            self.frames.clear();
        }
        self.left() > 0
    }

    /// Copies these records out of their frames, reading each frame once.
    fn fetch(&mut self, chunk: &[Match]) -> Vec<Option<LogRecord>> {
        let mut by_frame: HashMap<u32, Vec<(u32, u32, usize)>> = HashMap::new();
        for (place, found) in chunk.iter().enumerate() {
            by_frame.entry(found.frame).or_default().push((found.sample, found.record, place));
        }
        let mut records: Vec<Option<LogRecord>> = Vec::new();
        records.resize_with(chunk.len(), || None);
        let mut buffer = std::mem::take(&mut self.buffer);
        for (frame, mut wanted) in by_frame {
            wanted.sort_unstable();
            let Some((segment, entry)) = self.frames.get(frame as usize) else { continue };
            let Some(loaded) = load(segment, entry, &mut buffer) else { continue };
            let received = loaded.header.received;
            let mut wanted = wanted.into_iter().peekable();
            for (sample, bytes) in frame::samples(loaded.body).enumerate() {
                if wanted.peek().is_none_or(|(wanted_sample, ..)| *wanted_sample != sample as u32) {
                    continue;
                }
                let Ok(view) = LogBatchView::parse(bytes.unwrap_or_default()) else { continue };
                for (index, record) in view.records().enumerate() {
                    let Some((_, _, place)) = wanted.next_if(|&(s, r, _)| (s, r) == (sample as u32, index as u32)) else {
                        continue;
                    };
                    if let Ok(record) = record {
                        let mut record = record.to_record();
                        record.received.get_or_insert(received);
                        records[place] = Some(record);
                    }
                    if wanted.peek().is_none_or(|(wanted_sample, ..)| *wanted_sample != sample as u32) {
                        break;
                    }
                }
            }
        }
        self.buffer = buffer;
        records
    }
}
