//! Hosts with certificates: each sends under its own name alone, and rules about topics hold on its links.

use std::{
    net::TcpListener,
    os::unix::fs::MetadataExt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use tampu_bus::{
    Event, Hold, Participant, Qos, QosTable, Reader, ReaderQos, ReaderState, TypeTag, Writer,
    access::{Effect, Policy, Principal, Rule, Who, publish_policy},
    clock::Gate,
    connect::{Encryption, Key, Lan, Node, NodeSettings, Settings},
    engine::{Class, Engine},
    service::{Limits, Permission, Request, call, serve},
};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
use tampu_types::{BatchHeader, Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// Longer than what it waits for ever takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

struct Site {
    directory: tempfile::TempDir,
    authority: Authority,
}

/// A host: its node, and a participant on it.
struct Host {
    node: Node,
    engine: Arc<dyn Engine>,
    participant: Participant,
}

fn domain() -> Domain {
    Domain::new("lab").unwrap()
}

fn key() -> Key {
    Key::new("between the hosts").unwrap()
}

impl Site {
    fn new() -> Site {
        // RUST_LOG=zenoh::net=trace shows the engine's links, trees and tokens.
        zenoh::try_init_log_from_env();
        let directory = tempfile::tempdir().unwrap();
        let authority = CertificateDir::new(directory.path().join("authority"));
        let authority = Authority::create(&authority, "lab", SystemTime::now()).unwrap();
        Site { directory, authority }
    }

    fn settings(&self, name: &str) -> (Settings, Encryption) {
        let certificates = CertificateDir::new(self.directory.path().join(name).join("cert"));
        if !certificates.has_host() {
            let names = HostNames::new(name, &["127.0.0.1".to_owned()]).unwrap();
            self.authority.issue(&certificates, &names, KeyPairChoice::New, SystemTime::now()).unwrap();
        }
        let run = self.directory.path().join(name).join("run");
        (Settings::isolated(run).in_domain(domain()), Encryption::Tls(certificates))
    }

    fn host(&self, name: &str, listen: bool, connect: Option<&str>) -> Host {
        self.host_with(name, listen, connect, Policy::default())
    }

    fn host_with(&self, name: &str, listen: bool, connect: Option<&str>, policy: Policy) -> Host {
        let (process, encryption) = self.settings(name);
        let settings = NodeSettings {
            listen: listen.then(|| "127.0.0.1:0".parse().unwrap()).into_iter().collect(),
            connect: connect.map(|address| address.parse().unwrap()).into_iter().collect(),
            key: Some(key()),
            encryption,
            policy: Arc::new(policy),
            ..NodeSettings::new(process)
        };
        let node = Node::start(settings).unwrap();
        let engine = node.client_settings().open().unwrap();
        let source = SourceName::new(format!("on {name}")).unwrap();
        let participant = Participant::on(engine.clone(), domain(), source, QosTable::default()).unwrap();
        Host { node, engine, participant }
    }
}

impl Host {
    fn address(&self) -> String {
        self.node.addresses()[0].clone()
    }

    fn writer(&self, topic: &str) -> Writer {
        let topic = TopicName::new(topic).unwrap();
        self.participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap()
    }

    fn reader(&self, topics: &str) -> Reader {
        self.participant.reader(&TopicFilter::new(topics).unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap()
    }

    /// Returns the identity of the node's socket, which changes when the node opens its session anew.
    fn socket(&self) -> Option<(u64, u64)> {
        let found = std::fs::metadata(self.node.dir().node_socket().unwrap()).ok()?;
        Some((found.ino(), found.ctime_nsec() as u64))
    }

    /// Joins on the node itself, as the hub's own roles do.
    fn role(&self, name: &str) -> Participant {
        let engine = self.node.engine().unwrap();
        Participant::on(engine, domain(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
    }

    /// Lets the rules hold on this host, as its hub does.
    fn hold_to(&self, policy: Policy) {
        publish_policy(self.node.dir().path(), &policy).unwrap();
        self.node.hold_to(&Arc::new(policy));
    }
}

fn pause() {
    Gate::default().wait_host(0, Duration::from_millis(10));
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        pause();
    }
}

fn readers(writer: &Writer) -> usize {
    writer.readers().iter().filter(|reader| reader.state != ReaderState::Gone).count()
}

fn write(writer: &Writer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        writer.write(&number.to_le_bytes()).unwrap();
    }
}

/// Reads up to a number; every earlier one must come, once and in order. Returns the hosts that were proved.
#[track_caller]
fn read(reader: &mut Reader, numbers: std::ops::Range<u64>) -> Vec<Option<String>> {
    let (end, mut next, mut hosts) = (Instant::now() + PATIENCE, numbers.start, Vec::new());
    while next < numbers.end {
        assert!(Instant::now() < end, "{next} did not come, {:?}", reader.stats());
        match reader.next(Duration::from_millis(50)) {
            Some(Event::Sample(sample)) => {
                assert_eq!(u64::from_le_bytes(sample.payload.bytes().unwrap().try_into().unwrap()), next);
                hosts.push(sample.stream.host.clone());
                next += 1;
            }
            Some(Event::Gap(gap)) => panic!("{gap:?}"),
            _ => {}
        }
    }
    hosts.dedup();
    hosts
}

/// Asserts that nothing comes for a while.
#[track_caller]
fn hears_nothing(reader: &mut Reader, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if let Some(Event::Sample(sample)) = reader.next(Duration::from_millis(20)) {
            panic!("{:?} {:?}", sample.stream, sample.sequence);
        }
    }
}

fn deny(host: &str, may: &str, what: &str) -> Policy {
    let rule = Rule::new(Effect::Deny, Who::Host(host.to_owned()), &[may], what).unwrap();
    Policy { rules: vec![rule], ..Policy::default() }
}

#[test]
fn a_certificate_proves_the_host_of_samples_and_questions() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let mast = site.host("mast", false, Some(&hub.address()));
    assert_eq!(hub.participant.host().as_deref(), Some("hub"));
    let (mut at_hub, mut at_mast) = (hub.reader("from/mast"), mast.reader("from/hub"));
    let (from_hub, from_mast) = (hub.writer("from/hub"), mast.writer("from/mast"));
    until("both are matched", || readers(&from_hub) > 0 && readers(&from_mast) > 0);
    write(&from_hub, 0..100);
    write(&from_mast, 0..100);
    assert_eq!(read(&mut at_hub, 0..100), [Some("mast".to_owned())]);
    assert_eq!(read(&mut at_mast, 0..100), [Some("hub".to_owned())]);
    let access = hub.participant.access();
    assert_eq!(hub.participant.sender(&access, Some("mast")), Principal::Host("mast".to_owned()));
    assert_eq!(hub.participant.sender(&access, Some("hub")), Principal::this_user());

    let permission = Permission::ByHandler(access);
    let answer = |request: Request| {
        request.answer(&request.asker().map(ToString::to_string));
    };
    let _serving = serve(&hub.participant, &TopicName::new("who").unwrap(), permission, &Limits::inline(), answer).unwrap();
    until("the service answers", || {
        let answer = call(&mast.participant, "who", "", Duration::from_secs(5));
        answer.ok().and_then(|parts| parts.first().json::<String>().ok()).is_some_and(|asker| {
            assert_eq!(asker, "the host 'mast'");
            true
        })
    });
}

#[test]
fn no_host_sends_under_the_name_of_another() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let mast = site.host("mast", false, Some(&hub.address()));
    let thief = site.host("thief", false, Some(&hub.address()));
    let mut reader = hub.reader("t");
    let writer = mast.writer("t");
    until("the writer is matched", || readers(&writer) > 0);
    // What the thief sends: batches of the mast's process, with samples that it did not write.
    let batches: Arc<Mutex<Vec<Bytes>>> = Arc::default();
    let into = batches.clone();
    let seen = move |bytes: Bytes, _: &str| into.lock().unwrap().push(bytes);
    let _seen = hub.engine.subscribe("tampu/lab/d/**", Arc::new(seen)).unwrap();
    write(&writer, 0..50);
    assert_eq!(read(&mut reader, 0..50), [Some("mast".to_owned())]);
    // The first ones may have been fetched again, while the hub opened its session anew for the new hosts.
    let mut written = 50;
    until("a batch is seen", || {
        write(&writer, written..written + 1);
        read(&mut reader, written..written + 1);
        written += 1;
        !batches.lock().unwrap().is_empty()
    });
    let real = batches.lock().unwrap()[0].clone();
    let (header, body) = BatchHeader::decode(&real).unwrap();
    let forged = BatchHeader { first: written, count: 1, ..header.clone() };
    let mut bytes = Vec::new();
    forged.encode(12, &mut bytes);
    bytes.extend_from_slice(&body[..12]);
    let forged = bytes;
    let foreign = [
        ("tampu/lab/d/mast/t/.", Class::Data),
        ("tampu/lab/d/hub/t/.", Class::Data),
        ("tampu/lab/d/-/t/.", Class::Data),
        ("tampu/lab/d/thief/t/.", Class::Data),
    ];
    let outlets: Vec<_> = foreign.iter().map(|(key, class)| thief.engine.outlet(key, *class).unwrap()).collect();
    let _presence = thief.engine.announce(&format!("tampu/lab/p/mast/{}/61", header.incarnation)).unwrap();
    let count = batches.lock().unwrap().len();
    until("the forgery under the thief's own name is refused", || {
        outlets.iter().for_each(|outlet| outlet.send(Bytes::from(forged.clone())).unwrap());
        reader.next(Duration::ZERO);
        hub.participant.forgeries().count > 3
    });
    let (host, process) = hub.participant.forgeries().last.unwrap();
    assert_eq!((host.as_str(), process), ("thief", header.incarnation));
    assert!(reader.stats().forged > 3);
    // Under other names nothing has come through.
    let came = batches.lock().unwrap().split_off(count);
    assert!(came.len() as u64 <= hub.participant.forgeries().count + 1, "{} batches", came.len());
    assert_eq!(hub.participant.sources().iter().filter(|source| source.incarnation == header.incarnation).count(), 1);
    // The real ones still do.
    write(&writer, written..written + 50);
    assert_eq!(read(&mut reader, written..written + 50), [Some("mast".to_owned())]);
}

