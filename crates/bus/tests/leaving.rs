//! A process that leaves while a reader of it does not take what it wrote: it waits its time, and asks now and then.

use std::{thread::JoinHandle, time::Duration};

use tampu_bus::{Participant, Qos, QosTable, ReaderQos, TypeTag, engine::memory::MemoryNet};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

fn join(net: &MemoryNet, name: &str) -> Participant {
    let (domain, source) = (Domain::new("test").unwrap(), SourceName::new(name).unwrap());
    Participant::on(net.engine(name), domain, source, QosTable::default()).unwrap()
}

#[test]
fn who_leaves_asks_a_reader_that_does_not_take_now_and_then() {
    let net = MemoryNet::new(1);
    let (one, other) = (join(&net, "writer"), join(&net, "reader"));
    let topic = TopicName::new("t").unwrap();
    let _idle = other.reader(&TopicFilter::new("t").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    let writer = one.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    net.advance(Duration::from_millis(500));
    assert_eq!(writer.readers().len(), 1);
    writer.write(b"left behind").unwrap();
    net.advance(Duration::from_millis(500));
    let before = net.counts().sent;
    // The clock is the test's, so that the one who leaves needs a thread of its own.
    let leaving: JoinHandle<()> = std::thread::spawn(move || drop((writer, one)));
    let (begun, mut sent) = (net.now(), None);
    while !leaving.is_finished() {
        if net.now() - begun < 500_000_000 {
            sent = Some(net.counts().sent - before);
        }
        net.advance(Duration::from_micros(100));
        // It is to come to its own turn between the steps.
        std::thread::yield_now();
    }
    leaving.join().unwrap();
    let (sent, took) = (sent.unwrap_or_default(), Duration::from_nanos(net.now() - begun));
    assert!(took >= Duration::from_millis(500), "it waits its time: {took:?}");
    // A question and an answer each 5 ms, and the heartbeats; not one for every answer.
    assert!((2..400).contains(&sent), "{sent} messages");
}
