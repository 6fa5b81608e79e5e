//! Looks at entries: how many readers an entry had on each day. The store has numbers alone, and no names of readers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::entry::EntryRef;

/// Looks at an entry on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookCount {
    pub at: EntryRef,
    /// The day in UTC, counted from 1970-01-01.
    pub day: u32,
    pub looks: u64,
}

/// Looks on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LooksOnDay {
    /// The day in UTC, counted from 1970-01-01.
    pub day: u32,
    pub looks: u64,
}

/// The looks at an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryLooks {
    /// Looks in all.
    pub looks: u64,
    /// The last days with looks, the newest first, at most [`MOST_DAYS`].
    pub days: Vec<LooksOnDay>,
}

/// Maximum number of days of one answer.
pub const MOST_DAYS: u32 = 366;

/// Looks at entries.
pub trait Looks {
    /// Adds looks in one transaction. Entries that are not there are left out.
    fn add_looks(&self, looks: &[LookCount]) -> Result<()>;
    /// Returns the number of looks at an entry; 0 for one that is not there.
    fn look_count(&self, at: &EntryRef) -> Result<u64>;
    /// Returns the looks at an entry.
    fn looks(&self, at: &EntryRef) -> Result<EntryLooks>;
}
