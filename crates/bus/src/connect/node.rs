//! The node: the role of the hub that serves one host.
//!
//! It listens at the domain's socket in the run-time directory, which only the same user can enter. On a node that is
//! open to the network, it also listens at further addresses, where each caller must have the domain's key. Nodes
//! connect to each other. A node forwards to another node only the data that processes behind it requested.
//!
//! This module holds the parts that every engine's node needs: the lock for one node a domain and host, the key for the
//! processes of this host, and the removal of files of dead processes. The engine does the routing ([`Router`]).

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    net::{IpAddr, SocketAddr},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tampu_tls::CertificateInfo;
use tampu_types::Domain;

use super::{
    encryption::Encryption,
    endpoint::Endpoint,
    key::Key,
    leftovers::Sweeping,
    open::driver,
    settings::{DEFAULT_DOMAIN, Lan, Settings},
    standing::{Standing, is_at},
};
use crate::{
    access::{Policy, SECRET_LENGTH},
    engine::{Engine, EngineError, LinkTraffic, Router, RouterSettings},
    group::{BadGroup, GroupReport, GroupSettings, Groups},
    links::lock,
    run_dir::{DomainDir, GROUPS, Reclaimed, RunDirError},
};

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Engine, domain and directory of the processes; `hub` has no effect on a node.
    pub process: Settings,
    /// Addresses to listen at beyond the host's own socket; port 0 takes a free one.
    pub listen: Vec<Endpoint>,
    /// Other nodes to stay connected to; they may start later.
    pub connect: Vec<Endpoint>,
    /// Key of the domain. It is required for any address on the network.
    pub key: Option<Key>,
    /// Encryption of all connections over the network.
    pub encryption: Encryption,
    /// Names of the hosts that may pass on what other hosts send; `None` are those that this node connects to. Without
    /// certificates hosts have no names, and everybody may.
    pub relays: Option<Vec<String>>,
    /// Rules about topics of other hosts, from the first connection on ([`Node::hold_to`]).
    pub policy: Arc<Policy>,
    /// Multicast groups, each for the topics of a pattern; the first one that has a topic takes it.
    pub groups: Vec<GroupSettings>,
}

impl NodeSettings {
    /// Makes the settings of a node for one host only.
    pub fn new(process: Settings) -> NodeSettings {
        let encryption = Encryption::default();
        let (listen, connect, policy, groups) = Default::default();
        NodeSettings { process, listen, connect, key: None, encryption, relays: None, policy, groups }
    }
}

