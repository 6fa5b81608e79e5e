//! Errors of sending, and receivers that refuse a sender.

use crate::{handler::Peer, message::Refusal, name::Name, sending::Misuse};

/// The reason for data that could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The call is not allowed in this phase.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// There were too few receivers at the start of a transfer.
    #[error("flow '{flow}' needs {wanted} receivers and has {here}{}", Refused::list(.refused))]
    NoReceiver {
        /// The name of the flow.
        flow: Name,
        /// The wanted number of receivers.
        wanted: usize,
        /// The number of connected receivers.
        here: usize,
        /// Receivers that refused this sender.
        refused: Vec<Refused>,
    },
    /// All participating receivers are gone.
    #[error("flow '{flow}' has no receiver left ({why})")]
    NobodyLeft {
        /// The name of the flow.
        flow: Name,
        /// The fate of each receiver.
        why: String,
    },
    /// The transfer was cancelled from another thread or process ([`Flow::cancel`](super::Flow::cancel)), or by its caller
    /// ([`Flow::send_piece_while`](super::Flow::send_piece_while)).
    #[error("flow '{flow}' was stopped by a command; end the transfer with stop, or give it up with reset")]
    Cancelled {
        /// The name of the flow.
        flow: Name,
    },
    /// The sender was closed.
    #[error("the sender was closed")]
    Closed,
}

/// Receiver that refuses this sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{receiver} refuses: {text}")]
pub struct Refused {
    /// The receiver in question.
    pub receiver: Peer,
    /// The reason for the rejection.
    pub why: Refusal,
    /// Text of the reason, with the owner of the flow or the available names.
    pub text: String,
}

impl Refused {
    fn list(all: &[Refused]) -> String {
        all.iter().map(|one| format!("; {one}")).collect()
    }
}
