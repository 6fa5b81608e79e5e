//! A stream at its writer: the batch being filled, the cache of sent ones, and how far each reader is.
//!
//! This is the reliability layer's writing half as a value: it is told the time and what arrived, and says what to send and
//! whether to wait; it neither sends nor waits itself. So every promise can be tested without a network.

use std::{collections::VecDeque, ops::Range};

use bytes::{Bytes, BytesMut};
use tampu_types::{BatchHeader, Incarnation, Time};

use super::{
    budget::Budget,
    matched::{Matched, ReaderState, ReaderStatus},
    receipt::{self, Receipt},
};
use crate::{
    clock::discipline::{self, Discipline},
    qos::{History, Hold, Qos},
    shared::Watch,
    wire::{
        batch::{self, FLAG_ANSWER, Loaned},
        control::Mark,
        keys::ReaderCard,
        refetch::{Refetch, Shelf},
    },
};

/// A sent batch, kept for those who have not got it.
struct Kept {
    first: u64,
    next: u64,
    bytes: Bytes,
    /// Memory it takes: the buffer's capacity, not its length, or a cache would outgrow its bound several times.
    taken: usize,
    /// Where it ends in the stream of sealed bytes.
    end: u64,
    /// The lowest place in the ring that its loans need.
    loans_from: Option<u64>,
}

/// Bookkeeping of one kept batch, and the least it can take.
const KEPT_OVERHEAD: usize = 96;

/// Whether a writer may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may.
    Go,
    /// It waits for readers to come to this sample, at most this long (ns), then looks again.
    Wait { target: u64, longest: u64 },
}

pub(crate) struct Outbox {
    qos: Qos,
    header: BatchHeader,
    clock: discipline::Told,
    header_len: usize,
    limit: usize,
    building: BytesMut,
    /// Buffers of evicted batches, to be filled again: memory that is mapped and warm already.
    spare: Vec<BytesMut>,
    building_loans: Option<u64>,
    /// Bytes of the loans in the batch being filled.
    building_lent: usize,
    /// How far the writer runs ahead at present: as far as the way to the readers has proved to hold, at most the credit.
    window: usize,
    /// When the window was last halved: where the sealed bytes then ended.
    halved_at: u64,
    /// Bytes sealed since readers were last asked to acknowledge.
    unasked: usize,
    cache: VecDeque<Kept>,
    cache_taken: usize,
    /// All bytes ever sealed.
    position: u64,
    readers: Vec<Matched>,
    /// Samples evicted before everybody had acknowledged them.
    lost: Vec<Range<u64>>,
    budget: Budget,
    /// Since when the present write waits.
    waiting_since: Option<u64>,
    receipt_from: u64,
    /// Up to where somebody has acknowledged whose acknowledgement means that it is on a disk.
    kept_to: u64,
    /// The last readers that left, for whoever asks.
    departed: VecDeque<ReaderStatus>,
}

/// How far a writer runs ahead before it knows what the way to its readers holds, and the least it comes down to: what a
/// socket and an engine's queue hold, bytes.
const FIRST_WINDOW: usize = 256 << 10;
const LEAST_WINDOW: usize = 128 << 10;

/// Loans of this many bytes do not wait for company: reading them takes longer than word of them.
const LENT_AT_ONCE: usize = 256 << 10;

/// A small cache makes batches no smaller than this.
const LEAST_BATCH: usize = 4 << 10;

/// How many buffers are kept to be filled again.
const SPARE: usize = 4;

/// How many departed readers are remembered.
const DEPARTED: usize = 16;

impl Outbox {
    /// An empty stream. `header` is the first batch's, with nothing in it.
    pub fn new(qos: Qos, engine_batch: usize, header: BatchHeader, now: u64) -> Outbox {
        let header_len = header.encoded_len();
        // While one batch is on its way, the next can be kept; where nothing is to be kept, that is no matter.
        let kept = if qos.cache == 0 { usize::MAX } else { (qos.cache / 2).max(LEAST_BATCH) };
        let limit = qos.batch.min(engine_batch).min(kept).max(header_len + 64);
        let window = FIRST_WINDOW.min(qos.credit);
        let budget = Budget::new(qos.max_wait, qos.wait_period, now);
        Outbox {
            qos,
            header,
            clock: discipline::Told::default(),
            header_len,
            limit,
            building: BytesMut::new(),
            spare: Vec::new(),
            building_loans: None,
            building_lent: 0,
            window,
            halved_at: 0,
            unasked: 0,
            cache: VecDeque::new(),
            cache_taken: 0,
            position: 0,
            readers: Vec::new(),
            lost: Vec::new(),
            budget,
            waiting_since: None,
            receipt_from: 0,
            kept_to: 0,
            departed: VecDeque::new(),
        }
    }

