//! Records and batches for the archive's tests.
#![allow(dead_code)] // Each test file uses its part.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tampu_archive::query::Query;
use tampu_archive::{Appended, Archive, ArchiveError, Arrival, Checked, LocalArchive, Options, Stop};
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

pub const PATIENCE: Duration = Duration::from_secs(120);

/// An archive that is at it all the time.
pub fn eager() -> Options {
    Options { compact: true, share: 1.0, roll: 20 << 10, ..options() }
}

pub fn eager_at(dir: &Path) -> LocalArchive {
    LocalArchive::open(dir, eager()).unwrap()
}

pub fn numbers(archive: &dyn Archive) -> Vec<u64> {
    all(archive).iter().map(|record| record.id.unwrap().number).collect()
}

pub fn compact(archive: &dyn Archive) {
    archive.compact(&Stop::after(PATIENCE), &mut |_| {}).unwrap();
}

pub fn check(archive: &dyn Archive) -> Checked {
    archive.check(&Stop::default(), &mut |_| {}).unwrap()
}

/// Packets of ten records of one ring, from this packet on.
pub fn send(archive: &dyn Archive, packets: std::ops::Range<u64>) {
    for packet in packets {
        let records: Vec<_> = (packet * 10..packet * 10 + 10).map(|number| record(life(1), 0, number)).collect();
        append(archive, life(1), 0, packet, &records).unwrap();
    }
}

pub fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        // The archive may be at work: a folder can disappear while its parent is read.
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder != dir => continue,
            entries => entries.unwrap(),
        };
        for entry in entries.map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|found| found == extension) {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

pub fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Two thousand records in Parquet files, and the files.
pub fn in_parquet(dir: &Path) -> Vec<PathBuf> {
    let archive = eager_at(dir);
    send(&archive, 0..100);
    compact(&archive);
    let mut far: Vec<LogRecord> = (0..1000).map(|number| record(life(2), 0, number)).collect();
    far.iter_mut().for_each(|record| record.time.0 += 864_000 * SECOND);
    append(&archive, life(2), 0, 0, &far).unwrap();
    compact(&archive);
    assert_eq!(archive.health().in_files, 2000);
    drop(archive);
    files(dir, "parquet")
}
