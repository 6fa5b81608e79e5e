//! Requests and their answers as an observer sees them: once each, when the last byte of the answer was sent or the
//! client has gone.
//!
//! The query of an address is no part of it, because it may have a password, a code or the key of a link. Connections
//! whose bytes are no request are not reported.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderName, Method, StatusCode, request::Parts};
use tampu_logbook::search::cost::SearchCosts;

use super::{admission::WorkKind, headers::text};

/// Maximum length of a path that is kept, in bytes.
const PATH: usize = 512;

/// The name of the authenticated caller of a request, in the extensions of its response.
#[derive(Debug, Clone)]
pub struct CallerName(pub String);

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The method of the request.
    pub method: Method,
    /// The path, as sent; a long one is cut.
    pub path: String,
    /// The address of the client.
    pub from: IpAddr,
    /// The caller; `None` if the request was rejected before it was known.
    pub who: Option<String>,
    /// The kind of work.
    pub kind: WorkKind,
    /// The status; `None` if the client left before the answer began.
    pub status: Option<StatusCode>,
    /// Bytes of the answer's body that were given to the socket.
    pub bytes: u64,
    /// The time until the answer began.
    pub answered: Option<Duration>,
    /// The time until the answer was sent.
    pub took: Duration,
    /// The trace id of the header `traceparent`, in 32 digits.
    pub trace: Option<String>,
    /// The searches that were made for it.
    pub searches: SearchCosts,
}

/// An observer of a server's requests. It runs on threads that must not block.
pub trait ExchangeObserver: Send + Sync + 'static {
    /// Is called once for each request.
    fn done(&self, exchange: &Exchange);
}

/// An exchange that reports itself when it is dropped.
pub struct OpenExchange {
    exchange: Exchange,
    begun: Instant,
    observer: Arc<dyn ExchangeObserver>,
}

impl OpenExchange {
    /// Begins with the head of a request.
    pub fn begin(observer: Arc<dyn ExchangeObserver>, head: &Parts, from: IpAddr, kind: WorkKind) -> OpenExchange {
        let path = head.uri.path();
        let end = path.len().min(PATH);
        let exchange = Exchange {
            method: head.method.clone(),
            // A path is ASCII.
            path: path.get(..end).unwrap_or_default().to_owned(),
            from,
            who: None,
            kind,
            status: None,
            bytes: 0,
            answered: None,
            took: Duration::ZERO,
            trace: text(&head.headers, HeaderName::from_static("traceparent")).and_then(trace_id).map(str::to_owned),
            searches: SearchCosts::default(),
        };
        OpenExchange { exchange, begun: Instant::now(), observer }
    }

    /// Notes the searches for a part of the answer.
    pub fn searched(&mut self, searches: SearchCosts) {
        self.exchange.searches.append(searches);
    }

    /// Notes the caller.
    pub fn is_by(&mut self, who: CallerName) {
        self.exchange.who = Some(who.0);
    }

    /// Notes the begin of the answer.
    pub fn answers(&mut self, status: StatusCode) {
        self.exchange.status = Some(status);
        self.exchange.answered = Some(self.begun.elapsed());
    }

    /// Notes bytes of the answer's body.
    pub fn sends(&mut self, bytes: usize) {
        self.exchange.bytes += bytes as u64;
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.exchange.took = self.begun.elapsed();
        self.observer.done(&self.exchange);
    }
}

/// Returns the trace id of a `traceparent` of the W3C: `00-<32 digits>-<16 digits>-<2 digits>`.
fn trace_id(header: &str) -> Option<&str> {
    let mut parts = header.trim().split('-');
    let (version, id, parent) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_set = id.bytes().any(|byte| byte != b'0');
    (is_hex(version, 2) && version != "ff" && is_hex(id, 32) && is_set && is_hex(parent, 16)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_trace_is_kept() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace_id(&format!("00-{id}-00f067aa0ba902b7-01")), Some(id));
        for bad in [
            "",
            id,
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736",
        ] {
            assert_eq!(trace_id(bad), None, "{bad}");
        }
    }
}
