//! What a hub knows of bulk transfers: their senders tell of each beginning and end on the bus; it is put into the log, counted, and
//! answered to whoever asks for the last ones.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tampu_bulk::{Name, asking, directory, note::NOTE_LIMIT};
use tampu_bus::{
    Alarm, BusError, Event, Participant, Reader, ReaderQos, Sample, SourceState,
    engine::{Guard, Question},
};
use tampu_log::{Logger, info, warning};
use tampu_types::{Incarnation, PartitionFilter, Time, TopicFilter, TopicName};

/// Transfers that are remembered; the oldest is forgotten.
pub(crate) const REMEMBERED: usize = 1000;
/// Letters of a parameter that are kept.
const PARAMETER_KEPT: usize = 500;
/// Receivers of a transfer whose reasons are kept.
const REASONS_KEPT: usize = 16;
/// Letters of a receiver's name there.
const SOURCE_KEPT: usize = 200;
const IDLE: Duration = Duration::from_millis(250);

/// What became of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    UnderWay,
    Complete,
    /// Somebody has not got all of it.
    Incomplete,
    /// Its sender is gone, or began another without a word about this one.
    BrokenOff,
}

/// A transfer, as the hub tells of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Transfer {
    stream: Name,
    flow: Name,
    transfer: u64,
    source: String,
    #[serde(skip)]
    incarnation: Incarnation,
    parameter: String,
    began: Time,
    ended: Option<Time>,
    outcome: Outcome,
    bytes: u64,
    seconds: f64,
    bytes_per_s: f64,
    receivers: u64,
    lost_bytes: u64,
    /// Of each receiver that has not got all of it.
    why: Vec<String>,
}

/// A sender's note, as much of it as is needed here.
#[derive(Debug, Deserialize)]
struct Note {
    stream: Name,
    flow: Name,
    transfer: u64,
    #[serde(default)]
    parameter: String,
    #[serde(default)]
    report: Option<Report>,
}

#[derive(Debug, Deserialize)]
struct Report {
    bytes: u64,
    seconds: f64,
    #[serde(default)]
    deliveries: Vec<Delivery>,
    /// Receivers that the note has no room for; they come behind those that have not got all.
    #[serde(default)]
    deliveries_left_out: u64,
}

#[derive(Debug, Deserialize)]
struct Delivery {
    receiver: Receiver,
    complete: bool,
    #[serde(default)]
    lost: Vec<Range>,
    /// Bytes of all that was lost, where its sender says so; the ranges may be some of them.
    lost_bytes: Option<u64>,
    #[serde(default)]
    why: String,
    #[serde(default)]
    faults: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Receiver {
    source: String,
}

#[derive(Debug, Deserialize)]
struct Range {
    from: u64,
    to: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    text: String,
}

/// Counters since the hub started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub ended: u64,
    pub incomplete: u64,
    pub bytes: u64,
    pub under_way: u64,
}

#[derive(Debug, Default)]
struct Book {
    transfers: VecDeque<Transfer>,
    counts: Counts,
}

impl Book {
    /// Enters a note; the transfer as it stands then.
    fn enter(&mut self, note: Note, source: &str, incarnation: Incarnation, at: Time) -> Transfer {
        let same = |one: &Transfer| {
            (one.incarnation, one.transfer, one.outcome) == (incarnation, note.transfer, Outcome::UnderWay)
                && one.stream == note.stream
                && one.flow == note.flow
        };
        // What has no beginning here began before this hub did, or is forgotten.
        let known = self.transfers.iter().rposition(same).and_then(|index| self.transfers.remove(index));
        self.counts.under_way -= u64::from(known.is_some());
        let mut one = known.unwrap_or_else(|| Transfer {
            stream: note.stream,
            flow: note.flow,
            transfer: note.transfer,
            source: source.to_owned(),
            incarnation,
            parameter: note.parameter.chars().take(PARAMETER_KEPT).collect(),
            began: at,
            ended: None,
            outcome: Outcome::UnderWay,
            bytes: 0,
            seconds: 0.0,
            bytes_per_s: 0.0,
            receivers: 0,
            lost_bytes: 0,
            why: Vec::new(),
        });
        match note.report {
            None => self.counts.under_way += 1,
            Some(report) => {
                one.end(&report, at);
                self.counts.ended += 1;
                self.counts.incomplete += u64::from(one.outcome != Outcome::Complete);
                self.counts.bytes = self.counts.bytes.saturating_add(one.bytes);
            }
        }
        self.transfers.push_back(one.clone());
        if self.transfers.len() > REMEMBERED {
            let forgotten = self.transfers.pop_front();
            self.counts.under_way -= u64::from(forgotten.is_some_and(|one| one.outcome == Outcome::UnderWay));
        }
        one
    }

