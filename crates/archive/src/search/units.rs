//! Units of a search: a frame of a segment, or a unit of a Parquet file.
//!
//! Both kinds offer the same two things: the positions of their matching records, and later those records themselves.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tampu_types::{BatchHeader, LogRecord, Time, log_batch::LogBatchView};
use tampu_workers::{OnPanic, WorkerThread};

use crate::query::{Cursor, Matcher, Query};
use crate::{
    Stop,
    columns::{ColumnBatch, ColumnTable, ColumnType, UnitReader, push_record},
    parquet::{Dictionaries, GroupScan, Scratch, records, stored::Stored},
    wal::{
        frame::{self, FrameHeader, Kind, LevelSet},
        segment::{Entry, Segment},
    },
};

/// Number of threads that work for one search, including its own.
const THREADS: usize = 2;

/// Records that a search examines together.
#[derive(Clone)]
pub(crate) enum Unit {
    Frame(Arc<Segment>, Entry),
    Rows(Arc<Stored>, Arc<GroupScan>, usize),
}

/// Matching record: its position in the order, and its position in the unit.
pub(crate) type Hit = (Cursor, u32, u32);

/// Matches of one unit.
#[derive(Default)]
pub(crate) struct UnitMatches {
    pub(crate) hits: Vec<Hit>,
    pub(crate) looked_at: u64,
    pub(crate) damaged: bool,
}

/// Matching rows of one unit.
#[derive(Default)]
pub(crate) struct UnitColumns {
    pub(crate) batches: Vec<ColumnBatch>,
    /// Their rows in the unit; `None` for all.
    pub(crate) rows: Option<Vec<u32>>,
    pub(crate) looked_at: u64,
    /// The first row that cannot be read.
    pub(crate) damaged: Option<u32>,
}

/// Rows that were read again.
#[derive(Default)]
pub(crate) struct FetchedColumns {
    pub(crate) batches: Vec<ColumnBatch>,
    /// The number of each row in the answer.
    pub(crate) numbers: Vec<usize>,
    /// True if rows could not be read.
    pub(crate) damaged: bool,
}

/// One frame, read and checked.
pub(crate) struct Loaded<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) body: &'a [u8],
}

/// Reads and checks a batch frame; `None` if it is damaged.
pub(crate) fn load<'a>(segment: &Segment, entry: &Entry, buffer: &'a mut Vec<u8>) -> Option<Loaded<'a>> {
    let (header, body) = segment.load(entry, buffer)?;
    let (_, body) = BatchHeader::decode(body).ok()?;
    Some(Loaded { header, body })
}

/// Returns whether a frame or file of these times and levels can hold matching records.
pub(crate) fn may_hold(matcher: &Matcher, earliest: Time, latest: Time, levels: LevelSet) -> bool {
    levels.meets(LevelSet(matcher.levels())) && matcher.meets(earliest, latest)
}

/// Returns the frames of segments that hold records.
pub(crate) fn frames(segment: &Segment) -> Vec<Entry> {
    segment.select(|entry| entry.kind == Kind::Batch && entry.records > 0)
}

/// Buffers that a worker keeps between units.
pub(crate) struct WorkerBuffers {
    pub(crate) scratch: Scratch,
    pub(crate) buffer: Vec<u8>,
}

impl WorkerBuffers {
    pub(crate) fn new() -> io::Result<WorkerBuffers> {
        Ok(WorkerBuffers { scratch: Scratch::new()?, buffer: Vec::new() })
    }
}

