//! Tables of other things than log records, kept by the same machinery: write-ahead segments, Parquet files, manifest, retention.
//!
//! A table is a [`Schema`]: the columns, and how a sample becomes a row. One sample is one row. The first columns are the same in
//! every table, because the machinery needs them: when, by whom, which. What is in the others is the table's own business; this
//! crate knows nothing of it.
//!
//! | part | module |
//! |-|-|
//! | rows on their way into a file | `gather`, `write` |
//! | and out again | `read` |
//! | finding them, wherever they are | `find` |
//! | the archive as a table's owner sees it | `archive` |
//!
//! The archive's generic code could have been made generic over a row's type. That was rejected: the log's rows are made for a
//! million a second (shared origins, words, codes of dictionaries), which nothing else needs, and every one of these would have
//! become a parameter.

use tampu_types::{BatchHeader, Incarnation, RecordId, Time};

use super::{digest::Digest, frame::Levels, parquet::Layout, seen::Run};

mod archive;
mod find;
mod gather;
mod read;
mod write;

/// A place in the order of rows: by time, then by life, ring and number.
pub use crate::query::Cursor as Place;
pub use archive::TableArchive;
pub use find::{Find, Swept};
pub(crate) use gather::PlainRows;
pub(crate) use read::{each_row, ids};

/// The columns every table begins with, in this order: `time`, `received` (ns UTC), life (text, an incarnation), ring (number), from, number
/// (unsigned), marks (number). Their names are the table's.
pub const KEYS: usize = 7;

/// The longest stretch of numbers that one row stands for; of a longer one only the last number is remembered.
const LONGEST_RUN: u64 = 1 << 20;

/// What a table's rows are.
#[derive(Debug)]
pub struct Schema {
    /// The columns; the first [`KEYS`] are those of every table. Its name is the table's.
    pub layout: Layout,
    /// The type of the samples it is made of; see `spec/types.md`.
    pub type_id: u32,
    /// Reads a sample.
    pub read: fn(&BatchHeader, &[u8]) -> Result<Row, String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// When it was; rows are ordered by it.
    pub time: Time,
    /// When it was received.
    pub received: Time,
    /// Whose it is.
    pub life: Incarnation,
    /// Which of the series of this life.
    pub ring: u32,
    /// The first of the series' numbers it stands for; 0 if it stands for none, and may come again.
    pub from: u64,
    /// The last of them: its own.
    pub number: u64,
    /// Bits by which rows are told apart without reading them.
    pub marks: u16,
    /// The columns behind the first [`KEYS`], in order.
    pub cells: Vec<Cell>,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A number, time or unsigned number (by its bits).
    Number(i64),
    /// A number that may be absent.
    OptionalNumber(Option<i64>),
    /// Floating point that may be absent.
    Double(Option<f64>),
    /// Text or bytes.
    Text(Vec<u8>),
}

impl Cell {
    /// The text or bytes; empty for a number.
    pub fn text(&self) -> &[u8] {
        match self {
            Cell::Text(text) => text,
            _ => &[],
        }
    }
}

impl Row {
    /// Its place in the order.
    pub fn place(&self) -> Place {
        Place { time: self.time, id: RecordId { incarnation: self.life, ring: self.ring, number: self.number } }
    }

    /// The numbers it stands for.
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
    /// Reads a sample of this table's type.
    pub(crate) fn row(&self, header: &BatchHeader, sample: &[u8]) -> Result<Row, String> {
        if header.type_id != self.type_id {
            return Err(format!("samples of type {} are none of the table '{}'", header.type_id, self.layout.name));
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
            levels: Levels(row.marks),
            runs: run.into_iter().collect(),
            whole: true,
            ..Digest::default()
        })
    }
}