#[test]
fn a_closed_topic_is_closed_while_others_lose_nothing() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let mast = site.host("mast", false, Some(&hub.address()));
    let guest = site.host("guest", false, Some(&hub.address()));
    let (mut at_mast, mut at_guest, mut open) = (mast.reader("secret/**"), guest.reader("secret/**"), guest.reader("open"));
    let (secret, public) = (hub.writer("secret/plan"), hub.writer("open"));
    until("all are matched", || readers(&secret) > 1 && readers(&public) > 0);
    write(&secret, 0..50);
    read(&mut at_mast, 0..50);
    read(&mut at_guest, 0..50);

    let before = hub.socket();
    hub.hold_to(deny("guest", "read", "secret/**"));
    until("the guest is let go of", || readers(&secret) == 1);
    until("the rule holds on the links", || hub.socket().is_some_and(|now| Some(now) != before));
    // Somebody who does not keep to the protocol.
    let raw: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = raw.clone();
    let heard = move |_: Bytes, key: &str| into.lock().unwrap().push(key.to_owned());
    let _raw = guest.engine.subscribe("tampu/lab/d/*/secret/**", Arc::new(heard)).unwrap();
    for number in 50..150 {
        write(&secret, number..number + 1);
        write(&public, number - 50..number - 49);
        pause();
    }
    read(&mut at_mast, 50..150);
    read(&mut open, 0..100);
    hears_nothing(&mut at_guest, Duration::from_millis(500));
    // The node may have opened its links anew after the first of them.
    let late = raw.lock().unwrap().len();
    write(&secret, 150..200);
    read(&mut at_mast, 150..200);
    assert_eq!(raw.lock().unwrap().len(), late, "{:?}", raw.lock().unwrap());

    hub.hold_to(Policy::default());
    until("the guest is matched again", || readers(&secret) == 2);
    write(&secret, 200..250);
    read(&mut at_mast, 200..250);
    until("the guest reads again", || matches!(at_guest.next(Duration::from_millis(50)), Some(Event::Sample(_))));
}

