//! Searching: frames and units in the order of their times, records merged, nothing held that need not be.
//!
//! Files, their row groups, units and frames are taken by their latest time (newest first; by their earliest when oldest first),
//! and a file or row group is only looked into when its turn has come. What cannot hold what is wanted is never read. Of the
//! rest, matching records are remembered by time, id and place, 56 bytes each, and given out as soon as nothing to come can
//! hold an earlier one; with a limit no more are remembered than can still be given out. So the newest hundred are found by
//! reading a few units of however many, and a search through everything needs memory only for what lies within what overlaps in
//! time. Texts are copied only for records that are given out.

use std::{
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tampu_types::{LogRecord, Time};

use super::{
    ArchiveError, Stop,
    local::Contents,
    parquet::{Dictionaries, GroupScan, Table},
    segment::{Entry, Segment},
    stored::Stored,
    units::{Bench, Looked, Unit, frames, may_hold, on_threads},
};
use crate::query::{Cursor, Matcher, Query};

/// Records given out at a time: their units are read again, so too few would read each often.
const CHUNK: usize = 8192;
/// Units looked at together, at most; it begins with a few, which is enough for the newest records.
const TOGETHER: usize = 32;

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
    /// Frames of segments, and units of Parquet files, that were read.
    pub frames: u64,
    /// Frames, and Parquet files and row groups, left out by what is known of them.
    pub left_out: u64,
    /// Frames and units that could not be read now although they could when they were written.
    pub damaged: u64,
    /// Whether everything asked for was given out; if not, the search was stopped or its limit reached.
    pub complete: bool,
    /// Where to go on, as the query's `after`.
    pub cursor: Option<Cursor>,
}

/// Something to look into.
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

/// A matching record, remembered until its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    place: Cursor,
    unit: u32,
    sample: u32,
    record: u32,
}

/// Records of a unit: sample and record in it, and which of the wanted it is.
type Places = Vec<(u32, u32, usize)>;

struct Search<'q> {
    query: &'q Query,
    matcher: Matcher,
    plan: BinaryHeap<Planned>,
    units: Vec<Unit>,
    pending: Vec<Match>,
    benches: Vec<Bench>,
    dictionaries: Dictionaries,
    scanned: Scanned,
}

pub(super) fn search(
    contents: &Contents,
    query: &Query,
    stop: &Stop,
    sink: &mut dyn FnMut(Found<'_>) -> bool,
) -> Result<Scanned, ArchiveError> {
    let mut search = Search {
        query,
        matcher: query.compile()?,
        plan: BinaryHeap::new(),
        units: Vec::new(),
        pending: Vec::new(),
        benches: Vec::new(),
        dictionaries: Dictionaries::default(),
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
    let mut together = 2;
    while !stop.is_stopped() {
        // What the next one cannot come before is ready.
        let bound = search.plan.peek().map(|next| search.time_of(next.key));
        if !search.give_out(bound, stop, sink)? {
            return Ok(search.scanned);
        }
        if bound.is_none() {
            search.scanned.complete = true;
            break;
        }
        let units = search.take(together)?;
        together = (together * 2).min(TOGETHER);
        search.look(units, stop)?;
    }
    Ok(search.scanned)
}

impl Search<'_> {
    fn key(&self, earliest: Time, latest: Time) -> i64 {
        if self.query.newest_first { latest.0 } else { !earliest.0 }
    }

    fn time_of(&self, key: i64) -> Time {
        if self.query.newest_first { Time(key) } else { Time(!key) }
    }

    /// Plans to look into something, unless it is not wanted or lies before where the query begins.
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

    /// The next units, at most so many. What is on top but is no unit is opened and its parts are planned instead.
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
        if self.benches.is_empty() {
            self.benches.push(Bench::new().map_err(ArchiveError::Decompressor)?);
        }
        match GroupScan::new(table, group, &self.matcher, &mut self.benches[0].scratch) {
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

    fn left(&self) -> u64 {
        self.query.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.scanned.found))
    }

    /// Remembers what matches in these units.
    fn look(&mut self, units: Vec<Unit>, stop: &Stop) -> Result<(), ArchiveError> {
        let (query, matcher) = (self.query, &self.matcher);
        let looked = on_threads(&units, &mut self.benches, |unit, bench| {
            if stop.is_stopped() { Looked::default() } else { unit.look(query, matcher, stop, bench) }
        })
        .map_err(ArchiveError::Decompressor)?;
        for (unit, looked) in units.into_iter().zip(looked) {
            self.scanned.frames += 1;
            self.scanned.looked_at += looked.looked_at;
            self.scanned.damaged += u64::from(looked.damaged);
            if !looked.hits.is_empty() {
                let number = self.units.len() as u32;
                self.units.push(unit);
                self.pending.extend(looked.hits.into_iter().map(|(place, sample, record)| Match {
                    place,
                    unit: number,
                    sample,
                    record,
                }));
            }
        }
        let left = self.left();
        if (self.pending.len() as u64) > left.saturating_mul(2).saturating_add(64) {
            self.sort_pending();
            // The last in the vector are the first in order.
            self.pending.drain(..self.pending.len() - left as usize);
        }
        Ok(())
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
    fn give_out(
        &mut self,
        bound: Option<Time>,
        stop: &Stop,
        sink: &mut dyn FnMut(Found<'_>) -> bool,
    ) -> Result<bool, ArchiveError> {
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
        // Few ready records wait for more, unless they end the search.
        if count == 0 || (bound.is_some() && count < CHUNK && (count as u64) < self.left()) {
            return Ok(true);
        }
        self.sort_pending();
        let mut ready_from = self.pending.len() - count;
        ready_from = ready_from.max(self.pending.len().saturating_sub(usize::try_from(self.left()).unwrap_or(usize::MAX)));
        let ready: Vec<Match> = self.pending.drain(ready_from..).rev().collect();
        for chunk in ready.chunks(CHUNK) {
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
        if self.pending.is_empty() {
            self.units.clear();
        }
        Ok(self.left() > 0)
    }

    /// Copies these records out of their units, reading each unit once.
    fn fetch(&mut self, chunk: &[Match]) -> Result<Vec<Option<LogRecord>>, ArchiveError> {
        let mut by_unit: BTreeMap<u32, Places> = BTreeMap::new();
        for (place, found) in chunk.iter().enumerate() {
            by_unit.entry(found.unit).or_default().push((found.sample, found.record, place));
        }
        let wanted: Vec<(&Unit, Places)> = by_unit
            .into_iter()
            .filter_map(|(unit, mut places)| {
                places.sort_unstable();
                Some((self.units.get(unit as usize)?, places))
            })
            .collect();
        let dictionaries = &self.dictionaries;
        let fetched = on_threads(&wanted, &mut self.benches, |(unit, places), bench| {
            let mut records = Vec::with_capacity(places.len());
            unit.fetch(places, dictionaries, bench, &mut |place, record| records.push((place, record)));
            records
        })
        .map_err(ArchiveError::Decompressor)?;
        let mut records: Vec<Option<LogRecord>> = Vec::new();
        records.resize_with(chunk.len(), || None);
        for (place, record) in fetched.into_iter().flatten() {
            records[place] = Some(record);
        }
        Ok(records)
    }
}
