//! The place of the API on the bus.

use tampu_bus::{Participant, access::Access};

/// The process that asks services for the API's callers, and the hook that is asked before.
pub struct OnBus {
    /// The process that asks.
    pub participant: Participant,
    /// Name of the hub, for services of its own processes.
    pub hub: String,
    /// The access hook.
    pub access: Access,
}
