//! A provider of identities: OpenID Connect, the code flow with PKCE.
//!
//! ```text
//! browser -> /login/oidc/NAME       cookie with a secret; redirect to the provider with state, nonce and challenge
//! browser -> provider               the person logs in there
//! browser -> /login/oidc/NAME/back  code and state; the cookie must fit the state
//! hub     -> provider               code and verifier for an ID token, which the provider's keys verify
//! ```
//!
//! State, nonce and verifier are made of the secret in the cookie, so the hub stores nothing about a login that has
//! begun, and any hub of a site can end it. A login that another site has begun fails: its cookie is missing.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tampu_log::Logger;
use tampu_logbook::{
    client::address::encoded,
    people::{
        PeopleError,
        outside::{OutsideCalls, OutsideUser},
    },
};
use tampu_types::Time;
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::{absence::Absence, secret::read_secret, warnings::Warnings};
use id_token::{Claims, Expected, Key, SKEW};
use settings::{OidcSettings, is_safe};

pub mod flow;
pub mod id_token;
pub mod settings;

/// Longest response of a provider, in bytes.
const MAX_RESPONSE: u64 = 1 << 20;
/// Time for which the provider's addresses and keys are cached.
const FRESH: Duration = Duration::from_secs(3600);
/// Shortest time between two requests for keys, which an unknown key causes.
const KEYS_AGAIN: Duration = Duration::from_secs(30);

/// Errors of a login at a provider. Callers see the text; the log has the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// The provider cannot be reached, or answers with nonsense.
    #[error("the provider of the login method does not respond")]
    Away,
    /// Too many logins wait for providers.
    #[error("too many logins wait for the providers of login methods")]
    Busy,
    /// The provider, or the check of its word, refuses the login.
    #[error("the provider's answer was refused: {0}")]
    Refused(String),
}

/// The subject of a request to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// The provider's own documents.
    Everybody,
    /// One login, with a code or a token of its person.
    OneLogin,
}

/// A provider of identities.
pub struct Provider {
    name: String,
    settings: OidcSettings,
    secret: Option<String>,
    agent: Agent,
    absence: Absence,
    warnings: Warnings,
    asking: OutsideCalls,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    addresses: Option<(Instant, Arc<Addresses>)>,
    keys: Option<(Instant, Arc<Vec<Key>>)>,
}

