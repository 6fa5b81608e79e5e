//! The question for patterns, and its answer.

use serde::{Deserialize, Serialize};
use tampu_types::{Level, Time};

/// The wanted patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatternsWanted {
    /// Number of patterns, the most frequent first; at most 1000.
    pub limit: usize,
    /// Number of intervals in which each pattern is counted; at most 200.
    pub bins: usize,
}

impl Default for PatternsWanted {
    fn default() -> PatternsWanted {
        PatternsWanted { limit: 200, bins: 0 }
    }
}

/// Patterns of the matching records, the most frequent first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patterns {
    /// Number of all matching records.
    pub total: u64,
    /// Number of the patterns that were kept apart, more than the answer may have.
    pub known: u64,
    /// Number of records of other patterns.
    pub others: u64,
    /// Begin of the first interval: of the asked range, or of the records that may match.
    pub since: Time,
    /// Length of an interval, ns.
    pub every_ns: u64,
    /// The listed patterns in this order.
    pub patterns: Vec<Pattern>,
    /// False if there were too many patterns at once: rare ones were dropped, and their counts may be too small.
    pub exact: bool,
    /// False if the count was stopped, or a part could not be read.
    pub complete: bool,
}

/// Records that one place of a program logged, or that have one text but for numbers, ids and quoted words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Level of all its records.
    pub level: Level,
    /// File of the place; empty for a pattern of texts.
    pub file: String,
    /// Line in the file; 0 for a pattern of texts.
    pub line: u32,
    pub routine: String,
    /// Message of the newest record, its beginning if it is long.
    pub message: String,
    pub count: u64,
    /// Number of different sources, counted up to 1000.
    pub sources: u64,
    /// Time of the newest record.
    pub latest: Time,
    /// Number of records in each interval.
    pub bins: Vec<u64>,
    /// The expression that its records meet, and no others; of a long text, its beginning decides. `None` if the
    /// expression would be too long.
    pub condition: Option<String>,
}
