//! The parts of one process's engine, and the sessions it opens.

use std::{
    collections::HashMap,
    fs::File,
    path::Path,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};

use tampu_tls::probe::{After, host_at, probe};
use tampu_types::Domain;

use super::{
    connection::Connection,
    credentials::Credentials,
    declaration::{Registry, Retired},
    feed::Feed,
    host_name::HostName,
    host_rule::HeldRule,
    inbox::Inbox,
    link::Link,
    node_keys::NodeKeys,
    settings::{NAME, Role},
    worker::worker,
};
use crate::{
    clock::HostClock,
    connect::{Encryption, Endpoint, Key, Settings},
    engine::{Engine, EngineError},
    host,
    run_dir::{self, DomainDir},
    wire::keys::Keys,
};

/// Time that a process without a node waits for another one that is just starting.
const MEETING_TIMEOUT: Duration = Duration::from_secs(2);

/// Time in which a hub admits a host that it meets for the first time.
const ADMISSION: Duration = Duration::from_secs(8);
/// Time in which nothing listens at a hub that opens its session anew.
const ABSENCE: Duration = Duration::from_secs(2);
/// Time in which a hub that refuses this host's certificate or the host says so, after a handshake.
const LOOK: Duration = Duration::from_secs(2);
/// The same, when it has let the host in a moment ago.
const GLANCE: Duration = Duration::from_millis(300);
/// Pause between two attempts.
const ADMISSION_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Core {
    pub settings: Settings,
    pub dir: DomainDir,
    pub clock: Arc<HostClock>,
    pub link: RwLock<(Connection, Arc<Link>)>,
    pub registry: Arc<Registry>,
    pub inbox: Arc<Inbox>,
    pub directs: Mutex<Directs>,
    /// Proved name of the hub's host, once somebody has asked for it.
    pub hub_host: Mutex<HubHost>,
}

/// Direct links of a process.
#[derive(Default)]
pub(super) struct Directs {
    pub listening: Option<(String, Arc<dyn Engine>)>,
    /// Sessions to others, by endpoint; each lives as long as it is used.
    pub connected: HashMap<String, Weak<dyn Engine>>,
    /// Rule about the hosts at the other ends, once there is a link.
    pub hosts: Option<HeldRule>,
}

/// Proved name of the host of a hub on the network.
#[derive(Default)]
pub(super) enum HubHost {
    #[default]
    Unasked,
    Asking,
    Known(Arc<str>),
}

impl Core {
    /// Returns the proved name of the hub's host. The first call asks for it, which takes a handshake.
    pub fn hub_host(self: &Arc<Core>) -> Option<Arc<str>> {
        match self.settings.hub.as_ref()? {
            // The same host.
            Endpoint::Unix(_) => self.link.read().1.host.name().cloned(),
            Endpoint::Tcp(address) => {
                let mut found = self.hub_host.lock();
                if let (HubHost::Unasked, Some(Encryption::Tls(directory))) =
                    (&*found, self.settings.lan.as_ref().map(|lan| &lan.encryption))
                {
                    let (core, address, directory) = (Arc::downgrade(self), address.clone(), directory.clone());
                    let asked = worker("tampu-ask-host", move || {
                        let name = host_at(&address, &directory);
                        if let Some(core) = core.upgrade() {
                            // A hub that does not answer is asked again.
                            let known = name.map_or(HubHost::Unasked, |name| HubHost::Known(name.to_lowercase().into()));
                            *core.hub_host.lock() = known;
                        }
                    });
                    if asked.is_ok() {
                        *found = HubHost::Asking;
                    }
                }
                match &*found {
                    HubHost::Known(name) => Some(name.clone()),
                    HubHost::Unasked | HubHost::Asking => None,
                }
            }
        }
    }

    pub fn current(&self) -> (Connection, Arc<Link>) {
        self.link.read().clone()
    }

    pub fn open_link(&self, connection: Connection) -> Result<Link, EngineError> {
        open_link(&self.settings, &self.dir, &self.inbox, connection)
    }

    /// Makes the link the current one and repeats all declarations on it. Returns the earlier link and its remaining
    /// handles.
    pub fn install(&self, connection: Connection, link: Arc<Link>) -> (Arc<Link>, Vec<Retired>) {
        let mut current = self.link.write();
        let (_, earlier) = std::mem::replace(&mut *current, (connection, link.clone()));
        drop(current);
        // A declaration that one session refuses is refused by every other one. It was accepted when it was first declared.
        let left = self.registry.all().iter().filter_map(|declaration| declaration.attach(&link).ok().flatten()).collect();
        (earlier, left)
    }
}

pub(super) fn domain_dir(config: &Settings) -> Result<DomainDir, EngineError> {
    config.run_dir.domain(&config.domain).map_err(|why| EngineError::Unreachable {
        engine: NAME,
        place: config.run_dir.path().display().to_string(),
        why: why.to_string(),
    })
}

fn unreachable(place: &Endpoint, why: impl ToString) -> EngineError {
    EngineError::Unreachable { engine: NAME, place: place.to_string(), why: why.to_string() }
}

