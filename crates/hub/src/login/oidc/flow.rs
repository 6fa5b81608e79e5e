//! The addresses to which browsers come for a login at a provider.
//!
//! | address | effect |
//! |-|-|
//! | `/login/oidc/NAME` | begins a login, and leads to the provider |
//! | `/login/oidc/NAME?again=1` | the same, and the provider asks for the password in any case |
//! | `/login/oidc/NAME/back` | ends the login with the code of the provider |
//! | `/login/oidc/NAME/out` | leads to the provider's own logout, after the session here has ended |
//! | `/login/oidc/NAME/gone` | the way back from there |

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use tampu_log::{Logger, info};
use tampu_logbook::people::{
    People, PeopleError,
    session::{cookie, cookie_in},
    token::secret,
};
use tampu_workers::Stop;

use super::{LoginSecrets, OidcError, Provider};
use crate::http::{
    address::parameters,
    auth::{Authenticator, RequestAuth},
    body::{HttpRequest, ResponseBody},
    client_address::ClientAddress,
    headers::{all_lines, secure, set, text},
    problem::Problem,
    route::{HttpService, Identified, Matched},
    server::plain_rejection,
};
use crate::login::browsers::{Answer, redirect, refused, target};

/// The path below which the logins are.
pub const PATH: &str = "/login/oidc";
/// The cookie of a login that has begun.
const COOKIE: &str = "tampu_oidc";
/// Time for a login at the provider, in s.
const LIFE: u32 = 600;
/// Longest code of a provider.
const MAX_CODE: usize = 4096;

/// The logins at providers, as a service of the hub.
pub struct OidcLogins {
    /// The providers of the site.
    pub providers: Arc<Vec<Provider>>,
    /// Users, groups, sessions and tokens.
    pub people: Arc<People>,
    /// The authenticator of requests.
    pub authenticator: Arc<Authenticator>,
    /// The path to return to, if a browser names none.
    pub home: String,
    /// The log for administrative actions.
    pub audit: Logger,
}

impl From<OidcError> for Problem {
    fn from(error: OidcError) -> Problem {
        let text = error.to_string();
        match error {
            OidcError::Away => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", text)
                .help("try again later; users of the logbook itself can log in with their passwords"),
            OidcError::Busy => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text)
                .help("try again in a few seconds; users of the logbook itself can log in with their passwords"),
            OidcError::Refused(_) => Problem::new(StatusCode::FORBIDDEN, "login-refused", text)
                .help("begin the login again; the hub's log has the reason"),
        }
    }
}

