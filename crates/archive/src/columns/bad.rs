//! Error of an answer in columns.

/// Error of a message that is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the columns cannot be read: {0}")]
pub struct BadColumns(pub(super) &'static str);