pub(super) fn open_link(
    config: &Settings,
    dir: &DomainDir,
    inbox: &Arc<Inbox>,
    connection: Connection,
) -> Result<Link, EngineError> {
    match (connection, &config.hub) {
        (Connection::Hub, Some(hub)) => open_hub(config, hub, inbox),
        (Connection::Peers, _) => open_peers(dir, inbox),
        _ => {
            let socket = dir.node_socket().map_err(|why| unreachable(&Endpoint::Unix(dir.path().to_owned()), why))?;
            let credentials = node_credentials(config, &socket);
            let mut link = inbox.open_link(&Role::Client { to: Endpoint::Unix(socket), credentials }, node_host(dir))?;
            let place = dir.place();
            let feed = place.and_then(|place| Feed::open(&link, Keys::new(&config.domain), &place, inbox));
            link.node_keys = feed.map(|feed| feed as Arc<dyn NodeKeys>);
            Ok(link)
        }
    }
}

/// Returns credentials for the node at this socket, which requires some if its key file lies beside it.
fn node_credentials(config: &Settings, socket: &Path) -> Option<Credentials> {
    let key = std::fs::read_to_string(socket.with_file_name(run_dir::NODE_KEY)).ok()?;
    Key::new(key).ok().map(|key| Credentials::of(&config.domain, key))
}

/// Returns the name under which this host's node is known to others; none if nothing proves names there.
pub(super) fn node_host(dir: &DomainDir) -> HostName {
    std::fs::read_to_string(dir.node_host()).map(|name| HostName::new(&name)).unwrap_or_default()
}

fn node_host_beside(socket: &Path) -> HostName {
    std::fs::read_to_string(socket.with_file_name(run_dir::NODE_HOST)).map(|name| HostName::new(&name)).unwrap_or_default()
}

fn open_hub(config: &Settings, hub: &Endpoint, inbox: &Arc<Inbox>) -> Result<Link, EngineError> {
    let credentials = match hub {
        Endpoint::Unix(socket) => node_credentials(config, socket),
        Endpoint::Tcp(_) => config.lan.as_ref().map(|lan| Credentials::on_network(&config.domain, lan)),
    };
    if let Endpoint::Tcp(address) = hub {
        let Some(lan) = &config.lan else {
            return Err(unreachable(hub, "hubs on the network ask for a key (TAMPU_KEY), and none is set"));
        };
        lan.encryption.for_address(address).map_err(|why| unreachable(hub, why))?;
        lan.encryption.check_key(&lan.key, address).map_err(|why| unreachable(hub, why))?;
    }
    let certificates = credentials.as_ref().and_then(|credentials| credentials.certificates.clone());
    let host = match hub {
        Endpoint::Unix(socket) => node_host_beside(socket),
        Endpoint::Tcp(_) => certificates.as_ref().map(HostName::of_certificate).unwrap_or_default(),
    };
    let (began, mut is_met, mut waits) = (Instant::now(), false, false);
    loop {
        let refused = match inbox.open_link(&Role::Client { to: hub.clone(), credentials: credentials.clone() }, host.clone()) {
            Ok(link) => return Ok(link),
            Err(refused) => refused,
        };
        let Endpoint::Tcp(address) = hub else { return Err(refused) };
        let is_away = || std::net::TcpStream::connect(address).is_err();
        let Some(directory) = &certificates else {
            return Err(if is_away() { refused } else { unreachable(hub, why_refused(&config.domain)) });
        };
        // The engine reports the same error for no listener, a wrong key and a wrong certificate.
        let probed = probe(address, directory, if waits { GLANCE } else { LOOK });
        is_met |= probed.is_ok();
        let patience = if is_met { ADMISSION } else { ABSENCE };
        match probed {
            // It has let this host in before and after an attempt, so it was not the host that it refused.
            Ok(After::Waits) if waits => return Err(unreachable(hub, why_refused_inside(&config.domain))),
            Ok(After::Waits) => {
                waits = true;
                continue;
            }
            Ok(After::Closes) if began.elapsed() >= patience => return Err(unreachable(hub, why_shut_out(host.name()))),
            Err(_) if is_away() && began.elapsed() >= patience => return Err(refused),
            Err(why) if began.elapsed() >= patience || !is_met && !is_away() => {
                return Err(unreachable(hub, format!("TLS fails: {why}")));
            }
            _ => waits = false,
        }
        // A hub that meets a host for the first time prepares the rules for it.
        std::thread::sleep(ADMISSION_PAUSE);
    }
}

/// Returns the reason for which a hub without TLS refuses, or one that a process without certificates asks.
fn why_refused(domain: &Domain) -> String {
    format!(
        "it refuses; domain '{domain}' and its key must be the same there, and if it uses TLS this process needs certificates \
         (TAMPU_CERTIFICATES)"
    )
}

/// Returns the reason for which a hub refuses a host that it lets in.
fn why_refused_inside(domain: &Domain) -> String {
    format!("it refuses; domain '{domain}' and its key must be the same there")
}

/// Returns the reason for which a hub closes connections of this host after the handshake.
fn why_shut_out(host: Option<&Arc<str>>) -> String {
    let name = host.map_or("", |name| name);
    format!("it does not let the host '{name}' in; its rules about 'enter' ('tampu access list' there) may shut it out")
}

/// Opens a peer session. Every process listens first and then connects to all present listeners, one process at a time,
/// so that no two miss each other.
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
    inbox.open_link(&Role::Peer { listen: Endpoint::Unix(listen), connect }, HostName::default())
}

/// Takes a lock while one process joins. A process that stops meanwhile delays the others only for a while.
fn meeting_lock(dir: &DomainDir) -> std::io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(dir.peers().join("meeting.lock"))?;
    let until = Instant::now() + MEETING_TIMEOUT;
    while file.try_lock().is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(file)
}
