//! Programs that are not on the bus: sessions with the gateway of a real hub.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tampu_bus::{
    Event, Participant, Qos, ReaderQos, TypeTag, Writer,
    connect::Settings,
    gateway::{GatewayClient, GatewayError},
    run_dir::RunDir,
};
use tampu_event::{
    Client, Reason,
    client::{ClientSettings, SubscribeOptions},
};
use tampu_types::{
    BatchHeader, Domain, Incarnation, Level, LogRecord, Partition, PartitionFilter, RecordId, Time, TopicFilter, TopicName,
    event::{EventSample, EventView, Kinds, Quality, Value},
    gateway::{
        Kind,
        events::events,
        frame::{put_sample, samples},
        messages::{Big, Code, Declare, End, From, GapInfo, Hello, Open, Opened, Position, Receipt},
        put_frame,
        question::Ask,
    },
    log_batch::encode_records,
};

use crate::site::{PATIENCE, Site};

const MIB: u64 = 1 << 20;

pub fn socket(site: &Site) -> PathBuf {
    site.path("run/local/gateway.sock")
}

pub fn client(site: &Site, source: &str) -> GatewayClient {
    GatewayClient::connect(&socket(site), Hello { source: source.into(), ..Hello::default() }).unwrap()
}

pub fn participant(site: &Site, name: &str) -> Participant {
    let settings = Settings::new(Domain::new("local").unwrap(), RunDir::at(site.path("run")));
    Participant::open(settings, name.parse().unwrap()).unwrap()
}

pub fn writer(participant: &Participant, topic: &str, qos: Qos) -> Writer {
    participant.writer(&TopicName::new(topic).unwrap(), &Partition::everybody(), TypeTag::OCTETS, qos).unwrap()
}

/// A counted frame, kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Got {
    pub kind: Kind,
    pub id: u32,
    pub body: Vec<u8>,
}

