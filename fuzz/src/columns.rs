//! Demands on the reader of answers in columns, for any bytes: it returns, every value that it took can be had, and a
//! table that is written again is read as the same.

#![allow(dead_code, unused_imports, missing_docs)]

#[path = "../../crates/archive/src/columns/bad.rs"]
mod bad;
#[path = "../../crates/archive/src/columns/batch.rs"]
mod batch;
#[path = "../../crates/archive/src/columns/flat.rs"]
mod flat;
#[path = "../../crates/archive/src/columns/read.rs"]
mod read;
#[path = "../../crates/archive/src/columns/table.rs"]
mod table;
#[path = "../../crates/archive/src/columns/write.rs"]
mod write;

use batch::{ColumnBatch, ColumnType};

/// Columns of the seed, and one of each other type.
const SCHEMA: [(&str, ColumnType); 6] = [
    ("time", ColumnType::Time),
    ("process", ColumnType::Name),
    ("message", ColumnType::Text),
    ("line", ColumnType::Integer),
    ("value", ColumnType::Number),
    ("values", ColumnType::Numbers),
];

/// The messages of an answer.
pub fn columns(bytes: &[u8]) {
    let mut read = table::ColumnTable::new(SCHEMA);
    if read::ColumnReader::default().read(bytes, &mut read).is_err() {
        return;
    }
    let batches = read.into_batches();
    let mut again = table::ColumnTable::new(SCHEMA);
    let (mut writer, mut reader) = (write::ColumnWriter::new(SCHEMA.to_vec(), 64), read::ColumnReader::default());
    reader.read(&writer.begin(), &mut again).expect("just written");
    for batch in &batches {
        writer.batch(batch, &mut |message| reader.read(&message, &mut again).is_ok());
    }
    assert_eq!(values(&batches), values(&again.into_batches()));
}

fn values(batches: &[ColumnBatch]) -> Vec<String> {
    let row = |batch: &ColumnBatch, row: usize| batch.columns.iter().map(|column| format!("{:?} ", column.value(row))).collect();
    batches.iter().flat_map(|batch| (0..batch.rows).map(move |at| row(batch, at))).collect()
}
