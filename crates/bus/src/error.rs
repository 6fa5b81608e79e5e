//! What can go wrong on the bus.

use std::{io, path::PathBuf};

use tampu_types::{identity::BadName, name::BadTopic};

use crate::engine::EngineError;

/// Why a participant, writer or reader could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The engine says no.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A topic that cannot be one.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// The run-time directory cannot be used.
    #[error("the run-time directory {place}: {why}; set TAMPU_RUN_DIR to a directory of your own")]
    RunDir {
        /// The directory.
        place: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Why a sample could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The sample is longer than the engine takes.
    #[error("the sample has {length} bytes, the longest allowed is {limit}; send it in parts, or lend it (Writer::loan)")]
    TooLong {
        /// Its length.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
}

/// Why no memory could be lent.
#[derive(Debug, thiserror::Error)]
pub enum LoanError {
    /// The pool cannot hold it.
    #[error(
        "a loan of {length} bytes does not fit the pool of {pool} bytes beside the unpublished ones; raise the topic's `pool`"
    )]
    TooLong {
        /// What was asked for.
        length: usize,
        /// The pool's size.
        pool: usize,
    },
    /// The pool could not be made.
    #[error("no shared memory at {place}: {why}")]
    NoMemory {
        /// The ring's file.
        place: PathBuf,
        /// What the kernel said.
        why: io::Error,
    },
}

/// Why a question has no (further) answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nobody answered in time.
    #[error("nobody answered '{0}' in time; is a hub with that role running?")]
    Unanswered(String),
    /// The engine could not ask.
    #[error("'{service}' cannot be asked: {why}")]
    Refused {
        /// What was asked.
        service: String,
        /// What the engine said.
        why: String,
    },
}
