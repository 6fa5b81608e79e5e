//! A record of a file that could not be read.

/// A record that was skipped: where it began and why. Readers go on behind it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct BadRecord {
    /// The file, under the name given to the reader.
    pub file: String,
    /// The line the record begins in, from 1.
    pub line: u64,
    /// The defect, as a sentence without its full stop.
    pub reason: String,
}
