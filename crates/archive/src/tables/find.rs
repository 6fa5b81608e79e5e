//! Search for rows of a table: reads frames of segments and units of Parquet files in the order of their times, and
//! merges rows.
//!
//! As in the log's search, parts that cannot hold a match are never read. Matching rows are remembered by their
//! position and read at their place in the order. One thread does it, because a table has few rows compared with the
//! log.

use std::{
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tampu_types::{BatchHeader, Time};

use super::{
    Place, Row, Schema,
    read::{Column, Keys, TOGETHER, at_once, rows},
};
use crate::{
    ArchiveError, Stop,
    local::state::Contents,
    parquet::{BadTable, Dictionaries, Scratch, Table, stored::Stored},
    wal::{
        frame::{self, Kind},
        segment::{Entry, Segment},
    },
};

/// A search for rows.
pub struct Find<'q> {
    /// Start: rows from this time on.
    pub since: Option<Time>,
    /// End: rows before this time.
    pub until: Option<Time>,
    /// Marks of which a row must have one.
    pub marks: u16,
    /// Index of the text column for `wants`, after the keys.
    pub column: usize,
    /// Condition on the text of that column.
    pub wants: &'q dyn Fn(&[u8]) -> bool,
    /// Start position: only rows after it match.
    pub after: Option<Place>,
    /// Latest rows first if true.
    pub newest_first: bool,
}

/// Summary of a finished search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Swept {
    /// Number of rows returned.
    pub found: u64,
    /// Number of rows examined.
    pub looked_at: u64,
    /// Number of frames and units that were readable when they were written and are not readable now.
    pub damaged: u64,
    /// False if the search ended before everything was reported.
    pub complete: bool,
    /// Position to continue from, as [`Find::after`].
    pub cursor: Option<Place>,
}

enum What {
    Frame(Arc<Segment>, Entry),
    File(Arc<Stored>),
    Unit(Arc<Stored>, Arc<Table>, usize, usize),
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

/// Matching row: its position in the order and in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    place: Place,
    source: u32,
    row: u32,
    /// Bytes of its sample in a frame; 0 in a unit, whose rows have about equal lengths.
    bytes: u32,
}

/// Most rows returned at a time.
const CHUNK: usize = 4096;

struct Search<'s, 'q> {
    schema: &'static Schema,
    find: &'s Find<'q>,
    plan: BinaryHeap<Planned>,
    sources: Vec<What>,
    /// Matches that wait, sorted when they are returned: the last is the first in order.
    pending: Vec<Hit>,
    dictionaries: Dictionaries,
    scratch: Scratch,
    buffer: Vec<u8>,
    swept: Swept,
}

/// Calls `sink` with the rows, in order, until it returns `false` or `stop` is set.
pub(super) fn find(
    schema: &'static Schema,
    contents: &Contents,
    find: &Find<'_>,
    stop: &Stop,
    sink: &mut dyn FnMut(Row) -> bool,
) -> Result<Swept, ArchiveError> {
    let mut search = Search {
        schema,
        find,
        plan: BinaryHeap::new(),
        sources: Vec::new(),
        pending: Vec::new(),
        dictionaries: Dictionaries::default(),
        scratch: Scratch::new().map_err(ArchiveError::Decompressor)?,
        buffer: Vec::new(),
        swept: Swept::default(),
    };
    for segment in &contents.segments {
        for entry in segment.select(|entry| entry.kind == Kind::Batch && entry.records > 0) {
            search.plan(entry.earliest, entry.latest, entry.levels.0, What::Frame(segment.clone(), entry));
        }
    }
    for file in contents.files.iter() {
        search.plan(file.entry.earliest, file.entry.latest, file.entry.levels, What::File(file.clone()));
    }
    loop {
        // Matches before the first possible time of the next source are ready.
        let bound = search.plan.peek().map(|next| search.time_of(next.key));
        if !search.give_out(bound, stop, sink) || stop.is_stopped() {
            return Ok(search.swept);
        }
        let Some(Planned { what, .. }) = search.plan.pop() else {
            search.swept.complete = true;
            return Ok(search.swept);
        };
        search.look(what);
    }
}

impl Search<'_, '_> {
    fn time_of(&self, key: i64) -> Time {
        if self.find.newest_first { Time(key) } else { Time(!key) }
    }

