//! The session of a browser: a secret in a cookie. The store holds its digest.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

use crate::attachment::hex;

/// The kind of the store's records, which are named by the secret's digest.
pub const KIND: &str = "session";
/// The name of the cookie.
pub const COOKIE: &str = "tampu_session";
/// Maximum number of sessions of one user; a further one ends the oldest.
pub const MAX_SESSIONS: usize = 32;

/// The session of a logged-in user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The user's login.
    pub login: String,
    /// The user's generation at that time.
    pub generation: u32,
    /// The time of the login.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    pub begun: Time,
    /// The time of the last use, to the minute.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    pub used: Time,
    /// The time at which a provider of identities has asked the person for the password, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "tampu_types::time::rfc3339::stored_option")]
    pub proved: Option<Time>,
}

impl Session {
    /// Returns whether the session has not expired.
    pub fn lives(&self, now: Time, idle: Duration, longest: Duration) -> bool {
        let within =
            |since: Time, time: Duration| now.0.saturating_sub(since.0) <= i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        within(self.used, idle) && within(self.begun, longest)
    }
}

/// The token that a form must carry beside the cookie; a page of another site cannot know it.
pub fn form_token(secret: &str) -> String {
    let mut hash = Sha256::new();
    hash.update("a form of the session ");
    hash.update(secret);
    hex(&hash.finalize()[..16])
}

/// Returns the header line that sets the cookie. `secure` is true if the request came over TLS.
pub fn cookie(secret: &str, longest: Duration, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}", longest.as_secs())
}

/// Returns the header line that sets a cookie which ends with the browser.
pub fn short_cookie(secret: &str, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}")
}

/// Returns the header line that removes the cookie.
pub fn no_cookie() -> String {
    format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0")
}

/// The value of a cookie in a request's header.
pub fn cookie_in<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.split(';').find_map(|part| part.trim().split_once('=').filter(|(found, _)| *found == name).map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_it_rests_and_when_it_is_old() {
        let at = |seconds| Time::from_unix(seconds, 0);
        let session = Session { login: "zoe".into(), generation: 0, begun: at(0), used: at(50), proved: None };
        let (idle, longest) = (Duration::from_secs(60), Duration::from_secs(100));
        assert!(session.lives(at(90), idle, longest));
        assert!(!session.lives(at(101), idle, longest));
        assert!(!session.lives(at(111), idle, Duration::MAX));
    }

    #[test]
    fn cookies_are_found() {
        assert_eq!(cookie_in("a=1; tampu_session=x; b", COOKIE), Some("x"));
        assert_eq!(cookie_in("a=1;xtampu_session=x", COOKIE), None);
        assert_eq!(cookie_in("", COOKIE), None);
    }
}
