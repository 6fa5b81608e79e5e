//! Authentication of a request: by a token, a password, a Kerberos ticket, or a session's cookie. The connection itself proves nothing: any
//! program of this host may forward it.
//!
//! A browser sends cookies, and a remembered password, with the requests of every page. Therefore a request from
//! another site's page changes nothing, and no other page can read its response. A request of the API that changes
//! something by a cookie also carries the session's form token. A request whose `Host` is not a name of this host is
//! rejected, so that another site cannot point its own name here.

use std::{net::IpAddr, time::Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use tampu_logbook::people::{
    People, PeopleError, Principal, Right,
    attempts::client_network,
    principal::Credentials,
    session::{COOKIE, cookie_in},
};

use crate::login::{
    kerberos::{self, KerberosLogin, TicketHeaders},
    proxy::ProxyLogin,
};

use super::{
    admission::WorkKind,
    body::OF_GUESTS,
    change_rate::ChangeRate,
    client_address::{ClientAddress, Proxies},
    headers::{all_lines, text},
    problem::Problem,
};

/// The header that carries a session's form token.
pub const FORM_TOKEN: &str = "x-tampu-form";
/// The authenticated caller of a request.
#[derive(Debug, Clone)]
pub struct RequestAuth {
    /// The user, guest or owner.
    pub principal: Principal,
    /// The client's address, as a trusted proxy reports it.
    pub from: IpAddr,
    /// The secret of the session, if there is one.
    pub secret: Option<String>,
    /// True if a page of another site caused the request.
    pub elsewhere: bool,
    /// True if the client's connection is TLS, as a trusted proxy reports.
    pub secure: bool,
    /// The header that proves the hub to a client with a ticket.
    pub proof: Option<HeaderValue>,
}

/// The authenticator of requests: names of this host, and its user.
pub struct Authenticator {
    /// All names of this host, in lower case.
    hosts: Vec<String>,
    /// The public authorities behind a proxy, with their ports if these are not the usual ones.
    public: Vec<String>,
    is_behind_proxy: bool,
    /// The login method of the proxies, if they name persons.
    proxy: Option<ProxyLogin>,
    /// The login method of tickets.
    kerberos: Option<KerberosLogin>,
}

/// Returns the name in `name:port` or `[::1]:port`, in lower case.
fn name_of(host: &str) -> String {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .map_or(host, |(name, _)| name),
    };
    name.to_ascii_lowercase()
}

/// Returns the host that a request names if it is none of these names in lower case, no address and no name of this
/// host alone. A page of another site can give its own name this host's address.
pub fn foreign_host<'h>(head: &'h Parts, names: &[String]) -> Option<&'h str> {
    let host = head.uri.authority().map(|authority| authority.as_str()).or(text(&head.headers, header::HOST))?;
    let name = name_of(host);
    let is_own = name.parse::<IpAddr>().is_ok() || names.contains(&name) || name.ends_with(".localhost");
    (!is_own).then_some(host)
}

impl RequestAuth {
    /// Counts a change by this caller, or returns the seconds until the next one. Guests count by their address.
    pub fn count_change(&self, rate: &ChangeRate) -> Result<(), u32> {
        let user = match &self.principal {
            Principal { by: Credentials::Owner, .. } => return Ok(()),
            _ => self.reader(),
        };
        rate.take(&user, Instant::now())
    }

    /// Returns a name of the reader for counts: the login, or for guests the address.
    pub fn reader(&self) -> String {
        if self.principal.is_guest() { format!("guest@{}", client_network(self.from)) } else { self.principal.login.clone() }
    }

    /// Returns the largest body in bytes. A guest without a right to write may send only small ones.
    pub fn longest_body(&self) -> u64 {
        let is_bound = self.principal.is_guest() && self.principal.rights.books(Right::Write).is_empty();
        if is_bound { OF_GUESTS } else { u64::MAX }
    }
}

/// The names of this host and the trusted proxies, for the authentication of requests.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// Names of this host, besides its own, that requests may name.
    pub hosts: Vec<String>,
    /// The address of the public pages, such as `https://elog.example.org/`, or an empty text. Its host is one of the
    /// names.
    pub public_url: String,
    /// The trusted proxies.
    pub proxies: Proxies,
}

