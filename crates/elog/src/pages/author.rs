//! The name under which a request changes entries.

use crate::pages::request::BookRequest;

/// The author of a guest's entries; no login can have this name.
pub const GUEST: &str = "(guest)";

/// Returns the holder of a guest's lock, by the key of its form.
pub fn guest_with(key: &str) -> String {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    format!("{GUEST} {key}")
}

impl BookRequest<'_> {
    /// Returns the name under which this request posts, changes and deletes.
    pub(super) fn by(&self) -> &str {
        if self.caller.login.is_empty() { GUEST } else { &self.caller.login }
    }
}
