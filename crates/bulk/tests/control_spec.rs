//! The vectors of `spec/bulk-control.md`: questions and answers of the control of transfers.

use serde_json::json;
use tampu_bulk::{
    Name, Protection,
    control::{ControlCommand, ControlKind, ControlQuestion, ControlState, OpenCommand, StartCommand},
    settings::Protocol,
};

fn vector(name: &str) -> &'static str {
    let page = include_str!("../../../spec/bulk-control.md");
    let (_, after) = page.split_once(&format!("```json vector={name}\n")).expect("the page has the vector");
    after.split_once("\n```").expect("the vector ends").0
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

const PROCESS: &str = "1a2b3c4d-4711-1795248000123456789";

#[test]
fn questions_are_as_the_page_shows_them() {
    let of = |offer: &str, command| ControlQuestion { name: Some(name(offer)), process: None, command };
    let start = StartCommand {
        flow: Some(name("spectra")),
        parameter: "uid://A002/X1".to_owned(),
        file: Some("run7/dump.bin".to_owned()),
    };
    let open = OpenCommand {
        flows: vec![name("spectra")],
        protocol: Some(Protocol::Udp),
        checksum: Some(true),
        protection: Some(Protection::Encrypted),
    };
    let start = ControlQuestion { process: Some(PROCESS.to_owned()), ..of("corr", ControlCommand::Start(start)) };
    for (vector_name, question) in [
        ("list", ControlQuestion::default()),
        ("start", start),
        ("pace", of("corr", ControlCommand::Pace { flow: None, bytes_per_s: 50e6 })),
        ("stop", of("corr", ControlCommand::Stop { flow: Some(name("spectra")) })),
        ("open", of("archive", ControlCommand::Open(open))),
        ("close", of("archive", ControlCommand::Close)),
    ] {
        assert_eq!(serde_json::to_string(&question).unwrap(), vector(vector_name));
        assert_eq!(serde_json::from_str::<ControlQuestion>(vector(vector_name)).unwrap(), question);
    }
    assert_eq!(serde_json::from_str::<ControlQuestion>("{}").unwrap(), ControlQuestion::default());
}

#[test]
fn answers_are_as_the_page_shows_them_and_may_gain_members() {
    let state = ControlState {
        name: name("corr"),
        kind: ControlKind::Sender,
        process: PROCESS.to_owned(),
        source: "CORR".to_owned(),
        stream: name("correlator"),
        active: true,
        starts: 1,
        failure: None,
        report: json!({"sender": {}}),
    };
    assert_eq!(serde_json::to_string(&state).unwrap(), vector("state"));
    let later = vector("state").replacen('{', "{\"later\":1,", 1);
    assert_eq!(serde_json::from_str::<ControlState>(&later).unwrap(), state);
}

#[test]
fn members_that_a_command_does_not_have_are_refused() {
    for wrong in [
        r#"{"name":"corr","later":1}"#,
        r#"{"name":"corr","do":{"stop":{"flows":["a"]}}}"#,
        r#"{"name":"corr","do":{"start":{"path":"/etc/passwd"}}}"#,
        r#"{"name":"corr","do":{"pace":{}}}"#,
        r#"{"name":"corr","do":{"pace":{"bytes_per_s":"fast"}}}"#,
        r#"{"name":"archive","do":{"open":{"endpoint":"0.0.0.0:1"}}}"#,
        r#"{"name":"corr","do":{"stop":{},"pause":{}}}"#,
        r#"{"name":"corr","do":"state","do":{"stop":{}}}"#,
        r#"{"name":"a#b"}"#,
        r#"{"name":"corr","do":"explode"}"#,
    ] {
        assert!(serde_json::from_str::<ControlQuestion>(wrong).is_err(), "{wrong}");
    }
}
