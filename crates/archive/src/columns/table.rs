//! A table that grows, by rows or by columns of a message.
//!
//! Decision: a table is a list of batches of bounded size, so that a long answer never moves in memory while it grows.
//! The names of a column are one dictionary for all batches. Past 1 GiB of names the next batches have another one,
//! because the ends of texts are 32-bit numbers.

use std::{collections::HashMap, sync::Arc};

use super::batch::{Column, ColumnBatch, ColumnData, ColumnType, ColumnValue, Names, Presence};

/// Rows of a batch.
pub(super) const ROWS: usize = 65_536;
/// Bytes of a column after which a batch ends. The ends of texts are 32-bit numbers.
pub(super) const BYTES: usize = 64 << 20;

/// Bytes of the names of a column after which the next batches have another dictionary.
const NAMES_BYTES: usize = 1 << 30;
/// Bytes of values after which the sizes of columns and dictionaries are looked at.
const ADDED: usize = 1 << 20;
/// Longest text of a value, which no record has.
const LONGEST: usize = 1 << 30;

/// Columns of a message, as they stand in it.
pub(super) enum Borrowed<'m> {
    Missing,
    /// The end of each text behind the start of the first.
    Texts(Vec<i32>, &'m [u8]),
    /// Codes of the message, and what they are in the table.
    Names(&'m [u8], &'m [i32]),
    /// Little-endian numbers of 64 bits.
    Words(&'m [u8]),
    /// The end of each row behind the start of the first, and numbers.
    Rows(Vec<i32>, &'m [u8]),
}

/// Dictionary of a table's column.
#[derive(Default)]
pub(super) struct NamesBuilder {
    names: Names,
    codes: HashMap<Box<[u8]>, i32>,
}

impl NamesBuilder {
    /// Returns the code of a text, which is added if it is new.
    pub(super) fn code(&mut self, text: &[u8]) -> i32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        let code = self.names.len() as i32;
        self.names.push(text);
        self.codes.insert(text.into(), code);
        code
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the bytes of all names.
    pub(super) fn bytes(&self) -> usize {
        self.names.bytes.len()
    }
}

/// A column that grows.
struct Growing {
    kind: ColumnType,
    /// Rows of which none has a value, before the first that has one.
    only_missing: usize,
    present: Presence,
    data: ColumnData,
    /// Rows, and bytes or numbers of texts and rows, for which room is made.
    room: (usize, usize),
}

impl Growing {
    fn of(kind: ColumnType) -> Growing {
        Growing { kind, only_missing: 0, present: Presence::default(), data: ColumnData::Missing, room: (0, 0) }
    }

    /// Makes the column that follows this one, which will have as many values.
    fn following(&self, rows: usize) -> Growing {
        let content = match &self.data {
            ColumnData::Texts(_, bytes) => bytes.len(),
            ColumnData::Rows(_, all) => all.len(),
            _ => 0,
        };
        Growing { room: (rows, content), ..Growing::of(self.kind) }
    }

    /// Makes room for values after rows without any.
    fn begin(&mut self) {
        if self.data != ColumnData::Missing {
            return;
        }
        let (rows, (room, content)) = (self.only_missing, self.room);
        self.present.push_all(rows, false);
        self.data = match self.kind {
            ColumnType::Text => ColumnData::Texts(zeros(rows + 1, room + 1), Vec::with_capacity(content)),
            ColumnType::Name => ColumnData::Names(zeros(rows, room), Arc::default()),
            ColumnType::Time | ColumnType::Integer => ColumnData::Integers(zeros(rows, room)),
            ColumnType::Number => ColumnData::Numbers(zeros(rows, room)),
            ColumnType::Numbers => ColumnData::Rows(zeros(rows + 1, room + 1), Vec::with_capacity(content)),
        };
    }

    /// Adds missing values.
    fn skip(&mut self, rows: usize) {
        match &mut self.data {
            ColumnData::Missing => {
                self.only_missing += rows;
                return;
            }
            ColumnData::Texts(ends, _) | ColumnData::Rows(ends, _) => {
                let end = ends.last().copied().unwrap_or_default();
                ends.resize(ends.len() + rows, end);
            }
            ColumnData::Names(codes, _) => codes.resize(codes.len() + rows, 0),
            ColumnData::Integers(all) => all.resize(all.len() + rows, 0),
            ColumnData::Numbers(all) => all.resize(all.len() + rows, 0.0),
        }
        self.present.push_all(rows, false);
    }

    /// Adds a value. A value of another type, or of more than 1 GiB, is missing.
    fn push(&mut self, value: ColumnValue<'_>, names: &mut NamesBuilder) {
        let is_too_long = match value {
            ColumnValue::Missing => true,
            ColumnValue::Text(text) => text.len() > LONGEST,
            ColumnValue::Numbers(row) => row.len() > LONGEST / 8,
            ColumnValue::Integer(_) | ColumnValue::Number(_) => false,
        };
        if is_too_long {
            return self.skip(1);
        }
        self.begin();
        match (&mut self.data, value) {
            (ColumnData::Texts(ends, bytes), ColumnValue::Text(text)) => {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len() as i32);
            }
            (ColumnData::Names(codes, _), ColumnValue::Text(text)) => codes.push(names.code(text.as_bytes())),
            (ColumnData::Integers(all), ColumnValue::Integer(number)) => all.push(number),
            (ColumnData::Numbers(all), ColumnValue::Number(number)) => all.push(number),
            (ColumnData::Rows(ends, all), ColumnValue::Numbers(row)) => {
                all.extend_from_slice(row);
                ends.push(all.len() as i32);
            }
            _ => return self.skip(1),
        }
        self.present.push(true);
    }

    /// Adds rows of a message. `present` is empty if all have a value.
    fn extend(&mut self, from: &Borrowed<'_>, present: &[u8], rows: std::ops::Range<usize>) {
        if matches!(from, Borrowed::Missing) {
            return self.skip(rows.len());
        }
        self.begin();
        match (&mut self.data, from) {
            (ColumnData::Texts(ends, bytes), Borrowed::Texts(theirs, text)) => {
                let (first, last) = (theirs[rows.start], theirs[rows.end]);
                let base = bytes.len() as i32 - first;
                bytes.extend_from_slice(&text[first as usize..last as usize]);
                ends.extend(theirs[rows.start + 1..=rows.end].iter().map(|end| base + end));
            }
            (ColumnData::Rows(ends, all), Borrowed::Rows(theirs, words)) => {
                let (first, last) = (theirs[rows.start], theirs[rows.end]);
                let base = all.len() as i32 - first;
                all.extend(words_of(&words[first as usize * 8..last as usize * 8]).map(f64::from_bits));
                ends.extend(theirs[rows.start + 1..=rows.end].iter().map(|end| base + end));
            }
            (ColumnData::Names(codes, _), Borrowed::Names(theirs, table)) => {
                let code = |bytes: &[u8]| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
                let ours = |code: usize| table.get(code).map_or(0, |code| (*code).max(0));
                codes.extend(theirs[rows.start * 2..rows.end * 2].chunks_exact(2).map(|bytes| ours(code(bytes))));
            }
            (ColumnData::Integers(all), Borrowed::Words(words)) => {
                all.extend(words_of(&words[rows.start * 8..rows.end * 8]).map(u64::cast_signed));
            }
            (ColumnData::Numbers(all), Borrowed::Words(words)) => {
                all.extend(words_of(&words[rows.start * 8..rows.end * 8]).map(f64::from_bits));
            }
            // The reader compares the types of the columns before.
            _ => return self.skip(rows.len()),
        }
        if present.is_empty() {
            self.present.push_all(rows.len(), true);
        } else {
            self.present.extend(present, rows.start, rows.len());
        }
    }

    fn bytes(&self) -> usize {
        match &self.data {
            ColumnData::Texts(_, bytes) => bytes.len(),
            ColumnData::Rows(_, all) => all.len() * 8,
            _ => 0,
        }
    }

    fn into_column(self) -> Column {
        match self.data {
            ColumnData::Missing => Column::missing(self.only_missing),
            data => self.present.column(data),
        }
    }
}

/// Returns so many zeros, with room for some values in all.
fn zeros<T: Copy + Default>(count: usize, room: usize) -> Vec<T> {
    let mut all = Vec::with_capacity(room.max(count));
    all.resize(count, T::default());
    all
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| word.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word)))
}

