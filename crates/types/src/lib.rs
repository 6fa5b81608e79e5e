//! The nouns of Tampu and how they are written down: on the wire, in files, in keys.
//!
//! Nothing here reads a clock, opens a file or starts a thread; every codec turns bytes into values and values into bytes,
//! so that each can be tested, fuzzed and reused alone (the archive, the bindings and the console all read the same types).
//!
//! | subject | module | contract |
//! |-|-|-|
//! | who wrote it: [`Domain`], [`SourceName`], [`Incarnation`], [`RecordId`] | [`identity`] | `spec/decisions/0001-identity.md` |
//! | when: [`Time`], [`ClockState`] | [`time`] | `spec/decisions/0002-time.md` |
//! | how names become keys | [`name`] | `spec/decisions/0004-names.md` |
//! | the header before every batch | [`header`] | `spec/wire/batch-header.md` |
//! | a log record and its level | [`record`], [`level`] | `spec/types.md` |
//! | records in ACS's files | [`xml`] | `spec/wire/acs-xml.md` |
//! | records as JSON, one a line | [`json_lines`] | `spec/wire/json-lines.md` |
//! | syslog messages | [`syslog`]; in byte streams, [`frames`] | `spec/wire/syslog.md` |
//! | lines of EPICS's error log | [`epics`] | `spec/wire/epics-log.md` |
//! | the ids of records read from files | [`import`] | `spec/wire/import-id.md` |
//! | attribute events: names, values, configuration, and their encoding | [`event`] | `spec/events.md`, `spec/event.idl`, `spec/wire/event.md` |
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

#[cfg(test)]
mod arbitrary;
pub mod bad_record;
pub mod cdr;
pub mod epics;
pub mod event;
pub mod frames;
pub mod header;
pub mod identity;
pub mod import;
pub mod json_lines;
pub mod level;
pub mod log_batch;
pub mod name;
pub mod record;
pub mod syslog;
pub mod time;
pub mod xml;

pub use bad_record::BadRecord;
pub use header::BatchHeader;
pub use identity::{Domain, Incarnation, RecordId, SourceName};
pub use level::Level;
pub use log_batch::{LogBatchBuilder, LogBatchView, RecordView};
pub use name::{Partition, PartitionFilter, TopicFilter, TopicName};
pub use record::{Datum, LogRecord};
pub use time::{ClockState, Time};
