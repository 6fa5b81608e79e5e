//! A process of a hub: its roles, its names on the bus, its settings of the bus, and the rights that it grants.

use std::sync::Arc;

use tampu_bus::{
    access::Access,
    connect::{NodeError, Settings},
};
use tampu_workers::host::host_name;

use super::error::HubError;
use crate::{
    config::Config,
    part::HubPart,
    roles::{RoleReport, RolesReport},
    rules::Rules,
};

/// The roles that one process runs.
pub(super) enum Process<'a> {
    /// All of them.
    Whole,
    /// One, of the hub with this name.
    One(HubPart, &'a str),
}

impl Process<'_> {
    /// Returns the one role that it runs; none if it runs all of them.
    pub(super) fn part(&self) -> Option<HubPart> {
        match self {
            Process::Whole => None,
            Process::One(part, _) => Some(*part),
        }
    }

    /// Returns the bus name of the hub's own log.
    pub(super) fn name(&self) -> String {
        match self {
            Process::Whole => name_of("hub"),
            Process::One(part, _) => name_of(&format!("hub-{part}")),
        }
    }
}

/// Returns the bus name of a part of this hub.
pub(crate) fn name_of(part: &str) -> String {
    format!("{part}@{}", host_name())
}

pub(crate) fn process_config(config: &Config) -> Result<Settings, HubError> {
    Ok(Settings { engine: config.engine.clone(), ..Settings::new(config.domain.clone(), config.run_dir()) })
}

pub(crate) fn access_of(config: &Config, client: &Settings) -> Result<Access, HubError> {
    Ok(Arc::new(Rules::of(config)?).access(config, client).map_err(NodeError::RunDir)?)
}

/// Returns the state of roles that run in this process.
pub(super) fn roles_of_this_process(parts: Vec<HubPart>) -> impl Fn() -> RolesReport + Clone + Send + Sync {
    move || {
        let pid = std::process::id();
        let report = |role: &HubPart| RoleReport { role: *role, pid: Some(pid), up: true, restarts: 0 };
        RolesReport { host: host_name(), pid, in_process: true, roles: parts.iter().map(report).collect() }
    }
}
