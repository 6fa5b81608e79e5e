//! Reading topics: every stream in order, holes healed or told, at the application's pace.
//!
//! ```text
//! Core, on the engine's workers and the pulse           Reader, on the application's
//!   arrivals  batches come            ->  inbox: in order  ->  queue  ->  next()
//!   offers    which streams there are                                       |
//!   healing   holes are asked for                                           v
//!   owed      acknowledgements       <-  lane: how far this stream is  <-  done()
//!   boards    shared memory; waiting     lives    who writes, hangs, is gone
//! ```

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tampu_types::{BatchHeader, Incarnation, SourceName};

use self::{
    event::Place,
    inbox::{Arrival, Inbox},
    lane::Lane,
};
pub use self::{
    event::{Event, Gap, Payload, Sample, SourceChange, SourceState},
    lane::StreamInfo,
    loss::LossReason,
};
use crate::{
    clock::Gate,
    engine::Guard,
    links::{Links, lock},
    qos::{Ack, ReaderQos},
    shared::{LOAN_UNIT, ProgressPage},
    wire::{
        batch::{FLAG_ANSWER, Piece, sample_at},
        keys::ReaderCard,
    },
};

mod arrivals;
mod boards;
mod event;
mod healing;
mod inbox;
mod lane;
mod lives;
mod loss;
mod offers;
mod owed;

/// Longer than three heartbeats of an idle writer, shorter than the two seconds within which a hang is told.
const SILENCE: u64 = 1_750_000_000;
/// How long acknowledgements may wait for company.
const ACK_PATIENCE: u64 = 10_000_000;
/// How long a dead writer's samples may still be under way: presence overtakes them.
const LAST_WORDS: u64 = 50_000_000;
/// After this long without a word, a process that could not be asked about is given up.
const FORGET: u64 = 60_000_000_000;
/// How much is fetched again at once, bytes.
const REFETCH_LIMIT: u32 = 4 << 20;

/// Counters of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderStats {
    /// Batches that arrived, repeated ones included.
    pub batches: u64,
    /// Times samples were asked for again.
    pub refetches: u64,
    /// Messages that were no batches of this domain.
    pub refused: u64,
    /// Samples told lost, as far as their number is known.
    pub lost: u64,
    /// Bytes of batches that wait for the application.
    pub queued: usize,
}

enum Item {
    Batch { lane: Arc<Lane>, arrival: Arrival, skip: u64 },
    Lost(Gap),
    Source(SourceChange),
}

/// A writer's process as this reader knows it.
struct Heard {
    source: SourceName,
    last: u64,
    silent: bool,
    /// Its presence is gone; since when.
    absent_since: Option<u64>,
}

#[derive(Default)]
struct Received {
    inboxes: HashMap<(Incarnation, u32), Inbox>,
    lanes: HashMap<(Incarnation, u32), Arc<Lane>>,
    sources: HashMap<Incarnation, Heard>,
    queue: VecDeque<Item>,
    /// Writers that offer direct links, and those this reader has tried.
    direct: HashMap<Incarnation, (String, bool)>,
    /// The last lives that ended: a batch of theirs that was still under way begins nothing.
    ended: VecDeque<Incarnation>,
}

/// How many ended lives are remembered.
const ENDED: usize = 64;

/// The receiving side of a reader.
pub(crate) struct Core {
    pub id: u32,
    pub card: ReaderCard,
    qos: ReaderQos,
    links: Arc<Links>,
    received: Mutex<Received>,
    gate: Gate,
    /// Bytes waiting for the application.
    queued: AtomicUsize,
    starved: AtomicBool,
    alarmed: AtomicBool,
    ack_at: AtomicU64,
    batches: AtomicU64,
    refetches: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    /// Declarations: dropped with the reader.
    guards: Mutex<Vec<Guard>>,
    /// Made with the first lane.
    page: OnceLock<Option<Arc<ProgressPage>>>,
    /// The lanes that are read from boards, by their slot in the page.
    attached: Mutex<HashMap<u32, Weak<Lane>>>,
    /// Itself, for callbacks that outlive a call.
    this: OnceLock<Weak<Core>>,
}

/// The batch the application is in.
struct Current {
    lane: Arc<Lane>,
    arrival: Arrival,
    header: BatchHeader,
    /// Where the body begins in the batch.
    body: usize,
    /// Where the next sample begins in the body.
    at: usize,
    /// Its number.
    sequence: u64,
    /// Bytes of the loans seen so far: they count for acknowledgements, as the writer's pool is bounded by them.
    lent: usize,
}

/// Reads the streams of a pattern. Dropping it tells the writers.
pub struct Reader {
    core: Arc<Core>,
    taken: VecDeque<Item>,
    current: Option<Current>,
}

