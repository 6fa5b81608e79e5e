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
use tampu_types::{Domain, Incarnation, PartitionFilter, SourceName, TopicFilter, TopicName, name::escape};

use crate::{
    access::{Access, HostRules, Principal, access_of_host, proof_in},
    ask::{Answers, Inflow},
    clock::{Clock, Gate},
    connect::Settings,
    engine::{Answerer, CaughtUp, Connected, Deliver, Engine, Guard, Presence, Question, Tick},
    error::{BusError, CallError},
    links::{Forgeries, Links, lock},
    nodes::Nodes,
    qos::{History, Hold, ReaderQos},
    reader::{Core, Reader},
    topic_settings::{QosTable, SITE_QOS},
    wire::{self, keys::ReaderInfo, refetch::Refetch},
    writer::Stream,
};
use tuning::Tuning;

mod beats;
mod presence;
mod site_reader;
mod state;
mod tuning;
mod writers;

pub use state::StateOf;

/// A process on the bus.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceInfo {
    /// Stable name of the source.
    pub source: SourceName,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
}

/// Numbers of entries that a process keeps about the processes on the bus. Those of a process that has ended are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acquaintances {
    /// Processes that are present.
    pub processes: usize,
    /// Readers of all processes.
    pub readers: usize,
    /// Processes whose host is known.
    pub hosts: usize,
    /// Ways for control messages to one process each.
    pub outlets: usize,
    /// Processes that a reader of this one hears.
    pub heard: usize,
    /// Streams that a reader of this one reads.
    pub streams: usize,
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
    /// Time of the last heartbeats to all readers.
    last_beat_to_all: u64,
    /// Time of the next look at doubtful readers; 0 after news about one, or about a process or a node.
    settle_at: u64,
    guards: Vec<Guard>,
    /// True once the readers are known that were on the bus before this process.
    knows_first_readers: bool,
}

struct Remote {
    card: ReaderInfo,
    doubted_since: Option<u64>,
    /// Time at which its process returned while the reader was doubtful; 0 if it did not.
    process_returned: u64,
    /// True once it has read a stream of this process. Others need not hear that this process leaves.
    reads: bool,
}

/// Longest wait until the node knows of a reader.
const ANNOUNCED: Duration = Duration::from_millis(200);

pub(crate) struct Shared {
    pub links: Arc<Links>,
    tuning: Tuning,
    registry: Mutex<Registry>,
    next_id: AtomicU32,
    leaving: AtomicBool,
    /// True while the program that this participant stands for cannot be reached.
    is_absent: AtomicBool,
    /// True if that program counts as dead when this participant ends.
    dies: AtomicBool,
    /// Time of the next look at the rules about topics and their settings, in monotonic ns.
    look_at_rules: AtomicU64,
    this: OnceLock<Weak<Shared>>,
    access: OnceLock<Access>,
    /// Gate that opens when the first readers are known.
    first_readers: Gate,
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

