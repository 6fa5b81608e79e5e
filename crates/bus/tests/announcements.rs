//! Announcements of a host that was cut off: they go and return one by one, in any order.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_bus::{
    Participant, Qos, QosTable, ReaderQos, ReaderState, TypeTag, Writer,
    access::{Effect, Policy, Rule, Who, publish_policy},
    engine::{
        Engine, Guard, OWN_HOST,
        memory::{MemoryEngine, MemoryNet},
    },
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// A process on the host "guest" with a reader, of which only the announcements are left.
struct Guest {
    engine: Arc<MemoryEngine>,
    process: String,
    reader: String,
}

impl Guest {
    /// Takes the announcements of a real process, which then leaves.
    fn in_net(net: &MemoryNet) -> Guest {
        let keys: Arc<Mutex<Vec<String>>> = Arc::default();
        let engine = net.engine("guest");
        let into = keys.clone();
        let seen = Arc::new(move |seen: tampu_bus::engine::Presence| into.lock().unwrap().push(seen.key));
        let _watch = engine.watch("tampu/lab/**", seen, None).unwrap();
        let real = join(net.engine("guest"), "on guest");
        let (topics, qos) = (TopicFilter::new("t").unwrap(), ReaderQos::default());
        let _reader = real.reader(&topics, &PartitionFilter::All, qos).unwrap();
        net.advance(Duration::from_millis(50));
        let key = |kind: &str| {
            let keys = keys.lock().unwrap();
            let mut parts: Vec<&str> = keys.iter().find(|key| key.split('/').nth(2) == Some(kind)).unwrap().split('/').collect();
            parts[3] = OWN_HOST;
            parts.join("/")
        };
        Guest { process: key("p"), reader: key("r"), engine }
    }

    fn announces_process(&self) -> Guard {
        self.engine.announce(&self.process).unwrap()
    }

    fn announces_reader(&self) -> Guard {
        self.engine.announce(&self.reader).unwrap()
    }
}

fn join(engine: Arc<MemoryEngine>, source: &str) -> Participant {
    Participant::on(engine, Domain::new("lab").unwrap(), SourceName::new(source).unwrap(), QosTable::default()).unwrap()
}

fn writer(participant: &Participant) -> Writer {
    let topic = TopicName::new("t").unwrap();
    participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap()
}

fn readers(writer: &Writer) -> usize {
    writer.readers().iter().filter(|reader| reader.state != ReaderState::Gone).count()
}

#[test]
fn a_reader_that_returns_after_its_process_keeps_its_place() {
    let net = MemoryNet::new(1);
    let guest = Guest::in_net(&net);
    let hub = join(net.engine("hub"), "on hub");
    let writer = writer(&hub);
    let (process, reader) = (guest.announces_process(), guest.announces_reader());
    net.advance(Duration::from_millis(100));
    assert_eq!(readers(&writer), 1);
    for _ in 0..10 {
        writer.write(b"a").unwrap();
    }
    // The reader goes first, and its process a little later.
    drop(reader);
    net.advance(Duration::from_millis(300));
    drop(process);
    net.advance(Duration::from_secs(2));
    assert_eq!(readers(&writer), 1);
    // The process returns first, and its reader a little later.
    let _process = guest.announces_process();
    net.advance(Duration::from_secs(1));
    assert_eq!(readers(&writer), 1);
    let reader = guest.announces_reader();
    net.advance(Duration::from_millis(100));
    let status = writer.readers().pop().unwrap();
    assert_eq!((status.acked, writer.readers().len()), (0, 1), "{status:?}");
    // A reader alone is gone soon.
    drop(reader);
    net.advance(Duration::from_secs(1));
    assert_eq!(readers(&writer), 0);
}

#[test]
fn a_process_that_returns_without_its_reader_has_closed_it() {
    let net = MemoryNet::new(1);
    let guest = Guest::in_net(&net);
    let hub = join(net.engine("hub"), "on hub");
    let writer = writer(&hub);
    let both = (guest.announces_process(), guest.announces_reader());
    net.advance(Duration::from_millis(100));
    drop(both);
    net.advance(Duration::from_secs(1));
    let _process = guest.announces_process();
    net.advance(Duration::from_secs(1));
    assert_eq!(readers(&writer), 1);
    net.advance(Duration::from_secs(3));
    assert_eq!(readers(&writer), 0);
}

#[test]
fn rules_made_while_a_host_is_away_hold_when_it_returns() {
    for process_first in [true, false] {
        let net = MemoryNet::new(1);
        let directory = tempfile::tempdir().unwrap();
        let shared = directory.path().join("rings");
        std::fs::create_dir(&shared).unwrap();
        net.prove_hosts();
        net.share_memory(&shared);
        let guest = Guest::in_net(&net);
        let hub = join(net.engine("hub"), "on hub");
        let writer = writer(&hub);
        let both = (guest.announces_process(), guest.announces_reader());
        net.advance(Duration::from_millis(100));
        assert_eq!(readers(&writer), 1);
        drop(both);
        net.advance(Duration::from_millis(200));
        let deny = Rule::new(Effect::Deny, Who::Host("guest".to_owned()), &["read"], "t").unwrap();
        publish_policy(directory.path(), &Policy { rules: vec![deny], ..Policy::default() }).unwrap();
        net.advance(Duration::from_secs(2));
        let mut announced = Vec::new();
        for process in [process_first, !process_first] {
            announced.push(if process { guest.announces_process() } else { guest.announces_reader() });
            net.advance(Duration::from_millis(100));
        }
        assert_eq!(readers(&writer), 0, "{process_first}");
    }
}
