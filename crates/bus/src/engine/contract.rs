//! The contract of an engine: send, receive, ask, answer, presence, and its declared limits. No more.
//!
//! An engine may lose, delay and repeat any message. `Ok` from [`Outlet::send`] means only that the engine took the
//! bytes. The layer above (the rest of this crate) adds order, loss, credit, history and receipts, once for all
//! engines. We measured that no engine keeps them by itself without stalling all readers on one slow reader.
//!
//! An engine calls back on its own workers. Its callbacks are quick (they move bytes into a queue) and never block. An
//! engine may call them from inside `send` when writer and reader live in one process. So this crate holds no lock
//! while it sends control messages.

use std::{any::Any, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tampu_types::Incarnation;

use crate::{
    clock::{Clock, Gate},
    host::{self, Fate},
};

/// Returns the key with this chunk in the place of [`OWN_HOST`].
pub fn with_host(key: &str, chunk: &str) -> String {
    key.split('/').map(|part| if part == OWN_HOST { chunk } else { part }).collect::<Vec<_>>().join("/")
}

/// Guard of a declaration; dropping it withdraws the declaration.
pub type Guard = Box<dyn Any + Send + Sync>;

/// Chunk of a key that stands for the own host: an engine puts the name of its host in its place, or [`UNPROVED`].
pub const OWN_HOST: &str = "@";

/// Chunk of the keys of a process whose host proves no name.
pub const UNPROVED: &str = "-";

/// Called with every message that arrives, and its key.
pub type Deliver = Arc<dyn Fn(Bytes, &str) + Send + Sync>;

/// Called with every question that arrives; it may answer later and from another worker.
pub type Answerer = Arc<dyn Fn(Box<dyn Question>) + Send + Sync>;

/// Called with every answer, and once with the end.
pub type Answers = Box<dyn FnMut(Answer) + Send>;

/// Called when a key under a watched pattern is announced or withdrawn.
pub type Seen = Arc<dyn Fn(Presence) + Send + Sync>;

/// Called once, when a watch has reported the keys that were announced at its beginning.
pub type CaughtUp = Box<dyn FnOnce() + Send>;

/// Purpose of a message, by which engines choose priorities and congestion settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Samples: dropped rather than blocking when a link is full, because the layer above recovers them.
    Data,
    /// Samples that must not wait behind others (immediate records); same guarantees.
    Urgent,
    /// Acknowledgements and heartbeats: same priority as data, or heartbeats overtake samples and gaps look real. Few go to
    /// one key, so an engine keeps nothing about it.
    Control,
    /// Samples as urgent as those of [`Class::Urgent`], to a key about which an engine keeps nothing.
    UrgentUndeclared,
}

impl Class {
    /// Reports if its messages may overtake those of other classes.
    pub fn is_urgent(self) -> bool {
        matches!(self, Class::Urgent | Class::UrgentUndeclared)
    }

    /// Reports if an engine declares the key of its outlets.
    pub fn is_declared(self) -> bool {
        matches!(self, Class::Data | Class::Urgent)
    }
}

/// Declared limits of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size up to which a batch travels as one piece, in bytes. The layer above seals its batches at this size.
    pub batch: usize,
    /// Longest message of the engine, in bytes.
    pub message: usize,
}

/// Connection of a process at present, for display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connected {
    /// Through the host's node.
    Node,
    /// Through a hub elsewhere.
    Hub,
    /// With the other processes of this host, without a node.
    Peers,
    /// As a node, or by a direct link.
    Direct,
}

/// Announcement or withdrawal of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// Key of the announcement.
    pub key: String,
    /// True if it was announced, false if it was withdrawn.
    pub here: bool,
}

/// Part of an answer to a question, or the end of all answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One part of an answer.
    Part(Bytes),
    /// All answering processes have finished.
    End,
    /// The time was up first, or no process could be asked.
    Unanswered,
}

/// Question to an answering process. Dropping it ends its answers.
pub trait Question: Send {
    /// The key that was asked.
    fn key(&self) -> &str;
    /// The question's octets.
    fn payload(&self) -> &Bytes;
    /// Sends one part of the answer.
    fn reply(&self, part: Bytes) -> Result<(), EngineError>;
}

/// Outlet for messages under one key.
pub trait Outlet: Send + Sync {
    /// Sends the bytes. `Ok` does not guarantee delivery.
    fn send(&self, message: Bytes) -> Result<(), EngineError>;
}

/// Work that chooses the time of its next call.
pub trait Tick: Send + Sync {
    /// Does the work that is due at `now` (monotonic ns) and returns the time of the next call.
    fn tick(&self, now: u64) -> u64;
}

