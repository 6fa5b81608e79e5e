//! The move of a stream to shared memory, which no sample waits for.

use std::time::Duration;

use tampu_bus::{
    Event, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    engine::memory::{MemoryEngine, MemoryNet},
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

const MS: Duration = Duration::from_millis(1);

fn join(engine: std::sync::Arc<MemoryEngine>, source: &str) -> Participant {
    Participant::on(engine, Domain::new("d").unwrap(), SourceName::new(source).unwrap(), QosTable::default()).unwrap()
}

fn writer(participant: &Participant) -> Writer {
    let topic = TopicName::new("t").unwrap();
    participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap()
}

fn reader(participant: &Participant) -> Reader {
    participant.reader(&TopicFilter::new("t").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap()
}

/// Takes what has arrived, and returns the samples' numbers.
fn taken(reader: &mut Reader) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(event) = reader.next(Duration::ZERO) {
        match event {
            Event::Sample(sample) => numbers.push(sample.sequence),
            Event::Gap(gap) => panic!("{gap:?}"),
            Event::Source(_) => {}
        }
    }
    numbers
}

#[test]
fn samples_go_on_by_messages_until_another_worker_has_made_the_memory() {
    let (net, memory) = (MemoryNet::new(1), tempfile::tempdir().unwrap());
    net.share_memory(memory.path());
    let (one, other) = (join(net.engine("here"), "one"), join(net.engine("here"), "other"));
    let (writer, mut reader) = (writer(&one), reader(&other));
    net.advance(50 * MS);
    writer.write_urgent(b"first").unwrap();
    net.advance(50 * MS);
    assert_eq!(taken(&mut reader), [0]);

    // Twice as much as a stream writes before it moves, while no worker runs.
    for _ in 0..128 {
        writer.write_urgent(&[7; 1024]).unwrap();
    }
    let rings =
        || std::fs::read_dir(memory.path()).unwrap().flatten().filter(|file| file.path().extension() == Some("batches".as_ref()));
    assert_eq!((writer.stats().shared, rings().count()), (0, 0), "a write makes no file");
    net.advance(MS);
    assert_eq!(rings().count(), 1);
    // Each sample arrives in the round after its write, also those around the move, and none is requested again.
    assert_eq!(taken(&mut reader), (1..129).collect::<Vec<_>>());
    for next in 129..229 {
        writer.write_urgent(&[8; 1024]).unwrap();
        net.advance(MS);
        assert_eq!(taken(&mut reader), [next]);
    }
    assert_eq!((writer.stats().shared, reader.stats().refetches), (100, 0));
}
