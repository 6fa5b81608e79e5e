//! Our own bus: through the host's node or by direct links, copied or lent.
//!
//! The topic's Qos lets readers hold the writer (`max_wait` = `wait_period` = 1 s), so that a run measures what everybody
//! keeps up with and nothing is lost; that nothing was is counted by the readers, not believed.

use std::{path::Path, sync::Arc, thread, time::Duration};

use tampu_bus::{
    Event, Loan, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    engine::zenoh::{
        ZenohEngine,
        config::ZenohConfig,
        node::{Node, NodeConfig},
    },
    run_dir::RunDir,
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

use crate::{
    payload::Message,
    process::{Say, orders, say},
    role::{self, Desk, Outgoing, Speed},
    tally::Tally,
};

const TOPIC: &str = "bench/data";
/// How many samples are taken before the reader's count is given free for a moment.
const AT_ONCE: usize = 256;
const IDLE: Duration = Duration::from_millis(200);

/// How the samples go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// From process to process instead of through the node.
    pub direct: bool,
    /// Written into lent shared memory and read there.
    pub lent: bool,
}

/// The way a system's name says.
pub fn way(system: &str) -> Way {
    Way { direct: system.contains("direct"), lent: system.contains("loan") }
}

fn config(dir: &Path) -> Result<ZenohConfig, String> {
    let domain = Domain::new("bench").map_err(|e| e.to_string())?;
    Ok(ZenohConfig::new(domain, RunDir::at(dir)))
}

/// This process on the bus of the bench.
pub fn participant(dir: &Path, name: &str) -> Result<Participant, String> {
    let config = config(dir)?;
    let domain = config.domain.clone();
    let engine = ZenohEngine::open(config).map_err(|e| e.to_string())?;
    let source = SourceName::new(name).map_err(|e| e.to_string())?;
    Participant::on(Arc::new(engine), domain, source, QosTable::default()).map_err(|e| e.to_string())
}

/// The node, until the bench is over.
pub fn server(dir: &Path) -> Result<(), String> {
    let _node = Node::start(NodeConfig::new(config(dir)?)).map_err(|e| e.to_string())?;
    say(&Say::At(String::new()));
    let orders = orders();
    while orders.recv().is_ok() {}
    Ok(())
}

struct Out {
    writer: Writer,
    lent: bool,
    scratch: Vec<u8>,
}

impl Outgoing for Out {
    #[inline]
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        if self.lent {
            let mut loan = self.writer.loan(message.size).map_err(|e| e.to_string())?;
            message.write(&mut loan);
            Loan::publish(loan).map_err(|e| e.to_string())?;
        } else {
            message.write(&mut self.scratch);
            self.writer.write(&self.scratch).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<String>, String> {
        let receipt = self.writer.flush(Duration::from_secs(10));
        let stats = self.writer.stats();
        let lost: u64 = receipt.lost.iter().map(|range| range.end - range.start).sum();
        let told = [
            (stats.batches > 0).then(|| format!("{:.1} samples a batch", stats.samples as f64 / stats.batches as f64)),
            (stats.waited_ns > 0).then(|| format!("writer waited {:.2} s", stats.waited_ns as f64 / 1e9)),
            (lost > 0).then(|| format!("writer knows of {lost} lost")),
            (stats.copied_loans > 0).then(|| format!("{} loans copied", stats.copied_loans)),
            (stats.refused > 0).then(|| format!("engine refused {} batches", stats.refused)),
        ];
        let told: Vec<String> = told.into_iter().flatten().collect();
        Ok((!told.is_empty()).then(|| told.join(", ")))
    }
}

/// The writer.
pub fn writer(way: Way, dir: &Path, size: usize, speed: Speed) -> Result<(), String> {
    let participant = participant(dir, "writer")?;
    let topic = TopicName::new(TOPIC).map_err(|e| e.to_string())?;
    let period = Duration::from_secs(1);
    let qos = Qos { max_wait: period, wait_period: period, direct: way.direct, ..Qos::default() };
    let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos).map_err(|e| e.to_string())?;
    say(&Say::At(String::new()));
    role::write(Out { writer, lent: way.lent, scratch: vec![0; size] }, size, speed)
}

/// A reader.
pub fn reader(way: Way, dir: &Path, number: usize, size: usize) -> Result<(), String> {
    let participant = participant(dir, &format!("reader{number}"))?;
    let topics = TopicFilter::new(TOPIC).map_err(|e| e.to_string())?;
    let qos = ReaderQos { direct: way.direct, ..ReaderQos::default() };
    let mut reader = participant.reader(&topics, &PartitionFilter::All, qos).map_err(|e| e.to_string())?;
    let desk = Arc::new(Desk::new(size));
    let to = Arc::clone(&desk);
    thread::spawn(move || {
        loop {
            if let Some(event) = reader.next(IDLE) {
                to.with(|tally| count(tally, &event));
                to.with(|tally| take_ready(&mut reader, tally));
            }
        }
    });
    role::read(&desk)
}

/// What is there already, under one lock.
fn take_ready(reader: &mut Reader, tally: &mut Tally) {
    for _ in 0..AT_ONCE {
        match reader.next(Duration::ZERO) {
            Some(event) => count(tally, &event),
            None => break,
        }
    }
}

fn count(tally: &mut Tally, event: &Event<'_>) {
    match event {
        Event::Sample(sample) => {
            // What was seen of memory that the writer took back meanwhile does not count; the number will be missing.
            if let Ok(found) = sample.payload.with(|bytes| tally.check(bytes)) {
                tally.count(found);
            }
        }
        Event::Gap(gap) => tally.told(gap.to.map_or(1, |to| to - gap.from)),
        Event::Source(_) => {}
    }
}