    /// The number the next sample gets.
    pub fn next(&self) -> u64 {
        self.header.next()
    }

    /// The number after the last sealed sample.
    pub fn sealed(&self) -> u64 {
        self.header.first
    }

    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Whether a sample of this length must wait for the next batch.
    pub fn overflows(&self, length: usize) -> bool {
        !self.is_empty() && self.building.len() + batch::framed_len(length) > self.limit
    }

    /// Whether the batch is as long as it may be, or speaks of so much memory that readers had better begin.
    pub fn is_full(&self) -> bool {
        self.building.len() + 4 >= self.limit || self.building_lent >= LENT_AT_ONCE
    }

    /// Begins the batch if there is none; the first sample's time is the batch's.
    pub fn begin(&mut self, now: Time) {
        if self.is_empty() {
            self.header.acquired = now;
            if self.building.capacity() < self.limit {
                self.building = self.spare.pop().unwrap_or_else(|| BytesMut::with_capacity(self.limit));
            }
            self.building.resize(self.header_len, 0);
        }
    }

    /// Appends a sample; returns its number.
    pub fn append(&mut self, sample: &[u8]) -> u64 {
        batch::put_sample(&mut self.building, sample);
        self.header.count += 1;
        self.next() - 1
    }

    /// Appends a loan's descriptor; returns its number.
    pub fn append_loan(&mut self, loaned: Loaned) -> u64 {
        batch::put_loaned(&mut self.building, loaned);
        self.building_lent += loaned.length as usize;
        self.building_loans = Some(self.building_loans.map_or(loaned.position, |lowest| lowest.min(loaned.position)));
        self.header.count += 1;
        self.next() - 1
    }

    /// Has the batch, if there is one, say how far its times can be trusted.
    pub fn tell_clock(&mut self, discipline: Discipline) {
        if !self.is_empty() {
            self.clock.stamp(&mut self.header, discipline);
        }
    }

    /// Closes the batch and keeps it; returns what to send.
    pub fn seal(&mut self, now: Time) -> Option<Bytes> {
        if self.is_empty() {
            return None;
        }
        self.header.sent = now;
        self.unasked += self.building.len() + std::mem::take(&mut self.building_lent);
        self.look();
        // Who is watched need not be asked.
        let ask = self.unasked >= self.window / 2 && !self.readers.iter().all(|reader| reader.watch.is_some());
        self.header.flags = if ask { FLAG_ANSWER } else { 0 };
        if ask {
            self.unasked = 0;
        }
        let body_len = self.building.len() - self.header_len;
        let mut header = Vec::with_capacity(self.header_len);
        self.header.encode(body_len as u32, &mut header);
        self.building[..self.header_len].copy_from_slice(&header);

        let length = self.building.len();
        // A short batch is copied to a buffer of its size, and the long buffer used again.
        let (bytes, taken) = if length * 2 < self.building.capacity() {
            let bytes = Bytes::copy_from_slice(&self.building);
            self.building.clear();
            (bytes, length)
        } else {
            let capacity = self.building.capacity();
            (std::mem::take(&mut self.building).freeze(), capacity)
        };
        self.position += length as u64;
        let taken = taken + KEPT_OVERHEAD;
        self.cache_taken += taken;
        let (first, next) = (self.header.first, self.header.next());
        let loans_from = self.building_loans.take();
        self.cache.push_back(Kept { first, next, bytes: bytes.clone(), taken, end: self.position, loans_from });
        self.header.first = next;
        self.header.count = 0;
        self.evict();
        Some(bytes)
    }

