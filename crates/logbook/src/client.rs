//! The logbook's HTTP client: a logbook that a hub serves, used like one in a directory.
//!
//! [`Client`] speaks the API of `spec/book-api.md`. It blocks, and needs a thread for each search that can be
//! abandoned. An abandoned request closes its connection, and the hub then ends its work. [`address`] defines the paths
//! for both the client and the hub.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, channel},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tampu_workers::{OnPanic, WorkerThread};
use ureq::Agent;

use crate::{attachment::Sha, entry::EntryRef, search::Stop};

use address::BASE;
pub use error::ClientError;
pub use trust::Trust;

mod accounts;
pub mod address;
mod config;
mod error;
mod export;
mod logbook;
mod mail;
mod naming;
mod notify;
mod rules;
mod search;
mod signing;
mod trust;

/// Bytes of a JSON response.
const MAX_RESPONSE: u64 = 1 << 30;
/// Interval at which a waiting search checks whether it was abandoned.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

type Result<T, E = ClientError> = std::result::Result<T, E>;
type Response = http::Response<ureq::Body>;

/// A logbook behind an HTTP address.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    url: String,
    token: Option<String>,
    by: String,
    /// Attachments of the entries that were read: the entry, and the attachment's position in it.
    seen: Arc<Mutex<HashMap<Sha, (EntryRef, usize)>>>,
}

impl Client {
    /// Creates a client of the hub at `url` (`http://HOST:PORT`, `https://HOST:PORT`); sends no request yet. `by` signs
    /// entries if the site has no logins.
    pub fn new(url: &str, token: Option<String>, by: &str, trust: &Trust) -> Result<Client> {
        let url = url.trim_end_matches('/').to_owned();
        Ok(Client { agent: trust.agent(&url)?, url, token, by: by.to_owned(), seen: Arc::default() })
    }

    /// Sends a request without a body, or with one as JSON, and parses the JSON response; an empty response is `null`.
    /// `path` begins after [`BASE`].
    fn call(&self, method: &str, path: &str, body: Option<&Value>, headers: &[(&str, String)]) -> Result<Value> {
        let mut request = self.request(method, &format!("{BASE}{path}"));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = match body {
            Some(body) => self.agent.run(request.header("content-type", "application/json").body(body.to_string())?),
            None => self.agent.run(request.body(())?),
        };
        let mut response = self.accept(response)?;
        let text = response.body_mut().with_config().limit(MAX_RESPONSE).read_to_string();
        let text = text.map_err(|error| self.unreachable(&error))?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|error| ClientError::NotJson { url: self.url.clone(), error })
    }

    /// Reads the resource at a path.
    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.parse(self.call("GET", path, None, &[])?)
    }

    /// Sends a request without a body whose response is [`Client::accept`]ed but not read yet. `path` begins at the root.
    fn open(&self, method: &str, path: &str) -> Result<Response> {
        self.accept(self.agent.run(self.request(method, path).body(())?))
    }

    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let url = format!("{}{path}", self.url);
        let mut request = http::Request::builder().method(method).uri(url).header("x-tampu-by", &self.by);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request
    }

    /// Returns the response if its status is a success, and the hub's own words as an error otherwise.
    fn accept(&self, response: std::result::Result<Response, ureq::Error>) -> Result<Response> {
        let mut response = response.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.body_mut().read_to_string().unwrap_or_default();
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let detail = problem["detail"].as_str().map_or_else(|| format!("{}: {status}", self.url), str::to_owned);
        let way_out = problem["way_out"].as_str().filter(|_| status != http::StatusCode::PRECONDITION_FAILED);
        let kind =
            problem["type"].as_str().and_then(|kind| kind.strip_prefix("urn:tampu:problem:")).unwrap_or_default().to_owned();
        Err(ClientError::Refused { status: status.as_u16(), kind, detail, way_out: way_out.map(str::to_owned) })
    }

    fn parse<T: DeserializeOwned>(&self, value: Value) -> Result<T> {
        serde_json::from_value(value).map_err(|error| ClientError::OtherRelease { url: self.url.clone(), why: error.to_string() })
    }

    fn unreachable(&self, why: &dyn std::fmt::Display) -> ClientError {
        ClientError::Unreachable { url: self.url.clone(), why: trust::advise(&why.to_string()) }
    }

    /// Runs a request in a thread of its own and waits for the response until `stop`. Returns `None` if it was stopped.
    /// An abandoned request continues in its thread; its connection ends with the process.
    fn run_until<T: Send + 'static>(
        &self,
        stop: &Stop,
        request: impl FnOnce(&Client) -> Result<T> + Send + 'static,
    ) -> Option<Result<T>> {
        let (sender, response) = channel();
        let client = self.clone();
        let run = move || drop(sender.send(request(&client)));
        if let Err(error) = WorkerThread::named("book-client").spawn(OnPanic::ReportOnly, run) {
            return Some(Err(ClientError::Thread(error)));
        }
        loop {
            match response.recv_timeout(CHECK_INTERVAL) {
                Ok(response) => return Some(response),
                Err(RecvTimeoutError::Timeout) if stop.is_stopped() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Some(Err(self.unreachable(&"the request was not answered"))),
            }
        }
    }
}

fn to_json<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map_err(ClientError::Body)
}