/// Returns the kind of work that the authentication of a request is: [`WorkKind::Login`] where it has a password,
/// which is hashed, or a ticket. `dialect` is true
/// for ELOG's pages.
pub fn work_of(head: &Parts, dialect: bool) -> WorkKind {
    let said = text(&head.headers, header::AUTHORIZATION);
    let is_basic = |said: &str| said.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic "));
    let by_header = said.is_some_and(|said| is_basic(said) || kerberos::token_in(said).is_some());
    let by_cookie = dialect && cookie_in(&all_lines(&head.headers, header::COOKIE, "; "), "upwd").is_some();
    if by_header || by_cookie { WorkKind::Login } else { WorkKind::Quick }
}

impl Authenticator {
    /// Creates an authenticator for these settings; `host` is the name of this computer.
    pub fn new(settings: &AuthSettings, host: &str) -> Authenticator {
        // The public address is one of this host's names.
        let world = settings.public_url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let said = settings.hosts.iter().map(|host| host.to_ascii_lowercase());
        let mut hosts = vec!["localhost".to_owned(), host.to_ascii_lowercase()];
        hosts.extend(said.clone().chain(world.map(name_of)));
        let public = said.chain(world.map(str::to_ascii_lowercase)).collect();
        Authenticator { hosts, public, is_behind_proxy: !settings.proxies.is_empty(), proxy: None, kerberos: None }
    }

    /// Believes the proxies about the person of a request.
    pub fn with_proxy(self, proxy: Option<ProxyLogin>) -> Authenticator {
        Authenticator { proxy, ..self }
    }

    /// Accepts the tickets of a Kerberos realm.
    pub fn with_kerberos(self, kerberos: Option<KerberosLogin>) -> Authenticator {
        Authenticator { kerberos, ..self }
    }

    /// The login method of tickets, if there is one.
    pub fn kerberos(&self) -> Option<&KerberosLogin> {
        self.kerberos.as_ref()
    }

    /// Returns the headers about tickets for a response to this client; `auth` is the caller, if the caller is known.
    pub fn ticket_headers(&self, client: &ClientAddress, auth: Option<&RequestAuth>) -> TicketHeaders {
        let asks = self.kerberos.as_ref().is_some_and(|kerberos| kerberos.serves(client));
        TicketHeaders { asks, answer: auth.and_then(|auth| auth.proof.clone()) }
    }

    /// Returns true if a request has no credentials at all.
    pub fn is_bare(&self, head: &Parts) -> bool {
        let cookies = all_lines(&head.headers, header::COOKIE, "; ");
        let is_proxied = self.proxy.as_ref().is_some_and(|proxy| proxy.is_in(&head.headers));
        !is_proxied && !head.headers.contains_key(header::AUTHORIZATION) && cookie_in(&cookies, COOKIE).is_none()
    }

