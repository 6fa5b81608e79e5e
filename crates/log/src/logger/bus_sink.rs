//! Output of packets to the bus: one writer per level and set of audiences.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bus::{BusError, Grade, Participant, Qos, ReaderState, Subject, TypeTag, Wake, Writer, engine::Guard};
use tampu_types::{Level, Partition, TopicName, log_batch, name::BadTopic};

use crate::logger::{
    attach::{AttachmentReader, attached_topic_of},
    control::{self, Controlled},
    packet_sink::{PacketSink, Refused},
    settings::{self, LogSettings},
    stream::{Reach, StreamKey},
    threshold::Threshold,
};

/// Type of the samples of log topics.
pub const LOG_BATCH: TypeTag = TypeTag { id: log_batch::TYPE_ID, version: log_batch::VERSION };

/// The topic of a level: `log/warning`.
pub fn topic_of(level: Level) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log/{}", level.name().to_lowercase()))
}

/// Returns the Qos of a log topic where settings of the topic are silent. The collector acknowledges after its commit, so
/// several milliseconds of a full stream are under way. While there is no collector, more is kept for it than for an
/// ordinary reader. Immediate records travel before ordinary ones.
pub fn default_qos(level: Level, immediate: Threshold) -> Qos {
    Qos { credit: 4 << 20, keep: 16 << 20, urgent: immediate.passes(level), ..Qos::default() }
}

/// Returns the Qos of a log topic for everybody, by the settings of the topic.
pub fn qos_of(participant: &Participant, level: Level) -> Result<Qos, BadTopic> {
    let (topic, partition) = (topic_of(level)?, Partition::everybody());
    Ok(participant.qos_over(default_qos(level, settings::IMMEDIATE), &Subject::new(&topic, &partition)))
}

/// Makes a participant; called again until it succeeds.
pub(crate) type Open = Box<dyn FnMut() -> Result<Participant, BusError> + Send>;

/// Pause before joining the bus is retried.
const RETRY: Duration = Duration::from_secs(1);

/// Longest wait before the first packet for the readers that are on the bus. They get it in any case, and without the wait
/// a moment later.
const ACQUAINTANCE: Duration = Duration::from_millis(150);

/// Interval at which the readers' wishes are read.
const HEAR: Duration = Duration::from_millis(20);

/// Interval at which a wait for readers checks.
const LOOK: Duration = Duration::from_millis(10);

/// A writer and the number after its last sample.
struct Outlet {
    writer: Writer,
    next: u64,
}

impl Outlet {
    /// Waits until all readers have acknowledged everything written; returns whether all have, and at least one.
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

    fn has_readers(&self) -> bool {
        self.writer.readers().iter().any(|reader| reader.state != ReaderState::Gone)
    }
}

pub(crate) struct BusSink {
    open: Open,
    loggers: Option<Arc<dyn Controlled>>,
    // Withdrawn before the bus is left.
    _control: Option<Guard>,
    ear: Option<AttachmentReader>,
    /// Time of the next check of the readers' requests.
    hear_at: Instant,
    participant: Option<Participant>,
    joined: Option<Instant>,
    /// Time after joining at which a flush no longer waits for a first reader.
    appearance: Duration,
    /// Lowest level whose streams travel before others.
    immediate: Threshold,
    writers: HashMap<StreamKey, Outlet>,
    try_again: Option<(Instant, String)>,
    /// True if this host has, or had, a node.
    has_heir: bool,
    /// True if the backend waits for the word of a reader. The next one wakes it.
    is_waited: Arc<AtomicBool>,
}

impl BusSink {
    /// Uses the settings of a process's logging.
    pub fn with(self, settings: &LogSettings) -> BusSink {
        BusSink { appearance: settings.appearance, immediate: settings.immediate, ..self }
    }