/// The addresses of a provider, from its document of discovery.
#[derive(Debug, Deserialize)]
struct Addresses {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    end_session_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// The secrets of one login, made of the one in the browser's cookie.
pub struct LoginSecrets {
    /// The value that the provider returns to the browser.
    pub state: String,
    nonce: String,
    verifier: String,
}

impl LoginSecrets {
    /// Derives the secrets of a login.
    pub fn of(cookie: &str) -> LoginSecrets {
        let derived = |what: &str| URL_SAFE_NO_PAD.encode(Sha256::digest(format!("tampu oidc {what} {cookie}")));
        LoginSecrets { state: derived("state"), nonce: derived("nonce"), verifier: derived("verifier") }
    }
}

impl Provider {
    /// Prepares the provider of a method. No request is sent yet.
    pub fn new(name: &str, settings: &OidcSettings, asking: OutsideCalls, logger: Logger) -> Result<Provider, String> {
        let secret = settings.client_secret_file.as_deref().map(read_secret).transpose()?;
        let mut roots = tampu_tls::client::system_roots();
        if let Some(path) = &settings.ca_file {
            roots.extend(tampu_tls::client::certificates(path).map_err(|why| why.to_string())?);
        }
        let roots: Vec<Certificate<'static>> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
        // A redirect could lead secrets elsewhere.
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(settings.timeout_s)))
            .tls_config(tls.build())
            .build()
            .into();
        let absence = Absence::of(format!("the provider of the login method '{name}'"), logger.clone());
        let (name, settings, warnings) = (name.to_owned(), settings.clone(), Warnings::new(logger));
        Ok(Provider { name, settings, secret, agent, absence, warnings, asking, known: Mutex::default() })
    }

    /// The name of the method.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Settings of the method.
    pub fn settings(&self) -> &OidcSettings {
        &self.settings
    }

    fn away(&self, what: &str, why: &dyn std::fmt::Display) -> OidcError {
        self.absence.begin(&format!("{what}: {why}"));
        OidcError::Away
    }

    /// Reports a bad answer. One about a single login does not count as the provider's absence: anybody can send a code.
    fn nonsense(&self, about: About, what: &str, why: &dyn std::fmt::Display) -> OidcError {
        if about == About::Everybody {
            return self.away(what, why);
        }
        self.warnings.warn(&format!("the provider of the login method '{}': {what}: {why}", self.name));
        OidcError::Away
    }

    fn refused(&self, why: &dyn std::fmt::Display) -> OidcError {
        self.warnings.warn(&format!("a login by the method '{}' was refused: {why}", self.name));
        OidcError::Refused(why.to_string())
    }

    /// Logs a proved person whom the logbook does not admit, with the identity by which an administrator can bind a user.
    pub fn report_refusal(&self, person: &OutsideUser, why: &PeopleError) {
        let (login, subject) = (person.login.escape_debug(), person.subject.escape_debug());
        let name = &self.name;
        self.warnings.warn(&format!("the login method '{name}' proves '{login}' with the subject '{subject}': {why}"));
    }

    /// Sends a request and reads its JSON. While the provider is away, no request is sent.
    fn json<T: for<'de> Deserialize<'de>>(
        &self,
        about: About,
        what: &str,
        request: http::Request<String>,
    ) -> Result<T, OidcError> {
        if self.absence.reason().is_some() {
            return Err(OidcError::Away);
        }
        let _place = self.asking.provider().ok_or(OidcError::Busy)?;
        let mut response = self.agent.run(request).map_err(|why| self.away(what, &why))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(MAX_RESPONSE).read_to_string();
        let text = text.map_err(|why| match why {
            ureq::Error::Timeout(_) => self.away(what, &why),
            // As a word about one person that is too long.
            why => self.nonsense(about, what, &why),
        })?;
        if status.is_client_error() && about == About::OneLogin {
            // An error of OAuth is JSON with a short code. Nothing else of the text is shown, since it may hold secrets.
            let code = serde_json::from_str::<Value>(&text).ok().and_then(|error| Some(error["error"].as_str()?.to_owned()));
            let code: String = code.unwrap_or_default().chars().filter(char::is_ascii_graphic).take(64).collect();
            return Err(self.refused(&format!("{what}: status {} {code}", status.as_u16())));
        }
        if !status.is_success() {
            return Err(self.nonsense(about, what, &format!("status {}", status.as_u16())));
        }
        let found = serde_json::from_str(&text).map_err(|why| self.nonsense(about, what, &why))?;
        self.absence.end();
        Ok(found)
    }

    fn get<T: for<'de> Deserialize<'de>>(&self, what: &str, url: &str, bearer: Option<&str>) -> Result<T, OidcError> {
        let about = if bearer.is_some() { About::OneLogin } else { About::Everybody };
        let mut request = http::Request::get(url).header("accept", "application/json");
        if let Some(token) = bearer {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.json(about, what, request.body(String::new()).map_err(|why| self.nonsense(about, what, &why))?)
    }

    fn addresses(&self) -> Result<Arc<Addresses>, OidcError> {
        if let Some((read, addresses)) = &self.known.lock().addresses
            && read.elapsed() < FRESH
        {
            return Ok(addresses.clone());
        }
        let what = "its document of discovery";
        let url = format!("{}/.well-known/openid-configuration", self.settings.issuer.trim_end_matches('/'));
        let found: Addresses = self.get(what, &url, None)?;
        if found.issuer != self.settings.issuer {
            let why = format!("it is about the issuer '{}', and not '{}'", found.issuer.escape_debug(), self.settings.issuer);
            return Err(self.away(what, &why));
        }
        let all = [&found.authorization_endpoint, &found.token_endpoint, &found.jwks_uri];
        if let Some(bad) =
            all.into_iter().chain(&found.userinfo_endpoint).chain(&found.end_session_endpoint).find(|url| !is_safe(url))
        {
            return Err(self.away(what, &format!("'{}' is no address of https", bad.escape_debug())));
        }
        let found = Arc::new(found);
        self.known.lock().addresses = Some((Instant::now(), found.clone()));
        Ok(found)
    }

    /// Returns the provider's keys; fresh ones if those that are known lack one.
    fn keys(&self, url: &str, lacks: bool) -> Result<Arc<Vec<Key>>, OidcError> {
        let most = if lacks { KEYS_AGAIN } else { FRESH };
        if let Some((read, keys)) = &self.known.lock().keys
            && read.elapsed() < most
        {
            return Ok(keys.clone());
        }
        #[derive(Deserialize)]
        struct Keys {
            keys: Vec<Value>,
        }
        let Keys { keys } = self.get("its keys", url, None)?;
        // A key of a kind that is unknown here is none of the others' fault.
        let keys = Arc::new(keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect::<Vec<Key>>());
        self.known.lock().keys = Some((Instant::now(), keys.clone()));
        Ok(keys)
    }

    /// Returns the address at the provider at which a login begins. With `again` the provider asks for the password also if
    /// it has a session of the person, and reports when.
    pub fn begin(&self, secrets: &LoginSecrets, redirect: &str, again: bool) -> Result<String, OidcError> {
        let addresses = self.addresses()?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&secrets.verifier));
        let scopes = self.settings.scopes.join(" ");
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", redirect),
            ("scope", &scopes),
            ("state", &secrets.state),
            ("nonce", &secrets.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if again {
            // A provider answers a limit of the age, here five minutes, with the time of the login.
            fields.extend([("prompt", "login"), ("max_age", "300")]);
        }
        Ok(with_query(&addresses.authorization_endpoint, &form(&fields)))
    }

    /// Returns the address at the provider at which its session ends, or `None` if the provider has none. The provider asks
    /// the person, since no token names the session: a link of another site must not end it. `back` is the address to
    /// return to.
    pub fn end_session(&self, back: &str) -> Result<Option<String>, OidcError> {
        let addresses = self.addresses()?;
        let query = form(&[("client_id", &self.settings.client_id), ("post_logout_redirect_uri", back)]);
        Ok(addresses.end_session_endpoint.as_ref().map(|at| with_query(at, &query)))
    }

    /// Ends a login with the code that the browser has brought. Returns the person, and the time at which the provider has
    /// asked for the password, if it reports that.
    pub fn end(
        &self,
        secrets: &LoginSecrets,
        redirect: &str,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<(OutsideUser, Option<Time>), OidcError> {
        // The answer of another provider must not be used here (RFC 9207).
        if issuer.is_some_and(|issuer| issuer != self.settings.issuer) {
            return Err(self.refused(&"the answer is of another issuer"));
        }
        let addresses = self.addresses()?;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", &secrets.verifier),
        ];
        let mut request = http::Request::post(&addresses.token_endpoint)
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded");
        let methods = addresses.token_endpoint_auth_methods_supported.as_deref();
        let takes_basic = methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
        match &self.secret {
            Some(secret) if takes_basic => {
                let pair = format!("{}:{}", encoded(&self.settings.client_id), encoded(secret));
                request = request.header("authorization", format!("Basic {}", STANDARD.encode(pair)));
            }
            Some(secret) => fields.extend([("client_id", &*self.settings.client_id), ("client_secret", secret)]),
            None => fields.push(("client_id", &self.settings.client_id)),
        }
        #[derive(Deserialize)]
        struct Tokens {
            id_token: String,
            #[serde(default)]
            access_token: Option<String>,
        }
        let what = "the exchange of the code";
        let about = About::OneLogin;
        let request = request.body(form(&fields)).map_err(|why| self.nonsense(about, what, &why))?;
        let tokens: Tokens = self.json(about, what, request)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        let expected =
            Expected { issuer: &self.settings.issuer, client_id: &self.settings.client_id, nonce: &secrets.nonce, now };
        let verified = match id_token::verify(&tokens.id_token, &self.keys(&addresses.jwks_uri, false)?, &expected) {
            // The provider may have a new key.
            Err(id_token::BadToken::NoKey) => {
                id_token::verify(&tokens.id_token, &self.keys(&addresses.jwks_uri, true)?, &expected)
            }
            verified => verified,
        };
        let mut claims = verified.map_err(|why| self.refused(&why))?;
        // Of the token alone: nobody has signed the other information.
        let proved = claims.get("auth_time").and_then(Value::as_i64).filter(|at| (0..=now.saturating_add(SKEW)).contains(at));
        let proved = proved.map(|at| Time::from_unix(at.min(now), 0));
        let lacks = [&self.settings.login, &self.settings.groups, &self.settings.full_name, &self.settings.email];
        if let (Some(url), Some(token)) = (&addresses.userinfo_endpoint, &tokens.access_token)
            && lacks.into_iter().any(|name| claim(&claims, name).is_none())
        {
            let more: Claims = self.get("its information about the person", url, Some(token))?;
            if more.get("sub") != claims.get("sub") {
                return Err(self.refused(&"the information is about another person"));
            }
            for (name, value) in more {
                claims.entry(name).or_insert(value);
            }
        }
        let person = person(&self.settings, &claims).map_err(|why| self.refused(&why))?;
        Ok((person, proved))
    }
}

