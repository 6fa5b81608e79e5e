//! A stream at its reader: samples in order, samples that wait behind a gap, missing samples to request, and lost ones.
//!
//! It is the reading half of the reliability layer as a value, the counterpart of [`crate::writer`]'s outbox. It gets
//! the arrivals with their times, and returns the samples to deliver and to request again.

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;
use tampu_types::Time;

use super::{loss::LossReason, requests::RequestSize};
use crate::{qos::History, wire::batch::has_all_bytes};

/// Batch in its received form.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub first: u64,
    pub next: u64,
    /// Whole batch with its header.
    pub bytes: Bytes,
    pub received: Time,
}

/// An item for the application, in order.
#[derive(Debug)]
pub(crate) enum Handed {
    /// A batch, without its first `skip` samples, which came before.
    Batch { arrival: Arrival, skip: u64 },
    /// Samples that are lost.
    Lost { from: u64, to: Option<u64>, why: LossReason },
}

/// Time in ns that a gap may be open before it is requested, because a batch may have taken another way.
const HOLE_PATIENCE: u64 = 2_000_000;
/// The same for samples that a multicast group brings. Heartbeats overtake them, because they do not wait for its slowest
/// member.
const GROUP_PATIENCE: u64 = 1_000_000_000;
/// The longest one, where samples turn out to take that long.
const GROUP_PATIENCE_MOST: u64 = 4_000_000_000;
/// Time in ns without such a turn after which the wait falls again, by half.
const GROUP_PATIENCE_KEPT: u64 = 10_000_000_000;
/// Wait for the tail of a stream whose process is about to end. It answers requests for 500 ms.
const ENDING_PATIENCE: u64 = 100_000_000;
/// Time in ns for which a stream counts as brought by a group after a batch that was.
const GROUP_MEMORY: u64 = 3_000_000_000;
/// Step in ns by which readers ask at different times for what the group has lost.
const GROUP_SPREAD: u64 = 1_000_000;
/// Time after the end of a request's timeout in which the engine should have reported it, in ns.
const ANSWER_PATIENCE: u64 = 100_000_000;
/// Pause before a request without an answer is repeated, in ns.
const ASK_AGAIN: u64 = 200_000_000;

