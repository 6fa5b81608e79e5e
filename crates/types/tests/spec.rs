//! The specification's test vectors, read out of its pages and held against the code. A page and the code cannot drift
//! apart.

#[path = "support/page.rs"]
mod page;

use page::{hex_dump, table};
use tampu_types::{
    BatchHeader, ClockState, Datum, Domain, Incarnation, Level, LogRecord, Partition, RecordId, SourceName, Time, TopicName,
    log_batch::{LogBatchBuilder, OriginParts, RecordParts, decode_records},
    name::{escape, unescape},
};

#[test]
fn incarnations_and_record_ids() {
    for row in table("decisions/0001-identity.md", "boot") {
        let [boot, pid, start, text, bytes] = &row[..] else { panic!("{row:?}") };
        let incarnation = Incarnation { boot: boot.parse().unwrap(), pid: pid.parse().unwrap(), start: start.parse().unwrap() };
        assert_eq!(incarnation.to_string(), *text);
        assert_eq!(text.parse(), Ok(incarnation));
        let written: String = incarnation.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, *bytes);
        assert_eq!(RecordId { incarnation, ring: 3, number: 14 }.to_string(), format!("{text}.3.14"));
    }
}

#[test]
fn times() {
    for row in table("decisions/0002-time.md", "text") {
        let [text, ns, acs] = &row[..] else { panic!("{row:?}") };
        let time = Time(ns.parse().unwrap());
        assert_eq!(text.parse(), Ok(time));
        assert_eq!(time.to_acs(), *acs);
    }
}

#[test]
fn clock_states() {
    for row in table("decisions/0002-time.md", "clock state") {
        assert_eq!(format!("{:?}", ClockState::from_number(row[0].parse().unwrap())).to_lowercase(), row[1]);
    }
}

#[test]
fn escaped_names() {
    for row in table("decisions/0004-names.md", "name") {
        let [name, key, back] = &row[..] else { panic!("{row:?}") };
        assert_eq!(escape(name), *key);
        assert_eq!(unescape(key).as_ref(), Some(back));
    }
    for row in table("decisions/0004-names.md", "no escaped name") {
        assert_eq!(unescape(&row[0]), None, "{row:?}");
    }
}

#[test]
fn topics_and_partitions() {
    for row in table("decisions/0004-names.md", "topic") {
        assert_eq!(TopicName::new(row[0].clone()).unwrap().key(), row[1]);
    }
    for row in table("decisions/0004-names.md", "audiences") {
        let partition = Partition::of(row[0].split(',').map(str::trim));
        assert_eq!(partition.key(), row[1]);
        assert_eq!(Partition::from_key(&row[1]), Some(partition));
    }
    for row in table("decisions/0004-names.md", "no partition") {
        assert_eq!(Partition::from_key(&row[0]), None, "{row:?}");
    }
}

#[test]
fn levels() {
    let rows = table("decisions/0008-record-fields.md", "level");
    assert_eq!(rows.len(), Level::ALL.len());
    for (level, row) in Level::ALL.into_iter().zip(rows) {
        let expected =
            [level.name().to_owned(), level.number().to_string(), level.ordinal().to_string(), level.otel_severity().to_string()];
        assert_eq!(row, expected);
    }
}

#[test]
fn the_batch_header_byte_for_byte() {
    let header = BatchHeader {
        domain: Domain::new("alma").unwrap(),
        source: SourceName::new("CONTROL/DV01").unwrap(),
        incarnation: Incarnation { boot: 0x1a2b_3c4d, pid: 4711, start: 1_795_248_000_123_456_789 },
        stream: 2,
        first: 1_000_000,
        count: 3,
        type_id: 2,
        type_version: 1,
        acquired: Time(1_795_248_001_000_000_000),
        sent: Time(1_795_248_001_000_250_000),
        clock: ClockState::Synchronised,
        tai_offset: 37,
        flags: 0,
    };
    let body = b"\x05\0\0\0hello\0\0\0";
    let dump = hex_dump("wire/batch-header.md", 0);
    let mut written = Vec::new();
    header.encode(body.len() as u32, &mut written);
    written.extend_from_slice(body);
    let print = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    assert_eq!(print(&written), print(&dump), "left: written now; right: the page's");
    assert_eq!(BatchHeader::decode(&dump), Ok((header, &body[..])));
}

#[test]
fn a_log_batch_byte_for_byte() {
    let incarnation = Some(Incarnation { boot: 0x1a2b_3c4d, pid: 4711, start: 1_795_248_000_123_456_789 });
    let mut batch = LogBatchBuilder::new();
    let origin = OriginParts {
        incarnation,
        logger: "mount",
        file: "Mount.cpp",
        line: Some(52),
        audiences: &["Operator"],
        ..OriginParts::default()
    };
    let origin = batch.origin(&origin);
    let time = Time(1_795_248_001_000_000_000);
    let record = RecordParts {
        time,
        ring: 3,
        number: 14,
        level: Level::Warning,
        message: "cable wrap at limit",
        ..RecordParts::default()
    };
    batch.push(origin, &record, [("angle", "269.9")]).unwrap();
    let written = batch.finish();
    let print = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let dump = hex_dump("wire/log-batch.md", 0);
    assert_eq!(print(&written), print(&dump), "left: written now; right: the page's");

    let read = decode_records(&dump).unwrap();
    let expected = LogRecord {
        id: incarnation.map(|incarnation| RecordId { incarnation, ring: 3, number: 14 }),
        time,
        logger: "mount".to_owned(),
        file: "Mount.cpp".to_owned(),
        line: Some(52),
        audiences: vec!["Operator".to_owned()],
        data: vec![Datum::new("angle", "269.9")],
        ..LogRecord::new(Level::Warning, "cable wrap at limit")
    };
    assert_eq!(read, [expected]);
}
