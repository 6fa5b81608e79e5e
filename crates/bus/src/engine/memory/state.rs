//! State of the simulated network: processes, messages under way, and the knowledge of each process about the others.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;

use super::{
    ids::{HostId, Plane, ProcessId},
    key::matches,
    link::{Fate, Links},
    message::{Counts, Kind, LoseIf},
    random::Random,
    records::{Announcement, Pending, Watch},
};
use crate::{
    clock::Gate,
    engine::{Answerer, CaughtUp, Class, Deliver, Tick},
};

/// State of a network, except its time.
pub struct State {
    pub random: Random,
    pub links: Links,
    pub lose_if: Option<LoseIf>,
    pub discovery: u64,
    pub lease: u64,
    pub hold: usize,
    pub counts: Counts,
    pub digest: u64,
    pub trace: Option<Vec<String>>,
    /// True if hosts prove their names.
    pub proves_hosts: bool,
    pub shared_dir: Option<PathBuf>,
    hosts: Vec<String>,
    pub processes: Vec<Process>,
    pub cuts: BTreeMap<(HostId, HostId), Cut>,
    serial: u64,
    pub due: BTreeMap<(u64, u64), Due>,
    /// Driven work in the order of declaration. It is read at every step, so a plain list.
    pub drives: Vec<Drive>,
    pub subscriptions: BTreeMap<u64, Declared<Deliver>>,
    pub answerers: BTreeMap<u64, Declared<Answerer>>,
    pub announcements: BTreeMap<u64, Announcement>,
    pub watches: BTreeMap<u64, Watch>,
    pub asks: BTreeMap<u64, Pending>,
    /// Subscriptions that a key reaches; cleared whenever a subscription changes.
    pub routes: HashMap<(Plane, Arc<str>), Arc<[u64]>>,
}

pub struct Process {
    pub host: HostId,
    pub alive: bool,
    pub stopped_at: Option<u64>,
    /// Time from which others know its declarations.
    pub linked_at: u64,
    pub held: VecDeque<Due>,
    pub held_bytes: usize,
}

/// A cut of the link between two hosts.
#[derive(Default)]
pub struct Cut {
    pub since: Option<u64>,
    pub healed_at: u64,
}

/// A subscription or an answerer.
pub struct Declared<C> {
    pub process: ProcessId,
    pub plane: Plane,
    pub pattern: String,
    pub since: u64,
    pub call: C,
}

pub struct Drive {
    pub id: u64,
    pub process: ProcessId,
    pub work: Arc<dyn Tick>,
    pub wake: Arc<Gate>,
    pub seen: u64,
    pub next: u64,
    pub running: bool,
}

/// Event of a process at a certain time.
pub enum Due {
    Message { from: ProcessId, to: ProcessId, plane: Plane, class: Class, key: Arc<str>, bytes: Bytes },
    Question { ask: u64, copy: u64, answerer: u64, from: ProcessId, to: ProcessId, key: Arc<str>, payload: Bytes },
    Part { ask: u64, from: ProcessId, to: ProcessId, bytes: Bytes },
    Final { ask: u64, copy: u64, to: ProcessId },
    Unanswered { ask: u64, to: ProcessId },
    Presence { watch: u64, to: ProcessId, key: Arc<str> },
    CaughtUp { to: ProcessId, call: CaughtUp },
}

impl Due {
    pub fn to(&self) -> ProcessId {
        match self {
            Due::Message { to, .. }
            | Due::Question { to, .. }
            | Due::Part { to, .. }
            | Due::Final { to, .. }
            | Due::Unanswered { to, .. }
            | Due::Presence { to, .. }
            | Due::CaughtUp { to, .. } => *to,
        }
    }

    /// Returns the sender and the length in bytes, if a link carries it.
    pub fn carried(&self) -> Option<(ProcessId, usize)> {
        match self {
            Due::Message { from, bytes, .. } | Due::Part { from, bytes, .. } => Some((*from, bytes.len())),
            Due::Question { from, payload, .. } => Some((*from, payload.len())),
            _ => None,
        }
    }
}

impl State {
    pub fn new(seed: u64) -> State {
        State {
            random: Random::new(seed),
            links: Links::default(),
            lose_if: None,
            discovery: 1_000_000,
            lease: 10_000_000_000,
            hold: 256 << 10,
            counts: Counts::default(),
            digest: 0xcbf2_9ce4_8422_2325,
            trace: None,
            proves_hosts: false,
            shared_dir: None,
            hosts: Vec::new(),
            processes: Vec::new(),
            cuts: BTreeMap::new(),
            serial: 0,
            due: BTreeMap::new(),
            drives: Vec::new(),
            subscriptions: BTreeMap::new(),
            answerers: BTreeMap::new(),
            announcements: BTreeMap::new(),
            watches: BTreeMap::new(),
            asks: BTreeMap::new(),
            routes: HashMap::new(),
        }
    }

