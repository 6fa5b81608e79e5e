//! The node: the role of the hub that serves one host.
//!
//! It listens at the domain's socket in the run-time directory, where only the same user comes in, and, opened to the
//! network, at TCP addresses, where whoever connects must have the domain's key. Nodes connect to each other and carry for
//! their processes only what somebody behind another node asked for.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tampu_types::Domain;
use zenoh::{Session, Wait, liveliness::LivelinessToken};

use super::{
    Way, ZenohEngine,
    config::{Credentials, DEFAULT_DOMAIN, Endpoint, Key, Lan, ZenohConfig},
    keeper::Inbox,
    link::{self, Link},
    settings::Role,
};
use crate::{
    engine::EngineError,
    host,
    run_dir::{DomainDir, Reclaimed, RunDirError},
    wire::keys::Keys,
};

/// How long a node that takes over waits for the one before it to let go: a killed process is buried within this.
const TAKE_OVER: Duration = Duration::from_millis(500);

/// What a node must know.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The domain and where its processes meet; `hub` does not matter to a node.
    pub process: ZenohConfig,
    /// Addresses to listen at beyond the host's own socket; port 0 takes a free one.
    pub listen: Vec<Endpoint>,
    /// Other nodes to stay connected to; they may come later.
    pub connect: Vec<Endpoint>,
    /// The key of the domain. Needed to listen at or connect to anything on the network.
    pub key: Option<Key>,
}

