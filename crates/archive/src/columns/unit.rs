//! Rows of a Parquet file as a batch, without a record of each.
//!
//! A column is an error where its value of a row would make the record of that row unreadable. Then the rows are read
//! again one by one, so an answer in columns has the rows of an answer in records.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, OnceLock},
};

use parking_lot::Mutex;
use tampu_types::{Incarnation, Level};

use super::{
    batch::{Column as Values, ColumnBatch, ColumnData, ColumnType, Names, Presence, are_texts},
    change::{Change, put_number},
    record::push_record,
    table::{ColumnTable, NamesBuilder},
};
use crate::parquet::{
    BadTable, Column, Corrupt, Dictionaries, Dictionary, Group, GroupDictionaries, GroupScan, Scratch, Table, Texts,
    Values as Stored, lists, records,
};

/// Names of all levels, in their order.
static LEVELS: LazyLock<Arc<Names>> = LazyLock::new(|| {
    let mut names = Names::default();
    Level::ALL.iter().for_each(|level| names.push(level.name().as_bytes()));
    Arc::new(names)
});

/// Bytes of an id for which room is made.
const ID_BYTES: usize = 48;

/// Row groups whose dictionaries are kept as names.
const MOST_KNOWN: usize = 16;

/// Reader of units, with the dictionaries of the row groups that it has read.
#[derive(Default)]
pub(crate) struct UnitReader {
    dictionaries: Dictionaries,
    groups: Mutex<HashMap<(usize, usize), Arc<GroupNames>>>,
}

/// Dictionaries of a row group. They hold the file open, so that no other file can take its address.
struct GroupNames {
    dictionaries: Arc<GroupDictionaries>,
    names: Vec<OnceLock<Arc<Names>>>,
    lives: OnceLock<Vec<Life>>,
}

/// Incarnation as ids have it; none if it cannot be read.
type Life = Option<String>;

/// The rows that are read from a unit, and their number in it.
struct Rows<'r> {
    /// None for all rows.
    some: Option<&'r [u32]>,
    unit: usize,
}

impl Rows<'_> {
    fn len(&self) -> usize {
        self.some.map_or(self.unit, <[u32]>::len)
    }

    fn has(&self, range: std::ops::Range<usize>) -> bool {
        self.some.is_none_or(|rows| {
            let from = rows.partition_point(|&row| (row as usize) < range.start);
            rows.get(from).is_some_and(|&row| (row as usize) < range.end)
        })
    }

    /// Calls `each` with the value of each row.
    fn of<T: Copy>(&self, all: &[T], mut each: impl FnMut(T)) {
        match self.some {
            None => all.iter().copied().for_each(each),
            Some(rows) => rows.iter().for_each(|row| each(all[*row as usize])),
        }
    }
}

/// A column of a unit that is read, and what it is read with.
struct Source<'s> {
    table: &'s Arc<Table>,
    group: &'s Group,
    unit: usize,
    rows: Rows<'s>,
    known: Arc<GroupNames>,
    scratch: &'s mut Scratch,
}