impl Unit {
    /// Finds the matching records.
    pub(crate) fn look(&self, query: &Query, matcher: &Matcher, stop: &Stop, buffers: &mut WorkerBuffers) -> UnitMatches {
        match self {
            Unit::Frame(segment, entry) => look_at_frame(segment, entry, query, matcher, stop, buffers),
            Unit::Rows(stored, scan, unit) => {
                let mut looked = UnitMatches { looked_at: scan.rows(*unit) as u64, ..UnitMatches::default() };
                let found = scan.select(*unit, matcher, &mut buffers.scratch).and_then(|selection| match selection.count {
                    0 => Ok(Vec::new()),
                    _ => scan.places(*unit, &selection, &mut buffers.scratch),
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

    /// Reads the matching rows as columns, without their positions. Where a row cannot be read, the others are read one
    /// by one, so that this loses what [`Unit::fetch`] loses.
    pub(crate) fn columns(
        &self,
        matcher: &Matcher,
        most: u64,
        reader: &UnitReader,
        schema: &[(&'static str, ColumnType)],
        buffers: &mut WorkerBuffers,
    ) -> UnitColumns {
        let Unit::Rows(stored, scan, unit) = self else { return UnitColumns::default() };
        let mut columns = UnitColumns { looked_at: scan.rows(*unit) as u64, ..UnitColumns::default() };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let read = scan.select(*unit, matcher, &mut buffers.scratch).and_then(|selection| {
            if selection.count == 0 {
                return Ok(());
            }
            let first = |most| selection.rows().take(most).map(|row| row as u32).collect::<Vec<u32>>();
            columns.rows = (!selection.is_whole() || most < selection.count).then(|| first(most));
            match reader.read(scan, *unit, columns.rows.as_deref(), schema, &mut buffers.scratch) {
                Ok(batch) => columns.batches.push(batch),
                Err(_) => {
                    let rows = first(usize::MAX);
                    let (batches, places, error) = reader.read_each(scan, *unit, &rows, most, schema, &mut buffers.scratch);
                    columns.batches = batches;
                    columns.damaged = rows.get(places.iter().enumerate().take_while(|(at, place)| at == *place).count()).copied();
                    columns.rows = Some(places.into_iter().map(|place| rows[place]).collect());
                    return error;
                }
            }
            Ok(())
        });
        match read {
            Ok(()) => columns.damaged = None,
            Err(error) => {
                stored.note(&error);
                columns.damaged.get_or_insert(0);
            }
        }
        columns
    }

    /// Returns the first and the last time.
    pub(crate) fn span(&self) -> (Time, Time) {
        match self {
            Unit::Frame(_, entry) => (entry.earliest, entry.latest),
            Unit::Rows(_, scan, unit) => scan.span(*unit),
        }
    }

    /// Returns the position of a row in the order of answers.
    pub(crate) fn place(&self, row: u32, buffers: &mut WorkerBuffers) -> Option<Cursor> {
        let Unit::Rows(_, scan, unit) = self else { return None };
        scan.place(*unit, row, &mut buffers.scratch).ok()
    }

    /// Reads rows again, as columns. `wanted` are their positions within the unit, in order.
    pub(crate) fn fetch_columns(
        &self,
        wanted: &[(u32, u32, usize)],
        reader: &UnitReader,
        schema: &[(&'static str, ColumnType)],
        buffers: &mut WorkerBuffers,
    ) -> FetchedColumns {
        match self {
            Unit::Frame(segment, entry) => {
                let (mut table, mut numbers) = (ColumnTable::new(schema.iter().copied()), Vec::new());
                let is_whole = fetch_from_frame(segment, entry, wanted, buffers, &mut |number, record| {
                    push_record(&mut table, &record);
                    numbers.push(number);
                });
                FetchedColumns { batches: table.into_batches(), numbers, damaged: !is_whole }
            }
            Unit::Rows(stored, scan, unit) => {
                let rows: Vec<u32> = wanted.iter().map(|&(_, row, _)| row).collect();
                if let Ok(batch) = reader.read(scan, *unit, Some(&rows), schema, &mut buffers.scratch) {
                    let numbers = wanted.iter().map(|&(.., number)| number).collect();
                    return FetchedColumns { batches: vec![batch], numbers, damaged: false };
                }
                let (batches, places, error) = reader.read_each(scan, *unit, &rows, usize::MAX, schema, &mut buffers.scratch);
                let damaged = error.inspect_err(|error| stored.note(error)).is_err();
                FetchedColumns { batches, numbers: places.into_iter().map(|place| wanted[place].2).collect(), damaged }
            }
        }
    }

    /// Reads records again. `wanted` are their positions within the unit, in order, each with a number that is passed
    /// to `put`. Returns false if some could not be read.
    pub(crate) fn fetch(
        &self,
        wanted: &[(u32, u32, usize)],
        dictionaries: &Dictionaries,
        buffers: &mut WorkerBuffers,
        put: &mut dyn FnMut(usize, LogRecord),
    ) -> bool {
        match self {
            Unit::Frame(segment, entry) => fetch_from_frame(segment, entry, wanted, buffers, put),
            Unit::Rows(stored, scan, unit) => {
                let rows: Vec<u32> = wanted.iter().map(|&(_, row, _)| row).collect();
                let put = |place: usize, record, _: &dyn Fn() -> _| put(wanted[place].2, record);
                let read = records(&scan.table, scan.group, *unit, &rows, dictionaries, &mut buffers.scratch, put);
                read.inspect_err(|error| stored.note(error)).is_ok()
            }
        }
    }
}

/// Returns whether a position comes after the query's start.
fn follows(query: &Query, place: Cursor) -> bool {
    query.after.is_none_or(|after| if query.newest_first { place < after } else { place > after })
}

fn look_at_frame(
    segment: &Segment,
    entry: &Entry,
    query: &Query,
    matcher: &Matcher,
    stop: &Stop,
    buffers: &mut WorkerBuffers,
) -> UnitMatches {
    let mut looked = UnitMatches::default();
    let Some(loaded) = load(segment, entry, &mut buffers.buffer) else {
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

/// Returns false if some records could not be read.
fn fetch_from_frame(
    segment: &Segment,
    entry: &Entry,
    wanted: &[(u32, u32, usize)],
    buffers: &mut WorkerBuffers,
    put: &mut dyn FnMut(usize, LogRecord),
) -> bool {
    let Some(loaded) = load(segment, entry, &mut buffers.buffer) else { return false };
    let received = loaded.header.received;
    let mut read = 0;
    let all = wanted.len();
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
                read += 1;
            }
            if wanted.peek().is_none_or(|(wanted_sample, ..)| *wanted_sample != sample) {
                break;
            }
        }
    }
    read == all
}

/// Processes each item, on several threads if there are enough items; the results are in the items' order.
pub(crate) fn on_threads<T: Sync, R: Send>(
    items: &[T],
    buffers: &mut Vec<WorkerBuffers>,
    work: impl Fn(&T, &mut WorkerBuffers) -> R + Sync,
) -> io::Result<Vec<R>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = THREADS.min(processors).min(items.len().div_ceil(2)).max(1);
    while buffers.len() < threads {
        buffers.push(WorkerBuffers::new()?);
    }
    let next = AtomicUsize::new(0);
    let take = |buffers: &mut WorkerBuffers| {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return done };
            done.push((place, work(item, buffers)));
        }
    };
    let (own, others) = buffers.split_at_mut(1);
    let mut done = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for buffers in others.iter_mut().take(threads - 1) {
            // If no thread can be started, this thread does its share.
            workers.extend(WorkerThread::named("archive search").spawn_scoped(scope, OnPanic::ReportOnly, || take(buffers)));
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
