//! Writing a topic: batches by itself, waits within bounds, keeps what readers may still need, and says what became of it.
//!
//! [`Stream`] sends and waits (`sending`, `loans`, and `readers` for those who read); what it decides by is a value, the `outbox`.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tampu_types::{Partition, TopicName};

use self::outbox::Outbox;
pub(crate) use self::outbox::history_start;
pub use self::{
    loans::Loan,
    matched::{ReaderState, ReaderStatus},
    receipt::Receipt,
};
use crate::{
    clock::Gate,
    engine::Outlet,
    error::{LoanError, WriteError},
    links::{Links, lock},
    qos::Qos,
    shared::{BatchRing, LoanRing},
};

mod budget;
mod loans;
mod matched;
mod outbox;
mod readers;
mod receipt;
mod sending;

/// What a stream's samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeTag {
    /// The type; see `spec/types.md`.
    pub id: u32,
    /// Its release.
    pub version: u16,
}

impl TypeTag {
    /// Bytes nobody but the application understands.
    pub const OCTETS: TypeTag = TypeTag { id: 1, version: 1 };
    /// `LogBatch` of `spec/log.idl`.
    pub const LOG_BATCH: TypeTag = TypeTag { id: 2, version: 1 };
}

/// What a write tells at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The sample's number in its stream.
    pub sequence: u64,
    /// How many readers are matched; 0: nobody can receive it now, and it is kept only for late readers.
    pub matched: usize,
}

/// Counters of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterStats {
    /// Samples written.
    pub samples: u64,
    /// Batches handed to the engine.
    pub batches: u64,
    /// Samples that readers can no longer get, over all readers.
    pub lost: u64,
    /// Time spent waiting for readers, ns.
    pub waited_ns: u64,
    /// Loans that had to be copied because some reader cannot map them.
    pub copied_loans: u64,
    /// Batches that readers found in shared memory.
    pub shared: u64,
    /// Batches the engine refused; readers fetch them from the cache.
    pub refused: u64,
    /// Memory the cache takes, bytes.
    pub cache: usize,
}

type OnDelivery = Box<dyn Fn(u64) + Send + Sync>;

/// Where batches go that readers on this host can map.
enum Batches {
    /// A stream that writes little takes no memory for it: so many bytes are still to come.
    Unused(usize),
    Ring(BatchRing),
    /// There is no memory to share.
    Nowhere,
}

/// How much a stream writes before its batches are shared, bytes; a batch counts as a 64th at least.
const SHARED_AFTER: usize = 64 << 10;
/// Who is not attached to the board is sent shorter batches themselves: they cost less than the look elsewhere.
const SHARED_FROM: usize = 4096;

/// How often a writer says what it has while somebody has not acknowledged it.
pub(crate) const BEAT_UNACKED: u64 = 100_000_000;
/// How soon a writer that waits for an answer asks for it again.
const ASK_AGAIN: u64 = 5_000_000;
/// How long a writer sleeps at a reader's bell before it looks whether that reader is still there.
const LOOK_AGAIN: u64 = 5_000_000;
/// How long a loan waits for readers before more of the pool is used.
const LOAN_PATIENCE: u64 = 2_000_000;

/// One stream with everything that sends it.
pub(crate) struct Stream {
    pub id: u32,
    pub topic: TopicName,
    pub partition: Partition,
    tag: TypeTag,
    qos: Qos,
    links: Arc<Links>,
    outbox: Mutex<Outbox>,
    /// Opened when readers have acknowledged, come or left.
    gate: Gate,
    node: Box<dyn Outlet>,
    direct: Option<(String, Box<dyn Outlet>)>,
    ring: Mutex<Option<LoanRing>>,
    batches_at: Mutex<Batches>,
    last_send: AtomicU64,
    answer_now: AtomicBool,
    pub closed: AtomicBool,
    on_delivery: OnceLock<OnDelivery>,
    delivered: AtomicU64,
    batches: AtomicU64,
    waited: AtomicU64,
    copied_loans: AtomicU64,
    shared: AtomicU64,
    refused: AtomicU64,
    matched: AtomicUsize,
}

/// Writes one topic and partition. Shared between workers by reference; dropping it sends what is left.
pub struct Writer {
    stream: Arc<Stream>,
}

impl Writer {
    pub(crate) fn new(stream: Arc<Stream>) -> Writer {
        Writer { stream }
    }

    /// Writes a sample. It goes at once after a pause; samples that follow closely share a batch.
    ///
    /// Waits for readers at most the topic's `max_wait`, in total.
    pub fn write(&self, sample: &[u8]) -> Result<Written, WriteError> {
        self.stream.write(sample, false)
    }

    /// Writes a sample that does not wait for company.
    pub fn write_urgent(&self, sample: &[u8]) -> Result<Written, WriteError> {
        self.stream.write(sample, true)
    }

    /// Lends memory for a sample that readers on this host will map instead of receiving a copy.
    pub fn loan(&self, length: usize) -> Result<Loan<'_>, LoanError> {
        let space = self.stream.lend(length)?;
        Ok(Loan { stream: &self.stream, space: Some(space) })
    }

    /// Sends what is waiting for company, without waiting for anybody.
    pub fn send_now(&self) {
        self.stream.send_now();
    }

    /// Waits until every reliable reader has acknowledged what was written, or the timeout; tells what became of everything
    /// since the last receipt.
    pub fn flush(&self, timeout: Duration) -> Receipt {
        self.stream.settle(timeout);
        lock(&self.stream.outbox).receipt()
    }

    /// Calls `tell` with the number up to which every reliable reader has acknowledged, whenever it grows. Only the first
    /// call of this counts.
    pub fn on_delivery(&self, tell: impl Fn(u64) + Send + Sync + 'static) {
        // A second callback is dropped, as documented.
        let _ = self.stream.on_delivery.set(Box::new(tell));
    }

    /// Who reads, how each is doing, and the last that left.
    pub fn readers(&self) -> Vec<ReaderStatus> {
        lock(&self.stream.outbox).statuses()
    }

    /// Up to where all readers have acknowledged that the writer waits for; `None` while there is none.
    pub fn delivered(&self) -> Option<u64> {
        lock(&self.stream.outbox).acked_by_live()
    }

    /// The same for those of them that keep what they acknowledge ([`crate::Hold::keeps`]): a collector, or a spool in its place.
    pub fn kept(&self) -> Option<u64> {
        lock(&self.stream.outbox).kept_by_live()
    }

    /// Its counters.
    pub fn stats(&self) -> WriterStats {
        let outbox = lock(&self.stream.outbox);
        WriterStats {
            samples: outbox.next(),
            batches: self.stream.batches.load(Ordering::Relaxed),
            lost: outbox.lost_total(),
            waited_ns: self.stream.waited.load(Ordering::Relaxed),
            copied_loans: self.stream.copied_loans.load(Ordering::Relaxed),
            shared: self.stream.shared.load(Ordering::Relaxed),
            refused: self.stream.refused.load(Ordering::Relaxed),
            cache: outbox.cache_taken(),
        }
    }

    /// The number of its stream within this participant's life.
    pub fn stream(&self) -> u32 {
        self.stream.id
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stream.send_now();
        self.stream.closed.store(true, Ordering::Release);
        self.stream.links.beat_soon();
    }
}
