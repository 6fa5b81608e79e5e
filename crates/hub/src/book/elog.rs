//! ELOG's pages as a service of the hub. The hub authenticates the caller; the pages themselves are made by
//! `tampu_elog`.

use std::{io::Read, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header, request::Parts};
use tampu_bus::access::Verb;
use tampu_elog::pages::{
    Body, CarriedOut, EntryShown, LoggedFailure, Site, TooManyChanges,
    address::{self, AddressTarget, ListPart, Parameters},
    command::PageCommand,
    formats::ListFormat,
    pdf,
};
use tampu_log::{Logger, warning};
use tampu_logbook::people::People;
use tampu_workers::Stop;

use crate::{
    api::call::principal_of,
    http::{
        admission::WorkKind,
        auth::{Authenticator, RequestAuth, work_of},
        body::{HttpRequest, ResponseBody},
        change_rate::ChangeRate,
        client_address::ClientAddress,
        exchange::CallerName,
        free_space::{BoundedBody, FreeSpace},
        headers::secure,
        problem::Problem,
        route::{HttpService, Identified, Matched},
        server::plain_rejection,
        time_steps::InSteps,
    },
    login::kerberos::TicketHeaders,
    rules::Rules,
    setting_changes::SettingChanges,
};

use super::look_counter::LookCounter;

/// The content security policy of pages that set none themselves.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'self'";

/// Headers about the public address of the site. They are removed unless a trusted proxy sent them, because redirects and
/// feeds contain that address.
const CLAIMS: [&str; 3] = ["x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix"];

/// ELOG's pages as a service of the hub.
pub struct ElogPages {
    /// The site that makes the pages.
    pub site: Arc<Site>,
    /// Users, groups, sessions and tokens.
    pub people: Arc<People>,
    /// The authenticator of requests.
    pub authenticator: Arc<Authenticator>,
    /// The space that uploads leave free.
    pub space: FreeSpace,
    /// The limit for changes by one user, which the API shares.
    pub changes: Arc<ChangeRate>,
    /// The changed settings, with the size limit of attachments.
    pub settings: Arc<SettingChanges>,
    /// The counter of looks at entries, which the API shares.
    pub looks: Arc<LookCounter>,
    /// The log for operators; a page does not show the cause of a failure.
    pub logger: Logger,
    /// The site's access rules, with the audit.
    pub(crate) rules: Arc<Rules>,
}

/// Returns the kind of work of a request, and true if all of it must be done within the time limit of a search. Changes
/// may take longer. So may a list as long as a logbook, which is sent while it is made.
fn work(method: &Method, path: &str, query: &str) -> (WorkKind, bool) {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return (WorkKind::Change, false);
    }
    let query = Parameters::read(query);
    match query.get("cmd").and_then(PageCommand::named) {
        Some(PageCommand::GetMd5) => return (WorkKind::Export, false),
        Some(PageCommand::Delete | PageCommand::CopyTo | PageCommand::MoveTo) => return (WorkKind::Change, false),
        Some(PageCommand::First | PageCommand::Previous | PageCommand::Next | PageCommand::Last) => {
            return (WorkKind::Search, true);
        }
        _ => {}
    }
    match address::path(path).1 {
        AddressTarget::List(_) if query.get("mode").and_then(ListFormat::named).is_some() => (WorkKind::Export, false),
        AddressTarget::List(ListPart::All) => (WorkKind::Export, false),
        AddressTarget::List(ListPart::Past(_)) => (WorkKind::Search, false),
        AddressTarget::List(ListPart::Default | ListPart::Page(_) | ListPart::Last(_))
        | AddressTarget::Rss
        | AddressTarget::Calendar => (WorkKind::Search, true),
        AddressTarget::Entry(_) if pdf::is_wanted(&query) => (WorkKind::Typeset, true),
        AddressTarget::Entry(_) => (WorkKind::Page, true),
        // A file is found within the time of a search; its bytes are sent while they are read.
        _ => (WorkKind::Quick, true),
    }
}

impl ElogPages {
    fn work(&self, head: &Parts) -> (WorkKind, bool) {
        let path = head.uri.path();
        let inside = path.strip_prefix(&self.site.config().prefix).filter(|rest| rest.starts_with('/'));
        let query = head.uri.query().unwrap_or_default();
        // The form of a login has no credentials yet. Its password is hashed while other changes go on.
        let logs_in =
            head.method == Method::POST && self.authenticator.is_bare(head) || Parameters::read(query).get("upassword").is_some();
        let (kind, bound) = work(&head.method, inside.unwrap_or(path), query);
        (if logs_in { WorkKind::Login } else { kind }, bound)
    }

