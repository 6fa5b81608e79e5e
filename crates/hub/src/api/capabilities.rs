//! The rights of the caller beside logbooks, so that the console shows no view that answers with a refusal.

use schemars::JsonSchema;
use serde::Serialize;
use tampu_bus::access::Verb;

use super::{
    call::{Answer, Call, GET, Route, ok},
    on_bus::service,
};
use crate::http::{problem::Problem, route::json_of};

/// The route of the capabilities.
pub const ROUTES: &[Route] = &[Route {
    path: "/capabilities",
    id: "capabilities",
    what: "Returns what the caller may use beside logbooks, the domain and the release",
    gives: (200, json_of::<Capabilities>()),
    act: show,
    ..GET
}];

/// The caller and their rights on the site's services.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Capabilities {
    /// Login; empty for a guest and the owner.
    login: String,
    name: String,
    guest: bool,
    /// True for an administrator of the site.
    admin: bool,
    domain: String,
    /// Release of the hub.
    version: &'static str,
    /// Searching the log.
    log: bool,
    /// Reading the levels of loggers.
    levels: bool,
    /// Setting the levels of loggers.
    set_levels: bool,
    /// Listing the attributes of servers.
    event: bool,
    /// The history of attributes.
    history: bool,
    /// States of bulk transfers.
    bulk: bool,
    /// Hosts and processes.
    site: bool,
    /// Sessions with the gateway, for live data; guests have them if a rule of the site gives them something.
    gateway: bool,
}

fn show(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let may = |verb, name: &str| call.may_on_bus(verb, &service(name));
    let who = call.who();
    ok(&Capabilities {
        login: who.login.clone(),
        name: who.full_name.clone(),
        guest: who.is_guest(),
        admin: call.need_admin().is_ok(),
        domain: call.api.rules.domain().to_string(),
        version: env!("CARGO_PKG_VERSION"),
        log: may(Verb::Query, "log/query"),
        levels: may(Verb::Read, "log/levels"),
        set_levels: may(Verb::Set, "log/levels"),
        event: may(Verb::Read, "event/list"),
        history: may(Verb::Query, "event/history"),
        bulk: may(Verb::Read, "bulk/state"),
        site: may(Verb::Read, "site/host"),
        gateway: call.api.gateway.is_there() && (!who.is_guest() || call.api.rules.policy().gives_anything(&call.principal())),
    })
}
