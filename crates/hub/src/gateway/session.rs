//! A session: its client, its subscriptions, publishers and questions, and the frames on both ways.

use std::{
    collections::{HashMap, HashSet},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;
use serde::Serialize;
use tampu_bus::{
    Participant,
    access::{Principal, Resource, Verb},
};
use tampu_types::{
    SourceName,
    gateway::{
        Kind,
        messages::{Code, End, Hello, SERVE},
    },
};

use super::{
    limits::{FRAME, LEAST_FRAME},
    outgoing::{Closed, Outgoing},
    publisher::{Publisher, Publishers},
    read_callback::ReadCallback,
    service::Service,
    shared::GatewayShared,
    subscription::Subscription,
};

/// Secret name of a session.
pub(super) type SessionKey = [u8; 16];

/// A subscription, a publisher, a question, a service or a read callback of a session.
pub(super) enum Entry {
    Subscription(Arc<Subscription>),
    Publisher(Arc<Publisher>),
    /// A question; the flag is true once its asker has cancelled it.
    Question(Arc<AtomicBool>),
    Service(Arc<Service>),
    Read(Arc<ReadCallback>),
}

/// Number of entries of each kind, and of the questions that a session's client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub subscriptions: usize,
    pub publishers: usize,
    pub questions: usize,
    pub services: usize,
    pub reads: usize,
    pub passed: usize,
}

/// Position of the frames from the client.
#[derive(Default)]
pub(super) struct Incoming {
    /// Number of the last counted frame.
    pub received: u64,
}

/// Connection that a session has, if it has one.
#[derive(Default)]
struct Attached {
    socket: Option<UnixStream>,
    /// Time since which there is none.
    since: Option<Instant>,
}

/// A session of a client.
pub(super) struct Session {
    pub key: SessionKey,
    pub principal: Principal,
    /// Name under which it publishes.
    pub source: SourceName,
    /// Longest body that the client takes.
    pub frame_limit: usize,
    /// True if the client answers services.
    pub serves: bool,
    pub outgoing: Arc<Outgoing>,
    /// Held while a frame is processed, so that a resumed connection goes on after it.
    pub incoming: Mutex<Incoming>,
    pub entries: Mutex<HashMap<u32, Entry>>,
    pub publishers: Publishers,
    /// Number of subscriptions, by patterns.
    pub subscribed: AtomicUsize,
    attached: Mutex<Attached>,
}

impl Session {
    pub fn new(key: SessionKey, principal: Principal, hello: &Hello, kept: &Arc<AtomicUsize>) -> Result<Session, End> {
        let source = if hello.source.is_empty() { "gateway" } else { &hello.source };
        let source = SourceName::new(source).map_err(|why| End::because(Code::Bad, format_args!("source: {why}")))?;
        let outgoing = Arc::new(Outgoing::new(kept.clone()));
        Ok(Session {
            key,
            principal,
            source,
            frame_limit: hello.frame.unwrap_or(FRAME).max(LEAST_FRAME) as usize,
            serves: hello.features.iter().any(|feature| feature == SERVE),
            publishers: Publishers::new(outgoing.clone()),
            outgoing,
            incoming: Mutex::default(),
            entries: Mutex::default(),
            subscribed: AtomicUsize::new(0),
            attached: Mutex::default(),
        })
    }

    /// Returns true for the session of a visitor without a login, whose bounds are smaller.
    pub fn is_guest(&self) -> bool {
        self.principal == Principal::Guest
    }

    /// Asks the hook if the session's principal may do this.
    pub fn require(&self, gateway: &GatewayShared, verb: Verb, resource: &Resource) -> Result<(), End> {
        gateway.access.ask_for(&self.principal, verb, resource).map_err(|denied| End {
            code: Code::Denied,
            error: denied.to_string(),
            denied: serde_json::to_value(&denied).ok(),
        })
    }

    /// Returns true if the principal may do this, without an audit record.
    pub fn may(&self, gateway: &GatewayShared, verb: Verb, resource: &Resource) -> bool {
        gateway.access.permits(&self.principal, verb, resource)
    }

    /// Sends a JSON frame without waiting.
    pub fn send_json(&self, kind: Kind, id: u32, body: &impl Serialize) -> Result<(), Closed> {
        let body = serde_json::to_vec(body).map_err(|_| Closed)?;
        self.outgoing.send(kind, 0, id, &body)
    }

