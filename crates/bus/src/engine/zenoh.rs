//! The default engine: zenoh, with processes as clients of their host's node.
