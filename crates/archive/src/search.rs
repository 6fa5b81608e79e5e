//! Search: reads frames and units in the order of their times and merges their records, with little memory.
//!
//! Files, row groups, units and frames are ordered by their latest time (newest first; oldest first: by their
//! earliest). A file or row group is opened only at its place in this order. Parts that cannot hold a match are never
//! read. Of the other parts, the search remembers matching records by time, id and position, 60 bytes each. A record is
//! returned as soon as no part that follows can hold an earlier one. With a limit, the search remembers no more records
//! than it can still return. A unit that nothing overlaps goes into an answer of columns as it is; others are held until
//! all their rows have gone out, up to a bound ([`held`]).
//! So the newest hundred records need a few units, for any size of the archive. A search through everything needs memory
//! only for parts that overlap in time. Texts are copied only for returned records.

use std::{
    collections::{BTreeSet, BinaryHeap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, LogRecord, RecordId, Time};

use crate::query::{Cursor, Matcher, Query};
use crate::{
    ArchiveError, Stop,
    columns::{ColumnBatch, ColumnType, UnitReader},
    local::state::Contents,
    parquet::{Dictionaries, GroupScan, Table, stored::Stored},
    search::{
        held::{Held, Waiting, Wanted},
        units::{Unit, UnitColumns, UnitMatches, WorkerBuffers, frames, may_hold, on_threads},
    },
    wal::segment::{Entry, Segment},
};

pub(crate) mod counts;
mod held;
pub(crate) mod patterns;
pub(crate) mod units;

#[cfg(test)]
mod tests;

/// Records returned at a time. Their units are read again, so a small number would read each unit often.
const CHUNK: usize = 8192;
/// Records behind those that are returned, whose units may be read with theirs.
const AHEAD: usize = 4 * CHUNK;
/// Units whose rows are read at once for an answer in columns.
const UNITS_HELD: usize = 4;
/// Records beyond the limit that a search remembers.
const SPARE: u64 = 64;
/// Most units examined together. A search begins with a few, which is enough for the newest records.
const TOGETHER: usize = 32;

/// Record that matches a search.
#[derive(Debug)]
pub struct Found<'a> {
    /// The record, with its time of reception.
    pub record: &'a mut LogRecord,
}

/// Summary of a finished search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scanned {
    /// Number of records returned.
    pub found: u64,
    /// Number of records examined.
    pub looked_at: u64,
    /// Number of frames of segments and units of Parquet files that were read.
    pub frames: u64,
    /// Number of frames, Parquet files and row groups that the index excluded.
    pub left_out: u64,
    /// Number of frames and units that were readable when they were written, and of which some records
    /// are not readable now.
    pub damaged: u64,
    /// False if the search was stopped or its limit reached before everything was reported.
    pub complete: bool,
    /// Position to continue from, as the query's `after`. After a search that was stopped, everything before it has been
    /// searched, also if nothing was found.
    pub cursor: Option<Cursor>,
}

/// Part of the archive that a search can open.
enum What {
    Frame(Arc<Segment>, Entry),
    File(Arc<Stored>),
    Group(Arc<Stored>, Arc<Table>, usize),
    Rows(Arc<Stored>, Arc<GroupScan>, usize),
}

struct Planned {
    key: i64,
    what: What,
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

/// Matching record that waits for its place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    place: Cursor,
    unit: u32,
    sample: u32,
    record: u32,
}

/// Receiver of what a search finds: records, or the same rows in columns.
pub(crate) enum Sink<'s> {
    Records(&'s mut dyn FnMut(Found<'_>) -> bool),
    Columns(&'s [(&'static str, ColumnType)], &'s mut dyn FnMut(ColumnBatch) -> bool),
}

/// Treatment of a few ready matches: they wait for more, or go at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Few {
    Wait,
    Go,
}

