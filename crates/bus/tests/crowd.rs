//! Messages among many processes that log, while others come.

use std::time::Duration;

use tampu_bus::{Hold, Participant, Qos, QosTable, ReaderQos, TypeTag, engine::memory::MemoryNet};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

const WRITERS: usize = 30;

#[test]
fn a_process_that_reads_nothing_of_the_others_costs_them_no_message() {
    let net = MemoryNet::new(1);
    let join = |name: String| {
        let source = SourceName::new(name).unwrap();
        Participant::on(net.engine("host"), Domain::new("d").unwrap(), source, QosTable::default()).unwrap()
    };
    let read = |participant: &Participant, topics: &str, hold| {
        let qos = ReaderQos { hold, ..ReaderQos::default() };
        participant.reader(&TopicFilter::new(topics).unwrap(), &PartitionFilter::All, qos).unwrap()
    };
    let spool = join("spool".to_owned());
    let mut spooled = read(&spool, "log/*", Hold::Interim);
    let mut wrote = Vec::new();
    for number in 0..WRITERS {
        let participant = join(format!("writer-{number}"));
        let topic = TopicName::new("log/info").unwrap();
        let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
        wrote.push((participant, writer));
    }
    net.advance(Duration::from_millis(100));
    wrote.iter().for_each(|(_, writer)| _ = writer.write(b"record").unwrap());
    for _ in 0..20 {
        net.advance(Duration::from_millis(50));
        while spooled.next(Duration::ZERO).is_some() {}
    }
    let during = |work: &mut dyn FnMut()| {
        let before = net.counts().sent;
        work();
        net.advance(Duration::from_millis(50));
        net.counts().sent - before
    };
    let mut comers = Vec::new();
    let sent = during(&mut || {
        for number in 0..WRITERS {
            let participant = join(format!("comer-{number}"));
            let reader = read(&participant, "log-attach", Hold::Bounded);
            comers.push((participant, reader));
            net.advance(Duration::from_millis(1));
        }
    });
    // Idle writers send a heartbeat twice a second; it is answered.
    assert!(sent < 4 * WRITERS as u64, "{sent} messages while {WRITERS} readers of another topic came to {WRITERS} writers");
    let sent = during(&mut || comers.clear());
    assert!(sent < 8 * WRITERS as u64, "{sent} messages while they left");
}
