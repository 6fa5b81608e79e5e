//! The addresses `/login/oidc/NAME` and `/login/oidc/NAME/back`, to which browsers come for a login at a provider.

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
    admission::WorkKind,
    auth::{Authenticator, RequestAuth},
    body::{HttpRequest, ResponseBody},
    client_address::ClientAddress,
    headers::{all_lines, secure, set, text},
    problem::Problem,
    route::{HttpService, Identified, Matched},
    server::plain_rejection,
};

/// The path below which the logins are.
pub const PATH: &str = "/login/oidc";
/// The cookie of a login that has begun.
const COOKIE: &str = "tampu_oidc";
/// Time for a login at the provider, in s.
const LIFE: u32 = 600;
/// Longest address to return to.
const MAX_TARGET: usize = 2048;
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

type Answer = http::Response<ResponseBody>;

/// Returns a path of this site to return to, or the home.
fn target<'t>(said: &'t str, home: &'t str) -> &'t str {
    let is_path = said.starts_with('/') && !said.starts_with("//") && said.len() <= MAX_TARGET;
    let harmless = said.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'"' && byte != b';');
    if is_path && harmless { said } else { home }
}

fn redirect(to: &str) -> Answer {
    let mut answer = http::Response::new(ResponseBody::Whole(Bytes::new()));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    set(answer.headers_mut(), header::LOCATION, to);
    set(answer.headers_mut(), header::CACHE_CONTROL, "no-store");
    answer
}

/// Returns a problem as plain text, for a person at a browser.
fn refused(problem: &Problem) -> Answer {
    let mut answer = problem.answer();
    let help = problem.way_out.as_deref().map(|help| format!("\n{help}")).unwrap_or_default();
    *answer.body_mut() = ResponseBody::Whole(Bytes::from(format!("{}{help}\n", problem.detail)));
    set(answer.headers_mut(), header::CONTENT_TYPE, "text/plain; charset=utf-8");
    answer
}

impl From<OidcError> for Problem {
    fn from(error: OidcError) -> Problem {
        let text = error.to_string();
        match error {
            OidcError::Away => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", text)
                .help("try again later; users of the logbook itself can log in with their passwords"),
            OidcError::Refused(_) => Problem::new(StatusCode::FORBIDDEN, "login-refused", text)
                .help("begin the login again; the hub's log has the reason"),
        }
    }
}

impl OidcLogins {
    fn answer(&self, auth: &RequestAuth, head: &Parts) -> Result<Answer, Problem> {
        let path = head.uri.path().strip_prefix(PATH).unwrap_or_default().trim_matches('/');
        let (name, is_back) = path.strip_suffix("/back").map_or((path, false), |name| (name, true));
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
        if is_back {
            self.end(auth, head, provider, &get)
        } else {
            self.begin(auth, head, provider, get("to").unwrap_or_default())
        }
    }

    /// Returns the address to which the provider returns the browser.
    fn back(&self, auth: &RequestAuth, head: &Parts, provider: &Provider) -> String {
        provider.settings().redirect_url.clone().unwrap_or_else(|| {
            let scheme = if auth.secure { "https" } else { "http" };
            let host = text(&head.headers, header::HOST).unwrap_or("localhost");
            format!("{scheme}://{host}{PATH}/{}/back", provider.name())
        })
    }

    fn begin(&self, auth: &RequestAuth, head: &Parts, provider: &Provider, to: &str) -> Result<Answer, Problem> {
        let made = secret().map_err(PeopleError::from)?;
        let to =
            provider.begin(&LoginSecrets::of(&made), &self.back(auth, head, provider)).map(|at| (at, target(to, &self.home)))?;
        let (at, to) = to;
        let mut answer = redirect(&at);
        let value = format!("{made}.{}", URL_SAFE_NO_PAD.encode(to));
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
        let person = provider.end(&secrets, &self.back(auth, head, provider), code, get("iss"))?;
        let (who, session) = self.people.log_in_by_method(provider.name(), &person)?;
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
        // A login waits for the provider, as a password waits for its hash.
        Matched {
            work: WorkKind::Login,
            identifies: WorkKind::Quick,
            max_body: 0,
            reject: plain_rejection,
            identify: Box::new(identify),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_returns_to_a_page_of_this_site() {
        for good in ["/elog/", "/elog/Shift/12?a=b:c", "/"] {
            assert_eq!(target(good, "/home"), good);
        }
        for bad in ["", "//evil", "https://evil", "/\\evil", "/a b", "/a\r\nx: y", "/ö", "elog", "/a\";b"] {
            assert_eq!(target(bad, "/home"), "/home", "{bad}");
        }
    }
}
