//! One process's view of the network: the engine.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_types::{ClockState, Incarnation, Time, name::escape};

use super::{
    bounds::{LIMITS, NAME, UTC_START},
    ids::{Plane, ProcessId},
    message::Kind,
    net::Net,
    records::{Announcement, Watch},
    state::{Declared, Drive, Due},
};
use crate::{
    clock::{Clock, Gate, discipline::Discipline},
    engine::{
        Answerer, Answers, CaughtUp, Class, Deliver, Engine, EngineError, Fate, Guard, Limits, Outlet, Seen, Tick, UNPROVED,
        with_host,
    },
};

/// TAI - UTC on simulated hosts, in seconds.
const TAI_OFFSET: i16 = 37;

/// The engine of one simulated process.
pub struct MemoryEngine {
    net: Arc<Net>,
    process: ProcessId,
    plane: Plane,
    clock: Arc<ProcessClock>,
    direct: Mutex<Option<Arc<MemoryEngine>>>,
}

/// The network's clock, with steps of the process's UTC.
struct ProcessClock {
    net: Arc<Net>,
    stepped: AtomicI64,
    steps: AtomicU32,
}

struct Sender {
    net: Arc<Net>,
    process: ProcessId,
    plane: Plane,
    key: Arc<str>,
    class: Class,
}

/// Guard that withdraws a declaration.
struct Undeclare {
    net: Arc<Net>,
    id: u64,
    take: fn(&Net, u64),
}

impl MemoryEngine {
    pub(super) fn new(net: Arc<Net>, host: &str) -> Arc<MemoryEngine> {
        let process = net.lock().add_process(net.now(), host);
        let clock = Arc::new(ProcessClock { net: net.clone(), stepped: AtomicI64::new(0), steps: AtomicU32::new(0) });
        Arc::new(MemoryEngine { net, process, plane: 0, clock, direct: Mutex::new(None) })
    }

    fn on_plane(&self, plane: Plane) -> Arc<MemoryEngine> {
        let (net, clock) = (self.net.clone(), self.clock.clone());
        Arc::new(MemoryEngine { net, process: self.process, plane, clock, direct: Mutex::new(None) })
    }

    pub(super) fn process(&self) -> ProcessId {
        self.process
    }

