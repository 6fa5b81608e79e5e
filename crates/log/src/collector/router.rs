//! Destinations of records besides the archive, seen from the collector. The rules and the targets belong to the hub.
//!
//! Decision: a router gets packets after the commit, so every routed record is also kept. A router must not block, so
//! no target delays an acknowledgement. Records that must not be kept are removed from a packet before the archive gets
//! it.

use serde::{Deserialize, Serialize};

/// Leads records elsewhere.
pub trait Router: Send + Sync + std::fmt::Debug {
    /// Returns true while no record goes anywhere through it. Then packets are not copied for it.
    fn is_idle(&self) -> bool {
        false
    }

    /// Removes the records from a packet that must not be kept; `None` if no record remains.
    fn sift(&self, packet: &[u8]) -> Option<Sifted>;

    /// Accepts a packet whose records are durable, or must not be kept. Must not block.
    fn route(&self, packet: Vec<u8>);

    /// Returns the state of its targets.
    fn report(&self) -> Vec<TargetReport>;
}

/// A packet in two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sifted {
    /// Part of the packet that is kept, if any.
    pub kept: Option<Vec<u8>>,
    /// Part of the packet that is left out.
    pub left_out: Vec<u8>,
    /// Records in that.
    pub records: u64,
}

/// State of one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetReport {
    /// Name of the target.
    pub target: String,
    /// Number of records written.
    pub written: u64,
    /// Records that found no room while it could not be written.
    pub lost: u64,
    /// Bytes that wait.
    pub waiting: u64,
    /// Reason why it cannot be written at present.
    pub failing: Option<String>,
}
