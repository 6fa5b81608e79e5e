//! Settings of topics reach the streams of a process, also while they are open, and urgent streams pass ordinary ones.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_bus::{
    Event, Participant, Qos, QosPatch, QosTable, Reader, ReaderQos, Subject, TypeTag, Writer,
    engine::{
        Class,
        memory::{Faults, Kind, MemoryNet},
    },
    topic_settings::{HubSettings, SiteSettings, publish_settings},
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

fn join(net: &MemoryNet, host: &str, name: &str, own: QosTable) -> Participant {
    Participant::on(net.engine(host), Domain::new("lab").unwrap(), SourceName::new(name).unwrap(), own).unwrap()
}

fn reader(participant: &Participant, topics: &str) -> Reader {
    participant.reader(&TopicFilter::new(topics).unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap()
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn writer(participant: &Participant, name: &str, default: Qos) -> Writer {
    let (topic, partition) = (topic(name), Partition::everybody());
    participant.writer_for(&Subject::new(&topic, &partition), TypeTag::OCTETS, default).unwrap()
}

fn patch(topics: &str) -> QosPatch {
    QosPatch { topics: topics.to_owned(), ..QosPatch::default() }
}

fn publish(directory: &Path, topic: Vec<QosPatch>) {
    let hub = HubSettings { hub: "hub@a".to_owned(), topic, others: Vec::new() };
    publish_settings(directory, &SiteSettings { hubs: vec![hub] }).unwrap();
}

/// Takes the samples that are there: topics and first bytes.
fn taken(reader: &mut Reader) -> Vec<(String, u8)> {
    let mut all = Vec::new();
    while let Some(event) = reader.next(Duration::ZERO) {
        if let Event::Sample(sample) = event {
            all.push((sample.stream.topic.to_string(), sample.payload.to_vec().unwrap()[0]));
        }
    }
    all
}

#[test]
fn an_open_stream_follows_the_site_and_a_program_beats_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("shm")).unwrap();
    let net = MemoryNet::new(7);
    net.share_memory(dir.path().join("shm"));
    const HOUR: u64 = 3_600_000_000;
    let slow = || QosPatch { linger_us: Some(HOUR), keep: Some(5), ..patch("t/*") };
    publish(dir.path(), vec![slow()]);
    let own = QosTable::new(vec![QosPatch { keep: Some(6), ..patch("t/b") }]).unwrap();
    let (one, other) = (join(&net, "here", "one", own), join(&net, "there", "other", QosTable::default()));
    let mut reader = reader(&other, "t/*");
    assert_eq!(
        (one.qos(&topic("t/a")).keep, one.qos(&topic("t/b")).keep, one.qos(&topic("u")).keep),
        (5, 6, Qos::default().keep)
    );
    let followed = writer(&one, "t/a", Qos::default());
    net.advance(Duration::from_millis(20));
    followed.write(b"1").unwrap();
    followed.write(b"2").unwrap();
    net.advance(Duration::from_secs(10));
    assert_eq!(taken(&mut reader), [("t/a".to_owned(), b'1')], "the second sample waits for others");
    publish(dir.path(), vec![QosPatch { linger_us: Some(0), ..slow() }]);
    net.advance(Duration::from_millis(1200));
    assert_eq!(taken(&mut reader), [("t/a".to_owned(), b'2')], "the open stream has other settings");
    publish(dir.path(), vec![slow()]);
    net.advance(Duration::from_millis(600));
    followed.write(b"3").unwrap();
    net.advance(Duration::from_secs(10));
    // The file is gone with its hub, and the process keeps what it has.
    std::fs::remove_file(dir.path().join("qos.json")).unwrap();
    net.advance(Duration::from_secs(10));
    assert_eq!(one.qos(&topic("t/a")).keep, 5);
    publish(dir.path(), Vec::new());
    net.advance(Duration::from_secs(2));
    assert_eq!(taken(&mut reader).last(), Some(&("t/a".to_owned(), b'3')), "without settings the default holds");
    assert_eq!(one.qos(&topic("t/a")), Qos::default());
}