    /// Joins a domain through an engine. The settings of topics beat those of the site.
    pub fn on(engine: Arc<dyn Engine>, domain: Domain, source: SourceName, qos: QosTable) -> Result<Participant, BusError> {
        let links = Arc::new(Links::new(engine, domain, source));
        let tuning = Tuning::new(qos, links.shared_dir.as_ref().and_then(|rings| rings.parent()));
        let shared = Arc::new(Shared {
            links,
            tuning,
            registry: Mutex::default(),
            next_id: AtomicU32::new(0),
            leaving: AtomicBool::new(false),
            is_absent: AtomicBool::new(false),
            dies: AtomicBool::new(false),
            look_at_rules: AtomicU64::new(0),
            this: OnceLock::new(),
            access: OnceLock::new(),
            first_readers: Gate::default(),
        });
        // Set once, here.
        let _ = shared.this.set(Arc::downgrade(&shared));
        shared.declare()?;
        let participant = Participant { _leave: Arc::new(Leave(shared.clone())), shared };
        if participant.shared.links.engine.connected() == Connected::Hub {
            let qos = ReaderQos { history: History::Last(1), ..ReaderQos::default() };
            let reader = participant.announced_reader(&TopicFilter::new(SITE_QOS)?, &PartitionFilter::All, qos)?;
            participant.shared.tuning.read_with(reader);
        }
        Ok(participant)
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

    /// Sets whether the program that this participant stands for cannot be reached, as a gateway knows of its clients.
    /// Readers hear at once that the source is silent, or that it has returned.
    pub fn set_absent(&self, is_absent: bool) {
        if self.shared.is_absent.swap(is_absent, Ordering::AcqRel) != is_absent {
            self.shared.links.beat_soon();
        }
    }

    /// Makes the end of this participant the death of the program that it stands for: readers hear that the source died
    /// instead of that it left.
    pub fn die_at_end(&self) {
        self.shared.dies.store(true, Ordering::Release);
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
        self.shared.sender(access, host)
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

    /// Calls `refused` with the proved name of a host and a topic, for each announcement of a stream that the host may not
    /// write. It repeats as long as the stream is announced, so the receiver limits what it reports. Only the first call of
    /// this counts.
    pub fn on_refused_topic(&self, refused: impl Fn(&str, &TopicName) + Send + Sync + 'static) {
        self.shared.links.on_refused(refused);
    }

    /// Returns the domain's part of the run-time directory, if the engine has one.
    fn domain_dir(&self) -> Option<&Path> {
        self.shared.domain_dir()
    }

    /// Returns the directory of the domain's log rings on this host; `None` without a run-time directory.
    pub fn log_rings(&self) -> Option<PathBuf> {
        Some(self.domain_dir()?.join("rings"))
    }

    /// Returns the access rules of this host: those that its node publishes, or the defaults.
    pub fn access(&self) -> Access {
        self.shared.access()
    }

    /// Adds the proof to a message that this process belongs to the user of this host. Only a bus that the network
    /// reaches needs one.
    pub fn sealed(&self, name: &str, message: Bytes) -> Bytes {
        match self.domain_dir() {
            Some(directory) => proof_in(directory).seal(name, message),
            None => message,
        }
    }

    /// Opens a reader of all streams under a pattern, of some partitions.
    ///
    /// The node knows of it when the call returns, unless the node hangs for 200 ms. So processes that join later are told
    /// of it, and it gets their streams from the first sample.
    pub fn reader(&self, topics: &TopicFilter, partitions: &PartitionFilter, qos: ReaderQos) -> Result<Reader, BusError> {
        let reader = self.announced_reader(topics, partitions, qos)?;
        self.await_declared(ANNOUNCED);
        Ok(reader)
    }

    /// Opens a reader, whose announcement may still be under way.
    fn announced_reader(&self, topics: &TopicFilter, partitions: &PartitionFilter, qos: ReaderQos) -> Result<Reader, BusError> {
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
        let links = &self.shared.links;
        Ok(links.engine.answer(&links.keys.questions(links.incarnation, service), answerer)?)
    }

    /// Waits until the node has taken what this process has declared so far, such as its services, at most for this time. A
    /// process that hears of them in another way and asks at once would find nobody otherwise.
    pub fn await_declared(&self, longest: Duration) {
        let links = &self.shared.links;
        // A simulated clock stands still meanwhile.
        if links.clock.is_the_host_s() {
            links.await_sending(longest);
        }
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

    /// Reports if this process is on the bus.
    pub fn is_present(&self, process: Incarnation) -> bool {
        lock(&self.shared.registry).sources.contains_key(&process)
    }

    /// Returns the numbers of entries that this process keeps about the processes on the bus.
    pub fn acquaintances(&self) -> Acquaintances {
        let (outlets, hosts) = self.shared.links.kept();
        let read: Vec<(usize, usize)> = self.shared.readers().iter().map(|core| core.kept()).collect();
        let registry = lock(&self.shared.registry);
        Acquaintances {
            processes: registry.sources.len(),
            readers: registry.remote.len(),
            hosts,
            outlets,
            heard: read.iter().map(|(heard, _)| heard).sum(),
            streams: read.iter().map(|(_, streams)| streams).sum(),
        }
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

    /// Waits until this process knows the readers that were on the bus before it, at most this long. Returns whether it
    /// does. They get all its samples in any case; those written later reach them sooner.
    pub fn meet_readers(&self, timeout: Duration) -> bool {
        let clock = &self.shared.links.clock;
        self.shared.meet_readers(clock.monotonic().saturating_add(timeout.as_nanos() as u64))
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
    fn domain_dir(&self) -> Option<&Path> {
        self.links.shared_dir.as_ref()?.parent()
    }

    fn access(&self) -> Access {
        let open = || match self.domain_dir() {
            Some(directory) => access_of_host(directory, &self.links.domain, &self.links.engine),
            None => Access::same_user(),
        };
        self.access.get_or_init(open).clone()
    }

    fn sender(&self, access: &Access, host: Option<&str>) -> Principal {
        match host {
            None => access.others(),
            Some(host) if self.links.engine.host().as_deref() == Some(host) => Principal::this_user(),
            Some(host) => Principal::Host(host.to_owned()),
        }
    }

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
        let know = self.call(|shared, ()| shared.know_first_readers());
        let caught_up: CaughtUp = Box::new(move || know(()));
        let mut guards = vec![
            engine.subscribe(&links.keys.controls(links.incarnation), self.on_control())?,
            engine.answer(&links.keys.refetches(links.incarnation), self.call(|shared, question| shared.asked(question)))?,
            engine.watch(&links.keys.nodes(), self.call(|shared, seen: Presence| shared.node_seen(&seen)), None)?,
            engine.watch(&links.keys.presences(), self.call(|shared, seen: Presence| shared.source_seen(&seen)), None)?,
            engine.watch(
                &links.keys.readers(),
                self.call(|shared, seen: Presence| shared.reader_seen(&seen)),
                Some(caught_up),
            )?,
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

    fn asked(&self, question: Box<dyn Question>) {
        lock(&self.registry).questions.push(question);
        self.links.wake_refetch_server.open();
    }

    fn serve(&self) {
        loop {
            let Some(question) = lock(&self.registry).questions.pop() else { break };
            if question.payload()[..] == wire::state::QUESTION {
                self.answer_state(&*question);
                continue;
            }
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
        self.streams().iter().for_each(|stream| stream.make_ring());
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
