//! Tampu's bus: through the host's node or by direct links, with copied or lent samples.
//!
//! The topic's Qos lets readers hold the writer (`max_wait` = `wait_period` = 1 s). So a run measures a rate that every
//! reader keeps up with, without loss. The readers count the messages to verify that.

use std::{path::Path, sync::Arc, thread, time::Duration};

use tampu_bus::{
    Event, Loan, Participant, Qos, QosTable, Reader, ReaderQos, TypeTag, Writer,
    connect::{Node, NodeSettings, Settings},
    run_dir::RunDir,
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

use crate::{
    payload::Message,
    process::{RoleMessage, orders, say},
    role::{self, Inbox, Outgoing, Speed},
    tally::Tally,
};

const TOPIC: &str = "bench/data";
/// Number of samples that are taken before the reader's count is given free for a moment.
const AT_ONCE: usize = 256;
const IDLE: Duration = Duration::from_millis(200);

/// Path of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// If true, samples pass from process to process instead of through the node.
    pub direct: bool,
    /// If true, samples are written into lent shared memory and read there.
    pub lent: bool,
}

/// Returns the path that a system's name means.
pub fn way(system: &str) -> Way {
    Way { direct: system.contains("direct"), lent: system.contains("loan") }
}

fn config(dir: &Path) -> Result<Settings, String> {
    let domain = Domain::new("bench").map_err(|e| e.to_string())?;
    Ok(Settings::new(domain, RunDir::at(dir)))
}

/// Connects this process to the bus of the bench.
pub fn participant(dir: &Path, name: &str) -> Result<Participant, String> {
    let config = config(dir)?;
    let domain = config.domain.clone();
    let engine = config.open().map_err(|e| e.to_string())?;
    let source = SourceName::new(name).map_err(|e| e.to_string())?;
    Participant::on(engine, domain, source, QosTable::default()).map_err(|e| e.to_string())
}

/// Runs the node until the bench is over.
pub fn server(dir: &Path) -> Result<(), String> {
    let _node = Node::start(NodeSettings::new(config(dir)?)).map_err(|e| e.to_string())?;
    say(&RoleMessage::At(String::new()));
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

pub fn writer(way: Way, dir: &Path, size: usize, speed: Speed) -> Result<(), String> {
    let participant = participant(dir, "writer")?;
    let topic = TopicName::new(TOPIC).map_err(|e| e.to_string())?;
    let period = Duration::from_secs(1);
    let qos = Qos { max_wait: period, wait_period: period, direct: way.direct, ..Qos::default() };
    let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos).map_err(|e| e.to_string())?;
    say(&RoleMessage::At(String::new()));
    role::write(Out { writer, lent: way.lent, scratch: vec![0; size] }, size, speed)
}

pub fn reader(way: Way, dir: &Path, number: usize, size: usize) -> Result<(), String> {
    let participant = participant(dir, &format!("reader{number}"))?;
    let topics = TopicFilter::new(TOPIC).map_err(|e| e.to_string())?;
    let qos = ReaderQos { direct: way.direct, ..ReaderQos::default() };
    let mut reader = participant.reader(&topics, &PartitionFilter::All, qos).map_err(|e| e.to_string())?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    thread::spawn(move || {
        loop {
            if let Some(event) = reader.next(IDLE) {
                to.with(|tally| count(tally, &event));
                to.with(|tally| take_ready(&mut reader, tally));
            }
        }
    });
    role::read(&inbox)
}

/// Reads all available samples, under one lock.
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
            // A result from memory that the writer took back meanwhile does not count; the number is then missing.
            if let Ok(found) = sample.payload.with(|bytes| tally.check(bytes)) {
                tally.count(found);
            }
        }
        Event::Gap(gap) => tally.told(gap.to.map_or(1, |to| to - gap.from)),
        Event::Source(_) => {}
    }
}
