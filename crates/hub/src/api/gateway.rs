//! The way of browsers to the gateway: a WebSocket, `spec/wire/gateway.md`.
//!
//! A browser sends its cookies with the WebSockets of every page, and lets the page read what comes back. So a request
//! that a page of another site caused is refused, whatever its credentials are.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};
use tampu_bus::access::Principal::Guest;
use tampu_logbook::people::{People, PeopleError, principal::Credentials};

use super::call::{Answer, Call, GET, Route, principal_of};
use crate::{
    gateway::websocket::{ByToken, Caller, PROTOCOL},
    http::{
        auth::RequestAuth,
        body::ResponseBody,
        headers::{set, text},
        problem::Problem,
        route::Content,
        websocket::{NoHandshake, accept},
    },
    rules::Rules,
};

/// The route of the gateway.
pub const ROUTES: &[Route] = &[Route {
    path: "/gateway",
    id: "gateway",
    what: "Begins a WebSocket with the subprotocol tampu-gateway-1: logs, events, topics and questions for programs that are not on the bus \
           (spec/wire/gateway.md)",
    gives: (101, Content::Nothing),
    act: begin,
    ..GET
}];

fn begin(call: &mut Call<'_>) -> Result<Answer, Problem> {
    if call.auth.elsewhere {
        let problem = Problem::new(StatusCode::FORBIDDEN, "other-site", "a page of another site cannot use the gateway");
        return Err(problem.at("header Origin").help("if the name is this hub's, add it to [book] hosts of its configuration"));
    }
    let accepted = match accept(call.head, PROTOCOL) {
        Ok(accepted) => accepted,
        Err(why @ NoHandshake::Version) => {
            let problem = Problem::new(StatusCode::UPGRADE_REQUIRED, "no-websocket", why.to_string());
            let mut answer = problem.answer();
            set(answer.headers_mut(), header::SEC_WEBSOCKET_VERSION, "13");
            return Ok(answer);
        }
        Err(why) => return Err(Problem::new(StatusCode::BAD_REQUEST, "no-websocket", why.to_string())),
    };
    let busy = |detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
    let gateway = &call.api.gateway;
    if !gateway.is_there() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-gateway", "this hub has no gateway that runs"));
    }
    let Some(place) = gateway.enter(call.auth.from) else {
        return Err(busy("too many connections with the gateway, of all or of this address"));
    };
    let tunnel = gateway.tunnel(place, caller(call), by_token(call)).ok_or_else(|| busy("the hub stops"))?;
    let mut answer = Response::new(ResponseBody::Whole(bytes::Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.extensions_mut().insert(tunnel);
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    set(headers, header::SEC_WEBSOCKET_ACCEPT, &accepted);
    Ok(answer)
}

/// Returns the caller that the HTTP server has authenticated.
fn caller(call: &Call<'_>) -> Caller {
    let bearer = text(&call.head.headers, header::AUTHORIZATION).and_then(|said| said.split_once(' '));
    let secret = call.auth.secret.clone().or_else(|| bearer.map(|(_, token)| token.trim().to_owned()));
    checked(&call.api.people, &call.api.rules, call.auth.clone(), secret)
}

/// Returns the function that finds the caller of a token in HELLO.
fn by_token(call: &Call<'_>) -> ByToken {
    let (people, rules, auth) = (call.api.people.clone(), call.api.rules.clone(), call.auth.clone());
    Arc::new(move |token| {
        let principal = people.by_token(token).and_then(|principal| people.seen_from(principal, auth.from)).ok()?;
        let auth = RequestAuth { principal, ..auth.clone() };
        Some(checked(&people, &rules, auth, Some(token.to_owned())))
    })
}

/// Returns a caller whose credentials can be checked again with `secret`, that of the session or token.
///
/// A guest has a session if a rule of the site gives guests something. What it is, the gateway asks for each request.
fn checked(people: &Arc<People>, rules: &Arc<Rules>, auth: RequestAuth, secret: Option<String>) -> Caller {
    let is_guest = auth.principal.by == Credentials::Nothing;
    let (people, rules) = (people.clone(), rules.clone());
    let is_admitted = move || !is_guest || rules.policy().gives_anything(&Guest);
    let principal = is_admitted().then(|| principal_of(&auth.principal));
    let still = move || match people.look_again(&auth.principal, secret.as_deref()) {
        Ok(now) => principal_of(&now) == principal_of(&auth.principal) && is_admitted(),
        // A store that does not answer at the moment says nothing about the caller.
        Err(why) => matches!(why, PeopleError::Store(_)),
    };
    Caller { principal, still: Arc::new(still) }
}
