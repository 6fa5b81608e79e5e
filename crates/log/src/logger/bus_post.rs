//! The way out over the bus: one writer per level and set of audiences.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tampu_bus::{BusError, Participant, Qos, TypeTag, Writer};
use tampu_types::{Level, TopicName, log_batch, name::BadTopic};

use crate::logger::{
    lane::LaneKey,
    post::{Post, Refused},
};

/// What the samples of log topics are.
pub const LOG_BATCH: TypeTag = TypeTag { id: log_batch::TYPE_ID, version: log_batch::VERSION };

/// The topic of a level: `log/warning`.
pub fn topic_of(level: Level) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log/{}", level.name().to_lowercase()))
}

/// How a participant is had; asked again until it succeeds.
pub(crate) type Open = Box<dyn FnMut() -> Result<Participant, BusError> + Send>;

/// How soon joining the bus is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) struct BusPost {
    open: Open,
    participant: Option<Participant>,
    writers: HashMap<LaneKey, Writer>,
    try_again: Option<(Instant, String)>,
}

impl BusPost {
    pub fn new(open: Open) -> BusPost {
        BusPost { open, participant: None, writers: HashMap::new(), try_again: None }
    }

    fn participant(&mut self) -> Result<Participant, Refused> {
        if let Some(participant) = &self.participant {
            return Ok(participant.clone());
        }
        if let Some((at, why)) = &self.try_again
            && *at > Instant::now()
        {
            return Err(Refused::NotYet(why.clone()));
        }
        match (self.open)() {
            Ok(participant) => {
                self.participant = Some(participant.clone());
                Ok(participant)
            }
            Err(error) => {
                let why = error.to_string();
                self.try_again = Some((Instant::now() + RETRY, why.clone()));
                Err(Refused::NotYet(why))
            }
        }
    }

    fn writer(&mut self, lane: &LaneKey) -> Result<&Writer, Refused> {
        if !self.writers.contains_key(lane) {
            let participant = self.participant()?;
            let topic = topic_of(lane.level).map_err(|error| Refused::Never(error.to_string()))?;
            let qos = Qos { ..participant.qos(&topic) };
            let writer = participant
                .writer(&topic, &lane.partition, LOG_BATCH, qos)
                .map_err(|error| Refused::NotYet(error.to_string()))?;
            self.writers.insert(lane.clone(), writer);
        }
        self.writers.get(lane).ok_or_else(|| Refused::NotYet("no writer".to_owned()))
    }
}

impl Post for BusPost {
    fn publish(&mut self, lane: &LaneKey, urgent: bool, packet: &[u8]) -> Result<(), Refused> {
        let writer = self.writer(lane)?;
        let written = if urgent { writer.write_urgent(packet) } else { writer.write(packet) };
        written.map(|_| ()).map_err(|error| Refused::Never(error.to_string()))
    }

    fn flush(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut complete = true;
        for writer in self.writers.values() {
            let receipt = writer.flush(deadline.saturating_duration_since(Instant::now()));
            complete &= receipt.complete();
        }
        complete
    }
}
