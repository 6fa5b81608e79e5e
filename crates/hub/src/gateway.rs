//! The gateway: sessions of programs that are not on the bus, `spec/wire/gateway.md`.
//!
//! ```text
//! client <-> connection (frames) <-> session (numbers, entries) <-> topics, attributes, publishers, questions <-> bus
//! ```
//! The gateway translates and invents nothing. A subscription is a reader of the bus, or a subscription of the client of
//! events. A session that publishes is a participant of its own. Every read and write is asked of the access hook, for
//! the principal of the session.
//!
//! Memory is bounded for each session: frames until they are acknowledged ([`limits::WINDOW`]), batches in readers, and
//! events in queues. A client that is paused or slow leaves its samples in the writers' caches.
//!
//! | part | module |
//! |-|-|
//! | connections, HELLO | `connection`; from other hosts `remote`, `tokens`; from the HTTP server `web` |
//! | WebSocket, in the process of the HTTP server | [`websocket`] |
//! | sessions, resuming | `sessions`, `session`, `outgoing` |
//! | requests | `requests`; `topics`, `logs`, `attributes`, `publisher`, `questions`, `rights` |
//! | questions of the bus to clients | `served`, `service`; readings of their attributes: `reads`, `read_callback` |

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::net::sockopt::socket_peercred;
use tampu_bus::{
    Participant,
    access::{Access, Principal},
};
use tampu_tls::ServerCertificate;
use tampu_types::gateway::messages::{Code, End};
use tampu_workers::{OnPanic, Running, WorkerThread};

use self::{
    connection::Peer, limits::UNGREETED, remote::RemoteListener, sessions::Sessions, shared::GatewayShared, web::WEB_SOCKET,
};

pub use self::tokens::TokenError;
pub(crate) use self::{shared::Join, tokens::Tokens};

mod attributes;
mod connection;
mod event_queue;
mod handles;
pub(crate) mod limits;
mod logs;
mod outgoing;
mod publisher;
mod questions;
mod read_callback;
mod reads;
mod remote;
mod requests;
mod rights;
mod served;
mod service;
mod session;
mod sessions;
pub mod settings;
mod shared;
mod subscription;
mod tokens;
mod topics;
mod web;
pub(crate) mod websocket;
mod words;

/// Name of the socket in the domain's part of the run-time directory.
pub const SOCKET: &str = "gateway.sock";

/// The state of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GatewayReport {
    /// Sessions with a connection.
    pub connected: usize,
    /// Sessions that wait to be resumed.
    pub detached: usize,
    /// Subscriptions of all sessions.
    pub subscriptions: usize,
    /// Publishers of all sessions.
    pub publishers: usize,
    /// Questions that wait for their answer.
    pub questions: usize,
    /// Services that clients answer.
    pub services: usize,
    /// Questions of the bus that wait for a client's answer.
    pub passed: usize,
    /// Bytes of frames that clients have not acknowledged.
    pub kept_bytes: usize,
    /// Counted frames of clients since the start.
    pub frames: u64,
    /// Bytes of clients' frames since the start.
    pub received_bytes: u64,
    /// Bytes for the sessions that are there.
    pub sent_bytes: u64,
    /// Sessions that were resumed.
    pub resumed: u64,
    /// Connections and requests that were refused.
    pub refused: u64,
    /// Questions of the bus that were passed on to clients since the start.
    pub passed_total: u64,
    /// Questions that a client has not answered in time.
    pub expired: u64,
    /// Times at which a queue of events was full and the oldest were dropped.
    pub dropped: u64,
}

struct Stopping {
    flag: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

/// A running gateway. It ends when dropped.
pub(crate) struct Gateway {
    sessions: Arc<Sessions>,
    listeners: Vec<(UnixListener, PathBuf)>,
    remote: Option<RemoteListener>,
    stopping: Arc<Stopping>,
    workers: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// Listens at the unix socket of this directory.
    pub fn start(participant: Participant, access: Access, join: Join, directory: &Path) -> io::Result<Gateway> {
        let sessions = Arc::new(Sessions::new(GatewayShared::new(participant, access, join)));
        let stopping = Arc::new(Stopping { flag: AtomicBool::new(false), lock: Mutex::new(()), changed: Condvar::new() });
        let mut gateway = Gateway { sessions, listeners: Vec::new(), remote: None, stopping, workers: Vec::new() };
        gateway.accept(directory.join(SOCKET), prove)?;
        gateway.accept(directory.join(WEB_SOCKET), prove_web)?;
        gateway.sweep()?;
        Ok(gateway)
    }

    /// Listens for programs on other hosts as well, which have a token.
    pub fn listen(&mut self, address: SocketAddr, certificate: Arc<ServerCertificate>, tokens: Tokens) -> io::Result<()> {
        self.remote = Some(RemoteListener::start(address, certificate, tokens, &self.sessions)?);
        Ok(())
    }

    /// Returns the address for other hosts, with its port.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.remote.as_ref().map(RemoteListener::address)
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.listeners.first().map_or(Path::new(SOCKET), |(_, path)| path)
    }

