//! The identity of a sender or receiver.

use tampu_bus::{Participant, host};
use tampu_types::Incarnation;

/// Identity of a sender or receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name of the installation.
    pub domain: String,
    /// Stable source name.
    pub source: String,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
}

impl Identity {
    /// Returns the identity of a process on the bus.
    pub fn of(participant: &Participant) -> Identity {
        Identity {
            domain: participant.domain().as_str().to_owned(),
            source: participant.source().as_str().to_owned(),
            incarnation: participant.incarnation(),
        }
    }

    /// Returns an identity of this process without the bus.
    pub fn alone(domain: &str, source: &str) -> Identity {
        Identity { domain: domain.to_owned(), source: source.to_owned(), incarnation: host::incarnation() }
    }
}
