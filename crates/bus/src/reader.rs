//! Reading topics: every stream in order, with gaps repaired or reported, at the application's pace.
//!
//! ```text
//! Core, on the engine's and the heartbeat worker        Reader, on the application's
//!   arrivals  batches arrive          ->  inbox: in order  ->  queue  ->  next()
//!   offers    existing streams                                            |
//!   healing   requests for gaps                                           v
//!   owed      acknowledgements       <-  stream_state: this stream's position  <-  done()
//!   announcements  shared memory; waiting     lives    writers that are alive, hung or gone
//! ```

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tampu_shm::LOAN_ALIGNMENT;
use tampu_types::{BatchHeader, Incarnation, SourceName};

use self::{
    event::Place,
    inbox::{Arrival, Inbox},
    stream_state::StreamState,
};
pub use self::{
    event::{BatchEvent, Event, Gap, LentBytes, Payload, Sample, SourceChange, SourceState, WholeBatch},
    loss::LossReason,
    stream_state::StreamInfo,
};
use crate::{
    clock::Gate,
    engine::Guard,
    links::{Links, lock},
    qos::{Ack, ReaderQos},
    shared::ProgressPage,
    wire::{
        batch::{FLAG_ANSWER, FLAG_RECEIPT, FLAG_SOON, Piece, sample_at},
        keys::ReaderInfo,
    },
};

mod announcements;
mod arrivals;
mod event;
mod healing;
mod inbox;
mod lives;
mod loss;
mod offers;
mod owed;
mod requests;
mod stream_state;

/// Silence in ns that counts as a hang: longer than three heartbeats of an idle writer, shorter than the limit of two
/// seconds.
const SILENCE: u64 = 1_750_000_000;
/// Time that an acknowledgement may wait for others, in ns.
const ACK_PATIENCE: u64 = 10_000_000;
/// Time in ns for which a dead writer's samples may still be under way, because presence overtakes them.
const LAST_WORDS: u64 = 50_000_000;
/// The same for samples that a multicast group may still bring from another host.
const LAST_WORDS_BY_GROUP: u64 = 1_000_000_000;

/// Counters of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderStats {
    /// Batches that arrived, including repeated ones.
    pub batches: u64,
    /// Number of refetches.
    pub refetches: u64,
    /// Messages that were not batches of this domain.
    pub refused: u64,
    /// Messages that named a process of another host than the one that sent them, or another name of a process.
    pub forged: u64,
    /// Samples reported as lost, as far as their number is known.
    pub lost: u64,
    /// Bytes of batches that wait for the application.
    pub queued: usize,
}

