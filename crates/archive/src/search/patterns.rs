//! Patterns: a query's matches by the place in the program that logged them.
//!
//! A record's pattern is its file, line, routine and level. Without file and line it is the text, in which numbers, ids
//! and quoted words may differ. Columns are counted by their codes; messages are read where records have no place, and
//! of the newest record of each pattern. The memory is bounded: of too many patterns the rarer ones are dropped, which
//! the answer says.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tampu_types::{Level, Time, log_batch::LogBatchView};

use self::gathering::{Gathering, Intervals, Seen, Tally, has_site, source_number};
use crate::query::{Matcher, Query, source_of};
use crate::{
    ArchiveError, Stop,
    ids::hash::Mixed,
    local::state::Contents,
    parquet::{BadTable, Column, Dictionary, Group, GroupScan, Scratch, Table},
    search::{
        counts::{Part, names_of, parts},
        units::{WorkerBuffers, load, on_threads},
    },
    wal::{
        frame,
        segment::{Entry, Segment},
    },
};

pub use found::{Pattern, Patterns, PatternsWanted};

mod found;
mod gathering;
mod mask;

/// Most patterns of an answer, and most intervals of each.
const MOST_PATTERNS: usize = 1000;
const MOST_BINS: usize = 200;

pub(crate) fn patterns(
    contents: &Contents,
    query: &Query,
    wanted: &PatternsWanted,
    stop: &Stop,
) -> Result<Patterns, ArchiveError> {
    let matcher = query.compile()?;
    let (parts, is_whole) = parts(contents, &matcher);
    let since = query.since.or_else(|| parts.iter().map(|part| part.span().0).min()).unwrap_or_default();
    let last = query.until.map(|until| Time(until.0.saturating_sub(1)));
    let last = last.or_else(|| parts.iter().map(|part| part.span().1).max()).unwrap_or(since);
    let intervals = Intervals::of(since, last.max(since), wanted.bins.min(MOST_BINS));
    let all = Mutex::new(Gathering::new(intervals));
    let gathered = on_threads(&parts, &mut Vec::new(), |part, buffers| {
        let mut gathering = Gathering::new(intervals);
        match part {
            Part::Segment(segment, entries) => gather_frames(segment, entries, &matcher, stop, buffers, &mut gathering),
            Part::Group(stored, table, group) => {
                if let Err(error) = gather_group(table, *group, &matcher, stop, &mut buffers.scratch, &mut gathering) {
                    stored.note(&error);
                    gathering.is_incomplete = true;
                }
            }
        }
        all.lock().join(gathering);
    });
    gathered.map_err(ArchiveError::Decompressor)?;
    let mut all = all.into_inner();
    all.is_incomplete |= !is_whole;
    Ok(all.finish(wanted.limit.min(MOST_PATTERNS)))
}

fn gather_frames(
    segment: &Segment,
    entries: &[Entry],
    matcher: &Matcher,
    stop: &Stop,
    buffers: &mut WorkerBuffers,
    gathering: &mut Gathering,
) {
    for entry in entries {
        let loaded = if stop.is_stopped() { None } else { load(segment, entry, &mut buffers.buffer) };
        let Some(loaded) = loaded else {
            gathering.is_incomplete = true;
            continue;
        };
        for sample in frame::samples(loaded.body).flatten() {
            gather_sample(sample, matcher, gathering);
        }
    }
}

fn gather_sample(sample: &[u8], matcher: &Matcher, gathering: &mut Gathering) {
    if !matcher.may_be_in(sample) {
        return;
    }
    let Ok(view) = LogBatchView::parse(sample) else { return };
    for record in view.records().flatten().filter(|record| matcher.wants(record)) {
        let origin = record.origin();
        let seen = Seen {
            level: record.level(),
            file: origin.file(),
            line: origin.line().unwrap_or_default(),
            routine: origin.routine(),
            message: record.message(),
        };
        gathering.add(&seen, record.time(), source_number(source_of(origin.source_object(), origin.process())));
    }
}

/// A column of a unit: the code of each row, and the texts of the codes.
struct Coded<'g> {
    codes: Vec<u32>,
    texts: Cow<'g, [String]>,
}

impl Coded<'_> {
    fn text(&self, row: usize) -> &str {
        self.codes.get(row).and_then(|code| self.texts.get(*code as usize)).map_or("", String::as_str)
    }
}

/// A text column of a row group, with the values of its dictionary.
struct TextColumn {
    column: Column,
    names: Option<Vec<String>>,
}

impl TextColumn {
    fn open(table: &Table, group: &Group, column: Column, scratch: &mut Scratch) -> Result<TextColumn, BadTable> {
        Ok(TextColumn { column, names: names_of(table, group, column, scratch)? })
    }

