//! The path of a sample to the wire: admission, batching, sealing, and sending to the readers.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_types::{BatchHeader, Partition, TopicName};

use super::{
    BEAT_UNACKED, Batches, GroupOutlet, LOOK_AGAIN, Outbox, SHARED_AFTER, SHARED_FROM, Stream, Tuned, TypeTag, Written,
    outbox::Admission,
};
use crate::{
    clock::Gate,
    engine::Class,
    error::{BusError, WriteError},
    group::table::LONGEST,
    links::{Links, lock},
    qos::{Grade, Qos},
    shared::{BatchRing, size_for},
    topic_settings::{QosTable, Subject},
    wire::batch,
};

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
        let class = if qos.urgent { Class::Urgent } else { Class::Data };
        let node = links.engine.outlet(&key, class)?;
        let direct = if qos.direct {
            let (endpoint, engine) = links.engine.listen_direct()?;
            Some((endpoint, engine.outlet(&key, class)?))
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
        let stream = Stream {
            id,
            topic: topic.clone(),
            partition: partition.clone(),
            tag,
            linger: AtomicU64::new(nanos(qos.linger)),
            qos,
            tuned: None,
            outbox: Mutex::new(outbox),
            gate: Gate::default(),
            node,
            within: OnceLock::new(),
            direct,
            ring: Mutex::default(),
            batches_at: Mutex::new(Batches::Unused(SHARED_AFTER)),
            last_send: AtomicU64::new(0),
            answer_now: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            on_delivery: OnceLock::new(),
            on_word: OnceLock::new(),
            delivered: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            copied_loans: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            matched: AtomicUsize::new(0),
            group: Mutex::default(),
            links,
        };
        stream.follow_groups();
        Ok(stream)
    }

    /// Follows the multicast groups of this host's node.
    pub fn follow_groups(&self) {
        let found = self.links.group_of(&self.topic);
        let mut group = lock(&self.group);
        let Some((number, boots)) = found else {
            let ended = group.take();
            drop(group);
            return drop(ended);
        };
        if let Some(known) = group.as_mut().filter(|known| known.number == number) {
            known.boots = boots;
            return;
        }
        drop(group);
        // Without the lock: the engine may call back. Only the heartbeat worker and the opening come here.
        let key = self.links.keys.group(self.links.incarnation.boot, number, &self.topic, &self.partition);
        let class = if self.qos.urgent { Class::Urgent } else { Class::Data };
        let made = self.links.engine.outlet(&key, class).ok().map(|outlet| GroupOutlet { number, outlet, boots });
        let ended = std::mem::replace(&mut *lock(&self.group), made);
        drop(ended);
    }

    /// Sends a batch to the multicast group, if that reaches all readers that need it. Returns false if it does not.
    fn send_to_group(&self, outbox: &Outbox, bytes: &Bytes) -> bool {
        let group = lock(&self.group);
        let Some(group) = group.as_ref().filter(|_| bytes.len() <= LONGEST) else { return false };
        outbox.is_reached_by_group(&group.boots) && group.outlet.send(bytes.clone()).is_ok()
    }

    pub(super) fn write(&self, sample: &[u8], urgent: bool, awaited: Option<Grade>) -> Result<Written, WriteError> {
        let limit = self.links.engine.limits().message.min(i32::MAX as usize) - 1024;
        if sample.len() > limit {
            return Err(WriteError::TooLong { length: sample.len(), limit });
        }
        let (mut outbox, begun) = self.admitted(sample.len());
        let sequence = outbox.append(sample);
        if let Some(grade) = awaited {
            outbox.wish(grade);
        }
        self.send_if_due(&mut outbox, begun, urgent);
        Ok(Written { sequence, matched: self.matched.load(Ordering::Relaxed) })
    }

    /// Returns the outbox with room for a sample of this length, and the start of its batch if this sample begins it.
    pub(super) fn admitted(&self, length: usize) -> (MutexGuard<'_, Outbox>, Option<u64>) {
        let mut outbox = lock(&self.outbox);
        if outbox.overflows(length) {
            self.send(&mut outbox);
        }
        if !outbox.is_empty() {
            return (outbox, None);
        }
        loop {
            let now = self.links.clock.monotonic();
            let Admission::Wait { target, longest } = outbox.admit(now, length) else {
                // Another worker may have begun the batch while this one waited.
                let begun = outbox.is_empty().then_some(now);
                outbox.begin(self.links.clock.utc());
                return (outbox, begun);
            };
            outbox = self.wait(outbox, now, target, longest);
        }
    }

    pub(super) fn wait<'a>(
        &'a self,
        outbox: MutexGuard<'a, Outbox>,
        now: u64,
        target: u64,
        longest: u64,
    ) -> MutexGuard<'a, Outbox> {
        let seen = self.gate.openings();
        let watch = outbox.furthest_behind(target);
        let unheard = outbox.has_unheard();
        drop(outbox);
        // A reader that does not yet know the stream is not slow. It is notified here, while the writer waits for it.
        if unheard {
            self.answer_now.store(true, Ordering::Release);
            self.links.beat_soon();
        }
        // Lost acknowledgements are requested again.
        self.links.wake_by(now + longest.min(BEAT_UNACKED));
        match watch {
            Some(watch) => watch.wait_for(target, Duration::from_nanos(longest.min(LOOK_AGAIN))),
            None => self.links.clock.wait(&self.gate, seen, now + longest),
        }
        self.waited.fetch_add(self.links.clock.monotonic().saturating_sub(now), Ordering::Relaxed);
        lock(&self.outbox)
    }

    pub(super) fn send_if_due(&self, outbox: &mut Outbox, begun: Option<u64>, urgent: bool) {
        if urgent || outbox.is_full() {
            self.send(outbox);
        } else if let Some(now) = begun {
            let last = self.last_send.load(Ordering::Relaxed);
            let due = last.saturating_add(self.linger.load(Ordering::Relaxed));
            if last == 0 || now >= due {
                self.send(outbox);
            } else {
                self.links.wake_by(due);
            }
        }
    }

    pub(super) fn send(&self, outbox: &mut Outbox) {
        let clock = &self.links.clock;
        self.send_unsent(outbox);
        outbox.tell_clock(clock.discipline());
        let Some(bytes) = outbox.seal(clock.utc()) else { return };
        self.last_send.store(clock.monotonic(), Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        let (bytes, is_shared) = self.share(outbox, bytes);
        self.post(outbox, bytes, is_shared);
        if outbox.matched() > 0 {
            self.links.wake_by(clock.monotonic() + BEAT_UNACKED);
        }
    }

    /// Sends the batches that were sealed before the first reader was known.
    pub(super) fn send_unsent(&self, outbox: &mut Outbox) {
        for batch in outbox.take_unsent() {
            self.post(outbox, batch, false);
        }
    }

    /// Sends a batch, or the message with its position, to those who need it. `is_shared` is true if readers that follow the
    /// announcements have it.
    fn post(&self, outbox: &Outbox, bytes: Bytes, is_shared: bool) {
        let ways = outbox.ways(is_shared);
        let mut refused = ways.by_node && !self.send_to_group(outbox, &bytes) && self.node.send(bytes.clone()).is_err();
        refused |= ways.within && !self.send_within(bytes.clone());
        if let (true, Some((_, link))) = (ways.by_link, &self.direct) {
            refused |= link.send(bytes).is_err();
        }
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a batch to the readers that read this host alone; returns whether the engine took it.
    ///
    /// The outlet declares nothing: soon such a reader finds the batches in shared memory.
    fn send_within(&self, bytes: Bytes) -> bool {
        let outlet = self.within.get().or_else(|| {
            let key = self.links.keys.data_within(self.links.incarnation.boot, &self.topic, &self.partition);
            let class = if self.qos.urgent { Class::UrgentUndeclared } else { Class::Control };
            let made = self.links.engine.outlet(&key, class).ok()?;
            // Only the thread that holds the outbox comes here.
            Some(self.within.get_or_init(|| made))
        });
        outlet.is_some_and(|outlet| outlet.send(bytes).is_ok())
    }

    /// Puts a batch into shared memory if all readers can find it there, or one that reads this host alone. Returns the
    /// message to send, and whether the batch is there.
    fn share(&self, outbox: &Outbox, batch: Bytes) -> (Bytes, bool) {
        let by_all = outbox.shares_memory();
        if outbox.matched() == 0 || !by_all && !outbox.shares_memory_with_substitute() {
            return (batch, false);
        }
        let mut batches = lock(&self.batches_at);
        if let Batches::Unused(idle) = &mut *batches {
            *idle = idle.saturating_sub(batch.len().max(SHARED_AFTER / 64));
            if *idle == 0 || self.qos.direct {
                *batches = Batches::Wanted;
                self.links.wake_refetch_server.open();
            }
            return (batch, false);
        }
        let Batches::Ring(ring) = &mut *batches else { return (batch, false) };
        let Some(place) = ring.put(&batch) else { return (batch, false) };
        self.shared.fetch_add(1, Ordering::Relaxed);
        outbox.tell_attached();
        (if !by_all || batch.len() < SHARED_FROM { batch } else { batch::elsewhere(&batch, place) }, true)
    }

    /// Makes the ring for batches if the stream wants one.
    pub fn make_ring(&self) {
        if !matches!(*lock(&self.batches_at), Batches::Wanted) {
            return;
        }
        let credit = lock(&self.outbox).qos().credit;
        let made = self.links.shared_dir.as_ref().and_then(|dir| {
            let path = dir.join(format!("{}-{}.batches", self.links.incarnation, self.id));
            BatchRing::create(path, size_for(credit)).ok()
        });
        *lock(&self.batches_at) = made.map_or(Batches::Nowhere, Batches::Ring);
        // The next heartbeat informs readers of the announcements.
        self.links.beat_soon();
    }

    /// Sends samples that have lingered long enough; returns the time of the next call.
    pub fn flush_lingering(&self, now: u64) -> Option<u64> {
        let Ok(mut outbox) = self.outbox.try_lock() else {
            // Another thread is writing and will send or call again.
            return Some(now.saturating_add(self.linger.load(Ordering::Relaxed)));
        };
        if outbox.is_empty() {
            return None;
        }
        let due = self.last_send.load(Ordering::Relaxed).saturating_add(self.linger.load(Ordering::Relaxed));
        if now < due {
            return Some(due);
        }
        self.send(&mut outbox);
        None
    }

    pub fn send_now(&self) {
        self.send(&mut lock(&self.outbox));
    }

    /// Follows changed settings. What a stream has from its beginning stays ([`crate::topic_settings::Field::is_live`]).
    pub fn retune(&self, settings: &QosTable) {
        let Some(Tuned { default, attribute, part_of }) = &self.tuned else { return };
        let (attribute, part_of) = (attribute.as_deref(), part_of.as_ref());
        let subject = Subject { topic: &self.topic, partition: &self.partition, attribute, part_of };
        let Qos { pool, direct, urgent, .. } = self.qos;
        let qos = Qos { pool, direct, urgent, ..settings.over(default.clone(), &subject) };
        let mut outbox = lock(&self.outbox);
        if *outbox.qos() == qos {
            return;
        }
        self.linger.store(nanos(qos.linger), Ordering::Relaxed);
        outbox.retune(qos, self.links.engine.limits().batch, self.links.clock.monotonic());
        drop(outbox);
        // A sample may wait in its batch, and a writer for its readers, by the limits before.
        self.links.wake_by(0);
        self.gate.open();
    }
}