/// Error of an engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No node or peer could be reached.
    #[error("{engine} cannot reach {place}: {why}")]
    Unreachable {
        /// Name of the engine.
        engine: &'static str,
        /// The endpoint tried.
        place: String,
        /// The engine's reason.
        why: String,
    },
    /// The engine refused the call.
    #[error("{engine}: {doing}: {why}")]
    Refused {
        /// Name of the engine.
        engine: &'static str,
        /// The failed action.
        doing: String,
        /// The engine's reason.
        why: String,
    },
    /// The message is longer than the engine takes.
    #[error("{engine} takes messages of at most {limit} bytes, this one has {length}")]
    TooLong {
        /// Name of the engine.
        engine: &'static str,
        /// Largest length in bytes.
        limit: usize,
        /// Length of the message in bytes.
        length: usize,
    },
    /// This build has no engine of that name.
    #[error("this build has no engine '{name}'; it has: {known}")]
    Unknown {
        /// The name in the settings.
        name: String,
        /// The names of this build's engines.
        known: String,
    },
    /// The node of this host has another engine than the settings name.
    #[error(
        "the node of this host has the engine '{of_node}', and TAMPU_ENGINE or a setting says '{name}': unset it, or start the hub with --engine {name}"
    )]
    OfNode {
        /// The name in the settings.
        name: String,
        /// The node's engine.
        of_node: String,
    },
    /// The node of this host has an engine that this build lacks.
    #[error(
        "the hub of this host has the engine '{of_node}', which this program was built without: build it with the feature {of_node}, or start the hub with another --engine"
    )]
    NodeOnly {
        /// The node's engine.
        of_node: String,
    },
    /// The engine cannot do this at all.
    #[error("{1} has no {0}")]
    Unsupported(&'static str, &'static str),
}

/// An engine carries messages between participants.
///
/// Keys are chunks separated by `/`, made of `a-z 0-9 _ . -`; patterns may hold `*` (one chunk), `**` (any number of chunks)
/// and `$*` (any characters inside one chunk). A chunk [`OWN_HOST`] becomes the name of this process's host, on every
/// connection the name that it proves there.
pub trait Engine: Send + Sync + 'static {
    /// Returns the engine's name in messages and configuration.
    fn name(&self) -> &'static str;

    /// Returns the declared limits of the engine.
    fn limits(&self) -> Limits;

    /// Returns the connection of this process at present.
    fn connected(&self) -> Connected {
        Connected::Direct
    }

    /// Returns the clock of everything on this engine: the host's, or a simulated one.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Returns a new incarnation on this engine's host.
    fn incarnation(&self) -> Incarnation {
        host::incarnation()
    }

    /// Returns the state of an incarnation whose presence is gone, as far as this engine's host can tell.
    fn fate(&self, incarnation: Incarnation) -> Fate {
        host::fate(incarnation)
    }

    /// Returns the directory whose files every process on this host can map; loans need one.
    fn shared_dir(&self) -> Option<PathBuf> {
        None
    }

    /// Reports if processes of other hosts may be on this bus: whoever has the domain's key.
    fn is_open(&self) -> bool {
        false
    }

    /// Returns the name of this host that its certificate proves, if every connection to other hosts proves names: then the
    /// host in the key of a message is the one that it comes from.
    fn host(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns the proved name of the host whose hub this process is connected to instead of a node of its own host. `None`
    /// if there is no such hub, nothing proves names, or the name is not known yet.
    fn hub_host(&self) -> Option<Arc<str>> {
        None
    }

    /// Opens an outlet for this key.
    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError>;

    /// Calls `deliver` with every message sent under the pattern, including this process's own.
    fn subscribe(&self, pattern: &str, deliver: Deliver) -> Result<Guard, EngineError>;

    /// Answers questions under the pattern.
    fn answer(&self, pattern: &str, answerer: Answerer) -> Result<Guard, EngineError>;

    /// Asks all answering processes under this key.
    fn ask(&self, key: &str, question: Bytes, timeout: Duration, answers: Answers) -> Result<(), EngineError>;

    /// Announces the key until the guard is dropped or this process ends.
    fn announce(&self, key: &str) -> Result<Guard, EngineError>;

    /// Calls `seen` for every key announced under the pattern, at present and later. Calls `caught_up` after the calls for
    /// the keys that were announced before, or when the engine cannot find out about them.
    fn watch(&self, pattern: &str, seen: Seen, caught_up: Option<CaughtUp>) -> Result<Guard, EngineError>;

    /// Calls `work` at the times that it chooses, and soon after `wake` is opened, until the guard is dropped.
    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError>;

    /// Opens this process for direct links. Returns the endpoint for other processes, and the engine that sends to
    /// those connected there. Both live as long as this engine; a second call returns the same.
    fn listen_direct(&self) -> Result<(String, Arc<dyn Engine>), EngineError> {
        Err(EngineError::Unsupported("direct links", self.name()))
    }

    /// Connects to another process's direct endpoint. `host` is the proved name of its host.
    fn connect_direct(&self, endpoint: &str, host: Option<&str>) -> Result<Arc<dyn Engine>, EngineError> {
        let _ = (endpoint, host);
        Err(EngineError::Unsupported("direct links", self.name()))
    }
}