    /// A sender is gone: what it had under way is broken off.
    fn gone(&mut self, incarnation: Incarnation, at: Time) -> Vec<Transfer> {
        self.break_off(|one| one.incarnation == incarnation, "its sender is gone", at)
    }

    /// A flow has one transfer at a time: when one begins, an earlier one of which no end was heard is over.
    fn overtaken(&mut self, by: &Note, incarnation: Incarnation, at: Time) -> Vec<Transfer> {
        if by.report.is_some() {
            return Vec::new();
        }
        let same_flow = |one: &Transfer| one.incarnation == incarnation && one.stream == by.stream && one.flow == by.flow;
        self.break_off(|one| same_flow(one) && one.transfer != by.transfer, "its sender began another", at)
    }

    fn break_off(&mut self, which: impl Fn(&Transfer) -> bool, why: &str, at: Time) -> Vec<Transfer> {
        let mut broken = Vec::new();
        for one in self.transfers.iter_mut().filter(|one| one.outcome == Outcome::UnderWay && which(one)) {
            one.outcome = Outcome::BrokenOff;
            one.ended = Some(at);
            one.why = vec![why.to_owned()];
            self.counts.under_way -= 1;
            self.counts.ended += 1;
            self.counts.incomplete += 1;
            broken.push(one.clone());
        }
        broken
    }
}

impl Transfer {
    fn end(&mut self, report: &Report, at: Time) {
        let complete = !report.deliveries.is_empty() && report.deliveries.iter().all(|delivery| delivery.complete);
        self.outcome = if complete { Outcome::Complete } else { Outcome::Incomplete };
        self.ended = Some(at);
        self.bytes = report.bytes;
        self.seconds = report.seconds;
        self.bytes_per_s = if report.seconds > 0.0 { report.bytes as f64 / report.seconds } else { 0.0 };
        self.receivers = (report.deliveries.len() as u64).saturating_add(report.deliveries_left_out);
        self.lost_bytes = report.deliveries.iter().map(Delivery::lost_bytes).fold(0, u64::saturating_add);
        let short = || report.deliveries.iter().filter(|delivery| !delivery.complete);
        self.why = short().take(REASONS_KEPT).map(Delivery::reason).collect();
        let more = short().count().saturating_sub(REASONS_KEPT);
        self.why.extend((more > 0).then(|| format!("and {more} more")));
        if report.deliveries.is_empty() {
            self.why = vec!["nobody received it".to_owned()];
        }
    }
}

impl Delivery {
    fn lost_bytes(&self) -> u64 {
        let ranges = self.lost.iter().filter_map(|range| range.to?.checked_sub(range.from));
        self.lost_bytes.unwrap_or_else(|| ranges.fold(0, u64::saturating_add))
    }

    fn reason(&self) -> String {
        let mut parts: Vec<&str> = self.faults.iter().map(|fault| fault.text.as_str()).collect();
        parts.dedup();
        parts.extend((!self.why.is_empty()).then_some(self.why.as_str()));
        let text: String = parts.join(", ").chars().take(PARAMETER_KEPT).collect();
        let source: String = self.receiver.source.chars().take(SOURCE_KEPT).collect();
        format!("{source}: {text}")
    }
}

