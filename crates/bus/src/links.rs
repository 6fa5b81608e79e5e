//! State shared by writers, readers and the participant: the engine, its clock, the keys, and the gate that wakes the
//! heartbeat worker.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_types::{Domain, Incarnation, SourceName, TopicName, name::unescape};

use crate::{
    access::{HostTopics, Verb, count_refusal},
    clock::{Clock, Gate},
    engine::{Answer, Class, Engine, EngineError, Outlet, UNPROVED},
    group::table::{self, GroupTable, GroupTableFile},
    wire::keys::Keys,
};

/// Takes a lock, also after a panic elsewhere: every change under these locks is complete in itself.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Links {
    pub engine: Arc<dyn Engine>,
    pub clock: Arc<dyn Clock>,
    pub keys: Keys,
    pub domain: Domain,
    pub source: SourceName,
    pub incarnation: Incarnation,
    pub shared_dir: Option<PathBuf>,
    /// Wakes the heartbeat worker.
    pub wake: Arc<Gate>,
    /// Next run of the heartbeat worker, in monotonic ns.
    pub next_heartbeat: AtomicU64,
    /// True if heartbeats are due at once.
    pub beat_now: AtomicBool,
    /// Wakes the refetch server.
    pub wake_refetch_server: Arc<Gate>,
    control: Mutex<HashMap<Incarnation, ControlOutlet>>,
    /// Host chunk in the keys of each present participant.
    hosts: Mutex<HashMap<Incarnation, Arc<str>>>,
    forgeries: Mutex<Forgeries>,
    /// Call for each announced stream of a topic that rules close to its host.
    on_refused: OnceLock<OnRefused>,
    /// Rules of this host about topics; without a run-time directory there are none.
    topics: Option<HostTopics>,
    /// Multicast groups of this host's node.
    groups_file: Option<GroupTableFile>,
    groups: Mutex<Arc<GroupTable>>,
}

/// The way of control messages to a participant, and the host chunk of its keys when it was opened.
type ControlOutlet = (Arc<str>, Arc<dyn Outlet>);

/// Gets the proved name of a host and the topic that it may not write.
type OnRefused = Box<dyn Fn(&str, &TopicName) + Send + Sync>;

/// Messages in the name of a process of another host. They are refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forgeries {
    /// Number of the messages.
    pub count: u64,
    /// Proved name of the host that sent the last one, and the process that it named.
    pub last: Option<(String, Incarnation)>,
}

impl Links {
    pub fn new(engine: Arc<dyn Engine>, domain: Domain, source: SourceName) -> Links {
        let directory = engine.shared_dir();
        let directory = directory.as_ref().and_then(|rings| rings.parent());
        let groups_file = directory.map(table::watch);
        Links {
            topics: directory.map(|directory| HostTopics::in_directory(directory, &domain)),
            groups: Mutex::new(groups_file.as_ref().map(GroupTableFile::current).unwrap_or_default()),
            groups_file,
            clock: engine.clock(),
            keys: Keys::new(&domain),
            domain,
            source,
            incarnation: engine.incarnation(),
            shared_dir: engine.shared_dir(),
            wake: Arc::default(),
            next_heartbeat: AtomicU64::new(0),
            beat_now: AtomicBool::new(false),
            wake_refetch_server: Arc::default(),
            control: Mutex::default(),
            hosts: Mutex::default(),
            forgeries: Mutex::default(),
            on_refused: OnceLock::new(),
            engine,
        }
    }

    /// Makes the heartbeat worker run no later than `when`.
    pub fn wake_by(&self, when: u64) {
        if self.next_heartbeat.fetch_min(when, Ordering::AcqRel) > when {
            self.wake.open();
        }
    }

    /// Makes the heartbeat worker send now.
    pub fn beat_soon(&self) {
        self.beat_now.store(true, Ordering::Release);
        self.wake_by(0);
    }

    /// Sends a control message to a participant. The next message repeats the content of a lost one.
    pub fn tell(&self, to: Incarnation, message: Vec<u8>) -> Result<(), EngineError> {
        let host = self.chunk_of(to);
        let known = lock(&self.control).get(&to).filter(|(of, _)| *of == host).map(|(_, outlet)| outlet.clone());
        let outlet = match known {
            Some(outlet) => outlet,
            None => {
                let outlet: Arc<dyn Outlet> = Arc::from(self.engine.outlet(&self.keys.control(&host, to), Class::Control)?);
                lock(&self.control).insert(to, (host, outlet.clone()));
                outlet
            }
        };
        outlet.send(Bytes::from(message))
    }

    /// Waits until what was sent and announced has arrived at the node, or the timeout. The end of a question that nobody
    /// answers comes back from the node, and the question was sent behind it.
    pub fn await_sending(&self, timeout: Duration) {
        let ended = Arc::new(Gate::default());
        let (seen, ends) = (ended.openings(), ended.clone());
        let answers = Box::new(move |answer| {
            if !matches!(answer, Answer::Part(_)) {
                ends.open();
            }
        });
        if self.engine.ask(&self.keys.unanswered(), Bytes::new(), timeout, answers).is_ok() {
            self.clock.wait(&ended, seen, self.clock.monotonic() + timeout.as_nanos() as u64);
        }
    }

