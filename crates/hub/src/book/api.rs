//! The API for programs, below `/api/v1`. [`ROUTES`](routes) is the catalogue: each route with its words, its parameters, who may use it and what it
//! does, in one place; the OpenAPI document is made from it ([`document`]), and so cannot say anything else.
//!
//! | subject | module |
//! |-|-|
//! | who one is; users, groups, tokens, rights | [`people`] |
//! | logbooks | [`books`] |
//! | entries | [`entries`] |
//! | files of entries | [`attachments`] |
//! | searches, saved and pushed | [`searches`] |
//! | drafts and locks | [`desk`] |
//! | templates | [`templates`] |
//! | holding all against itself | [`upkeep`] |

use std::{
    any::Any,
    io::Read,
    net::{IpAddr, SocketAddr},
    num::ParseIntError,
    str::{FromStr, ParseBoolError},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use serde::{Serialize, de::DeserializeOwned};
use tampu_logbook::{
    entry::EntryRef,
    people::{People, PeopleError, Principal, Resource, Verb, ask, decide::Refused, registry::By, user::check_name},
    search::Stop,
    store::Store,
};

use super::{
    address::{decoded, encoded, parameters},
    body::{Asked, AtMost, Told},
    problem::Problem,
    push::Pushes,
    reception::{Met, Reception},
    server::Answers,
    settings::BookSettings,
    staging::Staging,
    turns::Kind,
};

pub mod attachments;
pub mod books;
pub mod desk;
pub mod document;
pub mod entries;
pub mod input;
pub mod people;
pub mod searches;
pub mod templates;
pub mod upkeep;

/// Before every path of the catalogue.
pub const BASE: &str = "/api/v1";
/// The header that says who does what the owner's token does.
pub const BY: &str = "x-tampu-by";
/// Bytes of a body with a text: the longest one, and what is written around it.
pub const MAX_BODY: u64 = 24 << 20;
/// Bytes of any other body that is no file.
pub const MAX_SHORT: u64 = 1 << 20;
/// The schemas of bodies with a text.
const WITH_TEXT: [&str; 4] = ["NewEntry", "Content", "NewDraft", "Template"];
/// Bytes of a login and its password.
const LOGIN: u64 = 4 << 10;

/// What is answered.
pub type Answer = http::Response<Told>;
/// What a route does.
type Act = fn(&mut Call<'_>) -> Result<Answer, Problem>;

/// Who may use a route at all; what they may then do is decided by [`ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Everybody, guests too.
    Nobody,
    /// Who has logged in.
    Login,
    /// Who looks after the site.
    SiteAdmin,
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// There is none.
    Nothing,
    /// JSON of this schema of the document.
    Json(&'static str),
    /// A JSON array of things of this schema.
    List(&'static str),
    /// Bytes, of this type.
    Bytes(&'static str),
}

/// A parameter behind the question mark: its name, its type in the document, and what it says.
pub type Parameter = (&'static str, &'static str, &'static str);

/// One thing the API can do.
pub struct Route {
    /// How.
    pub method: Method,
    /// Where; names in braces stand for parts.
    pub path: &'static str,
    /// Its name in the document.
    pub id: &'static str,
    /// What it does.
    pub what: &'static str,
    /// What can stand behind the question mark.
    pub query: &'static [Parameter],
    /// What comes with it.
    pub takes: Content,
    /// What is answered if all is well, with this status.
    pub gives: (u16, Content),
    /// Who may use it.
    pub needs: Needs,
    /// What it does.
    pub act: Act,
}

/// All of them.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    let of = [
        people::ROUTES,
        books::ROUTES,
        entries::ROUTES,
        attachments::ROUTES,
        searches::ROUTES,
        desk::ROUTES,
        templates::ROUTES,
        upkeep::ROUTES,
        document::ROUTES,
    ];
    of.into_iter().flatten()
}

/// The API on a store.
pub struct Api {
    /// What keeps the books.
    pub store: Arc<dyn Store>,
    /// Who is who.
    pub people: Arc<People>,
    /// Meets those who ask.
    pub reception: Arc<Reception>,
    /// What the site says.
    pub settings: BookSettings,
    /// Files that were sent and are no entry's yet.
    pub staging: Staging,
    /// Small pictures.
    pub previews: Arc<super::preview::Previews>,
    /// Tells of new matches.
    pub pushes: Pushes,
    /// Whether all is being checked.
    pub checking: upkeep::Checking,
}

/// A request that is being answered.
pub struct Call<'a> {
    /// Where it is asked.
    pub api: &'a Api,
    /// Who asks.
    pub met: Met,
    /// The head of the request.
    pub head: &'a Parts,
    /// What the names in the route's braces stand for, in order.
    pub vars: Vec<String>,
    /// What stands behind the question mark.
    pub query: Vec<(String, String)>,
    /// The body.
    pub body: &'a mut (dyn Read + Send),
    /// Ends what takes long.
    pub stop: &'a Stop,
}

/// Where an entry is.
pub fn entry_path(at: &EntryRef) -> String {
    format!("{BASE}/books/{}/entries/{}", encoded(&at.book), at.id)
}

/// JSON, with a status.
pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Answer, Problem> {
    let body = serde_json::to_vec(value)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", error.to_string()))?;
    let mut answer = http::Response::new(Told::Whole(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}

/// JSON, and all is well.
pub fn ok<T: Serialize>(value: &T) -> Result<Answer, Problem> {
    json(StatusCode::OK, value)
}

/// Done, and nothing to say.
pub fn nothing() -> Result<Answer, Problem> {
    let mut answer = http::Response::new(Told::Whole(Bytes::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

/// A text in a header, where it can stand in one.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

impl Call<'_> {
    /// Who asks.
    pub fn who(&self) -> &Principal {
        &self.met.principal
    }

    /// The name that stands below what they do: their login, or that they are a guest, and from where. Whom the installation belongs to may
    /// say it for somebody.
    pub fn by(&self) -> String {
        let said = self.head.headers.get(BY).and_then(|name| std::str::from_utf8(name.as_bytes()).ok());
        if let (By::Owner, Some(name)) = (&self.who().by, said)
            && check_name(name).is_ok()
        {
            return name.to_owned();
        }
        match self.who().login.as_str() {
            "" => format!("guest@{}", self.met.from),
            login => login.to_owned(),
        }
    }

    /// A part of the path.
    pub fn var(&self, at: usize) -> &str {
        self.vars.get(at).map_or("", String::as_str)
    }

    /// A number that is a part of the path.
    pub fn number<T: FromStr>(&self, at: usize, what: &str) -> Result<T, Problem> {
        let text = self.var(at);
        let problem = || Problem::bad("path", format!("'{}' is no {what}", text.escape_debug()));
        text.parse().map_err(|_| problem())
    }

    /// The entry of the path.
    pub fn entry_ref(&self) -> Result<EntryRef, Problem> {
        Ok(EntryRef::new(self.var(0), self.number(1, "number of an entry")?))
    }

    /// A parameter, as it is.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of a type; nothing if it is not there or empty.
    pub fn parsed<T: FromStr<Err: std::fmt::Display + 'static>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.parameter(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: T::Err| {
            let (any, text) = (&error as &dyn Any, text.escape_debug());
            let why = if any.is::<ParseIntError>() {
                format!("'{text}' is no whole number, or too large a one")
            } else if any.is::<ParseBoolError>() {
                format!("'{text}' is neither true nor false")
            } else {
                format!("'{text}': {error}")
            };
            Problem::bad(&format!("query {name}"), why)
        })
    }

    /// Whether a parameter says yes.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        Ok(self.parsed::<bool>(name)?.unwrap_or(false))
    }

    /// The body, as JSON. It has to say that it is that: a form of a page elsewhere cannot.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let kind = self.head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "no-json", "the body has to be application/json");
            return Err(problem.at("header Content-Type"));
        }
        let mut bytes = Vec::new();
        (&mut *self.body).take(MAX_BODY).read_to_end(&mut bytes).map_err(|error| unread(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Problem::bad("body", format!("line {}, column {}: {error}", error.line(), error.column()))
                .help("GET /api/v1/openapi.json has its schema")
        })
    }

    /// Asks whether they may.
    pub fn ask(&self, verb: Verb, on: Resource<'_>) -> Result<(), Problem> {
        let who = self.who();
        ask(&*self.api.store, &who.login, &who.rights, verb, on).map_err(|error| match (&error, &who.by) {
            // Their own rights are another matter.
            (PeopleError::Refused(Refused::NoRight { book, right, .. }), By::Token(token)) if !token.leaves(book, *right) => {
                let detail = format!("this token of '{}' does not have the right '{}'", who.login, right.name());
                let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("header Authorization");
                problem.help("have one made that has it, or log in with the password")
            }
            _ => error.into(),
        })
    }

    /// Refuses who does not look after the site.
    pub fn need_admin(&self) -> Result<(), Problem> {
        if self.who().admin {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "no-right", "this is for who looks after the site").help("log in as one of them"))
    }
}

