//! A stream at its writer: the open batch, the cache of sent ones, and the position of each reader.
//!
//! It is the writing half of the reliability layer as a value. It gets the time and the arrivals, and returns messages
//! to send and whether to wait. It neither sends nor waits itself, so every promise can be tested without a network.

use std::{collections::VecDeque, ops::Range};

use bytes::{Bytes, BytesMut};
use tampu_types::{BatchHeader, Time};

use super::{
    budget::Budget,
    long_samples::LongSamples,
    matched::{Matched, ReaderState, ReaderStatus},
    receipt::{self, Receipt},
};
use crate::{
    clock::discipline::{self, Discipline},
    qos::{Grade, History, Hold, Qos},
    shared::{Watch, longest_for},
    wire::{
        batch::{self, FLAG_ANSWER, FLAG_RECEIPT, FLAG_SOON, Loaned},
        refetch::{Refetch, Shelf},
    },
};

mod readers;
mod waiting;

/// Sent batch, kept for readers that do not have it yet.
struct Kept {
    first: u64,
    next: u64,
    bytes: Bytes,
    /// Memory of the batch: the buffer's capacity, not its length, or a cache would exceed its limit several times.
    taken: usize,
    /// End of the batch in the stream of sealed bytes.
    end: u64,
    /// Lowest position in the ring that its loans need.
    loans_from: Option<u64>,
}

/// Bookkeeping of one kept batch, and its least memory, in bytes.
const KEPT_OVERHEAD: usize = 96;

/// Admission of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// The write may proceed.
    Go,
    /// The write waits for readers to reach this sample, at most this long (ns), then checks again.
    Wait { target: u64, longest: u64 },
}

pub(crate) struct Outbox {
    qos: Qos,
    header: BatchHeader,
    clock: discipline::Told,
    header_len: usize,
    limit: usize,
    building: BytesMut,
    /// Buffers of evicted batches for new ones. Their memory is already mapped and cached.
    spare: Vec<BytesMut>,
    building_loans: Option<u64>,
    /// Bytes of the loans in the open batch.
    building_lent: usize,
    /// Lead of the writer at present, in bytes. It follows the proven capacity of the links to the readers, up to the
    /// credit.
    window: usize,
    /// The longest of the latest samples.
    long_samples: LongSamples,
    /// End of the sealed bytes when the window was last halved.
    halved_at: u64,
    /// Wishes of the callers that wait for a sample of the open batch, as flags of its header.
    wishes: u8,
    /// Bytes sealed since the last request for acknowledgements.
    unasked: usize,
    cache: VecDeque<Kept>,
    cache_taken: usize,
    /// Number of all bytes ever sealed.
    position: u64,
    readers: Vec<Matched>,
    /// True until the readers are known that were on the bus before the stream. All samples are kept for them like samples
    /// that a reader has not acknowledged.
    awaits_readers: bool,
    /// First sample that was not sent, because it was sealed while readers were awaited and none was known.
    unsent: Option<u64>,
    /// Samples evicted before all readers had acknowledged them.
    lost: Vec<Range<u64>>,
    budget: Budget,
    /// Time since which the present write waits.
    waiting_since: Option<u64>,
    receipt_from: u64,
    /// Position up to which a reader that stores samples on a disk has acknowledged.
    kept_to: u64,
    /// Samples that left the cache before that.
    lost_unkept: u64,
    /// Latest readers that left.
    departed: VecDeque<ReaderStatus>,
}

/// First and least lead of a writer, in bytes. It applies before the capacity of the links is known, and equals the
/// content of a socket and an engine's queue.
const FIRST_WINDOW: usize = 256 << 10;
const LEAST_WINDOW: usize = 128 << 10;

/// Size of loans in bytes from which a batch is sent at once: reading them takes longer than the message about them.
const LENT_AT_ONCE: usize = 256 << 10;

/// Smallest batch size of a small cache.
const LEAST_BATCH: usize = 4 << 10;

/// Number of buffers kept for new batches.
const SPARE: usize = 4;

/// Number of departed readers that are remembered.
const DEPARTED: usize = 16;

