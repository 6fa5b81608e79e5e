//! Answers in columns, laid out as Arrow lays them out: a text column is its bytes and the ends of its texts.
//!
//! Decision: a table is a list of batches of bounded size, so that a long answer never moves in memory while it grows.

use std::{ffi::CStr, sync::Arc};

/// Rows of a batch.
const ROWS: usize = 65_536;
/// Bytes of a column after which a batch ends. The ends of texts are 32-bit numbers.
const BYTES: usize = 64 << 20;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// Nanoseconds since 1970, UTC.
    Time,
    Integer,
    Number,
    /// A row of numbers.
    Numbers,
}

/// One value of a table.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Missing,
    Text(&'a str),
    /// Also of a column of times.
    Integer(i64),
    Number(f64),
    Numbers(&'a [f64]),
}

impl<'a> Cell<'a> {
    /// A text; missing if it is empty.
    pub fn text(text: &'a str) -> Cell<'a> {
        if text.is_empty() { Cell::Missing } else { Cell::Text(text) }
    }
}

/// Values of a column.
pub enum Cells {
    /// The end of each text after a first 0, and the bytes.
    Texts(Vec<i32>, Vec<u8>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    /// The end of each row of numbers after a first 0, and the numbers.
    Rows(Vec<i32>, Vec<f64>),
}

/// Column of a batch.
pub struct Column {
    pub cells: Cells,
    /// A bit for each value, from the lowest bit of each byte on: 0 if it is missing.
    pub present: Vec<u8>,
    pub missing: usize,
}

impl Column {
    fn of(kind: Kind) -> Column {
        let cells = match kind {
            Kind::Text => Cells::Texts(vec![0], Vec::new()),
            Kind::Time | Kind::Integer => Cells::Integers(Vec::new()),
            Kind::Number => Cells::Numbers(Vec::new()),
            Kind::Numbers => Cells::Rows(vec![0], Vec::new()),
        };
        Column { cells, present: Vec::new(), missing: 0 }
    }

    /// Adds the value of row `row`. A value of another type is missing.
    fn push(&mut self, row: usize, cell: Cell<'_>) {
        let end = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
        let is_present = match (&mut self.cells, cell) {
            (Cells::Texts(ends, bytes), cell) => {
                if let Cell::Text(text) = cell {
                    bytes.extend_from_slice(text.as_bytes());
                }
                ends.push(end(bytes.len()));
                matches!(cell, Cell::Text(_))
            }
            (Cells::Integers(all), cell) => {
                all.push(if let Cell::Integer(number) = cell { number } else { 0 });
                matches!(cell, Cell::Integer(_))
            }
            (Cells::Numbers(all), cell) => {
                all.push(if let Cell::Number(number) = cell { number } else { 0.0 });
                matches!(cell, Cell::Number(_))
            }
            (Cells::Rows(ends, all), cell) => {
                if let Cell::Numbers(row) = cell {
                    all.extend_from_slice(row);
                }
                ends.push(end(all.len()));
                matches!(cell, Cell::Numbers(_))
            }
        };
        if row.is_multiple_of(8) {
            self.present.push(0);
        }
        if is_present {
            self.present[row / 8] |= 1 << (row % 8);
        } else {
            self.missing += 1;
        }
    }

    /// Returns the value of a row.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        if self.present.get(row / 8).is_none_or(|bits| bits & (1 << (row % 8)) == 0) {
            return Cell::Missing;
        }
        let span = |ends: &[i32]| Some(usize::try_from(*ends.get(row)?).ok()?..usize::try_from(*ends.get(row + 1)?).ok()?);
        let found = match &self.cells {
            Cells::Texts(ends, bytes) => span(ends).and_then(|span| std::str::from_utf8(bytes.get(span)?).ok()).map(Cell::Text),
            Cells::Integers(all) => all.get(row).copied().map(Cell::Integer),
            Cells::Numbers(all) => all.get(row).copied().map(Cell::Number),
            Cells::Rows(ends, all) => span(ends).and_then(|span| all.get(span)).map(Cell::Numbers),
        };
        found.unwrap_or(Cell::Missing)
    }

    fn bytes(&self) -> usize {
        match &self.cells {
            Cells::Texts(_, bytes) => bytes.len(),
            Cells::Rows(_, all) => all.len() * 8,
            Cells::Integers(_) | Cells::Numbers(_) => 0,
        }
    }
}

/// Rows of a table, in columns.
pub struct Batch {
    pub rows: usize,
    pub columns: Vec<Column>,
}

impl Batch {
    fn of(schema: Schema) -> Batch {
        Batch { rows: 0, columns: schema.iter().map(|(_, kind)| Column::of(*kind)).collect() }
    }
}

/// Names and types of the columns of a table.
pub type Schema = &'static [(&'static CStr, Kind)];

/// A table that grows by rows.
pub struct Table {
    pub schema: Schema,
    pub batches: Vec<Arc<Batch>>,
    open: Batch,
}

impl Table {
    /// Makes an empty table.
    pub fn of(schema: Schema) -> Table {
        Table { schema, batches: Vec::new(), open: Batch::of(schema) }
    }

    /// Adds a row with a value for each column.
    pub fn push(&mut self, row: &[Cell<'_>]) {
        debug_assert_eq!(row.len(), self.schema.len(), "a row has a value for each column");
        let number = self.open.rows;
        for (column, cell) in self.open.columns.iter_mut().zip(row) {
            column.push(number, *cell);
        }
        self.open.rows += 1;
        if self.open.rows == ROWS || self.open.columns.iter().any(|column| column.bytes() >= BYTES) {
            self.seal();
        }
    }

    /// Ends the last batch.
    pub fn seal(&mut self) {
        if self.open.rows > 0 {
            self.batches.push(Arc::new(std::mem::replace(&mut self.open, Batch::of(self.schema))));
        }
    }
}
