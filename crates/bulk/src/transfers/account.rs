//! The account itself: notes of senders make transfers.

use std::collections::VecDeque;

use serde::Deserialize;
use tampu_types::{Incarnation, Time};

use super::transfer::{Outcome, ReceiverOutcome, Transfer};
use crate::{Name, file::FileLabel, note::NOTE_LIMIT};

/// Running transfers that an account follows; the oldest is dropped first.
pub const REMEMBERED: usize = 1000;
/// Characters of a parameter that are kept; of a file's label, of the text in it.
const PARAMETER_KEPT: usize = 500;
/// Receivers of one transfer whose failure reasons are kept.
const REASONS_KEPT: usize = 16;
/// Receivers of one transfer whose results are kept.
const RECEIVERS_KEPT: usize = 32;
/// Characters of a receiver's name in a reason or a result.
const SOURCE_KEPT: usize = 200;

/// The members of a sender's note that the account needs.
#[derive(Debug, Deserialize)]
pub(super) struct Note {
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
    acknowledged: u64,
    #[serde(default)]
    status: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    faults: Vec<Fault>,
}

#[derive(Debug, Deserialize)]
struct Receiver {
    source: String,
    #[serde(default)]
    incarnation: String,
    #[serde(default)]
    address: String,
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

/// Counters since the start of the account.
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

/// Sender of a note.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoteSender<'a> {
    pub source: &'a str,
    pub incarnation: Incarnation,
    pub host: &'a str,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    /// The running transfers.
    pub transfers: VecDeque<Transfer>,
    pub counts: TransferCounts,
}

impl Account {
    /// Enters a note and returns the updated transfer.
    pub fn enter(&mut self, note: Note, sender: NoteSender<'_>, at: Time) -> Transfer {
        let incarnation = sender.incarnation;
        let same = |one: &Transfer| {
            (one.incarnation, one.transfer) == (incarnation, note.transfer) && one.stream == note.stream && one.flow == note.flow
        };
        // A transfer without an entry began before this account, or its entry was dropped.
        let known = self.transfers.iter().rposition(same).and_then(|index| self.transfers.remove(index));
        self.counts.under_way -= u64::from(known.is_some());
        let is_known = known.is_some();
        let mut one = known.unwrap_or_else(|| Transfer {
            stream: note.stream,
            flow: note.flow,
            transfer: note.transfer,
            source: sender.source.to_owned(),
            incarnation,
            host: sender.host.to_owned(),
            parameter: FileLabel::shorten(&note.parameter, PARAMETER_KEPT),
            began: at,
            ended: None,
            outcome: Outcome::UnderWay,
            bytes: 0,
            seconds: 0.0,
            bytes_per_s: 0.0,
            receivers: 0,
            lost_bytes: 0,
            why: Vec::new(),
            deliveries: Vec::new(),
        });
        match note.report {
            None => self.counts.under_way += 1,
            Some(report) => {
                one.end(&report, at);
                if !is_known {
                    one.began = Time(at.0.saturating_sub((report.seconds.max(0.0) * 1e9) as i64));
                }
                self.counts.ended += 1;
                self.counts.incomplete += u64::from(one.outcome != Outcome::Complete);
                self.counts.bytes = self.counts.bytes.saturating_add(one.bytes);
            }
        }
        if one.is_under_way() {
            self.remember(one.clone());
        }
        one
    }

    fn remember(&mut self, one: Transfer) {
        self.transfers.push_back(one);
        if self.transfers.len() > REMEMBERED {
            self.counts.under_way -= u64::from(self.transfers.pop_front().is_some());
        }
    }

    /// Takes running transfers of an earlier account over.
    pub fn resume(&mut self, running: Vec<Transfer>) {
        for one in running {
            self.counts.under_way += 1;
            self.remember(one);
        }
    }

    /// Breaks off the resumed transfers whose senders are no longer there.
    pub fn absent(&mut self, is_present: impl Fn(Incarnation) -> bool, at: Time) -> Vec<Transfer> {
        self.break_off(|one| one.began < at && !is_present(one.incarnation), "its sender ended while no hub kept the account", at)
    }

    /// Marks every running transfer of a sender that left as broken off.
    pub fn gone(&mut self, incarnation: Incarnation, at: Time) -> Vec<Transfer> {
        self.break_off(|one| one.incarnation == incarnation, "its sender is gone", at)
    }

    /// Breaks off an earlier transfer of the same flow when the next one begins, as a flow has one transfer at a time.
    pub fn overtaken(&mut self, by: &Note, incarnation: Incarnation, at: Time) -> Vec<Transfer> {
        if by.report.is_some() {
            return Vec::new();
        }
        let same_flow = |one: &Transfer| one.incarnation == incarnation && one.stream == by.stream && one.flow == by.flow;
        self.break_off(|one| same_flow(one) && one.transfer != by.transfer, "its sender began another", at)
    }