    /// Rejects a request whose `Host` is not a name of this host.
    fn check_host(&self, head: &Parts) -> Result<(), Problem> {
        match foreign_host(head, &self.hosts) {
            Some(host) => {
                let detail = format!("unknown name '{}' of this hub", host.escape_debug());
                Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "other-host", detail)
                    .at("header Host")
                    .help("if the name is right, add it to [book] hosts of the hub's configuration"))
            }
            None => Ok(()),
        }
    }

    /// Returns true if a page of another site caused the request.
    fn is_from_elsewhere(&self, headers: &HeaderMap) -> bool {
        if let Some(site) = text(headers, HeaderName::from_static("sec-fetch-site")) {
            return !matches!(site, "same-origin" | "none");
        }
        let from = text(headers, header::ORIGIN).or(text(headers, header::REFERER));
        let Some(from) = from else { return false };
        let authority = from.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
        let own = text(headers, header::HOST).unwrap_or_default();
        match authority {
            // The port is compared, because another program of a host may serve other people's pages. Behind a proxy the public
            // name differs. A browser leaves the usual ports out.
            Some(authority) => {
                let of_the_world = self.is_behind_proxy && self.public.contains(&authority.to_ascii_lowercase());
                !authority.eq_ignore_ascii_case(own) && !of_the_world
            }
            None => true,
        }
    }

    /// Authenticates a request. `dialect` is true for ELOG's pages, whose cookies and commands differ. The caller has no rights in logbooks that
    /// are closed to the client's address.
    pub fn authenticate(
        &self,
        people: &People,
        head: &Parts,
        client: &ClientAddress,
        dialect: bool,
    ) -> Result<RequestAuth, Problem> {
        let auth = self.identify(people, head, client, dialect)?;
        Ok(RequestAuth { principal: people.seen_from(auth.principal, auth.from)?, ..auth })
    }

    /// Finds the caller of a request.
    fn identify(&self, people: &People, head: &Parts, client: &ClientAddress, dialect: bool) -> Result<RequestAuth, Problem> {
        self.check_host(head)?;
        let headers = &head.headers;
        let (from, secure) = (client.ip, client.is_tls);
        let elsewhere = self.is_from_elsewhere(headers);
        let authenticated = |principal, secret| RequestAuth { principal, from, secret, elsewhere, secure, proof: None };

        // ELOG's pages also change things by a link: a command in the address.
        let query = head.uri.query().unwrap_or_default();
        let commands = || super::address::decoded(query).is_none_or(|query| query.to_ascii_lowercase().contains("cmd"));
        let changes = !matches!(head.method, Method::GET | Method::HEAD) || dialect && commands();
        // A browser repeats a password with every request, as it does with cookies.
        let bound = |mut auth: RequestAuth| {
            if elsewhere && changes {
                auth.principal.rights = auth.principal.rights.only(|_, right| right == Right::Read);
                auth.principal.admin = false;
            }
            auth
        };

        let said = text(headers, header::AUTHORIZATION);
        let person = self.proxy.as_ref().map(|proxy| proxy.person(headers, client).map(|person| (proxy, person))).transpose()?;
        // A proxy may pass a password on that it has checked itself. A token is of this hub, and has fewer rights.
        let is_token = said.is_some_and(|said| said.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")));
        if let Some((proxy, Some(person))) = person
            && !is_token
        {
            return Ok(bound(authenticated(people.by_method(proxy.method(), &person)?, None)));
        }
        if let (Some(kerberos), Some(token)) = (&self.kerberos, said.and_then(kerberos::token_in)) {
            let ticket = kerberos.verify(token, client)?;
            let auth = authenticated(people.by_method(kerberos.method(), &ticket.person)?, None);
            return Ok(bound(RequestAuth { proof: ticket.answer, ..auth }));
        }
        if let Some(said) = said {
            let auth = authenticated(by_header(people, said, from)?, None);
            return Ok(if matches!(auth.principal.by, Credentials::Password { .. }) { bound(auth) } else { auth });
        }
        let cookies = all_lines(headers, header::COOKIE, "; ");
        let session = cookie_in(&cookies, COOKIE);
        let mut found = match session.map(|secret| (secret, people.by_session(secret))) {
            Some((secret, Ok(principal))) => Some(authenticated(principal, Some(secret.to_owned()))),
            // An ended session counts as no session.
            Some((_, Err(PeopleError::Ended(..)))) | None => None,
            Some((_, Err(error))) => return Err(error.into()),
        };
        if found.is_none()
            && dialect
            && let (Some(login), Some(password)) = (cookie_in(&cookies, "unm"), cookie_in(&cookies, "upwd"))
        {
            found = match people.by_password(&decoded(login), &decoded(password), from) {
                Ok(principal) => Some(authenticated(principal, None)),
                // A browser sends an old cookie with every request, even with that for the login page.
                Err(PeopleError::Wrong | PeopleError::Wait(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        let auth = match found {
            Some(auth) => auth,
            None => authenticated(people.guest()?, None),
        };
        Ok(bound(auth))
    }

    /// Checks a request of the API: rejects changes that another site's page may have caused without the user's
    /// knowledge.
    pub fn check_change(&self, auth: &RequestAuth, headers: &HeaderMap) -> Result<(), Problem> {
        let forbidden = |kind, detail: &str| Problem::new(StatusCode::FORBIDDEN, kind, detail);
        // A browser sends these and a stored password by itself, but never a token.
        let by_hand = match auth.principal.by {
            Credentials::Password { .. } | Credentials::Proxy { .. } => true,
            Credentials::Session { .. } | Credentials::Owner | Credentials::Nothing => {
                !headers.contains_key(header::AUTHORIZATION)
            }
            Credentials::Token(_) => false,
        };
        if auth.elsewhere && by_hand {
            return Err(forbidden("other-site", "a page of another site cannot change anything here").at("header Origin"));
        }
        if let Credentials::Session { form, .. } = &auth.principal.by
            && text(headers, HeaderName::from_static(FORM_TOKEN)) != Some(form)
        {
            let problem = forbidden("no-form-token", "a change with a session's cookie needs the session's form token");
            return Err(problem.at("header X-Tampu-Form").help("GET /api/v1/whoami returns it as 'form'"));
        }
        Ok(())
    }
}

fn by_header(people: &People, said: &str, from: IpAddr) -> Result<Principal, Problem> {
    let wrong = || {
        Problem::new(StatusCode::UNAUTHORIZED, "log-in", "the header is neither 'Bearer TOKEN' nor 'Basic ...'")
            .at("header Authorization")
    };
    let (scheme, value) = said.split_once(' ').ok_or_else(wrong)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(people.by_token(value.trim())?);
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(wrong());
    }
    let bytes = STANDARD.decode(value.trim()).map_err(|_| wrong())?;
    let pair = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (login, password) = pair.split_once(':').ok_or_else(wrong)?;
    Ok(people.by_password(login, password, from)?)
}

/// Decodes a cookie, which ELOG's programs write percent-encoded or plain.
fn decoded(text: &str) -> String {
    super::address::decoded(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth() -> Authenticator {
        let hosts = vec!["elog.example.org".to_owned()];
        Authenticator::new(&AuthSettings { hosts, ..AuthSettings::default() }, "Archive1")
    }

    fn head(headers: &[(&'static str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri("/api/v1/books");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_name_of_somebody_else_does_not_lead_here() {
        for host in ["127.0.0.1:7449", "[::1]:7449", "localhost", "archive1:80", "ELOG.example.org", "x.localhost:1", "192.0.2.7"]
        {
            assert!(auth().check_host(&head(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7449", "127.0.0.1.evil.example", "elog.example.org.", "x:y"] {
            assert!(auth().check_host(&head(&[("host", host)])).is_err(), "{host}");
        }
        // HTTP/1.0 has no `Host`.
        assert!(auth().check_host(&head(&[])).is_ok());
    }

    #[test]
    fn behind_a_proxy_the_name_for_the_world_is_ours() {
        let hosts = vec!["elog.example.org".to_owned()];
        let headers = [("host", "127.0.0.1:7449"), ("origin", "https://elog.example.org")];
        for (proxies, elsewhere) in [(&[][..], true), (&[IpAddr::from([127, 0, 0, 1])], false)] {
            let settings = AuthSettings { hosts: hosts.clone(), proxies: Proxies::new(proxies), ..AuthSettings::default() };
            assert_eq!(Authenticator::new(&settings, "archive1").is_from_elsewhere(&head(&headers).headers), elsewhere);
        }
        // Another port of the same name belongs to another program, unless the public address names it.
        let other = [("host", "127.0.0.1:7449"), ("origin", "https://elog.example.org:8443")];
        let proxies = Proxies::new(&[IpAddr::from([127, 0, 0, 1])]);
        for (public_url, elsewhere) in [("", true), ("https://elog.example.org:8443/", false)] {
            let settings = AuthSettings { hosts: hosts.clone(), proxies: proxies.clone(), public_url: public_url.to_owned() };
            let auth = Authenticator::new(&settings, "archive1");
            assert_eq!(auth.is_from_elsewhere(&head(&other).headers), elsewhere, "{public_url}");
        }
    }

    #[test]
    fn requests_with_a_password_are_known_by_their_head() {
        for (headers, dialect, work) in [
            (&[][..], true, WorkKind::Quick),
            (&[("authorization", "Bearer x")], true, WorkKind::Quick),
            (&[("authorization", "bAsIc eDp5")], false, WorkKind::Login),
            (&[("cookie", "unm=zoe; upwd=x")], true, WorkKind::Login),
            (&[("cookie", "unm=zoe; upwd=x")], false, WorkKind::Quick),
        ] {
            assert_eq!(work_of(&head(headers), dialect), work, "{headers:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_known() {
        let own = ("host", "localhost:7449");
        for (headers, elsewhere) in [
            (&[own][..], false),
            (&[own, ("origin", "http://localhost:7449")], false),
            (&[own, ("referer", "http://localhost:7449/elog/Shift/")], false),
            (&[own, ("origin", "http://localhost:8000")], true),
            (&[own, ("origin", "null")], true),
            (&[own, ("origin", "https://evil.example")], true),
            (&[own, ("referer", "https://evil.example/http://localhost:7449/")], true),
            (&[own, ("sec-fetch-site", "cross-site")], true),
            (&[own, ("sec-fetch-site", "same-site"), ("origin", "http://localhost:7449")], true),
            (&[own, ("sec-fetch-site", "same-origin")], false),
            (&[own, ("sec-fetch-site", "none")], false),
        ] {
            assert_eq!(auth().is_from_elsewhere(&head(headers).headers), elsewhere, "{headers:?}");
        }
    }
}