    /// Listens at a unix socket; `prove` finds the principal of a connection.
    fn accept(&mut self, path: PathBuf, prove: Prove) -> io::Result<()> {
        match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        // The directory keeps other users out before this.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let (accepting, sessions) = (listener.try_clone()?, self.sessions.clone());
        let (stopping, ungreeted) = (self.stopping.clone(), Running::new());
        self.listeners.push((listener, path));
        let worker = WorkerThread::named("gateway accept").stack_size(128 << 10);
        self.workers.push(worker.spawn_restarting(Duration::from_millis(100), move || {
            while !stopping.flag.load(Ordering::Acquire) {
                match accepting.accept() {
                    Ok((socket, _)) => admit(socket, prove, &sessions, &ungreeted),
                    // Without free descriptors it would be tried again at once.
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        })?);
        Ok(())
    }

    fn sweep(&mut self) -> io::Result<()> {
        let (sessions, stopping) = (self.sessions.clone(), self.stopping.clone());
        let worker = WorkerThread::named("gateway sessions").stack_size(128 << 10);
        self.workers.push(worker.spawn_restarting(Duration::from_millis(100), move || {
            while !stopping.flag.load(Ordering::Acquire) {
                sessions.sweep(Instant::now());
                let mut lock = stopping.lock.lock();
                if !stopping.flag.load(Ordering::Acquire) {
                    stopping.changed.wait_for(&mut lock, Duration::from_secs(1));
                }
            }
        })?);
        Ok(())
    }

    /// Returns what reports the state.
    pub fn reporter(&self) -> GatewayReporter {
        GatewayReporter { sessions: self.sessions.clone() }
    }
}

/// Reports the state of a gateway.
#[derive(Clone)]
pub(crate) struct GatewayReporter {
    sessions: Arc<Sessions>,
}

impl GatewayReporter {
    /// Returns the state at present.
    pub fn report(&self) -> GatewayReport {
        let shared = &self.sessions.shared;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let mut report = GatewayReport {
            frames: load(&shared.counters.frames),
            received_bytes: load(&shared.counters.bytes),
            resumed: load(&shared.counters.resumed),
            refused: load(&shared.counters.refused),
            passed_total: load(&shared.counters.passed),
            expired: load(&shared.counters.expired),
            dropped: load(&shared.counters.dropped),
            ..GatewayReport::default()
        };
        for session in self.sessions.list() {
            match session.detached_since() {
                Some(_) => report.detached += 1,
                None => report.connected += 1,
            }
            let counts = session.counts();
            report.subscriptions += counts.subscriptions;
            report.publishers += counts.publishers;
            report.questions += counts.questions;
            report.services += counts.services + counts.reads;
            report.passed += counts.passed;
            report.kept_bytes += session.outgoing.kept_bytes();
            report.sent_bytes += session.outgoing.sent_bytes();
        }
        report
    }
}

/// Finds the principal at the other end of a connection.
type Prove = fn(&UnixStream) -> Result<Principal, End>;

/// Begins a connection, if there is a place for it.
fn admit(socket: UnixStream, prove: Prove, sessions: &Arc<Sessions>, ungreeted: &Running) {
    let Some(place) = ungreeted.try_enter(UNGREETED) else {
        let why = format_args!("{UNGREETED} connections wait for their HELLO already");
        return connection::refuse(&socket, &End::because(Code::Limit, why));
    };
    let sessions = sessions.clone();
    let worker = WorkerThread::named("gateway connection").stack_size(256 << 10);
    // Without a thread the connection is dropped, and its client tries again.
    let _ = worker.spawn(OnPanic::ReportOnly, move || match prove(&socket) {
        Ok(principal) => connection::serve(socket, &Peer::Proved(principal), &sessions, place),
        Err(end) => connection::refuse(&socket, &end),
    });
}

/// Returns the principal that the HTTP server has proved; it is a process of this user.
fn prove_web(socket: &UnixStream) -> Result<Principal, End> {
    let refused = |why: &dyn std::fmt::Display| End::because(Code::Unauthenticated, why);
    match prove(socket)? {
        local if local == Principal::this_user() => web::principal_of(socket).map_err(|why| refused(&why)),
        _ => Err(refused(&"the socket is for the hub's own processes")),
    }
}

/// Returns the principal that the kernel proves: this user. The mode of the socket keeps others out.
fn prove(socket: &UnixStream) -> Result<Principal, End> {
    let cred = socket_peercred(socket).map_err(|why| End::because(Code::Unauthenticated, why))?;
    let user = cred.uid.as_raw();
    let own = rustix::process::geteuid().as_raw();
    // The superuser could take the place of this user.
    if user == own || user == 0 { Ok(Principal::this_user()) } else { Ok(Principal::User(user)) }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stopping.flag.store(true, Ordering::Release);
        drop(self.stopping.lock.lock());
        self.stopping.changed.notify_all();
        for (listener, path) in &self.listeners {
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
            // Nobody connects to a socket that is gone.
            let _ = fs::remove_file(path);
        }
        drop(self.remote.take());
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        self.sessions.end_all();
    }
}
