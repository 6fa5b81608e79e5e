//! Error responses by RFC 9457: the thing, the place in the request, and the remedy.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use tampu_logbook::{
    client::address::entry_path,
    entry::Tombstone,
    people::{PeopleError, Right, Rights, decide::Refused, hashing},
    store::StoreError,
};

use super::body::ResponseBody;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The kind of problem, for programs: `urn:tampu:problem:...`, which never changes.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The status of the response.
    pub status: u16,
    /// The name of the status.
    pub title: &'static str,
    /// The error in one sentence, with the name of the thing.
    pub detail: String,
    /// The part of the request, as `query q` or `body attributes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<str>>,
    /// Advice for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<Box<str>>,
    /// The data that the change would remove at once; missing if it would remove none, or if nobody knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removes: Option<Box<Removals>>,
    /// The new place of an entry that was moved; shown only to callers who may read there.
    #[serde(skip)]
    moved: Option<Box<Tombstone>>,
    /// Whole seconds after which a retry makes sense.
    #[serde(skip)]
    retry: Option<u32>,
}

/// Data that a change would remove. It is a type of its own so that problems are small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Removals(pub Vec<RemovedData>);

/// Data of one archive that a change would remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemovedData {
    /// The kind of data: `log records`, `events` or `bulk transfers`.
    pub what: &'static str,
    /// Number of records.
    pub records: u64,
    /// Number of files.
    pub files: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// Time of the earliest record, UTC.
    pub earliest: Option<String>,
    /// Time of the latest record, UTC.
    pub latest: Option<String>,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Problem {
        let kind = format!("urn:tampu:problem:{kind}").into();
        let (title, detail) = (status.canonical_reason().unwrap_or("problem"), detail.into());
        Problem {
            kind,
            status: status.as_u16(),
            title,
            detail,
            place: None,
            way_out: None,
            removes: None,
            moved: None,
            retry: None,
        }
    }

    /// A request that is invalid in one part.
    pub fn bad(place: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", detail).at(place)
    }

    /// Sets the part of the request.
    pub fn at(mut self, place: &str) -> Problem {
        self.place = Some(place.into());
        self
    }

    /// Rejects a change of a user who has made too many, with the seconds until the next one.
    pub fn too_many_changes(seconds: u32) -> Problem {
        let detail = format!("too many changes by one user; the next one is possible in {seconds} s");
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-changes", detail);
        let problem = problem.help("retry after Retry-After; 'changes_per_minute' and 'changes_burst' of [book] are the limits");
        Problem { retry: Some(seconds), ..problem }
    }

    /// Sets the remedy.
    pub fn help(mut self, way_out: impl Into<String>) -> Problem {
        self.way_out = Some(way_out.into().into());
        self
    }

    /// Returns the problem for a caller with these rights. It omits the new place of an entry that the caller may not
    /// read.
    pub fn told_to(self, rights: &Rights) -> Problem {
        match self.moved {
            Some(ref gone) if !gone.moved_to.as_ref().is_some_and(|to| rights.may(Right::Read, &to.book)) => {
                StoreError::Gone(Box::new(Tombstone { moved_to: None, ..(**gone).clone() })).into()
            }
            _ => self,
        }
    }

    /// Returns the response.
    pub fn answer(&self) -> http::Response<ResponseBody> {
        // Texts and numbers: this does not fail.
        let body = serde_json::to_vec(self).unwrap_or_default();
        let mut answer = http::Response::new(ResponseBody::Whole(Bytes::from(body)));
        *answer.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(retry) = self.retry {
            headers.insert(header::RETRY_AFTER, retry.into());
        }
        if self.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"Tampu\""));
        }
        answer
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        let (status, kind) = match &refused {
            Refused::Unseen(_) => (StatusCode::NOT_FOUND, "not-there"),
            Refused::LogIn { .. } => (StatusCode::UNAUTHORIZED, "log-in"),
            Refused::NoRight { .. } | Refused::NotOwn { .. } => (StatusCode::FORBIDDEN, "no-right"),
            Refused::Stays { .. } => (StatusCode::FORBIDDEN, "stays"),
        };
        let problem = Problem::new(status, kind, refused.to_string());
        match refused {
            Refused::LogIn { .. } => problem.help("POST /api/v1/login, or send 'Authorization: Bearer TOKEN'"),
            Refused::Stays { .. } | Refused::NotOwn { .. } => problem.help("post a reply: POST .../entries with 'parent'"),
            _ => problem,
        }
    }
}

