//! Arriving batches: from the node, over a direct link, from shared memory or from a refetch. They go into their
//! stream's inbox, and on to the application.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use tampu_types::{BatchHeader, Incarnation};

use super::{
    Core, Item, Origin, Received,
    event::Gap,
    inbox::{Arrival, Handed, Inbox},
    loss::LossReason,
};
use crate::{
    access::Verb,
    clock::Gate,
    engine::Engine,
    error::BusError,
    links::{Links, lock},
    qos::{Hold, ReaderQos},
    wire::{
        batch::{FLAG_ELSEWHERE, Loaned},
        keys::ReaderInfo,
    },
};

impl Core {
    pub fn open(id: u32, card: ReaderInfo, qos: ReaderQos, links: Arc<Links>) -> Result<Arc<Core>, BusError> {
        let core = Arc::new(Core {
            id,
            qos,
            received: Mutex::default(),
            gate: Gate::default(),
            queued: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            alarmed: AtomicBool::new(false),
            ack_at: AtomicU64::new(u64::MAX),
            look_at_lives: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            refetches: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            forged: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            guards: Mutex::default(),
            page: OnceLock::new(),
            attached: Mutex::default(),
            grouped: AtomicBool::new(false),
            this: OnceLock::new(),
            card,
            links,
        });
        let _ = core.this.set(Arc::downgrade(&core));
        core.subscribe(core.links.engine.as_ref(), None)?;
        core.follow_groups();
        Ok(core)
    }

    /// Subscribes to what multicast groups bring, once this host's node has one. Writers learn it by the next marks.
    pub fn follow_groups(&self) {
        // A group brings samples of other hosts.
        if self.card.hold == Hold::Interim || self.links.groups().groups.is_empty() || self.grouped.load(Ordering::Acquire) {
            return;
        }
        let (keys, boot) = (&self.links.keys, self.links.incarnation.boot);
        for pattern in keys.group_patterns(boot, &self.card.topics, &self.card.partitions) {
            let Some(core) = self.this.get().cloned() else { return };
            let deliver = Arc::new(move |bytes: Bytes, key: &str| {
                let Some(core) = core.upgrade() else { return };
                if let Some(host) = core.links.keys.host_of(key) {
                    core.arrived(bytes, Origin::Group(host));
                }
            });
            // Without the subscription writers send to this host alone.
            let Ok(guard) = self.links.engine.subscribe(&pattern, deliver) else { return };
            lock(&self.guards).push(guard);
        }
        self.grouped.store(true, Ordering::Release);
        lock(&self.received).stream_states.values().for_each(|state| state.owes.store(true, Ordering::Release));
        self.ack_by(self.links.clock.monotonic());
    }

    /// Subscribes on the bus, or on a direct link to one writer.
    pub(super) fn subscribe(&self, engine: &dyn Engine, writer: Option<Incarnation>) -> Result<(), BusError> {
        let (keys, ReaderInfo { topics, partitions, .. }) = (&self.links.keys, &self.card);
        let patterns = match (writer, self.card.hold) {
            // Under the other keys it would be sent the samples of all hosts.
            (None, Hold::Interim) => keys.data_patterns_within(self.links.incarnation.boot, topics, partitions),
            _ => keys.data_patterns("*", topics, partitions),
        };
        for pattern in patterns {
            let Some(core) = self.this.get().cloned() else { continue };
            let deliver = Arc::new(move |bytes: Bytes, key: &str| {
                let Some(core) = core.upgrade() else { return };
                match (writer, core.links.keys.host_of(key)) {
                    (Some(writer), _) => core.arrived(bytes, Origin::Participant(writer)),
                    (None, Some(host)) => core.arrived(bytes, Origin::Host(host)),
                    (None, None) => {}
                }
            });
            lock(&self.guards).push(engine.subscribe(&pattern, deliver)?);
        }
        Ok(())
    }

    /// Announces the reader; writers answer with offers. It comes after the subscriptions, so that no offered sample is
    /// missed.
    pub fn announce(&self) -> Result<(), BusError> {
        let guard = self.links.engine.announce(&self.links.keys.reader(&self.card))?;
        lock(&self.guards).push(guard);
        Ok(())
    }

    pub(super) fn has_room(&self) -> bool {
        let room = self.queued.load(Ordering::Acquire) < self.qos.queue;
        if !room {
            self.starved.store(true, Ordering::Release);
        }
        room
    }