/// A table that grows by rows, or by the messages of an answer.
pub struct ColumnTable {
    /// Names and types of the columns.
    pub schema: Vec<(&'static str, ColumnType)>,
    batches: Vec<ColumnBatch>,
    /// Number of the first batches, whose dictionaries are complete.
    complete: usize,
    names: Vec<NamesBuilder>,
    /// Bytes of the names of a column after which the next batches have another dictionary.
    pub(super) names_bytes: usize,
    rows: usize,
    open: Vec<Growing>,
    /// Bytes of values since the last look at the sizes of columns and dictionaries.
    added: usize,
}

impl ColumnTable {
    /// Makes an empty table.
    pub fn new(schema: impl IntoIterator<Item = (&'static str, ColumnType)>) -> ColumnTable {
        let schema: Vec<_> = schema.into_iter().collect();
        let names = schema.iter().map(|_| NamesBuilder::default()).collect();
        let open = schema.iter().map(|(_, kind)| Growing::of(*kind)).collect();
        ColumnTable { schema, batches: Vec::new(), complete: 0, names, names_bytes: NAMES_BYTES, rows: 0, open, added: 0 }
    }

    /// Adds a row with a value for each column.
    pub fn push(&mut self, row: &[ColumnValue<'_>]) {
        debug_assert_eq!(row.len(), self.schema.len(), "a row has a value for each column");
        for (number, value) in row.iter().enumerate() {
            self.push_value(number, *value);
        }
        self.end_row();
    }

    /// Adds the value of one column of the row that [`ColumnTable::end_row`] completes.
    pub(super) fn push_value(&mut self, column: usize, value: ColumnValue<'_>) {
        self.added += match value {
            ColumnValue::Text(text) => text.len(),
            ColumnValue::Numbers(row) => row.len() * 8,
            ColumnValue::Missing | ColumnValue::Integer(_) | ColumnValue::Number(_) => 0,
        };
        self.open[column].push(value, &mut self.names[column]);
    }

    pub(super) fn end_row(&mut self) {
        self.rows += 1;
        // The sizes of all columns are looked at seldom: they grow by no more than what was added.
        if self.rows == ROWS || self.added >= ADDED.min(self.names_bytes) {
            self.added = 0;
            self.seal_if_full();
            self.renew_names();
        }
    }

    /// Adds the same rows of each column of a message.
    pub(super) fn extend(&mut self, columns: &[(Borrowed<'_>, &[u8])], rows: usize) {
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + (ROWS - self.rows));
            for (open, (column, present)) in self.open.iter_mut().zip(columns) {
                open.extend(column, present, from..to);
            }
            self.rows += to - from;
            self.seal_if_full();
            from = to;
        }
    }

    /// Returns the dictionary of a column.
    pub(super) fn names(&mut self, column: usize) -> &mut NamesBuilder {
        &mut self.names[column]
    }

    /// Begins other dictionaries if one is full; returns true if it does. Codes of the former ones end with that.
    pub(super) fn renew_names(&mut self) -> bool {
        let is_full = self.names.iter().any(|names| names.bytes() >= self.names_bytes);
        if is_full {
            self.seal();
            self.complete_names();
        }
        is_full
    }

    /// Gives the batches since the last call their dictionaries.
    fn complete_names(&mut self) {
        let fresh = self.schema.iter().map(|_| NamesBuilder::default()).collect();
        let names = std::mem::replace(&mut self.names, fresh).into_iter().map(|names| Arc::new(names.into_names()));
        let names: Vec<Arc<Names>> = names.collect();
        for batch in &mut self.batches[self.complete..] {
            for (column, names) in batch.columns.iter_mut().zip(&names) {
                if let ColumnData::Names(_, theirs) = &mut column.data {
                    *theirs = names.clone();
                }
            }
        }
        self.complete = self.batches.len();
    }

    fn seal_if_full(&mut self) {
        if self.rows == ROWS || self.open.iter().any(|column| column.bytes() >= BYTES) {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if self.rows > 0 {
            let fresh = self.open.iter().map(|column| column.following(self.rows)).collect();
            let columns = std::mem::replace(&mut self.open, fresh).into_iter().map(Growing::into_column).collect();
            self.batches.push(ColumnBatch { rows: std::mem::take(&mut self.rows), columns });
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows).sum::<usize>() + self.rows
    }

    /// Completes the table.
    pub fn into_batches(mut self) -> Vec<ColumnBatch> {
        self.seal();
        self.complete_names();
        self.batches
    }
}
