//! State of a receiver: its flows, the current sender of each, and the data that all its threads share.

use std::{
    collections::VecDeque,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use parking_lot::{Mutex, RwLock};

use super::{
    callers::Callers,
    flow::{FlowSettings, Gauges, ReceivedFlow},
    settings::ReceiverSettings,
};
use crate::{
    handler::{Connection, Peer},
    identity::Identity,
    message::{Cause, ProtectionLevel, Refusal, Token, Transport},
    name::Name,
    passes::Passes,
    state::ReceivedFlowState,
};

/// Rule that returns the reason for which a sender with this token or pass is refused.
pub(super) type Admission = Arc<dyn Fn(&Peer, &Token) -> Option<String> + Send + Sync>;

/// Sender that has a flow, and its connection.
#[derive(Default)]
pub(super) struct Tenancy {
    pub(super) sender: Option<Peer>,
    pub(super) session: u32,
    /// Current connection, if there is one: its number, and the socket to shut it down.
    pub(super) connection: Option<(u64, TcpStream)>,
    /// Number of the last connection.
    pub(super) last_connection: u64,
    pub(super) transport: Option<Transport>,
    pub(super) protection: ProtectionLevel,
    pub(super) connected_since: Option<Instant>,
    /// Time since which a transfer waits for its sender to reconnect.
    pub(super) broken_since: Option<Instant>,
}

pub(super) struct Slot {
    pub(super) settings: FlowSettings,
    /// Number of refused senders with the right token.
    pub(super) refused: AtomicU64,
    /// Refusals that the handler got. A sender retries all the time and is reported once.
    pub(super) told_refused: Mutex<VecDeque<(u32, Refusal)>>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) epoch: Instant,
    pub(super) tenancy: Mutex<Tenancy>,
    /// Flow, which the worker locks for a frame at a time.
    pub(super) flow: Mutex<ReceivedFlow>,
}

pub(super) struct ReceiverState {
    pub(super) stream: Name,
    pub(super) identity: Identity,
    pub(super) settings: ReceiverSettings,
    pub(super) token: Token,
    pub(super) slots: Vec<Slot>,
    pub(super) closing: AtomicBool,
    pub(super) callers: Callers,
    pub(super) next_connection: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Rule about senders with the right token.
    pub(super) admission: RwLock<Option<Admission>>,
    /// Passes that it has given on the bus.
    pub(super) passes: Arc<Passes>,
}

impl Slot {
    /// Returns true if the flow belongs to this connection.
    pub(super) fn is_held_by(&self, connection: u64) -> bool {
        self.tenancy.lock().connection.as_ref().is_some_and(|(number, _)| *number == connection)
    }

    pub(super) fn state(&self) -> ReceivedFlowState {
        let tenancy = self.tenancy.lock();
        let running = self.gauges.in_callback.load(Ordering::Relaxed);
        let now = self.epoch.elapsed().as_nanos() as u64;
        ReceivedFlowState {
            flow: self.settings.name.clone(),
            refused: self.refused.load(Ordering::Relaxed),
            sender: tenancy.sender.clone().filter(|_| tenancy.connection.is_some() || tenancy.broken_since.is_some()),
            connected: tenancy.connection.is_some(),
            transport: tenancy.transport.filter(|_| tenancy.connection.is_some()),
            protection: tenancy.connection.as_ref().map(|_| tenancy.protection),
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

/// Ends the connection of an admitted sender. A running transfer waits for its sender to reconnect.
pub(super) fn leave(shared: &ReceiverState, slot: &Slot, connection: u64, peer: &Peer, why: &str) {
    let mut flow = slot.flow.lock();
    let mut tenancy = slot.tenancy.lock();
    if tenancy.connection.as_ref().is_none_or(|(number, _)| *number != connection) {
        return;
    }
    tenancy.connection = None;
    if flow.phase() == crate::sending::Phase::Data {
        tenancy.broken_since = Some(Instant::now());
    }
    drop(tenancy);
    flow.tell(&Connection::Disconnected { sender: peer.clone(), why: why.to_owned() });
    // Checked after `broken_since` is set: either this worker sees `closing`, or the listener sees the open transfer.
    if shared.closing.load(Ordering::SeqCst) {
        flow.give_up(Cause::Away);
    }
}