impl Got {
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

#[track_caller]
pub fn next(client: &mut GatewayClient) -> Got {
    let frame = client.next(PATIENCE).unwrap().expect("no frame came");
    Got { kind: frame.kind, id: frame.id, body: frame.body.to_vec() }
}

/// The next frame of this kind; others are passed over.
#[track_caller]
pub fn next_of(client: &mut GatewayClient, kind: Kind) -> Got {
    loop {
        let got = next(client);
        if got.kind == kind {
            return got;
        }
        assert_ne!(got.kind, Kind::Ended, "{}", String::from_utf8_lossy(&got.body));
    }
}

/// The samples of a batch, with the number of the first.
pub fn batch(body: &[u8]) -> (BatchHeader, Vec<Vec<u8>>) {
    let (header, body) = BatchHeader::decode(body).unwrap();
    (header, samples(body).map(|sample| sample.unwrap().to_vec()).collect())
}

pub fn body_of(all: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    all.iter().for_each(|sample| put_sample(&mut body, sample));
    body
}

pub fn open(topic: &str, credit: u64) -> Open {
    Open { topics: vec![topic.into()], credit: Some(credit), ..Open::default() }
}

pub fn declare(topic: &str) -> Declare {
    Declare { topic: Some(topic.into()), ..Declare::default() }
}

/// A subscription of the first stream that exists.
pub fn subscribe(client: &mut GatewayClient, id: u32, open: &Open) {
    client.send_json(Kind::Open, id, open).unwrap();
    assert_eq!(next(client).kind, Kind::Opened);
}

/// Waits until a writer has this many readers.
pub fn until_read(writer: &Writer, count: usize) {
    let end = Instant::now() + PATIENCE;
    while writer.readers().len() < count {
        assert!(Instant::now() < end, "nobody reads");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn samples_pass_both_ways_between_sessions_and_the_bus() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let mut reader = native.reader(&TopicFilter::new("weather/*").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    let (mut one, mut two) = (client(&site, "CONTROL/DV01"), client(&site, "viewer"));
    subscribe(&mut two, 7, &open("weather/*", MIB));
    one.send_json(Kind::Declare, 1, &declare("weather/wind")).unwrap();
    let opened: Opened = next_of(&mut one, Kind::Opened).json();
    one.send(Kind::Publish, 0, 1, &body_of(&[b"7.5 m/s", b"", b"8 m/s"])).unwrap();

    let mut on_bus = Vec::new();
    while on_bus.len() < 3 {
        match reader.next(PATIENCE).expect("an event") {
            Event::Sample(sample) => {
                assert_eq!(Some(sample.stream.incarnation), opened.incarnation);
                assert_eq!(sample.stream.source.as_str(), "CONTROL/DV01");
                on_bus.push(sample.payload.to_vec().unwrap());
            }
            Event::Gap(gap) => panic!("{gap:?}"),
            Event::Source(_) => {}
        }
    }
    assert_eq!(on_bus, [&b"7.5 m/s"[..], b"", b"8 m/s"]);
    // It has not asked for a further sample, so it would never acknowledge the last one.
    drop(reader);

    let stream = next_of(&mut two, Kind::Stream).json::<Json>();
    assert_eq!((stream["topic"].as_str(), stream["source"].as_str()), (Some("weather/wind"), Some("CONTROL/DV01")));
    let mut passed = Vec::new();
    while passed.len() < 3 {
        let (header, samples) = batch(&next_of(&mut two, Kind::Data).body);
        assert_eq!((header.first, header.flags), (passed.len() as u64, 0));
        passed.extend(samples);
    }
    assert_eq!(passed, on_bus);
    loop {
        let receipt: Receipt = next_of(&mut one, Kind::Receipt).json();
        assert_eq!(receipt.written, Big(3));
        if receipt.delivered == Some(Big(3)) {
            break;
        }
    }
    // The end of the session is the end of its source.
    one.bye().unwrap();
    loop {
        let life = next_of(&mut two, Kind::Life).json::<Json>();
        if life["state"] == "left" {
            assert_eq!(life["source"], "CONTROL/DV01");
            break;
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_when_connections_break() {
    const SAMPLES: u64 = 20_000;
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let (mut one, mut two) = (client(&site, "breaking"), client(&site, "broken"));
    subscribe(&mut two, 1, &open("count/**", u64::MAX));
    one.send_json(Kind::Declare, 1, &declare("count/up")).unwrap();
    next_of(&mut one, Kind::Opened);
    let publishing = std::thread::spawn(move || {
        let (mut sent, mut cuts) = (0u64, 0);
        while sent < SAMPLES || one.unacknowledged() > 0 {
            let done = match sent < SAMPLES {
                true => {
                    let numbers: Vec<[u8; 8]> = (sent..sent + 100).map(u64::to_le_bytes).collect();
                    let all: Vec<&[u8]> = numbers.iter().map(|number| &number[..]).collect();
                    sent += 100;
                    one.send(Kind::Publish, 0, 1, &body_of(&all))
                }
                false => one.next(Duration::from_millis(100)).map(drop),
            };
            let drained = done.and_then(|()| {
                while one.next(Duration::ZERO)?.is_some() {}
                Ok(())
            });
            match drained {
                Ok(()) if sent % 1500 == 0 && sent < SAMPLES => {
                    cuts += 1;
                    one.socket().shutdown(Shutdown::Both).unwrap();
                }
                Ok(()) => continue,
                Err(GatewayError::Connection { .. }) => {}
                Err(why) => panic!("{why}"),
            }
            assert!(one.resume().unwrap(), "the session is known");
        }
        cuts
    });
    let (mut expected, mut cuts) = (0u64, 0);
    while expected < SAMPLES {
        match two.next(PATIENCE) {
            Ok(Some(frame)) if frame.kind == Kind::Data => {
                let (header, samples) = batch(frame.body);
                assert_eq!(header.first, expected);
                for sample in samples {
                    assert_eq!(u64::from_le_bytes(sample.try_into().unwrap()), expected);
                    expected += 1;
                }
                if expected / 3000 > cuts {
                    cuts += 1;
                    two.socket().shutdown(Shutdown::Both).unwrap();
                }
            }
            Ok(Some(frame)) => assert_ne!(frame.kind, Kind::Gap, "{}", String::from_utf8_lossy(frame.body)),
            Ok(None) => panic!("after {expected} samples nothing came"),
            Err(GatewayError::Connection { .. }) => assert!(two.resume().unwrap(), "the session is known"),
            Err(why) => panic!("{why}"),
        }
    }
    assert!(cuts >= 2 && publishing.join().unwrap() >= 2);
}

#[test]
fn a_client_without_credit_or_acknowledgements_is_held_and_loses_nothing() {
    const SAMPLES: u64 = 12_000;
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "source");
    let writer = writer(&native, "bulky/data", Qos { wait_period: Duration::from_secs(60), ..Qos::default() });
    let mut paused = client(&site, "paused");
    subscribe(&mut paused, 1, &open("bulky/*", 0));
    // This one takes everything, and acknowledges nothing: it reads the socket itself.
    let mut silent = UnixStream::connect(socket(&site)).unwrap();
    let hello = serde_json::to_vec(&Hello { versions: vec![1], ..Hello::default() }).unwrap();
    let mut first = Vec::new();
    put_frame(&mut first, Kind::Hello, 0, 0, 0, &hello);
    put_frame(&mut first, Kind::Open, 0, 1, 1, &serde_json::to_vec(&open("bulky/*", u64::MAX)).unwrap());
    silent.write_all(&first).unwrap();
    until_read(&writer, 2);
    let sample = [7u8; 4096];
    for _ in 0..SAMPLES {
        writer.write(&sample).unwrap();
    }
    let begun = Instant::now();
    silent.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let (mut taken, mut buffer) = (0, vec![0; 1 << 20]);
    // It beats, but acknowledges frame 0 only.
    loop {
        let mut beat = Vec::new();
        put_frame(&mut beat, Kind::Ack, 0, 0, 0, &0u64.to_le_bytes());
        silent.write_all(&beat).unwrap();
        // This one beats too.
        assert!(!matches!(paused.next(Duration::ZERO), Ok(Some(frame)) if frame.kind == Kind::Data));
        match silent.read(&mut buffer) {
            Ok(0) => panic!("the hub closed a session that beats"),
            // The hub's own beats go on.
            Ok(read) if read < 100 && begun.elapsed() > Duration::from_secs(4) => break,
            Ok(read) => taken += read,
            Err(_) => break,
        }
        assert!(begun.elapsed() < PATIENCE);
    }
    assert!((8 << 20..10 << 20).contains(&taken), "{taken} bytes of 48 MB came");

    // With credit everything comes, from the writer's cache.
    let (mut spent, mut granted, mut expected) = (0u64, 0u64, 0u64);
    while expected < SAMPLES {
        if spent >= granted {
            granted = spent + 4 * MIB;
            paused.credit(1, granted).unwrap();
        }
        let got = next(&mut paused);
        match got.kind {
            Kind::Data => {
                spent += got.body.len() as u64;
                let (header, samples) = batch(&got.body);
                assert_eq!(header.first, expected);
                expected += samples.len() as u64;
            }
            Kind::Gap => panic!("{:?}", got.json::<GapInfo>()),
            _ => {}
        }
    }
}

/// Sends bytes, and returns the code of the BYE that answers them.
fn bye_of(site: &Site, bytes: &[u8]) -> End {
    let mut socket = UnixStream::connect(socket(site)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // The hub may have closed it already.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    let mut rest = &answer[..];
    while let Ok(Some((frame, after))) = tampu_types::gateway::Frame::first(rest, 1 << 24) {
        if frame.header.kind == Kind::Bye {
            return serde_json::from_slice(frame.body).unwrap();
        }
        rest = after;
    }
    panic!("no BYE: {}", String::from_utf8_lossy(&answer));
}

#[test]
fn bad_input_is_answered_with_its_reason_and_the_hub_lives_on() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let mut alive = client(&site, "alive");
    let frame = |kind, id, number, body: &[u8]| {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, kind, 0, id, number, body);
        bytes
    };
    let hello = |versions: Json| frame(Kind::Hello, 0, 0, json!({ "versions": versions }).to_string().as_bytes());
    let after_hello = |bytes: Vec<u8>| [hello(json!([1])), bytes].concat();
    let mut long = frame(Kind::Open, 1, 1, b"{}");
    long[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut unknown = frame(Kind::Open, 1, 1, b"{}");
    unknown[4] = 99;
    let cases: Vec<(Vec<u8>, Code, &str)> = vec![
        (b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), Code::Protocol, ""),
        ([0xff; 100].to_vec(), Code::Protocol, "kind"),
        (hello(json!([7, 8])), Code::Version, "version 1"),
        (hello(json!("1")), Code::Protocol, "hello"),
        (frame(Kind::Ack, 0, 0, &[0; 8]), Code::Protocol, "before hello"),
        (after_hello(long), Code::Protocol, "4294967295 bytes"),
        (after_hello(unknown), Code::Protocol, "99"),
        (after_hello(frame(Kind::Open, 1, 2, b"{}")), Code::Protocol, "frame 2 came instead of frame 1"),
        (after_hello(frame(Kind::Open, 0, 1, b"{}")), Code::Protocol, "id 0"),
        (after_hello(frame(Kind::Data, 1, 1, b"")), Code::Protocol, "data"),
        (after_hello(frame(Kind::Ack, 0, 0, &9u64.to_le_bytes())), Code::Protocol, "frame 9"),
        (after_hello(frame(Kind::Ack, 0, 0, &[1])), Code::Protocol, "ack"),
        (after_hello(frame(Kind::Ask, 1, 1, &[9; 9])), Code::Protocol, "ask"),
    ];
    for (bytes, code, words) in cases {
        let end = bye_of(&site, &bytes);
        assert_eq!(end.code, code, "{end:?}");
        assert!(end.error.contains(words), "{end:?} lacks '{words}'");
    }
    // Requests that are wrong end themselves, and not the session.
    let requests = [
        (Kind::Open, json!({}), "neither topics nor attributes"),
        (Kind::Open, json!({"topics": ["weather//x"]}), "topic"),
        (Kind::Open, json!({"topic": ["x"]}), "unknown field"),
        (Kind::Open, json!({"topics": ["x"], "attributes": ["a/*"]}), "do not go with topics"),
        (Kind::Open, json!({"attributes": ["a/*"], "kinds": ["chnge"]}), "chnge"),
        (Kind::Open, json!({"attributes": ["a/*"], "filter": {"condition": "value >"}}), "filter"),
        (Kind::Declare, json!({}), "either a topic or an attribute"),
        (Kind::Declare, json!({"topic": "a/*"}), "topic"),
        (Kind::Declare, json!({"attribute": {"name": "a/b", "data_type": "DevDouble", "format": "scalar"}}), "a/b"),
    ];
    for (id, (kind, body, words)) in (1..).zip(requests) {
        alive.send_json(kind, id, &body).unwrap();
        let got = next(&mut alive);
        assert_eq!((got.kind, got.id), (Kind::Ended, id));
        let end: End = got.json();
        assert!(end.code == Code::Bad && end.error.contains(words), "{body}: {end:?}");
    }
    alive.bye().unwrap();
}

#[test]
fn ten_thousand_subscriptions_and_half_open_connections_meet_their_bounds() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n");
    let _hub = site.hub_of_roles(&["--config", &config]);
    let mut many = client(&site, "many");
    let (mut opened, mut refused) = (0, 0);
    for id in 1..=100 {
        many.send_json(Kind::Open, id, &open("nothing/*", MIB)).unwrap();
    }
    for id in 1..=10_000 {
        // A hundred are under way at a time.
        if id <= 9900 {
            many.send_json(Kind::Open, id + 100, &open("nothing/*", MIB)).unwrap();
        }
        let got = next(&mut many);
        match got.kind {
            Kind::Opened => opened += 1,
            _ => {
                let end: End = got.json();
                assert!(end.code == Code::Limit && end.error.contains("at most 64 subscriptions"), "{end:?}");
                refused += 1;
            }
        }
    }
    assert_eq!((opened, refused), (64, 9936));
    // A place is free after CLOSE, as soon as its worker has ended.
    many.send(Kind::Close, 0, 1, &[]).unwrap();
    assert_eq!(next_of_any(&mut many, Kind::Ended).id, 1);
    let end = Instant::now() + PATIENCE;
    for id in 20_001.. {
        many.send_json(Kind::Open, id, &open("nothing/*", MIB)).unwrap();
        if next(&mut many).kind == Kind::Opened {
            break;
        }
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(10));
    }

    let half_open: Vec<UnixStream> = (0..64).map(|_| UnixStream::connect(socket(&site)).unwrap()).collect();
    let end = loop {
        // The last of them may not have been accepted yet.
        match GatewayClient::connect(&socket(&site), Hello::default()) {
            Err(GatewayError::Ended(end)) => break end,
            Err(GatewayError::Connection { .. }) => {}
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
            Err(why) => panic!("{why}"),
        }
    };
    assert!(end.code == Code::Limit && end.error.contains("64 connections"), "{end:?}");
    drop(half_open);
    let until = Instant::now() + PATIENCE;
    while GatewayClient::connect(&socket(&site), Hello::default()).is_err() {
        assert!(Instant::now() < until, "places of closed connections are free");
        std::thread::sleep(Duration::from_millis(10));
    }
    while many.next(Duration::ZERO).unwrap().is_some() {}
}

#[track_caller]
fn next_of_any(client: &mut GatewayClient, kind: Kind) -> Got {
    loop {
        let got = next(client);
        if got.kind == kind {
            return got;
        }
    }
}

#[test]
fn after_the_gateway_was_killed_a_client_goes_on_at_its_positions() {
    const HALF: u64 = 2000;
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    let native = participant(&site, "survivor");
    let writer = writer(&native, "count/on", Qos { keep: 32 << 20, ..Qos::default() });
    let mut reader = client(&site, "reader");
    subscribe(&mut reader, 1, &open("count/*", u64::MAX));
    until_read(&writer, 1);
    let mut expected = 0;
    let write = |from: u64| (from..from + HALF).for_each(|number| assert!(writer.write(&number.to_le_bytes()).is_ok()));
    let mut read = |client: &mut GatewayClient, until: u64| {
        while expected < until {
            let (header, samples) = batch(&next_of(client, Kind::Data).body);
            assert_eq!(header.first, expected);
            expected += samples.len() as u64;
        }
    };
    write(0);
    read(&mut reader, HALF);
    crate::roles::kill(&hub, "gateway");
    write(HALF);
    let end = Instant::now() + PATIENCE;
    let resumed = loop {
        match reader.resume() {
            Ok(resumed) => break resumed,
            Err(GatewayError::Connection { .. }) => std::thread::sleep(Duration::from_millis(20)),
            Err(why) => panic!("{why}"),
        }
        assert!(Instant::now() < end);
    };
    assert!(!resumed, "the new gateway does not know the session");
    let position = Position(native.incarnation(), writer.stream(), Big(HALF));
    let again = Open { from: From::Positions(vec![position]), ..open("count/*", u64::MAX) };
    subscribe(&mut reader, 1, &again);
    write(2 * HALF);
    read(&mut reader, 3 * HALF);
}

#[test]
fn records_and_questions_reach_the_archive() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let mut java = client(&site, "CONTROL/java");
    let wanted = Declare { type_id: Some(2), receipts: tampu_types::gateway::messages::Receipts::Kept, ..declare("log/warning") };
    java.send_json(Kind::Declare, 1, &wanted).unwrap();
    let opened: Opened = next_of(&mut java, Kind::Opened).json();
    let record = LogRecord {
        id: Some(RecordId { incarnation: opened.incarnation.unwrap(), ring: 0, number: 0 }),
        time: Time(1_795_334_400_123_456_789),
        process: "CONTROL/java".into(),
        ..LogRecord::new(Level::Warning, "said without the bus")
    };
    java.send(Kind::Publish, 1, 1, &body_of(&[&encode_records(&[record]).unwrap()])).unwrap();
    loop {
        let receipt: Receipt = next_of(&mut java, Kind::Receipt).json();
        if receipt.kept == Some(Big(1)) {
            break;
        }
    }
    let found = site.find(1, &["--contains", "without the bus"]);
    assert_eq!(found[0]["process"], "CONTROL/java");

    let mut body = Vec::new();
    let question = br#"{"min_level":"Warning","text":"without the bus"}"#;
    Ask { timeout_ms: 10_000, all: false, service: "log/query", question }.encode(&mut body);
    java.send(Kind::Ask, 0, 2, &body).unwrap();
    let part = next_of(&mut java, Kind::Part);
    let (_, content) = part.body.split_at(16);
    let records = tampu_types::log_batch::decode_records(content).unwrap();
    assert_eq!(records[0].message, "said without the bus");
    assert!(String::from_utf8_lossy(&next_of(&mut java, Kind::Part).body).contains("scanned"));
    assert_eq!(next_of_any(&mut java, Kind::Ended).json::<End>().code, Code::Done);

    let mut body = Vec::new();
    Ask { timeout_ms: 10_000, all: false, service: "log/query", question: b"{\"sinze\":1}" }.encode(&mut body);
    java.send(Kind::Ask, 0, 3, &body).unwrap();
    let end: End = next_of_any(&mut java, Kind::Ended).json();
    assert!(end.code == Code::Failed && end.error.contains("sinze"), "{end:?}");
}

#[test]
fn attributes_pass_both_ways() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let (mut server, mut viewer) = (client(&site, "vacuum"), client(&site, "panel"));
    let config = json!({"attribute": {"name": "sr/vacuum/g1/p", "data_type": "DevDouble", "format": "scalar",
        "unit": "mbar", "criteria": {"change": {"abs": "1"}}}});
    server.send_json(Kind::Declare, 1, &config).unwrap();
    next_of(&mut server, Kind::Opened);
    let reading = |value: f64| {
        let mut event = Vec::new();
        EventSample { time: Time(0), ..EventSample::of(0, Value::scalar(&value)) }.encode(&mut event).unwrap();
        event
    };
    server.send(Kind::Publish, 0, 1, &body_of(&[&reading(10.0)])).unwrap();
    let all = Open { attributes: vec!["sr/*".parse().unwrap()], credit: Some(MIB), ..Open::default() };
    subscribe(&mut viewer, 1, &all);
    let intro = next_of(&mut viewer, Kind::Attribute).json::<Json>();
    assert_eq!((intro["config"]["name"].as_str(), intro["config"]["unit"].as_str()), (Some("sr/vacuum/g1/p"), Some("mbar")));
    let value = |client: &mut GatewayClient| -> (Reason, f64, Kinds, Quality) {
        let got = next_of(client, Kind::Events);
        let item = events(&got.body).next().unwrap().unwrap();
        assert_eq!(u64::from(item.attribute), intro["attribute"].as_u64().unwrap());
        let event = EventView::parse(item.event).unwrap();
        (item.reason, event.value.unwrap().number(0).unwrap(), event.kinds, event.quality)
    };
    let (reason, first, ..) = value(&mut viewer);
    assert_eq!((reason, first), (Reason::First, 10.0));
    // The criterion is the server's: 10.5 is no change, 12 is one.
    server.send(Kind::Publish, 0, 1, &body_of(&[&reading(10.5), &reading(12.0)])).unwrap();
    let (reason, second, kinds, quality) = value(&mut viewer);
    assert_eq!((reason, second, quality), (Reason::Update, 12.0, Quality::Valid));
    assert!(kinds.intersects(Kinds::CHANGE));