#[test]
fn a_host_without_the_right_to_write_is_not_heard() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let mast = site.host("mast", false, Some(&hub.address()));
    let guest = site.host("guest", false, Some(&hub.address()));
    let mut reader = hub.reader("t/**");
    let (writer, muted, open) = (mast.writer("t/mast"), guest.writer("t/guest"), guest.writer("t/open"));
    until("all are matched", || readers(&writer) > 0 && readers(&muted) > 0 && readers(&open) > 0);
    let before = hub.socket();
    hub.hold_to(deny("guest", "write", "t/guest"));
    until("the rule holds on the links", || hub.socket().is_some_and(|now| Some(now) != before));
    for number in 0..50 {
        write(&muted, number..number + 1);
        write(&writer, number..number + 1);
        write(&open, number..number + 1);
    }
    let (mut numbers, end) = ([0, 0], Instant::now() + PATIENCE);
    while numbers != [50, 50] {
        assert!(Instant::now() < end, "{numbers:?} {:?}", reader.stats());
        if let Some(Event::Sample(sample)) = reader.next(Duration::from_millis(50)) {
            let number = u64::from_le_bytes(sample.payload.bytes().unwrap().try_into().unwrap());
            let next = match sample.stream.topic.as_str() {
                "t/mast" => &mut numbers[0],
                "t/open" => &mut numbers[1],
                other => panic!("heard {other}"),
            };
            assert_eq!(number, *next);
            *next += 1;
        }
    }
    hears_nothing(&mut reader, Duration::from_millis(500));
}