    /// Drops what is beyond the bounds: acknowledged batches beyond `keep`, any beyond `cache`.
    fn evict(&mut self) {
        let wanted_from = self.wanted_from();
        while let Some(oldest) = self.cache.front() {
            let wanted = oldest.next > wanted_from;
            let bound = if wanted { self.qos.cache } else { self.qos.keep.min(self.qos.cache) };
            if self.cache_taken <= bound {
                break;
            }
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some(mut oldest) = self.cache.pop_front() else { return };
        self.cache_taken -= oldest.taken;
        // Once the engine has let go of it, the buffer is ours again.
        if self.spare.len() < SPARE
            && let Ok(mut buffer) = std::mem::take(&mut oldest.bytes).try_into_mut()
            && buffer.capacity() >= self.limit
        {
            buffer.clear();
            self.spare.push(buffer);
        }
        let mut missed_from = oldest.next;
        for reader in self.readers.iter_mut().filter(|reader| reader.card.reliable && reader.acked < oldest.next) {
            let from = reader.acked.max(oldest.first);
            reader.lost += oldest.next - from;
            missed_from = missed_from.min(from);
            if reader.state == ReaderState::Live {
                reader.state = ReaderState::Lagging;
            }
        }
        receipt::push(&mut self.lost, missed_from..oldest.next);
        // Receipts look back only to the last one; what is older need not be remembered.
        let receipt_from = self.receipt_from;
        if self.lost.len() > 64 {
            self.lost.retain(|hole| hole.end > receipt_from);
        }
    }

    /// The first sample some reliable reader has not acknowledged.
    fn wanted_from(&self) -> u64 {
        self.acked_by_all().unwrap_or(self.sealed())
    }

    /// Up to where every reliable reader has acknowledged; `None` where there is none.
    pub fn acked_by_all(&self) -> Option<u64> {
        self.readers.iter().filter(|reader| reader.card.reliable).map(|reader| reader.acked).min()
    }

    /// The same for those the writer waits for.
    pub fn acked_by_live(&mut self) -> Option<u64> {
        self.look();
        self.readers.iter().filter(|reader| reader.holds() && reader.heard).map(|reader| reader.acked).min()
    }

    /// Up to where everybody has acknowledged who is live and keeps what it acknowledges; `None` where there is nobody.
    pub fn kept_by_live(&mut self) -> Option<u64> {
        self.look();
        let keepers = self.readers.iter().filter(|reader| reader.holds() && reader.heard && reader.card.hold.keeps());
        keepers.map(|reader| reader.acked).min()
    }

    /// Whether some reliable reader has not acknowledged everything that was sealed, or has not answered yet.
    pub fn has_unacked(&mut self) -> bool {
        self.look();
        self.readers.iter().any(|reader| reader.card.reliable && (reader.acked < self.sealed() || !reader.heard))
    }

    /// Whether somebody is to speak: for what was sealed, or for the first time.
    pub fn wants_word(&mut self) -> bool {
        self.has_unacked() || self.has_unheard()
    }

    /// Whether a reader has not spoken yet: it may not know of the stream.
    pub fn has_unheard(&self) -> bool {
        self.readers.iter().any(|reader| !reader.heard)
    }

    /// The oldest sample kept.
    pub fn lowest(&self) -> u64 {
        self.cache.front().map_or(self.sealed(), |oldest| oldest.first)
    }

    fn position_of(&self, sequence: u64) -> u64 {
        let index = self.cache.partition_point(|kept| kept.next <= sequence);
        match self.cache.get(index) {
            Some(kept) => kept.end - kept.bytes.len() as u64,
            None => self.position,
        }
    }

    // --- readers ---

    /// A reader that wants this stream has come.
    pub fn match_reader(&mut self, card: ReaderCard) {
        self.unmatch(|reader| reader.is(card.incarnation, card.reader));
        // Who stands in for a keeper begins where the last one stopped.
        let start = if card.hold == Hold::Interim { self.kept_to } else { self.sealed() };
        let acked_position = self.position_of(start);
        let is_behind = self.position - acked_position > self.qos.credit as u64 / 2;
        self.readers.push(Matched {
            card,
            start,
            acked: start,
            acked_position,
            heard: false,
            state: if is_behind { ReaderState::CatchingUp } else { ReaderState::Live },
            lost: 0,
            needs_copies: false,
            linked: false,
            watch: None,
            attached: false,
        });
    }

    /// A reader can no longer be reached, but may come back: it is not waited for, and what it misses is kept.
    pub fn doubt_reader(&mut self, incarnation: Incarnation, reader: u32) {
        for matched in self.readers.iter_mut().filter(|matched| matched.is(incarnation, reader)) {
            matched.state = ReaderState::Lagging;
        }
    }

    /// Whether somebody reads through the node, and whether somebody reads through a direct link.
    pub fn ways(&self) -> (bool, bool) {
        let linked = self.readers.iter().filter(|reader| reader.linked).count();
        (linked < self.readers.len(), linked > 0)
    }

    /// Tells everybody who takes batches from the board that there is one; says whether that is everybody.
    pub fn tell_attached(&self) -> bool {
        let mut everybody = true;
        for reader in &self.readers {
            match &reader.watch {
                Some(watch) if reader.attached => watch.tell(),
                _ => everybody = false,
            }
        }
        everybody
    }

    /// A reader has left.
    pub fn unmatch_reader(&mut self, incarnation: Incarnation, reader: u32) -> bool {
        self.unmatch(|matched| matched.is(incarnation, reader))
    }

    fn unmatch(&mut self, gone: impl Fn(&Matched) -> bool) -> bool {
        let (left, stayed) = std::mem::take(&mut self.readers).into_iter().partition::<Vec<_>, _>(gone);
        self.readers = stayed;
        for reader in &left {
            if self.departed.len() == DEPARTED {
                self.departed.pop_front();
            }
            self.departed.push_back(ReaderStatus { state: ReaderState::Gone, ..reader.status() });
        }
        !left.is_empty()
    }

    /// A reader has said how far it is. Returns whether the writer may have been waiting for that.
    pub fn acknowledge(&mut self, incarnation: Incarnation, mark: &Mark) -> bool {
        if mark.leaving {
            return self.unmatch_reader(incarnation, mark.reader);
        }
        let next = mark.next.min(self.sealed());
        let Some(index) = self.readers.iter().position(|matched| matched.is(incarnation, mark.reader)) else { return false };
        let matched = &mut self.readers[index];
        matched.needs_copies |= mark.needs_copies;
        matched.linked |= mark.linked;
        matched.attached |= mark.attached;
        let first_word = !matched.heard;
        matched.heard = true;
        // Only the first mark may lie before the start: a reader that fetches history, or resumes where it stopped.
        if first_word && next < matched.start {
            matched.state = ReaderState::CatchingUp;
        } else if next <= matched.acked {
            return first_word;
        }
        self.advance(index, next);
        self.evict();
        true
    }

    /// A reader is further.
    fn advance(&mut self, index: usize, next: u64) {
        let position = self.position_of(next);
        let caught_up_at = self.position.saturating_sub(self.qos.credit as u64 / 2);
        // What arrives undisturbed shows that the way holds more: a sixteenth of it is added.
        let readers = self.readers.len() as u64;
        let matched = &mut self.readers[index];
        let gained = position.saturating_sub(matched.acked_position) / 16 / readers;
        if matched.holds() {
            self.window = (self.window + gained as usize).min(self.qos.credit);
        }
        matched.acked = next;
        matched.acked_position = position;
        if matched.card.hold.keeps() {
            self.kept_to = self.kept_to.max(next);
        }
        if matched.state != ReaderState::Live && position >= caught_up_at {
            matched.state = ReaderState::Live;
        }
    }

    /// Looks how far the readers are whose progress can be seen.
    pub fn look(&mut self) {
        for index in 0..self.readers.len() {
            let reader = &mut self.readers[index];
            let Some(watch) = &reader.watch else { continue };
            match watch.next() {
                Some(next) if next > reader.acked => self.advance(index, next.min(self.sealed())),
                Some(_) => {}
                None => reader.watch = None,
            }
        }
    }

    /// Whether this reader names a place to look that is not looked at yet.
    pub fn could_watch(&self, incarnation: Incarnation, mark: &Mark) -> bool {
        mark.slot != 0 && self.readers.iter().any(|reader| reader.is(incarnation, mark.reader) && reader.watch.is_none())
    }

    /// This reader's progress can be seen from now on.
    pub fn watch(&mut self, incarnation: Incarnation, reader: u32, watch: Watch) {
        for matched in self.readers.iter_mut().filter(|matched| matched.is(incarnation, reader)) {
            matched.watch = Some(watch.clone());
        }
    }

    /// Whom to wait for until it has come to `target`, if everybody who has not can be watched: the one furthest behind.
    pub fn furthest_behind(&self, target: u64) -> Option<Watch> {
        let behind = || {
            self.readers
                .iter()
                .filter(|reader| reader.card.reliable && reader.state == ReaderState::Live && reader.acked < target)
        };
        if behind().any(|reader| reader.watch.is_none()) {
            return None;
        }
        behind().min_by_key(|reader| reader.acked)?.watch.clone()
    }

    /// Every reader as it stands, and the last that left.
    pub fn statuses(&mut self) -> Vec<ReaderStatus> {
        self.look();
        self.readers.iter().map(Matched::status).chain(self.departed.iter().cloned()).collect()
    }

    /// The participants that read this stream, with what to offer each of their readers.
    pub fn offers(&self) -> impl Iterator<Item = (Incarnation, u32, u64, bool)> + '_ {
        self.readers.iter().map(|reader| (reader.card.incarnation, reader.card.reader, reader.start, reader.watch.is_some()))
    }

