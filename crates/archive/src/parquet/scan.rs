//! Selection of rows: a query is decided first for a row group, then for a unit, then for single texts.
//!
//! Names are compared once per value of a dictionary, not once per row. If the dictionary of a row group has no
//! matching process, no row of the group is read. A page of texts is searched as one text, and only pages that still
//! have candidate rows are read.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use tampu_types::{Incarnation, Level, RecordId, Time};

use super::{
    BadTable, Corrupt,
    column::Column,
    index::Group,
    lists,
    read::{Dictionaries, records},
    table::{Dictionary, Scratch, Table, Texts, Values},
};
use crate::query::{Cursor, Field, Matcher, NoQuickWay, Text};

/// A query prepared for one row group.
#[derive(Debug)]
pub(crate) struct GroupScan {
    pub(crate) table: Arc<Table>,
    pub(crate) group: usize,
    /// Columns whose dictionary has both wanted and unwanted values, with a flag for each value.
    filters: Vec<(Column, Vec<bool>)>,
    /// Fields without a dictionary, which are compared row by row.
    by_row: Vec<(Column, Field)>,
    /// The condition on sources, where a row's component may be empty.
    sources: Option<Sources>,
    incarnations: OnceLock<Arc<Dictionary>>,
    /// Dictionaries for conditions on whole records.
    dictionaries: Dictionaries,
}

/// A condition on sources, which are the components of rows, or the processes of rows without a component.
#[derive(Debug)]
enum Sources {
    /// By code: true for the empty component, and true for a process that matches.
    Codes { is_empty: Vec<bool>, processes: Vec<bool> },
    /// A column has no dictionary, so whole records are read.
    Whole,
}

/// Wanted rows of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    wanted: Vec<bool>,
    pub(crate) count: usize,
}

impl Selection {
    fn all(rows: usize) -> Selection {
        Selection { wanted: vec![true; rows], count: rows }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.count == self.wanted.len()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        self.wanted.iter().enumerate().filter(|(_, wanted)| **wanted).map(|(row, _)| row)
    }

    fn keep(&mut self, keep: impl Fn(usize) -> bool) {
        self.wanted.iter_mut().enumerate().for_each(|(row, wanted)| *wanted = *wanted && keep(row));
        self.count();
    }

    fn count(&mut self) {
        self.count = self.wanted.iter().filter(|wanted| **wanted).count();
    }
}

impl GroupScan {
    /// Prepares a query by the index of a row group; returns `None` if no row of it can be wanted.
    pub(crate) fn new(
        table: &Arc<Table>,
        group: usize,
        matcher: &Matcher,
        scratch: &mut Scratch,
    ) -> Result<Option<GroupScan>, BadTable> {
        let known = &table.index.groups[group];
        if known.levels.0 & matcher.levels() == 0
            || !matcher.meets(known.earliest(), known.latest())
            || !matcher.texts().iter().all(|text| SEARCHED.into_iter().any(|column| may_be_in(known, column, text)))
        {
            return Ok(None);
        }
        let mut scan = GroupScan {
            table: table.clone(),
            group,
            filters: Vec::new(),
            by_row: Vec::new(),
            sources: None,
            incarnations: OnceLock::new(),
            dictionaries: Dictionaries::default(),
        };
        if known.levels.0 & !matcher.levels() != 0 {
            let wants = |name: &str| name.parse().is_ok_and(|level: Level| matcher.levels() & (1 << level.ordinal()) != 0);
            if !scan.filter(Column::Level, None, &wants, scratch)? {
                return Ok(None);
            }
        }
        for field in matcher.fields() {
            if !scan.filter(
                Column::of(field.record_field())?,
                Some(field),
                &|value| matcher.wants_field(field, value),
                scratch,
            )? {
                return Ok(None);
            }
        }
        if matcher.asks_ids() && !scan.filter_incarnations(matcher, scratch)? {
            return Ok(None);
        }
        if matcher.asks_sources() && !scan.filter_sources(matcher, scratch)? {
            return Ok(None);
        }
        if matcher.asks_audiences() {
            let wants = |text: &str| matcher.wants_audiences(lists::audiences(text).iter().map(String::as_str));
            if !scan.filter(Column::Audiences, None, &wants, scratch)? {
                return Ok(None);
            }
        }
        Ok(Some(scan))
    }

