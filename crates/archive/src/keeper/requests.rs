//! Requests to the keeper, and its reports.

use crate::News;

/// Requests to the keeper and its reports.
#[derive(Debug, Default)]
pub(crate) struct KeeperRequests {
    pub(crate) closing: bool,
    /// Requested compaction: everything up to this segment, without regard to the share.
    pub(crate) hurry: u64,
    /// Progress: everything up to this segment is compacted.
    pub(crate) done: u64,
    /// Reason why the keeper cannot go on.
    pub(crate) stuck: Option<String>,
    pub(crate) news: Vec<News>,
}
