//! The default engine: zenoh, with processes as clients of their host's node.
//!
//! ```text
//!   process   process   process        process   process
//!       \        |        /                \       /
//!        node (a router, unix socket) ---- node (TCP, with key)
//! ```
//! A full mesh of peers was tried first and failed: at 100 processes it had 7000 connections and was not complete after
//! 44 s, while 200 clients of one router see each other after 1.5 s. Without a node (two programs on a desk) processes
//! meet through the run-time directory, every one connected to every other, and move over to the node when one appears.
//!
//! | subject | module |
//! |-|-|
//! | configuration, keys, endpoints | [`config`] |
//! | the engine's settings, with reasons | `settings` |
//! | the node | [`node`] |
//! | sessions, and what is declared again on a new one | `link`, `declaration`, `keeper` |
//! | messages; questions; presence | `outlet`, `question`, `presence` |
//! | links between two processes without the node | `direct` |
//!
//! What the layer above must know:
//! - A sample is dropped after a full link held it up for 1 ms. `send` may take that long, and `Ok` says nothing.
//! - Declarations and presence overtake samples: who is told gone may still have samples under way.
//! - After moving to another session, samples sent meanwhile may be lost or arrive twice.
//! - The library behind it installs no signal handler and writes nothing to the terminal.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use zenoh::key_expr::KeyExpr;

use self::{
    config::{Credentials, Endpoint, Key, ZenohConfig},
    declaration::{Declaration, Registry, Retired},
    direct::Directs,
    keeper::{Inbox, Keeper},
    link::Link,
    settings::Role,
};
use super::{Answerer, Answers, Class, Deliver, Engine, EngineError, Guard, Limits, Outlet, Seen, Tick};
use crate::{
    clock::{Clock, Gate, HostClock},
    host,
    run_dir::{self, DomainDir},
};

pub mod config;
mod declaration;
mod direct;
mod keeper;
mod link;
pub mod node;
mod outlet;
mod payload;
mod presence;
mod question;
mod settings;

const NAME: &str = "zenoh";

/// How long a process that starts without a node waits for another one that is just starting.
const MEETING_TIMEOUT: Duration = Duration::from_secs(2);

/// How an engine is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As a client of the host's node.
    Node,
    /// As a client of a hub elsewhere.
    Hub,
    /// With every other process of the domain on this host.
    Peers,
    /// As it was made: a node's own engine, and direct links.
    Fixed,
}

/// How a process is connected now; for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connected {
    /// Through the host's node.
    Node,
    /// Through a hub elsewhere.
    Hub,
    /// With the other processes of this host, without a node.
    Peers,
    /// As a node, or by a direct link.
    Direct,
}

/// The engine of one process.
pub struct ZenohEngine {
    core: Arc<Core>,
}

struct Core {
    config: ZenohConfig,
    dir: DomainDir,
    clock: Arc<HostClock>,
    link: RwLock<(Way, Arc<Link>)>,
    registry: Arc<Registry>,
    inbox: Arc<Inbox>,
    directs: Mutex<Directs>,
}

impl ZenohEngine {
    /// Connects: to the configured hub, else to this host's node, else to the processes met in the run-time directory.
    pub fn open(config: ZenohConfig) -> Result<ZenohEngine, EngineError> {
        let dir = domain_dir(&config)?;
        let inbox = Arc::new(Inbox::default());
        let (way, link) = if config.hub.is_some() {
            (Way::Hub, open_link(&config, &dir, &inbox, Way::Hub)?)
        } else if dir.node_answers()
            && let Ok(link) = open_link(&config, &dir, &inbox, Way::Node)
        {
            (Way::Node, link)
        } else {
            // A node that is about to start or stop: the keeper moves over when it answers.
            (Way::Peers, open_link(&config, &dir, &inbox, Way::Peers)?)
        };
        ZenohEngine::over(config, dir, inbox, way, link)
    }

    fn over(config: ZenohConfig, dir: DomainDir, inbox: Arc<Inbox>, way: Way, link: Link) -> Result<ZenohEngine, EngineError> {
        let generation = link.generation;
        let core = Arc::new(Core {
            config,
            dir,
            clock: Arc::new(HostClock::default()),
            link: RwLock::new((way, Arc::new(link))),
            registry: Arc::new(Registry::default()),
            inbox,
            directs: Mutex::new(Directs::default()),
        });
        Keeper::start(&core, way, generation)?;
        Ok(ZenohEngine { core })
    }

    /// How this process is connected now.
    pub fn connected(&self) -> Connected {
        match self.core.current().0 {
            Way::Node => Connected::Node,
            Way::Hub => Connected::Hub,
            Way::Peers => Connected::Peers,
            Way::Fixed => Connected::Direct,
        }
    }

    fn declare(&self, declaration: Arc<dyn Declaration>) -> Result<declaration::Withdraw, EngineError> {
        // Kept before it is attached: a session that replaces the current one in between finds it.
        let withdraw = outlet::kept(&self.core.registry, declaration.clone());
        declaration.attach(&self.core.current().1)?;
        Ok(withdraw)
    }
}

impl Drop for ZenohEngine {
    fn drop(&mut self) {
        self.core.inbox.close();
    }
}

