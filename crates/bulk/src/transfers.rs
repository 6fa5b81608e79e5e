//! Account of bulk transfers. Senders report each start and end on the bus. The account counts them, calls a callback
//! on every change, and answers queries for the latest transfers.
//!
//! It is independent of the log: the hub passes a callback that writes log records.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tampu_bus::{Alarm, BusError, Event, Participant, Reader, ReaderQos, Sample, SourceState, engine::Guard};
use tampu_types::{Incarnation, PartitionFilter, Time, TopicFilter};
use tampu_workers::WorkerThread;

use crate::{Name, asking, directory, note::NOTE_LIMIT};

/// Transfers kept in memory; the oldest is dropped first.
pub const REMEMBERED: usize = 1000;
/// Characters of a parameter that are kept.
const PARAMETER_KEPT: usize = 500;
/// Receivers of one transfer whose failure reasons are kept.
const REASONS_KEPT: usize = 16;
/// Characters of a receiver's name in such a reason.
const SOURCE_KEPT: usize = 200;
const IDLE: Duration = Duration::from_millis(250);
/// Pause after a panic of the account.
const RESTART: Duration = Duration::from_millis(100);

/// State or result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The transfer is running.
    UnderWay,
    /// Every receiver got every byte.
    Complete,
    /// At least one receiver missed data, or there was no receiver.
    Incomplete,
    /// The sender left, or began another transfer of the flow without reporting the end of this one.
    BrokenOff,
}

/// One transfer of one flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transfer {
    /// Stream of the flow.
    pub stream: Name,
    /// Flow within the stream.
    pub flow: Name,
    /// Number that the sender gave it, counted per flow.
    pub transfer: u64,
    /// Source name of the sender.
    pub source: String,
    /// Incarnation of the sender.
    pub incarnation: Incarnation,
    /// First 500 characters of the parameter given to `start`.
    pub parameter: String,
    /// Time (UTC) of the account's first report about it.
    pub began: Time,
    /// Time (UTC) of the reported end; `None` while it is running.
    pub ended: Option<Time>,
    /// State or result.
    pub outcome: Outcome,
    /// Bytes sent, without headers.
    pub bytes: u64,
    /// Duration measured by the sender, seconds.
    pub seconds: f64,
    /// Bytes divided by seconds; 0 while the duration is unknown.
    pub bytes_per_s: f64,
    /// Number of receivers.
    pub receivers: u64,
    /// Bytes lost, summed over all receivers.
    pub lost_bytes: u64,
    /// Reasons, one for each receiver with missing data; at most 16 and a line with the number of further ones.
    pub why: Vec<String>,
}

/// The members of a sender's note that the account needs.
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
    /// Number of receivers left out of the note. Receivers with missing data come first in it.
    #[serde(default)]
    deliveries_left_out: u64,
}

#[derive(Debug, Deserialize)]
struct Delivery {
    receiver: Receiver,
    complete: bool,
    #[serde(default)]
    lost: Vec<Range>,
    /// Total of lost bytes, if the sender reports it; `lost` may be a part of the ranges.
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

/// Counters since [`Transfers::start`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Transfers that ended, complete or not.
    pub ended: u64,
    /// Transfers that ended with missing data or were broken off.
    pub incomplete: u64,
    /// Bytes of the transfers that ended.
    pub bytes: u64,
    /// Number of running transfers.
    pub under_way: u64,
}

#[derive(Debug, Default)]
struct Account {
    transfers: VecDeque<Transfer>,
    counts: TransferCounts,
}

