//! The engine of one process.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::{
    connection::Connection,
    core::{Core, Directs, domain_dir, open_link},
    declaration::{Declaration, Registry, Withdraw},
    inbox::Inbox,
    link::Link,
    outlet,
    pattern::pattern,
    presence, question,
    settings::{self, NAME},
    supervisor::Supervisor,
    worker::worker,
};
use crate::{
    clock::{Clock, Gate, HostClock},
    connect::{Endpoint, Settings},
    engine::{Answerer, Answers, CaughtUp, Class, Connected, Deliver, Engine, EngineError, Guard, Limits, Outlet, Seen, Tick},
    run_dir::DomainDir,
};

/// The engine of one process.
pub(super) struct ZenohEngine {
    pub core: Arc<Core>,
}

impl ZenohEngine {
    /// Connects: to the configured hub, else to this host's node, else to the processes met in the run-time directory.
    pub fn open(config: Settings) -> Result<ZenohEngine, EngineError> {
        let dir = domain_dir(&config)?;
        let inbox = Arc::new(Inbox::default());
        let (connection, link) = if config.hub.is_some() {
            (Connection::Hub, open_link(&config, &dir, &inbox, Connection::Hub)?)
        } else if dir.node_answers()
            && let Ok(link) = open_link(&config, &dir, &inbox, Connection::Node)
        {
            (Connection::Node, link)
        } else {
            // The node is about to start or stop: the supervisor switches to it when it answers.
            (Connection::Peers, open_link(&config, &dir, &inbox, Connection::Peers)?)
        };
        ZenohEngine::over(config, dir, inbox, connection, link)
    }

    pub fn over(
        settings: Settings,
        dir: DomainDir,
        inbox: Arc<Inbox>,
        connection: Connection,
        link: Link,
    ) -> Result<ZenohEngine, EngineError> {
        let generation = link.generation;
        let core = Arc::new(Core {
            settings,
            dir,
            clock: Arc::new(HostClock::default()),
            link: RwLock::new((connection, Arc::new(link))),
            registry: Arc::new(Registry::default()),
            inbox,
            directs: Mutex::new(Directs::default()),
            hub_host: Mutex::default(),
        });
        Supervisor::start(&core, connection, generation)?;
        Ok(ZenohEngine { core })
    }

    fn declare(&self, declaration: Arc<dyn Declaration>) -> Result<Withdraw, EngineError> {
        // Registered before it is attached: a session that replaces the current one in between finds it.
        let withdraw = outlet::kept(&self.core.registry, declaration.clone());
        let link = self.core.current().1;
        match declaration.attach(&link) {
            // The node opens its session anew, and all declarations are repeated there. Until then the engine loses messages,
            // as it may at any time. Callers do not wait: they may be the worker that makes the move.
            Err(_) if link.awaits_another() => {}
            attached => _ = attached?,
        }
        Ok(withdraw)
    }
}

impl Drop for ZenohEngine {
    fn drop(&mut self) {
        self.core.inbox.close();
    }
}

impl Engine for ZenohEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn connected(&self) -> Connected {
        match self.core.current().0 {
            Connection::Node => Connected::Node,
            Connection::Hub => Connected::Hub,
            Connection::Peers => Connected::Peers,
            Connection::Fixed => Connected::Direct,
        }
    }

    fn limits(&self) -> Limits {
        Limits { batch: settings::BATCH, message: settings::MESSAGE }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.core.clock.clone()
    }

    fn shared_dir(&self) -> Option<PathBuf> {
        Some(self.core.dir.rings())
    }

    fn is_open(&self) -> bool {
        let settings = &self.core.settings;
        let elsewhere = settings.hub.as_ref().is_some_and(|hub| !matches!(hub, Endpoint::Unix(_)));
        let direct = settings.lan.as_ref().is_some_and(|lan| lan.direct.is_some());
        // The node's key shows that the network reaches the node.
        elsewhere || direct || self.core.dir.node_key().exists()
    }

    fn host(&self) -> Option<Arc<str>> {
        self.core.link.read().1.host.name().cloned()
    }

    fn hub_host(&self) -> Option<Arc<str>> {
        self.core.hub_host()
    }

    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError> {
        if !class.is_declared() {
            return Ok(Box::new(outlet::UndeclaredOutlet { core: Arc::downgrade(&self.core), key: pattern(key)?, class }));
        }
        let publication = Arc::new(outlet::Publication::new(pattern(key)?, class));
        let _withdraw = self.declare(publication.clone())?;
        Ok(Box::new(outlet::ZenohOutlet { publication, _withdraw }))
    }

    fn subscribe(&self, key: &str, deliver: Deliver) -> Result<Guard, EngineError> {
        Ok(Box::new(self.declare(Arc::new(outlet::Subscription::new(pattern(key)?, deliver)))?))
    }

    fn answer(&self, key: &str, answerer: Answerer) -> Result<Guard, EngineError> {
        Ok(Box::new(self.declare(Arc::new(question::Service::new(pattern(key)?, answerer)))?))
    }

    fn ask(&self, key: &str, question: Bytes, timeout: Duration, answers: Answers) -> Result<(), EngineError> {
        question::ask(&self.core.current().1, &pattern(key)?, question, timeout, answers)
    }

    fn announce(&self, key: &str) -> Result<Guard, EngineError> {
        Ok(Box::new(self.declare(Arc::new(presence::Announcement::new(pattern(key)?)))?))
    }

    fn watch(&self, key: &str, seen: Seen, caught_up: Option<CaughtUp>) -> Result<Guard, EngineError> {
        Ok(Box::new(self.declare(Arc::new(presence::Watch::new(pattern(key)?, seen, caught_up, &self.core.inbox)))?))
    }

    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError> {
        let driven = Driven { over: Arc::new(AtomicBool::new(false)), wake: wake.clone() };
        let (over, clock) = (driven.over.clone(), self.core.clock.clone());
        worker("tampu-drive", move || {
            loop {
                let seen = wake.openings();
                if over.load(Ordering::Acquire) {
                    return;
                }
                let next = work.tick(clock.monotonic());
                clock.wait(&wake, seen, next);
            }
        })?;
        Ok(Box::new(driven))
    }

    fn listen_direct(&self) -> Result<(String, Arc<dyn Engine>), EngineError> {
        self.core.listen_direct()
    }

    fn connect_direct(&self, endpoint: &str, host: Option<&str>) -> Result<Arc<dyn Engine>, EngineError> {
        self.core.connect_direct(endpoint, host)
    }
}

/// Guard that ends driven work when dropped.
struct Driven {
    over: Arc<AtomicBool>,
    wake: Arc<Gate>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.wake.open();
    }
}
