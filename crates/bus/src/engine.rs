//! What an engine gives: send, receive, ask, answer, presence, and its declared limits. No more.
//!
//! An engine may lose, delay and repeat anything it was given, and `Ok` from [`Outlet::send`] says only that the engine took
//! the bytes. Order, loss, credit, history and receipts are the layer's above (the rest of this crate), written once for all
//! engines. We measured that no engine keeps them by itself without stalling everybody on one slow reader.
//!
//! An engine calls back on its own workers. Callbacks given to it are quick (they move bytes into a queue) and never block; an
//! engine may call them from inside `send` when writer and reader live in one process, so no lock of this crate is held
//! while control messages are sent.

use std::{any::Any, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tampu_types::Incarnation;

use crate::{
    clock::{Clock, Gate},
    host,
};

pub mod memory;
pub mod zenoh;

/// Keeps a declaration alive; dropping it takes the declaration back.
pub type Guard = Box<dyn Any + Send + Sync>;

/// Called with every message that arrives.
pub type Deliver = Arc<dyn Fn(Bytes) + Send + Sync>;

/// Called with every question that arrives; it may answer later and from another worker.
pub type Answerer = Arc<dyn Fn(Box<dyn Question>) + Send + Sync>;

/// Called with every answer, and once with the end.
pub type Answers = Box<dyn FnMut(Answer) + Send>;

/// Called when somebody announced under a watched pattern comes or goes.
pub type Seen = Arc<dyn Fn(Presence) + Send + Sync>;

/// What a message is for: engines with priorities and congestion settings choose them by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Samples: dropped rather than blocking when a link is full, because the layer above recovers them.
    Data,
    /// Samples that must not wait behind others (immediate records); same guarantees.
    Urgent,
    /// Acknowledgements and heartbeats: same priority as data, or heartbeats overtake samples and gaps look real.
    Control,
}

/// An engine's declared bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size up to which a batch travels as one piece, in bytes; the layer above seals its batches at it.
    pub batch: usize,
    /// The longest message the engine takes, in bytes.
    pub message: usize,
}

/// What has become of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs, though it may hang.
    Alive,
    /// It is no more.
    Dead,
    /// It is on another host.
    Unknown,
}

/// Who came or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// The key it announced.
    pub key: String,
    /// Whether it is here now.
    pub here: bool,
}

/// One answer to a question, or the end of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One part of an answer.
    Part(Bytes),
    /// All who could answer have.
    End,
    /// The time was up first, or nobody could be asked.
    Unanswered,
}

/// A question somebody asked. Dropping it ends its answers.
pub trait Question: Send {
    /// The key that was asked.
    fn key(&self) -> &str;
    /// What was asked.
    fn payload(&self) -> &Bytes;
    /// Sends one part of the answer.
    fn reply(&self, part: Bytes) -> Result<(), EngineError>;
}

/// A place to send to.
pub trait Outlet: Send + Sync {
    /// Hands the bytes over. `Ok` says nothing about delivery.
    fn send(&self, message: Bytes) -> Result<(), EngineError>;
}

/// Something that wants to be called again at a time it names.
pub trait Tick: Send + Sync {
    /// Does what is due at `now` (monotonic ns) and returns when it wants to be called next.
    fn tick(&self, now: u64) -> u64;
}

/// Why an engine could not do something.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No node or peer could be reached.
    #[error("{engine} cannot reach {place}: {why}")]
    Unreachable {
        /// Which engine.
        engine: &'static str,
        /// The endpoint tried.
        place: String,
        /// What it said.
        why: String,
    },
    /// The engine refused the call.
    #[error("{engine}: {doing}: {why}")]
    Refused {
        /// Which engine.
        engine: &'static str,
        /// What was being done.
        doing: String,
        /// What it said.
        why: String,
    },
    /// The message is longer than the engine takes.
    #[error("{engine} takes messages of at most {limit} bytes, this one has {length}")]
    TooLong {
        /// Which engine.
        engine: &'static str,
        /// Its limit.
        limit: usize,
        /// What was tried.
        length: usize,
    },
    /// The engine cannot do this at all.
    #[error("{1} has no {0}")]
    Unsupported(&'static str, &'static str),
}

/// What carries messages between participants.
///
/// Keys are chunks separated by `/`, made of `a-z 0-9 _ . -`; patterns may hold `*` (one chunk), `**` (any number of chunks)
/// and `$*` (any characters inside one chunk).
pub trait Engine: Send + Sync + 'static {
    /// Its name in messages and configuration.
    fn name(&self) -> &'static str;

    /// Its bounds.
    fn limits(&self) -> Limits;

    /// The clock everything on it lives by: the host's, or a simulated one.
    fn clock(&self) -> Arc<dyn Clock>;

    /// A new life on this engine's host.
    fn incarnation(&self) -> Incarnation {
        host::incarnation()
    }

    /// What has become of a life whose presence is gone, as far as this engine's host can tell.
    fn fate(&self, incarnation: Incarnation) -> Fate {
        host::fate(incarnation)
    }

    /// The directory whose files every process on this host can map; loans need one.
    fn shared_dir(&self) -> Option<PathBuf> {
        None
    }

    /// A place to send to under this key.
    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError>;

    /// Calls `deliver` with every message sent under the pattern, this process's own included.
    fn subscribe(&self, pattern: &str, deliver: Deliver) -> Result<Guard, EngineError>;

    /// Answers questions under the pattern.
    fn answer(&self, pattern: &str, answerer: Answerer) -> Result<Guard, EngineError>;

    /// Asks everybody who answers under this key.
    fn ask(&self, key: &str, question: Bytes, timeout: Duration, answers: Answers) -> Result<(), EngineError>;

    /// Announces the key for as long as the guard and this process live.
    fn announce(&self, key: &str) -> Result<Guard, EngineError>;

    /// Calls `seen` for everybody announced under the pattern, now and later.
    fn watch(&self, pattern: &str, seen: Seen) -> Result<Guard, EngineError>;

    /// Calls `work` whenever it wants to be called, and soon after `wake` is opened. Ends with the guard.
    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError>;

    /// Opens this process for direct links: an endpoint to give away, and the engine that sends to whoever connects to it.
    /// Both live as long as this engine; asked again it gives the same.
    fn listen_direct(&self) -> Result<(String, Arc<dyn Engine>), EngineError> {
        Err(EngineError::Unsupported("direct links", self.name()))
    }

    /// Connects to another process's direct endpoint.
    fn connect_direct(&self, endpoint: &str) -> Result<Arc<dyn Engine>, EngineError> {
        let _ = endpoint;
        Err(EngineError::Unsupported("direct links", self.name()))
    }
}
