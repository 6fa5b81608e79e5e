//! Programs that are not on the bus answer its questions, through the gateway of a real hub.

use std::{
    net::Shutdown,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tampu_bulk::control::{ControlCommand, command, list};
use tampu_bus::{
    Participant,
    gateway::GatewayClient,
    service::{CallError, Limits, Part, Permission, call},
};
use tampu_event::ask;
use tampu_types::{
    TopicName,
    event::{AttributeConfig, Data, DataType, EventSample, Format, Value},
    gateway::{
        Kind,
        frame::{FLAG_LAST, FLAG_REFUSED},
        messages::{Code, Declare, End, Hello, Opened, SERVE, Serve},
        question::{Answer, Ask, Passed},
    },
};

use crate::{
    gateway::{Got, body_of, client, next, next_of, next_of_any, participant, socket},
    site::{PATIENCE, Site, until},
};

/// A client that answers services.
fn server(site: &Site, source: &str) -> GatewayClient {
    let hello = Hello { source: source.into(), features: vec![SERVE.to_owned()], ..Hello::default() };
    GatewayClient::connect(&socket(site), hello).unwrap()
}

fn serve(service: &str, name: Option<&str>, time_ms: Option<u32>) -> Serve {
    Serve { service: service.to_owned(), name: name.map(str::to_owned), time_ms, ..Serve::default() }
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

    // A question to all that is refused everywhere ends in order, and says why nobody answered.
    let mut panel = client(&site, "panel");
    let mut body = Vec::new();
    Ask { timeout_ms: 60_000, all: true, service: "mount/position", question: b"{}" }.encode(&mut body);
    panel.send(Kind::Ask, 0, 9, &body).unwrap();
    let (third, ..) = passed(&next_of(&mut mount, Kind::Question));
    answer(&mut mount, 4, third, FLAG_LAST | FLAG_REFUSED, br#"{"error":"the drive is off"}"#);
    let end = ended(&mut panel);
    assert!(end.code == Code::Done && end.error.contains("the drive is off"), "{end:?}");

    // Neither does another process that hangs hide the reason.
    mount.send_json(Kind::Serve, 6, &serve("mount/brakes", None, Some(600_000))).unwrap();
    next_of(&mut mount, Kind::Opened);
    let held = Arc::new(Mutex::new(Vec::new()));
    let holder = held.clone();
    let brakes = TopicName::new("mount/brakes").unwrap();
    let hold = move |request| holder.lock().push(request);
    let hanging = tampu_bus::service::serve(&native, &brakes, Permission::Everybody, &Limits::inline(), hold).unwrap();
    let end = loop {
        // The service that hangs appears on the bus after a moment.
        let before = held.lock().len();
        let mut body = Vec::new();
        Ask { timeout_ms: 2000, all: true, service: "mount/brakes", question: b"{}" }.encode(&mut body);
        panel.send(Kind::Ask, 0, 10, &body).unwrap();
        let (number, ..) = passed(&next_of(&mut mount, Kind::Question));
        answer(&mut mount, 6, number, FLAG_LAST | FLAG_REFUSED, br#"{"error":"the brakes are on"}"#);
        let end = ended(&mut panel);
        if held.lock().len() > before {
            break end;
        }
    };
    assert!(end.code == Code::Done && end.error.contains("the brakes are on"), "{end:?}");
    drop(hanging);
    held.lock().clear();
    panel.bye().unwrap();

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

fn reading(value: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    EventSample::of(0, Value::scalar(&value)).encode(&mut bytes).unwrap();
    body_of(&[&bytes])
}

/// Asks for the current value on a thread: the value, or its error. The attribute appears after a moment.
fn asking_for(native: &Participant, name: &'static str) -> JoinHandle<Result<f64, (String, String)>> {
    let native = native.clone();
    std::thread::spawn(move || {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = ask::get(&native, &[name.parse().unwrap()], PATIENCE).unwrap();
            if let Some((_, _, event)) = found.first() {
                return match event.errors.first() {
                    Some(error) => Err((error.reason.clone(), error.description.clone())),
                    None => match event.as_sample().value.map(|value| value.data) {
                        Some(Data::Double([value])) => Ok(*value),
                        other => panic!("{other:?}"),
                    },
                };
            }
            assert!(Instant::now() < until, "no server has {name}");
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

#[test]
fn a_question_for_a_current_value_reaches_the_program_of_the_attribute() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let mut mount = server(&site, "CONTROL/Mount");
    let config = AttributeConfig::new("obs/mount/1/az".parse().unwrap(), DataType::Double, Format::Scalar);
    mount.send_json(Kind::Declare, 1, &Declare { attribute: Some(Box::new(config)), ..Declare::default() }).unwrap();
    mount.send_json(Kind::Declare, 2, &Declare { topic: Some("mount/raw".into()), ..Declare::default() }).unwrap();
    next_of(&mut mount, Kind::Opened);
    next_of(&mut mount, Kind::Opened);
    let fresh = |read, fresh_ms| Serve { read: Some(read), fresh_ms: Some(fresh_ms), ..Serve::default() };
    for (id, serve, words) in [
        (3, fresh(9, 0), "9 is no publisher of this session"),
        (4, fresh(2, 0), "publisher 2 has a topic"),
        (5, Serve { fresh_ms: None, ..fresh(1, 0) }, "either `fresh_ms` or `poll_ms`"),
        (6, Serve { poll_ms: Some(0), fresh_ms: None, ..fresh(1, 0) }, "0 ms are out of range"),
        (7, Serve { service: "a/b".into(), ..fresh(1, 0) }, "either a service or `read`"),
        (8, Serve { service: "a/b".into(), read: None, ..fresh(1, 0) }, "need `read`"),
    ] {
        mount.send_json(Kind::Serve, id, &serve).unwrap();
        let end = ended(&mut mount);
        assert!(end.code == Code::Bad && end.error.contains(words), "{end:?}");
    }
    mount.send_json(Kind::Serve, 3, &Serve { time_ms: Some(1000), ..fresh(1, 0) }).unwrap();
    next_of(&mut mount, Kind::Opened);
    mount.send_json(Kind::Serve, 4, &fresh(1, 0)).unwrap();
    assert!(ended(&mut mount).error.contains("has such a callback already"));

    let asked = asking_for(&native, "obs/mount/1/az");
    let (number, asker, octets) = passed(&next_of(&mut mount, Kind::Question));
    assert_eq!((asker.as_str(), &octets[..]), ("", &b"{}"[..]));
    mount.send(Kind::Publish, 0, 1, &reading(180.5)).unwrap();
    answer(&mut mount, 3, number, FLAG_LAST, b"");
    assert_eq!(asked.join().unwrap(), Ok(180.5));

    let asked = asking_for(&native, "obs/mount/1/az");
    let (number, ..) = passed(&next_of(&mut mount, Kind::Question));
    answer(&mut mount, 3, number, FLAG_LAST | FLAG_REFUSED, br#"{"error":"the drive is off"}"#);
    assert_eq!(asked.join().unwrap(), Err(("Tampu_ReadFailed".to_owned(), "the drive is off".to_owned())));

    let asked = asking_for(&native, "obs/mount/1/az");
    let (number, ..) = passed(&next_of(&mut mount, Kind::Question));
    assert_eq!(next_of(&mut mount, Kind::Cancel).body, number.to_le_bytes());
    assert_eq!(asked.join().unwrap().unwrap_err().0, "Tampu_ReadTimedOut");

    // A poll has the same way, and its period can be changed from outside.
    let poll = Serve { read: Some(1), poll_ms: Some(20), ..Serve::default() };
    mount.send_json(Kind::Serve, 5, &poll).unwrap();
    next_of(&mut mount, Kind::Opened);
    for value in [1.0, 2.0] {
        let question = next_of(&mut mount, Kind::Question);
        assert_eq!(question.id, 5);
        mount.send(Kind::Publish, 0, 1, &reading(value)).unwrap();
        answer(&mut mount, 5, passed(&question).0, FLAG_LAST, b"");
    }
    let slower = ask::Change { polled_ms: Some(3_600_000), ..ask::Change::default() };
    let changed = ask::configure(&native, &"obs/mount/1/az".parse().unwrap(), Some(slower), PATIENCE).unwrap();
    assert_eq!(changed[0].attributes[0].config.polled_ms, Some(3_600_000));

    // Without a program, the reason is reported at once.
    mount.socket().shutdown(Shutdown::Both).unwrap();
    until("the hub notices the loss", || {
        let read = asking_for(&native, "obs/mount/1/az").join().unwrap();
        matches!(read, Err((reason, why)) if reason == "Tampu_NotRead" && why.contains("lost its connection"))
    });
    assert!(mount.resume().unwrap());
    mount.send(Kind::Close, 0, 3, &[]).unwrap();
    assert_eq!(ended(&mut mount).code, Code::Done);
    assert_eq!(asking_for(&native, "obs/mount/1/az").join().unwrap(), Ok(2.0), "the last reading");
    mount.bye().unwrap();
}

#[test]
fn a_client_gives_passes_to_those_who_may_send_to_its_receiver() {
    let site = Site::new();
    let policy = site.file("policy.toml", "[[deny]]\nwho = \"local\"\nmay = [\"send\"]\nwhat = \"bulk/secret\"\n");
    let config = site.file("tampu.toml", format!("[access]\npolicy = \"{policy}\"\n"));
    let _hub = site.hub_of_roles(&["--config", &config]);
    let native = participant(&site, "native");
    let mut archive = server(&site, "java/archive");
    let passes = |stream: &str, receiver| Serve { receiver, ..serve("bulk/pass", Some(stream), None) };
    for (id, wanted, words) in [
        (1, passes("raw", None), "needs the number of the `receiver`"),
        (2, serve("bulk/pass", None, None), "needs the stream"),
        (3, Serve { receiver: Some(1), ..serve("mount/position", None, None) }, "for bulk/pass only"),
        (4, serve("bulk/pass/x", Some("raw"), None), "one of the hub's own"),
    ] {
        archive.send_json(Kind::Serve, id, &wanted).unwrap();
        let end = ended(&mut archive);
        assert!(end.code == Code::Bad && end.error.contains(words), "{end:?}");
    }
    let mut opened = Opened::default();
    for (id, stream) in [(7, "raw"), (8, "secret")] {
        archive.send_json(Kind::Serve, id, &passes(stream, Some(id))).unwrap();
        opened = next_of(&mut archive, Kind::Opened).json();
        assert!(!opened.proved, "without certificates nothing proves hosts");
    }
    let name = |receiver: u32| format!("bulk/pass/{}/{receiver}", opened.incarnation.unwrap()).leak() as &'static str;
    let asked = asking(&native, name(7), "sixteen octets..");
    let (number, asker, octets) = passed(&next_of(&mut archive, Kind::Question));
    assert_eq!((asker.as_str(), &octets[..]), ("local", &b"sixteen octets.."[..]));
    answer(&mut archive, 7, number, 0, &[7; 16]);
    answer(&mut archive, 7, number, FLAG_LAST, b"");
    let parts = asked.join().unwrap();
    assert_eq!(parts[0].as_ref().unwrap().content.clone().unwrap(), [7; 16][..]);
    let denied = asking(&native, name(8), "sixteen octets..").join().unwrap();
    assert!(matches!(&denied[..], [Ok(Part { content: Err(CallError::Denied(_)), .. })]), "{denied:?}");
    archive.bye().unwrap();
}