#[test]
fn roles_that_join_while_the_node_opens_its_session_anew_miss_nothing() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let mast = site.host("mast", false, Some(&hub.address()));
    let (first, mut at_hub) = (mast.writer("t"), hub.reader("t"));
    until("the hub knows the mast", || readers(&first) > 0);
    write(&first, 0..10);
    read(&mut at_hub, 0..10);
    let (over, sockets) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let (from, to) = (TopicName::new("role/from").unwrap(), TopicFilter::new("role/to").unwrap());
    let mut roles = std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..4 {
                let before = hub.socket();
                hub.hold_to(if round % 2 == 0 { deny("mast", "write", "muted") } else { Policy::default() });
                until("the node opens its session anew", || hub.socket().is_some_and(|now| Some(now) != before));
                sockets.lock().unwrap().push(hub.socket());
            }
            over.store(true, Ordering::Release);
        });
        let mut roles = Vec::new();
        while !over.load(Ordering::Acquire) {
            let role = hub.role(&format!("role {}", roles.len()));
            let reader = role.reader(&to, &PartitionFilter::All, ReaderQos::default()).unwrap();
            let writer = role.writer(&from, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
            roles.push((role, reader, writer));
            // Few enough that the machine keeps up.
            Gate::default().wait_host(0, Duration::from_millis(150));
        }
        roles
    });
    assert_eq!(sockets.lock().unwrap().len(), 4);
    // Some more than these may have joined within a session. All are there.
    let (mut at_mast, to_roles) = (mast.reader("role/from"), mast.writer("role/to"));
    let matched = || (readers(&to_roles), roles.iter().filter(|(.., writer)| readers(writer) == 1).count());
    let end = Instant::now() + PATIENCE;
    while matched() != (roles.len(), roles.len()) {
        let connections = (hub.node.connections(), mast.node.connections());
        let seen = (hub.participant.sources().len(), mast.participant.sources().len());
        assert!(Instant::now() < end, "{:?} of {}: {connections:?} {seen:?}", matched(), roles.len());
        pause();
    }
    write(&to_roles, 0..10);
    for (role, reader, writer) in &mut roles {
        assert_eq!(read(reader, 0..10), [Some("mast".to_owned())], "{}", role.source());
        writer.write(b"12345678").unwrap();
    }
    let mut heard = std::collections::HashSet::new();
    until("the mast hears them all", || {
        if let Some(Event::Sample(sample)) = at_mast.next(Duration::from_millis(50)) {
            heard.insert(sample.stream.source.clone());
        }
        heard.len() == roles.len()
    });
}