    /// Returns the host chunk in the keys of a participant.
    pub fn chunk_of(&self, of: Incarnation) -> Arc<str> {
        lock(&self.hosts).get(&of).cloned().unwrap_or_else(|| UNPROVED.into())
    }

    /// Returns the name of a host that this chunk proves; `None` if nothing proves names on this bus.
    pub fn proved(&self, chunk: &str) -> Option<String> {
        if chunk == UNPROVED || self.engine.host().is_none() {
            return None;
        }
        unescape(chunk)
    }

    /// Returns true if the host with this chunk in its keys may read or write a topic, by the rules of this host.
    pub fn may(&self, chunk: &str, verb: Verb, topic: &TopicName) -> bool {
        // Called for each batch: without rules the name of the host is not looked at.
        let Some(topics) = self.topics.as_ref().filter(|topics| topics.has_rules()) else { return true };
        let Some(host) = self.proved(chunk) else { return true };
        self.engine.host().as_deref() == Some(&host) || topics.may(&host, verb, topic)
    }

    /// Calls `refused` for each announcement of a stream that its host may not write. Only the first call of this counts.
    pub fn on_refused(&self, refused: impl Fn(&str, &TopicName) + Send + Sync + 'static) {
        // A second callback is dropped, as documented.
        let _ = self.on_refused.set(Box::new(refused));
    }

    /// Notes that a host announces a stream of this topic, which it may not write.
    pub fn refuse(&self, chunk: &str, topic: &TopicName) {
        count_refusal(Verb::Write);
        if let (Some(refused), Some(host)) = (self.on_refused.get(), self.proved(chunk)) {
            refused(&host, topic);
        }
    }

    /// Reads the rules about topics again. Returns true if they have changed.
    pub fn rules_changed(&self) -> bool {
        self.topics.as_ref().is_some_and(HostTopics::refresh)
    }

    /// Binds an announced participant to the host that announces it. Returns false if another host has announced the same
    /// one before: then this one does not speak for it.
    pub fn bind(&self, participant: Incarnation, chunk: &str) -> bool {
        let proves = self.engine.host().is_some();
        let mut hosts = lock(&self.hosts);
        match hosts.get(&participant) {
            Some(bound) if **bound == *chunk => return true,
            // A process of this host had no name until its node came.
            Some(bound) if proves && **bound != *UNPROVED => return false,
            _ => {}
        }
        hosts.insert(participant, chunk.into());
        true
    }

    /// Ends the binding of a participant whose announcement is gone. Returns false if another host announces it.
    pub fn unbind(&self, participant: Incarnation, chunk: &str) -> bool {
        let mut hosts = lock(&self.hosts);
        let is_bound = hosts.get(&participant).is_none_or(|bound| **bound == *chunk);
        if is_bound {
            hosts.remove(&participant);
        }
        is_bound
    }

    /// Counts a message of a host in the name of a participant of another one.
    pub fn forged(&self, chunk: &str, participant: Incarnation) {
        let mut forgeries = lock(&self.forgeries);
        forgeries.count += 1;
        forgeries.last = Some((self.proved(chunk).unwrap_or_else(|| chunk.to_owned()), participant));
    }

    /// Returns the refused messages so far.
    pub fn forgeries(&self) -> Forgeries {
        lock(&self.forgeries).clone()
    }

    /// Reports if a message under this host chunk may come from a participant: the one that announces it, or anyone until
    /// it is announced.
    pub fn speaks_for(&self, chunk: &str, participant: Incarnation) -> bool {
        self.engine.host().is_none() || lock(&self.hosts).get(&participant).is_none_or(|bound| **bound == *chunk)
    }

    /// Returns the multicast groups of this host's node.
    pub fn groups(&self) -> Arc<GroupTable> {
        lock(&self.groups).clone()
    }

    /// Reads the groups again. Returns true if they, or the hosts that they reach, have changed.
    pub fn groups_changed(&self) -> bool {
        let Some(current) = self.groups_file.as_ref().map(GroupTableFile::current) else { return false };
        let mut groups = lock(&self.groups);
        let is_same = Arc::ptr_eq(&groups, &current);
        *groups = current;
        !is_same
    }

    /// Returns the group for a topic, if every host with its key may read it.
    pub fn group_of(&self, topic: &TopicName) -> Option<(u32, Vec<u32>)> {
        let groups = self.groups();
        let (number, route) = groups.of(topic)?;
        let may = |host: &String| self.topics.as_ref().is_none_or(|topics| topics.may(host, Verb::Read, topic));
        (!route.boots.is_empty() && route.hosts.iter().all(may)).then(|| (number, route.boots.clone()))
    }

    /// Path of a reader's progress page, for processes that share memory and sleep by the host's clock.
    pub fn progress_page(&self, reader_of: Incarnation, reader: u32) -> Option<PathBuf> {
        let dir = self.shared_dir.as_ref().filter(|_| self.clock.is_the_host_s())?;
        Some(dir.join(format!("{reader_of}-{reader}.progress")))
    }

    /// Drops the outlet to a participant that is gone.
    pub fn forget(&self, to: Incarnation) {
        let outlet = lock(&self.control).remove(&to);
        // Without the lock: the engine withdraws it.
        drop(outlet);
    }

    /// Returns the numbers of outlets to other participants, and of participants whose host is known.
    pub fn kept(&self) -> (usize, usize) {
        (lock(&self.control).len(), lock(&self.hosts).len())
    }
}
