//! Trace and span of a record (W3C Trace Context) from named values.
//!
//! Every front end has named values beside a message: data of a statement, fields of `tracing` and its spans, key-values
//! of `log`, pairs in C and C++, data and MDC in Java, `extra` in Python. A value `trace_id` of 32 hexadecimal digits, or
//! `span_id` of 16, becomes the record's own field, as OpenTelemetry names them. Any other value stays as it is.
//!
//! Decision: one place, where records are packed, on the backend's thread. Rejected: a logger for each span, as for an
//! error chain. Each call in a span would then take the slow path, and every front end would need functions of its own.

use tampu_types::LogRecord;

/// Name of the value with the trace.
const TRACE: &str = "trace_id";
/// Name of the value with the span.
const SPAN: &str = "span_id";

/// Trace and span of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TraceIds {
    pub trace: Option<[u8; 16]>,
    pub span: Option<[u8; 8]>,
}

/// Returns true if a value of this name may be one of the ids.
#[inline]
pub(crate) fn may_be_id(name: &str) -> bool {
    name == TRACE || name == SPAN
}

impl TraceIds {
    /// Takes the id of a value; returns false if it is none.
    pub fn take(&mut self, name: &str, value: &str) -> bool {
        match name {
            TRACE if self.trace.is_none() => self.trace = id_of(value),
            SPAN if self.span.is_none() => self.span = id_of(value),
            _ => return false,
        }
        if name == TRACE { self.trace.is_some() } else { self.span.is_some() }
    }

    /// Returns the ids of named values.
    pub fn of<'v>(values: impl Iterator<Item = (&'v str, &'v str)>) -> TraceIds {
        let mut ids = TraceIds::default();
        for (name, value) in values.filter(|(name, _)| may_be_id(name)) {
            ids.take(name, value);
        }
        ids
    }

    /// Returns true if this value stands among the ids.
    pub fn has(&self, name: &str, value: &str) -> bool {
        match name {
            TRACE => self.trace.is_some() && self.trace == id_of(value),
            SPAN => self.span.is_some() && self.span == id_of(value),
            _ => false,
        }
    }

    /// Returns a record made by hand with the ids of its data as fields; `None` if it has no such data, or has ids.
    pub fn lifted(record: &LogRecord) -> Option<LogRecord> {
        if !record.data.iter().any(|datum| may_be_id(&datum.name)) {
            return None;
        }
        let mut lifted = record.clone();
        let mut ids = TraceIds { trace: record.trace_id, span: record.span_id };
        lifted.data.retain(|datum| !ids.take(&datum.name, &datum.value));
        (lifted.trace_id, lifted.span_id) = (ids.trace, ids.span);
        Some(lifted)
    }
}

/// Reads an id. The id of zeros means that there is none.
fn id_of<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    if text.len() != 2 * BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut id = [0; BYTES];
    for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (id != [0; BYTES]).then_some(id)
}

#[cfg(test)]
mod tests {
    use tampu_types::{Datum, Level};

    use super::*;

    #[test]
    fn only_whole_ids_are_taken_and_the_first_counts() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let ids = TraceIds::of([("scan", "7"), ("span_id", "b7ad6b7169203331"), ("trace_id", trace)].into_iter());
        assert_eq!(
            (ids.trace.unwrap()[..2].to_vec(), ids.span),
            (vec![0x0a, 0xf7], Some([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]))
        );
        assert!(ids.has("trace_id", trace) && !ids.has("scan", "7") && !ids.has("trace_id", "7"));
        let zeros = "0".repeat(32);
        for other in [
            "",
            "7",
            "0af7651916cd43dd8448eb211c80319",
            "+af7651916cd43dd8448eb211c80319c",
            &zeros,
            "0af7651916cd43dd8448eb211c8031é",
        ] {
            assert_eq!(TraceIds::of([("trace_id", other)].into_iter()), TraceIds::default(), "{other}");
        }
    }

    #[test]
    fn a_record_by_hand_keeps_its_own_ids_and_other_values() {
        let mut record = LogRecord::new(Level::Info, "x");
        assert_eq!(TraceIds::lifted(&record), None);
        record.data =
            vec![Datum::new("span_id", "b7ad6b7169203331"), Datum::new("trace_id", "of nothing"), Datum::new("scan", "7")];
        let lifted = TraceIds::lifted(&record).unwrap();
        assert_eq!((lifted.trace_id, lifted.span_id.is_some(), lifted.data.len()), (None, true, 2));
        record.span_id = Some([1; 8]);
        let lifted = TraceIds::lifted(&record).unwrap();
        assert_eq!((lifted.span_id, lifted.data.len()), (Some([1; 8]), 3), "both are kept");
    }
}
