//! The record about lost samples: a loss that the bus reports is kept in the archive beside the received records.

use super::dropped::Dropped;
use tampu_bus::{Forgeries, LossReason, StreamInfo};
use tampu_types::{Datum, Incarnation, Level, LogRecord, RecordId, SourceName, Time};

/// The ring of the collector's own records; no thread of a logger has it.
const OWN_RING: u32 = u32::MAX;

/// Author and time of the records about gaps.
pub(super) struct Teller<'a> {
    pub(super) name: &'a SourceName,
    pub(super) incarnation: Incarnation,
    pub(super) number: u64,
    pub(super) now: Time,
}

impl Teller<'_> {
    fn record(self, level: Level, message: String) -> LogRecord {
        let mut record = LogRecord::new(level, message);
        record.id = Some(RecordId { incarnation: self.incarnation, ring: OWN_RING, number: self.number });
        record.time = self.now;
        record.process = self.name.to_string();
        record.logger = "collector".to_owned();
        record.routine = "gap".to_owned();
        record
    }

    /// Returns the record about lost samples `from` to `to` (not included) of a stream.
    pub(super) fn lost(self, stream: &StreamInfo, from: u64, to: u64, why: LossReason) -> LogRecord {
        let count = to - from;
        let (noun, numbers) =
            if count == 1 { ("sample", format!("number {from}")) } else { ("samples", format!("numbers {from} to {}", to - 1)) };
        let message = format!("{count} {noun} of {} from {} lost ({numbers}): {why}", stream.topic, stream.source);
        let mut record = self.record(Level::Warning, message);
        record.data = vec![
            Datum::new("source", stream.source.as_str()),
            Datum::new("incarnation", stream.incarnation.to_string()),
            Datum::new("stream", stream.stream.to_string()),
            Datum::new("from", from.to_string()),
            Datum::new("to", to.to_string()),
            Datum::new("why", why.to_string()),
        ];
        record
    }

    /// Returns the record about records that arrived and were dropped.
    pub(super) fn dropped(self, dropped: &Dropped) -> LogRecord {
        let Dropped { source, why, records, bytes } = dropped;
        let noun = if *records == 1 { "record" } else { "records" };
        let mut record = self.record(Level::Warning, format!("{records} {noun} from {source} not kept: {why}"));
        record.routine = "dropped".to_owned();
        record.data = vec![
            Datum::new("source", source.as_str()),
            Datum::new("records", records.to_string()),
            Datum::new("bytes", bytes.to_string()),
            Datum::new("why", why.as_str()),
        ];
        record
    }

    /// Returns the record about refused messages in the name of a process of another host: `count` since the last record.
    pub(super) fn forged(self, count: u64, forgeries: &Forgeries) -> LogRecord {
        let noun = if count == 1 { "message" } else { "messages" };
        let (host, process) = match &forgeries.last {
            Some((host, process)) => (host.escape_debug().to_string(), process.to_string()),
            None => ("another".to_owned(), "unknown".to_owned()),
        };
        let message = format!("{count} {noun} refused: the host '{host}' named the process {process} of another host");
        let mut record = self.record(Level::Warning, message);
        record.routine = "forged".to_owned();
        record.data =
            vec![Datum::new("host", host), Datum::new("incarnation", process), Datum::new("messages", count.to_string())];
        record
    }

    /// Returns the record about a dead writer: its samples after these are unknown.
    pub(super) fn open_ends(self, source: &SourceName, incarnation: Incarnation, ends: &[(String, u64)]) -> LogRecord {
        let streams: Vec<String> = ends.iter().map(|(topic, next)| format!("{topic} after {next} samples")).collect();
        let message = format!("{source} died; whether it wrote more is not known: {}", streams.join(", "));
        let mut record = self.record(Level::Warning, message);
        record.data = vec![Datum::new("source", source.as_str()), Datum::new("incarnation", incarnation.to_string())];
        record
    }
}
