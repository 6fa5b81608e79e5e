//! How a command fails: the text that is printed once, in `main`, and the exit code it means.

use std::{fmt::Display, io, process::ExitCode};

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// It was tried and did not work. Exit code 1.
    Failed(String),
    /// It was asked for wrongly. Exit code 2, as clap's.
    Usage(String),
    /// No hub, node or peer could be reached. Exit code 3.
    Unreachable(String),
    /// Whoever read standard output has gone; nothing to say and nothing wrong.
    Closed,
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// The exit code scripts go by.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Closed => ExitCode::SUCCESS,
            Failure::Failed(_) => ExitCode::from(1),
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Unreachable(_) => ExitCode::from(3),
        }
    }

    /// What is printed on standard error.
    pub fn text(&self) -> Option<&str> {
        match self {
            Failure::Closed => None,
            Failure::Failed(text) | Failure::Usage(text) | Failure::Unreachable(text) => Some(text),
        }
    }

    /// A failure of something named, with its place.
    pub fn failed(what: impl Display, why: impl Display) -> Failure {
        Failure::Failed(format!("{what}: {why}"))
    }
}

/// Errors of standard output: a closed pipe is how `head` says it has enough.
pub fn written<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::failed("standard output", error),
    })
}
