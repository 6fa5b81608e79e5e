//! The types of Tampu and their encodings: on the wire, in files, in keys.
//!
//! Nothing here reads a clock, opens a file or starts a thread. Every codec converts bytes to values and values to
//! bytes, so that each can be tested, fuzzed and reused alone. The archive, the bindings and the console all read the
//! same types.
//!
//! | subject | module | contract |
//! |-|-|-|
//! | identity of a writer: [`Domain`], [`SourceName`], [`Incarnation`], [`RecordId`] | [`identity`] | `spec/decisions/0001-identity.md` |
//! | time and clock: [`Time`], [`ClockState`] | [`time`] | `spec/decisions/0002-time.md` |
//! | names as keys | [`name`] | `spec/decisions/0004-names.md` |
//! | wildcards | [`glob`] | |
//! | characters that must not reach a terminal | [`terminal`] | |
//! | cells that a spreadsheet must not take for formulas | [`spreadsheet`] | |
//! | enums with names | [`named`], [`named_enum!`] | |
//! | sizes and durations as text | [`units`] | |
//! | the header before every batch | [`header`] | `spec/wire/batch-header.md` |
//! | a log record and its level; the catalogue of its fields | [`record`], [`level`]; [`record::field`] | `spec/types.md` |
//! | records in ACS's files | [`xml`] | `spec/wire/acs-xml.md` |
//! | records as CSV | [`csv`] | |
//! | records as JSON, one a line | [`json_lines`] | `spec/wire/json-lines.md` |
//! | syslog messages | [`syslog`]; in byte streams, [`frames`] | `spec/wire/syslog.md` |
//! | lines of EPICS's error log | [`epics`] | `spec/wire/epics-log.md` |
//! | the ids of records read from files | [`import`] | `spec/wire/import-id.md` |
//! | attribute events: names, values, configuration, and their encoding | [`event`] | `spec/events.md`, `spec/event.idl`, `spec/wire/event.md` |
//! | frames of the gateway | [`gateway`] | `spec/wire/gateway.md` |
//! | records on the wire and in segments | [`log_batch`], on [`cdr`] | `spec/log.idl`, `spec/wire/log-batch.md` |
//!
//! ```
//! use tampu_types::{Level, LogRecord};
//!
//! let mut record = LogRecord::new(Level::Warning, "cryostat 4 warms up");
//! record.source_object = "CONTROL/DV01/FrontEnd".into();
//! assert!(record.level >= Level::Info);
//! assert_eq!(record.level.to_string(), "Warning");
//! ```

#![warn(missing_docs)]

#[cfg(test)]
mod arbitrary;
pub mod bad_record;
pub mod cdr;
pub mod csv;
pub mod epics;
pub mod event;
pub mod frames;
pub mod gateway;
pub mod glob;
pub mod header;
pub mod id_text;
pub mod identity;
pub mod import;
pub mod json_lines;
pub mod level;
pub mod log_batch;
pub mod logic;
pub mod name;
pub mod named;
pub mod record;
pub mod spreadsheet;
pub mod syslog;
pub mod terminal;
pub mod time;
pub mod units;
pub mod xml;

pub use bad_record::BadRecord;
pub use header::BatchHeader;
pub use identity::{Domain, Incarnation, RecordId, SourceName};
pub use level::Level;
pub use log_batch::{LogBatchBuilder, LogBatchView, RecordView};
pub use name::{Partition, PartitionFilter, TopicFilter, TopicName};
pub use record::{
    Datum, LogRecord,
    field::{QueryField, RecordField},
};
pub use time::{ClockState, Time};
