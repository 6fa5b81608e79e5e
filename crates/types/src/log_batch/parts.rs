//! Parts of a record to be written: borrowed, so that bytes are copied only into the batch.

use super::view::ArchiveView;
use crate::{
    identity::{Incarnation, RecordId},
    level::Level,
    record::{Datum, LogRecord, field::RecordField},
    time::Time,
};

/// Values that records of one place have in common; the fields of [`LogRecord`] of the same names.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct OriginParts<'a> {
    /// Incarnation of the writer; `None` if the records are to have no ids.
    pub incarnation: Option<Incarnation>,
    pub logger: &'a str,
    pub file: &'a str,
    pub line: Option<u32>,
    pub routine: &'a str,
    pub host: &'a str,
    pub process: &'a str,
    pub thread: &'a str,
    pub context: &'a str,
    pub source_object: &'a str,
    pub audiences: &'a [&'a str],
    pub array: &'a str,
    pub antenna: &'a str,
    pub uri: &'a str,
    pub run_id: &'a str,
    /// Members of a later release, unchanged.
    pub unknown: &'a [u8],
}

impl<'a> OriginParts<'a> {
    /// All but the audiences.
    pub(crate) fn of(record: &'a LogRecord) -> OriginParts<'a> {
        OriginParts {
            incarnation: record.id.map(|id| id.incarnation),
            logger: &record.logger,
            file: &record.file,
            line: record.line,
            routine: &record.routine,
            host: &record.host,
            process: &record.process,
            thread: &record.thread,
            context: &record.context,
            source_object: &record.source_object,
            audiences: &[],
            array: &record.array,
            antenna: &record.antenna,
            uri: &record.uri,
            run_id: &record.run_id,
            unknown: &record.unknown_origin,
        }
    }

    /// The texts in the order of the IDL, which is that of the catalogue
    /// ([`crate::record::field::FieldPart::OriginText`]).
    pub(crate) fn strings(&self) -> [&'a str; RecordField::ORIGIN_TEXTS] {
        [
            self.logger,
            self.file,
            self.routine,
            self.host,
            self.process,
            self.thread,
            self.context,
            self.source_object,
            self.array,
            self.antenna,
            self.uri,
            self.run_id,
        ]
    }
}

/// Values of the record itself; the fields of [`LogRecord`] of the same names. The default is an Info record without
/// text.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct RecordParts<'a> {
    pub time: Time,
    /// The ring; with the number and the origin's incarnation it is the record's id.
    pub ring: u32,
    pub number: u64,
    pub level: Level,
    pub priority: Option<u8>,
    pub message: &'a str,
    pub received: Option<Time>,
    pub stack_id: &'a str,
    pub stack_level: Option<i32>,
    pub log_id: &'a str,
    pub trace_id: Option<[u8; 16]>,
    pub span_id: Option<[u8; 8]>,
    pub archive: Option<ArchiveView<'a>>,
    pub attributes: &'a [Datum],
    /// Members of a later release, unchanged.
    pub unknown: &'a [u8],
}

impl Default for RecordParts<'_> {
    fn default() -> Self {
        RecordParts {
            time: Time(0),
            ring: 0,
            number: 0,
            level: Level::Info,
            priority: None,
            message: "",
            received: None,
            stack_id: "",
            stack_level: None,
            log_id: "",
            trace_id: None,
            span_id: None,
            archive: None,
            attributes: &[],
            unknown: &[],
        }
    }
}

impl<'a> RecordParts<'a> {
    pub(super) fn of(record: &'a LogRecord) -> RecordParts<'a> {
        let RecordId { ring, number, .. } = record.id.unwrap_or_default();
        RecordParts {
            time: record.time,
            ring,
            number,
            level: record.level,
            priority: record.priority,
            message: &record.message,
            received: record.received,
            stack_id: &record.stack_id,
            stack_level: record.stack_level,
            log_id: &record.log_id,
            trace_id: record.trace_id,
            span_id: record.span_id,
            archive: record.archive.as_ref().map(|archive| ArchiveView {
                object: &archive.object,
                parameter: &archive.parameter,
                r#type: &archive.r#type,
            }),
            attributes: &record.attributes,
            unknown: &record.unknown,
        }
    }

    #[inline]
    pub(super) fn has_extras(&self) -> bool {
        self.received.is_some()
            || self.stack_level.is_some()
            || !self.stack_id.is_empty()
            || !self.log_id.is_empty()
            || self.trace_id.is_some()
            || self.span_id.is_some()
            || self.archive.is_some()
            || !self.attributes.is_empty()
    }
}
