//! A flow in the declaration of a receiver.

use serde::{Deserialize, Serialize};

use crate::{Name, Protection, message::Transport};

/// A flow, as its receiver declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredFlow {
    /// The name of the flow.
    pub name: Name,
    /// Transports of its data. Transports unknown to this release are left out.
    #[serde(default, deserialize_with = "known")]
    pub transports: Vec<Transport>,
    /// Protection that the flow demands. A name unknown to this release counts as encryption.
    #[serde(default, skip_serializing_if = "is_auto", deserialize_with = "known_or_strongest")]
    pub protection: Protection,
}

fn is_auto(protection: &Protection) -> bool {
    *protection == Protection::Auto
}

fn known_or_strongest<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Protection, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(Protection::from_name(&name).unwrap_or(Protection::Encrypted))
}

fn known<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Transport>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let all = [Transport::Tcp, Transport::Shm, Transport::Udp, Transport::Multicast];
    Ok(names.iter().filter_map(|name| all.into_iter().find(|way| way.name() == name)).collect())
}
