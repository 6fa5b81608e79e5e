//! Writing a topic: batches by itself, waits within bounds, keeps what readers may still need, and says what became of it.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_types::{BatchHeader, Incarnation, Partition, TopicName};

pub(crate) use self::outbox::history_start;
use self::outbox::{Admission, Outbox};
pub use self::{
    matched::{ReaderState, ReaderStatus},
    receipt::Receipt,
};
use crate::{
    clock::Gate,
    engine::{Class, Outlet},
    error::{BusError, LoanError, WriteError},
    links::{Links, lock},
    qos::Qos,
    shared::{BatchRing, LOAN_UNIT, Lease, LoanRing, Room, Watch, size_for, whose},
    wire::{
        batch::{self, Loaned},
        control::{Mark, Offer},
        keys::ReaderCard,
        refetch::{Refetch, Shelf},
    },
};

mod budget;
mod matched;
mod outbox;
mod receipt;

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

impl Stream {
    pub fn open(
        id: u32,
        topic: &TopicName,
        partition: &Partition,
        tag: TypeTag,
        qos: Qos,
        links: Arc<Links>,
    ) -> Result<Stream, BusError> {
        let key = links.keys.data(topic, partition);
        let node = links.engine.outlet(&key, Class::Data)?;
        let direct = if qos.direct {
            let (endpoint, engine) = links.engine.listen_direct()?;
            Some((endpoint, engine.outlet(&key, Class::Data)?))
        } else {
            None
        };
        let header = BatchHeader {
            domain: links.domain.clone(),
            source: links.source.clone(),
            incarnation: links.incarnation,
            stream: id,
            first: 0,
            count: 0,
            type_id: tag.id,
            type_version: tag.version,
            acquired: Default::default(),
            sent: Default::default(),
            clock: Default::default(),
            tai_offset: 0,
            flags: 0,
        };
        let outbox = Outbox::new(qos.clone(), links.engine.limits().batch, header, links.clock.monotonic());
        Ok(Stream {
            id,
            topic: topic.clone(),
            partition: partition.clone(),
            tag,
            qos,
            outbox: Mutex::new(outbox),
            gate: Gate::default(),
            node,
            direct,
            ring: Mutex::default(),
            batches_at: Mutex::new(Batches::Unused(SHARED_AFTER)),
            last_send: AtomicU64::new(0),
            answer_now: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            on_delivery: OnceLock::new(),
            delivered: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            copied_loans: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            matched: AtomicUsize::new(0),
            links,
        })
    }

    fn write(&self, sample: &[u8], urgent: bool) -> Result<Written, WriteError> {
        let limit = self.links.engine.limits().message.min(i32::MAX as usize) - 1024;
        if sample.len() > limit {
            return Err(WriteError::TooLong { length: sample.len(), limit });
        }
        let (mut outbox, begun) = self.admitted(sample.len());
        let sequence = outbox.append(sample);
        self.send_if_due(&mut outbox, begun, urgent);
        Ok(Written { sequence, matched: self.matched.load(Ordering::Relaxed) })
    }

    /// The outbox with room for a sample of this length, and when its batch was begun if this sample begins it.
    fn admitted(&self, length: usize) -> (MutexGuard<'_, Outbox>, Option<u64>) {
        let mut outbox = lock(&self.outbox);
        if outbox.overflows(length) {
            self.send(&mut outbox);
        }
        if !outbox.is_empty() {
            return (outbox, None);
        }
        loop {
            let now = self.links.clock.monotonic();
            let Admission::Wait { target, longest } = outbox.admit(now) else {
                // Somebody else may have begun the batch while this worker waited.
                let begun = outbox.is_empty().then_some(now);
                outbox.begin(self.links.clock.utc());
                return (outbox, begun);
            };
            outbox = self.wait(outbox, now, target, longest);
        }
    }

    fn wait<'a>(&'a self, outbox: MutexGuard<'a, Outbox>, now: u64, target: u64, longest: u64) -> MutexGuard<'a, Outbox> {
        let seen = self.gate.openings();
        let watch = outbox.furthest_behind(target);
        let unheard = outbox.has_unheard();
        drop(outbox);
        // A reader that has not heard of the stream yet is not slow: it is to hear of it now, while it is waited for.
        if unheard {
            self.answer_now.store(true, Ordering::Release);
            self.links.beat_soon();
        }
        // Acknowledgements that were lost are asked for again.
        self.links.pulse_by(now + longest.min(BEAT_UNACKED));
        match watch {
            Some(watch) => watch.wait_for(target, Duration::from_nanos(longest.min(LOOK_AGAIN))),
            None => self.links.clock.wait(&self.gate, seen, now + longest),
        }
        self.waited.fetch_add(self.links.clock.monotonic().saturating_sub(now), Ordering::Relaxed);
        lock(&self.outbox)
    }

