//! Readers that take whole batches.

use std::time::Duration;

use tampu_bus::{BatchEvent, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, engine::memory::MemoryNet};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// Returns the number of the first sample of the next batch, its samples, and whether a caller waits for it.
fn next(reader: &mut Reader) -> (u64, Vec<Vec<u8>>, bool) {
    loop {
        match reader.next_batch(Duration::from_secs(5)) {
            Some(BatchEvent::Batch(batch)) => {
                let samples: Vec<Vec<u8>> = batch.samples().map(<[u8]>::to_vec).collect();
                assert_eq!((batch.header.first, batch.header.next()), (batch.first, batch.next));
                assert_eq!(batch.next - batch.first, samples.len() as u64);
                return (batch.first, samples, batch.soon());
            }
            Some(BatchEvent::Sample(_)) => panic!("a part of a batch"),
            Some(_) => {}
            None => panic!("nothing arrived"),
        }
    }
}

#[test]
fn a_batch_has_its_samples_in_order_and_the_wish_of_its_writer() {
    let net = MemoryNet::new(1);
    let join = |name| {
        let (domain, source) = (Domain::new("d").unwrap(), SourceName::new(name).unwrap());
        Participant::on(net.engine(name), domain, source, QosTable::default()).unwrap()
    };
    let (antenna, keeper) = (join("DV01"), join("keeper"));
    let topic = TopicName::new("t").unwrap();
    let mut reader = keeper.reader(&TopicFilter::new("t").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    // Only the first sample after a pause is sent at once.
    let qos = Qos { linger: Duration::from_secs(60), ..Qos::default() };
    let writer = antenna.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos).unwrap();
    net.advance(Duration::from_millis(10));
    let samples: Vec<Vec<u8>> = (0..20u8).map(|number| vec![number; usize::from(number)]).collect();
    for sample in &samples {
        writer.write(sample).unwrap();
    }
    writer.write_awaited(b"now", tampu_bus::Grade::Kept).unwrap();
    net.advance(Duration::from_millis(10));
    assert_eq!(next(&mut reader), (0, samples[..1].to_vec(), false));
    let rest: Vec<Vec<u8>> = samples[1..].iter().cloned().chain([b"now".to_vec()]).collect();
    assert_eq!(next(&mut reader), (1, rest, true));
}
