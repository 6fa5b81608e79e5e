//! Writing a topic: batches samples, waits within limits, keeps data that readers may still need, and reports the
//! outcome.
//!
//! [`Stream`] sends and waits (`sending`, `loans`, and `readers` for its readers). A value, the `outbox`, makes its
//! decisions.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tampu_shm::LoanRing;
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
    shared::BatchRing,
};

mod awaited;
mod budget;
mod loans;
mod long_samples;
mod matched;
mod outbox;
mod readers;
mod receipt;
mod sending;

/// Type of a stream's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeTag {
    /// Number of the type; see `spec/types.md`.
    pub id: u32,
    /// Version of the type.
    pub version: u16,
}

impl TypeTag {
    /// Bytes that only the application interprets.
    pub const OCTETS: TypeTag = TypeTag { id: 1, version: 1 };
    /// `LogBatch` of `spec/log.idl`.
    pub const LOG_BATCH: TypeTag = TypeTag { id: 2, version: 1 };
}

/// First sample to which a reader is entitled when it is matched; earlier ones are history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The next sample that is sent.
    Now,
    /// The first sample of the stream, because the reader was there before.
    Beginning,
}

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Number of the sample in its stream.
    pub sequence: u64,
    /// Number of matched readers. With 0 no reader can receive the sample yet, and it is kept only for late readers.
    pub matched: usize,
}

/// Counters of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterStats {
    /// Samples written since the writer was opened.
    pub samples: u64,
    /// Batches passed to the engine.
    pub batches: u64,
    /// Samples that readers can no longer get, over all readers.
    pub lost: u64,
    /// Time spent waiting for readers, ns.
    pub waited_ns: u64,
    /// Loans that had to be copied because some reader cannot map them.
    pub copied_loans: u64,
    /// Batches that readers found in shared memory.
    pub shared: u64,
    /// Batches that the engine refused; readers fetch them from the cache.
    pub refused: u64,
    /// Memory of the cache, in bytes.
    pub cache: usize,
    /// Bytes that it may be ahead of its readers at present, by its settings and the length of its samples.
    pub credit: usize,
}

type OnDelivery = Box<dyn Fn(u64) + Send + Sync>;
type OnWord = Box<dyn Fn() + Send + Sync>;

/// The ring for batches that readers on this host can map.
enum Batches {
    /// No ring yet: a stream that writes little needs no memory for it. The number is the bytes until it gets one.
    Unused(usize),
    /// The stream has written enough for a ring, which the refetch server makes. Samples do not wait for it: reserving
    /// the memory takes several milliseconds on a busy machine.
    Wanted,
    Ring(BatchRing),
    /// There is no memory to share.
    Nowhere,
}

/// Data that a stream writes before its batches are shared, in bytes; each batch counts as at least a 64th.
const SHARED_AFTER: usize = 64 << 10;
/// Shortest batch that lies in shared memory for readers that do not follow announcements, in bytes. Shorter ones are
/// sent, because a copy costs less than a lookup.
const SHARED_FROM: usize = 4096;

/// Period of heartbeats while a reader has not acknowledged everything, in ns.
pub(crate) const BEAT_UNACKED: u64 = 100_000_000;
/// Time in ns after which a waiting writer requests an acknowledgement again.
const ASK_AGAIN: u64 = 5_000_000;
/// Time that a writer sleeps on a reader's futex word before it checks that the reader is still there, in ns.
const LOOK_AGAIN: u64 = 5_000_000;
/// Time that a loan waits for readers before more of the pool is used, in ns.
const LOAN_PATIENCE: u64 = 2_000_000;

/// Facts by which a stream follows changed settings.
pub(crate) struct Tuned {
    /// Quality of service without settings.
    pub default: Qos,
    /// The attribute whose events it carries.
    pub attribute: Option<Box<str>>,
    /// Topic of the stream that it is a part of.
    pub part_of: Option<TopicName>,
}

/// The outlet of a stream to a multicast group.
struct GroupOutlet {
    number: u32,
    outlet: Box<dyn Outlet>,
    /// Boots of the hosts that the group reaches at present.
    boots: Vec<u32>,
}