    /// Processes a batch from the node, a direct link or a refetch.
    pub(super) fn arrived(&self, bytes: Bytes, origin: Origin<'_>) {
        let (bytes, header) = match self.batch(bytes) {
            Some((bytes, header)) => (bytes, header),
            None => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        self.batches.fetch_add(1, Ordering::Relaxed);
        let now = self.links.clock.monotonic();
        let arrival = Arrival { first: header.first, next: header.next(), bytes, received: self.links.clock.utc() };
        let key = (header.incarnation, header.stream);
        let mut room = self.has_room();
        let mut received = lock(&self.received);
        if received.ended.contains(&header.incarnation) {
            return;
        }
        if !self.heard(&mut received, header.incarnation, &header.source, origin, now) {
            return;
        }
        if !room && !self.qos.reliable {
            room = self.drop_oldest(&mut received);
        }
        if let (Origin::Host(host) | Origin::Group(host), Some(state)) = (origin, received.stream_states.get(&key))
            && !self.links.may(host, Verb::Write, &state.info.topic)
        {
            return;
        }
        let mut out = Vec::new();
        let inbox = received.inboxes.entry(key).or_insert_with(|| self.new_inbox(key));
        if matches!(origin, Origin::Group(_)) {
            // Readers of one batch ask at different times.
            let spread = (u64::from(self.links.incarnation.pid) ^ self.links.incarnation.start >> 10 ^ u64::from(self.id)) % 16;
            inbox.came_by_group(arrival.next, now, spread);
        }
        inbox.arrived(arrival, room, now, &mut out);
        let ask_at = inbox.next_ask();
        self.hand_on(&mut received, key, out);
        drop(received);
        if let Some(when) = ask_at {
            self.links.wake_by(when);
        }
    }

    /// Returns the batch itself, or the batch in shared memory to which it refers. A batch overwritten there is missed
    /// like one dropped on its way, and requested again.
    fn batch(&self, bytes: Bytes) -> Option<(Bytes, BatchHeader)> {
        let (header, body) = BatchHeader::decode(&bytes).ok()?;
        if header.domain != self.links.domain {
            return None;
        }
        if header.flags & FLAG_ELSEWHERE == 0 {
            // A count that exceeds the body would make readers walk for hours over no data.
            return (header.count as usize <= body.len() / 4).then_some((bytes, header));
        }
        let place = Loaned::decode(body).ok()?;
        let stream_state = lock(&self.received).stream_states.get(&(header.incarnation, header.stream)).cloned()?;
        let batch = stream_state.batches()?.at(place)?;
        let (found, body) = BatchHeader::decode(&batch).ok()?;
        let same = found.incarnation == header.incarnation && found.stream == header.stream && found.first == header.first;
        (same && found.flags & FLAG_ELSEWHERE == 0 && found.count as usize <= body.len() / 4).then_some((batch, found))
    }

    /// Makes room for newer batches, which a reader without refetches prefers. Returns whether there is room. It frees
    /// half the queue at once, so that this is rare.
    fn drop_oldest(&self, received: &mut Received) -> bool {
        let queue = std::mem::take(&mut received.queue);
        // The index in the new queue of each stream's last entry, if that is a loss. A loss right after it is merged into it.
        let mut losses: HashMap<(Incarnation, u32), usize> = HashMap::new();
        for item in queue {
            let gap = match item {
                Item::Batch { stream_state, arrival, skip } if self.queued.load(Ordering::Acquire) >= self.qos.queue / 2 => {
                    let (from, to) = (arrival.first + skip, arrival.next);
                    self.lost.fetch_add(to - from, Ordering::Relaxed);
                    self.queued.fetch_sub(arrival.bytes.len(), Ordering::AcqRel);
                    Gap { stream: stream_state.info.clone(), from, to: Some(to), why: LossReason::Dropped }
                }
                Item::Lost(gap) => gap,
                other => {
                    if let Item::Batch { stream_state, .. } = &other {
                        losses.remove(&(stream_state.info.incarnation, stream_state.info.stream));
                    }
                    received.queue.push_back(other);
                    continue;
                }
            };
            let key = (gap.stream.incarnation, gap.stream.stream);
            if let Some(Item::Lost(before)) = losses.get(&key).and_then(|&at| received.queue.get_mut(at))
                && before.to == Some(gap.from)
            {
                before.to = gap.to;
                continue;
            }
            losses.insert(key, received.queue.len());
            received.queue.push_back(Item::Lost(gap));
        }
        self.has_room()
    }

    pub(super) fn new_inbox(&self, key: (Incarnation, u32)) -> Inbox {
        let resume = self.qos.resume.iter().find(|&&(incarnation, stream, _)| (incarnation, stream) == key);
        Inbox::new(self.qos.reliable, self.qos.history, resume.map(|&(_, _, next)| next), self.qos.queue)
    }

    pub(super) fn hand_on(&self, received: &mut Received, key: (Incarnation, u32), out: Vec<Handed>) {
        if out.is_empty() {
            return;
        }
        // Nothing is delivered before the offer, and the offer brings the stream_state.
        let Some(stream_state) = received.stream_states.get(&key).cloned() else { return };
        for handed in out {
            let item = match handed {
                Handed::Batch { arrival, skip } => {
                    self.queued.fetch_add(arrival.bytes.len(), Ordering::AcqRel);
                    Item::Batch { stream_state: stream_state.clone(), arrival, skip }
                }
                Handed::Lost { from, to, why } => {
                    self.lost.fetch_add(to.map_or(0, |to| to - from), Ordering::Relaxed);
                    Item::Lost(Gap { stream: stream_state.info.clone(), from, to, why })
                }
            };
            received.queue.push_back(item);
        }
        self.wake();
    }

    /// Connects to writers that offer direct links; connecting may take a while.
    pub fn connect_direct(&self) {
        let offered: Vec<(Incarnation, String, Option<String>)> = lock(&self.received)
            .direct
            .iter_mut()
            .filter(|(_, (_, tried))| !tried)
            .map(|(incarnation, (endpoint, tried))| {
                *tried = true;
                (*incarnation, endpoint.clone(), self.links.proved(&self.links.chunk_of(*incarnation)))
            })
            .collect();
        for (writer, endpoint, host) in offered {
            let linked = self.links.engine.connect_direct(&endpoint, host.as_deref()).map_err(BusError::from);
            if linked.and_then(|link| self.subscribe_link(link, writer)).is_err() {
                // The node carries the messages instead of the link.
                continue;
            }
            for (_, stream_state) in lock(&self.received).stream_states.iter().filter(|(key, _)| key.0 == writer) {
                stream_state.linked.store(true, Ordering::Release);
                stream_state.owes.store(true, Ordering::Release);
            }
            self.ack_by(0);
        }
    }

    fn subscribe_link(&self, link: Arc<dyn Engine>, writer: Incarnation) -> Result<(), BusError> {
        self.subscribe(link.as_ref(), Some(writer))?;
        lock(&self.guards).push(Box::new(link));
        Ok(())
    }
}
