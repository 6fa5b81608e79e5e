//! From the subscription into the archive: who brings never waits, who writes may.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::Participant;
use tampu_event::client::{AttributeInfo, Event};
use tampu_log::{
    Logger,
    archive::{ArchiveError, Arrival, TableArchive},
    warning,
};
use tampu_types::{
    BatchHeader, ClockState, Time,
    event::{AttributePattern, Kinds, Missed, Reason, kept::KeptEvent},
};

use super::{
    accounts::{Accounts, Missing},
    settings::Events,
    table::KEPT_TYPE,
    unwritten::Unwritten,
};

/// Bytes of events that may wait for the archive. Beyond them events are not kept: counted, told in the log, and in the history as a gap.
const WAITING: usize = 32 << 20;
/// Bytes that gaps and word of sources may take beyond [`WAITING`]: what says that something is missing finds room when nothing else does.
const WORDS: usize = 8 << 20;
/// Bytes that are handed to the archive together, and how many events.
const TOGETHER: usize = 1 << 20;
const AT_ONCE: usize = 1000;
/// How often it is told how many could not be kept.
const TELL: Duration = Duration::from_secs(10);
/// How long what came last is waited for at the end.
const LAST: Duration = Duration::from_secs(5);
/// Note of the first event of another life.
const UNCOUNTED: &str = "nobody knows what is missing before it";

/// What waits.
#[derive(Default)]
struct Waiting {
    samples: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Where events are put.
#[derive(Default)]
pub(super) struct Inlet {
    waiting: Mutex<Waiting>,
    more: Condvar,
    ending: AtomicBool,
    kept: AtomicU64,
    lost: AtomicU64,
}

impl Inlet {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples and bytes that wait, events that were kept, and that could not be.
    pub(super) fn counts(&self) -> (usize, usize, u64, u64) {
        let waiting = self.waiting();
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (waiting.samples.len(), waiting.bytes, now(&self.kept), now(&self.lost))
    }

    /// Takes samples that belong together, or none of them.
    fn put(&self, samples: Vec<Vec<u8>>) -> bool {
        self.put_within(WAITING, samples)
    }

    /// Takes gaps and word of a source.
    fn put_word(&self, samples: Vec<Vec<u8>>) -> bool {
        self.put_within(WAITING + WORDS, samples)
    }

    fn put_within(&self, bound: usize, samples: Vec<Vec<u8>>) -> bool {
        let bytes: usize = samples.iter().map(Vec::len).sum();
        let mut waiting = self.waiting();
        if waiting.bytes + bytes > bound {
            drop(waiting);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        waiting.bytes += bytes;
        waiting.samples.extend(samples);
        drop(waiting);
        self.more.notify_one();
        true
    }
}

/// The worker that writes.
pub(super) struct Intake {
    inlet: Arc<Inlet>,
    worker: Option<JoinHandle<()>>,
}

impl Intake {
    pub(super) fn start(participant: &Participant, archive: Arc<TableArchive>, logger: Logger) -> std::io::Result<Intake> {
        let inlet = Arc::new(Inlet::default());
        let header = BatchHeader {
            domain: participant.domain().clone(),
            source: participant.source().clone(),
            incarnation: participant.incarnation(),
            stream: 0,
            first: 0,
            count: 0,
            type_id: KEPT_TYPE,
            type_version: 1,
            acquired: Time(0),
            sent: Time(0),
            clock: ClockState::Unknown,
            tai_offset: 0,
            flags: 0,
        };
        let writer =
            Writer { inlet: inlet.clone(), archive, header, logger, unwritten: Unwritten::default(), told: (0, Instant::now()) };
        let worker = std::thread::Builder::new().name("event history".to_owned()).spawn(move || writer.run())?;
        Ok(Intake { inlet, worker: Some(worker) })
    }

