//! Selects the events that are kept and puts them into the queue. It runs on the subscription's threads and never blocks.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use tampu_archive::TableArchive;
use tampu_bus::{
    Participant,
    access::{Access, Denied, Resource, Verb},
};
use tampu_types::{
    Incarnation, Time,
    event::{AttributePattern, Kinds, Missed, Reason, kept::KeptEvent},
};

use super::{
    ledger::{MissingEvents, NumberLedger},
    queue::EventQueue,
    settings::HistorySettings,
};
use crate::client::{AttributeInfo, Event};

/// Time for which an answer of the access rules holds.
const ASKED_FOR: Duration = Duration::from_secs(1);
/// Note of the first event of another incarnation.
const UNCOUNTED: &str = "an unknown number of events is missing before it";

/// Selects events and keeps the ledger of their numbers.
pub(super) struct EventIntake {
    settings: Arc<RwLock<HistorySettings>>,
    archive: Arc<TableArchive>,
    queue: Arc<EventQueue>,
    ledger: NumberLedger,
    access: Access,
    participant: Participant,
    /// Answers of the access rules, by incarnation and attribute, with their times.
    asked: HashMap<(Incarnation, u32), (Instant, Result<(), Denied>)>,
}

impl EventIntake {
    pub(super) fn new(
        settings: Arc<RwLock<HistorySettings>>,
        archive: Arc<TableArchive>,
        queue: Arc<EventQueue>,
        access: Access,
        participant: Participant,
    ) -> EventIntake {
        EventIntake { settings, archive, queue, ledger: NumberLedger::default(), access, participant, asked: HashMap::new() }
    }

    /// Returns the length limit of an event, in bytes.
    fn longest(&self) -> usize {
        (self.settings.read().longest_kb as usize) << 10
    }

    /// Returns whether this event of this attribute is kept.
    fn wants(&self, event: &Event<'_>) -> bool {
        let config = &event.attribute.config;
        let settings = self.settings.read();
        let matches = |patterns: &[AttributePattern]| patterns.iter().any(|pattern| pattern.matches(&config.name));
        if matches(&settings.leave_out) {
            return false;
        }
        // The value when keeping began belongs to a history that is asked for.
        let archive = &config.criteria.archive;
        let asked_for = || archive.rel.is_some() || archive.abs.is_some() || config.criteria.archive_period_ms.is_some();
        event.kinds.intersects(Kinds::ARCHIVE)
            || matches!(event.reason, Reason::First | Reason::Resumed) && asked_for()
            || matches(&settings.keep)
    }

    /// Returns whether the host of the source may write events of this attribute into the history. A refused event is
    /// counted and reported.
    fn may_be_written(&mut self, event: &Event<'_>) -> bool {
        let name = &event.attribute.config.name;
        let (participant, access) = (&self.participant, &self.access);
        let ask = || {
            let sender = participant.principal_of(access, event.source.incarnation);
            let may = || {
                access.ask_for(&sender, Verb::Write, &Resource::Attribute(name.to_string()))?;
                access.ask_for(&sender, Verb::Write, &Resource::Source(event.source.source.to_string()))
            };
            (Instant::now(), may())
        };
        let answer = self.asked.entry((event.source.incarnation, event.attribute.number)).or_insert_with(ask);
        // The rules may have changed.
        if answer.0.elapsed() >= ASKED_FOR {
            *answer = ask();
        }
        match &answer.1 {
            Ok(()) => true,
            Err(denied) => {
                self.queue.refuse(event.source.source.as_str(), denied);
                false
            }
        }
    }

    /// Handles an event of the subscription.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        let key = (event.source.incarnation, event.attribute.number);
        match event.reason {
            Reason::First | Reason::Update | Reason::Resumed => {
                self.gap(event);
                let Some(reading) = event.reading.filter(|_| event.number > 0) else { return };
                if self.wants(event) && self.may_be_written(event) {
                    self.reading(event, reading.time);
                }
            }
            Reason::Gap => self.gap(event),
            Reason::SourceDied | Reason::SourceLeft | Reason::SourceHung | Reason::SourceReturned => {
                let ended = matches!(event.reason, Reason::SourceDied | Reason::SourceLeft);
                if self.source_changed(event) && ended {
                    self.ledger.end(key);
                    self.asked.remove(&key);
                }
            }
            Reason::ConfigChanged | Reason::Conflict => {}
        }
    }

    /// Records a change of the source, after any unwritten gap. Without room the gap stays in the ledger, for the next
    /// row of this incarnation.
    fn source_changed(&mut self, event: &Event<'_>) -> bool {
        let key = (event.source.incarnation, event.attribute.number);
        // Attributes that are not kept get no row.
        if !self.ledger.knows(key) && self.archive.last_number(key.0, key.1).is_none() {
            return true;
        }
        let missing = self.ledger.settle(key);
        let mut samples: Vec<Vec<u8>> = missing.iter().map(|missing| gap_sample(event, missing)).collect();
        samples.push(sample(event, 0, 0, event.received, "", &[]));
        let put = self.queue.put_gaps(samples);
        if !put && let Some(missing) = missing {
            self.ledger.owe(key, missing.from, missing.to, &missing.why);
        }
        put
    }

    fn reading(&mut self, event: &Event<'_>, time: Time) {
        let key = (event.source.incarnation, event.attribute.number);
        let archive = &self.archive;
        let stored = || archive.last_number(key.0, key.1);
        let Some(taken) = self.ledger.event(key, event.number, time, stored) else { return };
        let mut samples: Vec<Vec<u8>> = taken.missing.iter().map(|missing| gap_sample(event, missing)).collect();
        let length = event.bytes().len();
        if length > self.longest() {
            let why = format!("an event of {length} bytes is too long to be kept");
            let missing = MissingEvents { from: taken.from, to: event.number, time: Some(time), why };
            samples.push(gap_sample(event, &missing));
        } else {
            let note = note(event);
            samples.push(sample(event, taken.from, event.number, time, &note, event.bytes()));
        }
        if !self.queue.put(samples) {
            let from = taken.missing.map_or(taken.from, |missing| missing.from);
            self.ledger.owe(key, from, event.number, "more events than the archive accepts");
        }
    }

    /// Records the events missing before this one. The last missing one may be the event whose value follows.
    fn gap(&mut self, event: &Event<'_>) {
        let key = (event.source.incarnation, event.attribute.number);
        let missing = match event.missed {
            Missed::Exactly(from, to) => {
                let to = to.saturating_sub(1).min(event.number.saturating_sub(1));
                self.ledger.gap(key, from, to)
            }
            // The numbers show what is missing of an incarnation that was followed before.
            Missed::Unknown => self.ledger.unheard(key, event.number),
            Missed::Nothing => None,
        };
        let Some(missing) = missing else { return };
        if !self.queue.put_gaps(vec![gap_sample(event, &missing)]) {
            self.ledger.owe(key, missing.from, missing.to, &missing.why);
        }
    }
}

