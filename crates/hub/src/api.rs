//! The API for programs, below `/api/v1`. [`catalogue`] lists each route with its summary, its parameters, the login
//! it needs and its handler. The OpenAPI document is made from the same list.
//!
//! | subject | module |
//! |-|-|
//! | the caller; users, groups, tokens, rights | [`people`] |
//! | logbooks | [`books`] |
//! | entries | [`entries`] |
//! | files of entries | [`attachments`] |
//! | signatures of entries | [`signatures`] |
//! | searches, saved and pushed | [`searches`] |
//! | entries and searches as PDF | `pdf` |
//! | drafts and locks | [`drafts`] |
//! | templates | [`templates`] |
//! | the check of all logbooks | [`check`] |
//! | the site's access rules | [`access`] |
//! | mails about posted entries | `posted` |
//! | the queue of mails; rules of users for mails | [`mail`], [`notify`] |
//! | new matches, pushed | [`push`] |
//! | WebSockets with the gateway | `gateway` |
//! | the archive of log records, loggers; what a caller may use of them | `log`; `capabilities` |
//! | attributes and their history; bulk transfers; the site | `event`; `bulk`; `site` |
//! | targets of links, and entries that mention them; one range of time in all services | `links`; `timeline` |
//! | questions to the services of the bus; times of requests | `on_bus`, `when` |
//! | uploaded files that no entry has yet; small pictures | [`staging`], [`preview`] |

use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use tampu_bus::access::Verb;
use tampu_logbook::people::principal::Credentials;
use tampu_workers::Stop;

use crate::http::{
    address::parameters,
    admission::WorkKind,
    auth::{RequestAuth, work_of},
    body::{HttpRequest, ResponseBody},
    client_address::ClientAddress,
    exchange::CallerName,
    free_space::BoundedBody,
    headers::secure,
    problem::Problem,
    route::{HttpService, Identified, Login, Matched},
    time_steps::InSteps,
};
use call::{Answer, Call, GET};
use catalogue::{Found, find};

pub use bus_place::OnBus;
pub use call::Api;
pub use tampu_logbook::client::address::{BASE, entry_path};

pub mod access;
pub mod attachments;
pub mod book_config;
pub mod books;
mod bulk;
mod bus_place;
pub mod call;
mod capabilities;
pub mod catalogue;
pub mod check;
pub mod checking;
pub mod drafts;
pub mod entries;
mod event;
mod feeds;
mod forms;
mod gateway;
pub mod input;
mod links;
mod log;
pub mod mail;
mod naming;
pub mod notify;
mod on_bus;
mod pdf;
pub mod people;
mod pieces;
mod posted;
pub mod preview;
pub mod purge;
pub mod push;
mod registrations;
pub mod searches;
pub mod settings;
pub mod signatures;
mod site;
pub mod staging;
pub mod templates;
mod timeline;
mod when;

impl Api {
    fn act(&self, found: Found, auth: RequestAuth, request: HttpRequest<'_>, stop: &Stop) -> Result<Answer, Problem> {
        let HttpRequest { head, body, .. } = request;
        let (route, vars) = found.map_err(|methods| match &methods[..] {
            [] => Problem::new(
                StatusCode::NOT_FOUND,
                "no-route",
                format!("unknown route '{}' of the API", head.uri.path().escape_debug()),
            )
            .help("GET /api/v1/openapi.json lists all routes"),
            methods => {
                let names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
                let help = format!("this path has {}", names.join(", "));
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no-method", format!("invalid method {} for this path", head.method))
                    .help(help)
            }
        })?;
        if route.method != Method::GET && route.id != "login" || route.id == "login" && auth.elsewhere {
            self.authenticator.check_change(&auth, &head.headers)?;
        }
        if route.method != Method::GET && route.work == WorkKind::Change {
            auth.count_change(&self.changes).map_err(Problem::too_many_changes)?;
        }
        let query = parameters(head.uri.query().unwrap_or_default())
            .ok_or_else(|| Problem::bad("query", "invalid UTF-8, or a % without two digits"))?;
        if let Some((name, _)) = query.iter().find(|(name, _)| !route.query.iter().any(|(known, ..)| known == name)) {
            let known: Vec<&str> = route.query.iter().map(|(known, ..)| *known).collect();
            let help = if known.is_empty() {
                "the route has no parameters".to_owned()
            } else {
                format!("the route has {}", known.join(", "))
            };
            return Err(Problem::bad(&format!("query {}", name.escape_debug()), "unknown parameter").help(help));
        }
        let mut body = BoundedBody::new(body, auth.longest_body(), &self.space);
        let mut call = Call { api: self, route, auth, head: &head, vars, query, body: &mut body, stop };
        match route.login {
            Login::Optional => {}
            Login::Required | Login::Admin if call.who().is_guest() => {
                let problem = Problem::new(StatusCode::UNAUTHORIZED, "log-in", "this needs a login");
                return Err(problem.help("POST /api/v1/login, or send 'Authorization: Bearer TOKEN'"));
            }
            // Such a token has rights in logbooks only; it may use no other resource of its owner.
            Login::Required
                if !route.path.contains("{book}") && matches!(&call.who().by, Credentials::Token(token) if !token.is_whole()) =>
            {
                let detail = "this needs a token with all rights of its owner; this token has fewer";
                let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("header Authorization");
                return Err(problem.help("log in with the password, or use a token without 'may' and 'books'"));
            }
            Login::Required => {}
            Login::Admin => call.need_admin().inspect_err(|problem| audit_refusal(&call, problem))?,
        }
        let done = (route.act)(&mut call);
        audit(&call, &done);
        done.map_err(|problem| problem.told_to(&call.who().rights))
    }
}