/// The account of bulk transfers, kept until dropped.
pub(crate) struct Transfers {
    book: Arc<Mutex<Book>>,
    closing: Arc<AtomicBool>,
    alarm: Alarm,
    worker: Option<JoinHandle<()>>,
    _answering: Guard,
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transfers {
    /// Begins to listen.
    pub fn start(participant: &Participant, logger: Logger) -> Result<Transfers, TransfersError> {
        let book = Arc::new(Mutex::new(Book::default()));
        let filter = TopicFilter::new(directory::TRANSFERS).map_err(BusError::from)?;
        let reader = participant.reader(&filter, &PartitionFilter::All, ReaderQos::default())?;
        let of = book.clone();
        let answerer = Arc::new(move |question: Box<dyn Question>| {
            let text = asking::newest(lock(&of).transfers.iter());
            // An asker that is gone needs no answer.
            let _ = question.reply(Bytes::from(text));
        });
        let service = TopicName::new(asking::TRANSFERS).map_err(BusError::from)?;
        let answering = participant.answer(&service, answerer)?;
        let (closing, alarm) = (Arc::new(AtomicBool::new(false)), reader.alarm());
        let (told, into, clock) = (closing.clone(), book.clone(), participant.clock());
        let work = move || listen(reader, &into, &logger, &told, move || clock.utc());
        let worker = std::thread::Builder::new().name("bulk transfers".to_owned()).spawn(work).map_err(TransfersError::Thread)?;
        Ok(Transfers { book, closing, alarm, worker: Some(worker), _answering: answering })
    }

    /// How many there were.
    pub fn counts(&self) -> Counts {
        lock(&self.book).counts
    }
}

/// Why there is no account of transfers.
#[derive(Debug, thiserror::Error)]
pub enum TransfersError {
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The system has no more threads.
    #[error("listening to bulk transfers: {0}")]
    Thread(std::io::Error),
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.alarm.ring();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

fn listen(mut reader: Reader, book: &Mutex<Book>, logger: &Logger, closing: &AtomicBool, now: impl Fn() -> Time) {
    while !closing.load(Ordering::Acquire) {
        match reader.next(IDLE) {
            Some(Event::Sample(sample)) if sample.stream.type_tag.id == directory::TRANSFER.id => {
                let Some(note) = read(&sample) else { continue };
                let (source, incarnation) = (sample.stream.source.as_str(), sample.stream.incarnation);
                let mut changed = lock(book).overtaken(&note, incarnation, now());
                changed.push(lock(book).enter(note, source, incarnation, now()));
                changed.iter().for_each(|transfer| tell(logger, transfer));
            }
            Some(Event::Source(change)) if matches!(change.state, SourceState::Left | SourceState::Died) => {
                let broken = lock(book).gone(change.incarnation, now());
                broken.iter().for_each(|transfer| tell(logger, transfer));
            }
            _ => {}
        }
    }
}

fn read(sample: &Sample) -> Option<Note> {
    sample.payload.with(parse).ok().flatten()
}

/// Reads a note. `None`: what it is nobody knows, or it is too long.
fn parse(bytes: &[u8]) -> Option<Note> {
    if bytes.len() > NOTE_LIMIT { None } else { serde_json::from_slice(bytes).ok() }
}

fn tell(logger: &Logger, one: &Transfer) {
    let (stream, flow, source, parameter) = (one.stream.as_str(), one.flow.as_str(), one.source.as_str(), one.parameter.as_str());
    let (number, bytes, rate) = (one.transfer, one.bytes, one.bytes_per_s);
    match one.outcome {
        Outcome::UnderWay => {
            info!(logger, "bulk transfer {number} of {stream}#{flow} begins"; source = source, parameter = parameter);
        }
        Outcome::Complete => {
            info!(logger, "bulk transfer {number} of {stream}#{flow} is complete: {bytes} bytes to {} receivers", one.receivers; source = source, parameter = parameter, bytes_per_s = rate);
        }
        Outcome::Incomplete | Outcome::BrokenOff => {
            let why = one.why.join("; ");
            warning!(logger, "bulk transfer {number} of {stream}#{flow} is not complete: {why}"; source = source, parameter = parameter, bytes = bytes, lost_bytes = one.lost_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(transfer: u64, report: &str) -> Note {
        let text = format!("{{\"stream\":\"s\",\"flow\":\"f\",\"transfer\":{transfer},\"parameter\":\"p\",\"report\":{report}}}");
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn names_that_are_none_are_not_kept() {
        for stream in ["x".repeat(1000), "a#b".to_owned(), String::new()] {
            let text = format!("{{\"stream\":\"{stream}\",\"flow\":\"f\",\"transfer\":1}}");
            assert!(parse(text.as_bytes()).is_none(), "{stream}");
        }
    }

    const COMPLETE: &str =
        r#"{"transfer":1,"bytes":100,"seconds":2.0,"deliveries":[{"receiver":{"source":"a"},"complete":true}]}"#;
    const SHORT: &str = r#"{"transfer":1,"bytes":100,"seconds":2.0,"deliveries":[{"receiver":{"source":"a"},"complete":true},
        {"receiver":{"source":"b"},"complete":false,"lost":[{"from":10,"to":30,"frames":1,"cause":"slow"}],"why":"slow","faults":[]}]}"#;

    #[test]
    fn beginnings_and_ends_are_one_transfer_and_deaths_break_off() {
        let (mut book, life) = (Book::default(), Incarnation::default());
        assert_eq!(book.enter(note(1, "null"), "a", life, Time(1)).outcome, Outcome::UnderWay);
        let done = book.enter(note(1, COMPLETE), "a", life, Time(2));
        assert_eq!((done.outcome, done.bytes_per_s, done.parameter.as_str()), (Outcome::Complete, 50.0, "p"));
        let short = book.enter(note(2, SHORT), "a", life, Time(3));
        assert_eq!((short.outcome, short.lost_bytes, short.why), (Outcome::Incomplete, 20, vec!["b: slow".to_owned()]));
        book.enter(note(3, "null"), "a", life, Time(4));
        assert_eq!(book.counts, Counts { ended: 2, incomplete: 1, bytes: 200, under_way: 1 });
        assert_eq!(book.gone(life, Time(5)).len(), 1);
        assert_eq!(book.counts, Counts { ended: 3, incomplete: 2, bytes: 200, under_way: 0 });
        // The next of a flow ends one whose end nobody told; an end that is told late ends nothing.
        book.enter(note(4, "null"), "a", life, Time(6));
        assert_eq!(book.overtaken(&note(3, COMPLETE), life, Time(7)), vec![]);
        let overtaken = book.overtaken(&note(5, "null"), life, Time(7));
        assert_eq!((overtaken.len(), overtaken[0].outcome, overtaken[0].transfer), (1, Outcome::BrokenOff, 4));
        assert_eq!(book.counts.under_way, 0);
        let nobody = book.enter(note(5, r#"{"transfer":5,"bytes":7,"seconds":1.0,"deliveries":[]}"#), "a", life, Time(8));
        assert_eq!((nobody.outcome, nobody.why), (Outcome::Incomplete, vec!["nobody received it".to_owned()]));
        let all = serde_json::to_value(&book.transfers).unwrap();
        assert_eq!((all.as_array().map(Vec::len), &all[2]["outcome"]), (Some(5), &"broken_off".into()));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nonsense_is_no_note() {
        let mut book = Book::default();
        for transfer in 0..REMEMBERED as u64 + 10 {
            book.enter(note(transfer, "null"), "a", Incarnation::default(), Time(0));
        }
        assert_eq!((book.transfers.len(), book.counts.under_way), (REMEMBERED, REMEMBERED as u64));
        for bad in [&b""[..], b"{}", b"[]", b"{\"stream\":1}", b"\xff"] {
            assert!(parse(bad).is_none(), "{bad:?}");
        }
        assert!(parse(&vec![b' '; NOTE_LIMIT + 1]).is_none());
    }
}
