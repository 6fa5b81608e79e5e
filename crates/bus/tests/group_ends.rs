//! The last samples of a process that ends arrive also where a multicast group carries them, late or not at all.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_bus::{
    Event, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    engine::{
        Class, Engine, Guard, OWN_HOST,
        memory::{MemoryEngine, MemoryNet},
    },
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// A writer on one host and readers on two others, joined by a group that the test carries.
struct Site {
    net: MemoryNet,
    readers: Vec<(Participant, Reader)>,
    /// The writer with its process, until that ends.
    writer: Option<(Writer, Participant)>,
    engine: Arc<MemoryEngine>,
    sent: mpsc::Receiver<Bytes>,
    /// The node of the writer's host, which passes batches on to the nodes of the others.
    node: Arc<MemoryEngine>,
    _guards: [Guard; 2],
    _directory: tempfile::TempDir,
}

fn join(engine: Arc<MemoryEngine>, source: &str) -> Participant {
    Participant::on(engine, Domain::new("d").unwrap(), SourceName::new(source).unwrap(), QosTable::default()).unwrap()
}

impl Site {
    fn new() -> Site {
        let net = MemoryNet::new(1);
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("rings")).unwrap();
        net.share_memory(directory.path().join("rings"));
        let boots: Vec<u32> = ["b", "c"].map(|host| net.engine(host).incarnation().boot).into();
        let groups = format!(r#"{{"groups":{{"0":{{"topics":"**","boots":{boots:?},"hosts":[]}}}}}}"#);
        fs::write(directory.path().join("groups.json"), groups).unwrap();
        let readers = ["b", "c"].map(|host| {
            let participant = join(net.engine(host), host);
            let topics = TopicFilter::new("t").unwrap();
            let reader = participant.reader(&topics, &PartitionFilter::All, ReaderQos::default()).unwrap();
            (participant, reader)
        });
        let (engine, node) = (net.engine("a"), net.engine("a"));
        let (send, sent) = mpsc::channel();
        let deliver = Arc::new(move |bytes, _: &str| send.send(bytes).unwrap());
        let boot = engine.incarnation().boot;
        let taken = node.subscribe(&format!("tampu/d/g/*/{boot:08x}/0/**"), deliver).unwrap();
        let present = node.announce(&format!("tampu/d/n/{OWN_HOST}/{boot:08x}")).unwrap();
        let participant = join(engine.clone(), "a");
        let topic = TopicName::new("t").unwrap();
        let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
        net.advance(Duration::from_secs(1));
        let readers = readers.into();
        Site {
            net,
            readers,
            writer: Some((writer, participant)),
            engine,
            sent,
            node,
            _guards: [taken, present],
            _directory: directory,
        }
    }

    /// Writes a sample, and returns the batch that the writer has sent to the group.
    fn write(&self, sample: &[u8]) -> Bytes {
        let (writer, _) = self.writer.as_ref().unwrap();
        writer.write(sample).unwrap();
        writer.send_now();
        let batch = || self.sent.try_recv().ok();
        let mut found = None;
        assert!(self.net.until(
            || {
                found = found.take().or_else(batch);
                found.is_some()
            },
            Duration::from_millis(100)
        ));
        found.unwrap()
    }

    /// Does what the nodes of both readers' hosts do when a batch arrives.
    fn bring(&self, batch: &Bytes) {
        for (participant, _) in &self.readers {
            let key = format!("tampu/d/g/{OWN_HOST}/{:08x}/in/t/.", participant.incarnation().boot);
            self.node.outlet(&key, Class::Control).unwrap().send(batch.clone()).unwrap();
        }
    }
}

/// Returns what each reader gets within two seconds: samples, and a letter for a gap.
fn got(net: &MemoryNet, readers: &mut [(Participant, Reader)]) -> Vec<String> {
    net.advance(Duration::from_secs(2));
    let of = |(_, reader): &mut (Participant, Reader)| {
        let mut text = String::new();
        while let Some(event) = reader.next(Duration::ZERO) {
            match event {
                Event::Sample(sample) => text.push_str(&String::from_utf8_lossy(&sample.payload.to_vec().unwrap())),
                Event::Gap(gap) if gap.to.is_none() => text.push('?'),
                Event::Gap(_) => text.push('!'),
                Event::Source(_) => {}
            }
        }
        text
    };
    readers.iter_mut().map(of).collect()
}

#[test]
fn a_process_that_leaves_waits_until_readers_have_fetched_what_the_group_lost() {
    let mut site = Site::new();
    let first = site.write(b"1");
    site.bring(&first);
    site.net.advance(Duration::from_secs(1));
    site.write(b"2");
    site.writer = None;
    assert_eq!(got(&site.net, &mut site.readers), ["12", "12"]);
}

#[test]
fn the_samples_of_a_process_that_left_arrive_late_through_the_group() {
    let mut site = Site::new();
    let first = site.write(b"1");
    site.bring(&first);
    site.net.advance(Duration::from_secs(1));
    let late = site.write(b"2");
    // Nobody can fetch it.
    let is_over = Arc::new(AtomicBool::new(false));
    let lost = is_over.clone();
    site.net.lose_if(Some(Arc::new(move |passing| passing.key.contains("/q/") && !lost.load(Ordering::Relaxed))));
    let before = site.net.now();
    site.writer = None;
    is_over.store(true, Ordering::Relaxed);
    assert!(site.net.now() >= before + 500_000_000, "it waited for acknowledgements");
    site.net.advance(Duration::from_millis(300));
    site.bring(&late);
    assert_eq!(got(&site.net, &mut site.readers), ["12", "12"]);
}

#[test]
fn the_samples_of_a_killed_process_arrive_late_through_the_group() {
    let mut site = Site::new();
    let first = site.write(b"1");
    site.bring(&first);
    site.net.advance(Duration::from_millis(100));
    let late = site.write(b"2");
    site.net.kill(&site.engine);
    site.net.advance(Duration::from_millis(400));
    site.bring(&late);
    assert_eq!(got(&site.net, &mut site.readers), ["12?", "12?"]);
    // Its destructors do not run.
    std::mem::forget(site.writer.take());
}
