//! Who asks: from a token, a password, a session's cookie or the connection itself, and whether the request is their own.
//!
//! A browser sends cookies, and a password it was once given, along with whatever page it is that makes it ask. So a request that says it comes from another site's page
//! changes nothing; what it shows, no other page can read; one of the API that changes something by a cookie carries the session's
//! form token besides. A request whose `Host` is none of ours is refused, so that a name somebody else owns cannot be made to lead here.

use std::net::{IpAddr, SocketAddr};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, Method, StatusCode, header, request::Parts};
use tampu_logbook::people::{
    People, PeopleError, Principal, Right,
    registry::By,
    session::{COOKIE, cookie_in},
};

use super::{body::OF_GUESTS, peer, problem::Problem, settings::BookSettings};

/// The header that carries a session's form token.
pub const FORM_TOKEN: &str = "x-tampu-form";
/// The header in which a proxy says who asked it.
const FORWARDED: &str = "x-forwarded-for";

/// Who asks, and how.
#[derive(Debug, Clone)]
pub struct Met {
    /// Who.
    pub principal: Principal,
    /// From where; what a proxy says if it is one of ours.
    pub from: IpAddr,
    /// The secret of their session, if they have one.
    pub secret: Option<String>,
    /// Whether a page of another site has made them ask.
    pub elsewhere: bool,
    /// Whether it came over TLS, as one of our proxies says.
    pub secure: bool,
}

/// Meets those who ask.
pub struct Reception {
    /// All names of this host.
    hosts: Vec<String>,
    /// Those of them that the site has said itself.
    names: Vec<String>,
    proxies: Vec<IpAddr>,
    uid: u32,
}

fn text(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|text| !text.is_empty())
}

/// All lines of a header that may stand in several; what is no UTF-8 in them stands as `\u{fffd}`.
fn lines(headers: &HeaderMap, name: impl http::header::AsHeaderName, between: &str) -> String {
    let lines: Vec<_> = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    lines.join(between)
}

/// The name in `name:port`, `[::1]:port`, in lower case.
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

impl Met {
    /// Bytes of the body they may send: who may write nowhere has no use for long ones.
    pub fn longest_body(&self) -> u64 {
        let is_bound = self.principal.is_guest() && self.principal.rights.books(Right::Write).is_empty();
        if is_bound { OF_GUESTS } else { u64::MAX }
    }
}

impl Reception {
    /// A reception for these settings; `host` is what this computer is called.
    pub fn new(settings: &BookSettings, host: &str) -> Reception {
        // The place for the world is one of ours.
        let world = settings.elog_url.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let said = settings.hosts.iter().map(|host| host.to_ascii_lowercase());
        let names: Vec<String> = said.chain(world.map(name_of)).collect();
        let mut hosts = vec!["localhost".to_owned(), host.to_ascii_lowercase()];
        hosts.extend(names.iter().cloned());
        let proxies = settings.proxies.iter().map(|ip| ip.to_canonical()).collect();
        Reception { hosts, names, proxies, uid: rustix::process::getuid().as_raw() }
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = name_of(host);
        name.parse::<IpAddr>().is_ok() || self.hosts.contains(&name) || name.ends_with(".localhost")
    }

