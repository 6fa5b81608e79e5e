//! Access rules, as settings.

use serde::{Deserialize, Serialize};
use tampu_bus::access::Verb;

/// The principals that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// Every participant that may join.
    #[default]
    Anybody,
    /// The hub's own user, on a hub that the network does not reach.
    User,
    /// Holders of the domain's key, on a hub that the network reaches.
    Key,
}

/// A rule: permissions of some principals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    /// The principals it applies to.
    #[serde(default)]
    pub who: Who,
    /// The permitted verbs.
    pub may: Vec<Verb>,
    /// The topics, services, addresses and settings: a pattern of their names.
    pub what: String,
}
