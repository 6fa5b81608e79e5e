//! Reading topics: every stream in order, holes healed or told, at the application's pace.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_types::{BatchHeader, Incarnation, Partition, SourceName, TopicName};

use self::{
    event::Place,
    inbox::{Arrival, Handed, Inbox},
    lane::Lane,
};
pub use self::{
    event::{Event, Gap, Payload, Sample, SourceChange, SourceState},
    lane::StreamInfo,
    loss::LossReason,
};
use crate::{
    clock::Gate,
    engine::{Engine, Fate, Guard},
    error::BusError,
    links::{Links, lock},
    qos::{Ack, ReaderQos},
    shared::{BatchView, LOAN_UNIT, Progress, ProgressPage, whose},
    wire::{
        batch::{FLAG_ANSWER, FLAG_ELSEWHERE, Loaned, Piece, sample_at},
        control::{Acknowledgement, Heartbeat, Mark, Offer},
        keys::ReaderCard,
        refetch::{Refetch, Shelf},
    },
    writer::TypeTag,
};

mod event;
mod inbox;
mod lane;
mod loss;

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

    fn subscribe(&self, engine: &dyn Engine) -> Result<(), BusError> {
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

    fn has_room(&self) -> bool {
        let room = self.queued.load(Ordering::Acquire) < self.qos.queue;
        if !room {
            self.starved.store(true, Ordering::Release);
        }
        room
    }

    /// A batch came, from the node, a direct link or a refetch.
    fn arrived(&self, bytes: Bytes) {
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

    fn new_inbox(&self, key: (Incarnation, u32)) -> Inbox {
        let resume = self.qos.resume.iter().find(|&&(incarnation, stream, _)| (incarnation, stream) == key);
        Inbox::new(self.qos.reliable, self.qos.history, resume.map(|&(_, _, next)| next), self.qos.queue)
    }

    fn heard(&self, received: &mut Received, from: Incarnation, source: &SourceName, now: u64) {
        let change = |state| Item::Source(SourceChange { source: source.clone(), incarnation: from, state });
        match received.sources.get_mut(&from) {
            Some(heard) => {
                heard.last = now;
                if std::mem::take(&mut heard.silent) {
                    heard.absent_since = None;
                    received.queue.push_back(change(SourceState::Returned));
                    self.wake();
                }
            }
            None => {
                let heard = Heard { source: source.clone(), last: now, silent: false, absent_since: None };
                received.sources.insert(from, heard);
                received.queue.push_back(change(SourceState::Appeared));
                self.wake();
            }
        }
    }

    fn hand_on(&self, received: &mut Received, key: (Incarnation, u32), out: Vec<Handed>) {
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

    /// A writer's participant has spoken; `offers` are those for this reader.
    pub fn heartbeat(&self, beat: &Heartbeat, offers: &[&Offer]) {
        let Ok(source) = SourceName::new(beat.source.as_str()) else { return };
        // A heartbeat speaks of what is on the boards already.
        self.look();
        let now = self.links.clock.monotonic();
        let mut received = lock(&self.received);
        if received.ended.contains(&beat.from) {
            return;
        }
        if beat.leaving && offers.is_empty() && !received.sources.contains_key(&beat.from) {
            // Nothing of it was ever read here.
            return;
        }
        self.heard(&mut received, beat.from, &source, now);
        if self.qos.direct && !beat.direct.is_empty() && !received.direct.contains_key(&beat.from) {
            received.direct.insert(beat.from, (beat.direct.clone(), false));
            self.links.wake_librarian.open();
        }
        let mut ack_by = u64::MAX;
        for offer in offers {
            let key = (beat.from, offer.stream);
            let Some(lane) = self.lane(&mut received, beat, &source, offer) else { continue };
            let mut out = Vec::new();
            let inbox = received.inboxes.entry(key).or_insert_with(|| self.new_inbox(key));
            let begins = !inbox.has_begun();
            let before = inbox.expected();
            inbox.offered(offer.start, offer.lowest, offer.next, now, &mut out);
            if begins {
                let start = out.first().map(|handed| match handed {
                    Handed::Batch { arrival, skip } => arrival.first + skip,
                    Handed::Lost { from, .. } => *from,
                });
                lane.take(start.unwrap_or(inbox.expected()).max(before));
            }
            if beat.leaving {
                inbox.writer_left(&mut out);
            }
            if let Some(when) = inbox.next_ask() {
                self.links.pulse_by(when);
            }
            // Who does not heal owes no word of how far it is, but one on the writer's host must get through that it can be told
            // by the board: whatever is sent instead comes through sockets.
            lane.owes.store(self.qos.reliable || begins || lane.progress.is_some(), Ordering::Release);
            lane.watched.store(offer.watches, Ordering::Release);
            if offer.answer_now {
                lane.awaited.fetch_max(offer.next, Ordering::AcqRel);
            }
            if offer.board && !lane.attached.load(Ordering::Acquire) {
                self.attach(&lane);
                ack_by = now;
            }
            ack_by = ack_by.min(if offer.answer_now || begins { now } else { now + ACK_PATIENCE });
            self.hand_on(&mut received, key, out);
        }
        if beat.leaving {
            self.end_source(&mut received, beat.from, SourceState::Left);
        }
        drop(received);
        if ack_by < u64::MAX {
            self.ack_by(ack_by);
        }
    }

    fn lane(&self, received: &mut Received, beat: &Heartbeat, source: &SourceName, offer: &Offer) -> Option<Arc<Lane>> {
        let key = (beat.from, offer.stream);
        if let Some(lane) = received.lanes.get(&key) {
            return Some(lane.clone());
        }
        let info = StreamInfo {
            source: source.clone(),
            incarnation: beat.from,
            stream: offer.stream,
            topic: TopicName::new(offer.topic.as_str()).ok()?,
            partition: Partition::from_key(&offer.partition)?,
            type_tag: TypeTag { id: offer.type_id, version: offer.type_version },
        };
        let same_host = self.links.incarnation.shares_host_with(beat.from);
        let progress = if same_host { self.progress(key) } else { None };
        let lane = Arc::new(Lane::new(info, self.links.shared_dir.clone().filter(|_| same_host), progress));
        lane.credit.store(offer.credit as usize, Ordering::Relaxed);
        received.lanes.insert(key, lane.clone());
        Some(lane)
    }

    /// A slot of this reader's page, for one more stream.
    fn progress(&self, (writer, stream): (Incarnation, u32)) -> Option<Progress> {
        let page =
            self.page.get_or_init(|| ProgressPage::create(self.links.progress_page(self.links.incarnation, self.id)?).ok());
        page.as_ref()?.slot(whose(writer, stream))
    }

    // --- the boards of writers on this host ---

    /// Takes what writers have put on their boards.
    pub fn look(&self) {
        let Some(Some(page)) = self.page.get() else { return };
        for slot in page.news() {
            let lane = lock(&self.attached).get(&slot).and_then(Weak::upgrade);
            if let Some(lane) = lane {
                self.read_board(&lane);
            }
        }
    }

    fn read_board(&self, lane: &Lane) {
        while let Some(batch) = lane.batches().and_then(BatchView::next) {
            self.arrived(batch);
        }
    }

    /// Takes batches from a writer's board from now on, if it can be mapped and its news be heard.
    fn attach(&self, lane: &Arc<Lane>) {
        let Some(progress) = &lane.progress else { return };
        if lane.batches().is_some() && !lane.attached.swap(true, Ordering::AcqRel) {
            lock(&self.attached).insert(progress.number, Arc::downgrade(lane));
        }
    }

    /// The application has something to look at.
    fn wake(&self) {
        self.gate.open();
        if let Some(Some(page)) = self.page.get() {
            page.ring();
        }
    }

    /// Waits for news: `seen` is how often the gate had been opened when there was none.
    fn wait(&self, seen: u64, until: u64) {
        let clock = &self.links.clock;
        let Some(Some(page)) = self.page.get() else { return clock.wait(&self.gate, seen, until) };
        let timeout = Duration::from_nanos(until.saturating_sub(clock.monotonic()));
        page.sleep(timeout, || self.gate.openings() != seen);
    }

    fn ack_by(&self, when: u64) {
        if self.ack_at.fetch_min(when, Ordering::AcqRel) > when {
            self.links.pulse_by(when);
        }
    }

    // --- who is there ---

    /// A process's presence has gone (`fate` is what is known of it) or come back.
    pub fn presence(&self, of: Incarnation, here: bool, fate: Fate) {
        let now = self.links.clock.monotonic();
        let mut received = lock(&self.received);
        if here {
            received.ended.retain(|ended| *ended != of);
        }
        let Some(heard) = received.sources.get_mut(&of) else { return };
        if here {
            heard.absent_since = None;
            return;
        }
        heard.absent_since.get_or_insert(now);
        // The pulse ends the dead: their last samples may still be under way.
        if fate != Fate::Dead && !std::mem::replace(&mut heard.silent, true) {
            let change = SourceChange { source: heard.source.clone(), incarnation: of, state: SourceState::Silent };
            received.queue.push_back(Item::Source(change));
            self.wake();
        }
    }

    fn end_source(&self, received: &mut Received, of: Incarnation, state: SourceState) {
        let Some(heard) = received.sources.remove(&of) else { return };
        let ended: Vec<_> = received.inboxes.keys().copied().filter(|key| key.0 == of).collect();
        for key in ended {
            if let (Some(mut inbox), true) = (received.inboxes.remove(&key), state == SourceState::Died) {
                let mut out = Vec::new();
                inbox.writer_died(None, &mut out);
                self.hand_on(received, key, out);
            }
            received.lanes.remove(&key);
        }
        received.direct.remove(&of);
        if received.ended.len() == ENDED {
            received.ended.pop_front();
        }
        received.ended.push_back(of);
        let change = SourceChange { source: heard.source, incarnation: of, state };
        received.queue.push_back(Item::Source(change));
        self.wake();
    }

    // --- what the pulse does ---

    /// Does what is due (`nodes` are the boots of the hosts that can be reached, `is_here` says whose presence there is);
    /// returns when it wants to be called next.
    pub fn pulse(&self, now: u64, nodes: &[u32], is_here: impl Fn(Incarnation) -> bool) -> u64 {
        // Before anything is missed, or anybody buried.
        self.look();
        let next_ack = self.acknowledge_due(now);
        let next_ask = self.ask_due(now);
        let next_look = self.look_for_silence(now, nodes, is_here);
        next_ack.min(next_ask).min(next_look)
    }

    fn acknowledge_due(&self, now: u64) -> u64 {
        let at = self.ack_at.load(Ordering::Acquire);
        if now < at {
            return at;
        }
        self.ack_at.store(u64::MAX, Ordering::Release);
        let owing: Vec<Arc<Lane>> =
            lock(&self.received).lanes.values().filter(|lane| lane.owes.swap(false, Ordering::AcqRel)).cloned().collect();
        let mut by_writer: HashMap<Incarnation, Vec<Mark>> = HashMap::new();
        for lane in owing {
            by_writer.entry(lane.info.incarnation).or_default().push(self.mark(&lane, false));
        }
        for (to, marks) in by_writer {
            self.tell(to, marks);
        }
        self.ack_at.load(Ordering::Acquire)
    }

    fn mark(&self, lane: &Lane, leaving: bool) -> Mark {
        lane.unacked.store(0, Ordering::Relaxed);
        Mark {
            reader: self.id,
            stream: lane.info.stream,
            next: lane.taken.load(Ordering::Acquire),
            needs_copies: lane.needs_copies.load(Ordering::Acquire),
            leaving,
            linked: lane.linked.load(Ordering::Acquire),
            attached: lane.attached.load(Ordering::Acquire),
            slot: lane.progress.as_ref().map_or(0, |progress| progress.number),
        }
    }

    fn tell(&self, to: Incarnation, marks: Vec<Mark>) {
        let acknowledgement = Acknowledgement { from: self.links.incarnation, marks };
        // A lost acknowledgement is repeated at the writer's next heartbeat.
        let _ = self.links.tell(to, acknowledgement.encode());
    }

    fn ask_due(&self, now: u64) -> u64 {
        let room = self.queued.load(Ordering::Acquire) < self.qos.queue / 2;
        let mut questions = Vec::new();
        let mut next = u64::MAX;
        {
            let mut received = lock(&self.received);
            let absent: Vec<Incarnation> = received
                .sources
                .iter()
                .filter(|(_, heard)| heard.absent_since.is_some())
                .map(|(incarnation, _)| *incarnation)
                .collect();
            for (&(incarnation, stream), inbox) in &mut received.inboxes {
                if absent.contains(&incarnation) {
                    continue;
                }
                if let Some(hole) = inbox.hole_to_ask(room, now) {
                    questions.push((incarnation, stream, hole));
                }
                if room && let Some(when) = inbox.next_ask() {
                    next = next.min(when.max(now + 1_000_000));
                }
            }
        }
        for (incarnation, stream, hole) in questions {
            self.ask(incarnation, stream, hole);
        }
        next
    }

    fn ask(&self, writer: Incarnation, stream: u32, hole: std::ops::Range<u64>) {
        self.refetches.fetch_add(1, Ordering::Relaxed);
        let question = Refetch { stream, from: hole.start, to: hole.end, limit: REFETCH_LIMIT };
        let Some(core) = self.this.get().cloned() else { return };
        let mut shelf = None;
        let answers = Box::new(move |answer| {
            use crate::engine::Answer;
            let Some(core) = core.upgrade() else { return };
            match answer {
                Answer::Part(part) => match Shelf::decode(&part) {
                    Some(told) => shelf = Some(told),
                    None => core.arrived(part),
                },
                Answer::End | Answer::Unanswered => core.refetched((writer, stream), &hole, shelf.take()),
            }
        });
        let key = self.links.keys.refetch(writer);
        let timeout = Duration::from_millis(900);
        if self.links.engine.ask(&key, Bytes::from(question.encode()), timeout, answers).is_err() {
            let now = self.links.clock.monotonic();
            if let Some(inbox) = lock(&self.received).inboxes.get_mut(&(writer, stream)) {
                inbox.unanswered(now);
            }
        }
    }

    fn refetched(&self, key: (Incarnation, u32), asked: &std::ops::Range<u64>, shelf: Option<Shelf>) {
        let now = self.links.clock.monotonic();
        let mut received = lock(&self.received);
        let mut out = Vec::new();
        let Some(inbox) = received.inboxes.get_mut(&key) else { return };
        match shelf {
            Some(shelf) => inbox.answered(asked, shelf.lowest, shelf.next, now, &mut out),
            None => inbox.unanswered(now),
        }
        let next = inbox.next_ask();
        self.hand_on(&mut received, key, out);
        drop(received);
        if let Some(when) = next {
            self.links.pulse_by(when);
        }
    }

    fn look_for_silence(&self, now: u64, nodes: &[u32], is_here: impl Fn(Incarnation) -> bool) -> u64 {
        let mut received = lock(&self.received);
        if received.sources.is_empty() {
            return u64::MAX;
        }
        let mut changes = Vec::new();
        let mut ended = Vec::new();
        let mut doubtful = false;
        for (&incarnation, heard) in &mut received.sources {
            // Presence overtakes samples: one that came after its writer was gone makes nobody live again.
            if heard.silent && heard.absent_since.is_none() && !is_here(incarnation) {
                heard.absent_since = Some(now);
            }
            if let Some(since) = heard.absent_since {
                // A killed process may still be leaving the process table when its connection breaks.
                doubtful |= now.saturating_sub(since) < SILENCE;
                let dead = match self.links.engine.fate(incarnation) {
                    Fate::Dead => now >= since + LAST_WORDS,
                    Fate::Unknown if nodes.contains(&incarnation.boot) => now >= since + LAST_WORDS,
                    _ => now >= since + FORGET,
                };
                if dead {
                    ended.push(incarnation);
                }
            } else if !heard.silent && now.saturating_sub(heard.last) > SILENCE {
                heard.silent = true;
                let (source, state) = (heard.source.clone(), SourceState::Silent);
                changes.push(Item::Source(SourceChange { source, incarnation, state }));
            }
        }
        let news = !changes.is_empty();
        received.queue.extend(changes);
        for incarnation in ended {
            self.end_source(&mut received, incarnation, SourceState::Died);
        }
        if news {
            self.wake();
        }
        now + if doubtful { 20_000_000 } else { 250_000_000 }
    }

    // --- what the librarian does ---

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

    // --- what the application does ---

    fn take(&self, into: &mut VecDeque<Item>) {
        std::mem::swap(&mut lock(&self.received).queue, into);
    }

    /// The application has done with a batch.
    fn done(&self, lane: &Lane, next: u64, size: usize, weight: usize) {
        let before = self.queued.fetch_sub(size, Ordering::AcqRel);
        if before - size < self.qos.queue / 2 && self.starved.swap(false, Ordering::AcqRel) {
            self.links.pulse_by(0);
        }
        if self.qos.ack == Ack::OnTake {
            self.acknowledge(lane, next, weight);
        }
    }

    /// `weight` says how much speaks for telling the writer now, in bytes.
    fn acknowledge(&self, lane: &Lane, next: u64, weight: usize) {
        if !lane.take(next) || !self.qos.reliable {
            return;
        }
        let watched = lane.watched.load(Ordering::Acquire);
        let unacked = lane.unacked.fetch_add(weight, Ordering::Relaxed).saturating_add(weight);
        let awaited = lane.awaited.load(Ordering::Acquire);
        let arrived = awaited > 0 && next >= awaited && lane.awaited.swap(0, Ordering::AcqRel) > 0;
        if !watched && (arrived || unacked >= lane.credit.load(Ordering::Relaxed) / 4) {
            lane.owes.store(false, Ordering::Release);
            self.tell(lane.info.incarnation, vec![self.mark(lane, false)]);
        } else if !lane.owes.swap(true, Ordering::AcqRel) {
            self.ack_by(self.links.clock.monotonic() + ACK_PATIENCE);
        }
    }

    fn leave(&self) {
        lock(&self.guards).clear();
        let lanes: Vec<Arc<Lane>> = lock(&self.received).lanes.values().cloned().collect();
        for lane in lanes {
            self.tell(lane.info.incarnation, vec![self.mark(&lane, true)]);
        }
    }
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