    /// Adds a filter; returns `false` if nothing passes it.
    fn filter(
        &mut self,
        column: Column,
        field: Option<Field>,
        wants: &dyn Fn(&str) -> bool,
        scratch: &mut Scratch,
    ) -> Result<bool, BadTable> {
        let group = &self.table.index.groups[self.group];
        let Some(dictionary) = self.table.dictionary(group, column, scratch)? else {
            match field {
                Some(field) => self.by_row.push((column, field)),
                None => return Err(Corrupt("a column without its dictionary").into()),
            }
            return Ok(true);
        };
        let Dictionary::Texts(texts) = dictionary else { return Err(Corrupt("a text column holds numbers").into()) };
        let wanted: Vec<bool> = texts.iter().map(|text| std::str::from_utf8(text).is_ok_and(wants)).collect();
        let any = wanted.contains(&true);
        if wanted.contains(&false) {
            self.filters.push((column, wanted));
        }
        Ok(any)
    }

    /// Adds the incarnations of the wanted ids; returns `false` if nothing passes them.
    fn filter_incarnations(&mut self, matcher: &Matcher, scratch: &mut Scratch) -> Result<bool, BadTable> {
        let group = &self.table.index.groups[self.group];
        // Without a dictionary the ids themselves are compared, row by row.
        let Some(Dictionary::Texts(texts)) = self.table.dictionary(group, Column::Incarnation, scratch)? else { return Ok(true) };
        let wanted: Vec<bool> = texts.iter().map(|text| life(text).is_some_and(|of| matcher.wants_incarnation(of))).collect();
        let any = wanted.contains(&true);
        if wanted.contains(&false) {
            self.filters.push((Column::Incarnation, wanted));
        }
        Ok(any)
    }