    fn break_off(&mut self, which: impl Fn(&Transfer) -> bool, why: &str, at: Time) -> Vec<Transfer> {
        let (mut broken, running): (Vec<Transfer>, Vec<Transfer>) = self.transfers.drain(..).partition(which);
        self.transfers = running.into();
        for (place, one) in broken.iter_mut().enumerate() {
            one.outcome = Outcome::BrokenOff;
            // Rows of one sender that end together have different places in the archive.
            one.ended = Some(Time(at.0.saturating_add(place as i64)));
            one.why = vec![why.to_owned()];
            self.counts.under_way -= 1;
            self.counts.ended += 1;
            self.counts.incomplete += 1;
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
        let whole = report.deliveries.iter().filter(|delivery| delivery.complete);
        self.deliveries = short().chain(whole).take(RECEIVERS_KEPT).map(Delivery::outcome).collect();
    }
}

impl Delivery {
    fn lost_bytes(&self) -> u64 {
        let ranges = self.lost.iter().filter_map(|range| range.to?.checked_sub(range.from));
        self.lost_bytes.unwrap_or_else(|| ranges.fold(0, u64::saturating_add))
    }

    fn outcome(&self) -> ReceiverOutcome {
        let short = |text: &str| text.chars().take(SOURCE_KEPT).collect();
        ReceiverOutcome {
            source: short(&self.receiver.source),
            incarnation: short(&self.receiver.incarnation),
            address: short(&self.receiver.address),
            complete: self.complete,
            acknowledged: self.acknowledged,
            lost_bytes: self.lost_bytes(),
            status: short(&self.status),
        }
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

/// Decodes a note. `None` means that it is malformed or longer than the limit.
pub(super) fn parse(bytes: &[u8]) -> Option<Note> {
    if bytes.len() > NOTE_LIMIT { None } else { serde_json::from_slice(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(incarnation: Incarnation) -> NoteSender<'static> {
        NoteSender { source: "a", incarnation, host: "control" }
    }

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
        assert_eq!(book.enter(note(1, "null"), by(life), Time(1)).outcome, Outcome::UnderWay);
        let done = book.enter(note(1, COMPLETE), by(life), Time(2));
        assert_eq!((done.outcome, done.bytes_per_s, done.parameter.as_str()), (Outcome::Complete, 50.0, "p"));
        let short = book.enter(note(2, SHORT), by(life), Time(2_000_000_000));
        assert_eq!((short.outcome, short.lost_bytes, short.why), (Outcome::Incomplete, 20, vec!["b: slow".to_owned()]));
        assert_eq!((short.began, short.host.as_str()), (Time(0), "control"), "its begin was missed");
        let ends: Vec<(&str, bool, u64)> =
            short.deliveries.iter().map(|one| (one.source.as_str(), one.complete, one.lost_bytes)).collect();
        assert_eq!(ends, [("b", false, 20), ("a", true, 0)]);
        book.enter(note(3, "null"), by(life), Time(4));
        assert_eq!(book.counts, TransferCounts { ended: 2, incomplete: 1, bytes: 200, under_way: 1 });
        assert_eq!(book.gone(life, Time(5)).len(), 1);
        assert_eq!(book.counts, TransferCounts { ended: 3, incomplete: 2, bytes: 200, under_way: 0 });
        // The next transfer of a flow ends one without a report; a late report ends nothing.
        book.enter(note(4, "null"), by(life), Time(6));
        assert_eq!(book.overtaken(&note(3, COMPLETE), life, Time(7)), vec![]);
        let overtaken = book.overtaken(&note(5, "null"), life, Time(7));
        assert_eq!((overtaken.len(), overtaken[0].outcome, overtaken[0].transfer), (1, Outcome::BrokenOff, 4));
        assert_eq!(book.counts.under_way, 0);
        let nobody = book.enter(note(5, r#"{"transfer":5,"bytes":7,"seconds":1.0,"deliveries":[]}"#), by(life), Time(8));
        assert_eq!((nobody.outcome, nobody.why), (Outcome::Incomplete, vec!["no receiver got it".to_owned()]));
        assert!(book.transfers.is_empty(), "{book:?}");
    }

    #[test]
    fn running_transfers_are_taken_over_and_end_with_their_senders() {
        let (here, away) = (Incarnation { pid: 1, ..Incarnation::default() }, Incarnation { pid: 2, ..Incarnation::default() });
        let mut before = Account::default();
        let running: Vec<Transfer> = [here, away].map(|life| before.enter(note(1, "null"), by(life), Time(1))).into();
        let mut book = Account::default();
        book.resume(running);
        book.enter(note(2, "null"), by(away), Time(9));
        let broken = book.absent(|life| life == here, Time(5));
        assert_eq!((broken.len(), broken[0].incarnation, broken[0].outcome), (1, away, Outcome::BrokenOff));
        let done = book.enter(note(1, COMPLETE), by(here), Time(7));
        assert_eq!((done.began, done.ended, book.counts.under_way), (Time(1), Some(Time(7)), 1));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nonsense_is_no_note() {
        let mut book = Account::default();
        for transfer in 0..REMEMBERED as u64 + 10 {
            book.enter(note(transfer, "null"), by(Incarnation::default()), Time(0));
        }
        assert_eq!((book.transfers.len(), book.counts.under_way), (REMEMBERED, REMEMBERED as u64));
        for bad in [&b""[..], b"{}", b"[]", b"{\"stream\":1}", b"\xff"] {
            assert!(parse(bad).is_none(), "{bad:?}");
        }
        assert!(parse(&vec![b' '; NOTE_LIMIT + 1]).is_none());
    }
}
