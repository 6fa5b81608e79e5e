//! The way out over the bus: one writer per level and set of audiences.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tampu_bus::{BusError, Hold, Participant, Qos, ReaderState, TypeTag, Writer, engine::Guard};
use tampu_types::{Level, TopicName, log_batch, name::BadTopic};

use crate::logger::{
    attach::{Ear, attached_topic_of},
    clock::now,
    control::{self, Controlled},
    lane::{LaneKey, Reach},
    post::{Post, Refused},
};

/// What the samples of log topics are.
pub const LOG_BATCH: TypeTag = TypeTag { id: log_batch::TYPE_ID, version: log_batch::VERSION };

/// The topic of a level: `log/warning`.
pub fn topic_of(level: Level) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log/{}", level.name().to_lowercase()))
}

/// The Qos of a log topic, unless the configuration says otherwise. The collector acknowledges after its commit, so several
/// milliseconds of a full stream are under way; and while no collector is there, more is kept for it than for an ordinary reader.
pub fn qos_of(participant: &Participant, topic: &TopicName) -> Qos {
    participant.qos_over(Qos { credit: 4 << 20, keep: 16 << 20, ..Qos::default() }, topic)
}

/// How a participant is had; asked again until it succeeds.
pub(crate) type Open = Box<dyn FnMut() -> Result<Participant, BusError> + Send>;

/// How soon joining the bus is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long after joining the bus readers may still be unknown to us.
const ACQUAINTANCE: Duration = Duration::from_millis(150);

/// How long somebody who wants to know what was delivered waits for a reader to appear.
const APPEARANCE: Duration = Duration::from_millis(300);

/// How often it is listened for what readers want.
const HEAR: Duration = Duration::from_millis(20);

/// How often a wait for readers looks.
const LOOK: Duration = Duration::from_millis(10);

/// A writer and the number after its last sample.
struct Outlet {
    writer: Writer,
    next: u64,
}