    /// Refuses what does not mean this host.
    fn check_host(&self, head: &Parts) -> Result<(), Problem> {
        let host = head.uri.authority().map(|authority| authority.as_str()).or(text(&head.headers, header::HOST));
        match host {
            Some(host) if !self.is_ours(host) => {
                let detail = format!("'{}' is no name of this hub", host.escape_debug());
                Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "other-host", detail)
                    .at("header Host")
                    .help("name it in [book] hosts of the hub's configuration, if it is one"))
            }
            _ => Ok(()),
        }
    }

    /// Where a request comes from. Each of our proxies puts the address that asked it at the end of `X-Forwarded-For`; what stands before
    /// the last that is none of ours, or before what is no address, is only what somebody says.
    pub fn origin(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let mut from = peer.to_canonical();
        if self.proxies.contains(&from) {
            let list = lines(headers, FORWARDED, ",");
            for one in list.rsplit(',') {
                let Ok(ip) = one.trim().parse::<IpAddr>() else { break };
                from = ip.to_canonical();
                if !self.proxies.contains(&from) {
                    break;
                }
            }
        }
        from
    }

    /// Whether a page of another site made this request.
    fn is_from_elsewhere(&self, headers: &HeaderMap) -> bool {
        if let Some(site) = text(headers, HeaderName::from_static("sec-fetch-site")) {
            return !matches!(site, "same-origin" | "none");
        }
        let from = text(headers, header::ORIGIN).or(text(headers, header::REFERER));
        let Some(from) = from else { return false };
        let authority = from.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
        let own = text(headers, header::HOST).unwrap_or_default();
        match authority {
            // The port counts: another program of this host may show anybody's pages. Behind a proxy the name for the world is another one.
            Some(authority) => {
                let of_the_world = !self.proxies.is_empty() && self.names.contains(&name_of(authority));
                !authority.eq_ignore_ascii_case(own) && !of_the_world
            }
            None => true,
        }
    }

    /// Meets who asks.
    pub fn meet(
        &self,
        people: &People,
        head: &Parts,
        peer: SocketAddr,
        local: SocketAddr,
        dialect: bool,
    ) -> Result<Met, Problem> {
        self.check_host(head)?;
        let headers = &head.headers;
        let proxied = self.proxies.contains(&peer.ip().to_canonical());
        let from = self.origin(headers, peer.ip());
        let secure = proxied
            && text(headers, HeaderName::from_static("x-forwarded-proto"))
                .is_some_and(|proto| proto.eq_ignore_ascii_case("https"));
        let elsewhere = self.is_from_elsewhere(headers);
        let met = |principal, secret| Met { principal, from, secret, elsewhere, secure };

        // ELOG's dialect changes things by a click, too: by a command in the address.
        let query = head.uri.query().unwrap_or_default();
        let commands = || super::address::decoded(query).is_none_or(|query| query.to_ascii_lowercase().contains("cmd"));
        let changes = !matches!(head.method, Method::GET | Method::HEAD) || dialect && commands();
        // A browser sends a password it was once given, as it does cookies.
        let bound = |mut met: Met| {
            if elsewhere && changes {
                met.principal.rights = met.principal.rights.only(|_, right| right == Right::Read);
                met.principal.admin = false;
            }
            met
        };

        if let Some(said) = text(headers, header::AUTHORIZATION) {
            let met = met(by_header(people, said, from)?, None);
            return Ok(if matches!(met.principal.by, By::Password { .. }) { bound(met) } else { met });
        }
        let cookies = lines(headers, header::COOKIE, "; ");
        let session = cookie_in(&cookies, COOKIE);
        let mut found = match session.map(|secret| (secret, people.by_session(secret))) {
            Some((secret, Ok(principal))) => Some(met(principal, Some(secret.to_owned()))),
            // What has ended is as if it were not there.
            Some((_, Err(PeopleError::Ended(..)))) | None => None,
            Some((_, Err(error))) => return Err(error.into()),
        };
        if found.is_none()
            && dialect
            && let (Some(login), Some(password)) = (cookie_in(&cookies, "unm"), cookie_in(&cookies, "upwd"))
        {
            found = match people.by_password(&decoded(login), &decoded(password), from) {
                Ok(principal) => Some(met(principal, None)),
                // An old cookie comes with every request, also with that for the page to log in at.
                Err(PeopleError::Wrong | PeopleError::Wait(_)) => None,
                Err(error) => return Err(error.into()),
            };
        }
        let is_own = || !headers.contains_key(FORWARDED) && peer::uid(peer, local) == Some(self.uid);
        let met = match found {
            Some(met) => met,
            None if people.is_open()? && is_own() => met(people.owner()?, None),
            None => met(people.guest()?, None),
        };
        Ok(bound(met))
    }

    /// For the API: refuses to change something for somebody who may not know of it.
    pub fn check_change(&self, met: &Met, headers: &HeaderMap) -> Result<(), Problem> {
        let forbidden = |kind, detail: &str| Problem::new(StatusCode::FORBIDDEN, kind, detail);
        // A browser sends these along by itself, a password that it was once given too; a token it does not.
        let by_hand = match met.principal.by {
            By::Password { .. } => true,
            By::Session { .. } | By::Owner | By::Nothing => !headers.contains_key(header::AUTHORIZATION),
            By::Token(_) => false,
        };
        if met.elsewhere && by_hand {
            return Err(forbidden("other-site", "a page of another site cannot change anything here").at("header Origin"));
        }
        if let By::Session { form, .. } = &met.principal.by
            && text(headers, HeaderName::from_static(FORM_TOKEN)) != Some(form)
        {
            let problem = forbidden("no-form-token", "what is changed by a session's cookie needs the session's form token");
            return Err(problem.at("header X-Tampu-Form").help("GET /api/v1/whoami tells it as 'form'"));
        }
        Ok(())
    }
}