    /// Reads a unit; without a dictionary only these rows, if they are given, in their order.
    fn unit(
        &self,
        table: &Table,
        group: &Group,
        unit: usize,
        rows: Option<&[usize]>,
        scratch: &mut Scratch,
    ) -> Result<Coded<'_>, BadTable> {
        if let Some(names) = &self.names {
            let codes = table.codes(group, self.column, unit, names.len(), scratch)?;
            return Ok(Coded { codes, texts: Cow::Borrowed(names) });
        }
        let mut numbers: HashMap<String, u32, Mixed> = HashMap::default();
        let (mut codes, mut texts) = (vec![u32::MAX; Table::unit_rows(group, unit)], Vec::new());
        let wanted_from = |first: usize| rows.map(|rows| &rows[rows.partition_point(|row| *row < first)..]);
        let wanted = |page: std::ops::Range<usize>| {
            wanted_from(page.start).is_none_or(|rows| rows.first().is_some_and(|row| *row < page.end))
        };
        for (first, page) in table.text_pages(group, self.column, unit, &wanted, scratch)? {
            let mut put = |row: usize| {
                let text = String::from_utf8_lossy(page.get(row - first));
                let known = numbers.get(&*text).copied();
                codes[row] = known.unwrap_or_else(|| {
                    let number = texts.len() as u32;
                    numbers.insert(text.clone().into_owned(), number);
                    texts.push(text.into_owned());
                    number
                });
            };
            let end = (first + page.len()).min(Table::unit_rows(group, unit));
            match wanted_from(first) {
                Some(rows) => rows.iter().take_while(|row| **row < end).for_each(|row| put(*row)),
                None => (first..end).for_each(put),
            }
        }
        Ok(Coded { codes, texts: Cow::Owned(texts) })
    }
}

/// Codes of a place: level, file, line, routine.
type Place = (u32, u32, u32, u32);

/// Gathers the records of a row group by the codes of its columns.
fn gather_group(
    table: &Arc<Table>,
    number: usize,
    matcher: &Matcher,
    stop: &Stop,
    scratch: &mut Scratch,
    gathering: &mut Gathering,
) -> Result<(), BadTable> {
    let Some(scan) = GroupScan::new(table, number, matcher, scratch)? else { return Ok(()) };
    let group = &table.index.groups[number];
    let mut open = |column| TextColumn::open(table, group, column, scratch);
    let [level, file, routine] = [open(Column::Level)?, open(Column::File)?, open(Column::Routine)?];
    let [object, process, message] = [open(Column::SourceObject)?, open(Column::Process)?, open(Column::Message)?];
    let intervals = gathering.intervals;
    for unit in 0..scan.units() {
        if stop.is_stopped() {
            gathering.is_incomplete = true;
            return Ok(());
        }
        let selection = scan.select(unit, matcher, scratch)?;
        if selection.count == 0 {
            continue;
        }
        let levels = level.unit(table, group, unit, None, scratch)?;
        let files = file.unit(table, group, unit, None, scratch)?;
        let routines = routine.unit(table, group, unit, None, scratch)?;
        let objects = object.unit(table, group, unit, None, scratch)?;
        let processes = process.unit(table, group, unit, None, scratch)?;
        let times = table.numbers(group, Column::Time, unit, scratch)?;
        let lines = lines_of(table, group, unit, scratch)?;

        let mut places: HashMap<Place, (Tally, usize), Mixed> = HashMap::default();
        let mut sources: HashMap<(u32, u32), u64, Mixed> = HashMap::default();
        let mut source_of_row = |row: usize| {
            *sources
                .entry((objects.codes[row], processes.codes[row]))
                .or_insert_with(|| source_number(source_of(objects.text(row), processes.text(row))))
        };
        let mut bare = Vec::new();
        for row in selection.rows() {
            if has_site(files.text(row), lines[row]) {
                let place = (levels.codes[row], files.codes[row], lines[row], routines.codes[row]);
                let (tally, newest) = places.entry(place).or_default();
                if tally.add(Time(times[row]), source_of_row(row), &intervals) {
                    *newest = row;
                }
            } else {
                bare.push(row);
            }
        }
        let mut read: Vec<usize> = places.values().map(|(_, newest)| *newest).chain(bare.iter().copied()).collect();
        read.sort_unstable();
        let messages = message.unit(table, group, unit, Some(&read), scratch)?;
        let seen = |row: usize| Seen {
            level: levels.text(row).parse().unwrap_or(Level::Info),
            file: files.text(row),
            line: lines[row],
            routine: routines.text(row),
            message: messages.text(row),
        };
        // Records of one text are counted together, so that its mask is made once.
        let mut texts: HashMap<Place, (Tally, usize), Mixed> = HashMap::default();
        for row in bare {
            let text = (levels.codes[row], messages.codes[row], 0, routines.codes[row]);
            let (tally, newest) = texts.entry(text).or_default();
            if tally.add(Time(times[row]), source_of_row(row), &intervals) {
                *newest = row;
            }
        }
        for (tally, newest) in places.into_values().chain(texts.into_values()) {
            gathering.add_tally(&seen(newest), tally);
        }
    }
    Ok(())
}

/// Returns the line of each row, 0 without one.
fn lines_of(table: &Table, group: &Group, unit: usize, scratch: &mut Scratch) -> Result<Vec<u32>, BadTable> {
    let whole = |number: i64| u32::try_from(number).unwrap_or_default();
    let Some(Dictionary::Numbers(values)) = table.dictionary(group, Column::Line, scratch)? else {
        return Ok(table.numbers(group, Column::Line, unit, scratch)?.into_iter().map(whole).collect());
    };
    // Code 0 is an absent value, and the others count from 1.
    let codes = table.codes(group, Column::Line, unit, values.len(), scratch)?;
    let value = |code: u32| (code as usize).checked_sub(1).and_then(|nth| values.get(nth)).copied().unwrap_or_default();
    Ok(codes.into_iter().map(value).map(whole).collect())
}
