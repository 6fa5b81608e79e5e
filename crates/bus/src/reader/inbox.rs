//! A stream at its reader: what has come in order, what waits behind a gap, what to ask for again, what is lost.
//!
//! The reading half of the reliability layer as a value, like [`crate::writer`]'s outbox: it is told what arrived and when,
//! and says what to hand on and what to ask for.

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;
use tampu_types::Time;

use super::loss::LossReason;
use crate::qos::History;

/// A batch as it came.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub first: u64,
    pub next: u64,
    /// The whole batch, header and all.
    pub bytes: Bytes,
    pub received: Time,
}

/// What the application is handed, in order.
#[derive(Debug)]
pub(crate) enum Handed {
    /// A batch, without its first `skip` samples (they came before).
    Batch { arrival: Arrival, skip: u64 },
    /// Samples that will not come.
    Lost { from: u64, to: Option<u64>, why: LossReason },
}

/// How long a hole may be open before it is asked for: time for a batch that took another way.
const HOLE_PATIENCE: u64 = 2_000_000;
/// How long an answer may take before it is asked again.
const ANSWER_PATIENCE: u64 = 1_000_000_000;

pub(crate) struct Inbox {
    reliable: bool,
    history: History,
    resume: Option<u64>,
    /// Whether it is known where this reader's part begins.
    begun: bool,
    /// The next sample to hand on.
    expected: u64,
    /// The number after the last sample known to exist.
    head: u64,
    /// What the writer's last heartbeat said there was.
    offered: u64,
    /// Batches behind a gap, by their first sample.
    stash: BTreeMap<u64, Arrival>,
    stash_bytes: usize,
    stash_limit: usize,
    /// Since when the present hole is open.
    hole_since: Option<u64>,
    /// The refetch under way: until when it is waited for.
    asked_until: Option<u64>,
    /// The application's queue was full: batches were left to the writer's cache.
    pub starved: bool,
}

impl Inbox {
    pub fn new(reliable: bool, history: History, resume: Option<u64>, stash_limit: usize) -> Inbox {
        Inbox {
            reliable,
            history,
            resume,
            begun: false,
            expected: 0,
            head: 0,
            offered: 0,
            stash: BTreeMap::new(),
            stash_bytes: 0,
            stash_limit,
            hole_since: None,
            asked_until: None,
            starved: false,
        }
    }

    pub fn expected(&self) -> u64 {
        self.expected
    }

    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The writer says where this reader's part begins and what there is.
    pub fn offered(&mut self, start: u64, lowest: u64, next: u64, now: u64, out: &mut Vec<Handed>) {
        if !self.begun {
            self.begun = true;
            self.expected = match self.resume {
                // Ahead of what the writer ever wrote means the mark was of something else; begin by right.
                Some(mark) if mark <= next => mark,
                _ if self.reliable => crate::writer::history_start(self.history, start, lowest),
                _ => start,
            };
        }
        self.head = self.head.max(next);
        self.drain(out);
        let told_before = std::mem::replace(&mut self.offered, next);
        if !self.reliable
            && let Some(hole) = self.hole().filter(|hole| hole.start < told_before)
        {
            // Two heartbeats have told of it: it is not on its way any more.
            self.lose(hole.start..hole.end.min(told_before), LossReason::Dropped, out);
        }
        self.look_for_hole(now, out);
    }

    /// A batch arrived. `room` says whether the application's queue takes more.
    pub fn arrived(&mut self, arrival: Arrival, room: bool, now: u64, out: &mut Vec<Handed>) {
        self.head = self.head.max(arrival.next);
        if self.begun && arrival.next <= self.expected {
            return;
        }
        if self.begun && arrival.first <= self.expected {
            if room {
                self.hand(arrival, out);
                self.drain(out);
            } else {
                self.starved = true;
            }
        } else {
            self.put_by(arrival);
        }
        self.look_for_hole(now, out);
    }

    fn hand(&mut self, arrival: Arrival, out: &mut Vec<Handed>) {
        let skip = self.expected - arrival.first;
        self.expected = arrival.next;
        out.push(Handed::Batch { arrival, skip });
    }

    fn put_by(&mut self, arrival: Arrival) {
        let size = arrival.bytes.len();
        // Beyond the bound the newest are left to the writer's cache: the oldest are needed first.
        if self.stash_bytes + size > self.stash_limit {
            return;
        }
        if let Some(same) = self.stash.insert(arrival.first, arrival) {
            self.stash_bytes -= same.bytes.len();
        }
        self.stash_bytes += size;
    }