struct Search<'q> {
    query: &'q Query,
    matcher: Matcher,
    plan: BinaryHeap<Planned>,
    units: Vec<Waiting>,
    /// Numbers of those that are counted as damaged.
    damaged: BTreeSet<u32>,
    pending: Vec<Match>,
    buffers: Vec<WorkerBuffers>,
    dictionaries: Dictionaries,
    reader: UnitReader,
    /// For an answer in columns.
    held: Option<Held>,
    /// The last row, if it was given out without a look at its id.
    last: Option<(Unit, u32)>,
    scanned: Scanned,
}

pub(crate) fn search(contents: &Contents, query: &Query, stop: &Stop, sink: &mut Sink<'_>) -> Result<Scanned, ArchiveError> {
    let mut search = Search {
        query,
        matcher: query.compile()?,
        plan: BinaryHeap::new(),
        units: Vec::new(),
        damaged: BTreeSet::new(),
        pending: Vec::new(),
        buffers: Vec::new(),
        dictionaries: Dictionaries::default(),
        reader: UnitReader::default(),
        held: match sink {
            Sink::Records(_) => None,
            Sink::Columns(schema, _) => Some(Held::new(schema)),
        },
        last: None,
        scanned: Scanned::default(),
    };
    for segment in &contents.segments {
        for entry in frames(segment) {
            let wanted = may_hold(&search.matcher, entry.earliest, entry.latest, entry.levels);
            search.add(wanted, entry.earliest, entry.latest, || What::Frame(segment.clone(), entry));
        }
    }
    for file in contents.files.iter() {
        let wanted = may_hold(&search.matcher, file.entry.earliest, file.entry.latest, file.levels());
        search.add(wanted, file.entry.earliest, file.entry.latest, || What::File(file.clone()));
    }
    search.run(stop, sink)?;
    search.find_cursor()?;
    Ok(search.scanned)
}

