//! Counts of a query's matches, by level, by source and over time.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use tampu_types::{Level, Time, log_batch::LogBatchView};

use crate::query::{Field, Matcher, Query};
use crate::{
    ArchiveError, Stop,
    ids::hash::Mixed,
    local::state::Contents,
    parquet::{BadTable, Column, Dictionary, Group, GroupScan, Scratch, Table, stored::Stored},
    search::units::{WorkerBuffers, frames, load, may_hold, on_threads},
    wal::{
        frame::{self, LevelSet},
        segment::{Entry, Segment},
    },
};

/// Dimensions to count by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grouping {
    /// A count for each level.
    pub level: bool,
    /// A count for each value of this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Field>,
    /// Time span of a count, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_s: Option<u32>,
    /// Time span of a count, in ns; in place of `every_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
}

impl Grouping {
    /// Returns the time span of a count in ns; `None` if time is no dimension.
    fn span(&self) -> Option<i64> {
        let ns = self.every_ns.or(self.every_s.map(|seconds| u64::from(seconds) * 1_000_000_000));
        ns.filter(|ns| *ns > 0).map(|ns| i64::try_from(ns).unwrap_or(i64::MAX))
    }
}

/// Counts: one row for each combination of the chosen dimensions, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of all matching records.
    pub total: u64,
    /// Time of the earliest of them.
    pub earliest: Option<Time>,
    /// Time of the latest of them.
    pub latest: Option<Time>,
    /// One row for each group, in order.
    pub rows: Vec<Row>,
    /// False if the count was stopped, or had more than a million rows.
    pub complete: bool,
}

/// Count of one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Start of the time span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Level, if levels are a dimension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Value of the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Number of records.
    pub count: u64,
}

const MOST_ROWS: usize = 1_000_000;

/// Key of a count: span, value, level.
type Key = (i64, u32, u8);

/// Value that stands for a missing field.
const NO_FIELD: &str = "";

#[derive(Default)]
struct Counting {
    by: Grouping,
    span: i64,
    values: HashMap<String, u32, Mixed>,
    rows: HashMap<Key, u64, Mixed>,
    counts: Counts,
}

impl Counting {
    fn new(by: &Grouping) -> Counting {
        let span = by.span().unwrap_or(0);
        let counts = Counts { complete: true, ..Counts::default() };
        Counting { by: by.clone(), span, counts, ..Counting::default() }
    }

    fn span_of(&self, time: Time) -> i64 {
        if self.span > 0 { time.0.div_euclid(self.span) } else { 0 }
    }

    fn add(&mut self, span: i64, value: u32, level: Level, count: u64) {
        let level = if self.by.level { level.number() } else { 0 };
        self.counts.total += count;
        if self.rows.len() < MOST_ROWS || self.rows.contains_key(&(span, value, level)) {
            *self.rows.entry((span, value, level)).or_default() += count;
        } else {
            self.counts.complete = false;
        }
    }

    fn seen(&mut self, earliest: Time, latest: Time) {
        self.counts.earliest = Some(self.counts.earliest.map_or(earliest, |before| before.min(earliest)));
        self.counts.latest = Some(self.counts.latest.map_or(latest, |before| before.max(latest)));
    }

    /// Returns whether a record between these times could be the earliest or the latest.
    fn is_news(&self, earliest: Time, latest: Time) -> bool {
        self.counts.earliest.is_none_or(|before| earliest < before) || self.counts.latest.is_none_or(|before| latest > before)
    }

    fn value(&mut self, value: &str) -> u32 {
        if let Some(&number) = self.values.get(value) {
            return number;
        }
        let number = self.values.len() as u32;
        self.values.insert(value.to_owned(), number);
        number
    }

    /// Adds the counts of `other`.
    fn join(&mut self, other: Counting) {
        let mut names = vec![String::new(); other.values.len()];
        for (name, number) in other.values {
            names[number as usize] = name;
        }
        let (complete, total) = (self.counts.complete && other.counts.complete, self.counts.total + other.counts.total);
        for ((span, value, level), count) in other.rows {
            let value = names.get(value as usize).map_or(0, |name| self.value(name));
            let level = Level::from_number(level).unwrap_or(Level::Info);
            self.add(span, value, level, count);
        }
        self.counts.total = total;
        self.counts.complete &= complete;
        if let (Some(earliest), Some(latest)) = (other.counts.earliest, other.counts.latest) {
            self.seen(earliest, latest);
        }
    }
}

/// A unit of counting: one segment's frames, or a row group.
pub(super) enum Part {
    Segment(Arc<Segment>, Vec<Entry>),
    Group(Arc<Stored>, Arc<Table>, usize),
}

impl Part {
    /// Returns the times of its earliest and its latest record.
    pub(super) fn span(&self) -> (Time, Time) {
        match self {
            Part::Segment(_, entries) => {
                let (earliest, latest) = (entries.iter().map(|entry| entry.earliest), entries.iter().map(|entry| entry.latest));
                (earliest.min().unwrap_or_default(), latest.max().unwrap_or_default())
            }
            Part::Group(_, table, group) => (table.index.groups[*group].earliest(), table.index.groups[*group].latest()),
        }
    }
}

