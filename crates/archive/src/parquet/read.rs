//! Conversion of a unit's rows back into records.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use tampu_types::{ClockState, Level, LogRecord, RecordField, RecordId, Time, record::field::FieldKind};

use super::{
    BadTable, Corrupt,
    column::Column,
    lists,
    rows::Sent,
    table::{Dictionary, Scratch, Table, Values},
};

/// Cache of recently read dictionaries: neighbouring records need the same ones.
#[derive(Debug, Default)]
pub(crate) struct Dictionaries(Mutex<HashMap<(usize, usize), Arc<GroupDictionaries>>>);

/// Dictionaries of a row group. It holds the file open, so that no other file can take its address.
#[derive(Debug)]
pub(crate) struct GroupDictionaries {
    _table: Arc<Table>,
    pub(crate) columns: Vec<Option<Arc<Dictionary>>>,
}

/// Number of row groups whose dictionaries are cached.
const MOST_KNOWN: usize = 16;

impl Dictionaries {
    pub(crate) fn of(&self, table: &Arc<Table>, group: usize, scratch: &mut Scratch) -> Result<Arc<GroupDictionaries>, BadTable> {
        let key = (Arc::as_ptr(table) as usize, group);
        if let Some(known) = self.0.lock().get(&key) {
            return Ok(known.clone());
        }
        let chunks = &table.index.groups[group];
        let read = |column: usize| Ok(table.dictionary(chunks, column, scratch)?.map(Arc::new));
        let columns = (0..chunks.columns.len()).map(read).collect::<Result<_, BadTable>>()?;
        let known = Arc::new(GroupDictionaries { _table: table.clone(), columns });
        let mut all = self.0.lock();
        if all.len() >= MOST_KNOWN {
            all.clear();
        }
        all.insert(key, known.clone());
        Ok(known)
    }
}

/// Reads these rows of a unit, which are in order. Each record comes with its place among the rows and with the facts
/// of its batch. A row that cannot be read is left out, and its error is returned after the others.
pub(crate) fn records(
    table: &Arc<Table>,
    group: usize,
    unit: usize,
    rows: &[u32],
    dictionaries: &Dictionaries,
    scratch: &mut Scratch,
    mut each: impl FnMut(usize, LogRecord, &dyn Fn() -> Result<Sent, BadTable>),
) -> Result<(), BadTable> {
    let known = dictionaries.of(table, group, scratch)?;
    let group = &table.index.groups[group];
    let wanted = |range: std::ops::Range<usize>| {
        let from = rows.partition_point(|&row| (row as usize) < range.start);
        rows.get(from).is_some_and(|&row| (row as usize) < range.end)
    };
    let mut columns = Vec::with_capacity(Column::COUNT);
    for &column in Column::ALL {
        columns.push(table.values(group, column, unit, known.columns[column.index()].clone(), &wanted, scratch)?);
    }
    let unit = Unit(columns);
    let mut bad = Ok(());
    for (place, &row) in rows.iter().enumerate() {
        let row = row as usize;
        match unit.record(row) {
            Ok(record) => each(place, record, &|| unit.sent(row)),
            Err(error) => bad = bad.and(Err(error.into())),
        }
    }
    bad
}

/// Fields that are texts, with their columns.
static TEXTS: LazyLock<Vec<(RecordField, Column)>> = LazyLock::new(|| {
    let texts = RecordField::ALL.into_iter().filter(|field| field.kind() == FieldKind::Text);
    texts.filter_map(|field| Some((field, Column::of(field).ok()?))).collect()
});

/// All columns of a unit.
struct Unit(Vec<Values>);

impl Unit {
    fn bytes(&self, column: Column, row: usize) -> Result<&[u8], Corrupt> {
        match &self.0[column.index()] {
            Values::Codes(codes, dictionary) => match &**dictionary {
                Dictionary::Texts(texts) if (codes[row] as usize) < texts.len() => Ok(texts.get(codes[row] as usize)),
                _ => Err(Corrupt("a text column holds something else")),
            },
            Values::Texts(pages) => {
                let page = pages.partition_point(|(first, _)| *first <= row).checked_sub(1);
                let found = page.and_then(|page| pages.get(page)).filter(|(first, texts)| row - first < texts.len());
                found.map(|(first, texts)| texts.get(row - first)).ok_or(Corrupt("a page of texts is missing"))
            }
            Values::Numbers(_) => Err(Corrupt("a text column holds numbers")),
        }
    }