impl UnitReader {
    /// Reads these rows of a unit, which are in order, or all.
    pub(crate) fn read(
        &self,
        scan: &GroupScan,
        unit: usize,
        rows: Option<&[u32]>,
        schema: &[(&'static str, ColumnType)],
        scratch: &mut Scratch,
    ) -> Result<ColumnBatch, BadTable> {
        let known = self.names(&scan.table, scan.group, scratch)?;
        let group = &scan.table.index.groups[scan.group];
        let rows = Rows { some: rows.filter(|rows| rows.len() < scan.rows(unit)), unit: scan.rows(unit) };
        let mut source = Source { table: &scan.table, group, unit, rows, known, scratch };
        let columns = schema.iter().map(|(name, kind)| source.column(name, *kind)).collect::<Result<_, BadTable>>()?;
        Ok(ColumnBatch { rows: source.rows.len(), columns })
    }

    /// Reads these rows of a unit by their records, until `most` are read. Returns them with their places among the
    /// rows. Rows that cannot be read are left out, and the first error is returned beside the others.
    pub(crate) fn read_each(
        &self,
        scan: &GroupScan,
        unit: usize,
        rows: &[u32],
        most: usize,
        schema: &[(&'static str, ColumnType)],
        scratch: &mut Scratch,
    ) -> (Vec<ColumnBatch>, Vec<usize>, Result<(), BadTable>) {
        let (mut table, mut places, mut read) = (ColumnTable::new(schema.iter().copied()), Vec::new(), Ok(()));
        let mut from = 0;
        while from < rows.len() && places.len() < most {
            let to = rows.len().min(from.saturating_add(most - places.len()));
            let found =
                records(&scan.table, scan.group, unit, &rows[from..to], &self.dictionaries, scratch, |place, record, _| {
                    push_record(&mut table, &record);
                    places.push(from + place);
                });
            read = read.and(found);
            from = to;
        }
        (table.into_batches(), places, read)
    }

    fn names(&self, table: &Arc<Table>, group: usize, scratch: &mut Scratch) -> Result<Arc<GroupNames>, BadTable> {
        let key = (Arc::as_ptr(table) as usize, group);
        if let Some(known) = self.groups.lock().get(&key) {
            return Ok(known.clone());
        }
        let dictionaries = self.dictionaries.of(table, group, scratch)?;
        let names = dictionaries.columns.iter().map(|_| OnceLock::new()).collect();
        let known = Arc::new(GroupNames { dictionaries, names, lives: OnceLock::new() });
        let mut all = self.groups.lock();
        if all.len() >= MOST_KNOWN {
            all.clear();
        }
        // Another thread may have been quicker; both must use the same names.
        Ok(all.entry(key).or_insert(known).clone())
    }
}

impl Source<'_> {
    fn column(&mut self, name: &str, kind: ColumnType) -> Result<Values, BadTable> {
        if name == "id" {
            return self.ids();
        }
        let column = Column::ALL.iter().find(|column| column.name() == name).copied();
        let column = column.ok_or(Corrupt("a column that no file has"))?;
        match (kind, column) {
            (ColumnType::Name, Column::Level) => self.levels(),
            (ColumnType::Name, _) => self.texts_as_names(column),
            (ColumnType::Text, Column::TraceId) => self.texts(column, Change::TraceId),
            (ColumnType::Text, Column::SpanId) => self.texts(column, Change::SpanId),
            (ColumnType::Text, Column::Data | Column::Attributes) => self.texts(column, Change::Data),
            (ColumnType::Text, Column::Archive) => self.texts(column, Change::Archive),
            (ColumnType::Text, Column::Message) => self.texts(column, Change::KeepEmpty),
            (ColumnType::Text, _) => self.texts(column, Change::None),
            _ => self.integers(column),
        }
    }

    fn stored(&mut self, column: Column) -> Result<Stored, BadTable> {
        let dictionary = self.known.dictionaries.columns[column.index()].clone();
        let rows = &self.rows;
        self.table.values(self.group, column, self.unit, dictionary, &|range| rows.has(range), self.scratch)
    }

    fn integers(&mut self, column: Column) -> Result<Values, BadTable> {
        let mut present = Presence::default();
        let mut all = Vec::with_capacity(self.rows.len());
        let mut is_valid = true;
        match self.stored(column)? {
            Stored::Numbers(numbers) => {
                present.push_all(self.rows.len(), true);
                self.rows.of(&numbers, |number| {
                    is_valid &= is_in_range(column, number);
                    all.push(number);
                });
            }
            Stored::Codes(codes, dictionary) => {
                let Dictionary::Numbers(numbers) = &*dictionary else {
                    return Err(Corrupt("a number column holds texts").into());
                };
                // Code 0 of an optional column is a missing value.
                let first = usize::from(column.is_optional());
                self.rows.of(&codes, |code| {
                    let place = (code as usize).checked_sub(first);
                    let number = place.and_then(|place| numbers.get(place)).copied();
                    is_valid &= number.map_or(place.is_none(), |number| is_in_range(column, number));
                    present.push(number.is_some());
                    all.push(number.unwrap_or_default());
                });
            }
            Stored::Texts(_) => return Err(Corrupt("a number column holds texts").into()),
        }
        if is_valid { Ok(present.column(ColumnData::Integers(all))) } else { Err(Corrupt("a number is out of range").into()) }
    }

    /// Reads the levels by their numbers, as records have them.
    fn levels(&mut self) -> Result<Values, BadTable> {
        let ColumnData::Integers(numbers) = self.integers(Column::LevelNumber)?.data else {
            return Ok(Values::missing(self.rows.len()));
        };
        let code = |number: i64| {
            let level = u8::try_from(number).ok().and_then(Level::from_number)?;
            Some(level.ordinal() as i32)
        };
        let codes: Option<Vec<i32>> = numbers.into_iter().map(code).collect();
        let codes = codes.ok_or(Corrupt("invalid level"))?;
        Ok(Values { data: ColumnData::Names(codes, LEVELS.clone()), present: Vec::new(), missing: 0 })
    }

    fn texts_as_names(&mut self, column: Column) -> Result<Values, BadTable> {
        let rows = self.rows.len();
        let (codes, dictionary) = match self.stored(column)? {
            Stored::Codes(codes, dictionary) => (codes, dictionary),
            Stored::Texts(pages) => return self.names_of_pages(column, &pages),
            Stored::Numbers(_) => return Err(Corrupt("a text column holds numbers").into()),
        };
        let texts = some_texts_of(&dictionary)?;
        let empty = texts.iter().position(<[u8]>::is_empty).map_or(u32::MAX, |code| code as u32);
        if empty == 0 && texts.len() == 1 {
            return Ok(Values::missing(rows));
        }
        let names = match self.known.names[column.index()].get() {
            Some(names) => names.clone(),
            None => {
                let names = Arc::new(names_of(column, texts)?);
                self.known.names[column.index()].get_or_init(|| names).clone()
            }
        };
        let (mut present, mut all) = (Presence::default(), Vec::with_capacity(rows));
        self.rows.of(&codes, |code| all.push(code.cast_signed()));
        if empty == u32::MAX {
            present.push_all(rows, true);
        } else {
            self.rows.of(&codes, |code| present.push(code != empty));
        }
        Ok(present.column(ColumnData::Names(all, names)))
    }

    /// Makes a dictionary of texts that have none in the file.
    fn names_of_pages(&self, column: Column, pages: &[(usize, Texts)]) -> Result<Values, BadTable> {
        let mut names = NamesBuilder::default();
        let (mut present, mut all) = (Presence::default(), Vec::with_capacity(self.rows.len()));
        self.each_text(pages, |text| {
            check(text)?;
            if names.bytes() + text.len() > i32::MAX as usize {
                return Err(Corrupt("texts of more than 2 GiB").into());
            }
            present.push(!text.is_empty());
            all.push(if text.is_empty() { 0 } else { names.code(&changed_name(column, text)) });
            Ok(())
        })?;
        Ok(present.column(ColumnData::Names(all, Arc::new(names.into_names()))))
    }

    fn each_text(&self, pages: &[(usize, Texts)], mut each: impl FnMut(&[u8]) -> Result<(), BadTable>) -> Result<(), BadTable> {
        let missing = Corrupt("a page of texts is missing");
        if self.rows.some.is_none() && pages.iter().map(|(_, texts)| texts.len()).sum::<usize>() != self.rows.unit {
            return Err(missing.into());
        }
        let Some(rows) = self.rows.some else {
            return pages.iter().flat_map(|(_, texts)| texts.iter()).try_for_each(each);
        };
        let mut pages = pages.iter().peekable();
        for row in rows {
            let row = *row as usize;
            while pages.next_if(|(first, texts)| first + texts.len() <= row).is_some() {}
            let (first, texts) = pages.peek().filter(|(first, _)| *first <= row).ok_or(missing)?;
            each(texts.get(row - first))?;
        }
        Ok(())
    }

    fn texts(&mut self, column: Column, change: Change) -> Result<Values, BadTable> {
        let rows = self.rows.len();
        let (mut present, mut ends, mut bytes) = (Presence::default(), Vec::with_capacity(rows + 1), Vec::new());
        ends.push(0);
        let keeps_empty = change == Change::KeepEmpty;
        let mut add = |text: &[u8]| {
            let before = bytes.len();
            change.put(text, &mut bytes)?;
            ends.push(end_of(&bytes)?);
            present.push(keeps_empty || bytes.len() > before);
            Ok::<(), BadTable>(())
        };
        match self.stored(column)? {
            Stored::Codes(codes, dictionary) => {
                let texts = some_texts_of(&dictionary)?;
                if texts.len() == 1 && texts.get(0).is_empty() && !keeps_empty {
                    return Ok(Values::missing(rows));
                }
                let mut done = Ok(());
                self.rows.of(&codes, |code| {
                    if done.is_ok() {
                        done = add(texts.get(code as usize));
                    }
                });
                done?;
            }
            Stored::Texts(pages) if keeps_empty && self.rows.some.is_none() => {
                // The texts as they are, page by page.
                for (_, texts) in &pages {
                    let (joined, theirs) = texts.joined();
                    let base = bytes.len();
                    bytes.extend_from_slice(joined);
                    ends.extend(theirs.iter().map(|end| (base as i32).wrapping_add(*end as i32)));
                }
                if ends.len() != rows + 1 || i32::try_from(bytes.len()).is_err() {
                    return Err(Corrupt("a unit lacks rows, or has texts of more than 2 GiB").into());
                }
                present.push_all(rows, true);
            }
            Stored::Texts(pages) => self.each_text(&pages, add)?,
            Stored::Numbers(_) => return Err(Corrupt("a text column holds numbers").into()),
        }
        if !are_texts(&bytes, &ends) {
            return Err(Corrupt("a text is not UTF-8").into());
        }
        Ok(present.column(ColumnData::Texts(ends, bytes)))
    }

    /// Makes the texts of the ids from their three columns.
    fn ids(&mut self) -> Result<Values, BadTable> {
        let (rings, numbers) = (self.integers(Column::Ring)?.data, self.integers(Column::Number)?.data);
        let (ColumnData::Integers(rings), ColumnData::Integers(numbers)) = (rings, numbers) else {
            return Ok(Values::missing(self.rows.len()));
        };
        let lives = self.stored(Column::Incarnation)?;
        let (mut present, mut ends) = (Presence::default(), Vec::with_capacity(rings.len() + 1));
        let mut bytes = Vec::with_capacity(ID_BYTES * rings.len());
        ends.push(0);
        let mut rest = rings.into_iter().zip(numbers);
        let mut add = |life: &Life| {
            let (ring, number) = rest.next().unwrap_or_default();
            let life = life.as_ref().ok_or(Corrupt("invalid incarnation"))?;
            if !life.is_empty() {
                bytes.extend_from_slice(life.as_bytes());
                bytes.push(b'.');
                put_number(ring.cast_unsigned(), &mut bytes);
                bytes.push(b'.');
                put_number(number.cast_unsigned(), &mut bytes);
            }
            present.push(!life.is_empty());
            ends.push(end_of(&bytes)?);
            Ok::<(), BadTable>(())
        };
        match lives {
            Stored::Codes(codes, dictionary) => {
                let texts = some_texts_of(&dictionary)?;
                let lives = self.known.lives.get_or_init(|| texts.iter().map(life_of).collect());
                let mut done = Ok(());
                self.rows.of(&codes, |code| {
                    if done.is_ok() {
                        done = add(&lives[code as usize]);
                    }
                });
                done?;
            }
            Stored::Texts(pages) => {
                // Most rows have the life of the row before.
                let (mut known, mut life) = (Vec::new(), Some(String::new()));
                self.each_text(&pages, |text| {
                    if text != known {
                        (known, life) = (text.to_vec(), life_of(text));
                    }
                    add(&life)
                })?;
            }
            Stored::Numbers(_) => return Err(Corrupt("a text column holds numbers").into()),
        }
        Ok(present.column(ColumnData::Texts(ends, bytes)))
    }
}

/// Returns the text of an incarnation as ids have it; empty of an empty one, none of one that cannot be read.
fn life_of(text: &[u8]) -> Life {
    if text.is_empty() {
        return Some(String::new());
    }
    Some(std::str::from_utf8(text).ok()?.parse::<Incarnation>().ok()?.to_string())
}

/// Returns the end of the last text.
fn end_of(bytes: &[u8]) -> Result<i32, Corrupt> {
    i32::try_from(bytes.len()).map_err(|_| Corrupt("texts of more than 2 GiB"))
}

/// Returns true for a number that a record can have in this column.
fn is_in_range(column: Column, number: i64) -> bool {
    match column {
        Column::Line | Column::Ring => u32::try_from(number).is_ok(),
        Column::StackLevel => i32::try_from(number).is_ok(),
        Column::Priority => u8::try_from(number).is_ok(),
        _ => true,
    }
}

/// Returns the texts of a dictionary that rows have codes of.
fn some_texts_of(dictionary: &Dictionary) -> Result<&Texts, Corrupt> {
    let texts = texts_of(dictionary)?;
    if texts.len() == 0 { Err(Corrupt("a dictionary is empty")) } else { Ok(texts) }
}

fn texts_of(dictionary: &Dictionary) -> Result<&Texts, Corrupt> {
    match dictionary {
        Dictionary::Texts(texts) => Ok(texts),
        Dictionary::Numbers(_) => Err(Corrupt("a text column holds numbers")),
    }
}

fn names_of(column: Column, texts: &Texts) -> Result<Names, BadTable> {
    let mut names = Names::default();
    for text in texts.iter() {
        check(text)?;
        if names.bytes.len() + text.len() > i32::MAX as usize {
            return Err(Corrupt("texts of more than 2 GiB").into());
        }
        names.push(&changed_name(column, text));
    }
    Ok(names)
}

/// Returns a name as answers have it: audiences are separated by commas, without escapes.
fn changed_name(column: Column, text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if column != Column::Audiences || !text.contains(&b'\\') {
        return text.into();
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    lists::audiences(text).join(",").into_bytes().into()
}

fn check(text: &[u8]) -> Result<(), Corrupt> {
    std::str::from_utf8(text).map(drop).map_err(|_| Corrupt("a text is not UTF-8"))
}
