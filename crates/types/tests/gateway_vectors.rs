//! Holds the frames of the gateway to `testdata/vectors/gateway` and to the dumps of `spec/wire/gateway.md`.
//! `TAMPU_WRITE_VECTORS=1` writes the files if they are missing.

use std::{fs, path::PathBuf};

use serde::Serialize;
use tampu_types::{
    BatchHeader, ClockState, Domain, Incarnation, SourceName, Time,
    event::{EventSample, Kinds, Quality, Reason, Value},
    gateway::{
        Frame, Kind,
        events::{EventItem, events},
        frame::{FLAG_AT_ONCE, FLAG_LAST, FLAG_REFUSED, put_sample, samples},
        json_form::{from_text, to_text},
        messages::{
            Big, Code, Declare, End, From, GapInfo, Hello, Life, Notice, Open, Opened, Position, Receipt, SERVE, Serve,
            StreamInfo, Welcome,
        },
        put_frame,
        question::{Answer, Ask, Passed},
    },
};

#[path = "support/page.rs"]
mod page;

const PAGE: &str = "wire/gateway.md";
const TIME: Time = Time(1_795_334_400_123_456_789);

fn incarnation() -> Incarnation {
    Incarnation { boot: 0x1a2b_3c4d, pid: 4711, start: 1_795_248_000_123_456_789 }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/gateway"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn frame(kind: Kind, flags: u8, id: u32, number: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, kind, flags, id, number, body);
    bytes
}

fn json(kind: Kind, id: u32, number: u64, body: &impl Serialize) -> Vec<u8> {
    frame(kind, 0, id, number, &serde_json::to_vec(body).unwrap())
}

fn publish() -> Vec<u8> {
    let mut body = Vec::new();
    put_sample(&mut body, b"hello");
    put_sample(&mut body, b"you");
    body
}

fn ask() -> Vec<u8> {
    let mut body = Vec::new();
    Ask { timeout_ms: 5000, all: false, service: "log/stat", question: b"{}" }.encode(&mut body);
    body
}

