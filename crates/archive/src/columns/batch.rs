//! Rows in columns, laid out as Arrow lays them out: a text column is its bytes and the ends of its texts.

use std::sync::Arc;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A text in UTF-8.
    Text,
    /// A text that many rows share: a code of a dictionary.
    Name,
    /// Nanoseconds since 1970, UTC.
    Time,
    /// Signed number of 64 bits.
    Integer,
    /// Floating point of 64 bits.
    Number,
    /// A row of numbers.
    Numbers,
}

/// Names and types of the columns of a table.
pub type ColumnSchema = [(&'static str, ColumnType)];

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnValue<'a> {
    /// The row has no value.
    Missing,
    /// A text or a name.
    Text(&'a str),
    /// An integer, or nanoseconds of a time.
    Integer(i64),
    /// A floating point number.
    Number(f64),
    /// A row of numbers.
    Numbers(&'a [f64]),
}

impl<'a> ColumnValue<'a> {
    /// Returns a text, which is missing if it is empty.
    pub fn text(text: &'a str) -> ColumnValue<'a> {
        if text.is_empty() { ColumnValue::Missing } else { ColumnValue::Text(text) }
    }
}

/// Texts of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// End of each text, behind a first 0.
    pub ends: Vec<i32>,
    /// All texts, one behind the other.
    pub bytes: Vec<u8>,
}

impl Default for Names {
    fn default() -> Names {
        Names { ends: vec![0], bytes: Vec::new() }
    }
}

impl Names {
    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Returns true without a text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a text by its code.
    pub fn get(&self, code: usize) -> &[u8] {
        span(&self.ends, code).and_then(|span| self.bytes.get(span)).unwrap_or_default()
    }

    /// Adds a text. The caller keeps all texts together below 2 GiB.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        debug_assert!(i32::try_from(self.bytes.len()).is_ok(), "the ends are 32-bit numbers");
        self.ends.push(self.bytes.len() as i32);
    }
}

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// No row has a value.
    Missing,
    /// The end of each text behind a first 0, and the bytes.
    Texts(Vec<i32>, Vec<u8>),
    /// A code of each row, and the texts.
    Names(Vec<i32>, Arc<Names>),
    /// Integers, or nanoseconds.
    Integers(Vec<i64>),
    /// Floating point numbers.
    Numbers(Vec<f64>),
    /// The end of each row of numbers behind a first 0, and the numbers.
    Rows(Vec<i32>, Vec<f64>),
}

/// Column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The values; of a missing one, zeros or an empty text.
    pub data: ColumnData,
    /// A bit for each row, from the lowest bit of each byte on: 0 if its value is missing. Empty if no value is missing, or
    /// no row has one.
    pub present: Vec<u8>,
    /// Number of missing values.
    pub missing: usize,
}

impl Column {
    /// Makes a column without a value.
    pub(super) fn missing(rows: usize) -> Column {
        Column { data: ColumnData::Missing, present: Vec::new(), missing: rows }
    }

    /// Returns the value of a row.
    pub fn value(&self, row: usize) -> ColumnValue<'_> {
        if !self.present.is_empty() && self.present[row / 8] & (1 << (row % 8)) == 0 {
            return ColumnValue::Missing;
        }
        let text = |bytes| std::str::from_utf8(bytes).ok().map(ColumnValue::Text);
        let found = match &self.data {
            ColumnData::Missing => None,
            ColumnData::Texts(ends, bytes) => span(ends, row).and_then(|span| bytes.get(span)).and_then(text),
            ColumnData::Names(codes, names) => codes.get(row).and_then(|code| text(names.get(*code as usize))),
            ColumnData::Integers(all) => all.get(row).copied().map(ColumnValue::Integer),
            ColumnData::Numbers(all) => all.get(row).copied().map(ColumnValue::Number),
            ColumnData::Rows(ends, all) => span(ends, row).and_then(|span| all.get(span)).map(ColumnValue::Numbers),
        };
        found.unwrap_or(ColumnValue::Missing)
    }

    /// Keeps the first rows.
    fn truncate(&mut self, rows: usize) {
        match &mut self.data {
            ColumnData::Missing => {}
            ColumnData::Texts(ends, bytes) => {
                ends.truncate(rows + 1);
                bytes.truncate(ends[rows] as usize);
            }
            ColumnData::Rows(ends, all) => {
                ends.truncate(rows + 1);
                all.truncate(ends[rows] as usize);
            }
            ColumnData::Names(codes, _) => codes.truncate(rows),
            ColumnData::Integers(all) => all.truncate(rows),
            ColumnData::Numbers(all) => all.truncate(rows),
        }
        if self.data == ColumnData::Missing {
            self.missing = rows;
        } else if !self.present.is_empty() {
            let mut present = Presence::default();
            present.extend(&self.present, 0, rows);
            *self = present.column(std::mem::replace(&mut self.data, ColumnData::Missing));
        }
    }
}

/// Returns true if each of these texts is UTF-8. No character may reach over the end of a text.
pub(super) fn are_texts(bytes: &[u8], ends: &[i32]) -> bool {
    let is_cut = |text: &str| ends.iter().any(|end| !text.is_char_boundary(*end as usize));
    std::str::from_utf8(bytes).is_ok_and(|text| text.is_ascii() || !is_cut(text))
}