    // A native subscriber sees the same attribute, and a wrong type is refused by name.
    let native = Client::start(participant(&site, "native"), ClientSettings::default()).unwrap();
    let latest = native.stream(SubscribeOptions::of(["sr/vacuum/g1/p".parse().unwrap()]), 10);
    let update = latest.next(PATIENCE).expect("a first value");
    assert_eq!(update.reading().unwrap().value.unwrap().number(0), Some(12.0));
    let mut wrong = Vec::new();
    EventSample::of(0, Value::scalar(&3i32)).encode(&mut wrong).unwrap();
    server.send(Kind::Publish, 0, 1, &body_of(&[&wrong])).unwrap();
    loop {
        let receipt: Receipt = next_of(&mut server, Kind::Receipt).json();
        if let Some((index, why)) = receipt.refused.first() {
            assert_eq!(*index, Big(3));
            assert!(why.contains("sr/vacuum/g1/p") && why.contains("DevDouble"), "{why}");
            break;
        }
    }
    server.bye().unwrap();
    loop {
        let notice = next_of(&mut viewer, Kind::Notice).json::<Json>();
        if notice["reason"] == "source left" {
            break;
        }
    }
}

#[test]
fn the_access_rules_hold_for_sessions() {
    let site = Site::new();
    let policy = site.file(
        "policy.toml",
        "[[deny]]\nwho = \"local\"\nmay = [\"read\", \"write\"]\nwhat = \"secret/**\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"write\"]\nwhat = \"source/FORBIDDEN\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"query\"]\nwhat = \"log/stat\"\n",
    );
    let config = site.file("tampu.toml", format!("[access]\npolicy = \"{policy}\"\n"));
    let _hub = site.hub_of_roles(&["--config", &config]);
    let mut one = client(&site, "FORBIDDEN");
    let denied = |client: &mut GatewayClient, words: &str| {
        let end: End = next_of_any(client, Kind::Ended).json();
        assert!(end.code == Code::Denied && end.error.contains(words) && end.denied.is_some(), "{end:?}");
    };
    one.send_json(Kind::Open, 1, &open("secret/plan", MIB)).unwrap();
    denied(&mut one, "secret/plan");
    one.send_json(Kind::Declare, 2, &declare("public/plan")).unwrap();
    denied(&mut one, "FORBIDDEN");
    let mut two = client(&site, "allowed");
    two.send_json(Kind::Declare, 2, &declare("secret/plan")).unwrap();
    denied(&mut two, "secret/plan");
    let mut body = Vec::new();
    Ask { timeout_ms: 10_000, all: false, service: "log/stat", question: b"{}" }.encode(&mut body);
    two.send(Kind::Ask, 0, 3, &body).unwrap();
    denied(&mut two, "log/stat");
    // A wide pattern shows what may be read, and nothing of the rest.
    subscribe(&mut two, 4, &open("**", MIB));
    let native = participant(&site, "native");
    let (secret, public) = (writer(&native, "secret/plan", Qos::default()), writer(&native, "public/plan", Qos::default()));
    until_read(&public, 1);
    secret.write(b"hidden").unwrap();
    public.write(b"shown").unwrap();
    loop {
        let got = next(&mut two);
        if got.kind == Kind::Stream {
            assert_ne!(got.json::<Json>()["topic"], "secret/plan");
        }
        if got.kind == Kind::Data && batch(&got.body).1 == [b"shown"] {
            break;
        }
    }
}

