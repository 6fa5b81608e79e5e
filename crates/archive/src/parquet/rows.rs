//! Records prepared for a Parquet file: extracted from their batches and sorted.
//!
//! Fields that records of one origin share are stored as numbers of texts. A text is looked up once for each batch that
//! has it, and a column's codes once for each origin. Messages and data are appended to one buffer. A record takes 56
//! bytes besides its texts, and an origin 100.

use std::{collections::HashMap, ops::Range, sync::Arc};

use tampu_types::{
    BatchHeader, ClockState, Incarnation, RecordField, RecordId, Time,
    log_batch::{LogBatchView, OriginView, RecordView},
};

use super::lists;
use crate::ids::hash::Mixed;

/// Texts of an origin in addition to those of a batch's origin, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    Audiences = RecordField::ORIGIN_TEXTS as isize,
    Incarnation,
    Source,
    Clock,
    UnknownOrigin,
}

const SHARED: usize = Shared::UnknownOrigin as usize + 1;

/// Fields that the records of one origin share.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) texts: [u32; SHARED],
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) line: Option<u32>,
    pub(crate) tai_offset: i16,
}

/// Fields that few records have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) priority: Option<u8>,
    pub(crate) stack_level: Option<i32>,
    pub(crate) stack_id: Vec<u8>,
    pub(crate) log_id: Vec<u8>,
    pub(crate) trace_id: Vec<u8>,
    pub(crate) span_id: Vec<u8>,
    pub(crate) archive: Vec<u8>,
    pub(crate) attributes: Vec<u8>,
    pub(crate) unknown: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) time: i64,
    pub(crate) number: u64,
    pub(crate) received: i64,
    text: usize,
    message: u32,
    data: u32,
    pub(crate) origin: u32,
    pub(crate) ring: u32,
    /// Index among the extras plus one; 0 if the record has no extra.
    extra: u32,
    /// Ordinal of the level.
    pub(crate) level: u8,
}

impl Row {
    pub(crate) fn has_data(&self) -> bool {
        self.data > 0
    }

    pub(crate) fn has_extra(&self) -> bool {
        self.extra > 0
    }
}

/// Records gathered for compaction.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    texts: Vec<u8>,
    strings: Vec<Arc<[u8]>>,
    string_numbers: HashMap<Arc<[u8]>, u32, Mixed>,
    origins: Vec<Origin>,
    lives: HashMap<Incarnation, u32, Mixed>,
    extras: Vec<Extra>,
}

const UNKNOWN: u32 = u32::MAX;

/// Text numbers of a batch, as far as they were looked up, and the facts that all its records share.
struct BatchTexts {
    numbers: Vec<u32>,
    source: u32,
    clock: u32,
    tai_offset: i16,
}

/// Facts about a record that are stored in its batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sent {
    /// Name of the sender; empty if unknown.
    pub(crate) source: String,
    pub(crate) clock: ClockState,
    pub(crate) tai_offset: i16,
}

impl Sent {
    pub(crate) fn by(header: &BatchHeader) -> Sent {
        Sent { source: header.source.to_string(), clock: header.clock, tai_offset: header.tai_offset }
    }
}

const DAY: i64 = 86_400_000_000_000;

impl Rows {
    pub(crate) fn row(&self, place: u32) -> &Row {
        &self.rows[place as usize]
    }

    pub(crate) fn message(&self, row: &Row) -> &[u8] {
        &self.texts[row.text..row.text + row.message as usize]
    }

    pub(crate) fn data(&self, row: &Row) -> &[u8] {
        let start = row.text + row.message as usize;
        &self.texts[start..start + row.data as usize]
    }

    pub(crate) fn extra(&self, row: &Row) -> Option<&Extra> {
        self.extras.get((row.extra as usize).checked_sub(1)?)
    }

    pub(crate) fn origin(&self, number: u32) -> &Origin {
        &self.origins[number as usize]
    }

    pub(crate) fn origin_count(&self) -> usize {
        self.origins.len()
    }