    /// Hands on what the stash has in order.
    fn drain(&mut self, out: &mut Vec<Handed>) {
        while self.begun {
            let Some(entry) = self.stash.first_entry().filter(|entry| *entry.key() <= self.expected) else { break };
            let arrival = entry.remove();
            self.stash_bytes -= arrival.bytes.len();
            if arrival.next > self.expected {
                self.hand(arrival, out);
            }
        }
    }

    /// The samples that are missing now, up to the first that is here.
    fn hole(&self) -> Option<Range<u64>> {
        let end = self.stash.first_key_value().map_or(self.head, |(&first, _)| first);
        (self.begun && self.expected < end).then_some(self.expected..end)
    }

    fn look_for_hole(&mut self, now: u64, out: &mut Vec<Handed>) {
        match self.hole() {
            None => self.hole_since = None,
            // A reader that does not heal tells what a later batch proves missing; the tail may be on its way.
            Some(hole) if !self.reliable && !self.stash.is_empty() => {
                self.lose(hole, LossReason::Dropped, out);
            }
            Some(_) => {
                self.hole_since.get_or_insert(now);
            }
        }
    }

    fn lose(&mut self, hole: Range<u64>, why: LossReason, out: &mut Vec<Handed>) {
        out.push(Handed::Lost { from: hole.start, to: Some(hole.end), why });
        self.expected = hole.end;
        self.hole_since = None;
        self.drain(out);
    }

    /// What to ask the writer for now.
    pub fn hole_to_ask(&mut self, room: bool, now: u64) -> Option<Range<u64>> {
        if !self.reliable || !room || self.asked_until.is_some_and(|until| now < until) {
            return None;
        }
        let hole = self.hole()?;
        let patience = if self.starved { 0 } else { self.patience() };
        if now < self.hole_since? + patience {
            return None;
        }
        self.starved = false;
        self.asked_until = Some(now + ANSWER_PATIENCE);
        Some(hole)
    }

    /// A later batch proves a hole; a heartbeat may only have overtaken the batch it speaks of.
    fn patience(&self) -> u64 {
        if self.stash.is_empty() { HOLE_PATIENCE } else { HOLE_PATIENCE / 8 }
    }

    /// When [`Inbox::hole_to_ask`] has something to say, unless news comes first.
    pub fn next_ask(&self) -> Option<u64> {
        self.reliable.then_some(())?;
        let ready = self.hole_since? + self.patience();
        Some(self.asked_until.map_or(ready, |until| until.max(ready)))
    }

    /// A refetch of `asked` was answered: the writer has `lowest..next` and has sent what it had.
    pub fn answered(&mut self, asked: &Range<u64>, lowest: u64, next: u64, now: u64, out: &mut Vec<Handed>) {
        self.asked_until = None;
        if next <= asked.start && asked.start == self.expected {
            // What made this reader ask was not written by the writer, which would have it: a damaged or foreign batch.
            self.forget_from(next);
        }
        self.head = self.head.max(next);
        if let Some(hole) = self.hole().filter(|hole| hole.start < lowest) {
            // Only what was asked for is judged: the writer may have dropped more since, and the next answer tells that.
            let end = lowest.min(hole.end).min(asked.end.max(hole.start));
            if end > hole.start {
                self.lose(hole.start..end, LossReason::Evicted, out);
            }
        }
        // More may be missing: ask on at once.
        self.hole_since = self.hole().map(|_| now.saturating_sub(HOLE_PATIENCE));
    }

    /// Believes nothing it was told of samples from there on.
    fn forget_from(&mut self, next: u64) {
        self.stash.retain(|_, arrival| arrival.next <= next);
        self.stash_bytes = self.stash.values().map(|arrival| arrival.bytes.len()).sum();
        self.head = self.expected;
    }

    /// Nobody answered: the writer, or the way to it, is gone for now.
    pub fn unanswered(&mut self, now: u64) {
        self.asked_until = Some(now + ANSWER_PATIENCE / 5);
    }

    /// The writer is dead: what is missing stays missing. `written` is the number after the last sample it is known to have
    /// written, where something durable says so.
    pub fn writer_died(&mut self, written: Option<u64>, out: &mut Vec<Handed>) {
        if !self.begun {
            if self.stash.is_empty() {
                return;
            }
            self.begun = true;
            self.expected = self.stash.first_key_value().map_or(0, |(&first, _)| first);
        }
        self.head = self.head.max(written.unwrap_or(0));
        self.drain(out);
        while let Some(hole) = self.hole() {
            self.lose(hole, LossReason::WriterDied, out);
        }
        if written.is_none() {
            out.push(Handed::Lost { from: self.expected, to: None, why: LossReason::WriterDied });
        }
    }

