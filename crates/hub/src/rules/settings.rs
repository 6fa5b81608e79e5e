//! Access rules, as settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tampu_bus::access::Who;

/// A rule of the configuration: permissions of some principals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    /// The principals it applies to.
    #[serde(default)]
    pub who: Who,
    /// The permitted verbs.
    pub may: Vec<String>,
    /// Pattern of the names of topics, services, attributes, streams and settings.
    pub what: String,
}

/// The section `[access]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSettings {
    /// The policy file; by default `policy.toml` in the domain's data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PathBuf>,
    /// True if administrators can change retention, quotas and routes while the hub runs.
    pub change_settings: bool,
    /// Other hosts, as patterns HOST:PORT, to which these changes may send records by syslog; in addition to those of the
    /// configuration's own targets.
    pub syslog_hosts: Vec<String>,
}

impl Default for AccessSettings {
    fn default() -> AccessSettings {
        AccessSettings { policy: None, change_settings: true, syslog_hosts: Vec::new() }
    }
}
