//! The position up to which a writer's samples are on a disk, with collectors and their substitutes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_bus::{
    Ack, Event, Hold, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag,
    engine::{
        Class,
        memory::{Kind, MemoryNet},
    },
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// Takes the waiting samples and acknowledges them; returns their number.
fn take_all(reader: &mut Reader) -> u64 {
    let mut taken = None;
    while let Some(event) = reader.next(Duration::ZERO) {
        if let Event::Sample(sample) = event {
            taken = Some((sample.stream.clone(), sample.sequence + 1));
        }
    }
    let Some((stream, next)) = taken else { return 0 };
    reader.acknowledge(&stream, next);
    next
}

#[test]
fn what_a_substitute_has_is_kept_while_the_collector_is_stuck() {
    let net = MemoryNet::new(1);
    let domain = Domain::new("d").unwrap();
    let join =
        |name| Participant::on(net.engine("host"), domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap();
    let (antenna, collector, spool) = (join("DV01"), join("collector"), join("spool"));
    let read = |participant: &Participant, hold| {
        let qos = ReaderQos { ack: Ack::Manual, hold, ..ReaderQos::default() };
        participant.reader(&TopicFilter::new("log/info").unwrap(), &PartitionFilter::All, qos).unwrap()
    };
    let mut stuck = read(&collector, Hold::Full);
    let topic = TopicName::new("log/info").unwrap();
    let writer = antenna.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    net.advance(Duration::from_millis(10));
    let write = |count| {
        for _ in 0..count {
            writer.write(b"record").unwrap();
        }
        writer.flush(Duration::ZERO);
        net.advance(Duration::from_millis(50));
    };
    write(3);
    assert_eq!(take_all(&mut stuck), 3);
    net.advance(Duration::from_millis(50));
    assert_eq!(writer.kept(), Some(3));

    // Far less than the writer's window: nothing ever waits for the collector, which acknowledges nothing any more.
    write(4);
    assert_eq!(writer.kept(), Some(3), "nobody has written it to a disk");
    let mut substitute = read(&spool, Hold::Interim);
    net.advance(Duration::from_millis(50));
    assert_eq!(writer.kept(), Some(3), "a substitute that has nothing yet");
    assert_eq!(take_all(&mut substitute), 7);
    net.advance(Duration::from_millis(50));
    assert_eq!(writer.kept(), Some(7), "the substitute has it on its disk");

    // The collector goes on by itself.
    drop(substitute);
    assert_eq!(take_all(&mut stuck), 7);
    write(1);
    assert_eq!(take_all(&mut stuck), 8);
    net.advance(Duration::from_millis(50));
    assert_eq!(writer.kept(), Some(8));
}

#[test]
fn a_substitute_is_sent_the_samples_of_its_own_host_alone() {
    for shares_memory in [false, true] {
        let net = MemoryNet::new(1);
        let directory = tempfile::tempdir().unwrap();
        if shares_memory {
            net.share_memory(directory.path());
        }
        let domain = Domain::new("d").unwrap();
        let join = |host, name| {
            Participant::on(net.engine(host), domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
        };
        let (antenna, spool) = (join("one", "DV01"), join("one", "spool"));
        let (other_spool, viewer) = (join("two", "spool"), join("two", "viewer"));
        let read = |participant: &Participant, hold| {
            let qos = ReaderQos { hold, ..ReaderQos::default() };
            participant.reader(&TopicFilter::new("log/*").unwrap(), &PartitionFilter::All, qos).unwrap()
        };
        let mut own = read(&spool, Hold::Interim);
        let mut other = read(&other_spool, Hold::Interim);
        let mut far = read(&viewer, Hold::Bounded);
        let topic = TopicName::new("log/info").unwrap();
        let writer = antenna.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
        net.advance(Duration::from_millis(10));
        let (mut kept, mut seen) = (0, 0);
        for _ in 0..40 {
            for _ in 0..20 {
                writer.write(&[7; 1000]).unwrap();
            }
            writer.flush(Duration::ZERO);
            net.advance(Duration::from_millis(50));
            while let Some(Event::Sample(sample)) = own.next(Duration::ZERO) {
                assert_eq!(sample.sequence, kept);
                kept += 1;
            }
            while let Some(Event::Sample(sample)) = far.next(Duration::ZERO) {
                assert_eq!(sample.sequence, seen);
                seen += 1;
            }
        }
        assert_eq!((kept, seen), (800, 800), "both have all, in order; shared memory: {shares_memory}");
        assert!(other.next(Duration::ZERO).is_none());
        assert_eq!(other.stats().batches, 0, "nothing of another host came here");
        assert_eq!(own.stats().refetches + far.stats().refetches, 0, "nothing had to be asked for");
        assert_eq!(writer.stats().shared > 0, shares_memory, "the spool reads it in shared memory, although the viewer cannot");
    }
}

#[test]
fn urgent_samples_are_urgent_on_their_way_to_a_substitute() {
    let net = MemoryNet::new(1);
    let domain = Domain::new("d").unwrap();
    let join =
        |name| Participant::on(net.engine("host"), domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap();
    let (antenna, spool) = (join("DV01"), join("spool"));
    let qos = ReaderQos { ack: Ack::Manual, hold: Hold::Interim, ..ReaderQos::default() };
    let mut substitute = spool.reader(&TopicFilter::new("log/*").unwrap(), &PartitionFilter::All, qos).unwrap();
    let classes: Arc<Mutex<Vec<Class>>> = Arc::default();
    let seen = classes.clone();
    net.lose_if(Some(Arc::new(move |passing| {
        if let (Kind::Message(class), true) = (passing.kind, passing.key.starts_with("tampu/d/h/")) {
            seen.lock().unwrap().push(class);
        }
        false
    })));
    for (topic, urgent, class) in [("log/info", false, Class::Control), ("log/error", true, Class::UrgentUndeclared)] {
        let topic = TopicName::new(topic).unwrap();
        let writer = antenna.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos { urgent, ..Qos::default() }).unwrap();
        net.advance(Duration::from_millis(10));
        for _ in 0..3 {
            writer.write(b"record").unwrap();
            writer.flush(Duration::ZERO);
            net.advance(Duration::from_millis(50));
        }
        assert_eq!(take_all(&mut substitute), 3);
        let classes = std::mem::take(&mut *classes.lock().unwrap());
        assert!(!classes.is_empty() && classes.iter().all(|of| *of == class), "{topic}: {classes:?}");
    }
}