/// Returns the person of verified claims.
fn person(of: &OidcSettings, claims: &Claims) -> Result<OutsideUser, String> {
    let text = |name: &str| claim(claims, name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let login = text(&of.login);
    if login.is_empty() {
        return Err(format!("the provider sends no claim '{}'; name the one with the login with 'login'", of.login));
    }
    // An address that anybody may enter at the provider is no address of the person. Some providers send a text.
    let is_verified = claims.get("email_verified").is_none_or(|said| said == &Value::Bool(true) || said == "true");
    let groups = match claim(claims, &of.groups) {
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(groups)) => groups.split([' ', ',']).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let email = if is_verified { text(&of.email) } else { String::new() };
    Ok(OutsideUser { subject: text("sub"), login, full_name: text(&of.full_name), email, groups })
}

/// Returns a claim; dots lead into objects, if no claim has the whole name.
fn claim<'c>(claims: &'c Claims, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| {
        let mut parts = name.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    })
}

/// Adds a query to an address, which may have one.
fn with_query(address: &str, query: &str) -> String {
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}{query}")
}

/// Writes fields as a form.
fn form(fields: &[(&str, &str)]) -> String {
    fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_found_inside_of_others() {
        let claims: Claims = serde_json::from_str(
            r#"{ "realm_access": { "roles": ["a", "b"] }, "https://x.org/groups": "c d", "email_verified": false }"#,
        )
        .unwrap();
        assert_eq!(claim(&claims, "realm_access.roles").unwrap()[1], "b");
        assert_eq!(claim(&claims, "https://x.org/groups").unwrap(), "c d");
        assert!(claim(&claims, "realm_access.none").is_none() && claim(&claims, "none.x").is_none());
    }

    #[test]
    fn an_address_counts_unless_the_provider_says_that_it_is_not_verified() {
        let of = OidcSettings::default();
        for (said, email) in [
            (r#""x": 1"#, "zoe@lab.example"),
            (r#""email_verified": true"#, "zoe@lab.example"),
            (r#""email_verified": "true""#, "zoe@lab.example"),
            (r#""email_verified": false"#, ""),
            (r#""email_verified": "false""#, ""),
            (r#""email_verified": 0"#, ""),
            (r#""email_verified": null"#, ""),
        ] {
            let text = format!(r#"{{ "sub": "7", "preferred_username": "zoe", "email": "zoe@lab.example", {said} }}"#);
            assert_eq!(person(&of, &serde_json::from_str(&text).unwrap()).unwrap().email, email, "{said}");
        }
    }

    #[test]
    fn the_secrets_of_a_login_differ_and_come_of_one() {
        let (one, same, other) = (LoginSecrets::of("a"), LoginSecrets::of("a"), LoginSecrets::of("b"));
        assert!(one.state == same.state && one.verifier == same.verifier && one.state != other.state);
        assert!(one.state != one.nonce && one.nonce != one.verifier && one.verifier.len() == 43);
    }
}
