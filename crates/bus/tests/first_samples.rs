//! Samples that a process writes before it knows the readers that were on the bus before it.

use std::time::Duration;

use tampu_bus::{
    Event, History, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    engine::memory::{MemoryEngine, MemoryNet},
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

fn join(engine: std::sync::Arc<MemoryEngine>, source: &str) -> Participant {
    Participant::on(engine, Domain::new("d").unwrap(), SourceName::new(source).unwrap(), QosTable::default()).unwrap()
}

/// A writer that keeps few samples for late readers.
fn writer(participant: &Participant) -> Writer {
    let topic = TopicName::new("t").unwrap();
    let qos = Qos { keep: 4 << 10, ..Qos::default() };
    participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos).unwrap()
}

fn reader(participant: &Participant) -> Reader {
    let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
    participant.reader(&TopicFilter::new("t").unwrap(), &PartitionFilter::All, qos).unwrap()
}

/// Lets time pass, and returns the first and the number of the samples that have arrived, and the number of lost ones.
fn arrived(net: &MemoryNet, reader: &mut Reader) -> (Option<u64>, u64, u64) {
    let (mut first, mut count, mut lost) = (None, 0, 0);
    for _ in 0..100 {
        net.advance(Duration::from_millis(10));
        while let Some(event) = reader.next(Duration::ZERO) {
            match event {
                Event::Sample(sample) => {
                    first.get_or_insert(sample.sequence);
                    count += 1;
                }
                Event::Gap(gap) => lost += gap.to.map_or(0, |to| to - gap.from),
                Event::Source(_) => {}
            }
        }
    }
    (first, count, lost)
}

#[test]
fn they_are_kept_for_those_readers_however_many_they_are() {
    let net = MemoryNet::new(1);
    let observer = join(net.engine("here"), "observer");
    let mut early = reader(&observer);
    net.advance(Duration::from_secs(1));
    let life = join(net.engine("here"), "life");
    let writer = writer(&life);
    // No time passes: the reader, which was there before, is not known yet.
    for _ in 0..2000 {
        writer.write_urgent(&[1; 1000]).unwrap();
    }
    assert_eq!(writer.readers(), []);
    assert_eq!(arrived(&net, &mut early), (Some(0), 2000, 0));
    // For readers that come later only the last samples are kept.
    assert!(writer.stats().cache <= 4 << 10, "{:?}", writer.stats());
    let mut late = reader(&observer);
    let (first, count, lost) = arrived(&net, &mut late);
    assert!(first > Some(1990) && count < 10 && lost == 0, "{first:?} {count} {lost}");
}

#[test]
fn they_reach_a_reader_also_if_the_process_is_killed_once_it_is_known() {
    for seed in 1..=20 {
        let net = MemoryNet::new(seed);
        let observer = join(net.engine("here"), "observer");
        let mut early = reader(&observer);
        net.advance(Duration::from_secs(1));
        let engine = net.engine("here");
        let life = join(engine.clone(), "life");
        let writer = writer(&life);
        let mut written = 0;
        while writer.readers().is_empty() {
            writer.write_urgent(&[1; 100]).unwrap();
            written += 1;
            net.advance(Duration::from_micros(50));
        }
        writer.write_urgent(&[1; 100]).unwrap();
        assert!(written > 3, "seed {seed}: nothing was written before the reader was known");
        // It is killed as soon as one sample has arrived: no request for the first ones can be answered.
        let mut rounds = 0;
        while observer.acquaintances().streams == 0 {
            net.advance(Duration::from_micros(10));
            rounds += 1;
            assert!(rounds < 10_000, "seed {seed}");
        }
        net.kill(&engine);
        // Its destructors do not run.
        std::mem::forget((writer, life));
        assert_eq!(arrived(&net, &mut early), (Some(0), written + 1, 0), "seed {seed}");
        assert_eq!(early.stats().refetches, 0, "seed {seed}");
    }
}

#[test]
fn they_are_forgotten_where_no_reader_was() {
    let net = MemoryNet::new(1);
    let life = join(net.engine("here"), "life");
    let writer = writer(&life);
    for _ in 0..500 {
        writer.write_urgent(&[1; 1000]).unwrap();
    }
    assert!(writer.stats().cache > 400_000, "{:?}", writer.stats());
    net.advance(Duration::from_secs(1));
    assert!(writer.stats().cache <= 4 << 10, "{:?}", writer.stats());
}
