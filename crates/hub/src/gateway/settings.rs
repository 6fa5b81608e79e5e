//! Settings of the gateway.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::listen::ListenAddress;

/// The section `[gateway]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewaySettings {
    /// If true, a hub with a node serves programs that are not on the bus, at a unix socket of this user.
    pub enabled: bool,
    /// The address for programs on other hosts, by TLS.
    pub listen: ListenAddress,
    /// The file with their tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<PathBuf>,
}

impl Default for GatewaySettings {
    fn default() -> GatewaySettings {
        GatewaySettings { enabled: true, listen: ListenAddress::Off, tokens: None }
    }
}
