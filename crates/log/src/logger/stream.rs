//! Streams of packets: one for each level, set of audiences and reach.

use tampu_types::{Level, Partition};

/// Audience of records: the process itself, attached readers, or everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Published, and printed if the local threshold allows it.
    Central,
    /// Published for attached readers alone.
    Attached,
    /// Only printed, in no stream.
    Local,
}

/// Key of a stream of packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey {
    pub level: Level,
    pub partition: Partition,
    pub reach: Reach,
}

/// Size limits of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketSize {
    pub records: usize,
    pub bytes: usize,
}