/// The reason why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The run-time directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// Another node serves the domain on this host.
    #[error("the domain '{domain}' already has a node on this host: process {pid}, listening at {socket}")]
    AlreadyRuns {
        /// The domain that both nodes serve.
        domain: Domain,
        /// The process number of the other node.
        pid: String,
        /// The socket at which it listens.
        socket: PathBuf,
    },
    /// The network needs a key and a named domain.
    #[error("the network is open only to a domain with a name and a key: {0}")]
    Closed(&'static str),
    /// An address needs encryption that the node does not have, or has encryption that does not work.
    #[error("{address}: {why}")]
    Unencrypted {
        /// Address in the settings.
        address: String,
        /// The reason and the way out.
        why: String,
    },
    /// The settings of multicast groups are senseless.
    #[error("multicast: {0}")]
    Group(#[from] BadGroup),
    /// A file of the node cannot be written.
    #[error("the node's file {path}: {why}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A running node; dropping it stops it.
pub struct Node {
    /// Removal of the files of processes that are killed. Dropped before the router.
    sweeping: Option<Sweeping>,
    /// Dropped before the router, too.
    groups: Option<Groups>,
    /// Addresses of multicast groups without use, because this node has no way to other hosts.
    unused_groups: Vec<IpAddr>,
    // Dropped first: the engine stops listening before the files are removed.
    router: Option<Box<dyn Router>>,
    settings: Settings,
    dir: DomainDir,
    reclaimed: Reclaimed,
    /// The key that the processes of this host find, on a node that is open to the network.
    shown_key: Option<Key>,
    /// The socket, with the number of its making.
    standing: Mutex<(u64, Standing)>,
    /// The name that other hosts know, if certificates prove names.
    host: Option<String>,
    engine_name: &'static str,
    /// Name of its place in the file system.
    place: String,
    /// Lock file, locked during the node's lifetime. The kernel unlocks it however the node ends.
    lock: Mutex<File>,
}

impl Node {
    /// Starts serving this host.
    pub fn start(settings: NodeSettings) -> Result<Node, NodeError> {
        let NodeSettings { mut process, listen, connect, key, encryption, relays, policy, groups } = settings;
        GroupSettings::check(&groups)?;
        let is_open = !listen.is_empty() || !connect.is_empty();
        if is_open && key.is_none() {
            return Err(NodeError::Closed("set the key all its members share"));
        }
        if is_open && process.domain.as_str() == DEFAULT_DOMAIN {
            return Err(NodeError::Closed("'local' is the name of every domain that never chose one"));
        }
        for endpoint in listen.iter().chain(&connect) {
            if let Endpoint::Tcp(address) = endpoint {
                let checked = encryption.for_address(address);
                checked.map_err(|why| NodeError::Unencrypted { address: address.clone(), why })?;
            }
        }
        let driver = driver(&process)?;
        let dir = process.run_dir.domain(&process.domain)?;
        let socket = dir.node_socket()?;
        let lock = take_lock(&process.domain, &dir, &socket)?;
        let _ = fs::remove_file(dir.restored_file());
        let reclaimed = dir.reclaim();
        let shown_key = key.as_ref().filter(|_| is_open);
        write_key(&dir, shown_key)?;
        write_user_key(&dir, is_open)?;
        let host = if is_open { proved_name(&encryption)? } else { None };
        write_host(&dir, host.as_deref())?;
        write_engine(&dir, driver.name)?;
        let place = write_place(&dir)?;
        let listen = std::iter::once(Endpoint::Unix(socket.clone())).chain(listen).collect();
        let shown_key = shown_key.cloned();
        process.hub = None;
        process.lan = key.map(|key| Lan { direct: process.lan.and_then(|lan| lan.direct), key, encryption });
        let key = shown_key.clone();
        let of_router = RouterSettings { process: process.clone(), dir: dir.clone(), listen, connect, key, relays, policy };
        let router = (driver.route)(of_router)?;
        let mut made = 0;
        router.at_rest(&mut |number| made = number)?;
        let standing = Standing::at(socket.clone()).map_err(|why| NodeError::Io { path: socket, why })?;
        let (lock, standing) = (Mutex::new(lock), Mutex::new((made, standing)));
        let sweeping = Some(Sweeping::start(router.engine()?, &process.domain, dir.clone())?);
        let mut unused_groups = Vec::new();
        let groups = if is_open && !groups.is_empty() {
            let started = Groups::start(groups, router.engine()?, &process.domain, &dir);
            Some(started.map_err(|why| NodeError::Io { path: dir.path().join(GROUPS), why })?)
        } else {
            let _ = fs::remove_file(dir.path().join(GROUPS));
            unused_groups.extend(groups.iter().map(|group| group.address));
            None
        };
        let router = Some(router);
        let (settings, engine_name) = (process, driver.name);
        Ok(Node {
            sweeping,
            groups,
            unused_groups,
            router,
            settings,
            dir,
            reclaimed,
            shown_key,
            standing,
            host,
            engine_name,
            place,
            lock,
        })
    }

    /// Returns the reason for which it cannot open its connections anew for other rules about hosts. It goes on trying.
    pub fn failure(&self) -> Option<String> {
        self.router.as_ref()?.at_rest(&mut |_| {}).err().map(|why| why.to_string())
    }

    /// Returns what does not work of the multicast groups at present, without which samples travel meanwhile, and for which
    /// reasons samples of others do not arrive.
    pub fn trouble(&self) -> Vec<String> {
        let unused = self.unused_groups.iter().map(|address| {
            format!("the multicast group {address} is without use: this hub has no other hosts; `tampu up --lan` or `--peer` joins them")
        });
        let of_engine = self.router.iter().flat_map(|router| router.trouble());
        unused.chain(self.groups.iter().flat_map(Groups::trouble)).chain(of_engine).collect()
    }

    /// Returns the counters of the multicast groups.
    pub fn group_reports(&self) -> Vec<GroupReport> {
        self.groups.as_ref().map(Groups::reports).unwrap_or_default()
    }

    /// Reports if processes find this node in the run-time directory.
    pub fn is_found(&self) -> bool {
        let mut is_there = false;
        self.with_standing(&mut |standing| {
            is_there = standing.is_there()?;
            Ok(())
        })
        .is_ok_and(|()| is_at(&lock(&self.lock), &self.dir.node_lock()) && is_there)
    }

    /// Works with the socket while the engine does not make it anew.
    fn with_standing(&self, work: &mut dyn FnMut(&Standing) -> io::Result<()>) -> Result<(), NodeError> {
        let socket = self.dir.node_socket()?;
        let mut result = Ok(());
        let mut at_rest = |number| {
            let mut standing = lock(&self.standing);
            if standing.0 != number {
                match Standing::at(socket.clone()) {
                    Ok(made) => *standing = (number, made),
                    Err(why) => return result = Err(why),
                }
            }
            result = work(&standing.1);
        };
        match &self.router {
            Some(router) => router.at_rest(&mut at_rest)?,
            None => at_rest(lock(&self.standing).0),
        }
        result.map_err(|why| NodeError::Io { path: socket, why })
    }

    /// Makes the run-time directory anew if it has vanished, so that new processes find this node. Returns true if it
    /// had. Call it from time to time.
    pub fn restore(&self) -> Result<bool, NodeError> {
        let socket = self.dir.node_socket()?;
        let mut lock = lock(&self.lock);
        let has_lock = is_at(&lock, &self.dir.node_lock());
        let mut is_there = false;
        self.with_standing(&mut |standing| {
            is_there = standing.is_there()?;
            Ok(())
        })?;
        if has_lock && is_there {
            return Ok(false);
        }
        self.settings.run_dir.domain(&self.settings.domain)?;
        if !has_lock {
            // Another node may have taken the place: then this error says so.
            *lock = take_lock(&self.settings.domain, &self.dir, &socket)?;
        }
        // What is still there stays: processes use it.
        if !self.dir.node_key().exists() {
            write_key(&self.dir, self.shown_key.as_ref())?;
        }
        if !self.dir.user_key().exists() {
            write_user_key(&self.dir, self.shown_key.is_some())?;
        }
        if !self.dir.node_host().exists() {
            write_host(&self.dir, self.host.as_deref())?;
        }
        if !self.dir.node_engine().exists() {
            write_engine(&self.dir, self.engine_name)?;
        }
        if self.dir.place().is_none() {
            write_or_remove(self.dir.node_place(), Some(&self.place))?;
        }
        self.with_standing(&mut Standing::link)?;
        let marker = self.dir.restored_file();
        crate::run_dir::private_file(&marker).map_err(|why| NodeError::Io { path: marker, why })?;
        Ok(true)
    }

    /// Lets these rules decide which topics another host reads and writes over its links. They hold for hosts whose
    /// certificates prove their names. When they change what a host may do, the node opens its connections anew; nothing is
    /// lost.
    pub fn hold_to(&self, policy: &Arc<Policy>) {
        if let Some(router) = &self.router {
            router.hold_to(policy);
        }
    }

    /// Returns the names of the hosts that this node connects to, as far as their certificates have proved them.
    pub fn dialed_hosts(&self) -> Vec<String> {
        self.router.as_ref().map(|router| router.dialed_hosts()).unwrap_or_default()
    }

    /// Returns the name that other hosts know, if certificates prove names.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Returns the name of its engine.
    pub fn engine_name(&self) -> &'static str {
        self.engine_name
    }

    /// Returns an engine on the node itself, for the hub's own roles: one hop nearer than any process.
    pub fn engine(&self) -> Result<Arc<dyn Engine>, EngineError> {
        match &self.router {
            Some(router) => router.engine(),
            // Set until the drop.
            None => Err(EngineError::Unsupported("engine", "a node that has ended")),
        }
    }

    /// Returns the settings with which a process finds this node.
    pub fn client_settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Returns the network addresses at which it listens (loopback excepted), with the assigned ports.
    pub fn addresses(&self) -> Vec<String> {
        self.router.as_ref().map(|router| router.addresses()).unwrap_or_default()
    }

    /// Returns the numbers of connected processes and of other connected nodes.
    pub fn connections(&self) -> (usize, usize) {
        self.router.as_ref().map(|router| router.connections()).unwrap_or_default()
    }

    /// Returns what the open links to other hosts have carried.
    pub fn links(&self) -> Vec<LinkTraffic> {
        self.router.as_ref().map(|router| router.links()).unwrap_or_default()
    }

    /// Asks this rule for each host that is connected with a certificate, by the name in it and the own address, and again
    /// every 2 s. It returns the reason of a refusal. Without encryption hosts have no names, and it is not asked.
    pub fn admit_hosts(&self, rule: impl Fn(&str, SocketAddr) -> Option<String> + Send + Sync + 'static) {
        if let Some(router) = &self.router {
            router.ask_for_hosts(Arc::new(move |host, own, _| rule(host, own)));
        }
    }

    /// Returns the files of dead processes that it removed when it started.
    pub fn reclaimed(&self) -> Reclaimed {
        self.reclaimed
    }

    /// Returns the domain's part of the run-time directory.
    pub fn dir(&self) -> &DomainDir {
        &self.dir
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.sweeping = None;
        self.groups = None;
        self.router = None;
        // The name of the engine stays, for processes that start before the next node, and that of the place.
        let of_host = [self.dir.node_key(), self.dir.node_host(), self.dir.user_key(), self.dir.policy()];
        for path in of_host.into_iter().chain([self.dir.site_settings(), self.dir.restored_file()]) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Locks the domain for this node, and writes its process number and domain for a second node and for people.
fn take_lock(domain: &Domain, dir: &DomainDir, socket: &Path) -> Result<File, NodeError> {
    let path = dir.node_lock();
    let failed = |why| NodeError::Io { path: path.clone(), why };
    let mut lock = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    if !tampu_workers::lock_after_predecessor(&lock).map_err(failed)? {
        let mut text = String::new();
        let _ = lock.read_to_string(&mut text);
        let pid = text.lines().next().unwrap_or_default().trim().to_owned();
        return Err(NodeError::AlreadyRuns { domain: domain.clone(), pid, socket: socket.to_owned() });
    }
    lock.set_len(0).map_err(failed)?;
    lock.rewind().map_err(failed)?;
    writeln!(lock, "{}\n{domain}", std::process::id()).map_err(failed)?;
    Ok(lock)
}

/// Writes the key where the processes of this host find it, or removes an outdated one.
fn write_key(dir: &DomainDir, key: Option<&Key>) -> Result<(), NodeError> {
    write_or_remove(dir.node_key(), key.map(Key::reveal))
}

/// Returns the name in this host's certificate, if connections to other hosts use it.
fn proved_name(encryption: &Encryption) -> Result<Option<String>, NodeError> {
    let Encryption::Tls(directory) = encryption else { return Ok(None) };
    let unusable = |why: String| NodeError::Unencrypted { address: directory.host().display().to_string(), why };
    let name = CertificateInfo::read(&directory.host()).map_err(|why| unusable(why.to_string()))?.common_name;
    if name.trim().is_empty() {
        return Err(unusable("the certificate has no common name; make one with 'tampu cert host NAME'".to_owned()));
    }
    Ok(Some(name.trim().to_lowercase()))
}

/// Writes this host's name where the processes of this host find it, or removes an outdated one.
fn write_host(dir: &DomainDir, host: Option<&str>) -> Result<(), NodeError> {
    write_or_remove(dir.node_host(), host)
}

/// Writes the engine's name where the processes of this host find it.
fn write_engine(dir: &DomainDir, name: &str) -> Result<(), NodeError> {
    write_or_remove(dir.node_engine(), Some(name))
}

/// Returns the name of the node's place. The first node makes it, and later ones keep it: processes that stay find them.
fn write_place(dir: &DomainDir) -> Result<String, NodeError> {
    if let Some(place) = dir.place() {
        return Ok(place);
    }
    let path = dir.node_place();
    let failed = |why| NodeError::Io { path: path.clone(), why };
    let mut number = [0; 8];
    fill_with_random(&mut number).map_err(failed)?;
    let place = format!("{:016x}", u64::from_le_bytes(number));
    write_or_remove(path, Some(&place))?;
    Ok(place)
}

fn fill_with_random(bytes: &mut [u8]) -> io::Result<()> {
    if rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())? == bytes.len() {
        return Ok(());
    }
    Err(io::Error::other("the system has no random numbers"))
}

/// Writes a text into a file that only its user can read, or removes an outdated one.
fn write_or_remove(path: PathBuf, text: Option<&str>) -> Result<(), NodeError> {
    let written = match text {
        None => match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
            _ => Ok(()),
        },
        Some(text) => crate::run_dir::private_file(&path).and_then(|mut file| file.write_all(text.as_bytes())),
    };
    written.map_err(|why| NodeError::Io { path, why })
}

/// Writes a new secret for the proofs of this host's user, or removes an outdated one. A closed node needs none.
fn write_user_key(dir: &DomainDir, is_open: bool) -> Result<(), NodeError> {
    let path = dir.user_key();
    let failed = |why| NodeError::Io { path: path.clone(), why };
    if !is_open {
        return match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(failed(why)),
            _ => Ok(()),
        };
    }
    let mut secret = [0; SECRET_LENGTH];
    fill_with_random(&mut secret).map_err(failed)?;
    crate::run_dir::private_file(&path).and_then(|mut file| file.write_all(&secret)).map_err(failed)
}