    pub(super) fn step_utc(&self, ns: i64) {
        self.clock.stepped.fetch_add(ns, Ordering::Relaxed);
        self.clock.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn guard(&self, id: u64, take: fn(&Net, u64)) -> Guard {
        Box::new(Undeclare { net: self.net.clone(), id, take })
    }

    /// Returns the key with the chunk of this host.
    fn key(&self, pattern: &str) -> String {
        let state = self.net.lock();
        let chunk = if state.proves_hosts { escape(&state.host_name(self.process)) } else { UNPROVED.to_owned() };
        with_host(pattern, &chunk)
    }

    fn declared<C>(&self, pattern: &str, call: C) -> Declared<C> {
        Declared { process: self.process, plane: self.plane, pattern: pattern.to_owned(), since: self.net.now(), call }
    }
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Returns an incarnation. Hosts boot once, processes have their number in the network, and incarnations begin in
    /// simulated time: the same in every run.
    fn incarnation(&self) -> Incarnation {
        let mut state = self.net.lock();
        let (serial, boot) = (state.next_serial(), state.boot(self.process));
        Incarnation { boot, pid: self.process + 1, start: self.clock.utc().0 as u64 + serial }
    }

    fn fate(&self, incarnation: Incarnation) -> Fate {
        let state = self.net.lock();
        if incarnation.boot != state.boot(self.process) {
            return Fate::Unknown;
        }
        let process = incarnation.pid.checked_sub(1).and_then(|number| state.processes.get(number as usize));
        if process.is_some_and(|process| process.alive) { Fate::Alive } else { Fate::Dead }
    }

    fn shared_dir(&self) -> Option<PathBuf> {
        self.net.lock().shared_dir.clone()
    }

    fn host(&self) -> Option<Arc<str>> {
        let state = self.net.lock();
        state.proves_hosts.then(|| state.host_name(self.process).into())
    }

    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError> {
        let (net, process, plane) = (self.net.clone(), self.process, self.plane);
        Ok(Box::new(Sender { net, process, plane, key: self.key(key).into(), class }))
    }

    fn subscribe(&self, pattern: &str, deliver: Deliver) -> Result<Guard, EngineError> {
        self.net.check(self.process, "subscribing")?;
        let pattern = &self.key(pattern);
        let mut state = self.net.lock();
        let id = state.next_serial();
        state.subscriptions.insert(id, self.declared(pattern, deliver));
        state.forget_routes();
        Ok(self.guard(id, |net, id| {
            let mut state = net.lock();
            state.forget_routes();
            let subscription = state.subscriptions.remove(&id);
            drop(state);
            drop(subscription);
        }))
    }

    fn answer(&self, pattern: &str, answerer: Answerer) -> Result<Guard, EngineError> {
        self.net.check(self.process, "offering to answer")?;
        let pattern = &self.key(pattern);
        let mut state = self.net.lock();
        let id = state.next_serial();
        state.answerers.insert(id, self.declared(pattern, answerer));
        Ok(self.guard(id, |net, id| {
            let answerer = net.lock().answerers.remove(&id);
            drop(answerer);
        }))
    }

    fn ask(&self, key: &str, question: Bytes, timeout: Duration, answers: Answers) -> Result<(), EngineError> {
        self.net.check(self.process, "asking")?;
        check_length(&question)?;
        self.net.ask(self.process, self.plane, &self.key(key), question, timeout, answers);
        Ok(())
    }

    fn announce(&self, key: &str) -> Result<Guard, EngineError> {
        self.net.check(self.process, "announcing")?;
        let now = self.net.now();
        let key = self.key(key).into();
        let announcement = Announcement { process: self.process, plane: self.plane, key, since: now };
        let id = self.net.lock().announce(now, announcement);
        Ok(self.guard(id, |net, id| {
            let now = net.now();
            net.lock().withdraw(now, id);
        }))
    }

    fn watch(&self, pattern: &str, seen: Seen, caught_up: Option<CaughtUp>) -> Result<Guard, EngineError> {
        self.net.check(self.process, "watching")?;
        let (process, plane) = (self.process, self.plane);
        let watch = Watch { process, plane, pattern: self.key(pattern), seen, told: Default::default() };
        let id = self.net.lock().watch(self.net.now(), watch, caught_up);
        Ok(self.guard(id, |net, id| {
            let watch = net.lock().watches.remove(&id);
            drop(watch);
        }))
    }

    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError> {
        self.net.check(self.process, "driving work")?;
        let now = self.net.now();
        let seen = wake.openings();
        let mut state = self.net.lock();
        let id = state.next_serial();
        state.drives.push(Drive { id, process: self.process, work, wake, seen, next: now, running: false });
        Ok(self.guard(id, |net, id| {
            let mut state = net.lock();
            let drive = state.drives.iter().position(|drive| drive.id == id).map(|index| state.drives.remove(index));
            drop(state);
            drop(drive);
        }))
    }

    fn listen_direct(&self) -> Result<(String, Arc<dyn Engine>), EngineError> {
        self.net.check(self.process, "listening")?;
        let mut direct = self.direct.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = direct.get_or_insert_with(|| self.on_plane(self.process + 1)).clone();
        Ok((format!("{NAME}:{}", self.process), engine))
    }

    fn connect_direct(&self, endpoint: &str, _: Option<&str>) -> Result<Arc<dyn Engine>, EngineError> {
        self.net.check(self.process, "connecting")?;
        let unreachable = |why: &str| EngineError::Unreachable { engine: NAME, place: endpoint.to_owned(), why: why.to_owned() };
        let number = endpoint.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(':')).and_then(|number| number.parse().ok());
        let listener: ProcessId = number.ok_or_else(|| unreachable("not an endpoint of this engine"))?;
        let state = self.net.lock();
        match state.processes.get(listener as usize) {
            None => Err(unreachable("no such process")),
            Some(process) if !process.alive => Err(unreachable("the process is dead")),
            Some(_) if state.silent_since(self.process, listener).is_some() => Err(unreachable("it does not reply")),
            Some(_) => Ok(self.on_plane(listener + 1)),
        }
    }
}

impl Outlet for Sender {
    fn send(&self, message: Bytes) -> Result<(), EngineError> {
        self.net.check(self.process, "sending")?;
        check_length(&message)?;
        let (from, plane) = (self.process, self.plane);
        let mut state = self.net.lock();
        let targets = state.targets(self.net.now(), plane, &self.key, from);
        let own = state.local_deliveries(plane, &self.key, from);
        drop(state);
        let class = self.class;
        let due = |to| Due::Message { from, to, plane, class, key: self.key.clone(), bytes: message.clone() };
        self.net.carry(from, &targets, Kind::Message(self.class), &self.key, &message, due);
        // As in other engines, messages within the process are delivered from inside the call.
        own.iter().for_each(|deliver| deliver(message.clone(), &self.key));
        Ok(())
    }
}

fn check_length(message: &Bytes) -> Result<(), EngineError> {
    let (limit, length) = (LIMITS.message, message.len());
    if length > limit { Err(EngineError::TooLong { engine: NAME, limit, length }) } else { Ok(()) }
}

impl Clock for ProcessClock {
    fn monotonic(&self) -> u64 {
        self.net.now()
    }

    fn utc(&self) -> Time {
        Time(UTC_START + self.net.now() as i64 + self.stepped.load(Ordering::Relaxed))
    }

    /// Returns the discipline: simulated hosts follow a reference, until a test steps them.
    fn discipline(&self) -> Discipline {
        let steps = self.steps.load(Ordering::Relaxed);
        Discipline { state: ClockState::Synchronised, tai_offset: TAI_OFFSET, error: None, steps }
    }

    fn wait(&self, gate: &Gate, seen: u64, until: u64) {
        self.net.wait(gate, seen, until);
    }
}

impl Drop for Undeclare {
    fn drop(&mut self) {
        (self.take)(&self.net, self.id);
    }
}
