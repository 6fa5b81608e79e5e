//! The ids of records: as runs, as a set that fits into memory, and as files beside the segments.

pub(crate) mod hash;
pub(crate) mod known;
pub(crate) mod seen;
