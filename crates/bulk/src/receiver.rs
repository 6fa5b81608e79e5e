//! The receiving side of a stream: a listener, and a worker for each connection, which reads frames and calls the
//! flow's handler.
//!
//! ```text
//! sender --Hello--> listener -> slot: is the flow free? -> worker: read -> machine -> handler
//!        <-Welcome-                                                    \-> Ack, Fault
//! ```
//! A flow belongs to one sender at a time. When its connection breaks inside a transfer, the receiver keeps the
//! transfer open for [`ReceiverSettings::resume`]. The sender can reconnect and continue after the last byte. The
//! receiver does not wait for a sender that is known to be dead.
//!
//! Decision: blocking workers and not a reactor. A callback may take any time, and must delay only its own flow.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use parking_lot::{Mutex, RwLock};

use self::{
    callers::Callers,
    flow::ReceivedFlow,
    slot::{ReceiverState, Slot},
};
pub use self::{flow::FlowSettings, settings::ReceiverSettings};
use crate::{
    handler::{Handler, Peer},
    message::Token,
    name::Name,
    open::{random_bytes, spawn},
    passes::Passes,
    state::ReceiverReport,
};
pub use crate::{identity::Identity, open::OpenError};

pub mod blocks;
mod callers;
mod connection;
mod datagrams;
pub(crate) mod flow;
mod line;
mod listener;
pub mod queue;
mod read_datagrams;
pub(crate) mod reading;
mod settings;
mod slot;
mod tenant;

pub(crate) use line::Line;

/// Receiving side of a stream. Dropping it ends running transfers and closes its connections.
pub struct Receiver {
    shared: Arc<ReceiverState>,
    address: SocketAddr,
    worker: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Opens the stream's flows, each with its handler.
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
            None => Token(random_bytes()?),
        };
        let unusable = |why| OpenError::Listen { address: settings.listen, why };
        let listener = TcpListener::bind(settings.listen).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        listener.set_nonblocking(true).map_err(unusable)?;
        if let Some(bytes) = settings.socket_buffer {
            // The size must be set before the first connection, because the handshake fixes the window's scale.
            rustix::net::sockopt::set_socket_recv_buffer_size(&listener, bytes).map_err(|why| unusable(why.into()))?;
        }
        let shared = Arc::new(ReceiverState {
            stream,
            identity,
            settings,
            token,
            slots,
            closing: AtomicBool::new(false),
            callers: Callers::default(),
            next_connection: AtomicU64::new(1),
            refused: AtomicU64::new(0),
            admission: RwLock::default(),
            passes: Arc::default(),
        });
        let of = shared.clone();
        let worker = spawn("bulk-listen", move || listener::listen(&of, &listener))?;
        Ok(Receiver { shared, address, worker: Some(worker) })
    }

    /// Asks this rule about each sender with the right token, or with a pass, that connects. It gets what the sender has
    /// shown, and returns the reason of a refusal.
    pub(crate) fn admit_by(&self, rule: impl Fn(&Peer, &Token) -> Option<String> + Send + Sync + 'static) {
        *self.shared.admission.write() = Some(Arc::new(rule));
    }

    /// Returns the passes that admit senders.
    pub(crate) fn passes(&self) -> &Arc<Passes> {
        &self.shared.passes
    }

    /// Returns the name of its stream.
    pub fn stream(&self) -> &Name {
        &self.shared.stream
    }

    /// Returns its identity.
    pub fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    /// Returns its address for connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address for senders, with the token that admits them.
    pub fn target(&self) -> crate::target::Target {
        let address = match &self.shared.settings.announce {
            Some(host) if host.contains(':') => host.clone(),
            Some(host) => format!("{host}:{}", self.address.port()),
            None => self.address.to_string(),
        };
        crate::target::Target { address, token: self.shared.token }
    }

    /// Returns the settings of the flows, as they were opened.
    pub fn flows(&self) -> impl Iterator<Item = &FlowSettings> {
        self.shared.slots.iter().map(|slot| &slot.settings)
    }

    /// Returns the state of all flows. Does not wait for callbacks.
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
            if let Some((_, stream)) = &slot.tenancy.lock().connection {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        }
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