impl Search<'_> {
    fn run(&mut self, stop: &Stop, sink: &mut Sink<'_>) -> Result<(), ArchiveError> {
        let mut together = 2;
        let mut front = None;
        while !stop.is_stopped() {
            // Matches before the first possible time of the next source are ready.
            let bound = self.plan.peek().map(|next| self.time_of(next.key));
            front = bound;
            if !self.give_out(bound, Few::Wait, stop, sink)? {
                return Ok(());
            }
            if bound.is_none() {
                if self.pending.is_empty() {
                    self.scanned.complete = true;
                    break;
                }
                // They take the places of records that could not be read.
                continue;
            }
            let mut units = self.take(together)?;
            together = (together * 2).min(TOGETHER);
            if let Sink::Columns(schema, sink) = sink {
                let direct = units.drain(..self.in_order(&units)).collect();
                if !self.give_units(direct, schema, stop, sink)? {
                    return Ok(());
                }
                if !self.query.newest_first {
                    self.put_back(&mut units);
                }
            }
            self.look(units, stop)?;
        }
        match front {
            Some(front) if !self.scanned.complete => self.end_early(front, sink),
            _ => Ok(()),
        }
    }

    /// Ends a search that was stopped: gives out the matches before `front`, up to which everything has been looked at, and
    /// continues from there. So a search for rare records advances however often its time is over.
    fn end_early(&mut self, front: Time, sink: &mut Sink<'_>) -> Result<(), ArchiveError> {
        // Rows in columns may have been given out beyond it.
        if matches!(sink, Sink::Columns(..)) || !self.give_out(Some(front), Few::Go, &Stop::default(), sink)? {
            return Ok(());
        }
        let newest_first = self.query.newest_first;
        let place = if newest_first {
            Cursor { time: Time(front.0.saturating_add(1)), id: RecordId::default() }
        } else {
            let incarnation = Incarnation { boot: u32::MAX, pid: u32::MAX, start: u64::MAX };
            let last = RecordId { incarnation, ring: u32::MAX, number: u64::MAX };
            Cursor { time: Time(front.0.saturating_sub(1)), id: last }
        };
        let known = self.scanned.cursor.or(self.query.after);
        let advances = known.is_none_or(|known| if newest_first { place < known } else { place > known });
        self.scanned.cursor = if advances { Some(place) } else { known };
        Ok(())
    }

    /// Finds the position of the last row, if it was given out without a look at its id.
    fn find_cursor(&mut self) -> Result<(), ArchiveError> {
        let Some((unit, row)) = self.last.take() else { return Ok(()) };
        if self.buffers.is_empty() {
            self.buffers.push(WorkerBuffers::new().map_err(ArchiveError::Decompressor)?);
        }
        let place = unit.place(row, &mut self.buffers[0]);
        self.scanned.damaged += u64::from(place.is_none());
        self.scanned.cursor = Some(place.unwrap_or(Cursor { time: unit.span().1, id: RecordId::default() }));
        Ok(())
    }

    fn key(&self, earliest: Time, latest: Time) -> i64 {
        if self.query.newest_first { latest.0 } else { !earliest.0 }
    }

    fn time_of(&self, key: i64) -> Time {
        if self.query.newest_first { Time(key) } else { Time(!key) }
    }

    /// Plans to open a part, unless it is unwanted or lies before the start of the query.
    fn add(&mut self, wanted: bool, earliest: Time, latest: Time, what: impl FnOnce() -> What) {
        let reaches_after = match self.query.after {
            Some(after) if self.query.newest_first => earliest <= after.time,
            Some(after) => latest >= after.time,
            None => true,
        };
        if wanted && reaches_after {
            self.plan.push(Planned { key: self.key(earliest, latest), what: what() });
        } else {
            self.scanned.left_out += 1;
        }
    }

    /// Returns the next units, at most so many. A larger part at the top is opened, and its own parts are planned
    /// instead.
    fn take(&mut self, most: usize) -> Result<Vec<Unit>, ArchiveError> {
        let mut units = Vec::new();
        while units.len() < most {
            let Some(Planned { what, .. }) = self.plan.pop() else { break };
            match what {
                What::Frame(segment, entry) => units.push(Unit::Frame(segment, entry)),
                What::Rows(stored, scan, unit) => units.push(Unit::Rows(stored, scan, unit)),
                What::File(stored) => match stored.open() {
                    Some(table) => {
                        for (number, group) in table.index.groups.iter().enumerate() {
                            let (earliest, latest) = (group.earliest(), group.latest());
                            let wanted = may_hold(&self.matcher, earliest, latest, group.levels);
                            self.add(wanted, earliest, latest, || What::Group(stored.clone(), table.clone(), number));
                        }
                    }
                    None => self.scanned.damaged += 1,
                },
                What::Group(stored, table, group) => self.open_group(stored, &table, group)?,
            }
        }
        Ok(units)
    }

    fn open_group(&mut self, stored: Arc<Stored>, table: &Arc<Table>, group: usize) -> Result<(), ArchiveError> {
        if self.buffers.is_empty() {
            self.buffers.push(WorkerBuffers::new().map_err(ArchiveError::Decompressor)?);
        }
        match GroupScan::new(table, group, &self.matcher, &mut self.buffers[0].scratch) {
            Ok(Some(scan)) => {
                let scan = Arc::new(scan);
                for unit in 0..scan.units() {
                    let (earliest, latest) = scan.span(unit);
                    let wanted = self.matcher.meets(earliest, latest);
                    self.add(wanted, earliest, latest, || What::Rows(stored.clone(), scan.clone(), unit));
                }
            }
            Ok(None) => self.scanned.left_out += 1,
            Err(error) => {
                stored.note(&error);
                self.scanned.damaged += 1;
            }
        }
        Ok(())
    }

    /// Plans the units of files anew that begin after the end of all units before them: once those are given out, these can
    /// be given out as they are.
    fn put_back(&mut self, units: &mut Vec<Unit>) {
        let mut end = Time(i64::MIN);
        let overlaps = |unit: &&Unit| {
            let (earliest, latest) = unit.span();
            let overlaps = end == Time(i64::MIN) || earliest <= end || matches!(unit, Unit::Frame(..));
            end = end.max(latest);
            overlaps
        };
        let count = units.iter().take_while(overlaps).count();
        for unit in units.drain(count..) {
            let (earliest, latest) = unit.span();
            let what = match unit {
                Unit::Frame(segment, entry) => What::Frame(segment, entry),
                Unit::Rows(stored, scan, unit) => What::Rows(stored, scan, unit),
            };
            self.plan.push(Planned { key: self.key(earliest, latest), what });
        }
    }

    fn left(&self) -> u64 {
        self.query.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.scanned.found))
    }

    /// Remembers the matching records of these units.
    fn look(&mut self, units: Vec<Unit>, stop: &Stop) -> Result<(), ArchiveError> {
        let (query, matcher) = (self.query, &self.matcher);
        let looked = on_threads(&units, &mut self.buffers, |unit, buffers| {
            if stop.is_stopped() { UnitMatches::default() } else { unit.look(query, matcher, stop, buffers) }
        })
        .map_err(ArchiveError::Decompressor)?;
        for (unit, looked) in units.into_iter().zip(looked) {
            self.scanned.frames += 1;
            self.scanned.looked_at += looked.looked_at;
            self.scanned.damaged += u64::from(looked.damaged);
            if !looked.hits.is_empty() {
                let number = self.units.len() as u32;
                let has_rows = self.held.is_some() && matches!(unit, Unit::Rows(..));
                let rows = if has_rows { looked.hits.iter().map(|&(.., row)| row).collect() } else { Vec::new() };
                self.units.push(Waiting { unit, rows, left: looked.hits.len() });
                self.pending.extend(looked.hits.into_iter().map(|(place, sample, record)| Match {
                    place,
                    unit: number,
                    sample,
                    record,
                }));
            }
        }
        let left = self.left();
        if (self.pending.len() as u64) > left.saturating_mul(2).saturating_add(2 * SPARE) {
            self.sort_pending();
            // The vector's last elements are the first in the result. A few more replace those that cannot be read.
            self.pending.drain(..self.pending.len() - (left + SPARE) as usize);
        }
        Ok(())
    }

    /// Sorts so that the first in order is the last in the vector. The matches of each unit are in order already, which
    /// the stable sort makes use of.
    fn sort_pending(&mut self) {
        if self.query.newest_first {
            self.pending.sort();
        } else {
            self.pending.sort_by(|a, b| b.cmp(a));
        }
    }

    /// Returns the matches before `bound` in order to the caller; `false` when the search is over.
    fn give_out(&mut self, bound: Option<Time>, few: Few, stop: &Stop, sink: &mut Sink<'_>) -> Result<bool, ArchiveError> {
        if self.left() == 0 {
            return Ok(false);
        }
        let newest_first = self.query.newest_first;
        let ready = |found: &Match| match bound {
            Some(bound) if newest_first => found.place.time > bound,
            Some(bound) => found.place.time < bound,
            None => true,
        };
        let count = self.pending.iter().filter(|found| ready(found)).count();
        // A few ready records wait for more, unless they end the search, or what follows needs no records.
        let clears = matches!(sink, Sink::Columns(..)) && count == self.pending.len();
        let waits = bound.is_some() && count < CHUNK && (count as u64) < self.left() && !clears;
        if count == 0 || (waits && few == Few::Wait) {
            return Ok(true);
        }
        self.sort_pending();
        let mut ready_from = self.pending.len() - count;
        ready_from = ready_from.max(self.pending.len().saturating_sub(usize::try_from(self.left()).unwrap_or(usize::MAX)));
        let ready: Vec<Match> = self.pending.drain(ready_from..).rev().collect();
        for (number, chunk) in ready.chunks(CHUNK).enumerate() {
            match sink {
                Sink::Records(sink) => {
                    for record in &mut self.fetch(chunk)? {
                        if stop.is_stopped() {
                            return Ok(false);
                        }
                        let Some(record) = record else { continue };
                        self.scanned.cursor = Some(Cursor::of(record));
                        self.scanned.found += 1;
                        if !sink(Found { record }) {
                            return Ok(false);
                        }
                    }
                }
                Sink::Columns(schema, sink) => {
                    if stop.is_stopped() {
                        return Ok(false);
                    }
                    let next = &ready[number * CHUNK + chunk.len()..];
                    let batches = self.fetch_columns(chunk, &next[..next.len().min(AHEAD)], schema)?;
                    self.scanned.cursor = chunk.last().map(|last| last.place);
                    self.last = None;
                    self.scanned.found += batches.iter().map(|batch| batch.rows as u64).sum::<u64>();
                    for batch in batches {
                        if !sink(batch) {
                            return Ok(false);
                        }
                    }
                }
            }
        }
        if self.pending.is_empty() {
            self.units.clear();
            self.damaged.clear();
            self.held.iter_mut().for_each(Held::clear);
        }
        Ok(self.left() > 0)
    }

    /// Returns the number of units from the first on whose rows can be given out as they are: nothing else lies before the
    /// end of them, and the query's start lies before them.
    fn in_order(&self, units: &[Unit]) -> usize {
        if self.query.newest_first || !self.pending.is_empty() {
            return 0;
        }
        let next_key = self.plan.peek().map(|next| self.time_of(next.key));
        let is_clear = |(place, unit): (usize, &Unit)| {
            let Unit::Rows(_, scan, number) = unit else { return false };
            let (earliest, latest) = scan.span(*number);
            let behind = &units[place + 1..];
            // The rows of a group are in order, also those of one time. Others may have rows of its last time.
            let is_of_group = |unit: &&Unit| matches!(unit, Unit::Rows(_, other, _) if Arc::ptr_eq(scan, other));
            let goes_on =
                matches!(behind.first(), Some(Unit::Rows(_, other, next)) if Arc::ptr_eq(scan, other) && *next == number + 1);
            let other = behind.iter().find(|unit| !(goes_on && is_of_group(unit))).map(|unit| unit.span().0).or(next_key);
            let before_next = other.is_none_or(|other| latest < other) && next_key.is_none_or(|next| latest < next);
            before_next && self.query.after.is_none_or(|after| after.time < earliest)
        };
        units.iter().enumerate().take_while(|place| is_clear(*place)).count()
    }

    /// Gives out the matching rows of these units, one unit after the other; `false` when the search is over.
    fn give_units(
        &mut self,
        units: Vec<Unit>,
        schema: &[(&'static str, ColumnType)],
        stop: &Stop,
        sink: &mut dyn FnMut(ColumnBatch) -> bool,
    ) -> Result<bool, ArchiveError> {
        // A few at a time: their rows are held until they are sent.
        for units in units.chunks(UNITS_HELD) {
            let (matcher, reader, left) = (&self.matcher, &self.reader, self.left());
            let read = on_threads(units, &mut self.buffers, |unit, buffers| {
                if stop.is_stopped() { UnitColumns::default() } else { unit.columns(matcher, left, reader, schema, buffers) }
            })
            .map_err(ArchiveError::Decompressor)?;
            for (unit, read) in units.iter().zip(read) {
                self.scanned.frames += 1;
                self.scanned.looked_at += read.looked_at;
                // Several units were read for the rows that are left.
                let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
                let last = read.rows.as_ref().and_then(|rows| rows.get(left.checked_sub(1)?)).copied().unwrap_or(u32::MAX);
                self.scanned.damaged += u64::from(read.damaged.is_some_and(|row| row < last));
                let mut given = 0;
                for batch in ColumnBatch::first_rows(read.batches, left) {
                    if stop.is_stopped() {
                        return Ok(false);
                    }
                    given += batch.rows;
                    self.scanned.found += batch.rows as u64;
                    let last = given - 1;
                    self.last = Some((unit.clone(), read.rows.as_ref().map_or(last as u32, |rows| rows[last])));
                    if !sink(batch) {
                        return Ok(false);
                    }
                }
                if given == left {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Reads these rows from their units, in their order. Each unit is read once, also for the chunks that follow.
    fn fetch_columns(
        &mut self,
        chunk: &[Match],
        next: &[Match],
        schema: &[(&'static str, ColumnType)],
    ) -> Result<Vec<ColumnBatch>, ArchiveError> {
        let wanted = by_unit(self.units.len(), chunk);
        let goes_on = self.left() > chunk.len() as u64;
        let held = self.held.get_or_insert_with(|| Held::new(schema));
        let plan = held.plan(&wanted, next.iter().map(|found| found.unit), &self.units, goes_on);
        let (reader, units) = (&self.reader, &self.units);
        let read = on_threads(&plan, &mut self.buffers, |(Wanted { unit, places }, _), buffers| {
            units[*unit as usize].unit.fetch_columns(places, reader, schema, buffers)
        })
        .map_err(ArchiveError::Decompressor)?;
        let (mut fetched, mut damaged) = (Vec::new(), Vec::new());
        for ((Wanted { unit, .. }, is_held), read) in plan.iter().zip(read) {
            if *is_held {
                held.hold(*unit, read, &self.units[*unit as usize].rows);
            } else {
                damaged.extend(read.damaged.then_some(*unit));
                fetched.push(read);
            }
        }
        let (batches, of_held) = held.in_order(&wanted, fetched, chunk.len());
        for Wanted { unit, places } in &wanted {
            let waiting = &mut self.units[*unit as usize];
            waiting.left = waiting.left.saturating_sub(places.len());
            if waiting.left == 0 {
                held.drop(*unit);
                waiting.rows = Vec::new();
            }
        }
        damaged.extend(of_held);
        self.count_damaged(damaged);
        Ok(batches)
    }

    /// Counts units as damaged, each once.
    fn count_damaged(&mut self, units: Vec<u32>) {
        let fresh = units.into_iter().filter(|unit| self.damaged.insert(*unit)).count();
        self.scanned.damaged += fresh as u64;
    }

    /// Copies these records from their units, reading each unit once.
    fn fetch(&mut self, chunk: &[Match]) -> Result<Vec<Option<LogRecord>>, ArchiveError> {
        let wanted = by_unit(self.units.len(), chunk);
        let (dictionaries, units) = (&self.dictionaries, &self.units);
        let fetched = on_threads(&wanted, &mut self.buffers, |Wanted { unit, places }, buffers| {
            let mut records = Vec::with_capacity(places.len());
            let put = &mut |place, record| records.push((place, record));
            let is_whole = units[*unit as usize].unit.fetch(places, dictionaries, buffers, put);
            (records, (!is_whole).then_some(*unit))
        })
        .map_err(ArchiveError::Decompressor)?;
        let mut records: Vec<Option<LogRecord>> = Vec::new();
        records.resize_with(chunk.len(), || None);
        let mut damaged = Vec::new();
        for (found, bad) in fetched {
            damaged.extend(bad);
            for (place, record) in found {
                records[place] = Some(record);
            }
        }
        self.count_damaged(damaged);
        Ok(records)
    }
}

/// Returns the rows of these matches by their units, of which there are so many.
fn by_unit(units: usize, chunk: &[Match]) -> Vec<Wanted> {
    let (mut all, mut places) = (Vec::<Wanted>::new(), vec![None; units]);
    for (number, found) in chunk.iter().enumerate() {
        let place = *places[found.unit as usize].get_or_insert_with(|| {
            all.push(Wanted { unit: found.unit, places: Vec::new() });
            all.len() - 1
        });
        all[place].places.push((found.sample, found.record, number));
    }
    all.iter_mut().for_each(|wanted| wanted.places.sort());
    all
}
