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
    BatchHeader, Domain, Partition, PartitionFilter, Time, TopicFilter, TopicName,
    event::{EventSample, EventView, Kinds, Quality, Value},
    gateway::{
        Kind,
        events::events,
        frame::{put_sample, samples},
        messages::{Big, Code, Declare, End, From, GapInfo, Hello, Open, Opened, Position, Receipt},
        put_frame,
    },
};

use crate::site::{PATIENCE, Site};

pub const MIB: u64 = 1 << 20;

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
pub fn next_of_any(client: &mut GatewayClient, kind: Kind) -> Got {
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
