//! The catalogue of a service's routes: one entry for each route.
//!
//! Decision: an entry describes its route completely: method, path, kind of work, limit of the body, use of `If-Match`,
//! types of request and response. A request looks its route up once. The OpenAPI document is made from the same entries
//! ([`super::openapi`]). Rejected: a router crate with extractors, because a second list beside it would describe the
//! API, and the two would drift apart.

use http::{Method, StatusCode, request::Parts};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use tampu_workers::Stop;

use super::{
    address::decoded,
    admission::WorkKind,
    body::{HttpRequest, ResponseBody},
    client_address::ClientAddress,
};

/// A parameter of the query string: its name, its JSON type, its description.
pub type Parameter = (&'static str, &'static str, &'static str);

/// The JSON schema of a type, made when the document is made.
pub type TypeSchema = fn(&mut SchemaGenerator) -> Schema;

/// The content of a body.
#[derive(Clone, Copy)]
pub enum Content {
    /// The response has no body.
    Nothing,
    /// JSON of one type.
    Json(TypeSchema),
    /// Bytes of a media type.
    Bytes(&'static str),
}

/// The content that is JSON of a type.
pub const fn json_of<T: JsonSchema>() -> Content {
    Content::Json(schema_of::<T>)
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The login that a route needs. Rights in logbooks are checked by the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// None: guests may use it.
    Optional,
    /// A user, a session or a token.
    Required,
    /// An administrator of the site.
    Admin,
}

/// The largest body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLimit {
    /// This many bytes.
    Bytes(u64),
    /// The configured size of a file.
    File,
}

impl BodyLimit {
    /// The limit in bytes, where a file may have `file` bytes.
    pub fn bytes(self, file: u64) -> u64 {
        match self {
            BodyLimit::Bytes(bytes) => bytes,
            BodyLimit::File => file,
        }
    }
}

/// The use that a route makes of the header `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// The header is ignored.
    Unused,
    /// Without the header the current revision is changed.
    Optional,
    /// Without the header the request is rejected.
    Required,
}

/// A route, whose handler is of the type `H`.
#[derive(Clone, Copy)]
pub struct Route<H: 'static> {
    /// The method; a route of GET also serves HEAD.
    pub method: &'static Method,
    /// The path below the service's base; a name in braces stands for one part.
    pub path: &'static str,
    /// The operation id of the document.
    pub id: &'static str,
    /// The summary of the document.
    pub what: &'static str,
    /// The parameters of the query string; any other is rejected.
    pub query: &'static [Parameter],
    /// The content of the request.
    pub takes: Content,
    /// Status and content of a response of success.
    pub gives: (u16, Content),
    /// True if success is 201 where the request has made something new.
    pub may_create: bool,
    /// The login it needs.
    pub login: Login,
    /// The kind of work, which decides whose permits it waits for.
    pub work: WorkKind,
    /// The largest body.
    pub body: BodyLimit,
    /// The use of `If-Match`.
    pub if_match: IfMatch,
    /// The function that handles requests.
    pub act: H,
}

impl<H> Route<H> {
    /// Returns true if the route answers this method.
    fn takes_method(&self, method: &Method) -> bool {
        self.method == method || method == Method::HEAD && self.method == Method::GET
    }
}

/// Looks a route up, together with the values of the names in braces. Without a route, returns the methods of the path.
pub fn find<'a, H>(
    routes: impl IntoIterator<Item = &'a Route<H>>,
    method: &Method,
    path: &str,
) -> Result<(&'a Route<H>, Vec<String>), Vec<&'static Method>> {
    let parts: Vec<&str> = path.split('/').collect();
    let mut methods = Vec::new();
    for route in routes {
        let Some(variables) = matches(route.path, &parts) else { continue };
        if route.takes_method(method) {
            return Ok((route, variables));
        }
        methods.push(route.method);
    }
    Err(methods)
}

fn matches(path: &str, parts: &[&str]) -> Option<Vec<String>> {
    let mut variables = Vec::new();
    let mut known = path.split('/');
    for part in parts {
        let known = known.next()?;
        if known.starts_with('{') {
            variables.push(decoded(part).filter(|part| !part.is_empty())?);
        } else if known != *part {
            return None;
        }
    }
    known.next().is_none().then_some(variables)
}

/// The function that handles one request. It runs on a worker and may block; `stop` is set when the client has
/// disconnected.
pub type Handler = Box<dyn FnOnce(HttpRequest<'_>, &Stop) -> http::Response<ResponseBody> + Send>;

/// A request whose caller is known: the largest body that this caller may send, and the handler.
pub struct Identified {
    /// The largest body of this caller, in bytes.
    pub max_body: u64,
    /// Handles the request.
    pub handler: Handler,
}

/// The function that authenticates the caller of one request, before its body is received. It runs on a worker and may
/// block. An error is the response.
pub type Identify = Box<dyn FnOnce(&Parts, &ClientAddress) -> Result<Identified, Box<http::Response<ResponseBody>>> + Send>;

/// The result of looking a request up: its limits, and the function that authenticates its caller.
pub struct Matched {
    /// The kind of work.
    pub work: WorkKind,
    /// The kind of work that the authentication is; [`WorkKind::Login`] where a password is to be checked.
    pub identifies: WorkKind,
    /// The largest body of any caller, in bytes.
    pub max_body: u64,
    /// Makes the response to a rejected request. The body is too large or too slow, no permit is free, or the handler
    /// panicked.
    pub reject: fn(StatusCode) -> http::Response<ResponseBody>,
    /// Authenticates the caller.
    pub identify: Identify,
}

impl Matched {
    /// Makes a route that handles the requests of all callers alike.
    pub fn for_all(
        work: WorkKind,
        max_body: u64,
        reject: fn(StatusCode) -> http::Response<ResponseBody>,
        handler: Handler,
    ) -> Matched {
        let identify = Box::new(move |_: &Parts, _: &ClientAddress| Ok(Identified { max_body, handler }));
        Matched { work, identifies: WorkKind::Quick, max_body, reject, identify }
    }

    /// Makes a route without a body whose work is a login: it waits for another service, as a password waits for its hash.
    pub fn for_login(reject: fn(StatusCode) -> http::Response<ResponseBody>, identify: Identify) -> Matched {
        Matched { work: WorkKind::Login, identifies: WorkKind::Quick, max_body: 0, reject, identify }
    }
}

/// A set of routes that is mounted on a server.
pub trait HttpService: Send + Sync + 'static {
    /// Looks a request up by its head; called once for each request, on a thread that must not block.
    fn find(self: std::sync::Arc<Self>, head: &Parts) -> Matched;
}