    pub fn matched(&self) -> usize {
        self.readers.len()
    }

    /// Whether loans can go as descriptors: every reader can map this host's memory.
    pub fn shares_memory(&self) -> bool {
        let own = self.header.incarnation;
        self.readers.iter().all(|reader| reader.heard && !reader.needs_copies && own.shares_host_with(reader.card.incarnation))
    }

    // --- waiting ---

    /// Up to where the next batch may push samples out of the cache: where that is hardly larger than the credit, who still
    /// needs them is waited for.
    fn pushed_out(&self) -> u64 {
        let mut beyond = (self.cache_taken + self.limit + KEPT_OVERHEAD).saturating_sub(self.qos.cache);
        let mut pushed_out = 0;
        for kept in &self.cache {
            if beyond == 0 {
                break;
            }
            beyond = beyond.saturating_sub(kept.taken);
            pushed_out = kept.next;
        }
        pushed_out
    }

    /// Whether a write of `more` bytes may go on now.
    pub fn admit(&mut self, now: u64) -> Admission {
        let credit = self.window as u64;
        let position = self.position;
        let pushed_out = self.pushed_out();
        let behind =
            |reader: &Matched| reader.holds() && (position - reader.acked_position > credit || reader.acked < pushed_out);
        if self.readers.iter().any(behind) {
            self.look();
        }
        if !self.readers.iter().any(behind) {
            self.end_wait(now);
            return Admission::Go;
        }
        // Not for the first byte of room, or it would wait again at once.
        let target = self.cache.partition_point(|kept| kept.end + credit * 3 / 4 <= position);
        let target = self.cache.get(target).map_or(self.sealed(), |kept| kept.next);
        self.wait_for(now, target, behind)
    }

