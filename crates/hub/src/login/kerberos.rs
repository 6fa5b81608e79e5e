//! Tickets of a Kerberos realm: `Authorization: Negotiate` (SPNEGO, RFC 4559).
//!
//! ```text
//! client -> hub   a request without credentials
//! hub -> client   401, WWW-Authenticate: Negotiate
//! client -> hub   the request again, with a ticket for HTTP/host
//! hub -> client   the response, with the token that proves the hub
//! ```
//!
//! A ticket proves one request. At [`flow::PATH`] it begins a session, for browsers. A ticket is accepted once: the
//! library remembers tickets in a file until they are too old. Over plain HTTP anybody on the way could change the
//! request that a ticket proves, so it is accepted from this host alone, unless the site allows more.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, Response, StatusCode, header};
use tampu_log::Logger;
use tampu_logbook::people::outside::OutsideUser;
use tampu_workers::host;

use super::{kerberos_settings::KerberosSettings, warnings::Warnings};
use crate::http::{body::ResponseBody, client_address::ClientAddress, problem::Problem};
use acceptor::{Acceptor, Proved};

#[cfg_attr(feature = "kerberos", path = "kerberos/gssapi.rs")]
#[cfg_attr(not(feature = "kerberos"), path = "kerberos/none.rs")]
mod acceptor;
pub mod flow;

/// The scheme of the headers, in lower case.
const SCHEME: &str = "negotiate";
/// The file that remembers tickets, in the run-time directory.
const REPLAYS: &str = "kerberos.replays";

/// Kerberos as a login method.
pub struct KerberosLogin {
    method: String,
    settings: KerberosSettings,
    acceptor: Acceptor,
    warnings: Warnings,
}

/// A person whom a ticket has proved.
#[derive(Debug)]
pub struct Ticket {
    /// The person, with the principal as the identity.
    pub person: OutsideUser,
    /// The header that proves the hub to the client.
    pub answer: Option<HeaderValue>,
}

/// The headers about tickets that a response carries.
#[derive(Debug, Clone, Default)]
pub struct TicketHeaders {
    /// True if a response with status 401 asks for a ticket.
    pub asks: bool,
    /// The header that proves the hub to the client.
    pub answer: Option<HeaderValue>,
}

impl TicketHeaders {
    /// Adds the headers to a response.
    pub fn added_to(self, response: Response<ResponseBody>) -> Response<ResponseBody> {
        if !self.asks && self.answer.is_none() {
            return response;
        }
        let (mut head, body) = response.into_parts();
        let body = match body {
            ResponseBody::Later(kind, make) => {
                let headers = self.clone();
                ResponseBody::Later(kind, Box::new(move || headers.added_to(make())))
            }
            body => body,
        };
        if let Some(answer) = self.answer {
            head.headers.append(header::WWW_AUTHENTICATE, answer);
        } else if self.asks && head.status == StatusCode::UNAUTHORIZED {
            head.headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Negotiate"));
        }
        Response::from_parts(head, body)
    }
}

/// Returns the token in a header `Authorization`, if its scheme is that of tickets.
pub fn token_in(said: &str) -> Option<&str> {
    let (scheme, token) = said.split_once(' ')?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(token.trim())
}

/// Returns the login of a principal. The site's realm is removed. Principals of services and computers are no persons.
fn login_of<'p>(principal: &'p str, realm: &str) -> Result<&'p str, &'static str> {
    let (name, of) = principal.rsplit_once('@').ok_or("the principal has no realm")?;
    if name.is_empty() || name.contains('\\') || principal.chars().any(char::is_control) {
        return Err("the principal has characters that no login has");
    }
    if name.contains('/') || name.ends_with('$') {
        return Err("the principal is of a service or a computer");
    }
    Ok(if of == realm { name } else { principal })
}