    pub(super) fn inlet(&self) -> Arc<Inlet> {
        self.inlet.clone()
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.inlet.ending.store(true, Ordering::Release);
        self.inlet.more.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

struct Writer {
    inlet: Arc<Inlet>,
    archive: Arc<TableArchive>,
    header: BatchHeader,
    logger: Logger,
    /// What an error of the archive kept from being written.
    unwritten: Unwritten,
    /// How many lost events were told, and when.
    told: (u64, Instant),
}

impl Writer {
    fn run(mut self) {
        let mut until = None;
        loop {
            let samples = self.next();
            self.tell(false);
            if self.inlet.ending.load(Ordering::Acquire) {
                let until = *until.get_or_insert_with(|| Instant::now() + LAST);
                if samples.is_empty() || Instant::now() > until {
                    self.leave(samples.len());
                    break;
                }
            }
            if !samples.is_empty() {
                self.write(samples);
            }
        }
        let rest = self.unwritten.take();
        if !rest.is_empty() {
            self.write(rest);
        }
        self.archive.flush(LAST);
        self.tell(true);
    }

    /// What waits, as much as is written together.
    fn next(&self) -> Vec<Vec<u8>> {
        let mut waiting = self.inlet.waiting();
        if waiting.samples.is_empty() && !self.inlet.ending.load(Ordering::Acquire) {
            waiting = self.inlet.more.wait_timeout(waiting, Duration::from_secs(1)).unwrap_or_else(PoisonError::into_inner).0;
        }
        let (mut samples, mut bytes) = (Vec::new(), 0);
        while samples.len() < AT_ONCE && bytes < TOGETHER {
            let Some(sample) = waiting.samples.pop_front() else { break };
            bytes += sample.len();
            samples.push(sample);
        }
        // What is being written still waits for the disk.
        waiting.bytes -= bytes;
        samples
    }

    /// There is no more time for these and for what still waits. The next hub finds their numbers missing.
    fn leave(&self, taken: usize) {
        let waiting = std::mem::take(&mut *self.inlet.waiting());
        self.inlet.lost.fetch_add((taken + waiting.samples.len()) as u64, Ordering::Relaxed);
    }

    fn write(&mut self, next: Vec<Vec<u8>>) {
        // What could not be written before stands before what came after it.
        let mut all = self.unwritten.take();
        let told_before = all.len();
        all.extend(next);
        while !all.is_empty() {
            let samples: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            self.header.count = samples.len() as u32;
            let arrival = Arrival { header: &self.header, samples: &samples, received: now(), advances: None };
            match self.archive.append(&arrival) {
                Ok(appended) => {
                    self.inlet.kept.fetch_add(appended.records, Ordering::Relaxed);
                    break;
                }
                // The disk is full or slow: the archive has waited, and told why. What comes meanwhile waits in the queue.
                Err(ArchiveError::Full { .. }) if !self.inlet.ending.load(Ordering::Acquire) => self.tell(false),
                // The others are none the worse for it.
                Err(ArchiveError::Undecodable { sample, why }) if sample < all.len() => {
                    let bad = all.remove(sample);
                    self.give_up(1, std::slice::from_ref(&bad), &why);
                }
                Err(error) => {
                    let fresh = all.len().saturating_sub(told_before);
                    self.give_up(fresh, &all, &error.to_string());
                    break;
                }
            }
        }
        self.header.first += all.len() as u64;
    }

    /// Counts events that cannot be written, and remembers what the history has to say of them.
    fn give_up(&mut self, count: usize, samples: &[Vec<u8>], why: &str) {
        self.inlet.lost.fetch_add(count as u64, Ordering::Relaxed);
        let untold = self.unwritten.add(samples);
        warning!(self.logger, "{count} events could not be kept: {why}"; untold = untold);
    }

    fn tell(&mut self, last: bool) {
        let lost = self.inlet.lost.load(Ordering::Relaxed);
        let (told, at) = self.told;
        if lost > told && (last || told == 0 || at.elapsed() >= TELL) {
            let more = lost - told;
            warning!(self.logger, "{more} events could not be kept: they stand in the history as gaps"; events = more);
            self.told = (lost, Instant::now());
        }
    }
}

/// The host's clock.
fn now() -> Time {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(now.as_secs() as i64, now.subsec_nanos())
}

/// What decides which events are kept; called on the subscription's workers.
pub(super) struct Keeping {
    keep: Vec<AttributePattern>,
    leave_out: Vec<AttributePattern>,
    longest: usize,
    archive: Arc<TableArchive>,
    inlet: Arc<Inlet>,
    accounts: Accounts,
}

impl Keeping {
    pub(super) fn new(settings: &Events, archive: Arc<TableArchive>, inlet: Arc<Inlet>) -> Keeping {
        Keeping {
            keep: settings.keep.clone(),
            leave_out: settings.leave_out.clone(),
            longest: (settings.longest_kb as usize) << 10,
            archive,
            inlet,
            accounts: Accounts::default(),
        }
    }

    /// Whether this event of this attribute is kept.
    fn wants(&self, event: &Event<'_>) -> bool {
        let config = &event.attribute.config;
        let matches = |patterns: &[AttributePattern]| patterns.iter().any(|pattern| pattern.matches(&config.name));
        if matches(&self.leave_out) {
            return false;
        }
        // The value when keeping began belongs to a history that is asked for.
        let archive = &config.criteria.archive;
        let asked_for = || archive.rel.is_some() || archive.abs.is_some() || config.criteria.archive_period_ms.is_some();
        event.kinds.intersects(Kinds::ARCHIVE)
            || matches!(event.reason, Reason::First | Reason::Resumed) && asked_for()
            || matches(&self.keep)
    }

    /// Takes what a subscriber is told.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        let key = (event.source.incarnation, event.attribute.number);
        match event.reason {
            Reason::First | Reason::Update | Reason::Resumed => {
                self.gap(event);
                let Some(reading) = event.reading.filter(|_| event.number > 0) else { return };
                if self.wants(event) {
                    self.reading(event, reading.time);
                }
            }
            Reason::Gap => self.gap(event),
            Reason::SourceDied | Reason::SourceLeft | Reason::SourceHung | Reason::SourceReturned => {
                let ended = matches!(event.reason, Reason::SourceDied | Reason::SourceLeft);
                if self.word(event) && ended {
                    self.accounts.end(key);
                }
            }
            Reason::ConfigChanged | Reason::Conflict => {}
        }
    }

    /// Word of the source, after what is owed. Without room for it the debt stands: should this life be heard again, it is told then.
    fn word(&mut self, event: &Event<'_>) -> bool {
        let key = (event.source.incarnation, event.attribute.number);
        // Only of attributes that are kept.
        if !self.accounts.knows(key) && self.archive.last_number(key.0, key.1).is_none() {
            return true;
        }
        let missing = self.accounts.settle(key);
        let mut samples: Vec<Vec<u8>> = missing.iter().map(|missing| gap_sample(event, missing)).collect();
        samples.push(sample(event, 0, 0, event.received, "", &[]));
        let put = self.inlet.put_word(samples);
        if !put && let Some(missing) = missing {
            self.accounts.owe(key, missing.from, missing.to, &missing.why);
        }
        put
    }

    fn reading(&mut self, event: &Event<'_>, time: Time) {
        let key = (event.source.incarnation, event.attribute.number);
        let archive = &self.archive;
        let stored = || archive.last_number(key.0, key.1);
        let Some(taken) = self.accounts.event(key, event.number, time, stored) else { return };
        let mut samples: Vec<Vec<u8>> = taken.missing.iter().map(|missing| gap_sample(event, missing)).collect();
        let length = event.bytes().len();
        if length > self.longest {
            let why = format!("an event of {length} bytes is too long to be kept");
            let missing = Missing { from: taken.from, to: event.number, time: Some(time), why };
            samples.push(gap_sample(event, &missing));
        } else {
            let note = note(event);
            samples.push(sample(event, taken.from, event.number, time, &note, event.bytes()));
        }
        if !self.inlet.put(samples) {
            let from = taken.missing.map_or(taken.from, |missing| missing.from);
            self.accounts.owe(key, from, event.number, "more came than the archive takes");
        }
    }

    /// What is missing before an event; the last that is missing may be the one whose value follows.
    fn gap(&mut self, event: &Event<'_>) {
        let key = (event.source.incarnation, event.attribute.number);
        let missing = match event.missed {
            Missed::Exactly(from, to) => {
                let to = to.saturating_sub(1).min(event.number.saturating_sub(1));
                self.accounts.gap(key, from, to)
            }
            // Of a life that was followed before, the numbers say it.
            Missed::Unknown => self.accounts.unheard(key, event.number),
            Missed::Nothing => None,
        };
        let Some(missing) = missing else { return };
        if !self.inlet.put_word(vec![gap_sample(event, &missing)]) {
            self.accounts.owe(key, missing.from, missing.to, &missing.why);
        }
    }
}

/// The label of a DevEnum, and whether anything may be missing that nobody can count.
fn note(event: &Event<'_>) -> String {
    let AttributeInfo { config, .. } = &**event.attribute;
    let value = event.reading.and_then(|reading| reading.value);
    let index = value.filter(|_| !config.labels.is_empty()).and_then(|value| value.number(0));
    let label = index.and_then(|index| config.labels.get(index as usize)).map_or("", String::as_str);
    note_of(label, event.missed)
}

fn note_of(label: &str, missed: Missed) -> String {
    match (label, missed) {
        ("", Missed::Unknown) => UNCOUNTED.to_owned(),
        (label, Missed::Unknown) => format!("{label}; {UNCOUNTED}"),
        (label, _) => label.to_owned(),
    }
}

fn gap_sample(event: &Event<'_>, missing: &Missing) -> Vec<u8> {
    let time = missing.time.unwrap_or(event.received);
    let gap = KeptEvent { reason: Reason::Gap, ..kept(event, missing.from, missing.to, time, &missing.why, &[]) };
    let mut out = Vec::new();
    gap.encode(&mut out);
    out
}

fn sample(event: &Event<'_>, from: u64, number: u64, time: Time, note: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    kept(event, from, number, time, note, bytes).encode(&mut out);
    out
}

fn kept<'a>(event: &'a Event<'_>, from: u64, number: u64, time: Time, note: &'a str, bytes: &'a [u8]) -> KeptEvent<'a> {
    KeptEvent {
        reason: event.reason,
        clock: event.clock,
        attribute: event.attribute.number,
        from,
        number,
        time,
        received: event.received,
        incarnation: event.source.incarnation,
        source: event.source.source.as_str(),
        name: event.attribute.config.name.as_str(),
        unit: &event.attribute.config.unit,
        note,
        event: bytes,
    }
}

#[cfg(test)]
mod accounting;

#[cfg(test)]
mod tests {
    use tampu_log::archive::{Find, Options, Stop};
    use tampu_types::{
        Domain, SourceName,
        event::{EventSample, Value},
    };

