//! What is demanded of each decoder for any bytes: it returns, and what it accepted survives being written and read again.
//!
//! The fuzz targets call these, and so does `crates/types/tests/mutations.rs`, with seeded mutations on the stable toolchain.

use tampu_types::{
    BatchHeader, Incarnation, LogRecord,
    json_lines::{JsonLinesReader, JsonLinesWriter},
    log_batch::{LogBatchView, decode_records, encode_records},
    xml::{AcsXmlOptions, AcsXmlReader, AcsXmlWriter},
};

/// The header before every batch.
pub fn batch_header(bytes: &[u8]) {
    let Ok((header, body)) = BatchHeader::decode(bytes) else { return };
    let mut again = Vec::new();
    header.encode(body.len() as u32, &mut again);
    again.extend_from_slice(body);
    assert_eq!(BatchHeader::decode(&again), Ok((header, body)));
}

/// A batch of log records.
pub fn log_batch(bytes: &[u8]) {
    let Ok(view) = LogBatchView::parse(bytes) else { return };
    // Shared texts can stand for far more than the bytes they came in; records are made of what fits a test.
    let mut left = 1usize << 20;
    let mut records: Vec<LogRecord> = Vec::new();
    for record in view.records().flatten() {
        let Some(rest) = left.checked_sub(record.expanded_len()) else { break };
        left = rest;
        records.push(record.to_record());
    }
    let again = encode_records(&records).expect("a small batch");
    assert_eq!(decode_records(&again), Ok(records));
}

/// An ACS log file.
pub fn acs_xml(bytes: &[u8]) {
    let records: Vec<LogRecord> = AcsXmlReader::new(bytes, "fuzz").flatten().collect();
    let options = AcsXmlOptions { nanoseconds: true, identity: true, received: true, one_line: false };
    let mut writer = AcsXmlWriter::new(Vec::new(), "fuzz", options).expect("memory takes it");
    for record in &records {
        writer.record(record).expect("memory takes it");
    }
    let text = writer.finish().expect("memory takes it");
    let expected = records.into_iter().map(|mut record| {
        // Ids of imported records are computed again, not written.
        record.id = record.id.filter(|id| id.incarnation != Incarnation::default());
        Ok(record)
    });
    assert_eq!(AcsXmlReader::new(&text[..], "again").collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Records as JSON, one a line.
pub fn json_lines(bytes: &[u8]) {
    let records: Vec<LogRecord> = JsonLinesReader::new(bytes, "fuzz").flatten().collect();
    let mut writer = JsonLinesWriter::new(Vec::new());
    for record in &records {
        writer.record(record).expect("memory takes it");
    }
    let text = writer.finish().expect("memory takes it");
    let expected: Vec<_> = records.into_iter().map(Ok).collect();
    assert_eq!(JsonLinesReader::new(&text[..], "again").collect::<Vec<_>>(), expected);
}
