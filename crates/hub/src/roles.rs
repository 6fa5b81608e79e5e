//! The state of a hub's roles as its supervisor sees it: the service `hub/roles`, and its metrics.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tampu_bus::{
    BusError, CallError, Participant,
    engine::Guard,
    service::{Limits, Permission, Request, call, serve},
};
use tampu_types::TopicName;

use crate::part::HubPart;

/// The service that reports the roles of a hub.
pub const SERVICE: &str = "hub/roles";

/// The state of one role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleReport {
    /// The reported role.
    pub role: HubPart,
    /// Number of its process, while one exists.
    pub pid: Option<u32>,
    /// True while it works.
    pub up: bool,
    /// Number of restarts since the hub's start.
    pub restarts: u64,
}

/// The roles of one hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolesReport {
    /// Name of the hub's host.
    pub host: String,
    /// Number of the process that `tampu up` started.
    pub pid: u32,
    /// True if all roles run in that process.
    pub in_process: bool,
    /// The roles, in the sequence of their start.
    pub roles: Vec<RoleReport>,
}

/// Answers the service with this report.
pub(crate) fn serve_report(
    participant: &Participant,
    report: impl Fn() -> RolesReport + Send + Sync + 'static,
) -> Result<Guard, BusError> {
    let answer = move |request: Request| {
        request.answer(&report());
    };
    serve(participant, &TopicName::new(SERVICE)?, Permission::Everybody, &Limits::inline(), answer)
}

/// Asks all hubs for their roles. Hubs that do not answer in time are missing.
pub fn ask(participant: &Participant, timeout: Duration) -> Result<Vec<RolesReport>, CallError> {
    let parts = call(participant, SERVICE, "", timeout)?;
    // A report is shorter than one part.
    Ok(parts.flatten().filter_map(|part| serde_json::from_slice(&part.content.ok()?).ok()).collect())
}