    fn text(&self, column: Column, row: usize) -> Result<&str, Corrupt> {
        std::str::from_utf8(self.bytes(column, row)?).map_err(|_| Corrupt("a text is not UTF-8"))
    }

    fn string(&self, column: Column, row: usize) -> Result<String, Corrupt> {
        self.text(column, row).map(str::to_owned)
    }

    fn number(&self, column: Column, row: usize) -> Result<i64, Corrupt> {
        match &self.0[column.index()] {
            Values::Numbers(numbers) => Ok(numbers[row]),
            Values::Codes(codes, dictionary) => match &**dictionary {
                Dictionary::Numbers(numbers) => {
                    numbers.get(codes[row] as usize).copied().ok_or(Corrupt("a number is not in its dictionary"))
                }
                Dictionary::Texts(_) => Err(Corrupt("a number column holds texts")),
            },
            Values::Texts(_) => Err(Corrupt("a number column holds texts")),
        }
    }

    fn optional<T: TryFrom<i64>>(&self, column: Column, row: usize) -> Result<Option<T>, Corrupt> {
        let Values::Codes(codes, dictionary) = &self.0[column.index()] else {
            return Err(Corrupt("missing values in a required column"));
        };
        let Dictionary::Numbers(numbers) = &**dictionary else { return Err(Corrupt("a number column holds texts")) };
        let Some(place) = (codes[row] as usize).checked_sub(1) else { return Ok(None) };
        let number = numbers.get(place).copied().and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or(Corrupt("a number is out of range"))
    }

    fn record(&self, row: usize) -> Result<LogRecord, Corrupt> {
        let level = u8::try_from(self.number(Column::LevelNumber, row)?).ok().and_then(Level::from_number);
        let level = level.ok_or(Corrupt("invalid level"))?;
        let bad_json = |_| Corrupt("named values that cannot be read");
        let incarnation = self.text(Column::Incarnation, row)?;
        let id = match incarnation {
            "" => None,
            text => Some(RecordId {
                incarnation: text.parse().map_err(|_| Corrupt("invalid incarnation"))?,
                ring: u32::try_from(self.number(Column::Ring, row)?).map_err(|_| Corrupt("a ring out of range"))?,
                number: self.number(Column::Number, row)? as u64,
            }),
        };
        let mut record = LogRecord {
            id,
            time: Time(self.number(Column::Time, row)?),
            received: Some(Time(self.number(Column::Received, row)?)),
            level,
            priority: self.optional(Column::Priority, row)?,
            line: self.optional(Column::Line, row)?,
            audiences: lists::audiences(self.text(Column::Audiences, row)?),
            stack_level: self.optional(Column::StackLevel, row)?,
            trace_id: unhex(self.bytes(Column::TraceId, row)?)?,
            span_id: unhex(self.bytes(Column::SpanId, row)?)?,
            data: lists::data(self.text(Column::Data, row)?).map_err(bad_json)?,
            archive: lists::archive(self.text(Column::Archive, row)?).map_err(bad_json)?,
            attributes: lists::data(self.text(Column::Attributes, row)?).map_err(bad_json)?,
            unknown: self.bytes(Column::UnknownRecord, row)?.to_vec(),
            unknown_origin: self.bytes(Column::UnknownOrigin, row)?.to_vec(),
            ..LogRecord::default()
        };
        for &(field, column) in TEXTS.iter() {
            if let Some(member) = field.text_mut(&mut record) {
                self.text(column, row)?.clone_into(member);
            }
        }
        Ok(record)
    }

    fn sent(&self, row: usize) -> Result<Sent, BadTable> {
        let clock = match self.bytes(Column::Clock, row)? {
            b"synchronised" => ClockState::Synchronised,
            b"free" => ClockState::Free,
            b"stepped" => ClockState::Stepped,
            _ => ClockState::Unknown,
        };
        let tai_offset = i16::try_from(self.number(Column::TaiOffset, row)?).map_err(|_| Corrupt("a TAI offset out of range"))?;
        Ok(Sent { source: self.string(Column::Source, row)?, clock, tai_offset })
    }
}

/// Decodes the hexadecimal digits of `N` bytes; an empty text gives `None`.
pub(crate) fn unhex<const N: usize>(text: &[u8]) -> Result<Option<[u8; N]>, Corrupt> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = Corrupt("invalid trace or span id");
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return Err(wrong);
    }
    for (byte, digits) in bytes.iter_mut().zip(text.chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong)?;
    }
    Ok(Some(bytes))
}