    /// Adds the condition on sources; returns `false` if nothing passes it.
    fn filter_sources(&mut self, matcher: &Matcher, scratch: &mut Scratch) -> Result<bool, BadTable> {
        let group = &self.table.index.groups[self.group];
        let objects = self.table.dictionary(group, Column::SourceObject, scratch)?;
        let processes = self.table.dictionary(group, Column::Process, scratch)?;
        let (Some(Dictionary::Texts(objects)), Some(Dictionary::Texts(processes))) = (objects, processes) else {
            self.sources = Some(Sources::Whole);
            return Ok(true);
        };
        let wants = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|source| matcher.wants_source(source));
        let is_empty: Vec<bool> = objects.iter().map(<[u8]>::is_empty).collect();
        let processes: Vec<bool> = processes.iter().map(wants).collect();
        let by_process = is_empty.contains(&true) && processes.contains(&true);
        let objects: Vec<bool> =
            objects.iter().map(|object| if object.is_empty() { by_process } else { wants(object) }).collect();
        let any = objects.contains(&true);
        if objects.contains(&false) {
            self.filters.push((Column::SourceObject, objects));
        }
        if by_process && processes.contains(&false) {
            self.sources = Some(Sources::Codes { is_empty, processes });
        }
        Ok(any)
    }

    pub(crate) fn units(&self) -> usize {
        self.table.index.groups[self.group].units.len()
    }

    /// Returns the times of a unit's first and last row.
    pub(crate) fn span(&self, unit: usize) -> (Time, Time) {
        self.table.index.groups[self.group].units[unit]
    }

    pub(crate) fn rows(&self, unit: usize) -> usize {
        Table::unit_rows(&self.table.index.groups[self.group], unit)
    }

    /// Selects the matching rows of a unit.
    pub(crate) fn select(&self, unit: usize, matcher: &Matcher, scratch: &mut Scratch) -> Result<Selection, BadTable> {
        let (table, group) = (&self.table, &self.table.index.groups[self.group]);
        let mut selection = Selection::all(Table::unit_rows(group, unit));
        let (earliest, latest) = self.span(unit);
        if !matcher.meets(earliest, latest) {
            selection.wanted.fill(false);
            selection.count = 0;
        }
        for (column, wanted) in &self.filters {
            if selection.count == 0 {
                return Ok(selection);
            }
            let codes = table.codes(group, *column, unit, wanted.len(), scratch)?;
            for (row, code) in selection.wanted.iter_mut().zip(codes) {
                *row &= wanted[code as usize];
            }
            selection.count();
        }
        if let Some(Sources::Codes { is_empty, processes }) = self.sources.as_ref().filter(|_| selection.count > 0) {
            let objects = table.codes(group, Column::SourceObject, unit, is_empty.len(), scratch)?;
            let codes = table.codes(group, Column::Process, unit, processes.len(), scratch)?;
            selection.keep(|row| !is_empty[objects[row] as usize] || processes[codes[row] as usize]);
        }
        if selection.count > 0 && !matcher.covers(earliest, latest) {
            let times = table.numbers(group, Column::Time, unit, scratch)?;
            selection.keep(|row| matcher.wants_time(Time(times[row])));
        }
        if selection.count > 0 && matcher.asks_ids() {
            let places = self.places(unit, &selection, scratch)?;
            let wanted: HashSet<u32> =
                places.into_iter().filter(|(place, _)| matcher.wants_id(place.id)).map(|(_, row)| row).collect();
            selection.keep(|row| wanted.contains(&(row as u32)));
        }
        for (column, field) in &self.by_row {
            if selection.count > 0 {
                let pages = table.text_pages(group, *column, unit, &wanted_in(&selection), scratch)?;
                keep_texts(&mut selection, &pages, |text| {
                    std::str::from_utf8(text).is_ok_and(|text| matcher.wants_field(*field, text))
                });
            }
        }
        if selection.count > 0 && !matcher.texts().is_empty() {
            self.select_texts(unit, matcher.texts(), &mut selection, scratch)?;
        }
        if selection.count > 0 && (matcher.asks_whole_records() || matches!(self.sources, Some(Sources::Whole))) {
            self.select_whole(unit, matcher, &mut selection, scratch)?;
        }
        Ok(selection)
    }

    /// Keeps the rows whose records are wanted. Audience modes and exclusions combine several columns.
    fn select_whole(
        &self,
        unit: usize,
        matcher: &Matcher,
        selection: &mut Selection,
        scratch: &mut Scratch,
    ) -> Result<(), BadTable> {
        let rows: Vec<u32> = selection.rows().map(|row| row as u32).collect();
        let mut wanted = Vec::with_capacity(rows.len());
        records(&self.table, self.group, unit, &rows, &self.dictionaries, scratch, |_, record, _| {
            wanted.push(matcher.wants_record(&record));
        })?;
        let left_out: HashSet<u32> = rows.into_iter().zip(wanted).filter(|(_, wanted)| !wanted).map(|(row, _)| row).collect();
        selection.keep(|row| !left_out.contains(&(row as u32)));
        Ok(())
    }

    /// Keeps the rows in which every text is found, in the message or in a value.
    fn select_texts(
        &self,
        unit: usize,
        texts: &[Text],
        selection: &mut Selection,
        scratch: &mut Scratch,
    ) -> Result<(), BadTable> {
        let (table, group) = (&self.table, &self.table.index.groups[self.group]);
        let mut found = vec![vec![false; selection.wanted.len()]; texts.len()];
        for column in SEARCHED {
            // A row that already matches all texts is not searched again, and pages with only such rows are not read.
            let is_open = |row: usize| selection.wanted[row] && !found.iter().all(|found| found[row]);
            let open: Vec<bool> = (0..selection.wanted.len()).map(is_open).collect();
            let in_this = |text: &&Text| may_be_in(group, column, text);
            if !texts.iter().any(|text| in_this(&text)) {
                continue;
            }
            let wanted = |range: std::ops::Range<usize>| open.get(range).is_some_and(|rows| rows.contains(&true));
            for (first, page) in table.text_pages(group, column, unit, &wanted, scratch)? {
                for (text, found) in texts.iter().zip(&mut found).filter(|(text, _)| in_this(text)) {
                    find(text, &page, column == Column::Data, &open[first..], &mut found[first..]);
                }
            }
        }
        selection.keep(|row| found.iter().all(|found| found[row]));
        Ok(())
    }

    /// Returns the positions of a unit's wanted rows in the order of answers, with their rows.
    pub(crate) fn places(
        &self,
        unit: usize,
        selection: &Selection,
        scratch: &mut Scratch,
    ) -> Result<Vec<(Cursor, u32)>, BadTable> {
        let (table, group) = (&self.table, &self.table.index.groups[self.group]);
        let dictionary = match self.incarnations.get() {
            Some(dictionary) => Some(dictionary.clone()),
            None => table
                .dictionary(group, Column::Incarnation, scratch)?
                .map(|dictionary| self.incarnations.get_or_init(|| Arc::new(dictionary)).clone()),
        };
        let lives = table.values(group, Column::Incarnation, unit, dictionary, &wanted_in(selection), scratch)?;
        let known: Vec<Option<Incarnation>> = match &lives {
            Values::Codes(_, dictionary) => match &**dictionary {
                Dictionary::Texts(texts) => texts.iter().map(life).collect(),
                Dictionary::Numbers(_) => return Err(Corrupt("a text column holds numbers").into()),
            },
            _ => Vec::new(),
        };
        let times = table.numbers(group, Column::Time, unit, scratch)?;
        let rings = table.numbers(group, Column::Ring, unit, scratch)?;
        let numbers = table.numbers(group, Column::Number, unit, scratch)?;
        let life_of = |row: usize| match &lives {
            Values::Codes(codes, _) => known.get(codes[row] as usize).copied().flatten(),
            Values::Texts(pages) => {
                let page = pages.partition_point(|(first, _)| *first <= row).checked_sub(1)?;
                let (first, texts) = &pages[page];
                (row - first < texts.len()).then(|| life(texts.get(row - first)))?
            }
            Values::Numbers(_) => None,
        };
        let place = |row: usize| {
            let id =
                life_of(row).map(|incarnation| RecordId { incarnation, ring: rings[row] as u32, number: numbers[row] as u64 });
            (Cursor { time: Time(times[row]), id: id.unwrap_or_default() }, row as u32)
        };
        Ok(selection.rows().map(place).collect())
    }

    /// Returns the position of one row.
    pub(crate) fn place(&self, unit: usize, row: u32, scratch: &mut Scratch) -> Result<Cursor, BadTable> {
        let mut selection = Selection { wanted: vec![false; self.rows(unit)], count: 1 };
        let wanted = selection.wanted.get_mut(row as usize).ok_or(Corrupt("a unit lacks rows"))?;
        *wanted = true;
        let places = self.places(unit, &selection, scratch)?;
        Ok(places.first().ok_or(Corrupt("a unit lacks rows"))?.0)
    }
}