/// Origin of a message, as far as it is proved.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    /// A message under the key of a host.
    Host(&'a str),
    /// A message under the key of a host, which a multicast group has brought.
    Group(&'a str),
    /// An answer, a direct link or shared memory of this participant.
    Participant(Incarnation),
}

enum Item {
    Batch { stream_state: Arc<StreamState>, arrival: Arrival, skip: u64 },
    Lost(Gap),
    Source(SourceChange),
}

/// Process of a writer, as this reader knows it.
struct Heard {
    source: SourceName,
    /// Host chunk in the keys of its messages.
    host: Arc<str>,
    last: u64,
    silent: bool,
    /// True if it said that it is absent: samples that are still under way do not end its silence.
    says_absent: bool,
    /// Time since which its presence is gone.
    absent_since: Option<u64>,
    /// Its reported end, and the longest wait for samples that a multicast group may still bring.
    ending: Option<(SourceState, u64)>,
}

#[derive(Default)]
struct Received {
    inboxes: HashMap<(Incarnation, u32), Inbox>,
    stream_states: HashMap<(Incarnation, u32), Arc<StreamState>>,
    sources: HashMap<Incarnation, Heard>,
    queue: VecDeque<Item>,
    /// Writers that offer direct links, and whether this reader has tried each.
    direct: HashMap<Incarnation, (String, bool)>,
    /// Latest ended incarnations. A late batch of one of them begins no stream.
    ended: VecDeque<Incarnation>,
}

/// Ended incarnations that are remembered.
const ENDED: usize = 64;

/// The receiving side of a reader.
pub(crate) struct Core {
    pub id: u32,
    pub card: ReaderInfo,
    qos: ReaderQos,
    links: Arc<Links>,
    received: Mutex<Received>,
    gate: Gate,
    /// Bytes waiting for the application.
    queued: AtomicUsize,
    starved: AtomicBool,
    alarmed: AtomicBool,
    ack_at: AtomicU64,
    /// Time of the next look at the lives of writers; 0 after news about one.
    look_at_lives: AtomicU64,
    batches: AtomicU64,
    refetches: AtomicU64,
    refused: AtomicU64,
    forged: AtomicU64,
    lost: AtomicU64,
    /// Declarations that are dropped with the reader.
    guards: Mutex<Vec<Guard>>,
    /// Progress page, made with the first stream.
    page: OnceLock<Option<Arc<ProgressPage>>>,
    /// Streams whose announcements are read, by their slot in the page.
    attached: Mutex<HashMap<u32, Weak<StreamState>>>,
    /// True once it gets what a multicast group brings to this host.
    grouped: AtomicBool,
    /// Weak reference to itself, for callbacks that outlive a call.
    this: OnceLock<Weak<Core>>,
}

/// Next item of [`Reader::advance`].
enum Arrived {
    Sample,
    Lost(Gap),
    Source(SourceChange),
}

/// Batch that the application reads at present.
struct Current {
    stream_state: Arc<StreamState>,
    arrival: Arrival,
    header: BatchHeader,
    /// Byte of the batch at which the body begins.
    body: usize,
    /// Byte of the body at which the next sample begins.
    at: usize,
    /// Sequence number of the next sample.
    sequence: u64,
    /// Bytes of the loans read so far. They count for acknowledgements, because they limit the writer's pool.
    lent: usize,
}

/// Reader of the streams of a pattern. Dropping it notifies the writers.
pub struct Reader {
    core: Arc<Core>,
    taken: VecDeque<Item>,
    current: Option<Current>,
}

impl Reader {
    pub(crate) fn new(core: Arc<Core>) -> Reader {
        Reader { core, taken: VecDeque::new(), current: None }
    }

    /// Returns the next event; `None` if there is none within the timeout. The call means that the application has
    /// finished the event before (with [`Ack::OnTake`], it acknowledges it).
    pub fn next(&mut self, timeout: Duration) -> Option<Event<'_>> {
        match self.advance(timeout)? {
            // Separate from `advance` because the sample borrows the batch.
            Arrived::Sample => self.sample(),
            Arrived::Lost(gap) => Some(Event::Gap(gap)),
            Arrived::Source(change) => Some(Event::Source(change)),
        }
    }

    /// Returns the next event as [`Reader::next`] does, but a whole batch at once where its samples were received as the
    /// writer sent them. It is for programs that pass batches on, or handle their samples together.
    pub fn next_batch(&mut self, timeout: Duration) -> Option<BatchEvent<'_>> {
        match self.advance(timeout)? {
            Arrived::Sample if self.is_at_whole_batch() => self.whole_batch().map(BatchEvent::Batch),
            Arrived::Sample => match self.sample()? {
                Event::Sample(sample) => Some(BatchEvent::Sample(sample)),
                Event::Gap(gap) => Some(BatchEvent::Gap(gap)),
                Event::Source(change) => Some(BatchEvent::Source(change)),
            },
            Arrived::Lost(gap) => Some(BatchEvent::Gap(gap)),
            Arrived::Source(change) => Some(BatchEvent::Source(change)),
        }
    }

    /// Goes to the next sample, or returns another event.
    fn advance(&mut self, timeout: Duration) -> Option<Arrived> {
        let mut until = None;
        loop {
            if self.step() {
                return Some(Arrived::Sample);
            }
            match self.taken.pop_front() {
                Some(Item::Batch { stream_state, arrival, skip }) => self.enter(stream_state, arrival, skip),
                Some(Item::Lost(gap)) => {
                    self.pass(&gap);
                    return Some(Arrived::Lost(gap));
                }
                Some(Item::Source(change)) => return Some(Arrived::Source(change)),
                None => {
                    let seen = self.core.gate.openings();
                    self.core.look();
                    self.core.take(&mut self.taken);
                    if !self.taken.is_empty() {
                        continue;
                    }
                    let clock = &self.core.links.clock;
                    let now = clock.monotonic();
                    let until = *until.get_or_insert(now.saturating_add(timeout.as_nanos() as u64));
                    if now >= until || self.core.alarmed.swap(false, Ordering::AcqRel) {
                        return None;
                    }
                    self.core.wait(seen, until);
                }
            }
        }
    }

    /// Returns true if no sample of the current batch has been read, and all are readable and none is a loan.
    fn is_at_whole_batch(&self) -> bool {
        let Some(current) = &self.current else { return false };
        let Arrival { first, next, bytes, .. } = &current.arrival;
        if current.sequence != *first || u64::from(current.header.count) != next - first {
            return false;
        }
        let (body, mut at) = (&bytes[current.body..], 0);
        (0..current.header.count).all(|_| match sample_at(body, at) {
            Ok((Piece::Bytes(_), next)) => {
                at = next;
                true
            }
            _ => false,
        })
    }

    /// Returns the whole batch, and counts its samples as read.
    fn whole_batch(&mut self) -> Option<WholeBatch<'_>> {
        let current = self.current.as_mut()?;
        current.sequence = current.arrival.next;
        Some(WholeBatch {
            stream: &current.stream_state.info,
            first: current.arrival.first,
            next: current.arrival.next,
            received: current.arrival.received,
            header: &current.header,
            bytes: &current.arrival.bytes,
            body: &current.arrival.bytes[current.body..],
        })
    }

    /// Moves to the next sample of the batch. Returns false, and leaves the batch, if there is none.
    fn step(&mut self) -> bool {
        let Some(current) = &self.current else { return false };
        if current.sequence < current.arrival.next {
            return true;
        }
        if let Some(done) = self.current.take() {
            let answer = done.header.flags & FLAG_ANSWER != 0;
            let weight = if answer { usize::MAX / 2 } else { done.arrival.bytes.len() + done.lent };
            self.core.done(&done.stream_state, done.arrival.next, done.arrival.bytes.len(), weight);
        }
        false
    }

    fn enter(&mut self, stream_state: Arc<StreamState>, arrival: Arrival, skip: u64) {
        let Ok((header, body)) = BatchHeader::decode(&arrival.bytes) else { return };
        let body = arrival.bytes.len() - body.len();
        let mut at = 0;
        for _ in 0..skip {
            // After the end of a truncated body no sample is found, and `sample` reports the missing ones.
            at = sample_at(&arrival.bytes[body..], at).map_or(usize::MAX / 2, |(_, next)| next);
        }
        let sequence = arrival.first + skip;
        self.current = Some(Current { stream_state, arrival, header, body, at, sequence, lent: 0 });
    }

    fn sample(&mut self) -> Option<Event<'_>> {
        let current = self.current.as_mut()?;
        let (piece, next) = match sample_at(&current.arrival.bytes[current.body..], current.at) {
            Ok(found) => found,
            Err(_) => {
                // The body contradicts its header, so its samples are unreadable.
                let gap = Gap {
                    stream: current.stream_state.info.clone(),
                    from: current.sequence,
                    to: Some(current.arrival.next),
                    why: LossReason::Dropped,
                };
                current.sequence = current.arrival.next;
                return Some(Event::Gap(gap));
            }
        };
        let place = match piece {
            Piece::Bytes(bytes) => Place::Received(bytes),
            Piece::Loaned(loaned) => {
                current.lent += loaned.length as usize;
                let (position, offset) = (loaned.position, loaned.place as usize * LOAN_ALIGNMENT);
                Place::Lent { ring: current.stream_state.ring(), position, offset, length: loaned.length as usize }
            }
        };
        let sequence = current.sequence;
        current.sequence += 1;
        current.at = next;
        Some(Event::Sample(Sample {
            stream: &current.stream_state.info,
            sequence,
            acquired: current.header.acquired,
            sent: current.header.sent,
            received: current.arrival.received,
            clock: current.header.clock,
            tai_offset: current.header.tai_offset,
            soon: current.header.flags & FLAG_SOON != 0,
            payload: Payload { place },
        }))
    }

    /// Counts lost samples as finished. They need no acknowledgement of their own, but the writer must not wait for
    /// them.
    fn pass(&self, gap: &Gap) {
        let key = (gap.stream.incarnation, gap.stream.stream);
        let stream_state = lock(&self.core.received).stream_states.get(&key).cloned();
        if let (Some(stream_state), Some(to), Ack::OnTake) = (stream_state, gap.to, self.core.qos.ack) {
            self.core.acknowledge(&stream_state, to, 0);
        }
    }

    /// Reports that the sample returned last, and all before it, are in the application's memory. It is for an application
    /// that acknowledges later, after its own commit ([`crate::Grade::Received`]).
    pub fn note_received(&self) {
        let Some(current) = &self.current else { return };
        let is_last = current.sequence == current.arrival.next;
        let at_once = is_last && current.header.flags & FLAG_RECEIPT != 0;
        self.core.received(&current.stream_state, current.sequence, at_once);
    }

    /// Acknowledges everything before `next` of a stream. With [`Ack::Manual`], call it after the application's own
    /// commit.
    pub fn acknowledge(&self, stream: &StreamInfo, next: u64) {
        let key = (stream.incarnation, stream.stream);
        let stream_state = lock(&self.core.received).stream_states.get(&key).cloned();
        if let Some(stream_state) = stream_state {
            // The writer is notified at once: it may be waiting for this credit.
            let size = stream_state.credit.load(Ordering::Relaxed);
            self.core.acknowledge(&stream_state, next, size);
        }
    }

    /// Returns an alarm by which another worker makes [`Reader::next`] return `None` before its timeout.
    pub fn alarm(&self) -> Alarm {
        Alarm { core: self.core.clone() }
    }

    /// Returns the counters since it was opened.
    pub fn stats(&self) -> ReaderStats {
        self.core.stats()
    }
}

/// Alarm that wakes the thread in [`Reader::next`] once, at present or at the next call.
#[derive(Clone)]
pub struct Alarm {
    core: Arc<Core>,
}

impl Alarm {
    /// Wakes the waiting reader.
    pub fn ring(&self) {
        self.core.alarmed.store(true, Ordering::Release);
        self.core.wake();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.step();
        self.core.leave();
    }
}
