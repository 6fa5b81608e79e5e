//! Why a subscriber is called: an update, the first value, or word of its source.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an event reaches a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The value the attribute had when the subscription began.
    First,
    /// Something new.
    Update,
    /// The first value after the source was away; [`Missed`] says what may be missing before it.
    Resumed,
    /// Events were lost; [`Missed`] says which.
    Gap,
    /// The process that has the attribute died. What it had told last stands.
    SourceDied,
    /// Nothing is heard of it: it hangs, or the way to it is cut.
    SourceHung,
    /// It is heard again, or another life of it has come.
    SourceReturned,
    /// It ended in order, or no longer has the attribute.
    SourceLeft,
    /// The attribute's configuration is another; its epoch says which.
    ConfigChanged,
    /// A second process says it has the attribute too, and neither said that they are redundant.
    Conflict,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 10] = [
        Reason::First,
        Reason::Update,
        Reason::Resumed,
        Reason::Gap,
        Reason::SourceDied,
        Reason::SourceHung,
        Reason::SourceReturned,
        Reason::SourceLeft,
        Reason::ConfigChanged,
        Reason::Conflict,
    ];

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether an event of this reason carries a reading, rather than word of the source.
    pub fn has_reading(self) -> bool {
        matches!(self, Reason::First | Reason::Update | Reason::Resumed)
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Reason::First => "first",
            Reason::Update => "update",
            Reason::Resumed => "resumed",
            Reason::Gap => "gap",
            Reason::SourceDied => "source died",
            Reason::SourceHung => "source hung",
            Reason::SourceReturned => "source returned",
            Reason::SourceLeft => "source left",
            Reason::ConfigChanged => "configuration changed",
            Reason::Conflict => "conflict",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a subscriber did not get before an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nothing.
    #[default]
    Nothing,
    /// The attribute's events with these numbers, the second not included.
    Exactly(u64, u64),
    /// Nobody can say: the source that knew is gone.
    Unknown,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::Nothing => f.pad("nothing"),
            Missed::Exactly(from, to) => write!(f, "{} events, {from} to {}", to - from, to - 1),
            Missed::Unknown => f.pad("nobody knows how many"),
        }
    }
}