    pub fn new(open: Open) -> BusSink {
        BusSink {
            open,
            loggers: None,
            _control: None,
            ear: None,
            hear_at: Instant::now(),
            participant: None,
            joined: None,
            appearance: settings::APPEARANCE,
            immediate: settings::IMMEDIATE,
            writers: HashMap::new(),
            try_again: None,
            has_heir: false,
            is_waited: Arc::default(),
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
                // Logging matters more than remote control of its levels.
                Err(error) => eprintln!("tampu-log: {}: its levels cannot be set from outside: {error}", participant.source()),
            }
            match loggers.may_be_attached().then(|| AttachmentReader::open(&participant, loggers.access())).transpose() {
                Ok(ear) => self.ear = ear,
                Err(error) => eprintln!("tampu-log: {}: viewers cannot attach to its loggers: {error}", participant.source()),
            }
        }
        Ok(participant)
    }

    fn writer(&mut self, stream: &StreamKey) -> Result<&mut Outlet, Refused> {
        if !self.writers.contains_key(stream) {
            let participant = self.participant()?;
            participant.meet_readers(ACQUAINTANCE);
            let topic = if stream.reach == Reach::Attached { attached_topic_of(stream.level) } else { topic_of(stream.level) };
            let topic = topic.map_err(|error| Refused::Never(error.to_string()))?;
            let subject = Subject::new(&topic, &stream.partition);
            let writer = participant
                .writer_for(&subject, LOG_BATCH, default_qos(stream.level, self.immediate))
                .map_err(|error| Refused::NotYet(error.to_string()))?;
            if let Some(loggers) = self.loggers.clone() {
                let is_waited = self.is_waited.clone();
                writer.on_word(move || {
                    if is_waited.swap(false, Ordering::AcqRel) {
                        loggers.wake();
                    }
                });
            }
            self.writers.insert(stream.clone(), Outlet { writer, next: 0 });
        }
        self.writers.get_mut(stream).ok_or_else(|| Refused::NotYet("no writer".to_owned()))
    }
}

impl BusSink {
    fn central(&self) -> impl Iterator<Item = (&StreamKey, &Outlet)> {
        self.writers.iter().filter(|(stream, _)| stream.reach == Reach::Central)
    }

    /// Returns whether a keeper of records reads this stream.
    pub fn is_heard(&mut self, stream: &StreamKey) -> bool {
        self.writer(stream).is_ok_and(|outlet| outlet.writer.kept().is_some())
    }
}

impl PacketSink for BusSink {
    fn attend(&mut self, loggers: Arc<dyn Controlled>) {
        self.loggers = Some(loggers);
        // A silent process can be queried for the reason. If no bus is reachable yet, the first packet tries again.
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

    fn publish(&mut self, stream: &StreamKey, urgent: bool, awaited: Option<Grade>, packet: &[u8]) -> Result<u64, Refused> {
        let outlet = self.writer(stream)?;
        let written = match awaited {
            Some(grade) => outlet.writer.write_awaited(packet, grade),
            None if urgent => outlet.writer.write_urgent(packet),
            None => outlet.writer.write(packet),
        };
        let sequence = written.map_err(|error| Refused::Never(error.to_string()))?.sequence;
        outlet.next = sequence + 1;
        Ok(sequence)
    }

    fn delivered(&mut self, stream: &StreamKey) -> Option<u64> {
        let writer = &self.writers.get(stream)?.writer;
        // A viewer keeps no records: records that only a viewer has received must still be kept.
        if stream.reach == Reach::Central { writer.kept() } else { writer.delivered() }
    }

    fn has_heir(&mut self) -> bool {
        self.has_heir |= self.participant.as_ref().is_some_and(Participant::has_node);
        self.has_heir
    }

    fn flush(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        if let Some(participant) = &self.participant {
            participant.meet_readers(timeout);
        }
        let known_by = self.joined.map_or(until, |joined| joined + self.appearance);
        // All of them, also after one without confirmation: packets under way have to arrive.
        self.writers.values().filter(|outlet| !outlet.confirm(until, known_by)).count() == 0
    }

    fn published(&mut self) -> Vec<(StreamKey, u64)> {
        let publish = |(stream, outlet): (&StreamKey, &Outlet)| {
            outlet.writer.send_now();
            (stream.clone(), outlet.next)
        };
        self.central().map(publish).collect()
    }

    fn has_reached(&self, stream: &StreamKey, next: u64, grade: Grade) -> bool {
        next == 0
            || self.writers.get(stream).and_then(|outlet| outlet.writer.reached(grade)).is_some_and(|reached| reached >= next)
    }

    fn lost(&self) -> u64 {
        self.central().map(|(_, outlet)| outlet.writer.lost_unkept()).sum()
    }

    fn wakes(&self, wanted: &[(StreamKey, u64)], grade: Grade) -> Vec<Wake> {
        self.is_waited.store(true, Ordering::Release);
        let writers = wanted.iter().filter_map(|(stream, next)| Some((&self.writers.get(stream)?.writer, *next)));
        writers.filter(|(_, next)| *next > 0).flat_map(|(writer, next)| writer.wakes(grade, next)).collect()
    }
}