pub(crate) struct Inbox {
    reliable: bool,
    history: History,
    resume: Option<u64>,
    /// True once the start of this reader's part is known.
    begun: bool,
    /// Next sample to deliver.
    expected: u64,
    /// The number after the last sample known to exist.
    head: u64,
    /// End of the stream in the writer's last heartbeat.
    offered: u64,
    /// Batches behind a gap, by their first sample.
    stash: BTreeMap<u64, Arrival>,
    stash_bytes: usize,
    stash_limit: usize,
    /// Time since which the present gap is open.
    hole_since: Option<u64>,
    /// Time until which the stream counts as brought by a multicast group, and this reader's place among those that ask.
    by_group: Option<(u64, u64)>,
    /// Wait for the tail of a stream that a group brings, ns.
    group_patience: u64,
    /// Time of the last change of it.
    patience_at: u64,
    /// True once the writer has said that its process is about to end.
    ends: bool,
    /// Deadline of the running refetch.
    asked_until: Option<u64>,
    /// True if the application's queue was full, so that batches were left in the writer's cache.
    pub starved: bool,
    /// Size and timeout of requests.
    pub requests: RequestSize,
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
            by_group: None,
            group_patience: GROUP_PATIENCE,
            patience_at: 0,
            ends: false,
            asked_until: None,
            starved: false,
            requests: RequestSize::default(),
        }
    }

    pub fn expected(&self) -> u64 {
        self.expected
    }

    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Notes the writer's offer: the start of this reader's part, and the existing samples.
    pub fn offered(&mut self, start: u64, lowest: u64, next: u64, now: u64, out: &mut Vec<Handed>) {
        if !self.begun {
            self.begun = true;
            self.expected = match self.resume {
                // A mark beyond everything the writer wrote belongs to another stream. The reader then begins at its default
                // position.
                Some(mark) if mark <= next => mark,
                _ if self.reliable => self.reach_back(crate::writer::history_start(self.history, start, lowest)),
                _ => self.reach_back(start),
            };
        }
        self.head = self.head.max(next);
        self.drain(out);
        let told_before = std::mem::replace(&mut self.offered, next);
        if !self.reliable
            && self.is_late(now)
            && let Some(hole) = self.hole().filter(|hole| hole.start < told_before)
        {
            // Two heartbeats have reported it, so it is not under way.
            self.lose(hole.start..hole.end.min(told_before), LossReason::Dropped, out);
        }
        self.look_for_hole(now, out);
    }

    /// Returns the first of the samples before `start` that have come without a gap. The writer sent them before it knew of
    /// this reader, which had subscribed already: to drop them would be a loss that nobody is told of.
    fn reach_back(&self, start: u64) -> u64 {
        let mut first = start;
        for (&from, arrival) in self.stash.range(..start).rev() {
            if arrival.next < first || !has_all_bytes(&arrival.bytes) {
                break;
            }
            first = from;
        }
        first
    }

    /// Notes that a multicast group has brought the batch that ends before `next`. Readers with another `spread` ask at other
    /// times for missing ones.
    pub fn came_by_group(&mut self, next: u64, now: u64, spread: u64) {
        if self.by_group.is_some() && self.begun && next <= self.expected {
            // It was fetched while it was under way.
            (self.group_patience, self.patience_at) = ((2 * self.group_patience).min(GROUP_PATIENCE_MOST), now);
        } else if now >= self.patience_at + GROUP_PATIENCE_KEPT {
            (self.group_patience, self.patience_at) = ((self.group_patience / 2).max(GROUP_PATIENCE), now);
        }
        self.by_group = Some((now + GROUP_MEMORY, spread));
    }

    /// Notes that the writer's process is about to end.
    pub fn ends_soon(&mut self) {
        self.ends = true;
    }

    /// Reports if a multicast group has brought batches lately, so that others may be under way.
    pub fn comes_by_group(&self, now: u64) -> bool {
        self.by_group.is_some_and(|(until, _)| now < until)
    }

    /// Reports if samples that are known to exist may be under way through a multicast group.
    pub fn awaits_group(&self, now: u64) -> bool {
        self.comes_by_group(now) && self.hole().is_some()
    }

    /// Processes a batch. `room` is true if the application's queue accepts more.
    pub fn arrived(&mut self, arrival: Arrival, room: bool, now: u64, out: &mut Vec<Handed>) {
        self.head = self.head.max(arrival.next);
        if self.begun && arrival.next <= self.expected {
            return;
        }
        if self.begun && arrival.first <= self.expected {
            if room {
                self.hand(arrival, out);
                self.drain(out);
                if self.comes_by_group(now) {
                    // Others follow, and heartbeats announce them before the hole has ever closed. Each has the whole wait.
                    self.hole_since = None;
                }
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
        // Beyond the bound, the newest batches stay in the writer's cache: the oldest are needed first.
        if self.stash_bytes + size > self.stash_limit {
            return;
        }
        if let Some(same) = self.stash.insert(arrival.first, arrival) {
            self.stash_bytes -= same.bytes.len();
        }
        self.stash_bytes += size;
    }

    /// Delivers the samples of the stash that are in order.
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

    /// Returns the missing samples, up to the first present one.
    fn hole(&self) -> Option<Range<u64>> {
        let end = self.stash.first_key_value().map_or(self.head, |(&first, _)| first);
        (self.begun && self.expected < end).then_some(self.expected..end)
    }

    fn look_for_hole(&mut self, now: u64, out: &mut Vec<Handed>) {
        match self.hole() {
            None => self.hole_since = None,
            // For a reader without recovery, a later batch proves the loss. The tail may still be under way.
            Some(hole) if !self.reliable && !self.stash.is_empty() && self.is_late(now) => {
                self.lose(hole, LossReason::Dropped, out);
            }
            Some(_) => {
                self.hole_since.get_or_insert(now);
            }
        }
    }

    /// Returns true if a hole of a reader without recovery is no longer under way. Heartbeats overtake the samples of a group.
    fn is_late(&self, now: u64) -> bool {
        !self.comes_by_group(now) || self.hole_since.is_some_and(|since| now >= since + self.group_patience)
    }

    fn lose(&mut self, hole: Range<u64>, why: LossReason, out: &mut Vec<Handed>) {
        out.push(Handed::Lost { from: hole.start, to: Some(hole.end), why });
        self.expected = hole.end;
        self.hole_since = None;
        self.drain(out);
    }

    /// Returns the gap to request from the writer at `now`.
    pub fn hole_to_ask(&mut self, room: bool, now: u64) -> Option<Range<u64>> {
        if !self.reliable || !room || self.asked_until.is_some_and(|until| now < until) {
            return None;
        }
        let hole = self.hole()?;
        let patience = if self.starved { 0 } else { self.patience() };
        if now < self.hole_since? + patience {
            return None;
        }
        self.by_group = self.by_group.filter(|(until, _)| now < *until);
        self.starved = false;
        self.requests.ask(now);
        self.asked_until = Some(now + self.requests.timeout() + ANSWER_PATIENCE);
        Some(hole)
    }

    /// Returns the wait before a request. A later batch proves a gap, while a heartbeat may only have overtaken the
    /// announced batch.
    fn patience(&self) -> u64 {
        match (self.by_group, self.stash.is_empty()) {
            (None, true) => HOLE_PATIENCE,
            (None, false) => HOLE_PATIENCE / 8,
            (Some((_, spread)), is_tail) => {
                let tail = if self.ends { ENDING_PATIENCE } else { self.group_patience };
                spread * GROUP_SPREAD + if is_tail { tail } else { HOLE_PATIENCE }
            }
        }
    }

    /// Returns the time at which [`Inbox::hole_to_ask`] has a gap to request, unless a batch arrives first.
    pub fn next_ask(&self) -> Option<u64> {
        self.reliable.then_some(())?;
        let ready = self.hole_since? + self.patience();
        Some(self.asked_until.map_or(ready, |until| until.max(ready)))
    }

    /// Processes the answer to a refetch of `asked`: the writer has `lowest..next` and has sent its part of the range.
    pub fn answered(&mut self, asked: &Range<u64>, lowest: u64, next: u64, now: u64, out: &mut Vec<Handed>) {
        self.asked_until = None;
        if next <= asked.start && asked.start == self.expected {
            // The writer does not have the batch that caused this request, so it did not write it: a damaged or foreign batch.
            self.forget_from(next);
        }
        self.head = self.head.max(next);
        if let Some(hole) = self.hole().filter(|hole| hole.start < lowest) {
            // Only the requested range is judged. The writer may have dropped more since, and the next answer reports that.
            let end = lowest.min(hole.end).min(asked.end.max(hole.start));
            if end > hole.start {
                self.lose(hole.start..end, LossReason::Evicted, out);
            }
        }
        // More may be missing, so the reader asks again at once.
        self.hole_since = self.hole().map(|_| now.saturating_sub(HOLE_PATIENCE));
    }

    /// Drops all reports about samples from `next` on.
    fn forget_from(&mut self, next: u64) {
        self.stash.retain(|_, arrival| arrival.next <= next);
        self.stash_bytes = self.stash.values().map(|arrival| arrival.bytes.len()).sum();
        self.head = self.expected;
    }

    /// Notes a refetch without an answer: the writer, or the connection to it, is gone for the moment.
    pub fn unanswered(&mut self, now: u64) {
        self.asked_until = Some(now + ASK_AGAIN);
    }

    /// Ends the stream of a dead writer: missing samples are lost. `written` is the number after the last sample it is
    /// known to have written, if a durable source states it.
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

    /// Ends the stream of a writer that left in order after `next` samples.
    pub fn writer_left(&mut self, out: &mut Vec<Handed>) {
        while let Some(hole) = self.hole() {
            self.lose(hole, LossReason::WriterLeft, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use tampu_types::BatchHeader;

    use super::*;
    use crate::wire::batch::{Loaned, put_loaned, put_sample};

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
    fn samples_of_a_group_are_waited_for_longer() {
        let asked_at = |by_group: Option<u64>| {
            let (mut inbox, mut out) = (begun(true), Vec::new());
            if let Some(spread) = by_group {
                inbox.came_by_group(1, 0, spread);
            }
            inbox.arrived(arrival(0, 1), true, 0, &mut out);
            // A heartbeat tells of more.
            inbox.offered(0, 0, 2, 0, &mut out);
            let at = inbox.next_ask().unwrap();
            assert_eq!(inbox.hole_to_ask(true, at - 1), None);
            assert_eq!(inbox.hole_to_ask(true, at), Some(1..2));
            at
        };
        assert_eq!(asked_at(None), HOLE_PATIENCE);
        assert_eq!((asked_at(Some(0)), asked_at(Some(3))), (GROUP_PATIENCE, GROUP_PATIENCE + 3 * GROUP_SPREAD));
        // The end of its process leaves less time.
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.came_by_group(1, 0, 3);
        inbox.arrived(arrival(0, 1), true, 0, &mut out);
        inbox.offered(0, 0, 2, 0, &mut out);
        inbox.ends_soon();
        assert_eq!(inbox.next_ask(), Some(ENDING_PATIENCE + 3 * GROUP_SPREAD));
        // A slow group is waited for longer.
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.arrived(arrival(0, 1), true, 0, &mut out);
        for _ in 0..9 {
            inbox.came_by_group(1, 0, 0);
        }
        inbox.offered(0, 0, 2, 0, &mut out);
        assert_eq!(inbox.next_ask(), Some(GROUP_PATIENCE_MOST));
        // It has become fast again.
        for round in 1..=3 {
            inbox.came_by_group(3, round * GROUP_PATIENCE_KEPT, 0);
            assert_eq!(inbox.next_ask(), Some([2, 1, 1][round as usize - 1] * GROUP_PATIENCE));
        }
        // Without batches of a group, the stream is one as before.
        let (mut inbox, mut out) = (begun(true), Vec::new());
        inbox.came_by_group(1, 0, 0);
        let later = GROUP_MEMORY + 1;
        inbox.offered(0, 0, 2, later, &mut out);
        assert_eq!(inbox.hole_to_ask(true, later + GROUP_PATIENCE), Some(0..2));
        assert_eq!(inbox.next_ask(), Some(later + GROUP_PATIENCE + inbox.requests.timeout() + ANSWER_PATIENCE));
        assert_eq!(inbox.by_group, None);
    }

    #[test]
    fn a_steady_stream_of_a_group_is_not_asked_for_while_it_comes() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        // Heartbeats are always several samples ahead, and each sample takes half the wait.
        let half = GROUP_PATIENCE / 2;
        for at in 0..20 {
            inbox.came_by_group(at + 1, at * half, 0);
            inbox.arrived(arrival(at, at + 1), true, at * half, &mut out);
            inbox.offered(0, 0, at + 4, at * half, &mut out);
            assert_eq!(inbox.hole_to_ask(true, (at + 1) * half - 1), None, "sample {at}");
        }
        // The next one does not come.
        assert_eq!(inbox.hole_to_ask(true, 19 * half + GROUP_PATIENCE), Some(20..23));
    }

    #[test]
    fn reordered_and_repeated_batches_come_out_once_and_in_order() {
        let (mut inbox, mut out) = (begun(true), Vec::new());
        for (first, next) in [(5, 10), (0, 3), (0, 3), (2, 6), (8, 12)] {
            inbox.arrived(arrival(first, next), true, 0, &mut out);
        }
        assert_eq!(told(&mut out), ["0..3", "3..6", "6..10", "10..12"]);
    }

    /// A batch with whole samples of one byte, or with one that lies in the writer's memory.
    fn real(first: u64, count: u32, is_lent: bool) -> Arrival {
        let mut body = BytesMut::new();
        for sample in 0..count {
            match is_lent && sample == 0 {
                true => put_loaned(&mut body, Loaned { position: 0, place: 0, length: 1 }),
                false => put_sample(&mut body, b"x"),
            }
        }
        let mut bytes = Vec::new();
        BatchHeader { first, count, ..crate::wire::batch::tests::header() }.encode(body.len() as u32, &mut bytes);
        bytes.extend_from_slice(&body);
        Arrival { bytes: bytes.into(), ..arrival(first, first + u64::from(count)) }
    }

    #[test]
    fn samples_that_came_before_the_writer_knew_of_the_reader_are_delivered() {
        let begins = |batches: &[Arrival], start: u64| {
            let (mut inbox, mut out) = (Inbox::new(true, History::None, None, 10_000), Vec::new());
            batches.iter().for_each(|batch| inbox.arrived(batch.clone(), true, 0, &mut out));
            assert!(out.is_empty(), "nothing is delivered before the offer");
            inbox.offered(start, 0, start, 0, &mut out);
            assert_eq!(inbox.hole_to_ask(true, 1_000_000_000), None);
            told(&mut out)
        };
        assert_eq!(begins(&[real(0, 2, false), real(2, 1, false)], 3), ["0..2", "2..3"]);
        assert_eq!(begins(&[real(2, 3, false)], 3), ["2..5"]);
        // Beyond a gap they are history, which this reader did not ask for.
        assert_eq!(begins(&[real(0, 2, false), real(3, 2, false)], 5), ["3..5"]);
        assert!(begins(&[real(0, 2, false)], 5).is_empty());
        // The writer may take its memory back while it does not know of the reader.
        assert_eq!(begins(&[real(0, 2, true), real(2, 1, false)], 3), ["2..3"]);
        // A reader that resumes has what lies before its mark.
        let (mut inbox, mut out) = (Inbox::new(true, History::None, Some(2), 10_000), Vec::new());
        [real(0, 2, false), real(2, 1, false)].into_iter().for_each(|batch| inbox.arrived(batch, true, 0, &mut out));
        inbox.offered(3, 0, 3, 0, &mut out);
        assert_eq!(told(&mut out), ["2..3"]);
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
