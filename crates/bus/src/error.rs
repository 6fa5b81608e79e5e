//! Errors of the bus.

use std::{io, path::PathBuf};

use tampu_types::{identity::BadName, name::BadTopic};

use crate::{access::Denied, engine::EngineError};

/// The reason why a participant, a writer or a reader could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The topic is invalid.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// The run-time directory cannot be used.
    #[error("the run-time directory {place}: {why}; set TAMPU_RUN_DIR to a directory of your own")]
    RunDir {
        /// The run-time directory.
        place: PathBuf,
        /// The reason why it cannot be used.
        why: String,
    },
}

/// The reason why a sample was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The sample is longer than the engine takes.
    #[error("the sample has {length} bytes, the longest allowed is {limit}; send it in parts, or lend it (Writer::loan)")]
    TooLong {
        /// Length of the sample in bytes.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
}

/// The reason why no memory was lent.
#[derive(Debug, thiserror::Error)]
pub enum LoanError {
    /// The pool cannot hold it.
    #[error(
        "a loan of {length} bytes does not fit the pool of {pool} bytes beside the unpublished ones; raise the topic's `pool`"
    )]
    TooLong {
        /// Requested length in bytes.
        length: usize,
        /// The pool's size.
        pool: usize,
    },
    /// The pool could not be made.
    #[error("cannot create shared memory at {place}: {why}")]
    NoMemory {
        /// The ring's file.
        place: PathBuf,
        /// The kernel's reason.
        why: io::Error,
    },
}

/// The reason why a question has no answer, or no further one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No process answered in time.
    #[error("no answer from '{0}' within the timeout: the hub may lack this role, or belong to another domain")]
    Unanswered(String),
    /// The question could not be sent.
    #[error("'{service}' cannot be asked: {why}")]
    NotSent {
        /// Name of the service.
        service: String,
        /// The engine's or the encoder's reason.
        why: String,
    },
    /// The access hook of the answering process denied the question.
    #[error("{0}")]
    Denied(Denied),
    /// The answering process refused the question.
    #[error("'{service}' answers: {why}")]
    Refused {
        /// Name of the service.
        service: String,
        /// The reason that the process gave.
        why: String,
    },
    /// The answer stopped before its end: the answering process died, or ran out of time.
    #[error("the answer of '{service}' was cut off after {received} items")]
    CutOff {
        /// Name of the service.
        service: String,
        /// Records, events or documents received before.
        received: u64,
    },
    /// The answer is not in the expected form: the answering process may be of another release.
    #[error("the answer of '{service}' cannot be read: {why}")]
    Unreadable {
        /// Name of the service.
        service: String,
        /// The decoder's reason.
        why: String,
    },
}

impl From<Denied> for CallError {
    fn from(denied: Denied) -> CallError {
        CallError::Denied(denied)
    }
}

impl CallError {
    /// Reports if the bus, not the asked process, is the cause: no process answered, or the question could not be sent.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, CallError::Unanswered(_) | CallError::NotSent { .. })
    }
}