fn span(ends: &[i32], row: usize) -> Option<std::ops::Range<usize>> {
    Some(usize::try_from(*ends.get(row)?).ok()?..usize::try_from(*ends.get(row + 1)?).ok()?)
}

/// Rows of a table, in columns.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBatch {
    /// Number of rows.
    pub rows: usize,
    /// The columns, in the order of the schema.
    pub columns: Vec<Column>,
}

impl ColumnBatch {
    /// Returns the first rows of these batches, at most so many.
    pub(crate) fn first_rows(batches: Vec<ColumnBatch>, most: usize) -> Vec<ColumnBatch> {
        let (mut first, mut left) = (Vec::with_capacity(batches.len()), most);
        for mut batch in batches {
            if batch.rows > left {
                batch.rows = left;
                batch.columns.iter_mut().for_each(|column| column.truncate(left));
            }
            left -= batch.rows;
            first.extend((batch.rows > 0).then_some(batch));
        }
        first
    }

    /// Returns the approximate size in memory without the dictionaries, which batches share.
    pub(crate) fn size(&self) -> usize {
        let of = |column: &Column| match &column.data {
            ColumnData::Missing => 0,
            ColumnData::Texts(ends, bytes) => 4 * ends.capacity() + bytes.capacity(),
            ColumnData::Names(codes, _) => 4 * codes.capacity(),
            ColumnData::Integers(all) => 8 * all.capacity(),
            ColumnData::Numbers(all) => 8 * all.capacity(),
            ColumnData::Rows(ends, all) => 4 * ends.capacity() + 8 * all.capacity(),
        };
        self.columns.iter().map(of).sum()
    }
}

/// Bits that say which values are present; empty as long as none is missing.
#[derive(Debug, Default)]
pub(super) struct Presence {
    pub(super) bits: Vec<u8>,
    rows: usize,
    pub(super) missing: usize,
}

impl Presence {
    pub(super) fn push(&mut self, present: bool) {
        if present && self.bits.is_empty() {
            self.rows += 1;
            return;
        }
        self.write_out();
        if self.rows.is_multiple_of(8) {
            self.bits.push(0);
        }
        if present {
            self.bits[self.rows / 8] |= 1 << (self.rows % 8);
        } else {
            self.missing += 1;
        }
        self.rows += 1;
    }

    /// Adds rows whose values are all present, or all missing.
    pub(super) fn push_all(&mut self, rows: usize, present: bool) {
        if present && self.bits.is_empty() {
            self.rows += rows;
        } else if !present && rows > 0 && self.rows == self.missing {
            // Zeros, as all before.
            (self.rows, self.missing) = (self.rows + rows, self.missing + rows);
            self.bits.resize(self.rows.div_ceil(8), 0);
        } else {
            (0..rows).for_each(|_| self.push(present));
        }
    }

    /// Adds rows from bits; `from` is the first one's number in them.
    pub(super) fn extend(&mut self, bits: &[u8], from: usize, rows: usize) {
        let bit = |row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
        if !self.rows.is_multiple_of(8) || !from.is_multiple_of(8) {
            return (from..from + rows).for_each(|row| self.push(bit(row)));
        }
        self.write_out();
        let whole = &bits[from / 8..(from + rows) / 8];
        self.bits.extend_from_slice(whole);
        self.missing += whole.iter().map(|bits| bits.count_zeros() as usize).sum::<usize>();
        self.rows += whole.len() * 8;
        (from + whole.len() * 8..from + rows).for_each(|row| self.push(bit(row)));
    }

    /// Writes the bits of the rows so far.
    fn write_out(&mut self) {
        if self.bits.is_empty() && self.rows > 0 {
            self.bits = vec![0xff; self.rows.div_ceil(8)];
            if !self.rows.is_multiple_of(8) {
                self.bits[self.rows / 8] = (1 << (self.rows % 8)) - 1;
            }
        }
    }

    /// Completes a column of these rows.
    pub(super) fn column(mut self, data: ColumnData) -> Column {
        if self.missing == self.rows {
            return Column::missing(self.rows);
        }
        if self.missing == 0 {
            self.bits.clear();
        }
        Column { data, present: self.bits, missing: self.missing }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_the_same_in_any_portions(
            all in proptest::collection::vec(any::<bool>(), 1..200),
            portions in proptest::collection::vec((0usize..40, 0u8..3), 0..12),
        ) {
            let mut one_by_one = Presence::default();
            all.iter().for_each(|present| one_by_one.push(*present));
            let mut source = vec![0u8; all.len().div_ceil(8)];
            all.iter().enumerate().for_each(|(row, present)| source[row / 8] |= u8::from(*present) << (row % 8));
            let (mut mixed, mut at) = (Presence::default(), 0);
            for (rows, way) in portions {
                let rows = rows.min(all.len() - at);
                let same = all[at..at + rows].iter().all(|present| *present == all[at]);
                match way {
                    0 => mixed.extend(&source, at, rows),
                    1 if rows > 0 && same => mixed.push_all(rows, all[at]),
                    _ => all[at..at + rows].iter().for_each(|present| mixed.push(*present)),
                }
                at += rows;
            }
            mixed.extend(&source, at, all.len() - at);
            let data = || ColumnData::Integers(vec![0; all.len()]);
            prop_assert_eq!(mixed.column(data()), one_by_one.column(data()));
        }
    }
}