    pub fn host(&mut self, name: &str) -> HostId {
        let known = self.hosts.iter().position(|host| host == name);
        known.unwrap_or_else(|| {
            self.hosts.push(name.to_owned());
            self.hosts.len() - 1
        }) as HostId
    }

    pub fn host_name(&self, process: ProcessId) -> String {
        self.hosts[self.processes[process as usize].host as usize].clone()
    }

    /// Returns the number of its host's only boot.
    pub fn boot(&self, process: ProcessId) -> u32 {
        self.processes[process as usize].host + 1
    }

    pub fn host_pair(&mut self, one: &str, other: &str) -> (HostId, HostId) {
        let (one, other) = (self.host(one), self.host(other));
        (one.min(other), one.max(other))
    }

    pub fn add_process(&mut self, now: u64, host: &str) -> ProcessId {
        let host = self.host(host);
        self.processes.push(Process {
            host,
            alive: true,
            stopped_at: None,
            linked_at: now,
            held: VecDeque::new(),
            held_bytes: 0,
        });
        (self.processes.len() - 1) as ProcessId
    }

    pub fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub fn schedule(&mut self, at: u64, due: Due) {
        let serial = self.next_serial();
        self.due.insert((at, serial), due);
    }

    /// Returns the next due work and its time. Work whose gate was opened is due soon.
    pub fn next_drive(&mut self, now: u64) -> Option<(u64, u64)> {
        let soon = now.saturating_add(super::bounds::SOON);
        let mut next: Option<(u64, u64)> = None;
        for drive in &mut self.drives {
            if drive.next > soon && drive.wake.openings() != drive.seen {
                drive.next = soon;
            }
            let process = &self.processes[drive.process as usize];
            let runs = !drive.running && drive.next != u64::MAX && process.alive && process.stopped_at.is_none();
            if runs && next.is_none_or(|(at, _)| drive.next < at) {
                next = Some((drive.next, drive.id));
            }
        }
        next
    }

    pub fn drive(&mut self, id: u64) -> Option<&mut Drive> {
        self.drives.iter_mut().find(|drive| drive.id == id)
    }

    /// Keeps an event for a stopped process; returns it if there is no room.
    pub fn hold(&mut self, due: Due) -> Option<Due> {
        let to = due.to();
        let len = due.carried().map_or(0, |(_, len)| len);
        let process = &mut self.processes[to as usize];
        if len > 0 && process.held_bytes + len > self.hold {
            if let Due::Message { from, class, .. } = due {
                self.links.release((from, to), class, len);
            }
            self.counts.full += 1;
            return Some(due);
        }
        process.held_bytes += len;
        process.held.push_back(due);
        None
    }

    pub fn decide(&mut self, now: u64, from: ProcessId, to: ProcessId, kind: Kind, len: usize) -> Fate {
        let hosts = (self.processes[from as usize].host, self.processes[to as usize].host);
        // Within a process no link can lose the message.
        if from == to { Fate::Arrives(now) } else { self.links.send(&mut self.random, now, hosts, (from, to), kind, len) }
    }

    pub fn account(&mut self, now: u64, fate: Fate, from: ProcessId, to: ProcessId, key: &str, len: usize) {
        self.counts.sent += 1;
        let name = match fate {
            Fate::Arrives(_) => "sent",
            Fate::Late(_) => {
                self.counts.reordered += 1;
                "held back"
            }
            Fate::Twice(..) => {
                self.counts.duplicated += 1;
                "repeated"
            }
            Fate::Lost => {
                self.counts.lost += 1;
                "lost"
            }
            Fate::Full => {
                self.counts.full += 1;
                "no room"
            }
        };
        self.note(now, name, from, to, key, len);
    }

    /// Adds to the digest (FNV-1a) and to the trace, if one is recorded. Keys are left out of the digest because they
    /// hold start times.
    pub fn note(&mut self, now: u64, fate: &'static str, from: ProcessId, to: ProcessId, key: &str, len: usize) {
        let numbers = [now, u64::from(from) << 32 | u64::from(to), len as u64];
        for byte in numbers.iter().flat_map(|number| number.to_le_bytes()).chain(fate.bytes()) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if self.trace.is_some() {
            let line = format!("{now} {}.{from} -> {}.{to} {fate} {len} {key}", self.host_name(from), self.host_name(to));
            self.trace.iter_mut().for_each(|trace| trace.push(line.clone()));
        }
    }

