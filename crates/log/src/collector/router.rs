//! Where records go besides the archive: the collector's side of it. What the rules are, and where they lead, is the hub's.
//!
//! Decision: a router gets packets after the commit, so that nothing is routed that is not kept, and it must not wait, so that no
//! target holds up an acknowledgement. What shall not be kept at all is taken out of a packet before the archive gets it.

use serde::{Deserialize, Serialize};

/// Leads records elsewhere.
pub trait Router: Send + Sync + std::fmt::Debug {
    /// Takes out of a packet what is not to be kept; `None` where all of it is.
    fn sift(&self, packet: &[u8]) -> Option<Sifted>;

    /// Takes a packet whose records are durable, or are not to be kept. Must not wait.
    fn route(&self, packet: Vec<u8>);

    /// How its targets are.
    fn report(&self) -> Vec<TargetReport>;
}

/// A packet in two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sifted {
    /// What is kept, if there is any.
    pub kept: Option<Vec<u8>>,
    /// What is not.
    pub left_out: Vec<u8>,
    /// Records in that.
    pub records: u64,
}

/// How one target is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetReport {
    /// Its name.
    pub target: String,
    /// Records written.
    pub written: u64,
    /// Records that found no room while it could not be written.
    pub lost: u64,
    /// Bytes that wait.
    pub waiting: u64,
    /// Why it cannot be written now.
    pub failing: Option<String>,
}