/// One stream with all parts that send it.
pub(crate) struct Stream {
    pub id: u32,
    pub topic: TopicName,
    pub partition: Partition,
    tag: TypeTag,
    /// Quality of service at the beginning. The outbox has the one that holds.
    qos: Qos,
    /// Makes the stream follow the settings of its topic.
    pub tuned: Option<Tuned>,
    /// Longest time that a sample waits in its batch, in ns.
    linger: AtomicU64,
    links: Arc<Links>,
    outbox: Mutex<Outbox>,
    /// Gate that opens when readers have acknowledged, joined or left.
    gate: Gate,
    node: Box<dyn Outlet>,
    /// Outlet to readers that read this host alone, once there is one.
    within: OnceLock<Box<dyn Outlet>>,
    direct: Option<(String, Box<dyn Outlet>)>,
    /// The multicast group of this host's node that takes its topic.
    group: Mutex<Option<GroupOutlet>>,
    ring: Mutex<Option<LoanRing>>,
    batches_at: Mutex<Batches>,
    last_send: AtomicU64,
    answer_now: AtomicBool,
    pub closed: AtomicBool,
    /// True once its process is about to end.
    ends: AtomicBool,
    on_delivery: OnceLock<OnDelivery>,
    on_word: OnceLock<OnWord>,
    delivered: AtomicU64,
    batches: AtomicU64,
    waited: AtomicU64,
    copied_loans: AtomicU64,
    shared: AtomicU64,
    refused: AtomicU64,
    matched: AtomicUsize,
}

/// Writer of one topic and partition. Shared between workers by reference; dropping it sends the remaining samples.
pub struct Writer {
    stream: Arc<Stream>,
}

impl Writer {
    pub(crate) fn new(stream: Arc<Stream>) -> Writer {
        Writer { stream }
    }

    /// Writes a sample. It is sent at once after a pause; samples that follow closely share a batch.
    ///
    /// Waits for readers at most the topic's `max_wait`, in total.
    pub fn write(&self, sample: &[u8]) -> Result<Written, WriteError> {
        self.stream.write(sample, false, None)
    }

    /// Shares the time to wait for readers with another writer: both together wait at most its `max_wait` of every
    /// `wait_period`. It is for a program that writes the same samples to several streams.
    pub fn share_waits_of(&self, other: &Writer) {
        let budget = lock(&other.stream.outbox).budget();
        lock(&self.stream.outbox).share_budget(budget);
    }

    /// Writes a sample that is sent at once.
    pub fn write_urgent(&self, sample: &[u8]) -> Result<Written, WriteError> {
        self.stream.write(sample, true, None)
    }

    /// Lends memory for a sample that readers on this host will map instead of receiving a copy.
    pub fn loan(&self, length: usize) -> Result<Loan<'_>, LoanError> {
        let space = self.stream.lend(length)?;
        Ok(Loan { stream: &self.stream, space: Some(space) })
    }

    /// Returns whether a sample of this length, written or lent, may have to wait for readers. A program with a lock of its own,
    /// such as that of an interpreter, releases it before such a call.
    pub fn may_wait(&self, length: usize) -> bool {
        self.stream.may_wait(length)
    }

    /// Sends the open batch at once, without waiting for readers.
    pub fn send_now(&self) {
        self.stream.send_now();
    }

    /// Waits until every reliable reader has acknowledged all written samples, or the timeout. Returns the outcome of
    /// all samples since the last receipt.
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

    /// Returns the state of every reader, and of the last ones that left.
    pub fn readers(&self) -> Vec<ReaderStatus> {
        lock(&self.stream.outbox).statuses()
    }

    /// Returns the position up to which all readers that the writer waits for have acknowledged; `None` without such
    /// readers.
    pub fn delivered(&self) -> Option<u64> {
        lock(&self.stream.outbox).acked_by_live()
    }

    /// Returns the position up to which samples are on a disk ([`crate::Hold::keeps`]): all collectors that the writer
    /// waits for have acknowledged it, or a spool in their place has. `None` without such readers.
    pub fn kept(&self) -> Option<u64> {
        lock(&self.stream.outbox).kept_by_live()
    }

    /// Returns the counters since it was opened.
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
            credit: outbox.credit(),
        }
    }

    /// Returns the number of its stream within this participant's incarnation.
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
