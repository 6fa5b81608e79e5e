//! Errors of starting a collector.

use tampu_bus::BusError;
use tampu_types::name::BadTopic;

/// Reason why a collector could not start.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// Error of the bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Invalid name of an internal topic.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// No worker could be started.
    #[error("the collector's worker cannot be started: {0}")]
    Worker(std::io::Error),
}