/// Records in the DATA frames of a subscription of logs, until there are this many: their ids, and how many came from the
/// archive; with the gaps that came between them.
fn records(client: &mut GatewayClient, id: u32, count: usize, with: &str) -> (Vec<RecordId>, usize, Vec<GapInfo>) {
    let (mut ids, mut archived, mut gaps) = (Vec::new(), 0, Vec::new());
    let mut granted = 0;
    while ids.len() < count {
        granted += MIB;
        client.credit(id, granted).unwrap();
        let frame = client.next(PATIENCE).unwrap().unwrap_or_else(|| panic!("only {} records came", ids.len()));
        match frame.kind {
            Kind::Data => {
                let (header, samples) = batch(frame.body);
                for record in samples.iter().flat_map(|sample| tampu_types::log_batch::decode_records(sample).unwrap()) {
                    if record.message.contains(with) {
                        ids.push(record.id.unwrap());
                        archived += usize::from(header.stream == u32::MAX);
                    }
                }
            }
            Kind::Gap => gaps.push(serde_json::from_slice(frame.body).unwrap()),
            _ => {}
        }
    }
    (ids, archived, gaps)
}

/// Publishes records with consecutive numbers.
fn say(client: &mut GatewayClient, id: u32, incarnation: Incarnation, numbers: std::ops::Range<u64>, text: &str) {
    for number in numbers {
        let record = LogRecord {
            id: Some(RecordId { incarnation, ring: 0, number }),
            time: Time(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64),
            process: "CONTROL/java".into(),
            ..LogRecord::new(Level::Warning, format!("{text} {}", "x".repeat(1000)))
        };
        client.send(Kind::Publish, 0, id, &body_of(&[&encode_records(&[record]).unwrap()])).unwrap();
        while client.next(Duration::ZERO).unwrap().is_some() {}
    }
}