impl KerberosLogin {
    /// Prepares the method of this name. `run` is the run-time directory.
    pub fn new(method: &str, settings: &KerberosSettings, run: &Path, logger: Logger) -> Result<KerberosLogin, String> {
        settings.check()?;
        let keytab = &settings.keytab;
        let wrong = |why: &dyn std::fmt::Display| format!("keytab: {}: {why}", keytab.display());
        let mode = fs::metadata(keytab).map_err(|why| wrong(&why))?.mode();
        if mode & 0o007 != 0 {
            return Err(wrong(&format!("others may use this key (mode {:o}); run chmod 640 on it", mode & 0o777)));
        }
        let acceptor = Acceptor::new(keytab, &run.join(REPLAYS));
        let acceptor = acceptor.map_err(|why| wrong(&format!("{why}; it needs a key of HTTP/host.example.org")))?;
        let (method, settings) = (method.to_owned(), settings.clone());
        Ok(KerberosLogin { method, settings, acceptor, warnings: Warnings::new(logger) })
    }

    /// The name of the method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns true if tickets are accepted over a client's connection.
    pub fn serves(&self, client: &ClientAddress) -> bool {
        client.is_tls || client.ip.to_canonical().is_loopback() || self.settings.plain
    }

    /// Verifies the token of a request.
    pub fn verify(&self, token: &str, client: &ClientAddress) -> Result<Ticket, Problem> {
        let refused = |why: &str| {
            self.warnings.warn(&format!("a ticket from {} for the login method '{}' was refused: {why}", client.ip, self.method));
            Problem::new(StatusCode::UNAUTHORIZED, "ticket-refused", "the Kerberos ticket was not accepted")
                .at("header Authorization")
                .help("get a new ticket with kinit, or log in in another way; the hub's log has the reason")
        };
        if !self.serves(client) {
            let detail = "a Kerberos ticket is accepted over https alone";
            return Err(Problem::new(StatusCode::FORBIDDEN, "ticket-in-clear", detail)
                .at("header Authorization")
                .help("use the address with https; an administrator can allow plain HTTP with plain = true"));
        }
        let token = STANDARD.decode(token).map_err(|_| refused("invalid base64"))?;
        let Proved { principal, answer } = self.acceptor.accept(&token).map_err(|why| refused(&why))?;
        let login = login_of(&principal, &self.settings.realm)
            .map_err(|why| refused(&format!("'{}': {why}", principal.escape_debug())))?
            .to_owned();
        // Another realm's person with the same name is another person.
        let is_here = self.settings.groups && !login.contains('@');
        let account = if is_here { host::account(&login) } else { None };
        let groups = account.as_ref().map(host::groups_of).unwrap_or_default();
        let full_name = account.map(|account| account.full_name).unwrap_or_default();
        let answer = (!answer.is_empty()).then(|| format!("Negotiate {}", STANDARD.encode(answer)));
        Ok(Ticket {
            person: OutsideUser { subject: principal, login, full_name, email: String::new(), groups },
            answer: answer.and_then(|answer| HeaderValue::from_str(&answer).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_realm_alone_is_removed() {
        for (principal, login) in [
            ("zoe@LAB.ORG", Some("zoe")),
            ("zoe@OTHER.ORG", Some("zoe@OTHER.ORG")),
            ("zoe@lab.org", Some("zoe@lab.org")),
            ("zoe@LAB.ORG.EVIL", Some("zoe@LAB.ORG.EVIL")),
            ("zoe", None),
            ("@LAB.ORG", None),
            ("zoe/admin@LAB.ORG", None),
            ("host/daq1@LAB.ORG", None),
            ("DAQ1$@LAB.ORG", None),
            ("zoe\\@LAB.ORG@EVIL.ORG", None),
        ] {
            assert_eq!(login_of(principal, "LAB.ORG").ok(), login, "{principal}");
        }
    }

    #[test]
    fn a_token_is_found_by_its_scheme() {
        assert_eq!(token_in("Negotiate YII="), Some("YII="));
        assert_eq!(token_in("negotiate  YII= "), Some("YII="));
        assert_eq!((token_in("Basic x"), token_in("Negotiate"), token_in("NegotiateX y")), (None, None, None));
    }
}