fn by_header(people: &People, said: &str, from: IpAddr) -> Result<Principal, Problem> {
    let wrong = || {
        Problem::new(StatusCode::UNAUTHORIZED, "log-in", "it is neither 'Bearer TOKEN' nor 'Basic ...'")
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

/// What `%41` stands for; ELOG's programs write their cookies so, or plainly.
fn decoded(text: &str) -> String {
    super::address::decoded(text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reception() -> Reception {
        let hosts = vec!["elog.example.org".to_owned()];
        Reception::new(&BookSettings { hosts, ..BookSettings::default() }, "Archive1")
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
            assert!(reception().check_host(&head(&[("host", host)])).is_ok(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7449", "127.0.0.1.evil.example", "elog.example.org.", "x:y"] {
            assert!(reception().check_host(&head(&[("host", host)])).is_err(), "{host}");
        }
        // HTTP/1.0 has none.
        assert!(reception().check_host(&head(&[])).is_ok());
    }

    #[test]
    fn behind_a_proxy_the_name_for_the_world_is_ours() {
        let hosts = vec!["elog.example.org".to_owned()];
        let headers = [("host", "127.0.0.1:7449"), ("origin", "https://elog.example.org")];
        for (proxies, elsewhere) in [(vec![], true), (vec![IpAddr::from([127, 0, 0, 1])], false)] {
            let settings = BookSettings { hosts: hosts.clone(), proxies, ..BookSettings::default() };
            assert_eq!(Reception::new(&settings, "archive1").is_from_elsewhere(&head(&headers).headers), elsewhere);
        }
    }

    #[test]
    fn a_proxy_is_believed_and_nobody_before_it() {
        let proxies: Vec<IpAddr> = ["127.0.0.1", "10.0.0.1"].map(|ip| ip.parse().unwrap()).into();
        let behind = Reception::new(&BookSettings { proxies, ..BookSettings::default() }, "archive1");
        for (peer, lines, from) in [
            ("127.0.0.1", &["192.0.2.1"][..], "192.0.2.1"),
            ("::ffff:127.0.0.1", &["192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            // What somebody sends themselves comes first, in a line of its own or not.
            ("127.0.0.1", &["198.51.100.9", "192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["198.51.100.9", "192.0.2.1, 10.0.0.1"], "192.0.2.1"),
            ("127.0.0.1", &["198.51.100.9, unknown"], "127.0.0.1"),
            ("127.0.0.1", &["198.51.100.9, é, 10.0.0.1"], "10.0.0.1"),
            ("127.0.0.1", &["198.51.100.9,"], "127.0.0.1"),
            ("127.0.0.1", &["::ffff:192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("192.0.2.7", &["198.51.100.9"], "192.0.2.7"),
        ] {
            let headers: Vec<_> = lines.iter().map(|line| (FORWARDED, *line)).collect();
            let said = behind.origin(&head(&headers).headers, peer.parse().unwrap());
            assert_eq!(said, from.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
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
            assert_eq!(reception().is_from_elsewhere(&head(headers).headers), elsewhere, "{headers:?}");
        }
    }
}