    /// Ends a subscription, a publisher or a question with a reason.
    pub fn send_end(&self, id: u32, end: &End) {
        // A closed session has nobody to hear it.
        let _ = self.send_json(Kind::Ended, id, end);
    }

    /// Makes the socket the session's connection, and closes the one before.
    pub fn attach(&self, socket: Option<UnixStream>) {
        let mut attached = self.attached.lock();
        if let Some(before) = attached.socket.take() {
            let _ = before.shutdown(Shutdown::Both);
        }
        *attached = Attached { socket, since: None };
        self.publishers.set_absent(false);
    }

    /// Notes that this connection has ended, unless another one has taken over.
    pub fn detach(&self, connection: u64) {
        let mut attached = self.attached.lock();
        if self.outgoing.is_present(connection) {
            *attached = Attached { socket: None, since: Some(Instant::now()) };
            self.publishers.set_absent(true);
        }
    }

    /// Returns the time since which the session has no connection.
    pub fn detached_since(&self) -> Option<Instant> {
        self.attached.lock().since
    }

    /// Returns the incarnation of its publishers, if it has published.
    pub fn participant(&self) -> Option<Participant> {
        self.publishers.participant()
    }

    /// Ends the session with all that belongs to it. Without a reason its client is gone for good.
    pub fn end(&self, end: Option<&End>) {
        if !end.is_some_and(|end| matches!(end.code, Code::Done | Code::Stopping)) {
            self.publishers.die_at_end();
        }
        let bye = end.and_then(|end| serde_json::to_vec(end).ok());
        let entries: Vec<Entry> = self.entries.lock().drain().map(|(_, entry)| entry).collect();
        for entry in entries {
            self.stop(entry);
        }
        self.publishers.end();
        self.outgoing.close(bye.as_deref());
    }

    /// Stops what an entry does.
    pub fn stop(&self, entry: Entry) {
        match entry {
            Entry::Subscription(subscription) => {
                subscription.stop();
                self.outgoing.wake();
            }
            Entry::Publisher(publisher) => self.publishers.close(&publisher),
            Entry::Question(cancelled) => {
                cancelled.store(true, Ordering::Release);
                self.outgoing.wake();
            }
            Entry::Service(service) => service.stop(),
            Entry::Read(read) => read.stop(),
        }
    }

    /// Removes an entry and returns it.
    pub fn remove(&self, id: u32) -> Option<Entry> {
        self.entries.lock().remove(&id)
    }

    /// Returns the number of entries of each kind.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for entry in self.entries.lock().values() {
            match entry {
                Entry::Subscription(_) => counts.subscriptions += 1,
                Entry::Publisher(_) => counts.publishers += 1,
                Entry::Question(_) => counts.questions += 1,
                Entry::Service(service) => {
                    counts.services += 1;
                    counts.passed += service.waiting();
                }
                Entry::Read(read) => {
                    counts.reads += 1;
                    counts.passed += read.waiting();
                }
            }
        }
        counts
    }

    /// Returns its read callbacks.
    pub fn reads(&self) -> Vec<Arc<ReadCallback>> {
        let read = |entry: &Entry| match entry {
            Entry::Read(read) => Some(read.clone()),
            _ => None,
        };
        self.entries.lock().values().filter_map(read).collect()
    }

    /// Returns its services.
    pub fn services(&self) -> Vec<Arc<Service>> {
        let service = |entry: &Entry| match entry {
            Entry::Service(service) => Some(service.clone()),
            _ => None,
        };
        self.entries.lock().values().filter_map(service).collect()
    }
}

/// Resources that were found readable or not, so that the hook is asked once for each.
#[derive(Default)]
pub(super) struct Readable {
    denied: HashSet<String>,
    allowed: HashSet<String>,
}

impl Readable {
    /// Returns true if the session may read the resource of this name.
    pub fn check(&mut self, session: &Session, gateway: &GatewayShared, name: &str, make: fn(String) -> Resource) -> bool {
        if self.allowed.contains(name) {
            return true;
        }
        if self.denied.contains(name) {
            return false;
        }
        let may = session.may(gateway, Verb::Read, &make(name.to_owned()));
        let set = if may { &mut self.allowed } else { &mut self.denied };
        set.insert(name.to_owned());
        may
    }
}
