//! Settings of a server.

use tampu_bus::{Qos, access::Access};

use crate::topics;

/// Threads for the background work: declarations, polls, answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workers {
    /// Own threads of the server or client.
    #[default]
    Own,
    /// The caller, by repeated calls of `turn`: tests with a simulated clock, and programs with their own loop.
    Caller,
}

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Threads for the server's background work.
    pub workers: Workers,
    /// Quality of service of the shared stream; the configuration of the topic overrides it.
    pub shared: Qos,
    /// Quality of service of separate streams; the configuration of the topic overrides it.
    pub own: Qos,
    /// Length in bytes of values from which an attribute gets a separate stream.
    pub large: usize,
    /// Access rule for setting criteria from outside.
    pub access: Access,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            workers: Workers::Own,
            shared: topics::shared_qos(),
            own: topics::own_qos(),
            large: 16 << 10,
            access: Access::of_host(),
        }
    }
}