fn question() -> Vec<u8> {
    let mut body = Vec::new();
    Passed { number: 1, timeout_ms: 10_000, asker: "local", question: br#"{"name":"corr"}"# }.encode(&mut body);
    body
}

fn read() -> Vec<u8> {
    let mut body = Vec::new();
    Passed { number: 1, timeout_ms: 10_000, asker: "", question: b"{}" }.encode(&mut body);
    body
}

fn answer(content: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    Answer { number: 1, content }.encode(&mut body);
    body
}

fn batch() -> Vec<u8> {
    let header = BatchHeader {
        flags: 0,
        clock: ClockState::Synchronised,
        type_id: 1,
        type_version: 1,
        tai_offset: 37,
        incarnation: incarnation(),
        stream: 2,
        count: 2,
        first: 1_000_000,
        acquired: TIME,
        sent: Time(TIME.0 + 250_000),
        domain: Domain::new("alma").unwrap(),
        source: SourceName::new("CONTROL/DV01").unwrap(),
    };
    let body = publish();
    let mut bytes = Vec::new();
    header.encode(body.len() as u32, &mut bytes);
    bytes.extend_from_slice(&body);
    bytes
}

fn event() -> Vec<u8> {
    let event = EventSample {
        epoch: 2,
        time: TIME,
        number: 41,
        kinds: Kinds::CHANGE | Kinds::ARCHIVE,
        quality: Quality::Warning,
        ..EventSample::of(3, Value::scalar(&1.25f64))
    };
    let mut bytes = Vec::new();
    event.encode(&mut bytes).unwrap();
    let item = EventItem {
        attribute: 7,
        reason: Reason::First,
        unknown_before: false,
        sent: TIME,
        received: Time(TIME.0 + 300_000),
        event: &bytes,
    };
    let mut body = Vec::new();
    item.put(&mut body);
    body
}

/// A session: the direction, and each frame.
fn session() -> Vec<(&'static str, Vec<u8>)> {
    let features = vec![SERVE.to_owned()];
    let hello = Hello {
        versions: vec![1],
        features: features.clone(),
        source: "CONTROL/DV01".into(),
        client: "vectors 1".into(),
        ..Hello::default()
    };
    let welcome = Welcome {
        version: 1,
        features,
        hub: "0.1.0".into(),
        domain: "alma".into(),
        session: "000102030405060708090a0b0c0d0e0f".into(),
        principal: "user 1000".into(),
        beat_ms: 2000,
        resume_ms: 60_000,
        window: 8 << 20,
        frame: 16 << 20,
        ..Welcome::default()
    };
    let position = Position(incarnation(), 2, Big(1_000_000));
    let open = Open { topics: vec!["weather/*".into()], from: From::Positions(vec![position]), ..Open::default() };
    let stream = StreamInfo {
        incarnation: incarnation(),
        stream: 2,
        source: "CONTROL/DV01".into(),
        topic: "weather/wind".into(),
        partition: Vec::new(),
        type_id: 1,
        version: 1,
    };
    let gap = GapInfo {
        incarnation: incarnation(),
        stream: 2,
        from: Big(1_000_002),
        to: None,
        why: "writer died".into(),
        filled: false,
    };
    let life = Life { source: "CONTROL/DV01".into(), incarnation: incarnation(), state: "died".into() };
    let declare = Declare { topic: Some("weather/wind".into()), ..Declare::default() };
    let opened = Opened { incarnation: Some(incarnation()), stream: Some(0), ..Opened::default() };
    let receipt = Receipt { written: Big(2), delivered: Some(Big(1)), readers: 1, ..Receipt::default() };
    let notice = Notice { attribute: 7, reason: "source died".into(), missed: None };
    let serve = Serve { service: "bulk/control".into(), name: Some("corr".into()), ..Serve::default() };
    let reads = Serve { read: Some(2), fresh_ms: Some(100), ..Serve::default() };
    let serving = Opened { incarnation: Some(incarnation()), ..Opened::default() };
    let mut part = incarnation().to_bytes().to_vec();
    part.extend_from_slice(b"{}");
    vec![
        ("client", json(Kind::Hello, 0, 0, &hello)),
        ("hub", json(Kind::Welcome, 0, 0, &welcome)),
        ("client", json(Kind::Open, 1, 1, &open)),
        ("client", frame(Kind::Credit, 0, 1, 2, &(1u64 << 20).to_le_bytes())),
        ("client", json(Kind::Declare, 2, 3, &declare)),
        ("client", frame(Kind::Publish, FLAG_AT_ONCE, 2, 4, &publish())),
        ("client", frame(Kind::Ask, 0, 3, 5, &ask())),
        ("hub", json(Kind::Opened, 1, 1, &Opened::default())),
        ("hub", json(Kind::Stream, 1, 2, &stream)),
        ("hub", frame(Kind::Data, 0, 1, 3, &batch())),
        ("hub", json(Kind::Gap, 1, 4, &gap)),
        ("hub", json(Kind::Life, 1, 5, &life)),
        ("hub", json(Kind::Opened, 2, 6, &opened)),
        ("hub", json(Kind::Receipt, 2, 7, &receipt)),
        ("hub", frame(Kind::Part, 0, 3, 8, &part)),
        ("hub", json(Kind::Ended, 3, 9, &End::default())),
        ("hub", frame(Kind::Events, 0, 4, 10, &event())),
        ("hub", json(Kind::Notice, 4, 11, &notice)),
        ("client", frame(Kind::Ack, 0, 0, 0, &11u64.to_le_bytes())),
        ("client", frame(Kind::Close, 0, 1, 6, &[])),
        ("hub", json(Kind::Ended, 1, 12, &End::because(Code::Done, ""))),
        ("client", json(Kind::Serve, 5, 7, &serve)),
        ("hub", json(Kind::Opened, 5, 13, &serving)),
        ("hub", frame(Kind::Question, 0, 5, 14, &question())),
        ("client", frame(Kind::Answer, 0, 5, 8, &answer(br#"{"name":"corr"}"#))),
        ("client", frame(Kind::Answer, FLAG_LAST, 5, 9, &answer(b""))),
        ("client", frame(Kind::Answer, FLAG_LAST | FLAG_REFUSED, 5, 10, &answer(br#"{"error":"start it first"}"#))),
        ("hub", frame(Kind::Cancel, 0, 5, 15, &1u64.to_le_bytes())),
        ("client", json(Kind::Serve, 6, 11, &reads)),
        ("hub", json(Kind::Opened, 6, 16, &serving)),
        ("hub", frame(Kind::Question, 0, 6, 17, &read())),
        ("client", frame(Kind::Publish, FLAG_AT_ONCE, 2, 12, &publish())),
        ("client", frame(Kind::Answer, FLAG_LAST, 6, 13, &answer(b""))),
        ("client", json(Kind::Bye, 0, 0, &End::default())),
    ]
}

/// The text of this file, written first if it is missing and shall be.
fn kept(name: &str, text: &str) -> String {
    let path = folder().join(name);
    if !path.exists() && std::env::var_os("TAMPU_WRITE_VECTORS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(&path, text).unwrap();
    }
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_page_has_the_frames_that_are_written() {
    let hello = br#"{"versions":[1],"source":"CONTROL/DV01","frame":8}"#;
    let frames = [
        frame(Kind::Hello, 0, 0, 0, hello),
        frame(Kind::Credit, 0, 1, 2, &(1u64 << 20).to_le_bytes()),
        frame(Kind::Publish, FLAG_AT_ONCE, 2, 4, &publish()),
        frame(Kind::Ask, 0, 3, 5, &ask()),
        frame(Kind::Question, 0, 5, 14, &question()),
        frame(Kind::Answer, FLAG_LAST, 5, 8, &answer(b"{}")),
    ];
    for (which, written) in frames.iter().enumerate() {
        assert_eq!(hex(written), hex(&page::hex_dump(PAGE, which)), "left: written; right: the page's dump {which}");
    }
    let read: Hello = serde_json::from_slice(hello).unwrap();
    assert_eq!((read.versions, read.frame), (vec![1], Some(8)));
}

#[test]
fn the_page_has_every_kind() {
    for row in page::table(PAGE, "kind") {
        let kind = Kind::of(row[0].parse().unwrap()).unwrap_or_else(|| panic!("{row:?}"));
        assert_eq!(kind.name().to_uppercase(), row[1]);
        assert_eq!(kind.is_counted(), row[3] == "yes", "{row:?}");
        assert_eq!(kind.is_of_client(), row[2] != "hub", "{row:?}");
    }
    assert_eq!(page::table(PAGE, "kind").len(), Kind::ALL.len());
}

#[test]
fn a_session_is_written_as_the_file_has_it() {
    let text: String = session().iter().map(|(from, frame)| format!("{from}\t{}\n", hex(frame))).collect();
    assert_eq!(text, kept("session.txt", &text));
    for (from, bytes) in session() {
        let (frame, rest) = Frame::first(&bytes, 1 << 20).unwrap().unwrap();
        assert!(rest.is_empty());
        if frame.header.kind != Kind::Ack && frame.header.kind != Kind::Bye {
            assert_eq!(frame.header.kind.is_of_client(), from == "client");
        }
    }
    assert_eq!(samples(&publish()).map(Result::unwrap).collect::<Vec<_>>(), [&b"hello"[..], b"you"]);
}

#[test]
fn the_json_form_is_written_as_the_file_has_it() {
    let text: String = session()
        .iter()
        .map(|(from, bytes)| {
            let (frame, _) = Frame::first(bytes, 1 << 20).unwrap().unwrap();
            format!("{from}\t{}\n", to_text(&frame).unwrap())
        })
        .collect();
    let kept = kept("session-json.txt", &text);
    assert_eq!(text, kept);
    for ((from, bytes), line) in session().iter().zip(kept.lines()) {
        if *from == "client" {
            let read = from_text(line.split_once('\t').unwrap().1).unwrap();
            let (frame, again) =
                (Frame::first(bytes, 1 << 20).unwrap().unwrap().0, Frame::first(&read, 1 << 20).unwrap().unwrap().0);
            let head = |frame: &Frame<'_>| (frame.header.kind, frame.header.flags, frame.header.id, frame.header.number);
            assert_eq!(head(&frame), head(&again));
            // The members of a body that is JSON may have another order.
            let json = |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).map_err(|_| body.to_vec());
            assert_eq!(json(frame.body), json(again.body), "{line}");
        }
    }
}

#[test]
fn texts_that_are_no_frames_say_why() {
    for (text, words) in [
        ("", "no frame"),
        ("[]", "no frame"),
        (r#"{"kind":"nothing"}"#, "'nothing'"),
        (r#"{"kind":"credit","id":1,"number":7}"#, "no frame"),
        (r#"{"kind":"credit","id":1,"number":"7","body":{"value":7}}"#, "credit"),
        (r#"{"kind":"open","id":1,"number":"7","body":[]}"#, "open: the body is no object"),
        (r#"{"kind":"publish","id":1,"number":"7","body":{"samples":["?"]}}"#, "publish: sample 0: invalid base64"),
        (r#"{"kind":"publish","id":1,"number":"7","body":{"samples":[{"value":1}]}}"#, "needs its type"),
        (r#"{"kind":"ask","id":1,"number":"7","body":{"service":"log/stat"}}"#, "timeout_ms"),
        (r#"{"kind":"answer","id":1,"number":"7","body":{"content":{}}}"#, "answer: missing field `question`"),
        (r#"{"kind":"answer","id":1,"number":"7","body":{"question":"1","content":{"base64":"?"}}}"#, "invalid base64"),
    ] {
        let why = from_text(text).unwrap_err().to_string();
        assert!(why.contains(words), "{text}: {why}");
    }
}

#[test]
fn events_are_written_as_the_file_has_them() {
    let bytes = event();
    let text = bytes.chunks(32).map(|line| hex(line) + "\n").collect::<String>();
    assert_eq!(text, kept("events.hex", &text));
    let item = events(&bytes).next().unwrap().unwrap();
    assert_eq!((item.attribute, item.reason, item.event.len()), (7, Reason::First, 68));
}