impl Outbox {
    /// Makes an empty stream. `header` is the first batch's, without content.
    pub fn new(qos: Qos, engine_batch: usize, header: BatchHeader, now: u64) -> Outbox {
        let header_len = header.encoded_len();
        let limit = batch_limit(&qos, engine_batch, header_len);
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
            long_samples: LongSamples::default(),
            halved_at: 0,
            wishes: 0,
            unasked: 0,
            cache: VecDeque::new(),
            cache_taken: 0,
            position: 0,
            readers: Vec::new(),
            awaits_readers: false,
            unsent: None,
            lost: Vec::new(),
            budget,
            waiting_since: None,
            receipt_from: 0,
            kept_to: 0,
            lost_unkept: 0,
            departed: VecDeque::new(),
        }
    }

    /// Returns the time that the stream may still wait, for another stream to share.
    pub fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Shares the time to wait for readers with another stream.
    pub fn share_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Returns the quality of service that holds.
    pub fn qos(&self) -> &Qos {
        &self.qos
    }

    /// Returns the bytes that the writer may be ahead of a reader, once the links have proved that they hold so much.
    pub fn credit(&self) -> usize {
        self.long_samples.credit(&self.qos)
    }

    /// Uses another quality of service from here on. Less room holds from the next batch on.
    pub fn retune(&mut self, qos: Qos, engine_batch: usize, now: u64) {
        self.limit = batch_limit(&qos, engine_batch, self.header_len);
        self.budget.retune(qos.max_wait, qos.wait_period, now);
        self.qos = qos;
        self.window = self.window.max(LEAST_WINDOW).min(self.credit());
    }

    /// Returns the number of the next sample.
    pub fn next(&self) -> u64 {
        self.header.next()
    }

    /// Returns the number after the last sealed sample.
    pub fn sealed(&self) -> u64 {
        self.header.first
    }

    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Reports if a sample of this length must wait for the next batch.
    pub fn overflows(&self, length: usize) -> bool {
        !self.is_empty() && self.building.len() + batch::framed_len(length) > self.limit
    }

    /// Reports if the batch has its full length, or has so many loans that readers should begin.
    pub fn is_full(&self) -> bool {
        self.building.len() + 4 >= self.limit || self.building_lent >= LENT_AT_ONCE
    }

    /// Opens a batch if there is none. The first sample's time is the batch's.
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

    /// Notes in the open batch that a caller waits for it.
    pub fn wish(&mut self, grade: Grade) {
        self.wishes |= match grade {
            Grade::Received => FLAG_RECEIPT,
            Grade::Kept => FLAG_SOON,
        };
    }

    /// Writes the quality of the clock into the open batch, if there is one.
    pub fn tell_clock(&mut self, discipline: Discipline) {
        if !self.is_empty() {
            self.clock.stamp(&mut self.header, discipline);
        }
    }

    /// Seals the batch and keeps it; returns the message to send.
    pub fn seal(&mut self, now: Time) -> Option<Bytes> {
        if self.is_empty() {
            return None;
        }
        self.header.sent = now;
        self.unasked += self.building.len() + std::mem::take(&mut self.building_lent);
        self.look();
        // A watched reader need not be asked.
        let ask = self.unasked >= self.window / 2 && !self.readers.iter().all(|reader| reader.watch.is_some());
        self.header.flags = std::mem::take(&mut self.wishes) | if ask { FLAG_ANSWER } else { 0 };
        if ask {
            self.unasked = 0;
        }
        let body_len = self.building.len() - self.header_len;
        let mut header = Vec::with_capacity(self.header_len);
        self.header.encode(body_len as u32, &mut header);
        self.building[..self.header_len].copy_from_slice(&header);

        let length = self.building.len();
        // A short batch is copied to a buffer of its size, and the long buffer is reused.
        let (bytes, taken) = if length * 2 < self.building.capacity() {
            let bytes = Bytes::copy_from_slice(&self.building);
            self.building.clear();
            (bytes, length)
        } else {
            let capacity = self.building.capacity();
            (std::mem::take(&mut self.building).freeze(), capacity)
        };
        self.position += length as u64;
        // A batch in shared memory needs no longer lead, and would be overwritten there.
        let lies_in_ring = length <= longest_for(self.qos.credit) && self.shares_memory();
        self.long_samples.note(if lies_in_ring { 0 } else { length });
        let taken = taken + KEPT_OVERHEAD;
        self.cache_taken += taken;
        let (first, next) = (self.header.first, self.header.next());
        if self.awaits_readers && self.readers.is_empty() {
            self.unsent.get_or_insert(first);
        }
        let loans_from = self.building_loans.take();
        self.cache.push_back(Kept { first, next, bytes: bytes.clone(), taken, end: self.position, loans_from });
        self.header.first = next;
        self.header.count = 0;
        self.evict();
        Some(bytes)
    }

    /// Drops batches beyond the limits: acknowledged ones beyond `keep`, any beyond `cache`.
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
        // Once the engine has released the buffer, it can be reused.
        if self.spare.len() < SPARE
            && let Ok(mut buffer) = std::mem::take(&mut oldest.bytes).try_into_mut()
            && buffer.capacity() >= self.limit
        {
            buffer.clear();
            self.spare.push(buffer);
        }
        self.lost_unkept += oldest.next.saturating_sub(oldest.first.max(self.kept_to));
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
        // Receipts cover only the time since the last one, so older losses need not be remembered.
        let receipt_from = self.receipt_from;
        if self.lost.len() > 64 {
            self.lost.retain(|hole| hole.end > receipt_from);
        }
    }

    /// Returns the first sample that some reliable reader has not acknowledged, or may still claim.
    fn wanted_from(&self) -> u64 {
        if self.awaits_readers {
            return 0;
        }
        self.acked_by_all().unwrap_or(self.sealed())
    }

    /// Returns the position up to which every reliable reader has acknowledged; `None` without reliable readers.
    pub fn acked_by_all(&self) -> Option<u64> {
        self.readers.iter().filter(|reader| reader.card.reliable).map(|reader| reader.acked).min()
    }

    /// Returns the same position for the readers that the writer waits for.
    pub fn acked_by_live(&mut self) -> Option<u64> {
        self.look();
        self.readers.iter().filter(|reader| reader.holds() && reader.heard).map(|reader| reader.acked).min()
    }

    /// Returns the position up to which samples are on a disk: all live collectors have acknowledged it, or a substitute of
    /// them has; `None` without such readers. A substitute counts alone, because it is there exactly while a collector
    /// acknowledges nothing: a writer whose stream is shorter than its window never learns that the collector is stuck.
    pub fn kept_by_live(&mut self) -> Option<u64> {
        self.look();
        let keepers = || self.readers.iter().filter(|reader| reader.holds() && reader.heard && reader.card.hold.keeps());
        let of_collectors = keepers().filter(|reader| reader.card.hold == Hold::Full).map(|reader| reader.acked).min();
        let of_substitutes = keepers().filter(|reader| reader.card.hold == Hold::Interim).map(|reader| reader.acked).max();
        of_collectors.max(of_substitutes)
    }

    /// Returns the furthest position of a reader with a full hold; `None` while none has answered. A reader that has not
    /// answered yet counts as being where it is to begin, which says nothing.
    pub fn reached(&mut self, grade: Grade) -> Option<u64> {
        self.look();
        let position = |reader: &Matched| if grade == Grade::Kept { reader.acked } else { reader.received.max(reader.acked) };
        self.keepers().map(position).max()
    }

    /// Returns the progress of the readers with a full hold, if all of them can be watched.
    pub fn watches_of_keepers(&self) -> Vec<Watch> {
        self.keepers().map(|reader| reader.watch.clone()).collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    fn keepers(&self) -> impl Iterator<Item = &Matched> {
        self.readers.iter().filter(|reader| reader.card.hold == Hold::Full && reader.heard)
    }

    /// Returns the number of samples that left the cache before a reader had put them on a disk.
    pub fn lost_unkept(&self) -> u64 {
        self.lost_unkept
    }

    /// Reports if a reliable reader has not acknowledged all sealed samples, or has not answered yet.
    pub fn has_unacked(&mut self) -> bool {
        self.look();
        self.readers.iter().any(|reader| reader.card.reliable && (reader.acked < self.sealed() || !reader.heard))
    }

    /// Reports if a reader is due to answer: for sealed samples, or for the first time.
    pub fn wants_word(&mut self) -> bool {
        self.has_unacked() || self.has_unheard()
    }

    /// Reports if a reader has not answered yet: it may not know of the stream.
    pub fn has_unheard(&self) -> bool {
        self.readers.iter().any(|reader| !reader.heard)
    }

    /// Returns the oldest kept sample.
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

    /// Returns the batches with the requested samples, as far as they are kept and within the limit.
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

    /// Narrows the window after a link dropped a recent batch: the writer was further ahead than the links to its
    /// readers hold. It happens once for all batches under way.
    fn narrow(&mut self, missing: u64) {
        let position = self.position_of(missing);
        let recent = position + self.credit() as u64 >= self.position;
        if recent && position >= self.halved_at {
            self.window = (self.window / 2).max(LEAST_WINDOW).min(self.credit());
            self.halved_at = self.position;
        }
    }

    /// Returns the batches to send that were sealed before the first reader was known, once it is. The reader would request
    /// them, but until then the writer may have died. Beyond the credit, and behind a loan, they are left to its request.
    pub fn take_unsent(&mut self) -> Vec<Bytes> {
        if self.unsent.is_none() || self.readers.is_empty() {
            return Vec::new();
        }
        let from = self.unsent.take().unwrap_or_default();
        let index = self.cache.partition_point(|kept| kept.first < from);
        let mut room = self.credit();
        let fits = |kept: &&Kept| {
            let fits = kept.loans_from.is_none() && kept.bytes.len() <= room;
            room = room.saturating_sub(kept.bytes.len());
            fits
        };
        self.cache.range(index..).take_while(fits).map(|kept| kept.bytes.clone()).collect()
    }

    /// Returns the outcome of all samples sealed since the last receipt.
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

    /// Returns the number of all bytes ever sealed.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn cache_taken(&self) -> usize {
        self.cache_taken
    }
}

/// Returns the size at which a batch is sealed.
fn batch_limit(qos: &Qos, engine_batch: usize, header_len: usize) -> usize {
    // While one batch is under way, the next can be cached. Without a cache no such limit applies.
    let kept = if qos.cache == 0 { usize::MAX } else { (qos.cache / 2).max(LEAST_BATCH) };
    qos.batch.min(engine_batch).min(kept).max(header_len + 64)
}

/// Returns the first sample for a reader that asks for this history.
pub(crate) fn history_start(history: History, start: u64, lowest: u64) -> u64 {
    match history {
        History::None => start,
        History::Last(count) => start.saturating_sub(count).max(lowest).min(start),
        History::All => lowest.min(start),
    }
}