/// Returns the parts of an archive that may hold matching records, and false if one cannot be opened.
pub(super) fn parts(contents: &Contents, matcher: &Matcher) -> (Vec<Part>, bool) {
    let (mut parts, mut is_whole) = (Vec::new(), true);
    for segment in &contents.segments {
        let wanted = |entry: &Entry| may_hold(matcher, entry.earliest, entry.latest, entry.levels);
        let entries = frames(segment).into_iter().filter(wanted).collect::<Vec<_>>();
        parts.extend(entries.chunks(FRAMES).map(|few| Part::Segment(segment.clone(), few.to_vec())));
    }
    for file in contents.files.iter() {
        if !may_hold(matcher, file.entry.earliest, file.entry.latest, file.levels()) {
            continue;
        }
        match file.open() {
            Some(table) => {
                parts.extend((0..table.index.groups.len()).map(|group| Part::Group(file.clone(), table.clone(), group)));
            }
            None => is_whole = false,
        }
    }
    (parts, is_whole)
}

pub(crate) fn count(contents: &Contents, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
    let matcher = query.compile()?;
    let mut counting = Counting::new(by);
    let (parts, is_whole) = parts(contents, &matcher);
    counting.counts.complete = is_whole;
    let whole_frames_do = *query == Query::default() && by.field.is_none() && by.span().is_none();
    let counted = on_threads(&parts, &mut Vec::new(), |part, buffers| {
        let mut counting = Counting::new(by);
        if stop.is_stopped() {
            counting.counts.complete = false;
            return counting;
        }
        match part {
            Part::Segment(segment, entries) => {
                count_frames(segment, entries, &matcher, whole_frames_do, stop, buffers, &mut counting);
            }
            Part::Group(stored, table, group) => {
                if let Err(error) = count_group(table, *group, &matcher, stop, buffers, &mut counting) {
                    stored.note(&error);
                    counting.counts.complete = false;
                }
            }
        }
        counting
    });
    counted.map_err(ArchiveError::Decompressor)?.into_iter().for_each(|part| counting.join(part));
    Ok(counting.finish())
}

/// Number of frames counted at a time.
const FRAMES: usize = 64;

fn count_frames(
    segment: &Segment,
    entries: &[Entry],
    matcher: &Matcher,
    whole_frames_do: bool,
    stop: &Stop,
    buffers: &mut WorkerBuffers,
    counting: &mut Counting,
) {
    for entry in entries {
        if stop.is_stopped() {
            counting.counts.complete = false;
            return;
        }
        let only_level = Level::ALL.into_iter().find(|level| {
            let mut levels = LevelSet::default();
            levels.add(*level);
            entry.levels == levels
        });
        // If all records of a frame count alike, the frame's entry is enough.
        if whole_frames_do && (only_level.is_some() || !counting.by.level) {
            let value = counting.value(NO_FIELD);
            counting.add(0, value, only_level.unwrap_or(Level::Info), u64::from(entry.records));
            counting.seen(entry.earliest, entry.latest);
            continue;
        }
        let Some(loaded) = load(segment, entry, &mut buffers.buffer) else {
            counting.counts.complete = false;
            continue;
        };
        for sample in frame::samples(loaded.body).flatten() {
            count_sample(sample, matcher, counting);
        }
    }
}

fn count_sample(sample: &[u8], matcher: &Matcher, counting: &mut Counting) {
    if !matcher.may_be_in(sample) {
        return;
    }
    let Ok(view) = LogBatchView::parse(sample) else { return };
    let mut origins: Vec<Option<(bool, u32)>> = Vec::new();
    for record in view.records().flatten() {
        let origin = record.origin();
        let index = origin.index();
        if origins.len() <= index {
            origins.resize(index + 1, None);
        }
        let (wanted, value) = *origins[index].get_or_insert_with(|| {
            let value = counting.by.field.and_then(|field| origin.text(field.record_field())).unwrap_or(NO_FIELD);
            (matcher.wants_origin(&origin), counting.value(value))
        });
        if wanted && matcher.wants_of_origin(&record) {
            let value = match counting.by.field {
                Some(field) if field.is_of_record() => counting.value(record.text(field.record_field()).unwrap_or_default()),
                _ => value,
            };
            counting.add(counting.span_of(record.time()), value, record.level(), 1);
            counting.seen(record.time(), record.time());
        }
    }
}

