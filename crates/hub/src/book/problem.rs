//! What went wrong, as RFC 9457 has it: which thing, where, and what helps.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tampu_logbook::{
    entry::Tombstone,
    people::{PeopleError, Right, Rights, decide::Refused},
    store::StoreError,
};

use super::body::Told;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What kind of problem, for programs: stays the same.
    #[serde(rename = "type")]
    pub kind: Box<str>,
    /// The status, once more.
    pub status: u16,
    /// The status in words.
    pub title: &'static str,
    /// What is wrong, with the thing's name.
    pub detail: String,
    /// Which part of the request it is about, as `query q`, `body attributes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<str>>,
    /// What helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<Box<str>>,
    /// Where an entry went that it is about. Told only to who may read there.
    #[serde(skip)]
    moved: Option<Box<Tombstone>>,
    /// Whole seconds after which it may be tried again.
    #[serde(skip)]
    retry: Option<u32>,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Problem {
        let kind = format!("urn:tampu:problem:{kind}").into();
        let (title, detail) = (status.canonical_reason().unwrap_or("problem"), detail.into());
        Problem { kind, status: status.as_u16(), title, detail, place: None, way_out: None, moved: None, retry: None }
    }

    /// A request that cannot be understood, and which part of it.
    pub fn bad(place: &str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", detail).at(place)
    }

    /// Says where.
    pub fn at(mut self, place: &str) -> Problem {
        self.place = Some(place.into());
        self
    }

    /// Says what helps.
    pub fn help(mut self, way_out: impl Into<String>) -> Problem {
        self.way_out = Some(way_out.into().into());
        self
    }

    /// What somebody with these rights is told: where an entry went is nothing for who may not read there.
    pub fn told_to(self, rights: &Rights) -> Problem {
        match self.moved {
            Some(ref gone) if !gone.moved_to.as_ref().is_some_and(|to| rights.may(Right::Read, &to.book)) => {
                StoreError::Gone(Box::new(Tombstone { moved_to: None, ..(**gone).clone() })).into()
            }
            _ => self,
        }
    }

    /// As an answer.
    pub fn answer(&self) -> http::Response<Told> {
        // The parts are texts and numbers: this does not fail.
        let body = serde_json::to_vec(self).unwrap_or_default();
        let mut answer = http::Response::new(Told::Whole(Bytes::from(body)));
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
                    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-tries", text).help("wait as long as Retry-After says");
                Problem { retry: Some(u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX)), ..problem }
            }
            PeopleError::Ended(..) => Problem::new(StatusCode::UNAUTHORIZED, "ended", text),
            PeopleError::NoUser(_) | PeopleError::NoToken(_) => Problem::new(StatusCode::NOT_FOUND, "not-there", text),
            PeopleError::IsThere(_) => Problem::new(StatusCode::CONFLICT, "is-there", text),
            PeopleError::User(_) | PeopleError::Password(_) | PeopleError::Invalid(_) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", text).at("body")
            }
            // Where it is and why it does not answer is not for everybody.
            PeopleError::Elsewhere(_) => {
                let detail = "the place that knows this login does not answer";
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", detail).help("try again later");
                Problem { retry: Some(10), ..problem }
            }
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
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, "disk-full", detail).help("ask who looks after the site for room")
            }
            StoreError::NoBook(_) => problem(StatusCode::NOT_FOUND, "not-there").help("GET /api/v1/books lists the logbooks"),
            StoreError::NoEntry(_) => problem(StatusCode::NOT_FOUND, "not-there"),
            StoreError::Gone(tombstone) => {
                let gone = problem(StatusCode::GONE, "gone");
                match &tombstone.moved_to {
                    Some(to) => {
                        let gone = gone.help(format!("it is at {}", super::api::entry_path(to)));
                        Problem { moved: Some(Box::new((**tombstone).clone())), ..gone }
                    }
                    None => gone.help("what it said is in its history"),
                }
            }
            StoreError::Invalid(_) => problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid").at("body"),
            StoreError::Query(_) => {
                problem(StatusCode::BAD_REQUEST, "bad-query").at("query q").help("spec/book-query.md has the language")
            }
            StoreError::OtherSearch => {
                problem(StatusCode::BAD_REQUEST, "other-search").at("query after").help("ask for the first page")
            }
            StoreError::Changed { .. } => problem(StatusCode::PRECONDITION_FAILED, "changed")
                .at("header If-Match")
                .help("read the entry again and put your change into what it says now"),
            StoreError::Answered(_) => problem(StatusCode::CONFLICT, "changed").help("read its thread again, and ask again"),
            StoreError::RecordChanged { .. } => problem(StatusCode::CONFLICT, "changed").help("read it again"),
            StoreError::Locked { .. } => {
                problem(StatusCode::LOCKED, "locked").help("wait until the lock ends, or ask who holds it")
            }
            StoreError::NoBlob(_) => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "no-upload").at("body attachments").help("POST /api/v1/uploads first")
            }
            StoreError::Full(_) => problem(StatusCode::CONFLICT, "full"),
            StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::FileTooLarge => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", format!("the attachment is too large: {error}"))
                    .at("body")
            }
            StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::TimedOut => {
                Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the body came too slowly").at("body")
            }
            // What lies where on the hub's disk is not for everybody.
            StoreError::Io { error, .. } => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", format!("a file of the logbook: {error}"))
            }
            _ => problem(StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        }
    }
}