    /// The same for room in the loan ring up to `needed` (a position): readers that still need older loans are waited for.
    pub fn admit_loan(&mut self, now: u64, pins: impl Fn(u64) -> bool) -> Admission {
        self.look();
        let cache = &self.cache;
        let building = self.building_loans;
        let needs = |reader: &Matched| {
            let index = cache.partition_point(|kept| kept.next <= reader.acked);
            let oldest = cache.range(index..).find_map(|kept| kept.loans_from).or(building);
            reader.holds() && oldest.is_some_and(&pins)
        };
        let waiting: Vec<bool> = self.readers.iter().map(needs).collect();
        if !waiting.contains(&true) {
            self.end_wait(now);
            return Admission::Go;
        }
        let who: Vec<(Incarnation, u32)> = self
            .readers
            .iter()
            .zip(&waiting)
            .filter(|(_, waiting)| **waiting)
            .map(|(reader, _)| (reader.card.incarnation, reader.card.reader))
            .collect();
        let done = self.cache.iter().find(|kept| kept.loans_from.is_some_and(|from| !pins(from)));
        let target = done.map_or(self.sealed(), |kept| kept.first);
        self.wait_for(now, target, |reader| who.iter().any(|&(incarnation, id)| reader.is(incarnation, id)))
    }

    fn wait_for(&mut self, now: u64, target: u64, behind: impl Fn(&Matched) -> bool) -> Admission {
        let max_wait = self.qos.max_wait.as_nanos() as u64;
        let since = *self.waiting_since.get_or_insert(now);
        let waited = now.saturating_sub(since);
        let full_left = max_wait.saturating_sub(waited);
        let bounded_left = self.budget.left(since).saturating_sub(waited).min(full_left);
        let mut longest = 0;
        for reader in self.readers.iter_mut().filter(|reader| behind(reader)) {
            let left = if reader.card.hold.keeps() { full_left } else { bounded_left };
            if left == 0 {
                reader.state = ReaderState::Lagging;
            }
            longest = longest.max(left);
        }
        if longest == 0 {
            self.end_wait(now);
            return Admission::Go;
        }
        Admission::Wait { target, longest }
    }