#[test]
fn a_node_that_cannot_open_its_session_anew_says_so_and_goes_on() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let mast = site.host("mast", false, Some(&hub.address()));
    let (writer, mut reader) = (mast.writer("t"), hub.reader("t"));
    until("the hub knows the mast", || readers(&writer) > 0);
    let address = hub.address();
    hub.hold_to(deny("mast", "write", "muted"));
    let mut taken = None;
    until("the address is taken by somebody else", || {
        taken = taken.take().or_else(|| TcpListener::bind(&address).ok());
        taken.is_some()
    });
    let (mut failure, over, end) = (None, AtomicBool::new(false), Instant::now() + 2 * PATIENCE);
    std::thread::scope(|scope| {
        // A process that is let in here would wait for ever: the engine forgets it with the attempt.
        let lets_in = scope.spawn(|| {
            let mut seen = None;
            while !over.load(Ordering::Acquire) && seen.is_none() && Instant::now() < end {
                seen = hub.socket();
                Gate::default().wait_host(0, Duration::from_micros(100));
            }
            seen
        });
        until("the node says that it cannot go on", || {
            failure = hub.node.failure();
            failure.is_some()
        });
        over.store(true, Ordering::Release);
        assert_eq!(lets_in.join().unwrap(), None);
    });
    let failure = failure.unwrap();
    assert!(failure.contains("opening the node's connections anew") && failure.contains(&address), "{failure}");
    assert!(hub.node.engine().is_err_and(|why| why.to_string() == failure));
    drop(taken);
    until("the node goes on", || hub.node.failure().is_none());
    // The mast may have been given up meanwhile, and is back.
    until("the mast is heard again", || {
        write(&writer, 0..1);
        matches!(reader.next(Duration::from_millis(50)), Some(Event::Sample(_)))
    });
}

#[test]
fn what_is_known_beforehand_opens_nothing_anew() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let rules = deny("hub", "write", "muted");
    // A hub that takes longer than a second to tell its name is met later.
    let stays = (0..3).any(|number| {
        let mast = site.host_with(&format!("mast{number}"), false, Some(&hub.address()), rules.clone());
        let before = mast.socket();
        let mut reader = mast.reader("t");
        let writer = hub.writer("t");
        until("it is matched", || readers(&writer) > 0);
        mast.hold_to(rules.clone());
        let who = Rule::new(Effect::Deny, Who::Login("zoe".to_owned()), &["read"], "t").unwrap();
        mast.hold_to(Policy { rules: [rules.rules.clone(), vec![who]].concat(), ..rules.clone() });
        write(&writer, 0..50);
        read(&mut reader, 0..50);
        before.is_some() && mast.socket() == before
    });
    assert!(stays);
}

#[test]
fn a_process_with_a_certificate_joins_a_hub_elsewhere_under_its_name() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let (settings, encryption) = site.settings("far");
    let lan = Some(Lan { key: key(), direct: None, encryption });
    let settings = Settings { hub: Some(hub.address().parse().unwrap()), lan, ..settings };
    let far = Participant::open(settings, SourceName::new("far").unwrap()).unwrap();
    assert_eq!(far.host().as_deref(), Some("far"));
    let mut reader = hub.reader("t");
    let topic = TopicName::new("t").unwrap();
    let writer = far.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    until("it is matched", || readers(&writer) > 0);
    write(&writer, 0..50);
    assert_eq!(read(&mut reader, 0..50), [Some("far".to_owned())]);
}

#[test]
fn the_spool_of_a_host_hears_its_processes_that_come_over_the_network() {
    let site = Site::new();
    let hub = site.host("hub", true, None);
    let spool = hub.role("spool");
    let qos = ReaderQos { hold: Hold::Interim, ..ReaderQos::default() };
    let mut kept = spool.reader(&TopicFilter::new("log/*").unwrap(), &PartitionFilter::All, qos).unwrap();
    let encryption = site.settings("hub").1;
    let lan = Some(Lan { key: key(), direct: None, encryption });
    let elsewhere = Settings::isolated(site.directory.path().join("another user")).in_domain(domain());
    let settings = Settings { hub: Some(hub.address().parse().unwrap()), lan, ..elsewhere };
    let program = Participant::open(settings, SourceName::new("program").unwrap()).unwrap();
    for (topic, urgent) in [("log/info", false), ("log/error", true)] {
        let topic = TopicName::new(topic).unwrap();
        let writer = program.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos { urgent, ..Qos::default() }).unwrap();
        until("the spool is matched", || readers(&writer) > 0);
        // The first one may come before the spool knows the stream.
        write(&writer, 0..1);
        assert_eq!(read(&mut kept, 0..1), [Some("hub".to_owned())]);
        let asked = kept.stats().refetches;
        for number in 1..50 {
            write(&writer, number..number + 1);
            read(&mut kept, number..number + 1);
        }
        assert_eq!(kept.stats().refetches, asked, "{topic}: the samples come by themselves");
    }
}
