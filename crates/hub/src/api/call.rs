//! A request of the API during its handling, and the helpers that its handlers share.

use std::{
    any::Any,
    io::Read,
    num::ParseIntError,
    str::{FromStr, ParseBoolError},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use serde::{Serialize, de::DeserializeOwned};
use tampu_log::Logger;
use tampu_logbook::{
    book::same_name,
    entry::EntryRef,
    export::pdf::typeset::Typesetter,
    mail::Outbox,
    people::{
        ElogCommand, ElogRules, People, PeopleError, Principal, Resource, Right, Verb, ask, decide::Refused,
        elog_rules::ElogDenial, principal::Credentials, user::check_name, written,
    },
    render::cache::RenderCache,
    store::Store,
};
use tampu_types::Time;
use tampu_workers::Stop;

use super::{bus_place::OnBus, checking::Checking, preview::Previews, push::Pushes, staging::Staging};
use crate::{
    book::{look_counter::LookCounter, settings::BookSettings},
    clock::now,
    gateway::websocket::WebGateway,
    http::{
        admission::WorkKind,
        auth::{Authenticator, RequestAuth},
        body::ResponseBody,
        change_rate::ChangeRate,
        free_space::FreeSpace,
        problem::Problem,
        route::{self, BodyLimit, Content, IfMatch, Login},
    },
    rules::Rules,
    setting_changes::SettingChanges,
};

/// The header that names the author of a request with the owner's token.
pub const BY: &str = "x-tampu-by";
/// The largest body with a text: the longest text, and the JSON around it.
pub(super) const TEXT: BodyLimit = BodyLimit::Bytes(24 << 20);
/// The largest other body that is not a file.
pub(super) const SHORT: BodyLimit = BodyLimit::Bytes(1 << 20);
/// The largest body with a login and its password.
pub(super) const LOGIN: BodyLimit = BodyLimit::Bytes(4 << 10);

/// A response of the API.
pub type Answer = Response<ResponseBody>;
/// The function of a route.
pub(super) type Act = fn(&mut Call<'_>) -> Result<Answer, Problem>;
/// A route of the API.
pub type Route = route::Route<Act>;

/// A template for read-only routes.
pub(super) const GET: Route = Route {
    method: &Method::GET,
    path: "",
    id: "",
    what: "",
    query: &[],
    takes: Content::Nothing,
    gives: (200, Content::Nothing),
    may_create: false,
    login: Login::Optional,
    work: WorkKind::Quick,
    body: SHORT,
    if_match: IfMatch::Unused,
    act: |_| nothing(),
};
/// A template for routes that change data.
pub(super) const POST: Route = Route { method: &Method::POST, work: WorkKind::Change, ..GET };
pub(super) const PUT: Route = Route { method: &Method::PUT, ..POST };
pub(super) const PATCH: Route = Route { method: &Method::PATCH, ..POST };
pub(super) const DELETE: Route = Route { method: &Method::DELETE, ..POST };

/// The API of a store.
pub struct Api {
    /// The store of the logbooks.
    pub store: Arc<dyn Store>,
    /// Users, groups, sessions and tokens.
    pub people: Arc<People>,
    /// The authenticator of requests.
    pub authenticator: Arc<Authenticator>,
    /// The section `[book]` of the configuration.
    pub settings: BookSettings,
    /// Retention, quotas and routes of the hub, which its administrators change.
    pub setting_changes: Arc<SettingChanges>,
    /// The space that uploads leave free.
    pub space: FreeSpace,
    /// Uploaded files that no entry has yet.
    pub staging: Staging,
    /// The texts of entries as HTML.
    pub rendered: Arc<RenderCache>,
    /// The limit for changes by one user.
    pub changes: Arc<ChangeRate>,
    /// The log of administrative actions.
    pub audit: Logger,
    /// The cache of previews.
    pub previews: Arc<Previews>,
    /// Pushes new matches of searches.
    pub pushes: Pushes,
    /// The permit of the check of all logbooks.
    pub checking: Checking,
    /// The site's access rules.
    pub rules: Arc<Rules>,
    /// The counter of looks at entries.
    pub looks: Arc<LookCounter>,
    /// The sender of mail, if one is configured.
    pub mail: Option<Arc<Outbox>>,
    /// The maker of PDF, if this program has one.
    pub typesetter: Option<Arc<Typesetter>>,
    /// The way to the services of the bus.
    pub bus: OnBus,
    /// The way to the gateway.
    pub(crate) gateway: WebGateway,
}

/// A request during its handling.
pub struct Call<'a> {
    /// The route of the request.
    pub route: &'static Route,
    /// The API of the request.
    pub api: &'a Api,
    /// The authenticated caller.
    pub auth: RequestAuth,
    /// The head of the request.
    pub head: &'a Parts,
    /// The values of the names in the route's braces, in order.
    pub vars: Vec<String>,
    /// The parameters of the query string.
    pub query: Vec<(String, String)>,
    /// The body of the request.
    pub body: &'a mut (dyn Read + Send),
    /// A signal that is set when the client has disconnected.
    pub stop: &'a Stop,
}

/// Returns a caller of the logbook as a principal of the site's rules. The owner is the user of the hub's host.
pub fn principal_of(who: &Principal) -> tampu_bus::access::Principal {
    use tampu_bus::access::Principal as Site;
    match &who.by {
        Credentials::Nothing => Site::Guest,
        Credentials::Owner => Site::this_user(),
        Credentials::Token(token) => Site::Token(format!("{}/{}", who.login, token.id)),
        Credentials::Session { .. } | Credentials::Password { .. } | Credentials::Proxy { .. } => Site::Login(who.login.clone()),
    }
}

/// Makes a JSON response with a status.
pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Answer, Problem> {
    let body = serde_json::to_vec(value)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", error.to_string()))?;
    let mut answer = Response::new(ResponseBody::Whole(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}

/// Makes a JSON response with status 200.
pub fn ok<T: Serialize>(value: &T) -> Result<Answer, Problem> {
    json(StatusCode::OK, value)
}

/// Makes an empty response with status 204.
pub fn nothing() -> Result<Answer, Problem> {
    let mut answer = Response::new(ResponseBody::Whole(Bytes::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

impl Call<'_> {
    /// Returns the authenticated caller.
    pub fn who(&self) -> &Principal {
        &self.auth.principal
    }

    /// Returns the caller as a principal of the site's rules.
    pub fn principal(&self) -> tampu_bus::access::Principal {
        principal_of(self.who())
    }

    /// Returns the author's name of a change: the caller's login, or for a guest the address. With the owner's token
    /// the header [`BY`] names the author.
    pub fn by(&self) -> String {
        let said = self.head.headers.get(BY).and_then(|name| std::str::from_utf8(name.as_bytes()).ok());
        if let (Credentials::Owner, Some(name)) = (&self.who().by, said)
            && check_name(name).is_ok()
        {
            return name.to_owned();
        }
        match self.who().login.as_str() {
            "" => format!("guest@{}", self.auth.from),
            login => login.to_owned(),
        }
    }

    /// Returns a variable of the path.
    pub fn var(&self, at: usize) -> &str {
        self.vars.get(at).map_or("", String::as_str)
    }

    /// Returns a number that is a variable of the path.
    pub fn number<T: FromStr>(&self, at: usize, what: &str) -> Result<T, Problem> {
        let text = self.var(at);
        let problem = || Problem::bad("path", format!("invalid {what}: '{}'", text.escape_debug()));
        text.parse().map_err(|_| problem())
    }

    /// Returns the entry that the path names.
    pub fn entry_ref(&self) -> Result<EntryRef, Problem> {
        Ok(EntryRef::new(self.var(0), self.number(1, "number of an entry")?))
    }

    /// Returns a parameter of the query string.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Parses a parameter; `None` if it is missing or empty.
    pub fn parsed<T: FromStr<Err: std::fmt::Display + 'static>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.parameter(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| {
            let (any, text) = (&error as &dyn Any, text.escape_debug());
            let why = if any.is::<ParseIntError>() {
                format!("invalid number '{text}'; use a whole number that is not too large")
            } else if any.is::<ParseBoolError>() {
                format!("invalid value '{text}'; use true or false")
            } else {
                format!("'{text}': {error}")
            };
            Problem::bad(&format!("query {name}"), why)
        })
    }

    /// Returns true if a parameter is `true`.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        Ok(self.parsed::<bool>(name)?.unwrap_or(false))
    }

    /// Parses the body as JSON. The media type has to be JSON, which a form on another site's page cannot send.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let kind = self.head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "no-json", "the body has to be application/json");
            return Err(problem.at("header Content-Type"));
        }
        let (mut bytes, most) = (Vec::new(), TEXT.bytes(0));
        // One byte more: a body that is cut at the limit would count as bad JSON.
        (&mut *self.body).take(most + 1).read_to_end(&mut bytes).map_err(|error| unread(&error))?;
        if bytes.len() as u64 > most {
            return Err(unread(&std::io::Error::new(std::io::ErrorKind::FileTooLarge, format!("more than {most} bytes"))));
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            Problem::bad("body", format!("line {}, column {}: {error}", error.line(), error.column()))
                .help("GET /api/v1/openapi.json has its schema")
        })
    }

    /// Checks that the caller may do something: by their rights, and by the configuration that the logbook has from ELOG.
    pub fn ask(&self, verb: Verb, on: Resource<'_>) -> Result<(), Problem> {
        let command = match verb {
            // The rights of the caller are those that `Allow List` and `Deny List` leave.
            Verb::Read | Verb::Administer => None,
            Verb::Post => Some(ElogCommand::New),
            Verb::Edit => Some(ElogCommand::Edit),
            Verb::Delete => Some(ElogCommand::Delete),
        };
        self.ask_as(command, verb, on)
    }

    /// The same for an action that stands for another command of ELOG's, or for none.
    pub fn ask_as(&self, command: Option<ElogCommand>, verb: Verb, on: Resource<'_>) -> Result<(), Problem> {
        let from = self.auth.from;
        if !matches!(self.who().by, Credentials::Owner) && !self.api.people.is_open_to(on.book(), from)? {
            let detail = format!("access from {from} to the logbook '{}' is not allowed", on.book().escape_debug());
            let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail);
            return Err(problem.help("'Hosts allow' and 'Hosts deny' of its ELOG configuration say from where it is open"));
        }
        self.has_right(verb, on)?;
        match command {
            Some(command) => self.allowed_by_elog(command, verb, on),
            None => Ok(()),
        }
    }

    /// Checks the configuration that the logbook has from ELOG. It does not bind the owner of the installation.
    fn allowed_by_elog(&self, command: ElogCommand, verb: Verb, on: Resource<'_>) -> Result<(), Problem> {
        let who = self.who();
        let book = self.api.store.book(on.book())?;
        let rules = ElogRules::of(&book);
        if rules.is_empty() || who.by == Credentials::Owner {
            return Ok(());
        }
        let checked = rules.allow(command, &who.login).and_then(|()| match (verb, on) {
            (Verb::Edit | Verb::Delete, Resource::Entry(entry)) => {
                let age_of = if rules.limits_age() { written(&*self.api.store, entry) } else { Ok(entry.date) };
                // An entry whose age cannot be read counts as old.
                let age_of = age_of.unwrap_or(Time(i64::MIN));
                rules.allow_change((&who.login, &who.full_name), who.rights.of(&book.name), entry, age_of, now())
            }
            _ => Ok(()),
        });
        checked.map_err(|denial| {
            let detail = format!("the ELOG configuration of the logbook '{}' does not allow it: {denial}", book.name);
            match denial {
                ElogDenial::TooOld { .. } | ElogDenial::NotAuthor => {
                    Problem::new(StatusCode::FORBIDDEN, "stays", detail).help("post a reply: POST .../entries with 'parent'")
                }
                _ if who.is_guest() => Problem::new(StatusCode::UNAUTHORIZED, "log-in", detail)
                    .help("POST /api/v1/login, or send 'Authorization: Bearer TOKEN'"),
                _ => Problem::new(StatusCode::FORBIDDEN, "no-right", detail)
                    .help("an administrator of the logbook can change its configuration"),
            }
        })
    }

    /// Checks a right of the caller.
    fn has_right(&self, verb: Verb, on: Resource<'_>) -> Result<(), Problem> {
        let who = self.who();
        ask(&*self.api.store, &who.login, &who.rights, verb, on).map_err(|error| match (&error, &who.by) {
            // The owner's own rights may suffice where the token's do not.
            (PeopleError::Refused(Refused::NoRight { book, right, .. }), Credentials::Token(token))
                if !token.leaves(book, *right) =>
            {
                let detail = format!("this token of '{}' does not have the right '{}'", who.login, right.name());
                let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("header Authorization");
                problem.help("use a token that has it, or log in with the password")
            }
            _ => error.into(),
        })
    }

    /// Checks that the caller's token, if there is one, leaves one of these rights in a logbook. The caller may have none of
    /// them.
    pub fn check_token(&self, book: &str, rights: &[Right]) -> Result<(), Problem> {
        match &self.who().by {
            Credentials::Token(token) if !rights.iter().any(|right| token.leaves(book, *right)) => {
                let detail = format!("this token of '{}' cannot change anything in the logbook '{book}'", self.who().login);
                let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("header Authorization");
                Err(problem.help("use a token that can, or log in with the password"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the attributes of a logbook that the caller sees; `None` stands for all.
    pub fn shown(&self, book: &str) -> Result<Option<Vec<String>>, Problem> {
        let mut shown = self.api.people.shown(self.who())?.into_iter();
        Ok(shown.find(|(name, _)| same_name(name, book)).map(|(_, shown)| shown))
    }

    /// Rejects callers that are not administrators of the site.
    pub fn need_admin(&self) -> Result<(), Problem> {
        if self.who().admin {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "no-right", "this needs an administrator of the site")
            .help("log in as an administrator"))
    }
}

/// Makes the problem of an unreadable body.
pub fn unread(error: &std::io::Error) -> Problem {
    match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", format!("the body: {error}"))
        }
        std::io::ErrorKind::StorageFull => {
            Problem::new(StatusCode::INSUFFICIENT_STORAGE, "disk-full", "the disk of the logbook is full; nothing was changed")
                .help("ask an administrator of the site for space")
        }
        std::io::ErrorKind::TimedOut => Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly"),
        _ => Problem::bad("body", format!("it could not be read: {error}")),
    }
    .at("body")
}
