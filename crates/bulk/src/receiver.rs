//! The receiving side of a stream: a listener, and a worker for each connection, which reads frames and calls the flow's handler.
//!
//! ```text
//! sender --Hello--> listener -> desk: whose flow is it? -> worker: read -> machine -> handler
//!        <-Welcome-                                                 \-> Ack, Fault
//! ```
//! A flow belongs to one sender at a time. When its connection breaks inside a transfer, the transfer is held open for
//! [`ReceiverSettings::resume`]: the sender comes again and goes on behind the last byte. A sender known to be dead is not waited for.
//!
//! Blocking workers and not a reactor: a callback may take as long as it likes, and must hold up nobody but its own flow.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::{Participant, host};
use tampu_types::Incarnation;

use crate::{
    handler::{Connection, Handler, Peer},
    message::{Cause, Refusal, Token, Transport},
    name::Name,
    state::{ReceivedFlowState, ReceiverReport},
};
pub use flow::FlowSettings;
use flow::{Gauges, ReceivedFlow};
use listener::Door;

pub mod blocks;
mod connection;
mod datagrams;
pub(crate) use connection::write;
pub(crate) mod flow;
mod listener;
pub mod queue;
pub(crate) mod reading;

/// Who a sender or receiver is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The installation.
    pub domain: String,
    /// Its stable name.
    pub source: String,
    /// This life of it.
    pub incarnation: Incarnation,
}

impl Identity {
    /// That of a process on the bus.
    pub fn of(participant: &Participant) -> Identity {
        Identity {
            domain: participant.domain().as_str().to_owned(),
            source: participant.source().as_str().to_owned(),
            incarnation: participant.incarnation(),
        }
    }

    /// One without the bus.
    pub fn alone(domain: &str, source: &str) -> Identity {
        Identity { domain: domain.to_owned(), source: source.to_owned(), incarnation: host::incarnation() }
    }
}

/// How a receiver works.
#[derive(Debug, Clone)]
pub struct ReceiverSettings {
    /// Where it takes connections; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address it gives away, where it is not the one it listens at.
    pub announce: Option<String>,
    /// What a sender must show; `None`: one made by chance, told on the bus to whoever may read there.
    pub token: Option<Token>,
    /// How long a transfer is held open while its sender is away.
    pub resume: Duration,
    /// A connection on which nothing came for so long is given up.
    pub silence: Duration,
    /// The most senders that are connected; more are refused. Callers that have not said who they are do not count.
    pub connections: usize,
    /// How long a caller may take to say who it is.
    pub hello: Duration,
    /// Bytes of a socket's receive buffer; `None`: as the kernel thinks best.
    pub socket_buffer: Option<usize>,
}

impl Default for ReceiverSettings {
    fn default() -> ReceiverSettings {
        ReceiverSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            announce: None,
            token: None,
            resume: Duration::from_secs(30),
            silence: Duration::from_secs(10),
            connections: 64,
            hello: Duration::from_secs(5),
            socket_buffer: None,
        }
    }
}

/// Why a sender or receiver could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {why}; choose another port, or 0 for any that is free")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// Two flows of one name.
    #[error("the stream has two flows called '{0}'")]
    Twice(Name),
    /// A flow cannot be sent to a multicast group as it is set, or the group cannot be sent to.
    #[error("flow '{flow}' cannot be sent to a group: {why}")]
    Group {
        /// Which flow.
        flow: Name,
        /// Why not.
        why: String,
    },
    /// A worker could not be started, or there is no chance to be had.
    #[error("{doing}: {why}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        why: io::Error,
    },
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 16 bytes nobody can guess.
pub(crate) fn chance() -> Result<[u8; 16], OpenError> {
    use std::io::Read;
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|why| OpenError::System { doing: "reading /dev/urandom", why })?;
    Ok(bytes)
}

pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|why| OpenError::System { doing: "starting a worker", why })
}

/// Who has a flow.
#[derive(Default)]
struct Tenancy {
    sender: Option<Peer>,
    session: u32,
    /// Its connection, while there is one: its number, and the socket to shut it with.
    connection: Option<(u64, TcpStream)>,
    /// The number of the last one.
    last_connection: u64,
    transport: Option<Transport>,
    connected_since: Option<Instant>,
    /// Since when a transfer waits for its sender to come back.
    broken_since: Option<Instant>,
}

struct Slot {
    settings: FlowSettings,
    /// Senders that belong here and were sent away.
    refused: AtomicU64,
    /// Those of them the handler was told of: a sender tries again all the time and is told of once.
    told_refused: Mutex<VecDeque<(u32, Refusal)>>,
    gauges: Arc<Gauges>,
    epoch: Instant,
    tenancy: Mutex<Tenancy>,
    /// Locked by the worker for a frame at a time.
    flow: Mutex<ReceivedFlow>,
}

struct Shared {
    stream: Name,
    identity: Identity,
    settings: ReceiverSettings,
    token: Token,
    slots: Vec<Slot>,
    closing: AtomicBool,
    door: Door,
    next_connection: AtomicU64,
    refused: AtomicU64,
}

