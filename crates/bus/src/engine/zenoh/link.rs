//! An open session of the engine, with the known facts about its connections.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tampu_workers::SigpipeBlocked;
use zenoh::{Session, Wait, key_expr::KeyExpr, sample::SampleKind};

use super::{
    host_name::HostName,
    lease::Lease,
    node_keys::NodeKeys,
    settings::{NAME, Role},
};
use crate::{connect::Endpoint, engine::EngineError};

/// Longest time for closing. The closed socket informs the others anyway.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Session with its place in the order of this engine's sessions. Declarations move from an earlier link to a later
/// one, never back.
pub(super) struct Link {
    pub generation: u64,
    /// Name of this host in the keys of this session.
    pub host: HostName,
    pub session: Session,
    /// True if dropping the link closes the session; a node's own engine only borrows the node's.
    owned: bool,
    /// Lease of a session that its node may open anew.
    pub lease: Option<Arc<Lease>>,
    /// Announced keys that the node passes on; `None` if the engine reports them itself.
    pub node_keys: Option<Arc<dyn NodeKeys>>,
    /// Socket files to remove with it.
    files: Vec<PathBuf>,
}

fn next_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Link {
    /// Opens a session. `changed` gets each connection that opens (true) or closes (false), with the link's generation.
    pub fn open(
        role: &Role,
        host: HostName,
        changed: impl Fn(u64, String, bool) + Send + Sync + 'static,
    ) -> Result<Link, EngineError> {
        let session = open_session(role)?;
        let files = match role {
            Role::Peer { listen: Endpoint::Unix(path), .. } => vec![path.clone()],
            Role::Router { listen, .. } => listen.iter().filter_map(socket_file).collect(),
            _ => Vec::new(),
        };
        let link = Link { generation: next_generation(), host, session, owned: true, lease: None, node_keys: None, files };
        link.listen(changed)?;
        Ok(link)
    }

    /// Makes a link over the session of a node.
    pub fn borrow(session: Session, host: HostName, lease: Option<Arc<Lease>>) -> Link {
        Link { generation: next_generation(), host, session, owned: false, lease, node_keys: None, files: Vec::new() }
    }

    /// Returns true if the session is this link's own.
    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// Returns true if the session is closed, and another one will follow.
    pub fn awaits_another(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.awaits_another())
    }

    /// Returns the key on this session: the one in the template, with the name of this host.
    pub fn key(&self, template: &KeyExpr<'_>) -> KeyExpr<'static> {
        self.host.key(template)
    }

    fn listen(&self, changed: impl Fn(u64, String, bool) + Send + Sync + 'static) -> Result<(), EngineError> {
        let generation = self.generation;
        let noted = move |event: zenoh::session::TransportEvent| {
            let there = event.transport().zid().to_string();
            changed(generation, there, event.kind() == SampleKind::Put);
        };
        self.session
            .info()
            .transport_events_listener()
            .history(true)
            .callback(noted)
            .background()
            .wait()
            .map_err(|why| EngineError::Refused { engine: NAME, doing: "watching connections".to_owned(), why: why.to_string() })
    }
}

fn socket_file(endpoint: &Endpoint) -> Option<PathBuf> {
    match endpoint {
        Endpoint::Unix(path) => Some(path.clone()),
        Endpoint::Tcp(_) => None,
    }
}

/// Opens a session of this role.
pub(super) fn open_session(role: &Role) -> Result<Session, EngineError> {
    // The engine's threads inherit it; they start here, or from one another.
    let _blocked = SigpipeBlocked::new();
    zenoh::open(role.config()?).wait().map_err(|why| {
        let why = why.to_string();
        match role {
            Role::Client { to, .. } => EngineError::Unreachable { engine: NAME, place: to.to_string(), why },
            Role::Peer { listen, .. } => EngineError::Unreachable { engine: NAME, place: listen.to_string(), why },
            Role::Router { listen, .. } => {
                let place = listen.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(", ");
                EngineError::Unreachable { engine: NAME, place, why }
            }
        }
    })
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.owned {
            // This thread itself writes to the socket.
            let _blocked = SigpipeBlocked::new();
            // If this fails, the closing socket notifies the others.
            let _ = self.session.close().timeout(CLOSE_TIMEOUT).wait();
        }
        for file in &self.files {
            remove_socket(file);
        }
    }
}

/// Removes a socket's file and the lock that the engine put beside it.
pub(super) fn remove_socket(path: &std::path::Path) {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(lock);
}