fn life(text: &[u8]) -> Option<Incarnation> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn wanted_in(selection: &Selection) -> impl Fn(std::ops::Range<usize>) -> bool {
    |range| selection.wanted.get(range).is_some_and(|rows| rows.contains(&true))
}

fn keep_texts(selection: &mut Selection, pages: &[(usize, Texts)], keep: impl Fn(&[u8]) -> bool) {
    for (first, texts) in pages {
        for place in 0..texts.len() {
            if let Some(wanted) = selection.wanted.get_mut(first + place).filter(|wanted| **wanted) {
                *wanted = keep(texts.get(place));
            }
        }
    }
    selection.count();
}

/// Columns that a text search reads.
const SEARCHED: [Column; 2] = [Column::Message, Column::Data];

/// Returns whether a text can occur in this column of a row group.
fn may_be_in(group: &Group, column: Column, text: &Text) -> bool {
    text.word().is_none_or(|word| group.may_hold(column, word))
}

/// Share of wanted rows below which each row's text is searched by itself.
const SPARSE: usize = 16;

/// Marks the wanted rows of a page in which the text is found.
fn find(text: &Text, page: &Texts, is_data: bool, wanted: &[bool], found: &mut [bool]) {
    let count = page.len().min(wanted.len());
    let is_in = |place: usize| {
        let one = page.get(place);
        if is_data { is_in_value(text, one) } else { text.is_in(one) }
    };
    let (joined, ends) = page.joined();
    let few = wanted[..count].iter().filter(|wanted| **wanted).count() * SPARSE < count;
    // JSON escapes change the bytes, so a page with an escape is searched value by value.
    let escaped = is_data && memchr::memchr(b'\\', joined).is_some();
    let mut at = if few || escaped { Err(NoQuickWay) } else { text.next_place(joined, 0) };
    if at.is_err() {
        for place in (0..count).filter(|&place| wanted[place]) {
            found[place] = found[place] || is_in(place);
        }
    }
    while let Ok(Some(hit)) = at {
        let place = ends.partition_point(|&end| end as usize <= hit);
        if place >= count {
            return;
        }
        if wanted[place] && !found[place] {
            found[place] = is_in(place);
        }
        at = text.next_place(joined, ends[place] as usize);
    }
}

fn is_in_value(text: &Text, json: &[u8]) -> bool {
    let mut found = false;
    let Ok(json) = std::str::from_utf8(json) else { return false };
    // The reader of the record reports invalid JSON.
    let _ = lists::each_datum(json, |_, value| found |= text.is_in(value.as_bytes()));
    found
}
