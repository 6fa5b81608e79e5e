//! Programs that are not on the bus answer its questions, through the gateway of a real hub.

use std::{
    net::Shutdown,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tampu_bulk::control::{ControlCommand, command, list};
use tampu_bus::{
    Participant,
    gateway::GatewayClient,
    service::{CallError, Part, call},
};
use tampu_types::gateway::{
    Kind,
    frame::{FLAG_LAST, FLAG_REFUSED},
    messages::{Code, End, Hello, Opened, SERVE, Serve},
    question::{Answer, Passed},
};

use crate::{
    gateway::{Got, client, next, next_of, next_of_any, participant, socket},
    site::{PATIENCE, Site, until},
};

/// A client that answers services.
fn server(site: &Site, source: &str) -> GatewayClient {
    let hello = Hello { source: source.into(), features: vec![SERVE.to_owned()], ..Hello::default() };
    GatewayClient::connect(&socket(site), hello).unwrap()
}

fn serve(service: &str, name: Option<&str>, time_ms: Option<u32>) -> Serve {
    Serve { service: service.to_owned(), name: name.map(str::to_owned), time_ms }
}

fn answer(client: &mut GatewayClient, id: u32, number: u64, flags: u8, content: &[u8]) {
    let mut body = Vec::new();
    Answer { number, content }.encode(&mut body);
    client.send(Kind::Answer, flags, id, &body).unwrap();
}

/// Number, asker and octets of a question.
fn passed(got: &Got) -> (u64, String, Vec<u8>) {
    let passed = Passed::decode(&got.body).unwrap();
    (passed.number, passed.asker.to_owned(), passed.question.to_vec())
}

/// Asks on a thread, because the test answers itself. The service appears on the bus after a moment.
fn asking(native: &Participant, service: &'static str, question: &'static str) -> JoinHandle<Vec<Result<Part, CallError>>> {
    let native = native.clone();
    std::thread::spawn(move || {
        let until = Instant::now() + PATIENCE;
        loop {
            let all: Vec<_> = call(&native, service, question, PATIENCE).unwrap().collect();
            if !matches!(all[..], [] | [Err(CallError::Unanswered(_))]) || Instant::now() > until {
                return all;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

fn refusal(all: Vec<Result<Part, CallError>>) -> String {
    match &all[..] {
        [Ok(Part { content: Err(CallError::Refused { why, .. }), .. })] => why.clone(),
        _ => panic!("{all:?}"),
    }
}

fn ended(client: &mut GatewayClient) -> End {
    next_of_any(client, Kind::Ended).json()
}

#[test]
fn a_client_answers_in_parts_refuses_and_hears_that_nobody_reads() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let mut mount = server(&site, "CONTROL/Mount");
    assert_eq!(mount.welcome().features, [SERVE]);
    mount.send_json(Kind::Serve, 4, &serve("mount/position", None, Some(600_000))).unwrap();
    let opened: Opened = next_of(&mut mount, Kind::Opened).json();

    let asked = asking(&native, "mount/position", "where?");
    let (number, asker, octets) = passed(&next_of(&mut mount, Kind::Question));
    assert_eq!((asker.as_str(), &octets[..]), ("local", &b"where?"[..]));
    answer(&mut mount, 4, number, 0, b"180");
    answer(&mut mount, 4, number, FLAG_LAST, b"45");
    answer(&mut mount, 4, number, FLAG_LAST, b"too late");
    let parts: Vec<_> = asked.join().unwrap().into_iter().map(Result::unwrap).collect();
    let contents: Vec<_> = parts.iter().map(|part| part.content.clone().unwrap()).collect();
    assert_eq!(contents, ["180", "45"]);
    assert!(parts.iter().all(|part| Some(part.from) == opened.incarnation));

    let asked = asking(&native, "mount/position", "{}");
    let (second, ..) = passed(&next_of(&mut mount, Kind::Question));
    assert_eq!(second, number + 1);
    answer(&mut mount, 4, second, FLAG_LAST | FLAG_REFUSED, br#"{"error":"the drive is off"}"#);
    assert_eq!(refusal(asked.join().unwrap()), "the drive is off");

    // Without an answer, for its time.
    mount.send_json(Kind::Serve, 5, &serve("mount/slow", None, Some(1000))).unwrap();
    next_of(&mut mount, Kind::Opened);
    let asked = asking(&native, "mount/slow", "{}");
    let (first, ..) = passed(&next_of(&mut mount, Kind::Question));
    assert_eq!(next_of(&mut mount, Kind::Cancel).body, first.to_le_bytes());
    assert_eq!(refusal(asked.join().unwrap()), "its program has not answered within 1 s");

    // Seventeen at once.
    let all: Vec<_> = (0..17).map(|_| asking(&native, "mount/position", "{}")).collect();
    let numbers: Vec<u64> = (0..16).map(|_| passed(&next_of(&mut mount, Kind::Question)).0).collect();
    // The seventeenth is refused only while the others wait.
    until("one is refused", || all.iter().any(JoinHandle::is_finished));
    numbers.iter().for_each(|number| answer(&mut mount, 4, *number, FLAG_LAST, b"{}"));
    let all: Vec<_> = all.into_iter().flat_map(|asked| asked.join().unwrap()).map(|part| part.unwrap().content).collect();
    assert_eq!(all.iter().filter(|content| content.is_ok()).count(), 16);
    let full = all.iter().find_map(|content| content.as_ref().err()).unwrap().to_string();
    assert!(full.contains("16 questions are being answered already"), "{full}");

    // The end of the service refuses the question that waits.
    let asked = asking(&native, "mount/position", "{}");
    next_of(&mut mount, Kind::Question);
    mount.send(Kind::Close, 0, 4, &[]).unwrap();
    assert_eq!(ended(&mut mount).code, Code::Done);
    assert_eq!(refusal(asked.join().unwrap()), "its program answers no further questions");
}

#[test]
fn a_question_survives_a_broken_connection_and_no_new_one_waits_for_the_client() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let mut mount = server(&site, "CONTROL/Mount");
    mount.send_json(Kind::Serve, 1, &serve("mount/position", None, Some(60_000))).unwrap();
    next_of(&mut mount, Kind::Opened);
    let asked = asking(&native, "mount/position", "{}");
    let (number, ..) = passed(&next_of(&mut mount, Kind::Question));
    mount.socket().shutdown(Shutdown::Both).unwrap();
    let until = Instant::now() + PATIENCE;
    // A question that comes before the hub has noticed waits for the client.
    loop {
        let all: Vec<_> = call(&native, "mount/position", "{}", Duration::from_secs(1)).unwrap().collect();
        if !matches!(all[..], [] | [Err(CallError::Unanswered(_))]) {
            assert_eq!(refusal(all), "its program has lost its connection with the hub; try again");
            break;
        }
        assert!(Instant::now() < until, "{all:?}");
    }
    assert!(mount.resume().unwrap());
    answer(&mut mount, 1, number, FLAG_LAST, b"\"here\"");
    let parts = asked.join().unwrap();
    assert_eq!(parts[0].as_ref().unwrap().content.clone().unwrap(), "\"here\"");
    mount.bye().unwrap();
}

#[test]
fn services_of_clients_have_rules_and_names_of_their_own() {
    let site = Site::new();
    let policy = site.file(
        "policy.toml",
        "[[deny]]\nwho = \"local\"\nmay = [\"write\"]\nwhat = \"bulk/control/forbidden\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"query\"]\nwhat = \"mount/secret\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"set\"]\nwhat = \"bulk/control/shown\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"read\", \"set\"]\nwhat = \"bulk/control/hidden\"\n",
    );
    let config = site.file("tampu.toml", format!("[access]\npolicy = \"{policy}\"\n"));
    let _hub = site.hub_of_roles(&["--config", &config]);
    let native = participant(&site, "native");
    let mut old = client(&site, "old");
    old.send_json(Kind::Serve, 1, &serve("mount/position", None, None)).unwrap();
    let end = ended(&mut old);
    assert!(end.code == Code::Bad && end.error.contains("feature `serve`"), "{end:?}");

    let mut mount = server(&site, "CONTROL/Mount");
    for (id, service, name, time, code, words) in [
        (1, "log/query", None, None, Code::Bad, "one of the hub's own"),
        (2, "bulk/control", None, None, Code::Bad, "needs the `name`"),
        (3, "bulk/control", Some("a#b"), None, Code::Bad, "invalid name 'a#b'"),
        (4, "mount/position", None, Some(10), Code::Bad, "give 1000 to 600000 ms"),
        (5, "bulk/control", Some("forbidden"), None, Code::Denied, "bulk/control/forbidden"),
        (6, "", None, None, Code::Bad, ""),
    ] {
        mount.send_json(Kind::Serve, id, &serve(service, name, time)).unwrap();
        let end = ended(&mut mount);
        assert!(end.code == code && end.error.contains(words), "{service}: {end:?}");
    }
    mount.send_json(Kind::Serve, 7, &serve("mount/secret", None, None)).unwrap();
    next_of(&mut mount, Kind::Opened);
    let denied = asking(&native, "mount/secret", "{}").join().unwrap();
    assert!(matches!(&denied[..], [Ok(Part { content: Err(CallError::Denied(_)), .. })]), "{denied:?}");

    // Offers: each question reaches the one that it names, and lists are filtered.
    let mut ids = Vec::new();
    for (id, name) in [(8, "corr"), (9, "shown"), (10, "hidden")] {
        mount.send_json(Kind::Serve, id, &serve("bulk/control", Some(name), None)).unwrap();
        let opened: Opened = next_of(&mut mount, Kind::Opened).json();
        ids.push((id, name, opened.incarnation.unwrap().to_string()));
    }
    let answering = std::thread::spawn(move || {
        let mut stops = Vec::new();
        // The thread ends with the last command.
        while stops.last() != Some(&"corr") {
            let got = next(&mut mount);
            if got.kind != Kind::Question {
                continue;
            }
            let (number, _, octets) = passed(&got);
            let (_, name, process) = ids.iter().find(|(id, ..)| *id == got.id).unwrap();
            let question: Json = serde_json::from_slice(&octets).unwrap_or_else(|_| json!({}));
            assert!(question["name"].is_null() || question["name"] == *name, "{question}");
            if question["do"]["stop"].is_object() {
                stops.push(*name);
            }
            let state = json!({"name": name, "kind": "sender", "process": process, "source": "CONTROL/Mount", "stream": "s",
                "active": true, "starts": 0, "failure": null});
            answer(&mut mount, got.id, number, FLAG_LAST, state.to_string().as_bytes());
        }
        (mount, stops)
    });
    let until = Instant::now() + PATIENCE;
    let names = loop {
        let found = list(&native, PATIENCE).unwrap();
        let names: Vec<String> = found.iter().map(|state| state.name.to_string()).collect();
        if names.len() >= 2 {
            break names;
        }
        assert!(Instant::now() < until, "{names:?}");
    };
    assert_eq!(names, ["corr", "shown"]);
    let stop = |name: &str| command(&native, &name.parse().unwrap(), ControlCommand::Stop { flow: None }, PATIENCE);
    let denied = stop("shown").unwrap_err().to_string();
    assert!(denied.contains("bulk/control/shown"), "{denied}");
    let nameless = call(&native, "bulk/control", r#"{"do":{"stop":{}}}"#, PATIENCE).unwrap().first().next().unwrap();
    assert!(matches!(nameless, Err(CallError::Refused { why, .. }) if why.contains("needs the `name`")));
    assert_eq!(stop("corr").unwrap().name.to_string(), "corr");
    let (mount, stops) = answering.join().unwrap();
    assert_eq!(stops, ["corr"], "no refused command has reached the client");
    mount.bye().unwrap();
    // What was carried out stands in the audit.
    let audit = site.find(1, &["--contains", "corr: {\"stop\":{}}"]);
    let message = audit[0]["message"].as_str().unwrap();
    assert!(message.contains("did set the service bulk/control: corr: "), "{message}");
}
