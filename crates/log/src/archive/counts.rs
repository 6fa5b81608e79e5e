//! Counting what a query finds, by level, by source and over time.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use tampu_types::{Level, Time, log_batch::LogBatchView};

use super::{
    ArchiveError, Stop,
    frame::{self, Levels},
    search::{load, may_hold, plan},
    segment::{Entry, Segment},
};
use crate::query::{Field, Query};

/// What to count by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grouping {
    /// A count for each level.
    pub level: bool,
    /// A count for each value of this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Field>,
    /// A count for each so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_s: Option<u32>,
}

/// Counts: one row for each combination of what was counted by, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All records.
    pub total: u64,
    /// The earliest of them.
    pub earliest: Option<Time>,
    /// The latest of them.
    pub latest: Option<Time>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether everything was counted; not if it was stopped, or there were more than a million rows.
    pub complete: bool,
}

/// One count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// When the span counted begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// The level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The field's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// How many.
    pub count: u64,
}

const MOST_ROWS: usize = 1_000_000;

/// Span, value, level.
type Key = (i64, u32, u8);

struct Counting<'q> {
    by: &'q Grouping,
    span: i64,
    values: BTreeMap<String, u32>,
    rows: BTreeMap<Key, u64>,
    counts: Counts,
}

impl Counting<'_> {
    fn add(&mut self, time: Time, value: u32, level: Level, count: u64) {
        let span = if self.span > 0 { time.0.div_euclid(self.span) } else { 0 };
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

    fn value(&mut self, value: &str) -> u32 {
        if let Some(&number) = self.values.get(value) {
            return number;
        }
        let number = self.values.len() as u32;
        self.values.insert(value.to_owned(), number);
        number
    }
}

pub(super) fn count(segments: &[Arc<Segment>], query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
    let matcher = query.compile()?;
    let (planned, _) = plan(segments, &|entry: &Entry| may_hold(&matcher, entry));
    let span = i64::from(by.every_s.unwrap_or(0)) * 1_000_000_000;
    let counts = Counts { complete: true, ..Counts::default() };
    let mut counting = Counting { by, span, values: BTreeMap::new(), rows: BTreeMap::new(), counts };
    let whole_frames_do = *query == Query::default() && by.field.is_none() && span == 0;
    let mut buffer = Vec::new();
    for (segment, entry) in planned {
        if stop.is_stopped() {
            counting.counts.complete = false;
            break;
        }
        let only_level = Level::ALL.into_iter().find(|level| {
            let mut levels = Levels::default();
            levels.add(*level);
            entry.levels == levels
        });
        // Where every record of a frame counts alike, what is known of the frame is enough.
        if whole_frames_do && (only_level.is_some() || !by.level) {
            counting.add(entry.earliest, 0, only_level.unwrap_or(Level::Info), u64::from(entry.records));
            counting.seen(entry.earliest, entry.latest);
            continue;
        }
        let Some(loaded) = load(&segment, &entry, &mut buffer) else {
            counting.counts.complete = false;
            continue;
        };
        for sample in frame::samples(loaded.body).flatten() {
            count_sample(sample, &matcher, &mut counting);
        }
    }
    Ok(counting.finish())
}

fn count_sample(sample: &[u8], matcher: &crate::query::Matcher, counting: &mut Counting<'_>) {
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
            let value = counting.by.field.and_then(|field| field.of_origin(&origin)).map_or(0, |value| counting.value(value));
            (matcher.wants_origin(&origin), value)
        });
        if wanted && matcher.wants_of_origin(&record) {
            let value = match counting.by.field {
                Some(field @ (Field::StackId | Field::LogId)) => counting.value(field.of(&record)),
                _ => value,
            };
            counting.add(record.time(), value, record.level(), 1);
            counting.seen(record.time(), record.time());
        }
    }
}

impl Counting<'_> {
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
