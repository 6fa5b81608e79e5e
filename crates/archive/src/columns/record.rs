//! Log records as rows. The columns are the keys of `tampu log query --json`.

use tampu_types::{Datum, LogRecord};

use super::{
    batch::{ColumnType, ColumnValue},
    table::ColumnTable,
};
use crate::query::BadQuery;

/// Columns of log records.
pub const LOG_COLUMNS: &[(&str, ColumnType)] = &[
    ("time", ColumnType::Time),
    ("received", ColumnType::Time),
    ("level", ColumnType::Name),
    ("message", ColumnType::Text),
    ("logger", ColumnType::Name),
    ("source_object", ColumnType::Name),
    ("process", ColumnType::Name),
    ("host", ColumnType::Name),
    ("thread", ColumnType::Name),
    ("context", ColumnType::Name),
    ("file", ColumnType::Name),
    ("line", ColumnType::Integer),
    ("routine", ColumnType::Name),
    ("audiences", ColumnType::Name),
    ("array", ColumnType::Name),
    ("antenna", ColumnType::Name),
    ("stack_id", ColumnType::Text),
    ("stack_level", ColumnType::Integer),
    ("log_id", ColumnType::Name),
    ("uri", ColumnType::Text),
    ("run_id", ColumnType::Name),
    ("trace_id", ColumnType::Text),
    ("span_id", ColumnType::Text),
    ("priority", ColumnType::Integer),
    ("data", ColumnType::Text),
    ("attributes", ColumnType::Text),
    ("archive", ColumnType::Text),
    ("id", ColumnType::Text),
];

/// Returns the named columns in this order; without names, all columns.
pub fn log_columns(names: &[String]) -> Result<Vec<(&'static str, ColumnType)>, BadQuery> {
    if names.is_empty() {
        return Ok(LOG_COLUMNS.to_vec());
    }
    if let Some((_, name)) = names.iter().take(LOG_COLUMNS.len() + 1).enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(BadQuery::ColumnTwice(name.clone()));
    }
    let find = |name: &String| {
        let known = LOG_COLUMNS.iter().find(|(known, _)| known == name).copied();
        known.ok_or_else(|| BadQuery::Column {
            name: name.clone(),
            known: LOG_COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        })
    };
    names.iter().map(find).collect()
}

/// Returns named values as a list in JSON: `[{"name":"scan","value":"12"}]`; nothing without values.
pub(super) fn data_json(data: &[Datum]) -> String {
    if data.is_empty() { String::new() } else { serde_json::to_string(data).unwrap_or_default() }
}

/// Adds a record to a table whose columns are some of [`LOG_COLUMNS`].
pub fn push_record(table: &mut ColumnTable, record: &LogRecord) {
    let integer = |number: Option<i64>| number.map_or(ColumnValue::Missing, ColumnValue::Integer);
    for column in 0..table.schema.len() {
        let owned: String;
        let value = match table.schema[column].0 {
            "time" => ColumnValue::Integer(record.time.0),
            "received" => integer(record.received.map(|time| time.0)),
            "level" => ColumnValue::Text(record.level.name()),
            "message" => ColumnValue::Text(&record.message),
            "logger" => ColumnValue::text(&record.logger),
            "source_object" => ColumnValue::text(&record.source_object),
            "process" => ColumnValue::text(&record.process),
            "host" => ColumnValue::text(&record.host),
            "thread" => ColumnValue::text(&record.thread),
            "context" => ColumnValue::text(&record.context),
            "file" => ColumnValue::text(&record.file),
            "line" => integer(record.line.map(i64::from)),
            "routine" => ColumnValue::text(&record.routine),
            "array" => ColumnValue::text(&record.array),
            "antenna" => ColumnValue::text(&record.antenna),
            "stack_id" => ColumnValue::text(&record.stack_id),
            "stack_level" => integer(record.stack_level.map(i64::from)),
            "log_id" => ColumnValue::text(&record.log_id),
            "uri" => ColumnValue::text(&record.uri),
            "run_id" => ColumnValue::text(&record.run_id),
            "priority" => integer(record.priority.map(i64::from)),
            computed => {
                owned = computed_text(computed, record);
                ColumnValue::text(&owned)
            }
        };
        table.push_value(column, value);
    }
    table.end_row();
}

/// Returns the text of a column that no member of the record has as a text.
fn computed_text(column: &str, record: &LogRecord) -> String {
    match column {
        "audiences" => record.audiences.join(","),
        "trace_id" => record.trace_id.map(|id| format!("{:032x}", u128::from_be_bytes(id))).unwrap_or_default(),
        "span_id" => record.span_id.map(|id| format!("{:016x}", u64::from_be_bytes(id))).unwrap_or_default(),
        "data" => data_json(&record.data),
        "attributes" => data_json(&record.attributes),
        "archive" => record.archive.as_ref().and_then(|archive| serde_json::to_string(archive).ok()).unwrap_or_default(),
        "id" => record.id.map(|id| id.to_string()).unwrap_or_default(),
        _ => String::new(),
    }
}
