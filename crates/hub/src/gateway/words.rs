//! Words of the bus as the protocol writes them.

use tampu_bus::{LossReason, SourceState};

/// Returns the word for the reason of a loss.
pub(super) fn loss(why: LossReason) -> &'static str {
    match why {
        LossReason::Evicted => "evicted",
        LossReason::Dropped => "dropped",
        LossReason::WriterDied => "writer died",
        LossReason::WriterLeft => "writer left",
    }
}

/// Returns the word for the state of a source.
pub(super) fn state(state: SourceState) -> &'static str {
    match state {
        SourceState::Appeared => "appeared",
        SourceState::Silent => "silent",
        SourceState::Returned => "returned",
        SourceState::Left => "left",
        SourceState::Died => "died",
    }
}
