//! Tokens that identify the forms of this site: a hidden field whose value other sites cannot know.
//!
//! A change needs the token if a browser or a request with a session sends it. Programs have no session, and name their
//! user in the request. A browser is recognised by headers that every browser sends and no other site can remove.

use sha2::{Digest, Sha256};
use tampu_logbook::{attachment::hex, people::Caller};

use crate::pages::{request::PageRequest, site::Site};

/// The name of the hidden field.
pub const FIELD: &str = "tampu_form";

/// Returns the value of the hidden field for forms of this caller, in the session with this secret if there is one. The
/// value ends with the session.
pub fn token(site: &Site, caller: &Caller, session: Option<&str>) -> String {
    // Guests are distinguished by their addresses, so that one guest's form is of no use to another. No login has a line end.
    let identity = match session {
        Some(secret) => format!("{}\nsession {secret}", caller.login),
        None if caller.login.is_empty() => format!("\n{}", caller.from),
        None => caller.login.clone(),
    };
    // The inner digest has a fixed length, so that no name can be extended into the token of another.
    let identity = Sha256::digest(identity.as_bytes());
    hex(&Sha256::new().chain_update(site.config.secret).chain_update(identity).finalize()[..16])
}

/// Returns true if a value is the token of this caller's forms.
pub fn is_token(site: &Site, caller: &Caller, session: Option<&str>, value: &str) -> bool {
    let (given, expected) = (value.as_bytes(), token(site, caller, session));
    // The comparison takes the same time for every wrong value of the right length.
    given.len() == expected.len() && given.iter().zip(expected.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Returns true if the caller meant the change: a program sent it, or one of this site's forms.
pub fn is_own_form(request: &PageRequest<'_>, field: Option<&str>) -> bool {
    if !request.by_browser && request.session.is_none() {
        return true;
    }
    field.is_some_and(|value| is_token(request.site, request.caller, request.session.as_deref(), value))
}
