//! Events to keep, and rows as lines to compare.

use std::{path::Path, time::Duration};

use tampu_archive::{Arrival, Find, Options, Stop, TableArchive};
use tampu_event::history::{SCHEMA, kept};
use tampu_types::{
    BatchHeader, ClockState, Domain, Incarnation, SourceName, Time,
    event::{Data, EventSample, Failure, KEPT_EVENT_TYPE, KeptEvent, Kinds, Quality, Reason, Severity, Shape, Value},
};

/// Opens the archive in a directory.
pub fn open(dir: &Path) -> TableArchive {
    let options = Options { linger: Duration::ZERO, share: 1.0, ..Options::new(Domain::new("lab").unwrap()) };
    TableArchive::open(dir, &SCHEMA, options).unwrap()
}

/// Twelve kept events from this number on: some of everything.
pub fn events(first: u64) -> Vec<Vec<u8>> {
    let texts = ["plain".to_owned(), "ünïcode °C".to_owned()];
    let failed = [Failure {
        reason: "TIMEOUT".into(),
        description: "no answer".into(),
        origin: "device".into(),
        severity: Severity::Error,
    }];
    (first..first + 12)
        .map(|number| {
            let time = Time(1_795_334_400_000_000_000 + number as i64 * 3_600_000_000_000);
            let at = |event: EventSample<'_>| {
                let event = EventSample { time, number, epoch: 2, kinds: Kinds::ARCHIVE | Kinds::CHANGE, ..event };
                let mut bytes = Vec::new();
                event.encode(&mut bytes).unwrap();
                bytes
            };
            let event = match number % 12 {
                0 => at(EventSample::of(3, Value::scalar(&1.25e-9f64))),
                1 => at(EventSample { quality: Quality::Alarm, ..EventSample::of(3, Value::scalar(&f64::NAN)) }),
                2 => at(EventSample::of(3, Value::scalar(&u64::MAX))),
                3 => at(EventSample::of(3, Value::scalar(&texts[1]))),
                4 => at(EventSample::of(3, Value::spectrum(&[1i16, -2, 3]))),
                5 => at(EventSample::of(3, Value::image(&[1u8, 2, 3, 4, 5, 6], 3, 2))),
                6 => at(EventSample { errors: &failed, ..EventSample::without_value(3) }),
                7 => at(EventSample::of(3, Value { data: Data::Enum(&[1]), shape: Shape::SCALAR })),
                8 => at(EventSample::of(3, Value::encoded("JPEG_RGB24", b"\xff\xd8"))),
                9 => at(EventSample::of(3, Value::spectrum(&texts))),
                10 => at(EventSample { set_point: Some(Data::Double(&[2.5])), ..EventSample::of(3, Value::scalar(&2.0f64)) }),
                _ => Vec::new(),
            };
            let (reason, note) = match (number % 12, event.is_empty()) {
                (_, true) => (Reason::Gap, "lost on the way"),
                (7, _) => (Reason::Update, "moving"),
                (0, _) => (Reason::First, ""),
                _ => (Reason::Update, ""),
            };
            let kept = KeptEvent {
                reason,
                clock: ClockState::Synchronised,
                attribute: 3,
                from: number,
                number,
                time,
                received: Time(time.0 + 1_000_000),
                incarnation: Incarnation { boot: 7, pid: 8, start: 9 },
                source: "pump",
                name: "Lab/Vacuum/1/Pressure",
                unit: "mbar",
                note,
                event: &event,
            };
            let mut sample = Vec::new();
            kept.encode(&mut sample);
            sample
        })
        .collect()
}

/// Adds them; returns how many were new.
pub fn add(archive: &TableArchive, samples: &[Vec<u8>]) -> u64 {
    let header = BatchHeader {
        domain: Domain::new("lab").unwrap(),
        source: SourceName::new("events@host").unwrap(),
        incarnation: Incarnation { boot: 1, pid: 1, start: 1 },
        stream: 0,
        first: 0,
        count: samples.len() as u32,
        type_id: KEPT_EVENT_TYPE,
        type_version: 1,
        acquired: Time(0),
        sent: Time(0),
        clock: ClockState::Unknown,
        tai_offset: 0,
        flags: 0,
    };
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let arrival = Arrival { header: &header, samples: &samples, received: Time(5), advances: None };
    let appended = archive.append(&arrival).unwrap();
    assert!(archive.flush(Duration::from_secs(60)));
    appended.records
}

/// Every event in it, each a line.
pub fn lines(archive: &TableArchive) -> Vec<String> {
    let all = Find { since: None, until: None, marks: u16::MAX, column: 7, wants: &|_| true, after: None, newest_first: false };
    let mut lines = Vec::new();
    let swept = archive.find(&all, &Stop::default(), &mut |row| {
        let KeptEvent { reason, clock, attribute, from, number, time, received, incarnation, source, name, unit, note, event } =
            kept(&row).unwrap();
        let event: String = event.iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push(
            serde_json::json!({"reason": reason, "clock": clock as u8, "attribute": attribute, "from": from, "number": number, "time": time.0,
                "received": received.0, "incarnation": incarnation.to_string(), "source": source, "name": name, "unit": unit, "note": note,
                "event": event})
            .to_string(),
        );
        true
    });
    assert!(swept.unwrap().complete);
    lines
}