#[test]
fn the_archive_fills_the_gaps_of_a_paused_log_without_doubles() {
    const RECORDS: u64 = 6000;
    let site = Site::new();
    // Caches that reach less far than the pause.
    let config = site.file("tampu.toml", "[[topic]]\ntopics = \"log/warning\"\ncache = 262144\nkeep = 0\n");
    let _hub = site.hub_of_roles(&["--config", &config]);
    let mut paused = client(&site, "paused");
    subscribe(&mut paused, 1, &open("log/*", 0));
    let mut java = client(&site, "CONTROL/java");
    java.send_json(Kind::Declare, 1, &Declare { type_id: Some(2), ..declare("log/warning") }).unwrap();
    let opened: Opened = next_of(&mut java, Kind::Opened).json();
    let incarnation = opened.incarnation.unwrap();
    for start in (0..RECORDS).step_by(500) {
        say(&mut java, 1, incarnation, start..start + 500, "while it was paused");
        assert!(!matches!(paused.next(Duration::ZERO), Ok(Some(frame)) if frame.kind == Kind::Data));
    }
    let (ids, archived, gaps) = records(&mut paused, 1, RECORDS as usize, "while it was paused");
    let numbers: std::collections::BTreeSet<u64> = ids.iter().map(|id| id.number).collect();
    assert_eq!((numbers.len() as u64, ids.len() as u64), (RECORDS, RECORDS), "each once");
    assert!(archived > 0, "the caches reached far enough, so nothing was tested");
    // The end of the gap comes after its records.
    say(&mut java, 1, incarnation, RECORDS..RECORDS + 10, "afterwards");
    let (ids, _, later) = records(&mut paused, 1, 10, "afterwards");
    assert_eq!(ids.iter().map(|id| id.number - RECORDS).collect::<Vec<u64>>(), (0..10).collect::<Vec<u64>>());
    let gaps: Vec<GapInfo> = gaps.into_iter().chain(later).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| gap.filled), "{gaps:?}");

    // A subscription that begins in the archive, with a query.
    let since = Time(1_700_000_000_000_000_000);
    let query = json!({"text": "afterwards", "min_level": "Warning"});
    let from_archive = Open { topics: vec!["log/*".into()], since: Some(since), query: Some(query), ..Open::default() };
    let mut late = client(&site, "late");
    subscribe(&mut late, 1, &from_archive);
    say(&mut java, 1, incarnation, RECORDS + 10..RECORDS + 20, "afterwards, and unlike the rest");
    say(&mut java, 1, incarnation, RECORDS + 20..RECORDS + 25, "not asked for");
    say(&mut java, 1, incarnation, RECORDS + 25..RECORDS + 30, "afterwards");
    let (ids, ..) = records(&mut late, 1, 25, "");
    let numbers: Vec<u64> = ids.iter().map(|id| id.number - RECORDS).collect();
    assert_eq!(numbers, (0..20).chain(25..30).collect::<Vec<u64>>());
}