    /// Plans to open a part, unless nothing of it can be wanted.
    fn plan(&mut self, earliest: Time, latest: Time, marks: u16, what: What) {
        let Find { since, until, after, newest_first, .. } = *self.find;
        let wanted = marks & self.find.marks != 0
            && since.is_none_or(|since| latest >= since)
            && until.is_none_or(|until| earliest < until)
            && after.is_none_or(|after| if newest_first { earliest <= after.time } else { latest >= after.time });
        if wanted {
            let key = if newest_first { latest.0 } else { !earliest.0 };
            self.plan.push(Planned { key, what });
        }
    }

    fn wants(&self, place: Place, marks: u16) -> bool {
        let Find { since, until, after, newest_first, .. } = *self.find;
        marks & self.find.marks != 0
            && since.is_none_or(|since| place.time >= since)
            && until.is_none_or(|until| place.time < until)
            && after.is_none_or(|after| if newest_first { place < after } else { place > after })
    }

    fn look(&mut self, what: What) {
        match &what {
            What::File(file) => match file.open() {
                Some(table) => {
                    for (number, group) in table.index.groups.iter().enumerate() {
                        for (unit, &(earliest, latest)) in group.units.iter().enumerate() {
                            self.plan(earliest, latest, group.levels.0, What::Unit(file.clone(), table.clone(), number, unit));
                        }
                    }
                    return;
                }
                None => self.swept.damaged += 1,
            },
            What::Frame(segment, entry) => {
                let found = self.of_frame(segment, entry);
                if !found {
                    self.swept.damaged += 1;
                }
            }
            What::Unit(file, table, group, unit) => {
                if let Err(error) = self.of_unit(table, *group, *unit) {
                    file.note(&error);
                    self.swept.damaged += 1;
                }
            }
        }
        let source = self.sources.len() as u32;
        if self.pending.last().is_some_and(|hit| hit.source == source) {
            self.sources.push(what);
        }
    }

