//! Nothing of a process that has ended stays with the others, however it ended.

use std::time::Duration;

use tampu_bus::{
    Acquaintances, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
    engine::memory::{MemoryEngine, MemoryNet},
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// A process that reads and writes the topic "t".
struct Life {
    engine: std::sync::Arc<MemoryEngine>,
    reader: Reader,
    writer: Writer,
    participant: Participant,
}

impl Life {
    fn begin(net: &MemoryNet, host: &str, source: &str) -> Life {
        let engine = net.engine(host);
        let (domain, source) = (Domain::new("d").unwrap(), SourceName::new(source).unwrap());
        let participant = Participant::on(engine.clone(), domain, source, QosTable::default()).unwrap();
        let topics = TopicFilter::new("t").unwrap();
        let reader = participant.reader(&topics, &PartitionFilter::All, ReaderQos::default()).unwrap();
        let topic = TopicName::new("t").unwrap();
        let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
        Life { engine, reader, writer, participant }
    }

    fn take_all(&mut self) {
        while self.reader.next(Duration::ZERO).is_some() {}
    }
}

fn after_lives(how_it_ends: impl Fn(&MemoryNet, Life)) -> (Acquaintances, Acquaintances) {
    let net = MemoryNet::new(1);
    let mut observer = Life::begin(&net, "here", "observer");
    net.advance(Duration::from_secs(2));
    observer.take_all();
    let before = observer.participant.acquaintances();
    for number in 0..100_u64 {
        let life = Life::begin(&net, "here", "short");
        net.advance(Duration::from_millis(5));
        // Acknowledgements of these are under way when it ends, a bit later in each life.
        for _ in 0..20 {
            life.writer.write(b"sample").unwrap();
            observer.writer.write(b"sample").unwrap();
            net.advance(Duration::from_micros(300 + 37 * number));
            observer.take_all();
        }
        how_it_ends(&net, life);
        for _ in 0..20 {
            net.advance(Duration::from_millis(5));
            observer.take_all();
        }
    }
    // A simulated process that left still lives, so its readers may come back for three minutes.
    net.advance(Duration::from_secs(200));
    observer.take_all();
    (before, observer.participant.acquaintances())
}

#[test]
fn nothing_of_a_killed_process_stays() {
    let (before, after) = after_lives(|net, life| {
        net.kill(&life.engine);
        // Its destructors do not run.
        std::mem::forget(life);
    });
    assert_eq!(before, after);
}

#[test]
fn nothing_of_a_process_that_left_stays() {
    let (before, after) = after_lives(|_, life| drop(life));
    assert_eq!(before, after);
}

#[test]
fn nothing_of_lives_at_a_node_stays() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let settings = node.client_settings();
    let join = |name: &str| {
        let source = SourceName::new(name).unwrap();
        Participant::on(settings.open().unwrap(), settings.domain.clone(), source, QosTable::default()).unwrap()
    };
    let observer = join("observer");
    let until_processes = |processes: usize| {
        let wanted = Acquaintances { processes, hosts: processes, ..Acquaintances::default() };
        let (began, pause) = (std::time::Instant::now(), Gate::default());
        while observer.acquaintances() != wanted {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", observer.acquaintances());
            pause.wait_host(0, Duration::from_millis(10));
        }
    };
    until_processes(1);
    let lives: Vec<Participant> = (0..20).map(|number| join(&format!("life {number}"))).collect();
    until_processes(21);
    drop(lives);
    until_processes(1);
}
