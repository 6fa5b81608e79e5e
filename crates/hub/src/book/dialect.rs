//! ELOG's dialect, mounted: who asks is found out here, what is answered is the logbook's own affair.

use std::{
    io::Read,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header, request::Parts};
use tampu_logbook::{elog::web::Site, people::People, search::Stop};

use super::{
    api::{Api, BASE, secure},
    body::{Asked, AtMost, Told},
    problem::Problem,
    reception::Reception,
    server::Answers,
};

/// What a page may load, unless it says more exactly itself.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'self'";

/// A site in ELOG's dialect.
pub struct Dialect {
    /// What answers.
    pub site: Arc<Site>,
    /// Who is who.
    pub people: Arc<People>,
    /// Meets those who ask.
    pub reception: Arc<Reception>,
    /// Bytes of an attachment.
    pub longest: u64,
}

impl Answers for Dialect {
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> http::Response<Told> {
        let Asked { head, body, from, local } = asked;
        let mut answer = match self.reception.meet(&self.people, &head, from, local, true) {
            Ok(met) => {
                let caller = met.principal.caller(met.from);
                let mut body = AtMost { from: body, left: met.longest_body() };
                let body: &mut (dyn Read + Send) = &mut body;
                let mut request = Request::from_parts(head, body);
                request.extensions_mut().insert(stop.clone());
                self.site.answer(&caller, request).map(Told::from)
            }
            Err(problem) => plain(&problem),
        };
        let headers = answer.headers_mut();
        secure(headers);
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
        answer
    }

    fn longest_body(&self, head: &Parts) -> u64 {
        // A form brings files, and some text around them.
        if head.method == Method::POST { self.longest.saturating_add(64 << 20) } else { 64 << 10 }
    }

    fn origin(&self, head: &Parts, peer: SocketAddr) -> IpAddr {
        self.reception.origin(&head.headers, peer.ip())
    }
}

/// A problem, as a text for people.
fn plain(problem: &Problem) -> http::Response<Told> {
    let mut answer = problem.answer();
    let help = problem.way_out.as_deref().map(|help| format!(": {help}")).unwrap_or_default();
    *answer.body_mut() = Told::Whole(Bytes::from(format!("{}{help}\n", problem.detail)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// Everything at one address.
pub struct All {
    /// Below `/api/`.
    pub api: Arc<Api>,
    /// Below the prefix.
    pub dialect: Arc<Dialect>,
    /// As `/elog`.
    pub prefix: String,
}

impl All {
    fn is_dialect(&self, path: &str) -> bool {
        path.strip_prefix(&self.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Answers for All {
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> http::Response<Told> {
        let path = asked.head.uri.path();
        if path == BASE || path.starts_with("/api/") {
            return self.api.answer(asked, stop);
        }
        if path == "/" || path == self.prefix {
            let mut answer = http::Response::new(Told::Whole(Bytes::new()));
            *answer.status_mut() = StatusCode::FOUND;
            super::api::set(answer.headers_mut(), header::LOCATION, &format!("{}/", self.prefix));
            return answer;
        }
        if self.is_dialect(path) {
            return self.dialect.answer(asked, stop);
        }
        let detail = format!("there is nothing at '{}'", path.escape_debug());
        let help = format!("the logbook is at {}/, its API at {BASE}", self.prefix);
        let mut answer = plain(&Problem::new(StatusCode::NOT_FOUND, "not-there", detail).help(help));
        secure(answer.headers_mut());
        answer
    }

    fn longest_body(&self, head: &Parts) -> u64 {
        if self.is_dialect(head.uri.path()) { self.dialect.longest_body(head) } else { self.api.longest_body(head) }
    }

    fn origin(&self, head: &Parts, peer: SocketAddr) -> IpAddr {
        self.api.origin(head, peer)
    }
}
