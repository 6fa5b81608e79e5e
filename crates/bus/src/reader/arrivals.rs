//! Batches that come: from the node, over a direct link, out of shared memory or fetched again; into their stream's inbox, and
//! on to the application.

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
    Core, Item, Received,
    event::Gap,
    inbox::{Arrival, Handed, Inbox},
    loss::LossReason,
};
use crate::{
    clock::Gate,
    engine::Engine,
    error::BusError,
    links::{Links, lock},
    qos::ReaderQos,
    wire::{
        batch::{FLAG_ELSEWHERE, Loaned},
        keys::ReaderCard,
    },
};

impl Core {
    pub fn open(id: u32, card: ReaderCard, qos: ReaderQos, links: Arc<Links>) -> Result<Arc<Core>, BusError> {
        let core = Arc::new(Core {
            id,
            qos,
            received: Mutex::default(),
            gate: Gate::default(),
            queued: AtomicUsize::new(0),
            starved: AtomicBool::new(false),
            alarmed: AtomicBool::new(false),
            ack_at: AtomicU64::new(u64::MAX),
            batches: AtomicU64::new(0),
            refetches: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            guards: Mutex::default(),
            page: OnceLock::new(),
            attached: Mutex::default(),
            this: OnceLock::new(),
            card,
            links,
        });
        // Set once, here.
        let _ = core.this.set(Arc::downgrade(&core));
        core.subscribe(core.links.engine.as_ref())?;
        Ok(core)
    }

    pub(super) fn subscribe(&self, engine: &dyn Engine) -> Result<(), BusError> {
        for pattern in self.links.keys.data_patterns(&self.card.topics, &self.card.partitions) {
            let Some(core) = self.this.get().cloned() else { continue };
            let deliver = Arc::new(move |bytes: Bytes| {
                if let Some(core) = core.upgrade() {
                    core.arrived(bytes);
                }
            });
            lock(&self.guards).push(engine.subscribe(&pattern, deliver)?);
        }
        Ok(())
    }

    /// Announces the reader; writers answer with offers. After the subscriptions, so that nothing offered is missed.
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

    /// A batch came, from the node, a direct link or a refetch.
    pub(super) fn arrived(&self, bytes: Bytes) {
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
        if !room && !self.qos.reliable {
            room = self.drop_oldest(&mut received);
        }
        let mut out = Vec::new();
        let inbox = received.inboxes.entry(key).or_insert_with(|| self.new_inbox(key));
        inbox.arrived(arrival, room, now, &mut out);
        let ask_at = inbox.next_ask();
        self.heard(&mut received, header.incarnation, &header.source, now);
        self.hand_on(&mut received, key, out);
        drop(received);
        if let Some(when) = ask_at {
            self.links.pulse_by(when);
        }
    }

    /// The batch that came, or the one in shared memory that it speaks of. One that is overwritten there is missed as one that
    /// was dropped on its way, and fetched again.
    fn batch(&self, bytes: Bytes) -> Option<(Bytes, BatchHeader)> {
        let (header, body) = BatchHeader::decode(&bytes).ok()?;
        if header.domain != self.links.domain {
            return None;
        }
        if header.flags & FLAG_ELSEWHERE == 0 {
            // A count that its body cannot hold would have readers walk for hours through nothing.
            return (header.count as usize <= body.len() / 4).then_some((bytes, header));
        }
        let place = Loaned::decode(body).ok()?;
        let lane = lock(&self.received).lanes.get(&(header.incarnation, header.stream)).cloned()?;
        let batch = lane.batches()?.at(place)?;
        let (found, body) = BatchHeader::decode(&batch).ok()?;
        let same = found.incarnation == header.incarnation && found.stream == header.stream && found.first == header.first;
        (same && found.flags & FLAG_ELSEWHERE == 0 && found.count as usize <= body.len() / 4).then_some((batch, found))
    }

    /// Makes room for newer batches: a reader that does not heal would rather have those. Says whether there is any. Frees half the
    /// queue at once, so that this is rare.
    fn drop_oldest(&self, received: &mut Received) -> bool {
        let queue = std::mem::take(&mut received.queue);
        // Where each stream's last word stands in the new queue, if that is a loss: what follows it is one with it.
        let mut losses: HashMap<(Incarnation, u32), usize> = HashMap::new();
        for item in queue {
            let gap = match item {
                Item::Batch { lane, arrival, skip } if self.queued.load(Ordering::Acquire) >= self.qos.queue / 2 => {
                    let (from, to) = (arrival.first + skip, arrival.next);
                    self.lost.fetch_add(to - from, Ordering::Relaxed);
                    self.queued.fetch_sub(arrival.bytes.len(), Ordering::AcqRel);
                    Gap { stream: lane.info.clone(), from, to: Some(to), why: LossReason::Dropped }
                }
                Item::Lost(gap) => gap,
                other => {
                    if let Item::Batch { lane, .. } = &other {
                        losses.remove(&(lane.info.incarnation, lane.info.stream));
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
        // Nothing is handed on before the offer, and the lane comes with the offer.
        let Some(lane) = received.lanes.get(&key).cloned() else { return };
        for handed in out {
            let item = match handed {
                Handed::Batch { arrival, skip } => {
                    self.queued.fetch_add(arrival.bytes.len(), Ordering::AcqRel);
                    Item::Batch { lane: lane.clone(), arrival, skip }
                }
                Handed::Lost { from, to, why } => {
                    self.lost.fetch_add(to.map_or(0, |to| to - from), Ordering::Relaxed);
                    Item::Lost(Gap { stream: lane.info.clone(), from, to, why })
                }
            };
            received.queue.push_back(item);
        }
        self.wake();
    }

    /// Connects to writers that offer direct links; connecting may take a while.
    pub fn connect_direct(&self) {
        let offered: Vec<(Incarnation, String)> = lock(&self.received)
            .direct
            .iter_mut()
            .filter(|(_, (_, tried))| !tried)
            .map(|(incarnation, (endpoint, tried))| {
                *tried = true;
                (*incarnation, endpoint.clone())
            })
            .collect();
        for (writer, endpoint) in offered {
            let linked = self.links.engine.connect_direct(&endpoint).map_err(BusError::from);
            if linked.and_then(|link| self.subscribe_link(link)).is_err() {
                // The node carries everything the link would have.
                continue;
            }
            for (_, lane) in lock(&self.received).lanes.iter().filter(|(key, _)| key.0 == writer) {
                lane.linked.store(true, Ordering::Release);
                lane.owes.store(true, Ordering::Release);
            }
            self.ack_by(0);
        }
    }

    fn subscribe_link(&self, link: Arc<dyn Engine>) -> Result<(), BusError> {
        self.subscribe(link.as_ref())?;
        lock(&self.guards).push(Box::new(link));
        Ok(())
    }
}
