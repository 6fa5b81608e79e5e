//! The state of the writer's clock in batches.

use std::time::Duration;

use tampu_bus::{Event, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, engine::memory::MemoryNet};
use tampu_types::{ClockState, Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

fn next(reader: &mut Reader) -> (ClockState, i16) {
    loop {
        match reader.next(Duration::from_secs(5)) {
            Some(Event::Sample(sample)) => return (sample.clock, sample.tai_offset),
            Some(_) => {}
            None => panic!("nothing arrived"),
        }
    }
}

#[test]
fn a_step_is_told_once_by_each_stream_that_goes_on() {
    let net = MemoryNet::new(1);
    let domain = Domain::new("d").unwrap();
    let engine = net.engine("host");
    let join =
        |engine, name| Participant::on(engine, domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap();
    let (antenna, viewer) = (join(engine.clone(), "DV01"), join(net.engine("other"), "viewer"));
    let read = |topic| viewer.reader(&TopicFilter::new(topic).unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    let write = |topic| {
        let topic = TopicName::new(topic).unwrap();
        antenna.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap()
    };
    let (mut one, mut two, mut three) = (read("one"), read("two"), read("three"));
    let (first, second) = (write("one"), write("two"));
    net.advance(Duration::from_millis(10));

    let good = (ClockState::Synchronised, 37);
    for (writer, reader) in [(&first, &mut one), (&second, &mut two)] {
        writer.write(b"before").unwrap();
        net.advance(Duration::from_millis(10));
        assert_eq!(next(reader), good);
    }
    net.step_utc(&engine, -3_000_000_000);
    for (writer, reader) in [(&first, &mut one), (&second, &mut two)] {
        for expected in [(ClockState::Stepped, 37), good] {
            writer.write(b"after").unwrap();
            net.advance(Duration::from_millis(10));
            assert_eq!(next(reader), expected);
        }
    }
    // The clock cannot have been stepped between the first batch and one before it, because there is none.
    let third = write("three");
    net.advance(Duration::from_millis(10));
    third.write(b"new").unwrap();
    net.advance(Duration::from_millis(10));
    assert_eq!(next(&mut three), good);
}
