//! The conformance suite on the memory engine.

#[macro_use]
mod conformance;

use std::time::Duration;

use conformance::simulated::MemoryArena;
use tampu_bus::{Event, Participant, Qos, QosTable, ReaderQos, TypeTag, engine::memory::MemoryNet};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

conformance!(MemoryArena with faults);

/// Only a reader and a writer in one worker can use the memory again on purpose while it is being read.
#[test]
fn memory_used_again_while_it_is_read_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let net = MemoryNet::new(1);
    net.share_memory(directory.path());
    let join = |name: &str| {
        let (domain, source) = (Domain::new("d").unwrap(), SourceName::new(name).unwrap());
        Participant::on(net.engine("here"), domain, source, QosTable::default()).unwrap()
    };
    let (one, other) = (join("one"), join("other"));
    let mut reader = other.reader(&TopicFilter::new("t").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    let qos = Qos { pool: 64 << 10, max_wait: Duration::from_millis(1), ..Qos::default() };
    let writer = one.writer(&TopicName::new("t").unwrap(), &Partition::everybody(), TypeTag::OCTETS, qos).unwrap();
    net.advance(Duration::from_millis(200));
    let lend = |value: u8| {
        let mut loan = writer.loan(16 << 10).unwrap();
        loan.fill(value);
        loan.publish().unwrap();
    };
    lend(1);
    loop {
        let event = reader.next(Duration::from_secs(1));
        let Some(Event::Sample(sample)) = event else {
            assert!(event.is_some(), "the sample did not come");
            continue;
        };
        assert_eq!(sample.payload.bytes(), None, "it lies where it was written");
        assert_eq!(sample.payload.with(|bytes| bytes.iter().all(|&byte| byte == 1)), Ok(true));
        let mut saw = (0, 0);
        let used = sample.payload.with(|bytes| {
            saw.0 = bytes[0];
            (2..10).for_each(lend);
            saw.1 = bytes[0];
        });
        assert!(saw.0 == 1 && saw.1 != 1, "the memory was used again: {saw:?}");
        assert!(used.is_err(), "and that is told");
        assert!(sample.payload.to_vec().is_err(), "from then on");
        break;
    }
}
