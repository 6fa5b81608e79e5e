//! A process on the bus: its writers, its readers, and the workers that keep the promises in the background.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_types::{Domain, Incarnation, Partition, PartitionFilter, SourceName, TopicFilter, TopicName, name::escape};

use crate::{
    access::{Access, HostRules, Principal, Verb, access_of_host, proof_in},
    ask::{Answers, Inflow},
    clock::Clock,
    connect::Settings,
    engine::{Answerer, Deliver, Engine, Fate, Guard, Presence, Question, Tick},
    error::{BusError, CallError},
    links::{Forgeries, Links, lock},
    nodes::Nodes,
    qos::{Hold, Qos, QosTable, ReaderQos},
    reader::{Core, Reader},
    wire::{
        control::{Acknowledgement, Control, Heartbeat, Offer},
        keys::ReaderInfo,
        refetch::Refetch,
    },
    writer::{BEAT_UNACKED, Stream, TypeTag, Writer},
};

/// Period of the heartbeats of an idle writer, in ns.
const BEAT_IDLE: u64 = 500_000_000;
/// Time in ns that a reader stays doubtful after its presence disappeared. Its process may have closed it, died, or be
/// cut off.
const DOUBT: u64 = 80_000_000;
/// Time in ns after which a reader whose process is still announced has closed. After a cut the announcements of a process go
/// one by one, and on a busy machine with pauses.
const CLOSED: u64 = 500_000_000;
/// Time in ns that a process has to announce its readers again after it has returned. The announcements return one by one,
/// in any order.
const RETURN: u64 = 3_000_000_000;
/// Time in ns for which samples are kept for an unreachable reader.
const FORGET: u64 = 60_000_000_000;
/// Longest wait for missing acknowledgements when a participant leaves.
const LEAVE: Duration = Duration::from_millis(500);

/// A process on the bus.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceInfo {
    /// Stable name of the source.
    pub source: SourceName,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
}

type WatchSources = Arc<dyn Fn(&SourceInfo, bool) + Send + Sync>;

#[derive(Default)]
struct Registry {
    streams: HashMap<u32, Arc<Stream>>,
    readers: HashMap<u32, Weak<Core>>,
    /// Readers on the bus, by (incarnation, reader).
    remote: HashMap<(Incarnation, u32), Remote>,
    sources: HashMap<Incarnation, SourceName>,
    nodes: Nodes,
    watchers: HashMap<u32, WatchSources>,
    questions: Vec<Box<dyn Question>>,
    /// Time of the last heartbeats, in monotonic ns.
    last_beat: u64,
    guards: Vec<Guard>,
}

struct Remote {
    card: ReaderInfo,
    doubted_since: Option<u64>,
    /// Time at which its process returned while the reader was doubtful; 0 if it did not.
    process_returned: u64,
}

pub(crate) struct Shared {
    pub links: Arc<Links>,
    qos: QosTable,
    registry: Mutex<Registry>,
    next_id: AtomicU32,
    leaving: AtomicBool,
    /// Time of the next look at the rules about topics, in monotonic ns.
    look_at_rules: AtomicU64,
    this: OnceLock<Weak<Shared>>,
    access: OnceLock<Access>,
}

/// A process's place on the bus. Cheap to clone; the bus is left when the last clone is dropped.
#[derive(Clone)]
pub struct Participant {
    shared: Arc<Shared>,
    _leave: Arc<Leave>,
}

struct Leave(Arc<Shared>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}

struct HeartbeatWorker(Arc<Shared>);
struct RefetchServer(Arc<Shared>);

impl Participant {
    /// Joins as configured: through this host's node, a hub elsewhere, or the other processes of this host.
    pub fn open(settings: Settings, source: SourceName) -> Result<Participant, BusError> {
        Participant::on(settings.open()?, settings.domain, source, settings.qos)
    }

