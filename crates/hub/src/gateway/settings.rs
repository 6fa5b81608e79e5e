//! Settings of the gateway.

use serde::{Deserialize, Serialize};

/// The section `[gateway]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// If true, a hub with a node serves programs that are not on the bus, at a unix socket of this user.
    pub enabled: bool,
}

impl Default for GatewaySettings {
    fn default() -> GatewaySettings {
        GatewaySettings { enabled: true }
    }
}