impl Outlet {
    /// Waits until everything written has been acknowledged by everybody who reads; whether it has, and by at least one.
    fn confirm(&self, until: Instant, known_by: Instant) -> bool {
        while !self.has_readers() {
            let now = Instant::now();
            if now >= until.min(known_by) {
                return self.next == 0;
            }
            std::thread::sleep(LOOK);
        }
        loop {
            self.writer.flush(until.saturating_duration_since(Instant::now()));
            let mut readers = self.writer.readers().into_iter().filter(|reader| reader.state != ReaderState::Gone);
            if readers.all(|reader| reader.acked >= self.next) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until everything written has been committed by a collector; whether it has.
    fn keep(&self, until: Instant) -> bool {
        loop {
            let begun = Instant::now();
            // Returns as soon as everybody has acknowledged, which nearly always is the collector.
            self.writer.flush(until.saturating_duration_since(begun).min(LOOK));
            let readers = self.writer.readers();
            let mut keepers = readers.iter().filter(|reader| reader.hold == Hold::Full && reader.state != ReaderState::Gone);
            if self.next == 0 || keepers.any(|keeper| keeper.acked >= self.next) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            if begun.elapsed() < LOOK {
                std::thread::sleep(LOOK - begun.elapsed().min(LOOK));
            }
        }
    }

    fn has_readers(&self) -> bool {
        self.writer.readers().iter().any(|reader| reader.state != ReaderState::Gone)
    }
}

pub(crate) struct BusPost {
    open: Open,
    loggers: Option<Arc<dyn Controlled>>,
    // Taken back before the bus is left.
    _control: Option<Guard>,
    ear: Option<Ear>,
    /// When the ear listens again.
    hear_at: Instant,
    participant: Option<Participant>,
    joined: Option<Instant>,
    writers: HashMap<LaneKey, Outlet>,
    try_again: Option<(Instant, String)>,
    /// Whether this host has, or had, a node.
    has_heir: bool,
}

impl BusPost {
    pub fn new(open: Open) -> BusPost {
        BusPost {
            open,
            loggers: None,
            _control: None,
            ear: None,
            hear_at: Instant::now(),
            participant: None,
            joined: None,
            writers: HashMap::new(),
            try_again: None,
            has_heir: false,
        }
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
        match self.join() {
            Ok(participant) => {
                self.participant = Some(participant.clone());
                self.joined = Some(Instant::now());
                Ok(participant)
            }
            Err(error) => {
                let why = error.to_string();
                self.try_again = Some((Instant::now() + RETRY, why.clone()));
                Err(Refused::NotYet(why))
            }
        }
    }

    fn join(&mut self) -> Result<Participant, BusError> {
        let participant = (self.open)()?;
        if let Some(loggers) = &self.loggers {
            match control::serve(&participant, loggers.clone()) {
                Ok(guard) => self._control = Some(guard),
                // Logging is worth more than being asked about it.
                Err(error) => eprintln!("tampu-log: {}: its levels cannot be set from outside: {error}", participant.source()),
            }
            match loggers.may_be_attached().then(|| Ear::open(&participant)).transpose() {
                Ok(ear) => self.ear = ear,
                Err(error) => eprintln!("tampu-log: {}: nobody can attach to its loggers: {error}", participant.source()),
            }
        }
        Ok(participant)
    }

    fn writer(&mut self, lane: &LaneKey) -> Result<&mut Outlet, Refused> {
        if !self.writers.contains_key(lane) {
            let participant = self.participant()?;
            acquaint(&participant);
            let topic = if lane.reach == Reach::Attached { attached_topic_of(lane.level) } else { topic_of(lane.level) };
            let topic = topic.map_err(|error| Refused::Never(error.to_string()))?;
            let qos = qos_of(&participant, &topic);
            let writer = participant
                .writer(&topic, &lane.partition, LOG_BATCH, qos)
                .map_err(|error| Refused::NotYet(error.to_string()))?;
            self.writers.insert(lane.clone(), Outlet { writer, next: 0 });
        }
        self.writers.get_mut(lane).ok_or_else(|| Refused::NotYet("no writer".to_owned()))
    }
}

/// Waits until a participant is old enough to know who reads. A record published before a viewer was known would be history
/// to that viewer, and a process that logs one record and ends would never be seen live.
fn acquaint(participant: &Participant) {
    let age = now().0.saturating_sub(participant.incarnation().start as i64);
    let left = (ACQUAINTANCE.as_nanos() as i64).saturating_sub(age.max(0));
    std::thread::sleep(Duration::from_nanos(left.max(0) as u64));
}

impl BusPost {
    /// Whether somebody who keeps records reads this lane.
    pub fn is_heard(&mut self, lane: &LaneKey) -> bool {
        self.writer(lane).is_ok_and(|outlet| outlet.writer.kept().is_some())
    }
}

impl Post for BusPost {
    fn attend(&mut self, loggers: Arc<dyn Controlled>) {
        self.loggers = Some(loggers);
        // A process that is silent can be asked why. Where there is no way yet, the first packet looks for it again.
        let _ = self.participant();
    }

    fn hear(&mut self) {
        let (Some(ear), Some(loggers)) = (&mut self.ear, &self.loggers) else { return };
        let now = Instant::now();
        if now >= self.hear_at {
            self.hear_at = now + HEAR;
            ear.hear(&**loggers);
        }
    }

    fn publish(&mut self, lane: &LaneKey, urgent: bool, packet: &[u8]) -> Result<u64, Refused> {
        let outlet = self.writer(lane)?;
        let written = if urgent { outlet.writer.write_urgent(packet) } else { outlet.writer.write(packet) };
        let sequence = written.map_err(|error| Refused::Never(error.to_string()))?.sequence;
        outlet.next = sequence + 1;
        Ok(sequence)
    }

    fn delivered(&mut self, lane: &LaneKey) -> Option<u64> {
        let writer = &self.writers.get(lane)?.writer;
        // A viewer keeps nothing: what it alone has seen is still to be kept.
        if lane.reach == Reach::Central { writer.kept() } else { writer.delivered() }
    }

    fn has_heir(&mut self) -> bool {
        self.has_heir |= self.participant.as_ref().is_some_and(Participant::has_node);
        self.has_heir
    }

    fn flush(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let known_by = self.joined.map_or(until, |joined| joined + APPEARANCE);
        // All of them, also after one that nobody confirms: what is under way shall arrive.
        self.writers.values().filter(|outlet| !outlet.confirm(until, known_by)).count() == 0
    }

    fn keep(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut central = self.writers.iter().filter(|(lane, _)| lane.reach == Reach::Central);
        central.all(|(_, outlet)| outlet.keep(until))
    }
}
