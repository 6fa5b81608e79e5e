//! What can be wrong with a file.

use std::io;

/// Bytes that are not what we wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Corrupt(pub(crate) &'static str);

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadTable {
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    #[error("its index is of version {0}, from a later release")]
    Later(u32),
    #[error(transparent)]
    Io(#[from] io::Error),
}
