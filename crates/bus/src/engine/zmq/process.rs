//! The engine of one process.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tampu_types::{Domain, Incarnation};
use zmq::Context;

use super::{
    super::zenoh,
    frame, publisher,
    publisher::Publisher,
    receiver::{Receiver, Route},
    socket::NAME,
};
use crate::{
    clock::{Clock, Gate},
    connect::Settings,
    engine::{
        Answerer, Answers, CaughtUp, Class, Connected, Deliver, Engine, EngineError, Guard, Limits, OWN_HOST, Outlet, Presence,
        Seen, Tick, UNPROVED,
    },
    host,
    run_dir::{DomainDir, RunDirError},
    wire::keys::Keys,
};

/// Kind of the place where a process publishes its own samples.
pub(super) const OWN: &str = "own";
/// Kind of the place where a node publishes to its host what comes from other hosts.
pub(super) const IN: &str = "in";

/// The engine of one process.
pub(super) struct ZmqEngine {
    // Dropped first: the announcement ends before the sockets.
    _guards: Vec<Guard>,
    parts: Arc<Parts>,
    /// The engine of everything but samples.
    beside: Arc<dyn Engine>,
}

/// The sending and the receiving side.
struct Parts {
    publisher: Publisher,
    receiver: Arc<Receiver>,
    addresses: [String; 2],
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.receiver.end();
        publisher::remove(&self.addresses);
    }
}

pub(super) fn no_directory(why: RunDirError) -> EngineError {
    EngineError::Refused { engine: NAME, doing: "finding the run-time directory".to_owned(), why: why.to_string() }
}

impl ZmqEngine {
    /// Joins as a process of this host.
    pub fn open(settings: &Settings) -> Result<ZmqEngine, EngineError> {
        if let Some(hub) = &settings.hub {
            let why = "samples travel between the processes of one host, and between nodes; run a node on this host and unset TAMPU_HUB, \
                or choose the engine zenoh";
            return Err(EngineError::Unreachable { engine: NAME, place: hub.to_string(), why: why.to_owned() });
        }
        let dir = settings.run_dir.domain(&settings.domain).map_err(no_directory)?;
        let beside = (zenoh::DRIVER.open)(settings)?;
        ZmqEngine::over(beside, &settings.domain, &dir)
    }

    /// Lets the samples of this process travel on sockets of its own, and all else on this engine.
    pub fn over(beside: Arc<dyn Engine>, domain: &Domain, dir: &DomainDir) -> Result<ZmqEngine, EngineError> {
        let (context, longest) = (Context::new(), beside.limits().message);
        let process = host::incarnation();
        let addresses = publisher::addresses(dir, process)?;
        let publisher = Publisher::listen(&addresses, &context, longest)?;
        let receiver = Receiver::start(&context, longest)?;
        let parts = Arc::new(Parts { publisher, receiver: receiver.clone(), addresses });
        let keys = Keys::new(domain);
        let own = beside.announce(&keys.publisher(process, OWN))?;
        let (dir, seen_keys) = (dir.clone(), keys.clone());
        let seen = Arc::new(move |presence: Presence| {
            let Some((other, kind)) = seen_keys.parse_publisher(&presence.key) else { return };
            // Its own samples are delivered without a socket; those of other hosts come through the node.
            if other != process && [OWN, IN].contains(&kind) {
                follow(&dir, other, presence.here, &mut |addresses, is_here| receiver.follow(addresses, is_here));
            }
        });
        // Whoever comes connects a moment after it said so; this tells of those before.
        let tended = parts.clone();
        let seen: Seen = Arc::new(move |presence| {
            tended.publisher.tend();
            seen(presence);
        });
        let watch = beside.watch(&keys.publishers(), seen, None)?;
        Ok(ZmqEngine { _guards: vec![own, watch], parts, beside })
    }
}

/// Calls `connect` with the addresses of a process that publishes in this directory, and with true if it has come.
pub(super) fn follow(dir: &DomainDir, other: Incarnation, is_here: bool, connect: &mut dyn FnMut([String; 2], bool)) {
    let Ok(addresses) = publisher::addresses(dir, other) else { return };
    // A process listens before it says so. One without a socket here is on another host, or in a container of its own.
    if !is_here || publisher::is_here(&addresses) {
        connect(addresses, is_here);
    }
}