    fn answer(&self, bound: bool, auth: &RequestAuth, request: HttpRequest<'_>, stop: &Stop) -> http::Response<ResponseBody> {
        let HttpRequest { mut head, body, client } = request;
        if !client.is_from_proxy {
            for claim in CLAIMS {
                head.headers.remove(claim);
            }
        }
        let caller = auth.principal.caller(auth.from);
        let mut body = BoundedBody::new(body, auth.longest_body(), &self.space);
        let body: &mut (dyn Read + Send) = &mut body;
        let stop = if bound { stop.within(self.site.config().search_time) } else { stop.clone() };
        let mut request = Request::from_parts(head, body);
        request.extensions_mut().insert(stop);
        if auth.secure {
            // Links and cookies of the pages follow this header.
            request.headers_mut().insert("x-forwarded-proto", HeaderValue::from_static("https"));
        }
        let is_change =
            work(request.method(), request.uri().path(), request.uri().query().unwrap_or_default()).0 == WorkKind::Change;
        if is_change && let Err(seconds) = auth.count_change(&self.changes) {
            request.extensions_mut().insert(TooManyChanges { seconds });
        }
        let answer = self.site.answer(&caller, request);
        if let Some(LoggedFailure(why)) = answer.extensions().get() {
            warning!(self.logger, "a request to ELOG's pages failed: {why}");
        }
        if let Some(CarriedOut(what)) = answer.extensions().get() {
            let who = principal_of(&auth.principal).to_string();
            self.rules.audit.done(&who, Verb::Admin, what, &auth.from.to_string(), "page");
        }
        if let Some(EntryShown(at)) = answer.extensions().get() {
            self.looks.count(at, &auth.reader());
        }
        finished(answer.map(response_body))
    }
}

/// A response with the headers of every page.
fn finished(mut answer: http::Response<ResponseBody>) -> http::Response<ResponseBody> {
    let headers = answer.headers_mut();
    secure(headers);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    answer
}

impl HttpService for ElogPages {
    fn find(self: Arc<Self>, head: &Parts) -> Matched {
        let (work, bound) = self.work(head);
        // A form contains files, and some text around them.
        let max_body =
            if head.method == Method::POST { self.settings.longest_attachment().saturating_add(64 << 20) } else { 64 << 10 };
        let identifies = work_of(head, true);
        let identify = move |head: &Parts, client: &ClientAddress| {
            let auth = self.authenticator.authenticate(&self.people, head, client, true);
            let auth = auth.map_err(|problem| Box::new(finished(plain(&problem))))?;
            // A page asks for no ticket: a browser without one would ask the person in a window of its own.
            let headers = TicketHeaders { asks: false, answer: auth.proof.clone() };
            let longest = auth.longest_body().min(max_body);
            let in_steps = work.searches() && self.people.sees_a_part(&auth.principal).unwrap_or(true);
            let who = CallerName(principal_of(&auth.principal).to_string());
            let handler = move |request: HttpRequest<'_>, stop: &Stop| {
                let mut answer = headers.added_to(self.answer(bound, &auth, request, stop));
                answer.extensions_mut().insert(who);
                if in_steps {
                    answer.extensions_mut().insert(InSteps);
                }
                answer
            };
            Ok(Identified { max_body: longest, handler: Box::new(handler) })
        };
        Matched { work, identifies, max_body, reject: plain_rejection, identify: Box::new(identify) }
    }
}

/// Converts the body of one of ELOG's pages.
fn response_body(body: Body) -> ResponseBody {
    match body {
        Body::Bytes(bytes) => ResponseBody::Whole(bytes.into()),
        Body::Read(from, length) => ResponseBody::of_reader(from, length),
        Body::Pieces(pieces) => ResponseBody::of_pieces(pieces),
    }
}

/// A problem as plain text.
pub(crate) fn plain(problem: &Problem) -> http::Response<ResponseBody> {
    let mut answer = problem.answer();
    let help = problem.way_out.as_deref().map(|help| format!(": {help}")).unwrap_or_default();
    *answer.body_mut() = ResponseBody::Whole(Bytes::from(format!("{}{help}\n", problem.detail)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_known_by_its_address() {
        for (path, query, expected) in [
            ("/Shift/", "", (WorkKind::Search, true)),
            ("/Shift/", "subtext=HV.*trip", (WorkKind::Search, true)),
            ("/Shift/page3", "sort=Author", (WorkKind::Search, true)),
            ("/Shift/past7", "", (WorkKind::Search, false)),
            ("/Shift/last20", "", (WorkKind::Search, true)),
            ("/Shift/page", "", (WorkKind::Export, false)),
            ("/Shift/page3", "mode=full", (WorkKind::Search, true)),
            ("/Shift/page3", "mode=CSV2", (WorkKind::Export, false)),
            ("/Shift/", "cmd=GetMD5", (WorkKind::Export, false)),
            ("/Shift/12", "cmd=Next", (WorkKind::Search, true)),
            ("/Shift/12", "cmd=Delete&confirm=Yes", (WorkKind::Change, false)),
            ("/Shift/12", "", (WorkKind::Page, true)),
            ("/Shift/12", "mode=PDF", (WorkKind::Typeset, true)),
            ("/Shift/080910_002050/a.png", "", (WorkKind::Quick, true)),
            ("/Shift/elog.rdf", "", (WorkKind::Search, true)),
            ("/", "", (WorkKind::Quick, true)),
        ] {
            assert_eq!(work(&Method::GET, path, query), expected, "{path}?{query}");
        }
        assert_eq!(work(&Method::POST, "/Shift/", ""), (WorkKind::Change, false));
    }
}
