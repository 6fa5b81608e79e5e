//! The columns a record has: one list for CSV, for chosen columns, for sorting and for the viewer.
//!
//! ACS's nineteen and those it lacks. Names are those of LogRecord's fields in JSON; titles are ACS's.

use std::{borrow::Cow, cmp::Ordering, str::FromStr};

use serde_json::{Map, Value};
use tampu_types::LogRecord;

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // Each is the field of LogRecord of the same name.
pub enum Column {
    Time,
    Level,
    SourceObject,
    Message,
    Logger,
    File,
    Line,
    Routine,
    Host,
    Process,
    Thread,
    Context,
    Audiences,
    Array,
    Antenna,
    StackId,
    StackLevel,
    LogId,
    Priority,
    Uri,
    RunId,
    Data,
    Id,
}

/// A word that names no column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no column; columns are {names}", names = Column::ALL.map(Column::name).join(", "))]
pub struct BadColumn(pub String);

impl Column {
    /// All of them, in the order of CSV.
    pub const ALL: [Column; 23] = [
        Column::Time,
        Column::Level,
        Column::SourceObject,
        Column::Message,
        Column::Logger,
        Column::File,
        Column::Line,
        Column::Routine,
        Column::Host,
        Column::Process,
        Column::Thread,
        Column::Context,
        Column::Audiences,
        Column::Array,
        Column::Antenna,
        Column::StackId,
        Column::StackLevel,
        Column::LogId,
        Column::Priority,
        Column::Uri,
        Column::RunId,
        Column::Data,
        Column::Id,
    ];

    /// Its name, as in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// What stands above it: ACS's name, where ACS has it.
    pub const fn title(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Column::Time => ("time", "TimeStamp"),
            Column::Level => ("level", "Level"),
            Column::SourceObject => ("source_object", "SourceObject"),
            Column::Message => ("message", "Message"),
            Column::Logger => ("logger", "Logger"),
            Column::File => ("file", "File"),
            Column::Line => ("line", "Line"),
            Column::Routine => ("routine", "Routine"),
            Column::Host => ("host", "Host"),
            Column::Process => ("process", "Process"),
            Column::Thread => ("thread", "Thread"),
            Column::Context => ("context", "Context"),
            Column::Audiences => ("audiences", "Audience"),
            Column::Array => ("array", "Array"),
            Column::Antenna => ("antenna", "Antenna"),
            Column::StackId => ("stack_id", "StackId"),
            Column::StackLevel => ("stack_level", "StackLevel"),
            Column::LogId => ("log_id", "LogId"),
            Column::Priority => ("priority", "Priority"),
            Column::Uri => ("uri", "Uri"),
            Column::RunId => ("run_id", "RunId"),
            Column::Data => ("data", "Data"),
            Column::Id => ("id", "Id"),
        }
    }

    /// What a record has there, as text; empty where it has nothing.
    pub fn value(self, record: &LogRecord) -> Cow<'_, str> {
        let number = |value: Option<i64>| Cow::from(value.map(|value| value.to_string()).unwrap_or_default());
        match self {
            Column::Time => record.time.to_ns_text().into(),
            Column::Level => record.level.name().into(),
            Column::SourceObject => (&record.source_object).into(),
            Column::Message => (&record.message).into(),
            Column::Logger => (&record.logger).into(),
            Column::File => (&record.file).into(),
            Column::Line => number(record.line.map(i64::from)),
            Column::Routine => (&record.routine).into(),
            Column::Host => (&record.host).into(),
            Column::Process => (&record.process).into(),
            Column::Thread => (&record.thread).into(),
            Column::Context => (&record.context).into(),
            Column::Audiences => record.audiences.join(" ").into(),
            Column::Array => (&record.array).into(),
            Column::Antenna => (&record.antenna).into(),
            Column::StackId => (&record.stack_id).into(),
            Column::StackLevel => number(record.stack_level.map(i64::from)),
            Column::LogId => (&record.log_id).into(),
            Column::Priority => number(record.priority.map(i64::from)),
            Column::Uri => (&record.uri).into(),
            Column::RunId => (&record.run_id).into(),
            Column::Data => {
                let data: Vec<String> = record.data.iter().map(|datum| format!("{}={}", datum.name, datum.value)).collect();
                data.join("; ").into()
            }
            Column::Id => record.id.map(|id| id.to_string()).unwrap_or_default().into(),
        }
    }

    /// Which of two records comes first by this column; numbers by their value, levels by gravity.
    pub fn order(self, one: &LogRecord, other: &LogRecord) -> Ordering {
        match self {
            Column::Time => one.time.cmp(&other.time),
            Column::Level => one.level.cmp(&other.level),
            Column::Line => one.line.cmp(&other.line),
            Column::StackLevel => one.stack_level.cmp(&other.stack_level),
            Column::Priority => one.priority.cmp(&other.priority),
            Column::Id => one.id.cmp(&other.id),
            text => text.value(one).cmp(&text.value(other)),
        }
    }
}

impl FromStr for Column {
    type Err = BadColumn;

    /// A name or a title, in any case; `source` and `audience` are understood too.
    fn from_str(text: &str) -> Result<Column, BadColumn> {
        let text = text.trim();
        let named = |column: &Column| column.name().eq_ignore_ascii_case(text) || column.title().eq_ignore_ascii_case(text);
        match text {
            "source" => Ok(Column::SourceObject),
            _ => Column::ALL.into_iter().find(named).ok_or_else(|| BadColumn(text.to_owned())),
        }
    }
}

/// A record as JSON with these fields alone.
pub fn chosen(record: &LogRecord, columns: &[Column]) -> serde_json::Result<Map<String, Value>> {
    let Value::Object(mut all) = serde_json::to_value(record)? else { return Ok(Map::new()) };
    Ok(columns.iter().filter_map(|column| all.remove(column.name()).map(|value| (column.name().to_owned(), value))).collect())
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;

    #[test]
    fn every_column_is_found_by_its_name_and_its_title() {
        for column in Column::ALL {
            assert_eq!(column.name().parse(), Ok(column));
            assert_eq!(column.title().to_lowercase().parse(), Ok(column));
        }
        assert_eq!("source".parse(), Ok(Column::SourceObject));
        assert!("colour".parse::<Column>().unwrap_err().to_string().contains("'colour' is no column; columns are time, level"));
    }

    #[test]
    fn numbers_are_ordered_by_value_and_chosen_fields_keep_their_names() {
        let mut one = LogRecord::new(Level::Error, "a");
        one.line = Some(9);
        let mut other = LogRecord::new(Level::Debug, "b");
        other.line = Some(10);
        assert_eq!(Column::Line.order(&one, &other), Ordering::Less);
        assert_eq!(Column::Level.order(&one, &other), Ordering::Greater);
        let fields = chosen(&one, &[Column::Message, Column::Line, Column::Uri]).unwrap();
        assert_eq!(Value::from(fields), serde_json::json!({"message": "a", "line": 9}));
    }
}