#[test]
fn a_stream_with_a_quality_of_its_own_ignores_settings() {
    let net = MemoryNet::new(7);
    let own = QosTable::new(vec![QosPatch { linger_us: Some(3_600_000_000), ..patch("**") }]).unwrap();
    let (one, other) = (join(&net, "here", "one", own), join(&net, "there", "other", QosTable::default()));
    let mut reader = reader(&other, "t");
    let exact = one.writer(&topic("t"), &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    net.advance(Duration::from_millis(20));
    exact.write(b"1").unwrap();
    exact.write(b"2").unwrap();
    net.advance(Duration::from_secs(1));
    assert_eq!(taken(&mut reader).len(), 2);
}

/// Writes 200 KB of ordinary data at once and then 20 samples of the other stream, over a link of 1 MB/s. Returns the
/// samples in the order of their arrival, and the time in ms at which the last one of the other stream arrived.
fn beside_bulk(urgent: bool) -> (Vec<(String, u8)>, u64) {
    let net = MemoryNet::new(3);
    let (one, other) = (join(&net, "here", "one", QosTable::default()), join(&net, "there", "other", QosTable::default()));
    let mut reader = reader(&other, "t/*");
    let (bulk, alarms) = (writer(&one, "t/bulk", Qos::default()), writer(&one, "t/alarm", Qos { urgent, ..Qos::default() }));
    net.advance(Duration::from_millis(50));
    net.set_faults(Faults { rate: 1_000_000, ..Faults::default() });
    for number in 0..100 {
        bulk.write(&[number; 2000]).unwrap();
    }
    bulk.send_now();
    let begun = net.now();
    let (mut arrived, mut last) = (Vec::new(), 0);
    for number in 0..20 {
        alarms.write_urgent(&[number; 50]).unwrap();
        net.advance(Duration::from_millis(1));
        arrived.extend(taken(&mut reader));
    }
    while arrived.len() < 120 {
        net.advance(Duration::from_millis(1));
        let found = taken(&mut reader);
        if found.iter().any(|(topic, _)| topic == "t/alarm") {
            last = (net.now() - begun) / 1_000_000;
        }
        arrived.extend(found);
        assert!(net.now() - begun < 2_000_000_000, "{} samples of 120", arrived.len());
    }
    (arrived, last)
}

#[test]
fn urgent_samples_pass_ordinary_ones_and_never_each_other() {
    let (ordinary, late) = beside_bulk(false);
    assert!(late > 150, "the samples wait behind 200 KB: {late} ms");
    let (arrived, early) = beside_bulk(true);
    assert!(early < 40, "the samples pass the 200 KB: {early} ms");
    for arrived in [&ordinary, &arrived] {
        for (topic, count) in [("t/bulk", 100), ("t/alarm", 20)] {
            let numbers: Vec<u8> = arrived.iter().filter(|(of, _)| of == topic).map(|(_, number)| *number).collect();
            assert_eq!(numbers, (0..count).collect::<Vec<u8>>(), "{topic} is whole and in order");
        }
    }
}

#[test]
fn urgent_samples_under_faults_arrive_whole_and_in_order() {
    for seed in 1..=20 {
        let net = MemoryNet::new(seed);
        let (one, other) = (join(&net, "here", "one", QosTable::default()), join(&net, "there", "other", QosTable::default()));
        let mut reader = reader(&other, "t");
        let urgent = writer(&one, "t", Qos { urgent: true, ..Qos::default() });
        net.advance(Duration::from_millis(50));
        let classes: Arc<Mutex<Vec<Class>>> = Arc::default();
        let seen = classes.clone();
        net.lose_if(Some(Arc::new(move |passing| {
            if let Kind::Message(class) = passing.kind {
                seen.lock().unwrap().push(class);
            }
            false
        })));
        net.set_faults(Faults { loss: 0.1, duplicate: 0.1, reorder: 0.2, rate: 200_000, capacity: 20_000, ..Faults::default() });
        let mut arrived = Vec::new();
        for number in 0..100_u8 {
            urgent.write(&[number; 700]).unwrap();
            net.advance(Duration::from_millis(2));
            arrived.extend(taken(&mut reader));
        }
        for _ in 0..200 {
            net.advance(Duration::from_millis(50));
            arrived.extend(taken(&mut reader));
        }
        let numbers: Vec<u8> = arrived.into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, (0..100).collect::<Vec<u8>>(), "seed {seed}");
        let classes = classes.lock().unwrap();
        assert!(classes.contains(&Class::Urgent) && !classes.contains(&Class::Data), "seed {seed}");
    }
}
