//! Holds the encoding of events to `testdata/vectors/event` and to the dump of `spec/wire/event.md`: bytes of earlier
//! releases stay readable, and this one writes what it has always written. `TAMPU_WRITE_VECTORS=1` writes the bytes
//! that are missing.

use std::{fs, path::PathBuf};

use tampu_types::{
    ClockState, Incarnation, Time,
    event::{
        AttributeConfig, Criteria, Data, DataType, Declaration, DevState, EventSample, EventView, Failure, Format, KeptEvent,
        Kinds, Limits, Presence, Quality, Reason, Severity, Thresholds, Value, Writable, view::OwnedEvent,
    },
    named::UnknownName,
};

#[path = "support/page.rs"]
mod page;

const TIME: Time = Time(1_795_334_400_123_456_789);

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/event"))
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

/// The bytes of this name, written first if they are missing and shall be.
fn kept(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = folder().join(format!("{name}.hex"));
    if !path.exists() && std::env::var_os("TAMPU_WRITE_VECTORS").is_some() {
        fs::write(&path, to_hex(bytes)).unwrap();
    }
    from_hex(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn scalar() -> EventSample<'static> {
    EventSample {
        epoch: 2,
        time: TIME,
        number: 41,
        kinds: Kinds::CHANGE | Kinds::ARCHIVE,
        quality: Quality::Warning,
        ..EventSample::of(3, Value::scalar(&1.25f64))
    }
}

fn events<'a>(texts: &'a [String], errors: &'a [Failure]) -> Vec<(&'static str, EventSample<'a>)> {
    let at = |event: EventSample<'a>| EventSample { time: TIME, number: 1, kinds: Kinds::USER, epoch: 1, ..event };
    vec![
        ("v1-scalar", scalar()),
        ("v1-left-out", EventSample { left_out: 38, ..scalar() }),
        ("v1-age", EventSample { flags: 1, token: Some(7), age: 5_000_000_000, ..scalar() }),
        ("v1-boolean", at(EventSample::of(1, Value::scalar(&true)))),
        ("v1-uchar", at(EventSample::of(1, Value::spectrum(&[0u8, 255])))),
        ("v1-short", at(EventSample::of(1, Value::spectrum(&[-1i16, 2, 3])))),
        ("v1-ushort-image", at(EventSample::of(1, Value::image(&[1u16, 2, 3, 4, 5, 6], 3, 2)))),
        ("v1-long", at(EventSample::of(1, Value::scalar(&i32::MIN)))),
        ("v1-ulong", at(EventSample::of(1, Value::scalar(&u32::MAX)))),
        ("v1-long64", at(EventSample::of(1, Value::scalar(&i64::MIN)))),
        ("v1-ulong64", at(EventSample::of(1, Value::scalar(&u64::MAX)))),
        ("v1-float", at(EventSample::of(1, Value::spectrum(&[f32::INFINITY, -0.0])))),
        ("v1-double-empty", at(EventSample::of(1, Value::spectrum::<f64>(&[])))),
        ("v1-string", at(EventSample::of(1, Value::spectrum(texts)))),
        ("v1-state", at(EventSample::of(1, Value::scalar(&DevState::Moving)))),
        ("v1-encoded", at(EventSample::of(1, Value::encoded("JPEG", &[0xff, 0xd8, 0xff])))),
        ("v1-enum", at(EventSample { set_point: Some(Data::Enum(&[2])), ..EventSample::of(1, Value::label(&1)) })),
        ("v1-error", at(EventSample { quality: Quality::Invalid, errors, ..EventSample::without_value(1) })),
        (
            "v1-answer",
            at(EventSample { flags: 1, token: Some(0x0102_0304_0506_0708), ..EventSample::of(1, Value::scalar(&7i16)) }),
        ),
        ("v1-generic", at(EventSample { kinds: Kinds::GENERIC, name: "shutter", ..EventSample::of(1, Value::scalar(&7i16)) })),
    ]
}

#[test]
fn events_of_every_release() {
    let texts = ["".to_owned(), "déjà vu".to_owned()];
    let errors = [
        Failure {
            reason: "Io_Timeout".into(),
            description: "no answer".into(),
            origin: "Bus::read".into(),
            severity: Severity::Error,
        },
        Failure::new("Cryo_NoReading", "stage 2"),
    ];
    let mut names = Vec::new();
    for (name, event) in events(&texts, &errors) {
        let mut bytes = Vec::new();
        event.encode(&mut bytes).unwrap();
        let kept = kept(name, &bytes);
        assert_eq!(to_hex(&bytes), to_hex(&kept), "{name}");
        let read = EventView::parse(&kept).unwrap().to_event();
        assert_eq!(read.as_sample(), event, "{name}");
        names.push(format!("{name}.hex"));
    }
    names.extend(["future-event.hex", "v1-declaration.hex", "kept-v1-scalar.hex"].map(str::to_owned));
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "{name}: nobody knows what to expect of it");
    }
}

