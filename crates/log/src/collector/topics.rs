//! Topics that a collector reads.

/// The topics of live records, one a level.
pub const LIVE_TOPICS: &str = "log/*";
/// The topic of records from files.
pub const IMPORT_TOPIC: &str = "log-import";

/// The topics of records published for attached readers alone.
pub const ATTACHED_TOPICS: &str = "log-attached/*";
