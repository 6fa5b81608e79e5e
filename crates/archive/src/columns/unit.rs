//! Rows of a Parquet file as a batch, without a record of each.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;

use super::{
    batch::{Column as Values, ColumnBatch, ColumnData, ColumnType, Names, Presence},
    record::data_json,
    table::NamesBuilder,
};
use crate::parquet::{
    BadTable, Column, Corrupt, Dictionaries, Dictionary, Group, GroupDictionaries, GroupScan, Scratch, Table, Texts,
    Values as Stored, lists,
};

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
}

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

    fn names(&self, table: &Arc<Table>, group: usize, scratch: &mut Scratch) -> Result<Arc<GroupNames>, BadTable> {
        let key = (Arc::as_ptr(table) as usize, group);
        if let Some(known) = self.groups.lock().get(&key) {
            return Ok(known.clone());
        }
        let dictionaries = self.dictionaries.of(table, group, scratch)?;
        let names = dictionaries.columns.iter().map(|_| OnceLock::new()).collect();
        let known = Arc::new(GroupNames { dictionaries, names });
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
            (ColumnType::Name, _) => self.texts_as_names(column),
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
        match self.stored(column)? {
            Stored::Numbers(numbers) => {
                present.push_all(self.rows.len(), true);
                self.rows.of(&numbers, |number| all.push(number));
            }
            Stored::Codes(codes, dictionary) => {
                let Dictionary::Numbers(numbers) = &*dictionary else {
                    return Err(Corrupt("a number column holds texts").into());
                };
                // Code 0 of an optional column is a missing value.
                let first = usize::from(column.is_optional());
                self.rows.of(&codes, |code| {
                    let number = (code as usize).checked_sub(first).and_then(|code| numbers.get(code));
                    present.push(number.is_some());
                    all.push(number.copied().unwrap_or_default());
                });
            }
            Stored::Texts(_) => return Err(Corrupt("a number column holds texts").into()),
        }
        Ok(present.column(ColumnData::Integers(all)))
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
            change.put(text, &mut bytes)?;
            ends.push(i32::try_from(bytes.len()).map_err(|_| Corrupt("texts of more than 2 GiB"))?);
            present.push(keeps_empty || !text.is_empty());
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
        check(&bytes)?;
        Ok(present.column(ColumnData::Texts(ends, bytes)))
    }

    /// Makes the texts of the ids from their three columns.
    fn ids(&mut self) -> Result<Values, BadTable> {
        let lives = self.texts(Column::Incarnation, Change::None)?;
        let rings = self.integers(Column::Ring)?;
        let numbers = self.integers(Column::Number)?;
        let (ColumnData::Texts(lives_ends, life_bytes), ColumnData::Integers(rings), ColumnData::Integers(numbers)) =
            (&lives.data, &rings.data, &numbers.data)
        else {
            return Ok(Values::missing(self.rows.len()));
        };
        let mut ends = Vec::with_capacity(rings.len() + 1);
        let mut bytes = Vec::with_capacity(life_bytes.len() + 10 * rings.len());
        ends.push(0);
        for (row, (ring, number)) in rings.iter().zip(numbers).enumerate() {
            let life = &life_bytes[lives_ends[row] as usize..lives_ends[row + 1] as usize];
            if !life.is_empty() {
                bytes.extend_from_slice(life);
                bytes.push(b'.');
                put_number(ring.cast_unsigned(), &mut bytes);
                bytes.push(b'.');
                put_number(number.cast_unsigned(), &mut bytes);
            }
            ends.push(bytes.len() as i32);
        }
        Ok(Values { data: ColumnData::Texts(ends, bytes), ..lives })
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

/// Appends a number in decimal digits.
fn put_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Difference between a text of a file and that of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// An empty text is a value.
    KeepEmpty,
    /// An object of named values becomes a list.
    Data,
    /// The subject of a parameter, whose members have their order.
    Archive,
}

impl Change {
    fn put(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), BadTable> {
        match self {
            _ if text.is_empty() => {}
            Change::None | Change::KeepEmpty => out.extend_from_slice(text),
            Change::Data => {
                let before = out.len();
                if put_list(text, out).is_none() {
                    out.truncate(before);
                    let data = std::str::from_utf8(text).ok().and_then(|text| lists::data(text).ok());
                    let data = data.ok_or(Corrupt("named values that cannot be read"))?;
                    out.extend_from_slice(data_json(&data).as_bytes());
                }
            }
            Change::Archive => {
                let archive = std::str::from_utf8(text).ok().and_then(|text| lists::archive(text).ok()).flatten();
                let archive = archive.ok_or(Corrupt("named values that cannot be read"))?;
                out.extend_from_slice(&serde_json::to_vec(&archive).unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// Appends `{"scan":"12"}` as `[{"name":"scan","value":"12"}]`. Both have texts of the same form, so nothing is decoded. Returns
/// `None` for an object that is written in another way, such as with spaces.
fn put_list(object: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = object.strip_prefix(b"{")?;
    let mut open: &[u8] = b"[{\"name\":";
    loop {
        let (name, behind) = text_at(rest)?;
        let (value, behind) = text_at(behind.strip_prefix(b":")?)?;
        out.extend_from_slice(open);
        out.extend_from_slice(name);
        out.extend_from_slice(b",\"value\":");
        out.extend_from_slice(value);
        out.push(b'}');
        match behind {
            b"}" => break,
            _ => rest = behind.strip_prefix(b",")?,
        }
        open = b",{\"name\":";
    }
    out.push(b']');
    Some(())
}

/// Splits a text without escapes, with its quotes, from what follows.
fn text_at(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = json.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', inner)?;
    if inner[end] == b'\\' || inner[..end].iter().any(|byte| *byte < 0x20) {
        return None;
    }
    Some(json.split_at(end + 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tampu_types::Datum;

    use super::*;

    proptest! {
        #[test]
        fn an_object_becomes_the_list_of_its_values(all in proptest::collection::vec((".{0,6}", ".{0,6}"), 1..4)) {
            let mut object = Vec::new();
            lists::put_data(all.iter().map(|(name, value)| (name.as_str(), value.as_str())), &mut object);
            let data: Vec<Datum> = all.iter().map(|(name, value)| Datum::new(name, value)).collect();
            let mut list = Vec::new();
            Change::Data.put(&object, &mut list).unwrap();
            prop_assert_eq!(String::from_utf8(list).unwrap(), data_json(&data));
        }

        #[test]
        fn numbers_are_their_digits(number: u64) {
            let mut out = Vec::new();
            put_number(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn an_object_of_another_form_is_decoded() {
        let mut list = Vec::new();
        Change::Data.put(br#"{ "a\u0062": "1" }"#, &mut list).unwrap();
        assert_eq!(list, br#"[{"name":"ab","value":"1"}]"#);
        assert!(Change::Data.put(br#"{"a":1}"#, &mut list).is_err());
    }
}
