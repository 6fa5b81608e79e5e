//! Statistics of a ring, read from its header.

use crate::header::{Counts, RingHeader};

/// Statistics of one ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStats {
    /// Number of the ring.
    pub ring: u32,
    /// Records handed off.
    pub records: u64,
    /// Bytes ever written, headers included.
    pub bytes: u64,
    /// Bytes that wait for the drainer.
    pub waiting: u64,
    /// The most that were seen waiting.
    pub high_water: u64,
    /// Calls that waited for room.
    pub waited: u64,
    /// Records that found no room, by level.
    pub dropped: Counts,
}

pub(crate) fn ring_stats(ring: u32, header: &RingHeader) -> RingStats {
    let (cursor, head) = (header.cursor(), header.published());
    RingStats {
        ring,
        records: cursor.map_or(0, |cursor| cursor.number),
        bytes: head,
        waiting: head.saturating_sub(header.released()),
        high_water: header.high_water(),
        waited: header.waited(),
        dropped: header.losses().dropped,
    }
}