    /// The writer left in order after `next` samples.
    pub fn writer_left(&mut self, out: &mut Vec<Handed>) {
        while let Some(hole) = self.hole() {
            self.lose(hole, LossReason::WriterLeft, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(first: u64, next: u64) -> Arrival {
        Arrival { first, next, bytes: Bytes::from(vec![0; 10]), received: Time(0) }
    }

    fn told(out: &mut Vec<Handed>) -> Vec<String> {
        out.drain(..)
            .map(|handed| match handed {
                Handed::Batch { arrival, skip } => format!("{}..{}", arrival.first + skip, arrival.next),
                Handed::Lost { from, to, why } => format!("lost {from}..{to:?} {why:?}"),
            })
            .collect()
    }

    fn begun(reliable: bool) -> Inbox {
        let mut inbox = Inbox::new(reliable, History::None, None, 1000);
        inbox.offered(0, 0, 0, 0, &mut Vec::new());
        inbox
    }

    #[test]
    fn reordered_and_repeated_batches_come_out_once_and_in_order() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        for (first, next) in [(5, 10), (0, 3), (0, 3), (2, 6), (8, 12)] {
            inbox.arrived(arrival(first, next), true, 0, &mut out);
        }
        assert_eq!(told(&mut out), ["0..3", "3..6", "6..10", "10..12"]);
    }

    #[test]
    fn a_hole_is_asked_for_and_what_the_writer_no_longer_has_is_lost_exactly() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.arrived(arrival(7, 9), true, 0, &mut out);
        assert_eq!(inbox.hole_to_ask(true, HOLE_PATIENCE / 8 - 1), None);
        assert_eq!(inbox.hole_to_ask(true, HOLE_PATIENCE / 8), Some(0..7));
        assert_eq!(inbox.hole_to_ask(true, HOLE_PATIENCE), None, "one question at a time");
        inbox.answered(&(0..7), 4, 9, HOLE_PATIENCE, &mut out);
        assert_eq!(told(&mut out), ["lost 0..Some(4) Evicted"]);
        assert_eq!(inbox.hole_to_ask(true, HOLE_PATIENCE), Some(4..7));
        inbox.arrived(arrival(4, 7), true, 0, &mut out);
        assert_eq!(told(&mut out), ["4..7", "7..9"]);
    }

    #[test]
    fn what_the_writer_never_wrote_is_not_asked_for_again() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.arrived(arrival(0, 3), true, 0, &mut out);
        inbox.arrived(arrival(u64::MAX - 5, u64::MAX), true, 0, &mut out);
        assert_eq!(told(&mut out), ["0..3"]);
        let asked = inbox.hole_to_ask(true, HOLE_PATIENCE).unwrap();
        inbox.answered(&asked, 0, 3, HOLE_PATIENCE, &mut out);
        assert_eq!(inbox.hole_to_ask(true, 2 * HOLE_PATIENCE), None);
        inbox.arrived(arrival(3, 4), true, 0, &mut out);
        assert_eq!(told(&mut out), ["3..4"]);
    }

    #[test]
    fn a_tail_known_from_a_heartbeat_is_a_hole() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.offered(0, 0, 3, 0, &mut out);
        assert_eq!(inbox.hole_to_ask(true, HOLE_PATIENCE), Some(0..3));
    }

    #[test]
    fn death_tells_known_holes_and_that_the_tail_is_unknown() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.arrived(arrival(2, 4), true, 0, &mut out);
        inbox.writer_died(None, &mut out);
        assert_eq!(told(&mut out), ["lost 0..Some(2) WriterDied", "2..4", "lost 4..None WriterDied"]);
        let mut known = begun(true);
        known.writer_died(Some(6), &mut out);
        assert_eq!(told(&mut out), ["lost 0..Some(6) WriterDied"]);
    }

    #[test]
    fn without_healing_losses_are_told_at_once() {
        let (mut inbox, mut out) = (begun(false), Vec::new());
        inbox.arrived(arrival(2, 4), true, 0, &mut out);
        assert_eq!(told(&mut out), ["lost 0..Some(2) Dropped", "2..4"]);
        inbox.offered(0, 0, 7, 0, &mut out);
        assert!(told(&mut out).is_empty(), "the tail may be on its way");
        inbox.offered(0, 0, 9, 0, &mut out);
        assert_eq!(told(&mut out), ["lost 4..Some(7) Dropped"]);
    }

    #[test]
    fn a_full_queue_leaves_batches_to_the_writer() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.arrived(arrival(0, 4), false, 0, &mut out);
        assert!(told(&mut out).is_empty());
        assert_eq!(inbox.hole_to_ask(false, 0), None);
        assert_eq!(inbox.hole_to_ask(true, 0), Some(0..4));
    }
}
