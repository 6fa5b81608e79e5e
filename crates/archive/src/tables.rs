//! Tables other than the log, stored by the same machinery: write-ahead segments, Parquet files, manifest, retention.
//!
//! A table is a [`Schema`]: the columns, and the conversion of a sample into a row. One sample is one row. The first
//! columns are the same in every table, because the machinery needs them: the time, the writer and the number. The
//! owner of the table defines the other columns; this crate does not interpret them.
//!
//! | part | module |
//! |-|-|
//! | writing rows into a file | `gather`, `write` |
//! | reading rows | `read` |
//! | finding rows in segments and files | `find` |
//! | a file for others | `export` |
//! | the archive's interface for the table's owner | `archive` |
//!
//! Rejected: making the archive's code generic over the type of a row. The log's rows are optimised for a million a
//! second with shared origins, words and codes of dictionaries. No other table needs these, and each would have become
//! a parameter.

use tampu_types::{BatchHeader, Incarnation, RecordId, Time};

use crate::{
    ids::seen::Run,
    parquet::Layout,
    wal::{digest::Digest, frame::LevelSet},
};

mod archive;
mod export;
mod find;
mod gather;
mod read;
mod write;

/// Position in the order of rows: by time, then by incarnation, ring and number.
pub use crate::query::Cursor as Place;
pub use archive::TableArchive;
pub use export::RowWriter;
pub use find::{Find, Swept};
pub(crate) use gather::PlainRows;
pub(crate) use read::{each_row, ids};

/// Number of columns that every table begins with, in this order: `time`, `received` (ns UTC), life (text, an
/// incarnation), ring (number), from, number (unsigned), marks (number). The table chooses their names.
pub const KEYS: usize = 7;

/// Columns of a row's id among them: incarnation, ring, number.
pub(crate) const ID_COLUMNS: [usize; 3] = [2, 3, 5];

/// Longest run of numbers that one row stands for. Of a longer run only the last number is stored.
const LONGEST_RUN: u64 = 1 << 20;

/// Description of a table and its decoder.
#[derive(Debug)]
pub struct Schema {
    /// Columns of the table, the first [`KEYS`] being those of every table. The layout's name is the table's name.
    pub layout: Layout,
    /// Type of the table's samples; see `spec/types.md`.
    pub type_id: u32,
    /// Decoder of a sample.
    pub read: fn(&BatchHeader, &[u8]) -> Result<Row, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Time of the row; rows are ordered by it.
    pub time: Time,
    /// Time of reception.
    pub received: Time,
    /// Incarnation of the writer.
    pub life: Incarnation,
    /// Number of the series within this incarnation.
    pub ring: u32,
    /// First of the series' numbers that the row stands for; 0 if it stands for none, and may be repeated.
    pub from: u64,
    /// Last of these numbers: the row's own.
    pub number: u64,
    /// Bits by which a search skips rows without reading them.
    pub marks: u16,
    /// Columns after the first [`KEYS`], in order.
    pub cells: Vec<Cell>,
}

/// Value of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Number, time or unsigned number (by its bits).
    Number(i64),
    /// Number that may be absent.
    OptionalNumber(Option<i64>),
    /// Floating point that may be absent.
    Double(Option<f64>),
    /// Text or bytes.
    Text(Vec<u8>),
}

impl Cell {
    /// Returns the text or bytes; empty for a number.
    pub fn text(&self) -> &[u8] {
        match self {
            Cell::Text(text) => text,
            _ => &[],
        }
    }
}

impl Row {
    /// Returns the position in the order.
    pub fn place(&self) -> Place {
        Place { time: self.time, id: RecordId { incarnation: self.life, ring: self.ring, number: self.number } }
    }

    /// Returns the numbers that the row stands for.
    pub(crate) fn run(&self) -> Option<(Incarnation, Run)> {
        run_of(self.life, self.ring, self.from, self.number)
    }
}

pub(crate) fn run_of(life: Incarnation, ring: u32, from: u64, number: u64) -> Option<(Incarnation, Run)> {
    if from == 0 || from > number {
        return None;
    }
    let count = (number - from).saturating_add(1);
    let run = if count > LONGEST_RUN { Run { ring, first: number, count: 1 } } else { Run { ring, first: from, count } };
    Some((life, run))
}

impl Schema {
    /// Decodes a sample of this table's type.
    pub(crate) fn row(&self, header: &BatchHeader, sample: &[u8]) -> Result<Row, String> {
        if header.type_id != self.type_id {
            return Err(format!("samples of type {} do not belong to the table '{}'", header.type_id, self.layout.name));
        }
        let row = (self.read)(header, sample)?;
        debug_assert_eq!(row.cells.len() + KEYS, self.layout.columns.len());
        Ok(row)
    }

    pub(crate) fn digest(&self, header: &BatchHeader, sample: &[u8]) -> Result<Digest, String> {
        let row = self.row(header, sample)?;
        let run = row.run();
        Ok(Digest {
            records: 1,
            anonymous: u32::from(run.is_none()),
            earliest: row.time,
            latest: row.time,
            levels: LevelSet(row.marks),
            runs: run.into_iter().collect(),
            whole: true,
            ..Digest::default()
        })
    }
}
