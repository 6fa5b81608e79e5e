//! Errors of starting a spool.

use std::path::PathBuf;

use tampu_bus::BusError;
use tampu_types::name::BadTopic;

/// Reason why there is no spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process writes there.
    #[error("the spool in {0} is in use by another process")]
    InUse(PathBuf),
    /// The directory or a file in it cannot be used.
    #[error("{doing} {path}: {source}")]
    File {
        /// Operation that failed, as `writing`.
        doing: &'static str,
        /// To which directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Error of the bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Invalid name of an internal topic.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// No worker could be started.
    #[error("the spool's worker cannot be started: {0}")]
    Worker(std::io::Error),
}