/// A body that could not be read.
pub fn unread(error: &std::io::Error) -> Problem {
    match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", format!("the body: {error}"))
        }
        std::io::ErrorKind::TimedOut => Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly"),
        _ => Problem::bad("body", format!("it could not be read: {error}")),
    }
    .at("body")
}

/// A route and what the names in its braces stand for; else the methods that its path has.
pub fn find(method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), Vec<&'static Method>> {
    let parts: Vec<&str> = path.split('/').collect();
    let mut methods = Vec::new();
    for route in routes() {
        let Some(vars) = matches(route.path, &parts) else { continue };
        if route.method == *method || *method == Method::HEAD && route.method == Method::GET {
            return Ok((route, vars));
        }
        methods.push(&route.method);
    }
    Err(methods)
}

fn matches(path: &str, parts: &[&str]) -> Option<Vec<String>> {
    let mut vars = Vec::new();
    let mut known = path.split('/');
    for part in parts {
        let known = known.next()?;
        if known.starts_with('{') {
            vars.push(decoded(part).filter(|part| !part.is_empty())?);
        } else if known != *part {
            return None;
        }
    }
    known.next().is_none().then_some(vars)
}

impl Api {
    fn act(&self, asked: Asked<'_>, stop: &Stop) -> Result<Answer, Problem> {
        let Asked { head, body, from, local } = asked;
        let met = self.reception.meet(&self.people, &head, from, local, false)?;
        let path = head.uri.path().strip_prefix(BASE).unwrap_or_default();
        let (route, vars) = find(&head.method, path).map_err(|methods| match &methods[..] {
            [] => Problem::new(
                StatusCode::NOT_FOUND,
                "no-route",
                format!("'{}' is nothing of the API", head.uri.path().escape_debug()),
            )
            .help("GET /api/v1/openapi.json tells all there is"),
            methods => {
                let names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
                let help = format!("there is {}", names.join(", "));
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no-method", format!("{} is not for this path", head.method))
                    .help(help)
            }
        })?;
        if route.method != Method::GET && route.id != "login" || route.id == "login" && met.elsewhere {
            self.reception.check_change(&met, &head.headers)?;
        }
        let query = parameters(head.uri.query().unwrap_or_default())
            .ok_or_else(|| Problem::bad("query", "a % without two digits, or no UTF-8"))?;
        if let Some((name, _)) = query.iter().find(|(name, _)| !route.query.iter().any(|(known, ..)| known == name)) {
            let known: Vec<&str> = route.query.iter().map(|(known, ..)| *known).collect();
            let help = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(Problem::bad(&format!("query {}", name.escape_debug()), "this route has no such parameter").help(help));
        }
        let mut body = AtMost { from: body, left: met.longest_body() };
        let mut call = Call { api: self, met, head: &head, vars, query, body: &mut body, stop };
        match route.needs {
            Needs::Nobody => {}
            Needs::Login | Needs::SiteAdmin if call.who().is_guest() => {
                let problem = Problem::new(StatusCode::UNAUTHORIZED, "log-in", "for this you have to log in");
                return Err(problem.help("POST /api/v1/login, or send 'Authorization: Bearer TOKEN'"));
            }
            // Rights in logbooks bound such a token where there is one; what else its owner has is not for it.
            Needs::Login if !route.path.contains("{book}") && matches!(&call.who().by, By::Token(token) if !token.is_whole()) => {
                let detail = "this is for a token that may all its owner may; yours may less";
                let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("header Authorization");
                return Err(problem.help("log in with the password, or use a token without 'may' and 'books'"));
            }
            Needs::Login => {}
            Needs::SiteAdmin => call.need_admin()?,
        }
        (route.act)(&mut call).map_err(|problem| problem.told_to(&call.who().rights))
    }
}