impl HttpService for Api {
    fn find(self: Arc<Self>, head: &Parts) -> Matched {
        let path = head.uri.path().strip_prefix(BASE).unwrap_or_default();
        let found = find(&head.method, path);
        let (work, body) = found.as_ref().map_or((GET.work, GET.body), |(route, _)| (route.work, route.body));
        let max_body = body.bytes(self.setting_changes.longest_attachment());
        let identifies = work_of(head, false);
        let identify = move |head: &Parts, client: &ClientAddress| {
            let auth = self.authenticator.authenticate(&self.people, head, client, false);
            let headers = self.authenticator.ticket_headers(client, auth.as_ref().ok());
            let auth = auth.map_err(|problem| Box::new(headers.clone().added_to(finished(problem.answer()))))?;
            let longest = auth.longest_body().min(max_body);
            let in_steps = work.searches() && self.people.sees_a_part(&auth.principal).unwrap_or(true);
            let who = CallerName(call::principal_of(&auth.principal).to_string());
            let handler = move |request: HttpRequest<'_>, stop: &Stop| {
                let answer = finished(self.act(found, auth, request, stop).unwrap_or_else(|problem| problem.answer()));
                let mut answer = headers.added_to(answer);
                answer.extensions_mut().insert(who);
                if in_steps {
                    answer.extensions_mut().insert(InSteps);
                }
                answer
            };
            Ok(Identified { max_body: longest, handler: Box::new(handler) })
        };
        Matched { work, identifies, max_body, reject, identify: Box::new(identify) }
    }
}

/// Routes that change users, rights, tokens or settings, besides those of administrators.
const AUDITED: [&str; 11] = [
    "putConfig",
    "restoreConfig",
    "changePassword",
    "setPassword",
    "makeToken",
    "dropToken",
    "endSessions",
    "putBook",
    "setAccess",
    "changeUser",
    "setGroup",
];

/// Logs an administrative request and its outcome.
fn audit(call: &Call<'_>, done: &Result<Answer, Problem>) {
    let route = call.route;
    if *route.method == Method::GET || route.login != Login::Admin && !AUDITED.contains(&route.id) {
        return;
    }
    match done {
        Ok(_) => {
            let path = call.head.uri.path().strip_prefix(BASE).unwrap_or_default();
            let who = call.principal().to_string();
            // Bodies may hold passwords: the path names the object.
            let what = format!("{} {path}", route.method);
            call.api.rules.audit.done(&who, Verb::Admin, &what, &call.auth.from.to_string(), route.id);
        }
        Err(problem) => audit_refusal(call, problem),
    }
}

/// Logs a request that the rights of the caller refuse.
fn audit_refusal(call: &Call<'_>, problem: &Problem) {
    if problem.status == StatusCode::FORBIDDEN.as_u16() {
        let what = format!("{} {}", call.route.method, call.head.uri.path().strip_prefix(BASE).unwrap_or_default());
        call.api.rules.audit.refused(&call.principal(), Verb::Admin, &what, &call.auth.from.to_string(), &problem.detail);
    }
}

/// Makes the response to a rejected request.
fn reject(status: StatusCode) -> Answer {
    let (kind, detail, help) = match status {
        StatusCode::SERVICE_UNAVAILABLE => ("busy", "too many requests of this kind at the same time", "retry after Retry-After"),
        StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "the body is too large", "spec/book-api.md lists the limits"),
        StatusCode::REQUEST_TIMEOUT => ("too-slow", "the body came too slowly", "send it again"),
        StatusCode::INTERNAL_SERVER_ERROR => ("failed", "the hub failed at this request", "its log may say more"),
        _ => (
            "bad-request",
            "the body is incomplete or invalid, or the request does not name one host",
            "send one header Host and a whole body",
        ),
    };
    finished(Problem::new(status, kind, detail).help(help).answer())
}

/// Adds the headers that every response of the API carries, including a response whose body is made later.
fn finished(answer: Answer) -> Answer {
    let (head, told) = answer.into_parts();
    let told = match told {
        ResponseBody::Later(kind, make) => ResponseBody::Later(kind, Box::new(move || finished(make()))),
        told => told,
    };
    let mut answer = Response::from_parts(head, told);
    secure(answer.headers_mut());
    let headers = answer.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    answer
}