impl Engine for ZmqEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn connected(&self) -> Connected {
        self.beside.connected()
    }

    fn limits(&self) -> Limits {
        self.beside.limits()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.beside.clock()
    }

    fn shared_dir(&self) -> Option<PathBuf> {
        self.beside.shared_dir()
    }

    fn is_open(&self) -> bool {
        self.beside.is_open()
    }

    fn host(&self) -> Option<Arc<str>> {
        self.beside.host()
    }

    fn hub_host(&self) -> Option<Arc<str>> {
        self.beside.hub_host()
    }

    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError> {
        if !frame::is_of_samples(key) {
            return self.beside.outlet(key, class);
        }
        let parts = self.parts.clone();
        let (beside, limit) = (Arc::downgrade(&self.beside), self.limits().message);
        let target = Mutex::new(Target::of(key, UNPROVED, &parts.receiver));
        Ok(Box::new(SampleOutlet { parts, beside, key: key.to_owned(), is_urgent: class.is_urgent(), limit, target }))
    }

    fn subscribe(&self, pattern: &str, deliver: Deliver) -> Result<Guard, EngineError> {
        if !frame::is_of_samples(pattern) {
            return self.beside.subscribe(pattern, deliver);
        }
        // Whoever sends under this host's name is on this host: other hosts' samples come with their own.
        let pattern = crate::engine::with_host(pattern, "*");
        let receiver = self.parts.receiver.clone();
        let number = receiver.subscribe(pattern, deliver);
        Ok(Box::new(Subscribed { receiver, number }))
    }

    fn answer(&self, pattern: &str, answerer: Answerer) -> Result<Guard, EngineError> {
        self.beside.answer(pattern, answerer)
    }

    fn ask(&self, key: &str, question: Bytes, timeout: Duration, answers: Answers) -> Result<(), EngineError> {
        self.beside.ask(key, question, timeout, answers)
    }

    fn announce(&self, key: &str) -> Result<Guard, EngineError> {
        self.beside.announce(key)
    }

    fn watch(&self, pattern: &str, seen: Seen, caught_up: Option<CaughtUp>) -> Result<Guard, EngineError> {
        self.beside.watch(pattern, seen, caught_up)
    }

    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError> {
        self.beside.drive(work, wake)
    }

    // Links between two processes are asked for by the topic's settings, and keep the encryption of the other engine.
    fn listen_direct(&self) -> Result<(String, Arc<dyn Engine>), EngineError> {
        self.beside.listen_direct()
    }

    fn connect_direct(&self, endpoint: &str, host: Option<&str>) -> Result<Arc<dyn Engine>, EngineError> {
        self.beside.connect_direct(endpoint, host)
    }
}

/// Guard of a subscription.
struct Subscribed {
    receiver: Arc<Receiver>,
    number: u64,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.receiver.unsubscribe(self.number);
    }
}

/// Memory of an outlet about its key, under the name that this host has at present.
struct Target {
    host: Option<Arc<str>>,
    /// The first frame of its messages.
    frame: Vec<u8>,
    /// Version of the subscriptions when the route was found.
    version: u64,
    /// Subscriptions of this process itself.
    own: Arc<Route>,
}

impl Target {
    fn of(key: &str, host: &str, receiver: &Receiver) -> Target {
        let version = receiver.version();
        let key = crate::engine::with_host(key, host);
        let frame = frame::from_key(&key, host).unwrap_or_default();
        Target { host: None, frame, version, own: receiver.route(key) }
    }
}

struct SampleOutlet {
    parts: Arc<Parts>,
    beside: Weak<dyn Engine>,
    key: String,
    is_urgent: bool,
    limit: usize,
    target: Mutex<Target>,
}

impl Outlet for SampleOutlet {
    fn send(&self, message: Bytes) -> Result<(), EngineError> {
        if message.len() > self.limit {
            return Err(EngineError::TooLong { engine: NAME, limit: self.limit, length: message.len() });
        }
        let host = if self.key.contains(OWN_HOST) { self.beside.upgrade().and_then(|beside| beside.host()) } else { None };
        let own = {
            let mut target = self.target.lock();
            if target.host != host || target.version != self.parts.receiver.version() {
                *target = Target::of(&self.key, host.as_deref().unwrap_or(UNPROVED), &self.parts.receiver);
                target.host = host;
            }
            self.parts.publisher.send(self.is_urgent, &target.frame, &message)?;
            target.own.clone()
        };
        own.deliver(&message);
        Ok(())
    }
}