    use super::*;

    #[test]
    fn what_waits_is_bounded_and_what_belongs_together_is_taken_whole_or_not_at_all() {
        let inlet = Inlet::default();
        let mib = || vec![0; 1 << 20];
        assert!((0..31).all(|_| inlet.put(vec![mib()])));
        assert!(!inlet.put(vec![mib(), mib()]), "two do not fit");
        assert!(inlet.put(vec![mib()]));
        assert!(!inlet.put(vec![vec![0]]));
        assert_eq!((inlet.waiting().samples.len(), inlet.lost.load(Ordering::Relaxed)), (32, 2));
        assert!((0..8).all(|_| inlet.put_word(vec![mib()])), "gaps find room when nothing else does");
        assert!(!inlet.put_word(vec![vec![0]]));
        assert!(!inlet.put(vec![vec![0]]));
    }

    #[test]
    fn an_event_that_cannot_be_written_becomes_a_gap_and_takes_no_other_with_it() {
        let (net, dir) = (tampu_bus::engine::memory::MemoryNet::new(1), tempfile::tempdir().unwrap());
        let (domain, source) = (Domain::new("test").unwrap(), SourceName::new("hub").unwrap());
        let qos = tampu_bus::QosTable::new(Vec::new()).unwrap();
        let participant = Participant::on(net.engine("host"), domain.clone(), source.clone(), qos).unwrap();
        let settings = tampu_log::LogSettings::isolated(domain.clone(), source);
        let logger = Logger::on(participant.clone(), settings).unwrap();
        let options = Options { linger: Duration::ZERO, ..Options::new(domain) };
        let archive = Arc::new(TableArchive::open(dir.path(), &super::super::SCHEMA, options).unwrap());
        let intake = Intake::start(&participant, archive.clone(), logger).unwrap();
        let mut event = Vec::new();
        EventSample::of(3, Value::scalar(&1.5)).encode(&mut event).unwrap();
        let row = |number, event: &[u8]| {
            let mut out = Vec::new();
            let (time, incarnation) = (Time(number as i64), participant.incarnation());
            let (reason, clock, received) = (Reason::Update, ClockState::Free, Time(0));
            let (source, name, unit, note) = ("server", "a/b/c/d", "", "");
            KeptEvent {
                reason,
                clock,
                attribute: 3,
                from: number,
                number,
                time,
                received,
                incarnation,
                source,
                name,
                unit,
                note,
                event,
            }
            .encode(&mut out);
            out
        };
        let inlet = intake.inlet();
        assert!(inlet.put(vec![row(1, &event), row(2, b"no event"), row(3, &event)]));
        // The end writes what is owed.
        drop(intake);
        let mut found = Vec::new();
        let all =
            Find { since: None, until: None, marks: u16::MAX, column: 7, wants: &|_| true, after: None, newest_first: false };
        archive
            .find(&all, &Stop::default(), &mut |row| {
                found.extend(super::super::kept(&row).map(|kept| (kept.reason, kept.from, kept.number)));
                true
            })
            .unwrap();
        assert_eq!(found, [(Reason::Update, 1, 1), (Reason::Gap, 2, 2), (Reason::Update, 3, 3)]);
        assert_eq!(inlet.lost.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_label_does_not_hide_that_something_may_be_missing() {
        assert_eq!(note_of("", Missed::Nothing), "");
        assert_eq!(note_of("moving", Missed::Exactly(1, 3)), "moving");
        assert_eq!(note_of("moving", Missed::Unknown), "moving; nobody knows what is missing before it");
        assert_eq!(note_of("", Missed::Unknown), UNCOUNTED);
    }
}