impl Account {
    /// Enters a note and returns the updated transfer.
    fn enter(&mut self, note: Note, source: &str, incarnation: Incarnation, at: Time) -> Transfer {
        let same = |one: &Transfer| {
            (one.incarnation, one.transfer, one.outcome) == (incarnation, note.transfer, Outcome::UnderWay)
                && one.stream == note.stream
                && one.flow == note.flow
        };
        // A transfer without an entry began before this account, or its entry was dropped.
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

    /// Marks every running transfer of a sender that left as broken off.
    fn gone(&mut self, incarnation: Incarnation, at: Time) -> Vec<Transfer> {
        self.break_off(|one| one.incarnation == incarnation, "its sender is gone", at)
    }

    /// Breaks off an earlier transfer of the same flow when the next one begins, as a flow has one transfer at a time.
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
            self.why = vec!["no receiver got it".to_owned()];
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

/// The running account of bulk transfers. Dropping it stops its thread.
pub struct Transfers {
    book: Arc<Mutex<Account>>,
    closing: Arc<AtomicBool>,
    alarm: Alarm,
    worker: Option<JoinHandle<()>>,
    _answering: Guard,
}

impl Transfers {
    /// Follows the transfers of all senders in the domain and answers [`asking::transfers`]. `report` gets each transfer when it begins,
    /// ends or is broken off, on the account's own thread.
    pub fn start(participant: &Participant, report: impl Fn(&Transfer) + Send + 'static) -> Result<Transfers, TransfersError> {
        let book = Arc::new(Mutex::new(Account::default()));
        let filter = TopicFilter::new(directory::TRANSFERS).map_err(BusError::from)?;
        let reader = participant.reader(&filter, &PartitionFilter::All, ReaderQos::default())?;
        let of = book.clone();
        let answering = asking::answer(participant, asking::TRANSFERS, move || Some(asking::newest(of.lock().transfers.iter())))?;
        let (closing, alarm) = (Arc::new(AtomicBool::new(false)), reader.alarm());
        let (stop, into, clock) = (closing.clone(), book.clone(), participant.clock());
        let mut reader = reader;
        let work = move || listen(&mut reader, &into, &report, &stop, || clock.utc());
        let worker = WorkerThread::named("bulk transfers").spawn_restarting(RESTART, work).map_err(TransfersError::Thread)?;
        Ok(Transfers { book, closing, alarm, worker: Some(worker), _answering: answering })
    }

    /// Returns the counters.
    pub fn counts(&self) -> TransferCounts {
        self.book.lock().counts
    }
}

/// Errors of [`Transfers::start`].
#[derive(Debug, thiserror::Error)]
pub enum TransfersError {
    /// The bus rejected the reader or the service.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The system could not start the thread.
    #[error("cannot start the thread of the account of bulk transfers: {0}")]
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

fn listen(reader: &mut Reader, book: &Mutex<Account>, report: &impl Fn(&Transfer), closing: &AtomicBool, now: impl Fn() -> Time) {
    while !closing.load(Ordering::Acquire) {
        match reader.next(IDLE) {
            Some(Event::Sample(sample)) if sample.stream.type_tag.id == directory::TRANSFER.id => {
                let Some(note) = read(&sample) else { continue };
                let (source, incarnation) = (sample.stream.source.as_str(), sample.stream.incarnation);
                let mut changed = book.lock().overtaken(&note, incarnation, now());
                changed.push(book.lock().enter(note, source, incarnation, now()));
                changed.iter().for_each(report);
            }
            Some(Event::Source(change)) if matches!(change.state, SourceState::Left | SourceState::Died) => {
                let broken = book.lock().gone(change.incarnation, now());
                broken.iter().for_each(report);
            }
            _ => {}
        }
    }
}

fn read(sample: &Sample) -> Option<Note> {
    sample.payload.with(parse).ok().flatten()
}

/// Decodes a note. `None` means that it is malformed or longer than the limit.
fn parse(bytes: &[u8]) -> Option<Note> {
    if bytes.len() > NOTE_LIMIT { None } else { serde_json::from_slice(bytes).ok() }
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
        let (mut book, life) = (Account::default(), Incarnation::default());
        assert_eq!(book.enter(note(1, "null"), "a", life, Time(1)).outcome, Outcome::UnderWay);
        let done = book.enter(note(1, COMPLETE), "a", life, Time(2));
        assert_eq!((done.outcome, done.bytes_per_s, done.parameter.as_str()), (Outcome::Complete, 50.0, "p"));
        let short = book.enter(note(2, SHORT), "a", life, Time(3));
        assert_eq!((short.outcome, short.lost_bytes, short.why), (Outcome::Incomplete, 20, vec!["b: slow".to_owned()]));
        book.enter(note(3, "null"), "a", life, Time(4));
        assert_eq!(book.counts, TransferCounts { ended: 2, incomplete: 1, bytes: 200, under_way: 1 });
        assert_eq!(book.gone(life, Time(5)).len(), 1);
        assert_eq!(book.counts, TransferCounts { ended: 3, incomplete: 2, bytes: 200, under_way: 0 });
        // The next transfer of a flow ends one without a report; a late report ends nothing.
        book.enter(note(4, "null"), "a", life, Time(6));
        assert_eq!(book.overtaken(&note(3, COMPLETE), life, Time(7)), vec![]);
        let overtaken = book.overtaken(&note(5, "null"), life, Time(7));
        assert_eq!((overtaken.len(), overtaken[0].outcome, overtaken[0].transfer), (1, Outcome::BrokenOff, 4));
        assert_eq!(book.counts.under_way, 0);
        let nobody = book.enter(note(5, r#"{"transfer":5,"bytes":7,"seconds":1.0,"deliveries":[]}"#), "a", life, Time(8));
        assert_eq!((nobody.outcome, nobody.why), (Outcome::Incomplete, vec!["no receiver got it".to_owned()]));
        let all = serde_json::to_value(&book.transfers).unwrap();
        assert_eq!((all.as_array().map(Vec::len), &all[2]["outcome"]), (Some(5), &"broken_off".into()));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nonsense_is_no_note() {
        let mut book = Account::default();
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