impl From<PeopleError> for Problem {
    fn from(error: PeopleError) -> Problem {
        let text = error.to_string();
        match error {
            PeopleError::Refused(refused) => refused.into(),
            PeopleError::Store(error) => error.into(),
            PeopleError::Wrong => Problem::new(StatusCode::UNAUTHORIZED, "wrong-password", text),
            PeopleError::Wait(wait) => {
                let problem =
                    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-tries", text).help("wait for the time in Retry-After");
                Problem { retry: Some(u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX)), ..problem }
            }
            PeopleError::TooOften(wait) => {
                let problem =
                    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-often", text).help("wait for the time in Retry-After");
                Problem { retry: Some(u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX)), ..problem }
            }
            PeopleError::Busy => {
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text).help("retry after Retry-After");
                Problem { retry: Some(hashing::RETRY_AFTER), ..problem }
            }
            PeopleError::Unproved(_) => Problem::new(StatusCode::FORBIDDEN, "unproved", text)
                .help("send 'password' with the signature; users of a provider log in at /login/oidc/NAME?again=1"),
            PeopleError::NoProof { .. } => Problem::new(StatusCode::FORBIDDEN, "no-proof", text)
                .help("sign as a user with a password here, or of a directory: send 'login' and 'password' of that user"),
            PeopleError::Ended(..) => Problem::new(StatusCode::UNAUTHORIZED, "ended", text),
            PeopleError::NoUser(_) | PeopleError::NoToken(_) | PeopleError::NoRegistration(_) => {
                Problem::new(StatusCode::NOT_FOUND, "not-there", text)
            }
            PeopleError::IsThere(_) => Problem::new(StatusCode::CONFLICT, "is-there", text),
            PeopleError::User(_) | PeopleError::Password(_) | PeopleError::Invalid(_) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", text).at("body")
            }
            // Callers must not see the place and the reason.
            PeopleError::Away { method, .. } => {
                let detail = format!("the login method '{method}' does not respond, so this login cannot be checked");
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", detail)
                    .help("try again later; sessions that are open go on, and users of the logbook itself can log in");
                Problem { retry: Some(10), ..problem }
            }
            PeopleError::NotBound { .. } => Problem::new(StatusCode::FORBIDDEN, "not-bound", text)
                .help("an administrator binds the user: tampu book users bind LOGIN METHOD; at a provider with --subject, which the hub's log has"),
            PeopleError::NotRegistered { .. } | PeopleError::NameInUse { .. } => {
                Problem::new(StatusCode::FORBIDDEN, "not-registered", text)
                    .help("an administrator adds the user: tampu book users add LOGIN --no-password, then tampu book users bind")
            }
            PeopleError::PasswordElsewhere { .. } => Problem::new(StatusCode::CONFLICT, "password-elsewhere", text)
                .help("'tampu book users unbind LOGIN' makes the user one of the logbook alone"),
            PeopleError::Random(_) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", text),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let text = error.to_string();
        let problem = |status, kind| Problem::new(status, kind, text.clone());
        match &error {
            error if error.is_disk_full() => {
                let detail = "the disk of the logbook is full; nothing was changed";
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, "disk-full", detail)
                    .help("ask an administrator of the site for space")
            }
            StoreError::NoBook(_) => problem(StatusCode::NOT_FOUND, "not-there").help("GET /api/v1/books lists the logbooks"),
            StoreError::NoEntry(_) | StoreError::NoTemplate { .. } => problem(StatusCode::NOT_FOUND, "not-there"),
            StoreError::Gone(tombstone) => {
                let gone = problem(StatusCode::GONE, "gone");
                match &tombstone.moved_to {
                    Some(to) => {
                        let gone = gone.help(format!("it is at {}", entry_path(to)));
                        Problem { moved: Some(Box::new((**tombstone).clone())), ..gone }
                    }
                    None => gone.help("its history has the content"),
                }
            }
            StoreError::Invalid(invalid) => {
                let place = invalid.attribute().map_or_else(|| "body".to_owned(), |name| format!("body attributes {name}"));
                problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid").at(&place)
            }
            StoreError::Query(_) => {
                problem(StatusCode::BAD_REQUEST, "bad-query").at("query q").help("spec/book-query.md has the language")
            }
            StoreError::NoOrder { .. } => problem(StatusCode::BAD_REQUEST, "bad-query").at("query sort"),
            StoreError::OtherSearch => {
                problem(StatusCode::BAD_REQUEST, "other-search").at("query after").help("ask for the first page")
            }
            StoreError::Changed { .. } => problem(StatusCode::PRECONDITION_FAILED, "changed")
                .at("header If-Match")
                .help("read the entry again, and apply your change to its current content"),
            StoreError::BookChanged(_) => {
                problem(StatusCode::PRECONDITION_FAILED, "changed").help("GET .../config again, and send its ETag as If-Match")
            }
            StoreError::BookExists(_) => problem(StatusCode::CONFLICT, "exists").at("body name"),
            StoreError::NoDeletedBook(_) => {
                problem(StatusCode::NOT_FOUND, "not-there").help("GET /api/v1/deleted-books lists the deleted logbooks")
            }
            StoreError::NoBookChange { .. } => {
                problem(StatusCode::NOT_FOUND, "not-there").help("GET .../config/history lists the changes")
            }
            StoreError::Answered(_) => problem(StatusCode::CONFLICT, "changed").help("read the thread again, and retry"),
            StoreError::RecordChanged { .. } => problem(StatusCode::CONFLICT, "changed").help("read it again"),
            StoreError::Locked { .. } => problem(StatusCode::LOCKED, "locked").help("wait until the lock ends, or ask its owner"),
            StoreError::Signed(_) => problem(StatusCode::CONFLICT, "signed").help("post a reply: POST .../entries with 'parent'"),
            StoreError::SignedAlready { .. } => problem(StatusCode::CONFLICT, "is-there"),
            // Callers must not see paths on the hub's disk.
            StoreError::Key(_) => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "failed",
                "the signing key of the site cannot be used; nothing was signed",
            )
            .help("an administrator of the site finds the reason with 'tampu book verify' on the host of the logbook"),
            StoreError::NoBlob(_) => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "no-upload").at("body attachments").help("POST /api/v1/uploads first")
            }
            StoreError::Busy => {
                let busy = problem(StatusCode::SERVICE_UNAVAILABLE, "busy").help("retry after Retry-After");
                Problem { retry: Some(1), ..busy }
            }
            StoreError::OverQuota(_) => problem(StatusCode::INSUFFICIENT_STORAGE, "quota"),
            StoreError::Full(_) => problem(StatusCode::CONFLICT, "full"),
            StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::FileTooLarge => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", format!("the attachment is too large: {error}"))
                    .at("body")
            }
            StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::TimedOut => {
                Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly").at("body")
            }
            // The client broke the body off.
            StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::ConnectionAborted => {
                Problem::bad("body", "it is incomplete or invalid").help("send it again")
            }
            // Callers must not see paths on the hub's disk.
            StoreError::Io { error, .. } => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", format!("a file of the logbook: {error}"))
            }
            _ => problem(StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        }
    }
}
