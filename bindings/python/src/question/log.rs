//! Records of the log archive as rows of a table. The columns are the keys of `tampu log query --json`.

use tampu_types::LogRecord;

use super::table::{Cell, Kind, Schema, Table};

/// Columns of records.
pub const COLUMNS: Schema = &[
    (c"time", Kind::Time),
    (c"received", Kind::Time),
    (c"level", Kind::Text),
    (c"message", Kind::Text),
    (c"logger", Kind::Text),
    (c"source_object", Kind::Text),
    (c"process", Kind::Text),
    (c"host", Kind::Text),
    (c"thread", Kind::Text),
    (c"context", Kind::Text),
    (c"file", Kind::Text),
    (c"line", Kind::Integer),
    (c"routine", Kind::Text),
    (c"audiences", Kind::Text),
    (c"array", Kind::Text),
    (c"antenna", Kind::Text),
    (c"stack_id", Kind::Text),
    (c"stack_level", Kind::Integer),
    (c"log_id", Kind::Text),
    (c"uri", Kind::Text),
    (c"run_id", Kind::Text),
    (c"trace_id", Kind::Text),
    (c"span_id", Kind::Text),
    (c"priority", Kind::Integer),
    (c"data", Kind::Text),
    (c"attributes", Kind::Text),
    (c"archive", Kind::Text),
    (c"id", Kind::Text),
];

/// Adds a record. Lists of values become JSON, audiences are separated by commas.
pub fn push(table: &mut Table, record: &LogRecord) {
    let json = |is_there: bool, text: serde_json::Result<String>| if is_there { text.unwrap_or_default() } else { String::new() };
    let integer = |number: Option<i64>| number.map_or(Cell::Missing, Cell::Integer);
    let audiences = record.audiences.join(",");
    let trace = record.trace_id.map(|id| format!("{:032x}", u128::from_be_bytes(id))).unwrap_or_default();
    let span = record.span_id.map(|id| format!("{:016x}", u64::from_be_bytes(id))).unwrap_or_default();
    let data = json(!record.data.is_empty(), serde_json::to_string(&record.data));
    let attributes = json(!record.attributes.is_empty(), serde_json::to_string(&record.attributes));
    let archive = json(record.archive.is_some(), serde_json::to_string(&record.archive));
    let id = record.id.map(|id| id.to_string()).unwrap_or_default();
    table.push(&[
        Cell::Integer(record.time.0),
        integer(record.received.map(|time| time.0)),
        Cell::text(record.level.name()),
        Cell::Text(&record.message),
        Cell::text(&record.logger),
        Cell::text(&record.source_object),
        Cell::text(&record.process),
        Cell::text(&record.host),
        Cell::text(&record.thread),
        Cell::text(&record.context),
        Cell::text(&record.file),
        integer(record.line.map(i64::from)),
        Cell::text(&record.routine),
        Cell::text(&audiences),
        Cell::text(&record.array),
        Cell::text(&record.antenna),
        Cell::text(&record.stack_id),
        integer(record.stack_level.map(i64::from)),
        Cell::text(&record.log_id),
        Cell::text(&record.uri),
        Cell::text(&record.run_id),
        Cell::text(&trace),
        Cell::text(&span),
        integer(record.priority.map(i64::from)),
        Cell::text(&data),
        Cell::text(&attributes),
        Cell::text(&archive),
        Cell::text(&id),
    ]);
}