impl NodeConfig {
    /// A node for one host only.
    pub fn new(process: ZenohConfig) -> NodeConfig {
        NodeConfig { process, listen: Vec::new(), connect: Vec::new(), key: None }
    }
}

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The directory it would meet its processes in.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// Another one serves this host.
    #[error("the domain '{domain}' already has a node on this host: process {pid}, listening at {socket}")]
    AlreadyRuns {
        /// Whose.
        domain: Domain,
        /// The process that is it.
        pid: String,
        /// Where it listens.
        socket: PathBuf,
    },
    /// The network was asked for without what it takes.
    #[error("the network is open only to a domain with a name and a key: {0}")]
    Closed(&'static str),
    /// A file of the node cannot be written.
    #[error("the node's file {path}: {why}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A running node; dropping it stops it.
pub struct Node {
    config: ZenohConfig,
    dir: DomainDir,
    session: Session,
    reclaimed: Reclaimed,
    _here: LivelinessToken,
    /// Locked as long as the node lives; the kernel unlocks it however the node ends.
    _lock: File,
}

impl Node {
    /// Starts serving this host.
    pub fn start(config: NodeConfig) -> Result<Node, NodeError> {
        let NodeConfig { mut process, listen, connect, key } = config;
        let is_open = !listen.is_empty() || !connect.is_empty();
        if is_open && key.is_none() {
            return Err(NodeError::Closed("set the key all its members share"));
        }
        if is_open && process.domain.as_str() == DEFAULT_DOMAIN {
            return Err(NodeError::Closed("'local' is the name of every domain that never chose one"));
        }
        let dir = process.run_dir.domain(&process.domain)?;
        let socket = dir.node_socket()?;
        let lock = take_lock(&process.domain, &dir, &socket)?;
        let reclaimed = dir.reclaim();
        // The lock above decides; the engine's own would outlive us in processes we start, which inherit it.
        link::remove_socket(&socket);
        write_key(&dir, key.as_ref().filter(|_| is_open))?;

        let credentials = key.as_ref().filter(|_| is_open).map(|key| Credentials::of(&process.domain, key.clone()));
        let users = credentials.as_ref().map(|credentials| users_file(&dir, credentials)).transpose();
        let users = users.map_err(|why| NodeError::Io { path: dir.path().to_owned(), why })?;
        let credentials = credentials.zip(users.as_ref().map(|file| file.path().to_owned()));
        let listen = std::iter::once(Endpoint::Unix(socket)).chain(listen).collect();
        let session = link::open_session(&Role::Router { listen, connect, credentials })?;
        // While this host's node is announced, a process of it that is not has died; else the host cannot be reached.
        let here = Keys::new(&process.domain).node(host::boot());
        let here = session.liveliness().declare_token(here).wait().map_err(|why| EngineError::Refused {
            engine: super::NAME,
            doing: "announcing the node".to_owned(),
            why: why.to_string(),
        })?;
        process.hub = None;
        process.lan = key.map(|key| Lan { direct: process.lan.and_then(|lan| lan.direct), key });
        Ok(Node { config: process, dir, session, reclaimed, _here: here, _lock: lock })
    }

    /// An engine on the node itself: what the hub's own roles use, one hop nearer than any process.
    pub fn engine(&self) -> Result<Arc<ZenohEngine>, EngineError> {
        let inbox = Arc::new(Inbox::default());
        let link = Link::borrow(self.session.clone());
        ZenohEngine::over(self.config.clone(), self.dir.clone(), inbox, Way::Fixed, link).map(Arc::new)
    }

    /// What a process needs to find this node.
    pub fn client_config(&self) -> ZenohConfig {
        self.config.clone()
    }

    /// The network addresses it listens at (loopback excepted), with the ports it got.
    pub fn addresses(&self) -> Vec<String> {
        let locators = self.session.info().locators().wait();
        locators.iter().filter_map(|place| place.to_string().strip_prefix("tcp/").map(str::to_owned)).collect()
    }

    /// How many processes and how many other nodes are connected.
    pub fn connections(&self) -> (usize, usize) {
        let mut counts = (0, 0);
        for transport in self.session.info().transports().wait() {
            match transport.whatami() {
                zenoh::config::WhatAmI::Router => counts.1 += 1,
                _ => counts.0 += 1,
            }
        }
        counts
    }

    /// What dead processes had left behind when it started.
    pub fn reclaimed(&self) -> Reclaimed {
        self.reclaimed
    }

    /// The domain's part of the run-time directory.
    pub fn dir(&self) -> &DomainDir {
        &self.dir
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.session.close().timeout(Duration::from_secs(1)).wait();
        if let Ok(socket) = self.dir.node_socket() {
            link::remove_socket(&socket);
        }
        let _ = fs::remove_file(self.dir.node_key());
    }
}

/// Locks the domain for this node and writes down who it is, for whoever comes second.
fn take_lock(domain: &Domain, dir: &DomainDir, socket: &std::path::Path) -> Result<File, NodeError> {
    let path = dir.node_lock();
    let failed = |why| NodeError::Io { path: path.clone(), why };
    let mut lock = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    let until = Instant::now() + TAKE_OVER;
    while lock.try_lock().is_err() {
        if until <= Instant::now() {
            let mut pid = String::new();
            let _ = lock.read_to_string(&mut pid);
            return Err(NodeError::AlreadyRuns { domain: domain.clone(), pid: pid.trim().to_owned(), socket: socket.to_owned() });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    lock.set_len(0).map_err(failed)?;
    lock.rewind().map_err(failed)?;
    writeln!(lock, "{}", std::process::id()).map_err(failed)?;
    Ok(lock)
}

/// Leaves the key where the processes of this host find it, or removes one that no longer counts.
fn write_key(dir: &DomainDir, key: Option<&Key>) -> Result<(), NodeError> {
    let path = dir.node_key();
    let written = match key {
        None => match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
            _ => Ok(()),
        },
        Some(key) => private_file(&path).and_then(|mut file| file.write_all(key.reveal().as_bytes())),
    };
    written.map_err(|why| NodeError::Io { path, why })
}

fn private_file(path: &std::path::Path) -> io::Result<File> {
    // Removed first, so that the mode counts and nobody reads half a key in an old file.
    let _ = fs::remove_file(path);
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// The engine wants to read who may come in from a file, once, while it opens.
pub(super) struct UsersFile(PathBuf);

impl UsersFile {
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for UsersFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub(super) fn users_file(dir: &DomainDir, credentials: &Credentials) -> io::Result<UsersFile> {
    let file = UsersFile(dir.peers().join(format!("{}.users", host::incarnation())));
    writeln!(private_file(&file.0)?, "{}:{}", credentials.user, credentials.key.reveal())?;
    Ok(file)
}