    fn end_wait(&mut self, now: u64) {
        if let Some(since) = self.waiting_since.take() {
            self.budget.left(since);
            self.budget.spend(now.saturating_sub(since));
        }
    }

    // --- loans ---

    /// Forgets batches whose loans lie before `valid_from`: their memory is used again.
    pub fn forget_loans_before(&mut self, valid_from: u64) {
        // Loans are lent in order, so the first batch whose loans are still there ends the search.
        let mut forgotten = 0;
        for (index, kept) in self.cache.iter().enumerate() {
            match kept.loans_from {
                Some(from) if from < valid_from => forgotten = index + 1,
                Some(_) => break,
                None => {}
            }
        }
        for _ in 0..forgotten {
            self.drop_oldest();
        }
    }

    /// Before which position nobody the writer waits for needs a loan any more.
    pub fn loans_needed_from(&mut self) -> Option<u64> {
        self.look();
        let acked = self.readers.iter().filter(|reader| reader.holds()).map(|reader| reader.acked).min().unwrap_or(self.sealed());
        let index = self.cache.partition_point(|kept| kept.next <= acked);
        self.cache.range(index..).find_map(|kept| kept.loans_from).or(self.building_loans)
    }

    // --- serving ---

    /// The batches that hold what is asked for, as far as they are here and within the limit.
    pub fn refetch(&mut self, asked: &Refetch) -> (Vec<Bytes>, Shelf) {
        self.narrow(asked.from);
        let index = self.cache.partition_point(|kept| kept.next <= asked.from);
        let mut size = 0;
        let mut parts = Vec::new();
        for kept in self.cache.range(index..).take_while(|kept| kept.first < asked.to) {
            size += kept.bytes.len();
            if !parts.is_empty() && size > asked.limit as usize {
                break;
            }
            parts.push(kept.bytes.clone());
        }
        (parts, Shelf { stream: self.header.stream, lowest: self.lowest(), next: self.sealed() })
    }

    /// A link dropped what was sent just now: the writer was further ahead than the way to its readers holds. Once for all that
    /// was under way.
    fn narrow(&mut self, missing: u64) {
        let position = self.position_of(missing);
        let recent = position + self.qos.credit as u64 >= self.position;
        if recent && position >= self.halved_at {
            self.window = (self.window / 2).max(LEAST_WINDOW).min(self.qos.credit);
            self.halved_at = self.position;
        }
    }

    /// What became of everything sealed since the last receipt.
    pub fn receipt(&mut self) -> Receipt {
        self.look();
        let range = self.receipt_from..self.sealed();
        let receipt = Receipt::sort(range, &self.lost, self.acked_by_all(), self.lowest());
        self.receipt_from = self.sealed();
        receipt
    }

    pub fn lost_total(&self) -> u64 {
        self.readers.iter().map(|reader| reader.lost).sum()
    }

    pub fn cache_taken(&self) -> usize {
        self.cache_taken
    }
}

/// Where a reader that asks for this history begins.
pub(crate) fn history_start(history: History, start: u64, lowest: u64) -> u64 {
    match history {
        History::None => start,
        History::Last(count) => start.saturating_sub(count).max(lowest).min(start),
        History::All => lowest.min(start),
    }
}
