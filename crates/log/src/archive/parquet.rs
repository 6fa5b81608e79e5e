//! The Parquet tier: where closed segments go to stay.
//!
//! A file holds the records of one UTC day that one compaction took, ordered by time and id, in columns with dictionaries, so
//! that other people's tools read it decades from now. We write the part of the format we need ourselves and read it by an
//! index of our own that stands in the file before its footer. The `parquet` crate was tried and rejected: it gives values where
//! a search wants the codes of a dictionary (a process that is not in a dictionary is in no row, and comparing codes is a
//! fiftieth of the work), it cannot be handed codes that are known already when it writes, and it takes a minute to build.
//!
//! | part | module |
//! |-|-|
//! | the columns, and lists in one text | `column`, `lists` |
//! | what can be wrong with one | `bad` |
//! | numbers in few bits | `bits`, `delta` |
//! | a file's own description of itself, for others | `thrift`, `footer` |
//! | what we read it by | `index`, `words` |
//! | rows on their way in | `rows`, `write`, `encode`, `pages`; into a file of its own, `export` |
//! | rows on their way out | `table`, `read`, `ids` |
//! | which rows a query wants | `scan` |

mod bad;
mod bits;
mod column;
mod delta;
mod encode;
mod export;
mod footer;
mod ids;
mod index;
mod lists;
mod pages;
mod read;
mod rows;
mod scan;
mod table;
mod thrift;
mod words;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use bad::{BadTable, Corrupt};
pub(crate) use bits::{put_varint, take_varint};
pub(crate) use column::Column;
pub use column::{ColumnSpec, Layout, Shape};
pub use export::ParquetWriter;
pub(crate) use footer::{ChunkFacts, HEAD};
pub(crate) use ids::ids;
pub(crate) use index::{Chunk, Group};
pub(crate) use pages::Output;
pub(crate) use read::{Dictionaries, records};
pub(crate) use rows::{Rows, Sent, group_ranges};
pub(crate) use scan::{GroupScan, column_of};
pub(crate) use table::{Dictionary, Scratch, Table, Values};
pub(crate) use words::Words;
pub(crate) use write::{Written, finish, whole_file, write_file};

/// Rows that are looked at together. No page spans two units.
pub(crate) const UNIT: usize = 8192;
/// Rows of a row group.
pub(crate) const GROUP: usize = 16 * UNIT;