    pub(crate) fn string(&self, number: u32) -> &[u8] {
        &self.strings[number as usize]
    }

    pub(crate) fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// Returns a record's id; all zeros if it has none.
    fn id(&self, row: &Row) -> RecordId {
        match self.origins[row.origin as usize].incarnation {
            Some(incarnation) => RecordId { incarnation, ring: row.ring, number: row.number },
            None => RecordId::default(),
        }
    }

    /// Replaces texts by others of their lengths, as damage would.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, from: &[u8], to: &[u8]) {
        assert_eq!(from.len(), to.len());
        let places = self.texts.windows(from.len()).enumerate().filter(|(_, text)| *text == from).map(|(place, _)| place);
        let places: Vec<usize> = places.collect();
        assert!(!places.is_empty(), "{}", String::from_utf8_lossy(from));
        places.into_iter().for_each(|place| self.texts[place..place + to.len()].copy_from_slice(to));
    }

    /// Adds the records of one sample. Returns the number of unreadable ones.
    pub(crate) fn push_sample(&mut self, sent: &Sent, sample: &[u8], received: Time) -> u32 {
        let Ok(view) = LogBatchView::parse(sample) else { return 1 };
        let mut origins: Vec<Option<u32>> = Vec::new();
        let mut texts = BatchTexts {
            numbers: vec![UNKNOWN; view.strings().len()],
            source: self.string_number(sent.source.as_bytes()),
            clock: self.string_number(clock_name(sent.clock).as_bytes()),
            tai_offset: sent.tai_offset,
        };
        let mut unreadable = 0;
        for record in view.records() {
            let Ok(record) = record else {
                unreadable += 1;
                continue;
            };
            let origin = record.origin();
            let index = origin.index();
            if origins.len() <= index {
                origins.resize(index + 1, None);
            }
            let number = match origins[index] {
                Some(number) => number,
                None => *origins[index].insert(self.add_origin(&view, &mut texts, &origin)),
            };
            self.push(&record, number, received);
        }
        unreadable
    }

    fn push(&mut self, record: &RecordView<'_>, origin: u32, received: Time) {
        let text = self.texts.len();
        self.texts.extend_from_slice(record.message().as_bytes());
        let message = (self.texts.len() - text) as u32;
        lists::put_data(record.data(), &mut self.texts);
        let data = (self.texts.len() - text) as u32 - message;
        let extra = extra_of(record);
        let extra = if extra == Extra::default() {
            0
        } else {
            self.extras.push(extra);
            self.extras.len() as u32
        };
        self.rows.push(Row {
            time: record.time().0,
            number: record.number(),
            received: record.received().unwrap_or(received).0,
            text,
            message,
            data,
            origin,
            ring: record.ring(),
            extra,
            level: record.level().ordinal() as u8,
        });
    }

    fn string_number(&mut self, text: &[u8]) -> u32 {
        if let Some(&number) = self.string_numbers.get(text) {
            return number;
        }
        let number = self.strings.len() as u32;
        let text: Arc<[u8]> = text.into();
        self.strings.push(text.clone());
        self.string_numbers.insert(text, number);
        number
    }

    /// Adds an origin of a batch. Each text of the batch is looked up once, however many origins have it.
    fn add_origin(&mut self, view: &LogBatchView<'_>, texts: &mut BatchTexts, origin: &OriginView<'_>) -> u32 {
        let mut numbers = [0; SHARED];
        for (number, &index) in numbers.iter_mut().zip(origin.text_indexes()) {
            *number = self.batch_text(view, texts, index);
        }
        let mut audiences = origin.audience_indexes();
        numbers[Shared::Audiences as usize] = match (audiences.next(), audiences.next()) {
            (Some(index), None) if lists::is_plain(view.strings().get(index as usize).copied().unwrap_or_default()) => {
                self.batch_text(view, texts, index)
            }
            _ => {
                let mut list = Vec::new();
                lists::put_audiences(origin.audiences(), &mut list);
                self.string_number(&list)
            }
        };
        let incarnation = origin.incarnation();
        numbers[Shared::Incarnation as usize] = match incarnation {
            Some(life) => match self.lives.get(&life) {
                Some(&number) => number,
                None => {
                    let number = self.string_number(life.to_string().as_bytes());
                    self.lives.insert(life, number);
                    number
                }
            },
            None => self.batch_text(view, texts, 0),
        };
        numbers[Shared::Source as usize] = texts.source;
        numbers[Shared::Clock as usize] = texts.clock;
        numbers[Shared::UnknownOrigin as usize] = match origin.unknown() {
            [] => self.batch_text(view, texts, 0),
            unknown => self.string_number(unknown),
        };
        self.origins.push(Origin { texts: numbers, incarnation, line: origin.line(), tai_offset: texts.tai_offset });
        self.origins.len() as u32 - 1
    }

    fn batch_text(&mut self, view: &LogBatchView<'_>, texts: &mut BatchTexts, index: u32) -> u32 {
        let known = texts.numbers.get(index as usize).copied().unwrap_or(UNKNOWN);
        if known != UNKNOWN {
            return known;
        }
        // Its index was checked when the batch was read.
        let text = view.strings().get(index as usize).copied().unwrap_or_default();
        let number = self.string_number(text.as_bytes());
        if let Some(place) = texts.numbers.get_mut(index as usize) {
            *place = number;
        }
        number
    }

    /// Returns the positions of all rows, in order of time and id.
    pub(crate) fn ordered(&self) -> Vec<u32> {
        let mut order: Vec<(i64, u32)> = self.rows.iter().enumerate().map(|(place, row)| (row.time, place as u32)).collect();
        order.sort_unstable();
        for same in order.chunk_by_mut(|(time, _), (next, _)| time == next) {
            if same.len() > 1 {
                // The sort is stable: records without an id keep the order of their arrival.
                same.sort_by_cached_key(|&(_, place)| self.id(self.row(place)));
            }
        }
        order.into_iter().map(|(_, place)| place).collect()
    }

    /// Returns the rows in order, grouped by the UTC day of their own time.
    pub(crate) fn by_day(&self) -> Vec<Vec<u32>> {
        let day = |place: u32| self.row(place).time.div_euclid(DAY);
        self.ordered().chunk_by(|&place, &next| day(place) == day(next)).map(<[u32]>::to_vec).collect()
    }

    /// Returns the own times of the rows from this position on.
    pub(crate) fn times_from(&self, place: usize) -> impl Iterator<Item = Time> {
        self.rows.iter().skip(place).map(|row| Time(row.time))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Drops the rows and their texts, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.texts.clear();
        self.strings.clear();
        self.string_numbers.clear();
        self.origins.clear();
        self.lives.clear();
        self.extras.clear();
    }
}

fn extra_of(record: &RecordView<'_>) -> Extra {
    let mut extra = Extra { priority: record.priority(), unknown: record.unknown().to_vec(), ..Extra::default() };
    if !record.has_extras() {
        return extra;
    }
    extra.stack_level = record.stack_level();
    extra.stack_id = record.stack_id().as_bytes().to_vec();
    extra.log_id = record.log_id().as_bytes().to_vec();
    extra.trace_id = record.trace_id().map(|id| hex(&id)).unwrap_or_default();
    extra.span_id = record.span_id().map(|id| hex(&id)).unwrap_or_default();
    if let Some(archive) = record.archive() {
        lists::put_archive(archive.object, archive.parameter, archive.r#type, &mut extra.archive);
    }
    lists::put_data(record.attributes(), &mut extra.attributes);
    extra
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

fn clock_name(clock: ClockState) -> &'static str {
    match clock {
        ClockState::Unknown => "unknown",
        ClockState::Synchronised => "synchronised",
        ClockState::Free => "free",
        ClockState::Stepped => "stepped",
    }
}

/// Splits rows into row groups: the positions of each.
pub(crate) fn group_ranges(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(super::GROUP).map(move |start| start..rows.min(start + super::GROUP))
}