/// The receiving side of a stream. Dropping it ends what is under way and closes its connections.
pub struct Receiver {
    shared: Arc<Shared>,
    address: SocketAddr,
    worker: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Opens the stream's flows, each with what is to be done with its data.
    pub fn open(
        identity: Identity,
        stream: Name,
        settings: ReceiverSettings,
        flows: Vec<(FlowSettings, Box<dyn Handler>)>,
    ) -> Result<Receiver, OpenError> {
        let mut slots: Vec<Slot> = Vec::new();
        for (flow, handler) in flows {
            if slots.iter().any(|slot| slot.settings.name == flow.name) {
                return Err(OpenError::Twice(flow.name));
            }
            let received = ReceivedFlow::new(flow, handler);
            slots.push(Slot {
                settings: received.settings.clone(),
                refused: AtomicU64::new(0),
                told_refused: Mutex::default(),
                gauges: received.gauges.clone(),
                epoch: received.epoch(),
                tenancy: Mutex::default(),
                flow: Mutex::new(received),
            });
        }
        let token = match settings.token {
            Some(token) => token,
            None => Token(chance()?),
        };
        let unusable = |why| OpenError::Listen { address: settings.listen, why };
        let listener = TcpListener::bind(settings.listen).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        listener.set_nonblocking(true).map_err(unusable)?;
        if let Some(bytes) = settings.socket_buffer {
            // Before anybody connects: the window's scale is agreed on then.
            rustix::net::sockopt::set_socket_recv_buffer_size(&listener, bytes).map_err(|why| unusable(why.into()))?;
        }
        let shared = Arc::new(Shared {
            stream,
            identity,
            settings,
            token,
            slots,
            closing: AtomicBool::new(false),
            door: Door::default(),
            next_connection: AtomicU64::new(1),
            refused: AtomicU64::new(0),
        });
        let of = shared.clone();
        let worker = spawn("bulk-listen", move || listener::listen(&of, &listener))?;
        Ok(Receiver { shared, address, worker: Some(worker) })
    }

    /// Which stream.
    pub fn stream(&self) -> &Name {
        &self.shared.stream
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    /// Where it takes connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where senders reach it, and what lets them in.
    pub fn target(&self) -> crate::target::Target {
        let address = match &self.shared.settings.announce {
            Some(host) if host.contains(':') => host.clone(),
            Some(host) => format!("{host}:{}", self.address.port()),
            None => self.address.to_string(),
        };
        crate::target::Target { address, token: self.shared.token }
    }

    /// The flows, as they were opened.
    pub fn flows(&self) -> impl Iterator<Item = &FlowSettings> {
        self.shared.slots.iter().map(|slot| &slot.settings)
    }

    /// How everything stands. Does not wait for callbacks.
    pub fn state(&self) -> ReceiverReport {
        let shared = &self.shared;
        ReceiverReport {
            stream: shared.stream.clone(),
            source: shared.identity.source.clone(),
            incarnation: shared.identity.incarnation.to_string(),
            address: self.target().address,
            refused: shared.refused.load(Ordering::Relaxed),
            flows: shared.slots.iter().map(Slot::state).collect(),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        for slot in &self.shared.slots {
            if let Some((_, stream)) = &lock(&slot.tenancy).connection {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        }
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Slot {
    /// Whether the flow belongs to this connection.
    fn is_held_by(&self, connection: u64) -> bool {
        lock(&self.tenancy).connection.as_ref().is_some_and(|(number, _)| *number == connection)
    }

    fn state(&self) -> ReceivedFlowState {
        let tenancy = lock(&self.tenancy);
        let running = self.gauges.in_callback.load(Ordering::Relaxed);
        let now = self.epoch.elapsed().as_nanos() as u64;
        ReceivedFlowState {
            flow: self.settings.name.clone(),
            refused: self.refused.load(Ordering::Relaxed),
            sender: tenancy.sender.clone().filter(|_| tenancy.connection.is_some() || tenancy.broken_since.is_some()),
            connected: tenancy.connection.is_some(),
            transport: tenancy.transport.filter(|_| tenancy.connection.is_some()),
            connected_for: tenancy
                .connected_since
                .filter(|_| tenancy.connection.is_some())
                .map(|since| since.elapsed().as_secs_f64()),
            waits_for_sender: tenancy.broken_since.map(|since| since.elapsed().as_secs_f64()),
            in_callback: (running > 0).then(|| now.saturating_sub(running - 1) as f64 / 1e9),
            bytes: self.gauges.bytes.load(Ordering::Relaxed),
            frames: self.gauges.frames.load(Ordering::Relaxed),
            lost_bytes: self.gauges.lost_bytes.load(Ordering::Relaxed),
            transfers: self.gauges.transfers.load(Ordering::Relaxed),
        }
    }
}

/// What the connection of a sender that was let in leaves when it ends.
fn leave(shared: &Shared, slot: &Slot, connection: u64, peer: &Peer, why: &str) {
    let mut flow = lock(&slot.flow);
    let mut tenancy = lock(&slot.tenancy);
    if tenancy.connection.as_ref().is_none_or(|(number, _)| *number != connection) {
        return;
    }
    tenancy.connection = None;
    if flow.phase() == crate::sending::Phase::Data {
        tenancy.broken_since = Some(Instant::now());
    }
    drop(tenancy);
    flow.tell(&Connection::Disconnected { sender: peer.clone(), why: why.to_owned() });
    // Looked at after `broken_since` was set: either this worker sees that the receiver closes, or the listener sees what is open.
    if shared.closing.load(Ordering::SeqCst) {
        flow.give_up(Cause::Away);
    }
}
