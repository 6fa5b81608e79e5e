//! ELOG's dialect, mounted: who asks is found out here, what is answered is the logbook's own affair.

use std::{
    io::Read,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header, request::Parts};
use tampu_log::{Logger, warning};
use tampu_logbook::{
    elog::web::{
        Failure, Site,
        address::{self, Parameters, Part, Place},
        command::Command,
        formats::Format,
    },
    people::People,
    search::Stop,
};

use super::{
    api::{Api, BASE, secure},
    body::{Asked, AtMost, Told},
    problem::Problem,
    reception::Reception,
    server::Answers,
    turns::Kind,
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
    /// Tells an operator what failed: a page does not.
    pub logger: Logger,
}

/// What kind of work a request is; and whether all of it has to be done within the time of a search: a list as long as a logbook, which is
/// sent as it is made, and what changes something may take longer.
fn work(method: &Method, path: &str, query: &str) -> (Kind, bool) {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return (Kind::Change, false);
    }
    let query = Parameters::read(query);
    match query.get("cmd").and_then(Command::named) {
        Some(Command::GetMd5) => return (Kind::Export, false),
        Some(Command::Delete | Command::CopyTo | Command::MoveTo) => return (Kind::Change, false),
        Some(Command::First | Command::Previous | Command::Next | Command::Last) => return (Kind::Search, true),
        _ => {}
    }
    match address::path(path).1 {
        Place::List(_) if query.get("mode").and_then(Format::named).is_some() => (Kind::Export, false),
        Place::List(Part::All) => (Kind::Export, false),
        Place::List(Part::Past(_)) => (Kind::Search, false),
        Place::List(Part::Default | Part::Page(_) | Part::Last(_)) | Place::Rss | Place::Calendar => (Kind::Search, true),
        // A file's bytes are sent as they are read; it is looked for within the time of a search.
        _ => (Kind::Quick, true),
    }
}

impl Dialect {
    fn work(&self, head: &Parts) -> (Kind, bool) {
        let path = head.uri.path();
        let inside = path.strip_prefix(&self.site.config().prefix).filter(|rest| rest.starts_with('/'));
        work(&head.method, inside.unwrap_or(path), head.uri.query().unwrap_or_default())
    }
}

impl Answers for Dialect {
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> http::Response<Told> {
        let Asked { head, body, from, local } = asked;
        let mut answer = match self.reception.meet(&self.people, &head, from, local, true) {
            Ok(met) => {
                let caller = met.principal.caller(met.from);
                let mut body = AtMost { from: body, left: met.longest_body() };
                let body: &mut (dyn Read + Send) = &mut body;
                let (_, bound) = self.work(&head);
                let stop = if bound { stop.within(self.site.config().search_time) } else { stop.clone() };
                let mut request = Request::from_parts(head, body);
                request.extensions_mut().insert(stop);
                let answer = self.site.answer(&caller, request);
                if let Some(Failure(why)) = answer.extensions().get() {
                    warning!(self.logger, "the logbook did not answer what ELOG's dialect asked for: {why}");
                }
                answer.map(Told::from)
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

    fn kind(&self, head: &Parts) -> Kind {
        self.work(head).0
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

    fn kind(&self, head: &Parts) -> Kind {
        if self.is_dialect(head.uri.path()) { self.dialect.kind(head) } else { self.api.kind(head) }
    }

    fn origin(&self, head: &Parts, peer: SocketAddr) -> IpAddr {
        self.api.origin(head, peer)
    }

    fn refusal(&self, head: &Parts, status: StatusCode) -> http::Response<Told> {
        if self.is_dialect(head.uri.path()) { self.dialect.refusal(head, status) } else { self.api.refusal(head, status) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_known_by_its_address() {
        for (path, query, expected) in [
            ("/Shift/", "", (Kind::Search, true)),
            ("/Shift/", "subtext=HV.*trip", (Kind::Search, true)),
            ("/Shift/page3", "sort=Author", (Kind::Search, true)),
            ("/Shift/past7", "", (Kind::Search, false)),
            ("/Shift/last20", "", (Kind::Search, true)),
            ("/Shift/page", "", (Kind::Export, false)),
            ("/Shift/page3", "mode=full", (Kind::Search, true)),
            ("/Shift/page3", "mode=CSV2", (Kind::Export, false)),
            ("/Shift/", "cmd=GetMD5", (Kind::Export, false)),
            ("/Shift/12", "cmd=Next", (Kind::Search, true)),
            ("/Shift/12", "cmd=Delete&confirm=Yes", (Kind::Change, false)),
            ("/Shift/12", "", (Kind::Quick, true)),
            ("/Shift/080910_002050/a.png", "", (Kind::Quick, true)),
            ("/Shift/elog.rdf", "", (Kind::Search, true)),
            ("/", "", (Kind::Quick, true)),
        ] {
            assert_eq!(work(&Method::GET, path, query), expected, "{path}?{query}");
        }
        assert_eq!(work(&Method::POST, "/Shift/", ""), (Kind::Change, false));
    }
}
