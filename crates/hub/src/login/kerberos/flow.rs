//! The address `/login/kerberos/NAME`, at which a ticket begins a browser's session.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode, header, request::Parts};
use tampu_log::{Logger, info};
use tampu_logbook::people::{People, session::cookie};
use tampu_workers::Stop;

use super::{KerberosLogin, TicketHeaders, token_in};
use crate::{
    http::{
        address::parameters,
        auth::{Authenticator, RequestAuth},
        body::{HttpRequest, ResponseBody},
        client_address::ClientAddress,
        headers::{secure, set, text},
        problem::Problem,
        route::{HttpService, Identified, Matched},
        server::plain_rejection,
    },
    login::browsers::{Answer, redirect, refused, target},
};

/// The path below which the logins are.
pub const PATH: &str = "/login/kerberos";

/// The logins with tickets, as a service of the hub.
pub struct KerberosLogins {
    /// Users, groups, sessions and tokens.
    pub people: Arc<People>,
    /// The authenticator of requests, which has the method.
    pub authenticator: Arc<Authenticator>,
    /// The path to return to, if a browser names none.
    pub home: String,
    /// The log for administrative actions.
    pub audit: Logger,
}

impl KerberosLogins {
    fn answer(&self, auth: &RequestAuth, head: &Parts, client: &ClientAddress) -> Result<Answer, Problem> {
        let name = head.uri.path().strip_prefix(PATH).unwrap_or_default().trim_matches('/');
        let method = self.authenticator.kerberos().filter(|method| method.method() == name).ok_or_else(|| {
            let detail = format!("there is no login method '{}' of Kerberos", name.escape_debug());
            Problem::new(StatusCode::NOT_FOUND, "not-there", detail)
        })?;
        if head.method != Method::GET {
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "bad-method", "a login with a ticket is a GET"));
        }
        let query = parameters(head.uri.query().unwrap_or_default()).ok_or_else(|| Problem::bad("query", "invalid address"))?;
        let to = query.iter().find(|(known, _)| known == "to").map(|(_, value)| value.as_str()).unwrap_or_default();
        let token = text(&head.headers, header::AUTHORIZATION).and_then(token_in);
        let Some(token) = token.filter(|token| !token.is_empty()) else { return self.ask(method, client) };
        let ticket = method.verify(token, client)?;
        let (who, session) = self.people.log_in_by_method(method.method(), &ticket.person, None)?;
        info!(self.audit, "{} logged in by the method '{}' from {}", who.login, method.method(), auth.from);
        let mut answer = redirect(target(to, &self.home));
        let line = cookie(&session, self.people.settings().longest, auth.secure);
        set(answer.headers_mut(), header::SET_COOKIE, &line);
        Ok(TicketHeaders { asks: false, answer: ticket.answer }.added_to(answer))
    }

    /// Asks the browser for a ticket. A browser that has none shows the page.
    fn ask(&self, method: &KerberosLogin, client: &ClientAddress) -> Result<Answer, Problem> {
        if !method.serves(client) {
            // Without a token this is the error about plain HTTP.
            method.verify("", client)?;
        }
        let mut answer = http::Response::new(ResponseBody::Whole(Bytes::from(format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Log in</title></head><body>\
             <p>Your browser has sent no Kerberos ticket. Get one with <code>kinit</code>, and allow this site in the \
             browser's settings for Negotiate.</p><p><a href=\"{}?cmd=Login\">Log in with a password</a></p></body></html>\n",
            self.home.replace('"', "%22").replace(['<', '>', '&'], "")
        ))));
        *answer.status_mut() = StatusCode::UNAUTHORIZED;
        set(answer.headers_mut(), header::CONTENT_TYPE, "text/html; charset=utf-8");
        set(answer.headers_mut(), header::CACHE_CONTROL, "no-store");
        set(answer.headers_mut(), header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
        Ok(answer)
    }
}

impl HttpService for KerberosLogins {
    fn find(self: Arc<Self>, _: &Parts) -> Matched {
        let identify = move |head: &Parts, client: &ClientAddress| {
            let asks = self.authenticator.kerberos().is_some_and(|method| method.serves(client));
            let finished = move |answer: Answer| {
                let mut answer = TicketHeaders { asks, answer: None }.added_to(answer);
                secure(answer.headers_mut());
                answer
            };
            // A ticket is accepted once, and begins a session here. An old session is of no use.
            let mut bare = head.clone();
            bare.headers.remove(header::AUTHORIZATION);
            let auth = self.authenticator.authenticate(&self.people, &bare, client, false);
            let auth = auth.map_err(|problem| Box::new(finished(refused(&problem))))?;
            let handler = move |request: HttpRequest<'_>, _: &Stop| {
                let answer = self.answer(&auth, &request.head, &request.client);
                finished(answer.unwrap_or_else(|problem| refused(&problem)))
            };
            Ok(Identified { max_body: 0, handler: Box::new(handler) })
        };
        Matched::for_login(plain_rejection, Box::new(identify))
    }
}
