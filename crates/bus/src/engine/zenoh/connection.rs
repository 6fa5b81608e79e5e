//! Kinds of connections of a process.

/// Connection of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// Client of the host's node.
    Node,
    /// Client of a hub elsewhere.
    Hub,
    /// Peer of every other process of the domain on this host.
    Peers,
    /// Fixed connection: a node's own engine, and direct links.
    Fixed,
}
