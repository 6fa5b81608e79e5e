//! Reason for a subscriber's call: an update, the first value, or a message about its source.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// Reason for which an event reaches a subscriber.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// The value that the attribute had when the subscription began.
        First => "first",
        /// A new event of the source.
        Update => "update",
        /// The first value after an absence of the source; [`Missed`] has the events that may be missing before it.
        Resumed => "resumed",
        /// A loss of events; [`Missed`] has their numbers.
        Gap => "gap",
        /// The process that has the attribute died. Its last value stands.
        SourceDied => "source died",
        /// The source is silent: it hangs, or the network to it is cut.
        SourceHung => "source hung",
        /// The source has recovered, or another incarnation of it has started.
        SourceReturned => "source returned",
        /// The source ended in order, or has removed the attribute.
        SourceLeft => "source left",
        /// The attribute's configuration has changed; its epoch identifies the valid one.
        ConfigChanged => "configuration changed",
        /// A second process has the attribute too, and neither declared that they are redundant.
        Conflict => "conflict",
    }
}

impl Reason {
    /// Returns true if an event of this reason carries a reading, false if it is a message about the source.
    pub fn has_reading(self) -> bool {
        matches!(self, Reason::First | Reason::Update | Reason::Resumed)
    }
}

/// Events that a subscriber did not get before an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// No event is missing.
    #[default]
    Nothing,
    /// The attribute's events with these numbers, the second not included.
    Exactly(u64, u64),
    /// Unknown: the source that had the numbers is gone.
    Unknown,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::Nothing => f.pad("nothing"),
            Missed::Exactly(from, to) => write!(f, "{} events, {from} to {}", to - from, to - 1),
            Missed::Unknown => f.pad("an unknown number"),
        }
    }
}
