//! Demands on each decoder for any bytes: it returns, and a value it accepted survives being written and read again.
//!
//! The fuzz targets call these, and so does `crates/types/tests/mutations.rs`, with seeded mutations on the stable
//! toolchain.

use tampu_types::{
    BatchHeader, Incarnation, LogRecord, Time, epics,
    event::{Declaration, EventView, KeptEvent, view::Routing},
    frames::{Frames, Framing},
    glob::{self, Glob},
    json_lines::{JsonLinesReader, JsonLinesWriter},
    log_batch::{LogBatchView, decode_records, encode_records},
    syslog,
    units::{duration_text, parse_duration, parse_size},
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

/// An event. Compared by its bytes, because NaN is not equal to itself.
pub fn event(bytes: &[u8]) {
    let Ok(view) = EventView::parse(bytes) else { return };
    let routing = Routing::of(bytes).expect("an event has a head");
    assert_eq!((routing.attribute, routing.number, routing.kinds), (view.attribute, view.number, view.kinds));
    if let Some(value) = &view.value {
        assert_eq!(value.number(value.len()), None);
    }
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    view.to_event().encode(&mut once).expect("what was read can be written");
    EventView::parse(&once).expect("what was written can be read").to_event().encode(&mut twice).expect("and written");
    assert_eq!(once, twice);
}

/// An event as a history keeps it.
pub fn kept_event(bytes: &[u8]) {
    let Ok(kept) = KeptEvent::parse(bytes) else { return };
    let mut again = Vec::new();
    kept.encode(&mut again);
    assert_eq!(KeptEvent::parse(&again), Ok(kept));
}

/// A server's word about an attribute.
pub fn declaration(bytes: &[u8]) {
    let Ok(declaration) = Declaration::parse(bytes) else { return };
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    declaration.encode(&mut once).expect("what was read can be written");
    Declaration::parse(&once).expect("what was written can be read").encode(&mut twice).expect("and written");
    assert_eq!(once, twice);
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

/// A stream of syslog messages: each becomes a record, whose message is written so that it is read again.
pub fn syslog_stream(bytes: &[u8]) {
    for_frames(Framing::Syslog, bytes, |message| {
        let record = syslog::parse(message, Time(1_790_000_000_000_000_000));
        let mut text = String::new();
        syslog::encode(&record, 16, &mut text);
        let again = syslog::parse(text.as_bytes(), Time(0));
        assert_eq!((&again.message, again.level), (&record.message, record.level));
        assert!(again.data.iter().all(|datum| datum.name != "syslog_fault"), "{text}");
    });
}

/// A stream of lines from an IOC.
pub fn epics_stream(bytes: &[u8]) {
    for_frames(Framing::Lines, bytes, |line| {
        let record = epics::parse(line, Time(1_790_000_000_000_000_000));
        assert!(record.message.len() <= 3 * line.len());
    });
}

/// Calls `act` with each message, and sees that no more is handed out than came.
fn for_frames(framing: Framing, bytes: &[u8], mut act: impl FnMut(&[u8])) {
    let mut frames = Frames::new(framing, 512);
    let mut handed_out = 0;
    let mut sink = |frame: tampu_types::frames::Frame<'_>| {
        handed_out += frame.bytes.len();
        assert!(frame.bytes.len() <= 512 && frame.bytes.len() as u64 <= frame.whole);
        act(frame.bytes);
    };
    for piece in bytes.chunks(100) {
        frames.push(piece, &mut sink);
    }
    frames.end(&mut sink);
    assert!(handed_out <= bytes.len());
}

/// A pattern with wildcards and a text, separated by a line end. Few steps are needed for any of them.
pub fn wildcards(bytes: &[u8]) {
    let Ok(input) = std::str::from_utf8(bytes) else { return };
    let (pattern, text) = input.split_once('\n').unwrap_or((input, input));
    let found = glob::matches(pattern, text);
    assert!(found == (pattern == text) || glob::has_wildcard(pattern));
    assert!(glob::matches("*", text) && glob::matches(&format!("{text}*"), text));
    let folded = Glob::ignoring_case(pattern);
    assert_eq!(folded.matches(text), glob::matches_ignoring_case(pattern, text));
    let steps = std::cell::Cell::new(0_usize);
    glob::matches_path(pattern, text, |part, name| {
        steps.set(steps.get() + 1);
        part == name
    });
    let parts = |text: &str| text.split('/').count();
    assert!(steps.get() <= (parts(pattern) + 1) * (parts(text) + 1), "{} steps", steps.get());
}

/// Sizes, durations and times as text.
pub fn units(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(size) = parse_size(text) {
        assert_eq!(parse_size(&size.to_string()), Ok(size));
    }
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&duration_text(duration)), Ok(duration));
    }
    for time in [text.parse::<Time>(), Time::from_rfc3339(text)].into_iter().flatten() {
        assert_eq!(Time::from_rfc3339(&time.to_rfc3339()), Ok(time));
    }
}