    /// Joins a domain through an engine.
    pub fn on(engine: Arc<dyn Engine>, domain: Domain, source: SourceName, qos: QosTable) -> Result<Participant, BusError> {
        let links = Arc::new(Links::new(engine, domain, source));
        let shared = Arc::new(Shared {
            links,
            qos,
            registry: Mutex::default(),
            next_id: AtomicU32::new(0),
            leaving: AtomicBool::new(false),
            look_at_rules: AtomicU64::new(0),
            this: OnceLock::new(),
            access: OnceLock::new(),
        });
        // Set once, here.
        let _ = shared.this.set(Arc::downgrade(&shared));
        shared.declare()?;
        Ok(Participant { _leave: Arc::new(Leave(shared.clone())), shared })
    }

    /// Returns the incarnation of this process on the bus.
    pub fn incarnation(&self) -> Incarnation {
        self.shared.links.incarnation
    }

    /// Returns the installation that this process belongs to.
    pub fn domain(&self) -> &Domain {
        &self.shared.links.domain
    }

    /// Returns its stable name.
    pub fn source(&self) -> &SourceName {
        &self.shared.links.source
    }

    /// Returns the clock of the bus.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.shared.links.clock.clone()
    }

    /// Returns the name of this host that its certificate proves, in lower case; `None` if nothing proves names on this bus.
    pub fn host(&self) -> Option<Arc<str>> {
        self.shared.links.engine.host()
    }

    /// Returns the principal of a sender on this proved host, as the rules of `access` call it.
    pub fn sender(&self, access: &Access, host: Option<&str>) -> Principal {
        match host {
            None => access.others(),
            Some(host) if self.host().as_deref() == Some(host) => Principal::this_user(),
            Some(host) => Principal::Host(host.to_owned()),
        }
    }

    /// Returns the principal of a present process, as the rules of `access` call it.
    pub fn principal_of(&self, access: &Access, process: Incarnation) -> Principal {
        self.sender(access, self.shared.links.proved(&self.shared.links.chunk_of(process)).as_deref())
    }

    /// Returns true if a process on this proved host may be the one that another message names: no other host announces
    /// it.
    pub fn speaks_for(&self, host: Option<&str>, process: Incarnation) -> bool {
        host.is_none_or(|host| self.shared.links.speaks_for(&escape(host), process))
    }

    /// Returns the messages so far that named a process of another host than their own, which are refused.
    pub fn forgeries(&self) -> Forgeries {
        self.shared.links.forgeries()
    }

    /// Returns the quality of service configured for a topic.
    pub fn qos(&self, topic: &TopicName) -> Qos {
        self.shared.qos.of(topic)
    }

    /// Returns the quality of service of a topic with its own defaults, which the configuration overrides.
    pub fn qos_over(&self, default: Qos, topic: &TopicName) -> Qos {
        self.shared.qos.over(default, topic)
    }

    /// Returns the domain's part of the run-time directory, if the engine has one.
    fn domain_dir(&self) -> Option<&Path> {
        self.shared.links.shared_dir.as_ref()?.parent()
    }

    /// Returns the directory of the domain's log rings on this host; `None` without a run-time directory.
    pub fn log_rings(&self) -> Option<PathBuf> {
        Some(self.domain_dir()?.join("rings"))
    }

    /// Returns the access rules of this host: those that its node publishes, or the defaults.
    pub fn access(&self) -> Access {
        let links = &self.shared.links;
        let open = || match self.domain_dir() {
            Some(directory) => access_of_host(directory, &links.domain, &links.engine),
            None => Access::same_user(),
        };
        self.shared.access.get_or_init(open).clone()
    }

    /// Adds the proof to a message that this process belongs to the user of this host. Only a bus that the network
    /// reaches needs one.
    pub fn sealed(&self, name: &str, message: Bytes) -> Bytes {
        match self.domain_dir() {
            Some(directory) => proof_in(directory).seal(name, message),
            None => message,
        }
    }

    /// Opens a writer of a topic and partition.
    pub fn writer(&self, topic: &TopicName, partition: &Partition, tag: TypeTag, qos: Qos) -> Result<Writer, BusError> {
        let shared = &self.shared;
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(Stream::open(id, topic, partition, tag, qos, shared.links.clone())?);
        let mut registry = lock(&shared.registry);
        for remote in registry.remote.values() {
            shared.introduce(&stream, &remote.card);
        }
        registry.streams.insert(id, stream.clone());
        drop(registry);
        shared.links.beat_soon();
        Ok(Writer::new(stream))
    }

    /// Opens a reader of all streams under a pattern, of some partitions.
    pub fn reader(&self, topics: &TopicFilter, partitions: &PartitionFilter, qos: ReaderQos) -> Result<Reader, BusError> {
        let shared = &self.shared;
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let card = ReaderInfo {
            incarnation: shared.links.incarnation,
            reader: id,
            source: shared.links.source.as_str().to_lowercase(),
            topics: topics.clone(),
            partitions: partitions.clone(),
            reliable: qos.reliable,
            hold: qos.hold,
            direct: qos.direct,
        };
        let core = Core::open(id, card, qos, shared.links.clone())?;
        lock(&shared.registry).readers.insert(id, Arc::downgrade(&core));
        core.announce()?;
        Ok(Reader::new(core))
    }

    /// Answers questions under a service's name with plain octets until the guard is dropped. Services use
    /// [`serve`](crate::service::serve) instead.
    pub fn answer(&self, service: &TopicName, answerer: Answerer) -> Result<Guard, BusError> {
        Ok(self.shared.links.engine.answer(&self.shared.links.keys.questions(service), answerer)?)
    }

    /// Asks all processes that answer under a service's name, and returns the octets of their answers. Services use
    /// [`call`](crate::service::call) instead.
    pub fn ask(&self, service: &TopicName, question: Bytes, timeout: Duration) -> Result<Answers, CallError> {
        let inflow = Arc::new(Inflow::default());
        let into = inflow.clone();
        let links = &self.shared.links;
        let put = Box::new(move |answer| into.put(answer));
        links
            .engine
            .ask(&links.keys.service(service), question, timeout, put)
            .map_err(|why| CallError::NotSent { service: service.to_string(), why: why.to_string() })?;
        Ok(Answers { service: service.to_string(), inflow, clock: links.clock.clone(), timeout, parts: 0, ended: false })
    }

    /// Returns all present processes on the bus, including this one.
    pub fn sources(&self) -> Vec<SourceInfo> {
        self.shared.sources()
    }

    /// Reports if a reader holds this topic in full ([`Hold::Full`]), as a collector does for topics of logs.
    pub fn is_collected(&self, topic: &TopicName) -> bool {
        let registry = lock(&self.shared.registry);
        let mut collectors = registry.remote.values().filter(|remote| remote.card.hold == Hold::Full);
        collectors.any(|remote| remote.doubted_since.is_none() && remote.card.topics.matches(topic))
    }

    /// Reports if this host's node is on the bus.
    pub fn has_node(&self) -> bool {
        lock(&self.shared.registry).nodes.has(self.shared.links.incarnation.boot)
    }

    /// Calls `seen` for every process on the bus, and whenever one joins (true) or leaves (false), until the guard is
    /// dropped.
    pub fn watch_sources(&self, seen: impl Fn(&SourceInfo, bool) + Send + Sync + 'static) -> Guard {
        self.shared.watch_sources(seen)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl HostRules for Participant {
    fn access(&self) -> Access {
        Participant::access(self)
    }
}

struct Unwatch {
    shared: Weak<Shared>,
    id: u32,
}

impl Drop for Unwatch {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            lock(&shared.registry).watchers.remove(&self.id);
        }
    }
}

