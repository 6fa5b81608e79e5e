//! Settings of the history of events.

use serde::{Deserialize, Serialize};
use tampu_types::event::AttributePattern;

/// Selection of the events that are kept. The collector's settings contain the retention, because the history is part
/// of its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistorySettings {
    /// True if the history keeps the events of kind archive.
    pub history: bool,
    /// Attributes whose events are all kept, of any kind.
    pub keep: Vec<AttributePattern>,
    /// Attributes whose events are never kept.
    pub leave_out: Vec<AttributePattern>,
    /// Length limit of an event, KiB. The history records a gap for a longer one.
    pub longest_kb: u64,
}

/// Longest possible limit of an event, in KiB: a few such events fit the queue.
pub const LONGEST_KB: u64 = 8 << 10;

impl Default for HistorySettings {
    fn default() -> HistorySettings {
        HistorySettings { history: true, keep: Vec::new(), leave_out: Vec::new(), longest_kb: 256 }
    }
}