#[test]
fn members_of_a_later_release_are_kept() {
    let later = OwnedEvent { unknown: vec![0xf0, 0xf1, 0xf2, 0xf3, 1], ..owned(&scalar()) };
    let mut bytes = Vec::new();
    later.encode(&mut bytes).unwrap();
    let kept = kept("future-event", &bytes);
    let read = EventView::parse(&kept).unwrap().to_event();
    assert_eq!(read, later);
    let mut again = Vec::new();
    read.encode(&mut again).unwrap();
    assert_eq!(to_hex(&again), to_hex(&kept));
}

fn owned(event: &EventSample<'_>) -> OwnedEvent {
    let mut bytes = Vec::new();
    event.encode(&mut bytes).unwrap();
    EventView::parse(&bytes).unwrap().to_event()
}

#[test]
fn declarations_of_every_release() {
    let declaration = Declaration {
        attribute: 3,
        epoch: 2,
        presence: Presence::Declared,
        own_stream: false,
        for_hosts: false,
        redundant: true,
        config: AttributeConfig {
            max_x: 64,
            writable: Writable::ReadWrite,
            label: "pressure".into(),
            description: "of the cell".into(),
            unit: "mbar".into(),
            labels: vec!["a".into()],
            limits: Limits { alarm_high: Some(1e-6), ..Limits::default() },
            criteria: Criteria {
                change: Thresholds { rel: Some("5".parse().unwrap()), abs: Some("-1,2".parse().unwrap()) },
                archive_period_ms: Some(60_000),
                ..Criteria::default()
            },
            polled_ms: Some(200),
            ..AttributeConfig::new("SR/Vacuum/C01/Pressure".parse().unwrap(), DataType::Double, Format::Spectrum)
        },
        unknown: Vec::new(),
    };
    let mut bytes = Vec::new();
    declaration.encode(&mut bytes).unwrap();
    let kept = kept("v1-declaration", &bytes);
    assert_eq!(to_hex(&bytes), to_hex(&kept));
    assert_eq!(Declaration::parse(&kept).unwrap(), declaration);
}

#[test]
fn the_page_draws_the_bytes() {
    let mut bytes = Vec::new();
    scalar().encode(&mut bytes).unwrap();
    assert_eq!(to_hex(&page::hex_dump("wire/event.md", 0)), to_hex(&bytes));
}

#[test]
fn the_page_s_tables_are_the_code_s() {
    let rows = page::table("events.md", "data type");
    assert_eq!(rows.len(), DataType::ALL.len());
    for row in rows {
        let data_type: Result<DataType, UnknownName> = row[0].parse();
        assert_eq!((data_type.unwrap() as u8).to_string(), row[1]);
    }
    let rows = page::table("events.md", "kind");
    assert_eq!(rows.len(), tampu_types::event::EventKind::ALL.len());
    for (kind, row) in tampu_types::event::EventKind::ALL.into_iter().zip(rows) {
        assert_eq!((kind.name().to_owned(), (kind as u8).to_string()), (row[0].clone(), row[1].clone()));
    }
    let rows = page::table("events.md", "quality");
    for (quality, row) in Quality::ALL.into_iter().zip(rows) {
        assert_eq!((quality.name().to_owned(), (quality as u8).to_string()), (row[0].clone(), row[1].clone()));
    }
}

#[test]
fn an_event_as_a_history_keeps_it_is_read_and_written_as_ever() {
    let mut event = Vec::new();
    scalar().encode(&mut event).unwrap();
    let kept_event = KeptEvent {
        reason: Reason::Update,
        clock: ClockState::Free,
        attribute: 3,
        from: 5,
        number: 7,
        time: Time(11),
        received: Time(12),
        incarnation: Incarnation::from_bytes(std::array::from_fn(|index| index as u8)),
        source: "pump",
        name: "a/b/c/d",
        unit: "mbar",
        note: "",
        event: &event,
    };
    let mut bytes = Vec::new();
    kept_event.encode(&mut bytes);
    let vector = kept("kept-v1-scalar", &bytes);
    assert_eq!(to_hex(&bytes), to_hex(&vector));
    assert_eq!(KeptEvent::parse(&vector), Ok(kept_event));
}
