//! The topic of a spool.

use tampu_bus::TypeTag;

/// The topic by which a spool sends back its contents.
pub const SPOOL_TOPIC: &str = "log-spool";

/// Type of the topic's samples: frames of the spool's files.
pub const SPOOLED: TypeTag = TypeTag { id: 6, version: 1 };