impl Core {
    fn current(&self) -> (Way, Arc<Link>) {
        self.link.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn open_link(&self, way: Way) -> Result<Link, EngineError> {
        open_link(&self.config, &self.dir, &self.inbox, way)
    }

    /// Makes the link the current one and declares everything on it. Returns the earlier one and what is left on it.
    fn install(&self, way: Way, link: Arc<Link>) -> (Arc<Link>, Vec<Retired>) {
        let mut current = self.link.write().unwrap_or_else(PoisonError::into_inner);
        let (_, earlier) = std::mem::replace(&mut *current, (way, link.clone()));
        drop(current);
        // What one session refuses another would refuse too; it was accepted when it was first declared.
        let left = self.registry.all().iter().filter_map(|declaration| declaration.attach(&link).ok().flatten()).collect();
        (earlier, left)
    }
}

fn domain_dir(config: &ZenohConfig) -> Result<DomainDir, EngineError> {
    config.run_dir.domain(&config.domain).map_err(|why| EngineError::Unreachable {
        engine: NAME,
        place: config.run_dir.path().display().to_string(),
        why: why.to_string(),
    })
}

fn unreachable(place: &Endpoint, why: impl ToString) -> EngineError {
    EngineError::Unreachable { engine: NAME, place: place.to_string(), why: why.to_string() }
}

fn open_link(config: &ZenohConfig, dir: &DomainDir, inbox: &Arc<Inbox>, way: Way) -> Result<Link, EngineError> {
    match (way, &config.hub) {
        (Way::Hub, Some(hub)) => open_hub(config, hub, inbox),
        (Way::Peers, _) => open_peers(dir, inbox),
        _ => {
            let socket = dir.node_socket().map_err(|why| unreachable(&Endpoint::Unix(dir.path().to_owned()), why))?;
            let credentials = node_credentials(config, &socket);
            Link::open(&Role::Client { to: Endpoint::Unix(socket), credentials }, inbox)
        }
    }
}

/// What the node at this socket asks for; it says so by the presence of its key file beside it.
fn node_credentials(config: &ZenohConfig, socket: &Path) -> Option<Credentials> {
    let key = std::fs::read_to_string(socket.with_file_name(run_dir::NODE_KEY)).ok()?;
    Key::new(key).ok().map(|key| Credentials::of(&config.domain, key))
}

fn open_hub(config: &ZenohConfig, hub: &Endpoint, inbox: &Arc<Inbox>) -> Result<Link, EngineError> {
    let credentials = match hub {
        Endpoint::Unix(socket) => node_credentials(config, socket),
        Endpoint::Tcp(_) => config.lan.as_ref().map(|lan| Credentials::of(&config.domain, lan.key.clone())),
    };
    if matches!(hub, Endpoint::Tcp(_)) && credentials.is_none() {
        return Err(unreachable(hub, "hubs on the network ask for a key (TAMPU_KEY), and none is set"));
    }
    Link::open(&Role::Client { to: hub.clone(), credentials }, inbox).map_err(|refused| match hub {
        // The engine says the same whether nobody is there or the key is wrong; a person needs to know which.
        Endpoint::Tcp(address) if std::net::TcpStream::connect(address).is_ok() => {
            unreachable(hub, format!("it refuses; domain '{}' and its key must be the same there", config.domain))
        }
        _ => refused,
    })
}

/// Everybody listens first and then connects to whoever listens already, one after the other, so that no two miss each other.
fn open_peers(dir: &DomainDir, inbox: &Arc<Inbox>) -> Result<Link, EngineError> {
    let refused = |why: &dyn ToString| EngineError::Unreachable {
        engine: NAME,
        place: dir.peers().display().to_string(),
        why: why.to_string(),
    };
    let _meeting = meeting_lock(dir).map_err(|why| refused(&why))?;
    dir.reclaim();
    let listen = dir.peer_socket(host::incarnation()).map_err(|why| refused(&why))?;
    let connect = dir.meeting_sockets().into_iter().map(Endpoint::Unix).collect();
    Link::open(&Role::Peer { listen: Endpoint::Unix(listen), connect }, inbox)
}

/// Locked while one process joins. Whoever stops in the middle holds up the others only for a while.
fn meeting_lock(dir: &DomainDir) -> std::io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(dir.peers().join("meeting.lock"))?;
    let until = Instant::now() + MEETING_TIMEOUT;
    while file.try_lock().is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(file)
}

fn pattern(text: &str) -> Result<KeyExpr<'static>, EngineError> {
    KeyExpr::autocanonize(text.to_owned()).map_err(|why| EngineError::Refused {
        engine: NAME,
        doing: format!("reading the key '{text}'"),
        why: why.to_string(),
    })
}

impl Engine for ZenohEngine {
    fn name(&self) -> &'static str {
        NAME
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

    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError> {
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
        question::ask(&self.core.current().1.session, pattern(key)?, question, timeout, answers)
    }

    fn announce(&self, key: &str) -> Result<Guard, EngineError> {
        Ok(Box::new(self.declare(Arc::new(presence::Announcement::new(pattern(key)?)))?))
    }

    fn watch(&self, key: &str, seen: Seen) -> Result<Guard, EngineError> {
        Ok(Box::new(self.declare(Arc::new(presence::Watch::new(pattern(key)?, seen, &self.core.inbox)))?))
    }

    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError> {
        let driven = Driven { over: Arc::new(AtomicBool::new(false)), wake: wake.clone() };
        let (over, clock) = (driven.over.clone(), self.core.clock.clone());
        keeper::worker("tampu-drive", move || {
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

    fn connect_direct(&self, endpoint: &str) -> Result<Arc<dyn Engine>, EngineError> {
        self.core.connect_direct(endpoint)
    }
}

/// Ends a driven work when dropped.
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