impl OidcLogins {
    fn answer(&self, auth: &RequestAuth, head: &Parts) -> Result<Answer, Problem> {
        let path = head.uri.path().strip_prefix(PATH).unwrap_or_default().trim_matches('/');
        let (name, step) = path.split_once('/').unwrap_or((path, ""));
        let provider = self.providers.iter().find(|provider| provider.name() == name).ok_or_else(|| {
            Problem::new(
                StatusCode::NOT_FOUND,
                "not-there",
                format!("there is no login method '{}' of OIDC", name.escape_debug()),
            )
        })?;
        if head.method != Method::GET {
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "bad-method", "a login at a provider begins with GET"));
        }
        let query = parameters(head.uri.query().unwrap_or_default()).ok_or_else(|| Problem::bad("query", "invalid address"))?;
        let get = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match step {
            "" => self.begin(auth, head, provider, get("to").unwrap_or_default(), get("again").is_some()),
            "back" => self.end(auth, head, provider, &get),
            "out" => self.leave(auth, head, provider),
            "gone" => Ok(redirect(&self.home)),
            other => {
                let detail = format!("a login at a provider has no step '{}'", other.escape_debug());
                Err(Problem::new(StatusCode::NOT_FOUND, "not-there", detail))
            }
        }
    }

    /// Returns the address to which the provider returns the browser after a login.
    fn back(&self, auth: &RequestAuth, head: &Parts, provider: &Provider) -> String {
        provider.settings().redirect_url.clone().unwrap_or_else(|| {
            let scheme = if auth.secure { "https" } else { "http" };
            let host = text(&head.headers, header::HOST).unwrap_or("localhost");
            format!("{scheme}://{host}{PATH}/{}/back", provider.name())
        })
    }

    /// Leads to the provider's logout by a page: a redirect after a form would be against the policy of the form's page.
    fn leave(&self, auth: &RequestAuth, head: &Parts, provider: &Provider) -> Result<Answer, Problem> {
        let back = self.back(auth, head, provider);
        let back = format!("{}/gone", back.strip_suffix("/back").unwrap_or(&back));
        let to = if provider.settings().logout { provider.end_session(&back)? } else { None };
        let Some(to) = to else { return Ok(redirect(&self.home)) };
        let to = to.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        let mut answer = http::Response::new(ResponseBody::Whole(Bytes::from(format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Log out</title>\
             <meta http-equiv=\"refresh\" content=\"0; url={to}\"></head><body>\
             <p>You are logged out here. <a href=\"{to}\">Log out at the provider, too</a></p></body></html>\n"
        ))));
        set(answer.headers_mut(), header::CONTENT_TYPE, "text/html; charset=utf-8");
        set(answer.headers_mut(), header::CACHE_CONTROL, "no-store");
        set(answer.headers_mut(), header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
        Ok(answer)
    }

    fn begin(&self, auth: &RequestAuth, head: &Parts, provider: &Provider, to: &str, again: bool) -> Result<Answer, Problem> {
        let made = secret().map_err(PeopleError::from)?;
        let at = provider.begin(&LoginSecrets::of(&made), &self.back(auth, head, provider), again)?;
        let mut answer = redirect(&at);
        let value = format!("{made}.{}", URL_SAFE_NO_PAD.encode(target(to, &self.home)));
        let secure = if auth.secure { "; Secure" } else { "" };
        let line = format!("{COOKIE}={value}; Path={PATH}/{}; HttpOnly; SameSite=Lax; Max-Age={LIFE}{secure}", provider.name());
        set(answer.headers_mut(), header::SET_COOKIE, &line);
        Ok(answer)
    }

    fn end<'q>(
        &self,
        auth: &RequestAuth,
        head: &Parts,
        provider: &Provider,
        get: &dyn Fn(&str) -> Option<&'q str>,
    ) -> Result<Answer, Problem> {
        let refuse = |why: &str| Problem::from(OidcError::Refused(why.to_owned()));
        let cookies = all_lines(&head.headers, header::COOKIE, "; ");
        let begun = cookie_in(&cookies, COOKIE).and_then(|value| value.split_once('.'));
        let (made, to) = begun.ok_or_else(|| refuse("this browser has not begun the login, or began it too long ago"))?;
        let secrets = LoginSecrets::of(made);
        if get("state") != Some(&secrets.state) {
            return Err(refuse("it belongs to another login"));
        }
        if let Some(error) = get("error") {
            let error: String = error.chars().filter(char::is_ascii_graphic).take(64).collect();
            return Err(refuse(&error));
        }
        let code =
            get("code").filter(|code| !code.is_empty() && code.len() <= MAX_CODE).ok_or_else(|| refuse("the code is missing"))?;
        let (person, proved) = provider.end(&secrets, &self.back(auth, head, provider), code, get("iss"))?;
        let logged_in = self.people.log_in_by_method(provider.name(), &person, proved);
        let (who, session) = logged_in.inspect_err(|why| provider.report_refusal(&person, why))?;
        info!(self.audit, "{} logged in by the method '{}' from {}", who.login, provider.name(), auth.from);
        let to = URL_SAFE_NO_PAD.decode(to).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let mut answer = redirect(target(&to, &self.home));
        let longest = self.people.settings().longest;
        let gone = format!("{COOKIE}=; Path={PATH}/{}; HttpOnly; SameSite=Lax; Max-Age=0", provider.name());
        for line in [cookie(&session, longest, auth.secure), gone] {
            if let Ok(value) = HeaderValue::from_str(&line) {
                answer.headers_mut().append(header::SET_COOKIE, value);
            }
        }
        Ok(answer)
    }
}

impl HttpService for OidcLogins {
    fn find(self: Arc<Self>, _: &Parts) -> Matched {
        let identify = move |head: &Parts, client: &ClientAddress| {
            let finished = |mut answer: Answer| {
                secure(answer.headers_mut());
                answer
            };
            // The old session of a browser is of no use here, and an ended one is no obstacle.
            let auth = self.authenticator.authenticate(&self.people, head, client, false);
            let auth = auth.map_err(|problem| Box::new(finished(refused(&problem))))?;
            let handler = move |request: HttpRequest<'_>, _: &Stop| {
                finished(self.answer(&auth, &request.head).unwrap_or_else(|problem| refused(&problem)))
            };
            Ok(Identified { max_body: 0, handler: Box::new(handler) })
        };
        Matched::for_login(plain_rejection, Box::new(identify))
    }
}
