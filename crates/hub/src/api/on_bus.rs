//! The API's way to the services of the bus, behind the access hook.
//!
//! Decision: the HTTP server asks services as a process of the hub's user, which the services let do everything that the
//! site's rules permit. So each handler asks the hook for its own caller first. Rejected: passing the caller on to the
//! services. They know processes and proved hosts, and would have to trust this process about the caller.

use std::time::Duration;

use http::StatusCode;
use tampu_bus::{
    Participant,
    access::{Denied, Resource, Verb},
    service::CallError,
};

use super::{bus_place::OnBus, call::Call};
use crate::http::problem::Problem;

/// Time limit for the answer of a service.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit for the answers of all processes.
pub(super) const OF_PROCESSES: Duration = Duration::from_secs(3);

/// The resource of a service.
pub(super) fn service(name: &str) -> Resource {
    Resource::Service(name.to_owned())
}

impl<'a> Call<'a> {
    /// Checks that the site's rules let the caller do this; returns the process that asks for it.
    pub(super) fn need_on_bus(&self, verb: Verb, resource: &Resource) -> Result<&'a Participant, Problem> {
        let OnBus { participant, access, .. } = &self.api.bus;
        let asked = access.ask_for(&self.principal(), verb, resource);
        asked.map(|()| participant).map_err(|denied| self.denied(&denied))
    }

    /// Returns whether the site's rules let the caller do this, without an audit record.
    pub(super) fn may_on_bus(&self, verb: Verb, resource: &Resource) -> bool {
        self.api.bus.access.permits(&self.principal(), verb, resource)
    }

    fn denied(&self, denied: &Denied) -> Problem {
        if self.who().is_guest() {
            let problem = Problem::new(StatusCode::UNAUTHORIZED, "log-in", denied.to_string());
            return problem.help("POST /api/v1/login, or send 'Authorization: Bearer TOKEN'");
        }
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", denied.to_string());
        problem.help("an administrator of the site can permit it: POST /api/v1/access/rules, or 'tampu access allow'")
    }
}

/// Returns true for the newest first.
pub(super) fn is_newest_first(call: &Call<'_>) -> Result<bool, Problem> {
    match call.parameter("order").unwrap_or_default() {
        "" | "newest" => Ok(true),
        "oldest" => Ok(false),
        _ => Err(Problem::bad("query order", "write newest or oldest")),
    }
}

/// Returns a number of a parameter that lies within bounds.
pub(super) fn bounded(call: &Call<'_>, name: &str, usual: u64, least: u64, most: u64) -> Result<u64, Problem> {
    let number = call.parsed(name)?.unwrap_or(usual);
    if !(least..=most).contains(&number) {
        return Err(Problem::bad(&format!("query {name}"), format!("{least} to {most}")));
    }
    Ok(number)
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Problem {
        let (status, kind) = match &error {
            CallError::Unanswered(_) => (StatusCode::SERVICE_UNAVAILABLE, "unanswered"),
            CallError::Denied(_) => (StatusCode::FORBIDDEN, "no-right"),
            CallError::Unreadable { .. } => (StatusCode::BAD_GATEWAY, "unreadable"),
            CallError::NotSent { .. } | CallError::Refused { .. } => (StatusCode::SERVICE_UNAVAILABLE, "refused"),
            CallError::CutOff { .. } => (StatusCode::SERVICE_UNAVAILABLE, "cut-off"),
        };
        let problem = Problem::new(status, kind, error.to_string());
        match error {
            CallError::Unanswered(_) => problem.help("'tampu doctor' names the roles that run; the role collector keeps logs"),
            CallError::CutOff { .. } | CallError::Refused { .. } => problem.help("retry; if it remains, ask for less"),
            _ => problem,
        }
    }
}