impl Shared {
    fn sources(&self) -> Vec<SourceInfo> {
        let registry = lock(&self.registry);
        let info = |(&incarnation, source): (&Incarnation, &SourceName)| SourceInfo { source: source.clone(), incarnation };
        registry.sources.iter().map(info).collect()
    }

    pub(crate) fn watch_sources(self: &Arc<Shared>, seen: impl Fn(&SourceInfo, bool) + Send + Sync + 'static) -> Guard {
        let seen: WatchSources = Arc::new(seen);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        lock(&self.registry).watchers.insert(id, seen.clone());
        for source in self.sources() {
            seen(&source, true);
        }
        Box::new(Unwatch { shared: Arc::downgrade(self), id })
    }

    /// Makes a callback that does nothing once the participant is gone.
    fn call<T: 'static>(&self, act: impl Fn(&Shared, T) + Send + Sync + 'static) -> Arc<dyn Fn(T) + Send + Sync> {
        let this = self.this.get().cloned().unwrap_or_default();
        Arc::new(move |news| {
            if let Some(shared) = this.upgrade() {
                act(&shared, news);
            }
        })
    }

    fn declare(self: &Arc<Shared>) -> Result<(), BusError> {
        let links = &self.links;
        let engine = &links.engine;
        let mut guards = vec![
            engine.subscribe(&links.keys.controls(links.incarnation), self.on_control())?,
            engine.answer(&links.keys.refetches(links.incarnation), self.call(|shared, question| shared.asked(question)))?,
            engine.watch(&links.keys.nodes(), self.call(|shared, seen: Presence| shared.node_seen(&seen)))?,
            engine.watch(&links.keys.presences(), self.call(|shared, seen: Presence| shared.source_seen(&seen)))?,
            engine.watch(&links.keys.readers(), self.call(|shared, seen: Presence| shared.reader_seen(&seen)))?,
            engine.drive(Arc::new(HeartbeatWorker(self.clone())), links.wake.clone())?,
            engine.drive(Arc::new(RefetchServer(self.clone())), links.wake_refetch_server.clone())?,
        ];
        // Last: any process that sees this one may send to it.
        guards.push(engine.announce(&links.keys.presence(links.incarnation, &links.source))?);
        lock(&self.registry).guards = guards;
        Ok(())
    }

    fn on_control(&self) -> Deliver {
        let this = self.this.get().cloned().unwrap_or_default();
        Arc::new(move |bytes: Bytes, key: &str| {
            if let Some(shared) = this.upgrade() {
                shared.told(&bytes, key);
            }
        })
    }

    /// Matches a reader with a stream if it reads it and may, and lets go of it otherwise.
    fn introduce(&self, stream: &Stream, card: &ReaderInfo) {
        let (of, reader) = (card.incarnation, card.reader);
        match (self.suits(stream, card), stream.has_reader(of, reader)) {
            (true, false) => stream.match_reader(card),
            (false, true) => stream.unmatch_reader(of, reader),
            _ => {}
        }
    }

    /// Returns true if a reader reads a stream, and may.
    fn suits(&self, stream: &Stream, card: &ReaderInfo) -> bool {
        // An interim reader serves only its own host: every host has one.
        let here = card.hold != Hold::Interim || card.incarnation.shares_host_with(self.links.incarnation);
        here && card.topics.matches(&stream.topic)
            && card.partitions.matches(&stream.partition)
            && self.links.may(&self.links.chunk_of(card.incarnation), Verb::Read, &stream.topic)
    }

    /// Matches the readers that the rules about topics let in, and lets go of the others.
    fn follow_rules(&self) {
        let registry = lock(&self.registry);
        for remote in registry.remote.values() {
            registry.streams.values().for_each(|stream| self.introduce(stream, &remote.card));
        }
        drop(registry);
        self.links.beat_soon();
    }

    /// Returns the proved name of the host that asks under this key.
    pub(crate) fn asking_host(&self, key: &str) -> Option<String> {
        self.links.proved(self.links.keys.host_of(key)?)
    }

    fn streams(&self) -> Vec<Arc<Stream>> {
        lock(&self.registry).streams.values().cloned().collect()
    }

    fn readers(&self) -> Vec<Arc<Core>> {
        let mut registry = lock(&self.registry);
        registry.readers.retain(|_, core| core.strong_count() > 0);
        registry.readers.values().filter_map(Weak::upgrade).collect()
    }

    // --- callbacks of the engine: they are quick and hold no lock while sending ---

    fn told(&self, bytes: &[u8], key: &str) {
        let Some(host) = self.links.keys.host_of(key) else { return };
        // Bytes that are no control message were not sent by a participant of this release, so no reply is sent.
        match Control::decode(bytes) {
            Ok(Control::Heartbeat(Heartbeat { from, .. }) | Control::Acknowledgement(Acknowledgement { from, .. }))
                if !self.links.speaks_for(host, from) =>
            {
                self.links.forged(host, from);
            }
            Ok(Control::Heartbeat(beat)) => {
                for core in self.readers() {
                    let offers: Vec<&Offer> = beat.offers.iter().filter(|offer| offer.reader == core.id).collect();
                    // The end also concerns a reader whose streams were all closed before.
                    if !offers.is_empty() || beat.offers.is_empty() || beat.leaving {
                        core.heartbeat(&beat, &offers, host);
                    }
                }
            }
            Ok(Control::Acknowledgement(acknowledgement)) => {
                for mark in &acknowledgement.marks {
                    let stream = lock(&self.registry).streams.get(&mark.stream).cloned();
                    if let Some(stream) = stream {
                        stream.acknowledge(acknowledgement.from, mark);
                    }
                }
            }
            Err(_) => {}
        }
    }

    fn asked(&self, question: Box<dyn Question>) {
        lock(&self.registry).questions.push(question);
        self.links.wake_refetch_server.open();
    }

    fn node_seen(&self, seen: &Presence) {
        let keys = &self.links.keys;
        let (Some(boot), Some(host)) = (keys.parse_node(&seen.key), keys.host_of(&seen.key)) else { return };
        lock(&self.registry).nodes.seen(boot, host, seen.here, self.links.clock.monotonic());
    }

    fn source_seen(&self, seen: &Presence) {
        let keys = &self.links.keys;
        let (Some((incarnation, source)), Some(host)) = (keys.parse_presence(&seen.key), keys.host_of(&seen.key)) else { return };
        if !self.accepts(incarnation, host, seen.here) {
            return;
        }
        let now = self.links.clock.monotonic();
        let mut registry = lock(&self.registry);
        let known =
            if seen.here { registry.sources.insert(incarnation, source.clone()) } else { registry.sources.remove(&incarnation) };
        if seen.here && known.is_none() {
            let Registry { remote, streams, .. } = &mut *registry;
            for remote in remote.values_mut().filter(|remote| remote.card.incarnation == incarnation) {
                remote.process_returned = now;
                // Rules are about its host, which was not known while it was away.
                streams.values().for_each(|stream| self.introduce(stream, &remote.card));
            }
        }
        let watchers: Vec<WatchSources> = registry.watchers.values().cloned().collect();
        drop(registry);
        if known.is_some() != seen.here {
            let info = SourceInfo { source, incarnation };
            watchers.iter().for_each(|watcher| watcher(&info, seen.here));
        }
        let fate = if seen.here { Fate::Alive } else { self.links.engine.fate(incarnation) };
        for core in self.readers() {
            core.presence(incarnation, seen.here, fate);
        }
        if !seen.here {
            self.links.wake_by(0);
        }
    }

    /// Notes the host that announces a participant, or no longer. Returns false if another host announces the same one.
    fn accepts(&self, incarnation: Incarnation, host: &str, here: bool) -> bool {
        if !here {
            return self.links.unbind(incarnation, host);
        }
        let is_its_host = self.links.bind(incarnation, host);
        if !is_its_host {
            self.links.forged(host, incarnation);
        }
        is_its_host
    }

    fn reader_seen(&self, seen: &Presence) {
        let keys = &self.links.keys;
        let (Some(card), Some(host)) = (keys.parse_reader(&seen.key), keys.host_of(&seen.key)) else { return };
        let key = (card.incarnation, card.reader);
        // A reader goes before or after its participant, whose binding says which host it is on.
        let is_its_host = if seen.here { self.links.bind(key.0, host) } else { self.links.speaks_for(host, key.0) };
        if !is_its_host {
            return self.links.forged(host, key.0);
        }
        if seen.here {
            let mut registry = lock(&self.registry);
            registry.remote.insert(key, Remote { card: card.clone(), doubted_since: None, process_returned: 0 });
            // Under the lock, so that a stream made meanwhile is introduced exactly once. A reader that is back is introduced
            // again: the rules may have changed while its host was not known.
            registry.streams.values().for_each(|stream| self.introduce(stream, &card));
            drop(registry);
            self.links.beat_soon();
            return;
        }
        let now = self.links.clock.monotonic();
        if let Some(remote) = lock(&self.registry).remote.get_mut(&key) {
            remote.doubted_since.get_or_insert(now);
        }
        if self.links.engine.fate(card.incarnation) != Fate::Dead {
            self.streams().iter().for_each(|stream| stream.doubt_reader(card.incarnation, card.reader));
        }
        self.links.wake_by(0);
    }

    // --- work of the heartbeat worker ---

    fn run_due(&self, now: u64) -> u64 {
        let mut next = now + BEAT_IDLE;
        if self.look_at_rules.load(Ordering::Relaxed) <= now {
            self.look_at_rules.store(now + BEAT_IDLE, Ordering::Relaxed);
            if self.links.rules_changed() {
                self.follow_rules();
            }
        }
        let streams = self.streams();
        for stream in &streams {
            next = next.min(stream.flush_lingering(now).unwrap_or(u64::MAX));
        }
        next = next.min(self.beat(&streams, now));
        let nodes = lock(&self.registry).nodes.clone();
        for core in self.readers() {
            next = next.min(core.run_due(now, &nodes, |incarnation| lock(&self.registry).sources.contains_key(&incarnation)));
        }
        next.min(self.settle_doubts(now))
    }

    /// Sends the heartbeats that are due; returns the time of the next ones.
    fn beat(&self, streams: &[Arc<Stream>], now: u64) -> u64 {
        let at_once = self.links.beat_now.swap(false, Ordering::AcqRel);
        let unacked = streams.iter().any(|stream| stream.wants_word());
        let period = if unacked { BEAT_UNACKED } else { BEAT_IDLE };
        let last = lock(&self.registry).last_beat;
        if !at_once && now < last + period {
            return last + period;
        }
        let mut offers: HashMap<Incarnation, Vec<Offer>> = HashMap::new();
        let mut done = Vec::new();
        for stream in streams {
            let owed = stream.offers(|to, offer| offers.entry(to).or_default().push(offer));
            if stream.closed.load(Ordering::Acquire) && !owed {
                done.push(stream.id);
            }
        }
        if self.leaving.load(Ordering::Acquire) {
            // Every process that may have read a sample is notified, also of streams that are already closed and settled.
            lock(&self.registry).remote.keys().for_each(|&(to, _)| {
                offers.entry(to).or_default();
            });
        }
        self.send_beats(offers, streams);
        let mut registry = lock(&self.registry);
        registry.last_beat = now;
        done.iter().for_each(|id| {
            registry.streams.remove(id);
        });
        now + period
    }

    fn send_beats(&self, offers: HashMap<Incarnation, Vec<Offer>>, streams: &[Arc<Stream>]) {
        let direct = streams.iter().find_map(|stream| stream.direct_endpoint()).unwrap_or_default();
        let leaving = self.leaving.load(Ordering::Acquire);
        for (to, offers) in offers {
            let beat = Heartbeat {
                from: self.links.incarnation,
                source: self.links.source.as_str().to_owned(),
                direct: direct.to_owned(),
                leaving,
                offers,
            };
            // The next heartbeat replaces a lost one.
            let _ = self.links.tell(to, beat.encode());
        }
    }

    /// Decides about readers whose presence has disappeared.
    fn settle_doubts(&self, now: u64) -> u64 {
        let mut gone = Vec::new();
        let mut next = u64::MAX;
        {
            let mut registry = lock(&self.registry);
            let Registry { remote, streams, sources, nodes, .. } = &mut *registry;
            remote.retain(|&(incarnation, reader), remote| {
                let Some(since) = remote.doubted_since else { return true };
                let returned = remote.process_returned;
                let dead = match self.links.engine.fate(incarnation) {
                    Fate::Dead => true,
                    // The process has returned: its reader may follow.
                    _ if sources.contains_key(&incarnation) && returned > since => now >= returned + RETURN,
                    // The process is still announced: it closed the reader.
                    _ if sources.contains_key(&incarnation) => now >= since + CLOSED,
                    Fate::Alive => now >= since + FORGET,
                    Fate::Unknown => now >= nodes.dead_at(incarnation.boot, since, DOUBT).unwrap_or(since + FORGET),
                };
                if dead {
                    // Under the lock: it may be announced again at any moment, and is matched then.
                    streams.values().for_each(|stream| stream.unmatch_reader(incarnation, reader));
                    gone.push(incarnation);
                } else {
                    next = next.min(if now < since + DOUBT { since + DOUBT } else { now + DOUBT });
                }
                !dead
            });
        }
        gone.into_iter().for_each(|incarnation| self.links.forget(incarnation));
        next
    }

    /// Leaves in order: sends the remaining samples, gives readers a moment to acknowledge, and announces the end.
    fn leave(&self) {
        let clock = &self.links.clock;
        let until = clock.monotonic() + LEAVE.as_nanos() as u64;
        let streams = self.streams();
        streams.iter().for_each(|stream| stream.settle(Duration::from_nanos(until.saturating_sub(clock.monotonic()))));
        self.leaving.store(true, Ordering::Release);
        self.beat_farewell(&streams);
        // Outside the lock: dropping a declaration may wait for a callback that takes the lock.
        let guards = std::mem::take(&mut lock(&self.registry).guards);
        drop(guards);
    }

    fn beat_farewell(&self, streams: &[Arc<Stream>]) {
        self.links.beat_now.store(true, Ordering::Release);
        self.beat(streams, self.links.clock.monotonic());
    }

    // --- work of the refetch server ---

    fn serve(&self) {
        loop {
            let Some(question) = lock(&self.registry).questions.pop() else { break };
            let Ok(asked) = Refetch::decode(question.payload()) else { continue };
            let stream = lock(&self.registry).streams.get(&asked.stream).cloned();
            // A stream that has ended keeps no samples; the empty answer says so.
            let Some(stream) = stream else { continue };
            // Rules about links are about the topic in the key, so it must be that of the stream.
            if !self.links.keys.is_refetch_of(question.key(), &stream.topic, &stream.partition) {
                continue;
            }
            let (parts, shelf) = stream.refetch(&asked);
            let sent = parts.into_iter().try_for_each(|part| question.reply(part));
            if sent.is_ok() {
                // If this fails, the asker asks again.
                let _ = question.reply(Bytes::from(shelf.encode()));
            }
        }
        for core in self.readers() {
            core.connect_direct();
        }
    }
}

impl Tick for HeartbeatWorker {
    fn tick(&self, now: u64) -> u64 {
        let links = &self.0.links;
        // Until this run is over, a caller that needs an earlier one opens the gate.
        links.next_heartbeat.store(u64::MAX, Ordering::Release);
        let next = self.0.run_due(now);
        links.next_heartbeat.fetch_min(next, Ordering::AcqRel).min(next)
    }
}

impl Tick for RefetchServer {
    fn tick(&self, now: u64) -> u64 {
        self.0.serve();
        now + 1_000_000_000
    }
}