/// One frame of a TLS connection.
fn tls_frame(stream: &mut impl Read) -> (Kind, Vec<u8>) {
    let mut header = [0; 24];
    stream.read_exact(&mut header).unwrap();
    let header = tampu_types::gateway::FrameHeader::decode(&header, 1 << 20).unwrap();
    let mut body = vec![0; header.length as usize];
    stream.read_exact(&mut body).unwrap();
    (header.kind, body)
}

#[test]
fn other_hosts_connect_by_tls_with_a_token_that_rules_allow() {
    let lab = crate::encrypted::Lab::with_certificates();
    let site = &lab.site;
    let tokens = site.file("tokens", "console 0123456789abcdef0123456789abcdef\n");
    rustix::fs::chmod(&tokens, rustix::fs::Mode::from_bits_truncate(0o600)).unwrap();
    let policy = site.file("policy.toml", "[[allow]]\nwho = \"token:console\"\nmay = [\"read\"]\nwhat = \"weather/**\"\n");
    let certificates = lab.certificates();
    let text = format!(
        "[network]\ncertificates = \"{}\"\n[access]\npolicy = \"{policy}\"\n[gateway]\nlisten = \"127.0.0.1:0\"\ntokens = \"{tokens}\"\n",
        certificates.display()
    );
    let config = site.file("tampu.toml", text);
    let _hub = site.hub_of_roles(&["--config", &config]);
    let said = site.find(1, &["-p", "hub-gateway@*", "--contains", "serves other hosts"]);
    let address = said[0]["data"].as_array().unwrap().iter().find(|datum| datum["name"] == "address").unwrap();
    let address: std::net::SocketAddr = address["value"].as_str().unwrap().parse().unwrap();
    let roots = tampu_tls::client::certificates(&lab.certificate_dir().authority()).unwrap();
    let tls = std::sync::Arc::new(tampu_tls::client::client_config(roots).unwrap());
    let connect = |token: &str| {
        let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
        let connection = rustls::ClientConnection::new(tls.clone(), name).unwrap();
        let socket = std::net::TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, socket);
        let hello = Hello { versions: vec![1], token: Some(token.into()), source: "far".into(), ..Hello::default() };
        let mut bytes = Vec::new();
        put_frame(&mut bytes, Kind::Hello, 0, 0, 0, &serde_json::to_vec(&hello).unwrap());
        stream.write_all(&bytes).unwrap();
        stream
    };
    for token in ["", "0123456789abcdef0123456789abcdee"] {
        let (kind, body) = tls_frame(&mut connect(token));
        assert_eq!(kind, Kind::Bye);
        assert_eq!(serde_json::from_slice::<End>(&body).unwrap().code, Code::Unauthenticated);
    }
    // Without TLS nothing is answered.
    let mut plain = std::net::TcpStream::connect(address).unwrap();
    plain.write_all(&[0; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(rest.first().is_none_or(|first| *first == 0x15), "no more than a TLS alert: {rest:?}");

    let mut console = connect("0123456789abcdef0123456789abcdef");
    let (kind, body) = tls_frame(&mut console);
    assert_eq!(kind, Kind::Welcome);
    assert!(String::from_utf8_lossy(&body).contains("the token 'console'"));
    let mut requests = Vec::new();
    put_frame(&mut requests, Kind::Open, 0, 1, 1, &serde_json::to_vec(&open("weather/*", MIB)).unwrap());
    put_frame(&mut requests, Kind::Open, 0, 2, 2, &serde_json::to_vec(&open("log/*", MIB)).unwrap());
    put_frame(&mut requests, Kind::Declare, 0, 3, 3, &serde_json::to_vec(&declare("weather/wind")).unwrap());
    console.write_all(&requests).unwrap();
    assert_eq!(tls_frame(&mut console).0, Kind::Opened);
    for _ in 0..2 {
        let (kind, body) = tls_frame(&mut console);
        assert_eq!(kind, Kind::Ended);
        assert_eq!(serde_json::from_slice::<End>(&body).unwrap().code, Code::Denied);
    }
    let native = participant(site, "native");
    let writer = writer(&native, "weather/wind", Qos::default());
    until_read(&writer, 1);
    writer.write(b"far away").unwrap();
    loop {
        let (kind, body) = tls_frame(&mut console);
        if kind == Kind::Data {
            assert_eq!(batch(&body).1, [b"far away"]);
            break;
        }
    }
}