/// Counts a row group by the codes of its columns.
fn count_group(
    table: &Arc<Table>,
    group: usize,
    matcher: &Matcher,
    stop: &Stop,
    buffers: &mut WorkerBuffers,
    counting: &mut Counting,
) -> Result<(), BadTable> {
    let scratch = &mut buffers.scratch;
    let Some(scan) = GroupScan::new(table, group, matcher, scratch)? else { return Ok(()) };
    let group = &table.index.groups[group];
    let levels = if counting.by.level { names_of(table, group, Column::Level, scratch)? } else { None };
    let levels: Option<Vec<Level>> = levels.map(|names| names.iter().map(|name| name.parse().unwrap_or(Level::Info)).collect());
    let column = counting.by.field.map(|field| Column::of(field.record_field())).transpose()?;
    let field = column.map(|column| names_of(table, group, column, scratch)).transpose()?.flatten();
    let values: Vec<u32> = match &field {
        Some(names) => names.iter().map(|name| counting.value(name)).collect(),
        None => vec![counting.value(NO_FIELD)],
    };
    let level_of = |code: u32| levels.as_ref().and_then(|levels| levels.get(code as usize).copied()).unwrap_or(Level::Info);
    let length = (counting.span > 0).then_some(counting.span);
    let level_count = levels.as_ref().map_or(1, Vec::len).max(1);
    for unit in 0..scan.units() {
        if stop.is_stopped() {
            counting.counts.complete = false;
            return Ok(());
        }
        let selection = scan.select(unit, matcher, scratch)?;
        if selection.count == 0 {
            continue;
        }
        let (earliest, latest) = scan.span(unit);
        let spans = counting.span > 0 && counting.span_of(earliest) != counting.span_of(latest);
        let times = if spans || !selection.is_whole() && counting.is_news(earliest, latest) {
            Some(table.numbers(group, Column::Time, unit, scratch)?)
        } else {
            None
        };
        if selection.is_whole() {
            counting.seen(earliest, latest);
        } else if let (Some(times), Some(first), Some(last)) = (&times, selection.rows().next(), selection.rows().last()) {
            counting.seen(Time(times[first]), Time(times[last]));
        }
        let level_codes = match &levels {
            Some(levels) => Some(table.codes(group, Column::Level, unit, levels.len(), scratch)?),
            None => None,
        };
        // A field with almost only different values has no codes.
        if let (Some(column), None) = (column, &field) {
            for (first, texts) in table.text_pages(group, column, unit, &|_| true, scratch)? {
                for row in selection.rows().filter(|row| (first..first + texts.len()).contains(row)) {
                    let value = counting.value(&String::from_utf8_lossy(texts.get(row - first)));
                    let span =
                        times.as_ref().map_or_else(|| counting.span_of(earliest), |times| counting.span_of(Time(times[row])));
                    counting.add(span, value, level_of(level_codes.as_ref().map_or(0, |codes| codes[row])), 1);
                }
            }
            continue;
        }
        let field_codes = match (&field, column) {
            (Some(names), Some(column)) => Some(table.codes(group, column, unit, names.len(), scratch)?),
            _ => None,
        };
        let mut cells = vec![0u64; values.len() * level_count];
        let cell = |row: usize| {
            let value = field_codes.as_ref().map_or(0, |codes| codes[row] as usize);
            value * level_count + level_codes.as_ref().map_or(0, |codes| codes[row] as usize)
        };
        let mut flush = |cells: &mut [u64], span: i64| {
            for (place, count) in cells.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
                let level = level_of((place % level_count) as u32);
                counting.add(span, values[place / level_count], level, std::mem::take(count));
            }
        };
        // Rows are in the order of time, so each span is one run of rows.
        let mut span = length.map_or(0, |length| earliest.0.div_euclid(length));
        for row in selection.rows() {
            if let (true, Some(times), Some(length)) = (spans, &times, length) {
                let this = times[row].div_euclid(length);
                if this != span {
                    flush(&mut cells, span);
                    span = this;
                }
            }
            cells[cell(row)] += 1;
        }
        flush(&mut cells, span);
    }
    Ok(())
}

/// Returns the values of a column's dictionary; `None` if it has none.
pub(super) fn names_of(
    table: &Table,
    group: &Group,
    column: Column,
    scratch: &mut Scratch,
) -> Result<Option<Vec<String>>, BadTable> {
    let Some(dictionary) = table.dictionary(group, column, scratch)? else { return Ok(None) };
    let names = match &dictionary {
        Dictionary::Texts(texts) => texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect(),
        Dictionary::Numbers(numbers) => numbers.iter().map(i64::to_string).collect(),
    };
    Ok(Some(names))
}

impl Counting {
    fn finish(mut self) -> Counts {
        let mut names = vec![String::new(); self.values.len()];
        for (name, number) in self.values {
            names[number as usize] = name;
        }
        let span = self.span;
        let mut rows: Vec<Row> = self
            .rows
            .into_iter()
            .map(|((time, value, level), count)| Row {
                time: (span > 0).then(|| Time(time.saturating_mul(span))),
                level: Level::from_number(level),
                value: self.by.field.map(|_| names[value as usize].clone()),
                count,
            })
            .collect();
        rows.sort_by(|a, b| (a.time, &a.value, a.level).cmp(&(b.time, &b.value, b.level)));
        self.counts.rows = rows;
        self.counts
    }
}
