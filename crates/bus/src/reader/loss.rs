//! Reasons of losses.

use std::fmt;

/// Reason why a reader does not get samples that were announced to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// The reader was further behind than the writer's cache reaches.
    Evicted,
    /// A link dropped them, and this reader does not request them again.
    Dropped,
    /// The writer died before they could be fetched.
    WriterDied,
    /// The writer left before they could be fetched.
    WriterLeft,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LossReason::Evicted => "the reader was slower than the writer's cache allows",
            LossReason::Dropped => "a link dropped them",
            LossReason::WriterDied => "the writer died",
            LossReason::WriterLeft => "the writer left",
        })
    }
}