/// Returns the label of a DevEnum, and a remark if an unknown number of events may be missing.
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

fn gap_sample(event: &Event<'_>, missing: &MissingEvents) -> Vec<u8> {
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
    use std::sync::atomic::Ordering;

    use tampu_archive::{Find, Options, Stop};
    use tampu_bus::Participant;
    use tampu_types::{
        ClockState, Domain, SourceName,
        event::{EventSample, Value},
    };

    use super::*;
    use crate::history::writer::HistoryWriter;

    #[test]
    fn what_waits_is_bounded_and_what_belongs_together_is_taken_whole_or_not_at_all() {
        let queue = EventQueue::default();
        let mib = || vec![0; 1 << 20];
        assert!((0..31).all(|_| queue.put(vec![mib()])));
        assert!(!queue.put(vec![mib(), mib()]), "two do not fit");
        assert!(queue.put(vec![mib()]));
        assert!(!queue.put(vec![vec![0]]));
        assert_eq!((queue.waiting().samples.len(), queue.lost.load(Ordering::Relaxed)), (32, 2));
        assert!((0..8).all(|_| queue.put_gaps(vec![mib()])), "gaps find room when nothing else does");
        assert!(!queue.put_gaps(vec![vec![0]]));
        assert!(!queue.put(vec![vec![0]]));
    }

    /// Writes three events, of which the second cannot be written. Returns the kept rows and the number of lost events.
    fn kept_of_three(report: impl Fn(&super::super::HistoryNotice) + Send + 'static) -> (Vec<(Reason, u64, u64)>, u64) {
        let (net, dir) = (tampu_bus::engine::memory::MemoryNet::new(1), tempfile::tempdir().unwrap());
        let (domain, source) = (Domain::new("test").unwrap(), SourceName::new("hub").unwrap());
        let qos = tampu_bus::QosTable::new(Vec::new()).unwrap();
        let participant = Participant::on(net.engine("host"), domain.clone(), source, qos).unwrap();
        let options = Options { linger: Duration::ZERO, ..Options::new(domain) };
        let archive = Arc::new(TableArchive::open(dir.path(), &super::super::SCHEMA, options).unwrap());
        let intake = HistoryWriter::start(&participant, archive.clone(), Box::new(report)).unwrap();
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
        let queue = intake.queue();
        assert!(queue.put(vec![row(1, &event), row(2, b"no event"), row(3, &event)]));
        // The end writes the gaps that are still to be written.
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
        let lost = queue.lost.load(Ordering::Relaxed);
        (found, lost)
    }

    #[test]
    fn an_event_that_cannot_be_written_becomes_a_gap_and_takes_no_other_with_it() {
        let kept = [(Reason::Update, 1, 1), (Reason::Gap, 2, 2), (Reason::Update, 3, 3)];
        assert_eq!(kept_of_three(|_| ()), (kept.to_vec(), 1));
    }

    #[test]
    fn a_panic_of_the_writer_leaves_a_gap_for_the_events_it_had_in_hand() {
        let panicked = std::sync::atomic::AtomicBool::new(false);
        let report = move |_: &super::super::HistoryNotice| {
            assert!(panicked.swap(true, Ordering::Relaxed), "the first report panics");
        };
        assert_eq!(kept_of_three(report), (vec![(Reason::Gap, 1, 3)], 3));
    }

    #[test]
    fn a_label_does_not_hide_that_something_may_be_missing() {
        assert_eq!(note_of("", Missed::Nothing), "");
        assert_eq!(note_of("moving", Missed::Exactly(1, 3)), "moving");
        assert_eq!(note_of("moving", Missed::Unknown), "moving; an unknown number of events is missing before it");
        assert_eq!(note_of("", Missed::Unknown), UNCOUNTED);
    }
}
