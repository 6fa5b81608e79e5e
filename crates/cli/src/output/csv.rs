//! Records as CSV (RFC 4180): one line of names, then a line a record, every field of a record in its own column.

use tampu_types::LogRecord;

/// The columns, by the names records have in JSON.
const COLUMNS: [&str; 23] = [
    "time",
    "level",
    "source_object",
    "message",
    "logger",
    "file",
    "line",
    "routine",
    "host",
    "process",
    "thread",
    "context",
    "audiences",
    "array",
    "antenna",
    "stack_id",
    "stack_level",
    "log_id",
    "priority",
    "uri",
    "run_id",
    "data",
    "id",
];

/// Appends the line of column names.
pub fn heading(out: &mut String) {
    out.push_str(&COLUMNS.join(","));
    out.push_str("\r\n");
}

/// Appends one record.
pub fn row(record: &LogRecord, out: &mut String) {
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    let data: Vec<String> = record.data.iter().map(|datum| format!("{}={}", datum.name, datum.value)).collect();
    let fields: [&str; COLUMNS.len()] = [
        &record.time.to_ns_text(),
        record.level.name(),
        &record.source_object,
        &record.message,
        &record.logger,
        &record.file,
        &number(record.line.map(i64::from)),
        &record.routine,
        &record.host,
        &record.process,
        &record.thread,
        &record.context,
        &record.audiences.join(" "),
        &record.array,
        &record.antenna,
        &record.stack_id,
        &number(record.stack_level.map(i64::from)),
        &record.log_id,
        &number(record.priority.map(i64::from)),
        &record.uri,
        &record.run_id,
        &data.join("; "),
        &record.id.map(|id| id.to_string()).unwrap_or_default(),
    ];
    for (column, field) in fields.into_iter().enumerate() {
        if column > 0 {
            out.push(',');
        }
        write_field(field, out);
    }
    out.push_str("\r\n");
}

fn write_field(field: &str, out: &mut String) {
    if field.contains(['"', ',', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ') {
        out.push('"');
        out.push_str(&field.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(field);
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Datum, Level};

    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut record = LogRecord::new(Level::Info, "say \"yes\", or\nno");
        record.data.push(Datum::new("a", "1"));
        let (mut head, mut line) = (String::new(), String::new());
        heading(&mut head);
        row(&record, &mut line);
        assert_eq!(head.matches(',').count(), COLUMNS.len() - 1);
        assert!(line.starts_with("1970-01-01T00:00:00.000000000,Info,,\"say \"\"yes\"\", or\nno\","), "{line}");
        assert!(line.ends_with(",a=1,\r\n"), "{line}");
    }
}
