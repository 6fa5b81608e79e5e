//! The Parquet tier: long-term storage of the records of closed segments.
//!
//! A file holds the records of one directory (`keeper::partition`) from one compaction, ordered by time and id. Its
//! columns use dictionaries, so other people's tools can read it decades from now. This crate writes the part of the
//! format that it needs, and reads files by its own index, which stands before the footer.
//!
//! The `parquet` crate was tried and rejected, for three reasons. It returns values where a search needs the codes of a
//! dictionary: a process that is not in a dictionary is in no row, and comparing codes is a fiftieth of the work. It
//! does not accept known codes when it writes. It takes a minute to build.
//!
//! | part | module |
//! |-|-|
//! | the columns, and lists in one text | `column`, `lists` |
//! | errors | `bad` |
//! | bit-packed numbers | `bits`, `delta` |
//! | a file's standard description, for other readers | `thrift`, `footer` |
//! | the index that our own reader uses | `index`, `words` |
//! | writing rows | `rows`, `write`, `encode`, `pages`; into a separate file, `export` |
//! | reading rows | `table`, `read`, `ids` |
//! | selecting rows by a query | `scan` |

mod bad;
mod bits;
mod chunk;
mod column;
mod delta;
mod encode;
mod export;
mod footer;
mod foreign;
mod ids;
mod index;
pub(crate) mod lists;
mod page_index;
mod pages;
mod read;
mod rows;
mod scan;
mod snappy;
pub(crate) mod stored;
mod table;
mod thrift;
mod thrift_read;
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
pub(crate) use read::{Dictionaries, GroupDictionaries, records, unhex};
pub(crate) use rows::{Rows, Sent, group_ranges};
pub(crate) use scan::GroupScan;
pub(crate) use table::{Dictionary, Scratch, Table, Texts, Values};
pub(crate) use words::Words;
pub(crate) use write::{Written, finish, whole_file, write_file};

/// Rows of a unit, which is scanned as a whole. No page spans two units.
pub(crate) const UNIT: usize = 8192;
/// Rows of a row group.
pub(crate) const GROUP: usize = 16 * UNIT;
