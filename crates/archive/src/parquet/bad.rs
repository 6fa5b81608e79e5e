//! Errors of Parquet files.

use std::io;

/// Error for bytes that do not have our format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Corrupt(pub(crate) &'static str);

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadTable {
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    #[error("it has no index of ours")]
    WithoutIndex,
    #[error("it was written by another program and cannot be read: {0}")]
    Foreign(String),
    #[error("its index is of version {0}, from a later release")]
    Later(u32),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl BadTable {
    /// Makes the error for a column that cannot be read.
    pub(crate) fn of_column(column: &str, why: impl std::fmt::Display) -> BadTable {
        BadTable::Foreign(format!("column '{column}': {why}"))
    }
}
