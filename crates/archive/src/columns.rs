//! Answers in columns: the rows of a search as Arrow's columns, from the Parquet files to the program that asked.
//!
//! ```text
//! pages of a unit -> ColumnBatch -> Arrow IPC messages -> parts of `log/query` -> ColumnTable -> Arrow's C interface
//!       unit           batch            write                                     table, read
//! ```
//! A unit whose rows follow each other in the answer goes from its pages into a batch, without a record of each row.
//! Rows of units that overlap in time, and records that are not in Parquet files yet, are gathered from several batches.
//! Names that repeat, such as those of processes, are codes of a dictionary all the way. The format of the messages is
//! `spec/wire/columns.md`.
//!
//! The `arrow` crates were rejected: this needs two of their 300 messages, and they bring 20 crates.
//!
//! | part | module |
//! |-|-|
//! | types of columns, and their values | `batch` |
//! | columns that grow | `table` |
//! | rows of several batches in another order | `gather` |
//! | log records as rows | `record` |
//! | columns of a Parquet file | `unit` |
//! | texts of a file as answers have them | `change` |
//! | tables of FlatBuffers | `flat` |
//! | Arrow's messages, and the error of bad ones | `write`, `read`, `bad` |

mod bad;
mod batch;
mod change;
mod flat;
mod gather;
mod read;
mod record;
mod table;
mod unit;
mod write;

pub use bad::BadColumns;
pub use batch::{Column, ColumnBatch, ColumnData, ColumnSchema, ColumnType, ColumnValue, Names};
pub(crate) use gather::Gatherer;
pub use read::ColumnReader;
pub use record::{LOG_COLUMNS, log_columns, push_record};
pub use table::ColumnTable;
pub(crate) use unit::UnitReader;
pub use write::ColumnWriter;

#[cfg(test)]
mod tests;
