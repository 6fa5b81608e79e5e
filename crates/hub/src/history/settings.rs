//! What a hub is told of the history of events.

use serde::{Deserialize, Serialize};
use tampu_types::event::AttributePattern;

/// Which events are kept. How long is the collector's business: the history is part of what it keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// Whether there is a history: events of kind archive.
    pub history: bool,
    /// Attributes of which every event is kept, whatever its kind.
    pub keep: Vec<AttributePattern>,
    /// Attributes of which none is.
    pub leave_out: Vec<AttributePattern>,
    /// A longer event is not kept, in KiB; that is told where it would stand.
    pub longest_kb: u64,
}

/// The longest event that may be kept at all, in KiB: a few fit the queue.
pub const LONGEST_KB: u64 = 8 << 10;

impl Default for Events {
    fn default() -> Events {
        Events { history: true, keep: Vec::new(), leave_out: Vec::new(), longest_kb: 256 }
    }
}