    /// Remembers the matching rows of a frame; returns whether it could be read.
    fn of_frame(&mut self, segment: &Segment, entry: &Entry) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut readable = false;
        if let Some((_, body)) = segment.load(entry, &mut buffer)
            && let Ok((header, samples)) = BatchHeader::decode(body)
        {
            readable = true;
            for (number, sample) in frame::samples(samples).enumerate() {
                let Some(Ok(row)) = sample.map(|sample| self.schema.row(&header, sample)) else { continue };
                self.swept.looked_at += 1;
                let text = row.cells.get(self.find.column - super::KEYS).map_or(&[][..], super::Cell::text);
                if self.wants(row.place(), row.marks) && (self.find.wants)(text) {
                    self.hit(row.place(), number as u32, sample.map_or(0, <[u8]>::len) as u32);
                }
            }
        }
        self.buffer = buffer;
        readable
    }

    fn hit(&mut self, place: Place, row: u32, bytes: u32) {
        self.pending.push(Hit { place, source: self.sources.len() as u32, row, bytes });
    }

    fn of_unit(&mut self, table: &Arc<Table>, group: usize, unit: usize) -> Result<(), BadTable> {
        let count = Table::unit_rows(&table.index.groups[group], unit);
        let keys = Keys::read(table, group, unit, &self.dictionaries, &mut self.scratch)?;
        self.swept.looked_at += count as u64;
        let mut in_time = Vec::new();
        for row in 0..count {
            let place = keys.place(row)?;
            if self.wants(place, keys.marks(row)?) {
                in_time.push((place, row as u32));
            }
        }
        if in_time.is_empty() {
            return Ok(());
        }
        let all: Vec<u32> = in_time.iter().map(|&(_, row)| row).collect();
        let column = Column::read(table, group, unit, self.find.column, &all, &self.dictionaries, &mut self.scratch)?;
        for (place, row) in in_time {
            if (self.find.wants)(column.bytes(row as usize)?) {
                self.hit(place, row, 0);
            }
        }
        Ok(())
    }

    /// Returns the matches before `bound` in order to the caller; `false` when the search is over.
    fn give_out(&mut self, bound: Option<Time>, stop: &Stop, sink: &mut dyn FnMut(Row) -> bool) -> bool {
        let newest_first = self.find.newest_first;
        let ready = |hit: &Hit| match bound {
            Some(bound) if newest_first => hit.place.time > bound,
            Some(bound) => hit.place.time < bound,
            None => true,
        };
        let count = self.pending.iter().filter(|hit| ready(hit)).count();
        // A few hits wait for more, because each page reads its sources again. The first hits do not wait.
        if count == 0 || bound.is_some() && count < CHUNK && self.swept.found > 0 {
            return true;
        }
        if newest_first {
            self.pending.sort_unstable();
        } else {
            self.pending.sort_unstable_by(|a, b| b.cmp(a));
        }
        let ready: Vec<Hit> = self.pending.drain(self.pending.len() - count..).rev().collect();
        let mut rest = ready.as_slice();
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(together(rest, |source| self.at_once(source)));
            rest = behind;
            for row in self.fetch(chunk).into_iter().flatten() {
                if stop.is_stopped() {
                    return false;
                }
                self.swept.cursor = Some(row.place());
                self.swept.found += 1;
                if !sink(row) {
                    return false;
                }
            }
        }
        if self.pending.is_empty() {
            self.sources.clear();
        }
        true
    }

    /// Returns the number of rows of a source that fit into memory, if the source knows it. Rows of a frame state their
    /// lengths singly.
    fn at_once(&self, source: u32) -> Option<usize> {
        match self.sources.get(source as usize) {
            Some(What::Unit(_, table, group, _)) => Some(at_once(&table.index.groups[*group])),
            _ => None,
        }
    }

    /// Reads these rows, each source once.
    fn fetch(&mut self, chunk: &[Hit]) -> Vec<Option<Row>> {
        let mut by_source: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
        for (at, hit) in chunk.iter().enumerate() {
            by_source.entry(hit.source).or_default().push((hit.row, at));
        }
        let mut found: Vec<Option<Row>> = Vec::new();
        found.resize_with(chunk.len(), || None);
        for (source, mut places) in by_source {
            places.sort_unstable();
            match self.sources.get(source as usize) {
                Some(What::Frame(segment, entry)) => {
                    let Some((_, body)) = segment.load(entry, &mut self.buffer) else { continue };
                    let Ok((header, samples)) = BatchHeader::decode(body) else { continue };
                    let mut places = places.into_iter().peekable();
                    for (number, sample) in frame::samples(samples).enumerate() {
                        if let Some((_, at)) = places.next_if(|&(row, _)| row == number as u32)
                            && let Some(sample) = sample
                        {
                            found[at] = self.schema.row(&header, sample).ok();
                        }
                    }
                }
                Some(What::Unit(file, table, group, unit)) => {
                    let wanted: Vec<u32> = places.iter().map(|&(row, _)| row).collect();
                    match rows(self.schema, table, *group, *unit, &wanted, &self.dictionaries, &mut self.scratch) {
                        Ok(rows) => rows.into_iter().zip(places).for_each(|(row, (_, at))| found[at] = Some(row)),
                        Err(error) => {
                            file.note(&error);
                            self.swept.damaged += 1;
                        }
                    }
                }
                Some(What::File(_)) | None => {}
            }
        }
        found
    }
}

/// Returns the number of hits to fetch together so that they fit into memory: at least one.
fn together(hits: &[Hit], at_once: impl Fn(u32) -> Option<usize>) -> usize {
    let (mut most, mut bytes) = (CHUNK, 0);
    for (count, hit) in hits.iter().take(CHUNK).enumerate() {
        bytes += u64::from(hit.bytes);
        if bytes > TOGETHER {
            return count.max(1);
        }
        if let Some(rows) = at_once(hit.source) {
            most = most.min(rows.max(count + 1));
        }
        if count + 1 >= most {
            return count + 1;
        }
    }
    hits.len().min(most)
}

#[cfg(test)]
mod tests {
    use tampu_types::{Incarnation, RecordId};

    use super::*;

    #[test]
    fn long_rows_are_read_few_at_a_time_wherever_they_lie() {
        let id = RecordId { incarnation: Incarnation::default(), ring: 0, number: 0 };
        let hit = |source, bytes| Hit { place: Place { time: Time(0), id }, source, row: 0, bytes };
        let of = |hits: &[Hit]| together(hits, |source| (source == 1).then_some(3));
        assert_eq!(of(&vec![hit(0, 100); 5000]), CHUNK);
        assert_eq!(of(&vec![hit(0, 256 << 10); 5000]), 32);
        assert_eq!(of(&[hit(0, 9 << 20), hit(0, 9 << 20)]), 1);
        assert_eq!(of(&vec![hit(1, 0); 5000]), 3);
        assert_eq!(of(&[hit(0, 5 << 20), hit(1, 0), hit(0, 4 << 20)]), 2);
        assert_eq!(of(&[hit(0, 1)]), 1);
    }
}
