//! Records and batches for the archive's tests.
#![allow(dead_code)] // Each test file uses its part.

use std::{path::Path, time::Duration};

use tampu_archive::query::Query;
use tampu_archive::{Appended, Archive, ArchiveError, Arrival, LocalArchive, Options, Stop};
use tampu_types::{
    BatchHeader, ClockState, Datum, Domain, Incarnation, Level, LogRecord, RecordId, SourceName, Time,
    log_batch::{TYPE_ID, VERSION, encode_records},
};

pub const SECOND: i64 = 1_000_000_000;

pub fn domain() -> Domain {
    Domain::new("test").unwrap()
}

pub fn life(number: u32) -> Incarnation {
    Incarnation { boot: 7, pid: number, start: 1000 + u64::from(number) }
}

/// Record `number` of a ring, all its values made from its number.
pub fn record(incarnation: Incarnation, ring: u32, number: u64) -> LogRecord {
    let level = Level::ALL[(number % 10) as usize];
    let mut record = LogRecord::new(level, format!("antenna {} reached position {number}", number % 7));
    record.id = Some(RecordId { incarnation, ring, number });
    record.time = Time(number as i64 * SECOND + i64::from(ring));
    record.process = format!("CONTROL/DV{:02}", incarnation.pid);
    record.host = "gas01".to_owned();
    record.routine = if number.is_multiple_of(2) { "setPosition".to_owned() } else { "getPosition".to_owned() };
    if number.is_multiple_of(5) {
        record.audiences = vec!["Operator".to_owned()];
    }
    if number.is_multiple_of(3) {
        record.data.push(Datum::new("status", format!("Tracking step{number}")));
    }
    if level >= Level::Warning {
        record.stack_id = format!("stack-{}", number / 10);
    }
    record
}

pub fn header(incarnation: Incarnation, stream: u32, first: u64, count: u32) -> BatchHeader {
    BatchHeader {
        domain: domain(),
        source: SourceName::new("CONTROL/test").unwrap(),
        incarnation,
        stream,
        first,
        count,
        type_id: TYPE_ID,
        type_version: VERSION,
        acquired: Time(1),
        sent: Time(2),
        clock: ClockState::Synchronised,
        tai_offset: 37,
        flags: 0,
    }
}

/// One sample, number `first` of its stream, that holds these records.
pub fn append(
    archive: &dyn Archive,
    life: Incarnation,
    stream: u32,
    first: u64,
    records: &[LogRecord],
) -> Result<Appended, ArchiveError> {
    let sample = encode_records(records).unwrap();
    let header = header(life, stream, first, 1);
    archive.append(&Arrival::of_stream(&header, &[&sample], Time(5 * SECOND)))
}

/// An archive of segments alone: nothing happens but what the test does.
pub fn options() -> Options {
    Options { linger: Duration::ZERO, compact: false, ..Options::new(domain()) }
}

/// Returns the segments' directory of an archive in `dir`.
pub fn segments_dir(dir: &Path) -> std::path::PathBuf {
    dir.join("segments")
}

/// A directory in memory where there is one: these tests sync thousands of times.
pub fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn open(dir: &Path) -> LocalArchive {
    LocalArchive::open(dir, options()).unwrap()
}

pub fn flush(archive: &dyn Archive) {
    assert!(archive.flush(Duration::from_secs(30)), "{:?}", archive.health());
}

pub fn search(archive: &dyn Archive, query: &Query) -> Vec<LogRecord> {
    let mut found = Vec::new();
    archive
        .search(query, &Stop::default(), &mut |record| {
            found.push(record.record.clone());
            true
        })
        .unwrap();
    found
}

pub fn all(archive: &dyn Archive) -> Vec<LogRecord> {
    search(archive, &Query::default())
}

pub fn ids(archive: &dyn Archive) -> Vec<RecordId> {
    let mut ids: Vec<_> = all(archive).into_iter().filter_map(|record| record.id).collect();
    ids.sort();
    ids
}
