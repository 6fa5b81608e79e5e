//! Records in responses. Ids and cursors are texts, because a browser rounds numbers of 64 bits.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::Serialize;
use tampu_archive::query::Cursor;
use tampu_types::{Datum, LogRecord, Time};

use super::super::call::Call;
use crate::http::problem::Problem;

/// The place of a record in the order of searches: `NS.INCARNATION.RING.NUMBER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct RecordCursor(pub Cursor);

/// Error of a text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of the log; send one of a response")]
pub(in crate::api) struct BadCursor;

impl RecordCursor {
    pub(in crate::api) fn of(record: &LogRecord) -> RecordCursor {
        RecordCursor(Cursor::of(record))
    }
}

impl fmt::Display for RecordCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.time.0, self.0.id)
    }
}

impl FromStr for RecordCursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<RecordCursor, BadCursor> {
        let (ns, id) = text.split_once('.').ok_or(BadCursor)?;
        let time = ns.parse().map(Time).map_err(|_| BadCursor)?;
        Ok(RecordCursor(Cursor { time, id: id.parse().map_err(|_| BadCursor)? }))
    }
}

/// A named value of a record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::api) struct RecordValue {
    name: String,
    value: String,
}

/// The parameter that an `Archive` record is about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::api) struct ArchivedParameter {
    object: String,
    parameter: String,
    r#type: String,
}

/// A log record; empty members are absent.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(in crate::api) struct ShownRecord {
    /// Identity: incarnation, ring and number.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Place in the order of searches.
    cursor: String,
    /// Time of the log call.
    time: String,
    /// Time of reception by the collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<String>,
    /// Name of the level.
    level: &'static str,
    /// The writer's number, if it differs from that of the level.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    message: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    logger: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    routine: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    host: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    process: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    thread: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    context: String,
    /// The component that logged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    source_object: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audiences: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    array: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    antenna: String,
    /// The error chain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stack_id: String,
    /// Place in the chain, 0 the outermost.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack_level: Option<i32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    log_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    uri: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    run_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    data: Vec<RecordValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<ArchivedParameter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<RecordValue>,
    /// Texts that are cut: `message`, or `data N` and `attributes N`, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clipped: Vec<String>,
}

/// A page of records.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct RecordPage {
    /// The records, in the order of the request.
    pub records: Vec<ShownRecord>,
    /// For `after`; null if nothing follows.
    pub next: Option<String>,
    /// For `before`; null if nothing comes before.
    pub previous: Option<String>,
    /// False if the search ran out of time; `next` continues it.
    pub complete: bool,
    /// Records that were examined.
    pub looked_at: u64,
}

/// A record that was asked for by its id.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct FoundRecord {
    pub record: ShownRecord,
}

/// The records around one.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct LogContext {
    /// The records, oldest first.
    pub records: Vec<ShownRecord>,
    /// Index of the record; null if the archive does not have it.
    pub at: Option<usize>,
    /// For `/log/query` with `order=newest` and `after`; null if nothing is older.
    pub older: Option<String>,
    /// For `/log/query` with `order=oldest` and `after`; null if nothing is newer.
    pub newer: Option<String>,
}

/// The records of an error chain.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct ErrorChain {
    /// The chain's id.
    pub stack: String,
    /// The records, the outermost first, then by time.
    pub records: Vec<ShownRecord>,
    /// False if the search ran out of time, or the chain has more records than are shown.
    pub complete: bool,
}

/// Bytes to which texts are cut; 0 for whole ones.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::api) struct Clip(usize);

impl Clip {
    /// Reads the parameter.
    pub(in crate::api) fn of(call: &Call<'_>) -> Result<Clip, Problem> {
        Ok(Clip(call.parsed("clip")?.unwrap_or(0)))
    }

    /// Cuts texts to this many bytes.
    pub(in crate::api) fn to(bytes: usize) -> Clip {
        Clip(bytes)
    }

    /// Returns records as they are shown.
    pub(in crate::api) fn all(self, records: Vec<LogRecord>) -> Vec<ShownRecord> {
        records.into_iter().map(|record| self.one(record)).collect()
    }

    /// Returns a record as it is shown.
    pub(in crate::api) fn one(self, record: LogRecord) -> ShownRecord {
        let mut clipped = Vec::new();
        let cursor = RecordCursor::of(&record).to_string();
        let message = self.cut(record.message, || "message".to_owned(), &mut clipped);
        let mut named = |of: &str, data: Vec<Datum>| {
            let one = |(place, datum): (usize, Datum)| {
                let value = self.cut(datum.value, || format!("{of} {place}"), &mut clipped);
                RecordValue { name: datum.name, value }
            };
            data.into_iter().enumerate().map(one).collect()
        };
        let (data, attributes) = (named("data", record.data), named("attributes", record.attributes));
        ShownRecord {
            id: record.id.map(|id| id.to_string()),
            cursor,
            time: record.time.to_rfc3339(),
            received: record.received.map(Time::to_rfc3339),
            level: record.level.name(),
            priority: record.priority,
            message,
            logger: record.logger,
            file: record.file,
            line: record.line,
            routine: record.routine,
            host: record.host,
            process: record.process,
            thread: record.thread,
            context: record.context,
            source_object: record.source_object,
            audiences: record.audiences,
            array: record.array,
            antenna: record.antenna,
            stack_id: record.stack_id,
            stack_level: record.stack_level,
            log_id: record.log_id,
            uri: record.uri,
            run_id: record.run_id,
            trace_id: record.trace_id.map(|id| hexadecimal(&id)),
            span_id: record.span_id.map(|id| hexadecimal(&id)),
            data,
            archive: record.archive.map(|of| ArchivedParameter { object: of.object, parameter: of.parameter, r#type: of.r#type }),
            attributes,
            clipped,
        }
    }

    fn cut(self, mut text: String, name: impl FnOnce() -> String, clipped: &mut Vec<String>) -> String {
        if self.0 > 0 && text.len() > self.0 {
            text.truncate(text.floor_char_boundary(self.0));
            clipped.push(name());
        }
        text
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;

    #[test]
    fn a_record_is_shown_as_its_json_line_but_for_the_id() {
        let mut record = LogRecord::new(Level::Warning, "größer");
        record.time = Time(1_763_809_431_000_000_001);
        record.id = Some("0000002a-00000007-00000000000000ff.3.18446744073709551615".parse().unwrap());
        record.trace_id = Some([0xab; 16]);
        record.line = Some(7);
        record.data = vec![Datum::new("k", "value")];
        record.audiences = vec!["Operator".into()];
        let mut line = serde_json::to_value(&record).unwrap();
        let mut shown = serde_json::to_value(Clip::default().one(record.clone())).unwrap();
        let cursor: RecordCursor = shown["cursor"].as_str().unwrap().parse().unwrap();
        assert_eq!(cursor, RecordCursor::of(&record));
        assert_eq!(shown["id"], record.id.unwrap().to_string());
        for value in [&mut line, &mut shown] {
            let members = value.as_object_mut().unwrap();
            members.remove("id");
            members.remove("cursor");
        }
        assert_eq!(shown, line);
        let cut = serde_json::to_value(Clip(3).one(record)).unwrap();
        assert_eq!((cut["message"].as_str(), cut["clipped"].to_string().as_str()), (Some("gr"), r#"["message","data 0"]"#));
        assert!("7".parse::<RecordCursor>().is_err() && "7.x".parse::<RecordCursor>().is_err());
    }
}