impl Reader {
    pub(crate) fn new(core: Arc<Core>) -> Reader {
        Reader { core, taken: VecDeque::new(), current: None }
    }

    /// The next event; `None` if there is none within the timeout. Calling it says that the application has done with the
    /// event before (with [`Ack::OnTake`], this acknowledges it).
    pub fn next(&mut self, timeout: Duration) -> Option<Event<'_>> {
        let mut until = None;
        loop {
            if self.step() {
                // Taken apart from `step` because the sample borrows the batch.
                return self.sample();
            }
            match self.taken.pop_front() {
                Some(Item::Batch { lane, arrival, skip }) => self.enter(lane, arrival, skip),
                Some(Item::Lost(gap)) => {
                    self.pass(&gap);
                    return Some(Event::Gap(gap));
                }
                Some(Item::Source(change)) => return Some(Event::Source(change)),
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

    /// Whether there is a further sample in the current batch; leaves the batch if not.
    fn step(&mut self) -> bool {
        let Some(current) = &self.current else { return false };
        if current.sequence < current.arrival.next {
            return true;
        }
        if let Some(done) = self.current.take() {
            let answer = done.header.flags & FLAG_ANSWER != 0;
            let weight = if answer { usize::MAX / 2 } else { done.arrival.bytes.len() + done.lent };
            self.core.done(&done.lane, done.arrival.next, done.arrival.bytes.len(), weight);
        }
        false
    }

    fn enter(&mut self, lane: Arc<Lane>, arrival: Arrival, skip: u64) {
        let Ok((header, body)) = BatchHeader::decode(&arrival.bytes) else { return };
        let body = arrival.bytes.len() - body.len();
        let mut at = 0;
        for _ in 0..skip {
            // In a body cut short nothing is found any more, and `sample` tells what is missing.
            at = sample_at(&arrival.bytes[body..], at).map_or(usize::MAX / 2, |(_, next)| next);
        }
        let sequence = arrival.first + skip;
        self.current = Some(Current { lane, arrival, header, body, at, sequence, lent: 0 });
    }

    fn sample(&mut self) -> Option<Event<'_>> {
        let current = self.current.as_mut()?;
        let (piece, next) = match sample_at(&current.arrival.bytes[current.body..], current.at) {
            Ok(found) => found,
            Err(_) => {
                // A body that contradicts its header: its samples cannot be had.
                let gap = Gap {
                    stream: current.lane.info.clone(),
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
                let (position, offset) = (loaned.position, loaned.place as usize * LOAN_UNIT);
                Place::Lent { ring: current.lane.ring(), position, offset, length: loaned.length as usize }
            }
        };
        let sequence = current.sequence;
        current.sequence += 1;
        current.at = next;
        Some(Event::Sample(Sample {
            stream: &current.lane.info,
            sequence,
            acquired: current.header.acquired,
            sent: current.header.sent,
            received: current.arrival.received,
            clock: current.header.clock,
            tai_offset: current.header.tai_offset,
            payload: Payload { place },
        }))
    }

    /// What is lost needs no acknowledgement of its own, but the writer must not wait for it.
    fn pass(&self, gap: &Gap) {
        let key = (gap.stream.incarnation, gap.stream.stream);
        let lane = lock(&self.core.received).lanes.get(&key).cloned();
        if let (Some(lane), Some(to), Ack::OnTake) = (lane, gap.to, self.core.qos.ack) {
            self.core.acknowledge(&lane, to, 0);
        }
    }

    /// Acknowledges everything before `next` of a stream: with [`Ack::Manual`], after the application's own commit.
    pub fn acknowledge(&self, stream: &StreamInfo, next: u64) {
        let key = (stream.incarnation, stream.stream);
        let lane = lock(&self.core.received).lanes.get(&key).cloned();
        if let Some(lane) = lane {
            // The writer is told at once: it may be waiting for exactly this.
            let size = lane.credit.load(Ordering::Relaxed);
            self.core.acknowledge(&lane, next, size);
        }
    }

    /// Something by which another worker makes [`Reader::next`] return `None` before its timeout.
    pub fn alarm(&self) -> Alarm {
        Alarm { core: self.core.clone() }
    }

    /// Its counters.
    pub fn stats(&self) -> ReaderStats {
        ReaderStats {
            batches: self.core.batches.load(Ordering::Relaxed),
            refetches: self.core.refetches.load(Ordering::Relaxed),
            refused: self.core.refused.load(Ordering::Relaxed),
            lost: self.core.lost.load(Ordering::Relaxed),
            queued: self.core.queued.load(Ordering::Relaxed),
        }
    }
}

/// Wakes whoever waits in [`Reader::next`], once, now or at the next call.
#[derive(Clone)]
pub struct Alarm {
    core: Arc<Core>,
}

impl Alarm {
    /// Does it.
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