    /// Returns the time since which two live processes cannot hear each other.
    pub fn silent_since(&self, one: ProcessId, other: ProcessId) -> Option<u64> {
        if one == other {
            return None;
        }
        let (one, other) = (&self.processes[one as usize], &self.processes[other as usize]);
        let cut = self.cuts.get(&(one.host.min(other.host), one.host.max(other.host))).and_then(|cut| cut.since);
        [cut, one.stopped_at, other.stopped_at].into_iter().flatten().min()
    }

    /// Reports if `from` knows at `now` about a declaration of `to`, and can send to it.
    fn knows(&self, now: u64, from: ProcessId, to: ProcessId, since: u64) -> bool {
        if from == to {
            return true;
        }
        let (sender, receiver) = (&self.processes[from as usize], &self.processes[to as usize]);
        let cut = self.cuts.get(&(sender.host.min(receiver.host), sender.host.max(receiver.host)));
        let linked = sender.linked_at.max(receiver.linked_at).max(cut.map_or(0, |cut| cut.healed_at));
        let lapsed = receiver.stopped_at.is_some_and(|stopped| now - stopped >= self.lease);
        receiver.alive && !lapsed && cut.is_none_or(|cut| cut.since.is_none()) && now >= since.max(linked) + self.discovery
    }

    /// Reports if a plane joins the two: direct links join their owner with all others, but not the others with one another.
    pub fn joins(plane: Plane, one: ProcessId, other: ProcessId) -> bool {
        plane == 0 || one + 1 == plane || other + 1 == plane
    }

    /// Returns the processes that a message under this key reaches, except this one.
    pub fn targets(&mut self, now: u64, plane: Plane, key: &Arc<str>, from: ProcessId) -> Vec<ProcessId> {
        let route = self.route(plane, key);
        let subscriptions = route.iter().filter_map(|id| self.subscriptions.get(id));
        let others = subscriptions.filter(|one| one.process != from && State::joins(plane, from, one.process));
        let reached: BTreeSet<ProcessId> =
            others.filter(|one| self.knows(now, from, one.process, one.since)).map(|one| one.process).collect();
        reached.into_iter().collect()
    }

    /// Returns the callbacks of a process for this key.
    pub fn local_deliveries(&mut self, plane: Plane, key: &Arc<str>, process: ProcessId) -> Vec<Deliver> {
        let route = self.route(plane, key);
        let subscriptions = route.iter().filter_map(|id| self.subscriptions.get(id));
        subscriptions.filter(|one| one.process == process).map(|one| one.call.clone()).collect()
    }

    fn route(&mut self, plane: Plane, key: &Arc<str>) -> Arc<[u64]> {
        if let Some(route) = self.routes.get(&(plane, key.clone())) {
            return route.clone();
        }
        let falls_under = |one: &Declared<Deliver>| one.plane == plane && matches(&one.pattern, key);
        let route: Arc<[u64]> = self.subscriptions.iter().filter(|(_, one)| falls_under(one)).map(|(&id, _)| id).collect();
        self.routes.insert((plane, key.clone()), route.clone());
        route
    }

    pub fn forget_routes(&mut self) {
        self.routes.clear();
    }

    /// Returns the answerers that a question under this key reaches, with their processes.
    pub fn answerers_of(&self, now: u64, plane: Plane, key: &str, from: ProcessId) -> Vec<(u64, ProcessId)> {
        let asked = |one: &Declared<Answerer>| {
            one.plane == plane
                && (matches(&one.pattern, key) || matches(key, &one.pattern))
                && State::joins(plane, from, one.process)
                && self.processes[one.process as usize].alive
                && self.knows(now, from, one.process, one.since)
        };
        self.answerers.iter().filter(|(_, one)| asked(one)).map(|(&id, one)| (id, one.process)).collect()
    }

    /// Reports if messages under way between two processes arrive.
    pub fn reaches(&self, from: ProcessId, to: ProcessId) -> bool {
        let (sender, receiver) = (&self.processes[from as usize], &self.processes[to as usize]);
        let hosts = (sender.host.min(receiver.host), sender.host.max(receiver.host));
        receiver.alive && self.cuts.get(&hosts).is_none_or(|cut| cut.since.is_none())
    }
}