    fn send_if_due(&self, outbox: &mut Outbox, begun: Option<u64>, urgent: bool) {
        if urgent || outbox.is_full() {
            self.send(outbox);
        } else if let Some(now) = begun {
            let last = self.last_send.load(Ordering::Relaxed);
            let due = last + self.qos.linger.as_nanos() as u64;
            if last == 0 || now >= due {
                self.send(outbox);
            } else {
                self.links.pulse_by(due);
            }
        }
    }

    fn send(&self, outbox: &mut Outbox) {
        let clock = &self.links.clock;
        outbox.tell_clock(clock.discipline());
        let Some(bytes) = outbox.seal(clock.utc()) else { return };
        self.last_send.store(clock.monotonic(), Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        let (bytes, everybody_has_it) = self.share(outbox, bytes);
        if !everybody_has_it {
            self.post(outbox, bytes);
        }
        if outbox.matched() > 0 {
            self.links.pulse_by(clock.monotonic() + BEAT_UNACKED);
        }
    }

    /// Sends a batch, or word of where it is.
    fn post(&self, outbox: &Outbox, bytes: Bytes) {
        let (by_node, by_link) = outbox.ways();
        let mut refused = by_node && self.node.send(bytes.clone()).is_err();
        if let (true, Some((_, link))) = (by_link, &self.direct) {
            refused |= link.send(bytes).is_err();
        }
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Puts a batch into shared memory if everybody can find it there; returns what to send, and whether nobody needs it sent.
    fn share(&self, outbox: &Outbox, batch: Bytes) -> (Bytes, bool) {
        if outbox.matched() == 0 || !outbox.shares_memory() {
            return (batch, false);
        }
        let mut batches = lock(&self.batches_at);
        if let Batches::Unused(idle) = &mut *batches {
            *idle = idle.saturating_sub(batch.len().max(SHARED_AFTER / 64));
            if *idle > 0 && !self.qos.direct {
                return (batch, false);
            }
            let made = self.links.shared_dir.as_ref().and_then(|dir| {
                let path = dir.join(format!("{}-{}.batches", self.links.incarnation, self.id));
                BatchRing::create(path, size_for(self.qos.credit)).ok()
            });
            *batches = made.map_or(Batches::Nowhere, Batches::Ring);
            // Readers learn of the board by the next heartbeat.
            self.links.beat_soon();
        }
        let Batches::Ring(ring) = &mut *batches else { return (batch, false) };
        let Some(place) = ring.put(&batch) else { return (batch, false) };
        self.shared.fetch_add(1, Ordering::Relaxed);
        let everybody = outbox.tell_attached();
        (if batch.len() < SHARED_FROM { batch } else { batch::elsewhere(&batch, place) }, everybody)
    }

    /// Sends what has lingered long enough; returns when it wants to be asked again.
    pub fn flush_lingering(&self, now: u64) -> Option<u64> {
        let Ok(mut outbox) = self.outbox.try_lock() else {
            // Somebody writes at this moment and will send or call again.
            return Some(now + self.qos.linger.as_nanos() as u64);
        };
        if outbox.is_empty() {
            return None;
        }
        let due = self.last_send.load(Ordering::Relaxed) + self.qos.linger.as_nanos() as u64;
        if now < due {
            return Some(due);
        }
        self.send(&mut outbox);
        None
    }

    pub fn send_now(&self) {
        self.send(&mut lock(&self.outbox));
    }

    // --- readers ---

    pub fn match_reader(&self, card: &ReaderCard) {
        let mut outbox = lock(&self.outbox);
        // What is being filled was begun before the reader came, but nobody has it yet: it is the reader's as well.
        outbox.match_reader(card.clone());
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        drop(outbox);
        self.gate.open();
    }

    pub fn unmatch_reader(&self, incarnation: Incarnation, reader: u32) {
        let mut outbox = lock(&self.outbox);
        outbox.unmatch_reader(incarnation, reader);
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        drop(outbox);
        self.gate.open();
    }

    pub fn doubt_reader(&self, incarnation: Incarnation, reader: u32) {
        lock(&self.outbox).doubt_reader(incarnation, reader);
        self.gate.open();
    }

    pub fn acknowledge(&self, from: Incarnation, mark: &Mark) {
        let mut outbox = lock(&self.outbox);
        outbox.acknowledge(from, mark);
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        if outbox.could_watch(from, mark)
            && from.shares_host_with(self.links.incarnation)
            && let Some(page) = self.links.progress_page(from, mark.reader)
            && let Ok(watch) = Watch::open(&page, mark.slot, whose(self.links.incarnation, self.id))
        {
            outbox.watch(from, mark.reader, watch);
        }
        outbox.look();
        let delivered = outbox.acked_by_all().unwrap_or(0);
        drop(outbox);
        // Also without news: what the writer has seen by itself is news to whoever waits here.
        self.gate.open();
        if self.delivered.fetch_max(delivered, Ordering::AcqRel) < delivered
            && let Some(tell) = self.on_delivery.get()
        {
            tell(delivered);
        }
    }

    /// What to tell each participant that reads this stream, and whether somebody has yet to acknowledge.
    pub fn offers(&self, mut put: impl FnMut(Incarnation, Offer)) -> bool {
        let answer_now = self.answer_now.swap(false, Ordering::AcqRel);
        let board = matches!(*lock(&self.batches_at), Batches::Ring(_));
        let mut outbox = lock(&self.outbox);
        for (incarnation, reader, start, watches) in outbox.offers() {
            let offer = Offer {
                reader,
                stream: self.id,
                start,
                lowest: outbox.lowest(),
                next: outbox.sealed(),
                credit: u32::try_from(self.qos.credit).unwrap_or(u32::MAX),
                type_id: self.tag.id,
                type_version: self.tag.version,
                answer_now,
                watches,
                board,
                topic: self.topic.as_str().to_owned(),
                partition: self.partition.key(),
            };
            put(incarnation, offer);
        }
        outbox.wants_word()
    }

    pub fn refetch(&self, asked: &Refetch) -> (Vec<Bytes>, Shelf) {
        lock(&self.outbox).refetch(asked)
    }

    pub fn direct_endpoint(&self) -> Option<&str> {
        self.direct.as_ref().map(|(endpoint, _)| endpoint.as_str())
    }

    pub fn has_unacked(&self) -> bool {
        lock(&self.outbox).has_unacked()
    }

    pub fn wants_word(&self) -> bool {
        lock(&self.outbox).wants_word()
    }

    /// Waits until every reliable reader has acknowledged everything written so far, or the timeout.
    pub fn settle(&self, timeout: Duration) {
        self.send_now();
        let clock = &self.links.clock;
        let until = clock.monotonic().saturating_add(timeout.as_nanos() as u64);
        // Who can be watched rings when it has come that far; others are asked, and asked again if no answer comes. Once is
        // enough while they are on their way: a question for every acknowledgement would keep both sides busy with nothing else.
        let (mut asked, mut ask_at) = (false, clock.monotonic() + BEAT_UNACKED);
        loop {
            let seen = self.gate.openings();
            let now = clock.monotonic();
            if !self.has_unacked() || now >= until {
                return;
            }
            let (target, watch) = {
                let outbox = lock(&self.outbox);
                (outbox.sealed(), outbox.furthest_behind(outbox.sealed()))
            };
            if now >= ask_at || watch.is_none() && !asked {
                self.answer_now.store(true, Ordering::Release);
                self.links.beat_soon();
                (asked, ask_at) = (true, now + if watch.is_none() { ASK_AGAIN } else { BEAT_UNACKED });
            }
            let look_at = until.min(ask_at);
            match watch {
                Some(watch) => {
                    let pause = look_at.saturating_sub(now).min(4 * LOOK_AGAIN);
                    watch.wait_for(target, Duration::from_nanos(pause));
                }
                None => clock.wait(&self.gate, seen, look_at),
            }
        }
    }

    // --- loans ---

    fn lend(&self, length: usize) -> Result<Space, LoanError> {
        let Some(dir) = &self.links.shared_dir else { return Ok(Space::Heap(vec![0; length])) };
        let mut ring = lock(&self.ring);
        if ring.is_none() {
            let path = dir.join(format!("{}-{}.ring", self.links.incarnation, self.id));
            let made = LoanRing::create(path.clone(), self.qos.pool);
            *ring = Some(made.map_err(|why| LoanError::NoMemory { place: path, why })?);
        }
        let mut waited = false;
        loop {
            let Some(pool) = ring.as_mut() else { return Ok(Space::Heap(vec![0; length])) };
            pool.read_by(self.matched.load(Ordering::Relaxed));
            match pool.room(length) {
                Room::Free(begin) => return Ok(Space::Shared(pool.lend(begin, length))),
                Room::Never => return Err(LoanError::TooLong { length, pool: self.qos.pool }),
                Room::After(needed) => {
                    let mut outbox = lock(&self.outbox);
                    // What everybody has done with is taken back in one go, so that this is rare.
                    let done = outbox.loans_needed_from().unwrap_or(u64::MAX).min(pool.lent_to());
                    if done >= needed {
                        outbox.forget_loans_before(done);
                        pool.take_back(done);
                        continue;
                    }
                    let now = self.links.clock.monotonic();
                    self.send(&mut outbox);
                    match outbox.admit_loan(now, |position| position < needed) {
                        Admission::Go => {
                            outbox.forget_loans_before(needed);
                            pool.take_back(needed);
                        }
                        // Readers that keep up are done within this; for those that do not, the span grows.
                        Admission::Wait { .. } if waited && pool.grow() => waited = false,
                        Admission::Wait { target, longest } => {
                            waited = true;
                            drop(ring);
                            drop(self.wait(outbox, now, target, longest.min(LOAN_PATIENCE)));
                            ring = lock(&self.ring);
                        }
                    }
                }
            }
        }
    }

    fn publish(&self, space: Space) -> Result<Written, WriteError> {
        let mut lease = match space {
            Space::Heap(bytes) => {
                self.copied_loans.fetch_add(1, Ordering::Relaxed);
                return self.write(&bytes, false);
            }
            Space::Shared(lease) => lease,
        };
        let (mut outbox, begun) = self.admitted(16);
        // Readers that cannot map the ring get a copy; so does everybody else, as a batch goes to all alike. So may those who come
        // later, for as long as what was written before is kept for them.
        let nobody_yet = outbox.matched() == 0 && lease.length <= self.qos.keep;
        if nobody_yet || !outbox.shares_memory() && outbox.matched() > 0 {
            drop(outbox);
            self.copied_loans.fetch_add(1, Ordering::Relaxed);
            let written = self.write(lease.bytes(), false);
            self.settle_lease(&lease);
            return written;
        }
        let place = (lease.offset / LOAN_UNIT) as u32;
        let loaned = Loaned { position: lease.position, place, length: lease.length as u32 };
        let sequence = outbox.append_loan(loaned);
        self.send_if_due(&mut outbox, begun, false);
        drop(outbox);
        self.settle_lease(&lease);
        Ok(Written { sequence, matched: self.matched.load(Ordering::Relaxed) })
    }

    fn settle_lease(&self, lease: &Lease) {
        if let Some(ring) = lock(&self.ring).as_mut() {
            ring.settle(lease.position);
        }
    }
}

/// How often a writer says what it has while somebody has not acknowledged it.
pub(crate) const BEAT_UNACKED: u64 = 100_000_000;
/// How soon a writer that waits for an answer asks for it again.
const ASK_AGAIN: u64 = 5_000_000;
/// How long a writer sleeps at a reader's bell before it looks whether that reader is still there.
const LOOK_AGAIN: u64 = 5_000_000;
/// How long a loan waits for readers before more of the pool is used.
const LOAN_PATIENCE: u64 = 2_000_000;

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

enum Space {
    Heap(Vec<u8>),
    Shared(Lease),
}

/// Memory lent for one sample. Fill it and publish it; dropped, it is given back.
pub struct Loan<'a> {
    stream: &'a Stream,
    /// `None` once published.
    space: Option<Space>,
}

impl Loan<'_> {
    /// Publishes the sample.
    pub fn publish(mut self) -> Result<Written, WriteError> {
        // Only this method takes the space, and it takes the loan with it.
        self.stream.publish(self.space.take().unwrap_or(Space::Heap(Vec::new())))
    }
}

impl Deref for Loan<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.space {
            Some(Space::Heap(bytes)) => bytes,
            Some(Space::Shared(lease)) => lease.view(),
            None => &[],
        }
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.space {
            Some(Space::Heap(bytes)) => bytes,
            Some(Space::Shared(lease)) => lease.bytes(),
            None => &mut [],
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(Space::Shared(lease)) = &self.space {
            self.stream.settle_lease(lease);
        }
    }
}
