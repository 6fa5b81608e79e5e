//! What a search looks at, one after the other: a frame of a segment, or a unit of a Parquet file.
//!
//! Both give the same two things: the places of their records that match, and those records again when their turn has come.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tampu_types::{BatchHeader, LogRecord, Time, log_batch::LogBatchView};

use super::{
    Stop,
    frame::{self, FrameHeader, Kind, Levels},
    parquet::{Dictionaries, GroupScan, Scratch, records},
    segment::{Entry, Segment},
    stored::Stored,
};
use crate::query::{Cursor, Matcher, Query};

/// Threads that work for one search, its own among them.
const THREADS: usize = 2;

/// Records to look at together.
#[derive(Clone)]
pub(super) enum Unit {
    Frame(Arc<Segment>, Entry),
    Rows(Arc<Stored>, Arc<GroupScan>, usize),
}

/// A matching record: its place in the order, and where in its unit it is.
pub(super) type Hit = (Cursor, u32, u32);

/// What was found in a unit.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) hits: Vec<Hit>,
    pub(super) looked_at: u64,
    pub(super) damaged: bool,
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

/// Whether a frame or file of these times and levels can hold what is wanted.
pub(super) fn may_hold(matcher: &Matcher, earliest: Time, latest: Time, levels: Levels) -> bool {
    levels.meets(Levels(matcher.levels())) && matcher.meets(earliest, latest)
}

/// The frames of segments that hold records.
pub(super) fn frames(segment: &Segment) -> Vec<Entry> {
    segment.select(|entry| entry.kind == Kind::Batch && entry.records > 0)
}

/// What a worker keeps between units.
pub(super) struct Bench {
    pub(super) scratch: Scratch,
    pub(super) buffer: Vec<u8>,
}

impl Bench {
    pub(super) fn new() -> io::Result<Bench> {
        Ok(Bench { scratch: Scratch::new()?, buffer: Vec::new() })
    }
}

impl Unit {
    /// Finds what matches.
    pub(super) fn look(&self, query: &Query, matcher: &Matcher, stop: &Stop, bench: &mut Bench) -> Looked {
        match self {
            Unit::Frame(segment, entry) => look_at_frame(segment, entry, query, matcher, stop, bench),
            Unit::Rows(stored, scan, unit) => {
                let mut looked = Looked { looked_at: scan.rows(*unit) as u64, ..Looked::default() };
                let found = scan.select(*unit, matcher, &mut bench.scratch).and_then(|selection| match selection.count {
                    0 => Ok(Vec::new()),
                    _ => scan.places(*unit, &selection, &mut bench.scratch),
                });
                match found {
                    Ok(places) => {
                        let wanted = places.into_iter().filter(|(place, _)| follows(query, *place));
                        looked.hits = wanted.map(|(place, row)| (place, 0, row)).collect();
                    }
                    Err(error) => {
                        stored.note(&error);
                        looked.damaged = true;
                    }
                }
                looked
            }
        }
    }

    /// Reads records again: `wanted` are the places within the unit, in order, each with a number that `put` is told.
    pub(super) fn fetch(
        &self,
        wanted: &[(u32, u32, usize)],
        dictionaries: &Dictionaries,
        bench: &mut Bench,
        put: &mut dyn FnMut(usize, LogRecord),
    ) {
        match self {
            Unit::Frame(segment, entry) => fetch_from_frame(segment, entry, wanted, bench, put),
            Unit::Rows(stored, scan, unit) => {
                let rows: Vec<u32> = wanted.iter().map(|&(_, row, _)| row).collect();
                let mut numbers = wanted.iter().map(|&(.., number)| number);
                let read = records(&scan.table, scan.group, *unit, &rows, dictionaries, &mut bench.scratch, |record, _| {
                    if let Some(number) = numbers.next() {
                        put(number, record);
                    }
                });
                if let Err(error) = read {
                    stored.note(&error);
                }
            }
        }
    }
}

/// Whether a place comes after where the query begins.
fn follows(query: &Query, place: Cursor) -> bool {
    query.after.is_none_or(|after| if query.newest_first { place < after } else { place > after })
}

fn look_at_frame(segment: &Segment, entry: &Entry, query: &Query, matcher: &Matcher, stop: &Stop, bench: &mut Bench) -> Looked {
    let mut looked = Looked::default();
    let Some(loaded) = load(segment, entry, &mut bench.buffer) else {
        looked.damaged = true;
        return looked;
    };
    for (sample, bytes) in frame::samples(loaded.body).enumerate() {
        if stop.is_stopped() {
            break;
        }
        let bytes = bytes.unwrap_or_default();
        if !matcher.may_be_in(bytes) {
            continue;
        }
        let Ok(view) = LogBatchView::parse(bytes) else { continue };
        let mut origins: Vec<Option<bool>> = Vec::new();
        for (place, record) in view.records().enumerate() {
            let Ok(record) = record else { continue };
            looked.looked_at += 1;
            let origin = record.origin();
            let index = origin.index();
            if origins.len() <= index {
                origins.resize(index + 1, None);
            }
            let wanted = *origins[index].get_or_insert_with(|| matcher.wants_origin(&origin));
            if !wanted || !matcher.wants_of_origin(&record) {
                continue;
            }
            let place_in_order = Cursor { time: record.time(), id: record.id().unwrap_or_default() };
            if follows(query, place_in_order) {
                looked.hits.push((place_in_order, sample as u32, place as u32));
            }
        }
    }
    looked
}

fn fetch_from_frame(
    segment: &Segment,
    entry: &Entry,
    wanted: &[(u32, u32, usize)],
    bench: &mut Bench,
    put: &mut dyn FnMut(usize, LogRecord),
) {
    let Some(loaded) = load(segment, entry, &mut bench.buffer) else { return };
    let received = loaded.header.received;
    let mut wanted = wanted.iter().copied().peekable();
    for (sample, bytes) in frame::samples(loaded.body).enumerate() {
        let sample = sample as u32;
        if wanted.peek().is_none_or(|(wanted_sample, ..)| *wanted_sample != sample) {
            continue;
        }
        let Ok(view) = LogBatchView::parse(bytes.unwrap_or_default()) else { continue };
        for (index, record) in view.records().enumerate() {
            let Some((.., number)) = wanted.next_if(|&(s, r, _)| (s, r) == (sample, index as u32)) else { continue };
            if let Ok(record) = record {
                let mut record = record.to_record();
                record.received.get_or_insert(received);
                put(number, record);
            }
            if wanted.peek().is_none_or(|(wanted_sample, ..)| *wanted_sample != sample) {
                break;
            }
        }
    }
}

/// Does a piece of work for each item, on several threads where there are enough of them; the results are in the items' order.
pub(super) fn on_threads<T: Sync, R: Send>(
    items: &[T],
    benches: &mut Vec<Bench>,
    work: impl Fn(&T, &mut Bench) -> R + Sync,
) -> io::Result<Vec<R>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = THREADS.min(processors).min(items.len().div_ceil(2)).max(1);
    while benches.len() < threads {
        benches.push(Bench::new()?);
    }
    let next = AtomicUsize::new(0);
    let take = |bench: &mut Bench| {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return done };
            done.push((place, work(item, bench)));
        }
    };
    let (own, others) = benches.split_at_mut(1);
    let mut done = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for bench in others.iter_mut().take(threads - 1) {
            // Without another thread its share is done here.
            workers.extend(std::thread::Builder::new().name("archive search".to_owned()).spawn_scoped(scope, || take(bench)));
        }
        let mut done = take(&mut own[0]);
        for worker in workers {
            match worker.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
