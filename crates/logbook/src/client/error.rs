//! Errors of the logbook's HTTP client.

use std::io;

/// An error of a request to a hub's logbook.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection, no response in time, or a connection that ended before the response did.
    #[error("{url}: {why}")]
    Unreachable {
        /// The hub's address.
        url: String,
        /// The network's error.
        why: String,
    },
    /// A file of trusted certificates cannot be used.
    #[error("{0}")]
    Certificates(String),
    /// The hub rejected the request: a status other than 2xx.
    #[error("{detail}{}", .way_out.as_ref().map(|way_out| format!(" ({way_out})")).unwrap_or_default())]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The kind of the problem, as `no-password`; empty if the hub names none.
        kind: String,
        /// The hub's error message.
        detail: String,
        /// The hub's advice in terms of the API.
        way_out: Option<String>,
    },
    /// The response is not JSON.
    #[error("{url}: the response is not JSON: {error}")]
    NotJson {
        /// The hub's address.
        url: String,
        /// The parser's error.
        error: serde_json::Error,
    },
    /// The response is JSON of another shape than this release expects.
    #[error("{url}: the response is from another release: {why}")]
    OtherRelease {
        /// The hub's address.
        url: String,
        /// A description of the difference.
        why: String,
    },
    /// A draft was saved without files that the hub does not have. Saving it again needs its number, or a second draft is made.
    #[error("draft {number} is saved without the files {}: the hub does not have them; upload them, and save the draft again", .files.join(", "))]
    DraftWithoutFiles {
        /// The number of the draft.
        number: i64,
        /// The names of the files.
        files: Vec<String>,
    },
    /// The request is not valid HTTP: a header or the address has a forbidden character.
    #[error("invalid request: {0}")]
    Request(#[from] http::Error),
    /// The request's body cannot be written as JSON.
    #[error("invalid request body: {0}")]
    Body(serde_json::Error),
    /// No thread can be started for the request.
    #[error("cannot start a thread for the request: {0}")]
    Thread(io::Error),
    /// The request was stopped before its response.
    #[error("interrupted")]
    Interrupted,
}