impl Answers for Api {
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> Answer {
        finished(self.act(asked, stop).unwrap_or_else(|problem| problem.answer()))
    }

    fn kind(&self, head: &Parts) -> Kind {
        let path = head.uri.path().strip_prefix(BASE).unwrap_or_default();
        match find(&head.method, path) {
            Ok((Route { id: "search", .. }, _)) => Kind::Search,
            Ok((Route { id: "exportSearch", .. }, _)) => Kind::Export,
            Ok((Route { method: Method::GET, .. }, _)) | Err(_) => Kind::Quick,
            Ok(_) => Kind::Change,
        }
    }

    fn refusal(&self, _head: &Parts, status: StatusCode) -> Answer {
        let (kind, detail, help) = match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                ("busy", "too much of this kind is asked for at the same time", "ask again after Retry-After")
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                ("too-large", "the body is longer than it may be", "spec/book-api.md has the bounds")
            }
            StatusCode::REQUEST_TIMEOUT => ("too-slow", "the body came too slowly", "send it again"),
            StatusCode::INTERNAL_SERVER_ERROR => ("failed", "the hub failed at this request", "its log may say more"),
            _ => ("bad-request", "the body could not be read", "send it again"),
        };
        finished(Problem::new(status, kind, detail).help(help).answer())
    }

    fn longest_body(&self, head: &Parts) -> u64 {
        let path = head.uri.path().strip_prefix(BASE).unwrap_or_default();
        match find(&head.method, path) {
            Ok((Route { id: "login", .. }, _)) => LOGIN,
            Ok((Route { takes: Content::Bytes(_), .. }, _)) => self.settings.attachment_mb << 20,
            Ok((Route { takes: Content::Json(schema), .. }, _)) if WITH_TEXT.contains(schema) => MAX_BODY,
            _ => MAX_SHORT,
        }
    }

    fn origin(&self, head: &Parts, peer: SocketAddr) -> IpAddr {
        self.reception.origin(&head.headers, peer.ip())
    }
}

/// An answer with what every one of the API says, also where it is made later.
fn finished(answer: Answer) -> Answer {
    let (head, told) = answer.into_parts();
    let told = match told {
        Told::Later(kind, make) => Told::Later(kind, Box::new(move || finished(make()))),
        told => told,
    };
    let mut answer = http::Response::from_parts(head, told);
    secure(answer.headers_mut());
    let headers = answer.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    answer
}

/// What every answer says to browsers.
pub fn secure(headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    headers.entry(header::X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("SAMEORIGIN"));
}
