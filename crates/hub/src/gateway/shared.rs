//! State that all sessions of a gateway share: its place on the bus, its rights, its counters.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tampu_bus::{BusError, Participant, access::Access};
use tampu_event::{Client, client::ClientSettings};
use tampu_types::SourceName;
use tampu_workers::Running;

/// Joins the bus under a name, for the publishers of a session.
pub(crate) type Join = Arc<dyn Fn(SourceName) -> Result<Participant, String> + Send + Sync>;

/// Counters of a gateway since its start.
#[derive(Default)]
pub(super) struct Counters {
    /// Frames of clients.
    pub frames: AtomicU64,
    /// Bytes of clients' frames.
    pub bytes: AtomicU64,
    /// Sessions that were resumed.
    pub resumed: AtomicU64,
    /// Sessions and requests that were refused.
    pub refused: AtomicU64,
    /// Questions of the bus that were passed on to clients.
    pub passed: AtomicU64,
    /// Questions that a client has not answered in time.
    pub expired: AtomicU64,
    /// Events that queues of subscriptions dropped.
    pub dropped: AtomicU64,
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// State that all sessions share.
pub(super) struct GatewayShared {
    /// Place on the bus for subscriptions and questions.
    pub participant: Participant,
    pub access: Access,
    pub join: Join,
    /// Subscriptions of all sessions.
    pub subscribed: AtomicUsize,
    /// Subscriptions of attributes with readers of their own.
    pub own_readers: Running,
    /// Questions of guests that wait for their answer.
    pub guest_questions: Running,
    /// Questions of the bus that clients answer at present.
    pub passed: Running,
    /// Bytes of frames that all sessions keep.
    pub kept: Arc<AtomicUsize>,
    pub counters: Counters,
    client: Mutex<Option<Arc<Client>>>,
}

impl GatewayShared {
    pub fn new(participant: Participant, access: Access, join: Join) -> GatewayShared {
        GatewayShared {
            participant,
            access,
            join,
            subscribed: AtomicUsize::new(0),
            own_readers: Running::new(),
            guest_questions: Running::new(),
            passed: Running::new(),
            kept: Arc::default(),
            counters: Counters::default(),
            client: Mutex::default(),
        }
    }

    /// Returns the client of events, which starts with the first subscription of attributes.
    pub fn events(&self) -> Result<Arc<Client>, BusError> {
        let mut client = self.client.lock();
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let started = Arc::new(Client::start(self.participant.clone(), ClientSettings::default())?);
        *client = Some(started.clone());
        Ok(started)
    }
}
