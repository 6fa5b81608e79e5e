//! Records on their way to the collector: a writer a level, and the wait until all are committed.

use std::{collections::BTreeMap, time::Duration};

use tampu_bus::{Participant, Qos, ReaderState, Writer};
use tampu_log::logger::{LOG_BATCH, qos_of, topic_of};
use tampu_types::{Level, LogBatchBuilder, LogRecord, Partition};

use crate::{
    failure::{Failure, Outcome},
    interrupt::Interrupt,
    keeper::Keeper,
};

/// Bytes after which a packet is sent.
const PACKET: usize = 40 << 10;
/// Time of one wait for the acknowledgement.
const LOOK: Duration = Duration::from_millis(200);
/// Waits after which a message is printed.
const PATIENCE: u32 = 50;
/// Time limit of a write for its readers.
const WAIT: Duration = Duration::from_secs(60);

struct Lane {
    writer: Writer,
    next: u64,
    builder: LogBatchBuilder,
}

impl Lane {
    fn write(&mut self) -> Outcome {
        if !self.builder.is_empty() {
            let written = self.writer.write(self.builder.seal());
            self.builder.reset();
            self.next = written.map_err(|error| Failure::failed("sending records", error))?.sequence + 1;
        }
        Ok(())
    }
}

pub(super) struct Sending {
    participant: Participant,
    /// Name of the collector among the readers, in lower case.
    collector: String,
    lanes: BTreeMap<Level, Lane>,
    sent: u64,
    committed: u64,
}

impl Sending {
    pub fn new(keeper: &Keeper) -> Result<Sending, Failure> {
        let status = keeper.status()?;
        let collector = status["collector"].as_str().unwrap_or_default().to_lowercase();
        Ok(Sending { participant: keeper.participant().clone(), collector, lanes: BTreeMap::new(), sent: 0, committed: 0 })
    }

    /// Records that are surely kept.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Sends a record, soon.
    pub fn send(&mut self, record: &LogRecord) -> Outcome {
        if !self.lanes.contains_key(&record.level) {
            let topic = topic_of(record.level).map_err(|error| Failure::failed("a topic", error))?;
            let qos = Qos {
                max_wait: WAIT,
                wait_period: WAIT,
                ..qos_of(&self.participant, record.level).map_err(|error| Failure::failed("a topic", error))?
            };
            let writer = self.participant.writer(&topic, &Partition::everybody(), LOG_BATCH, qos);
            let writer = writer.map_err(|error| Failure::failed("writing to the bus", error))?;
            self.lanes.insert(record.level, Lane { writer, next: 0, builder: LogBatchBuilder::new() });
        }
        if let Some(lane) = self.lanes.get_mut(&record.level) {
            lane.builder.push_record(record).map_err(|error| Failure::failed("a record", error))?;
            self.sent += 1;
            if lane.builder.len() >= PACKET {
                lane.write()?;
            }
        }
        Ok(())
    }

    /// Waits until all sent records are committed; returns false after an earlier interrupt.
    pub fn confirm(&mut self, interrupt: &Interrupt) -> Result<bool, Failure> {
        let mut looks = 0;
        for lane in self.lanes.values_mut() {
            lane.write()?;
        }
        for lane in self.lanes.values() {
            while !is_committed(lane, &self.collector) {
                if interrupt.asked() {
                    return Ok(false);
                }
                let receipt = lane.writer.flush(LOOK);
                if !receipt.lost.is_empty() {
                    return Err(Failure::Failed(
                        "records were lost on their way: start again to resend the uncommitted records".to_owned(),
                    ));
                }
                if !is_committed(lane, &self.collector) {
                    // A flush without a reader returns at once.
                    interrupt.wait(Duration::from_millis(10));
                    looks += 1;
                    if looks == PATIENCE {
                        eprintln!("tampu: waiting for the collector '{}' to commit", self.collector);
                    }
                }
            }
        }
        self.committed = self.sent;
        Ok(true)
    }
}

fn is_committed(lane: &Lane, collector: &str) -> bool {
    let readers = lane.writer.readers();
    let mut collectors =
        readers.iter().filter(|reader| reader.source == collector && reader.state != ReaderState::Gone).peekable();
    lane.next == 0 || collectors.peek().is_some() && collectors.all(|reader| reader.acked >= lane.next)
}
