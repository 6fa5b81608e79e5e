//! Registrations: people who make an account for themselves, at once or after an administrator's approval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_types::Time;

use super::{password::Password, password_files::SELF_REGISTERED, user::MAX_FIELD};
use crate::schema::TimeText;

/// The kind of the store's records, which are named by a random id.
pub const KIND: &str = "registration";
/// Maximum number of registrations that wait for an administrator.
pub const MAX_WAITING: usize = 500;
/// Registrations of one address within [`WITHIN`].
pub const OF_ONE_ADDRESS: usize = 5;
/// The time in which registrations of an address are counted.
pub const WITHIN: std::time::Duration = std::time::Duration::from_secs(3600);

/// The names, address and password that a person registers with.
#[derive(Debug, Clone, Default)]
pub struct NewAccount {
    pub login: String,
    pub full_name: String,
    /// The mail address, which a registration needs.
    pub email: String,
    /// The password as typed.
    pub password: String,
    /// The logbook at which the person registers, if it is one.
    pub book: Option<String>,
}

/// A registration that waits, with its stored password.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Waiting {
    #[serde(flatten)]
    pub registration: Registration,
    pub password: Password,
    /// The group of the user.
    #[serde(default = "self_registered")]
    pub group: String,
}

fn self_registered() -> String {
    SELF_REGISTERED.to_owned()
}

/// A registration that waits for an administrator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// The id, with which it is approved or refused.
    pub id: String,
    pub login: String,
    pub full_name: String,
    /// The mail address; nobody has checked it.
    pub email: String,
    /// The address of the client that sent the registration.
    pub from: String,
    /// The time of the registration.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub at: Time,
    /// True if a user has the login or the full name.
    #[serde(default)]
    pub taken: bool,
    /// True if entries were posted with the login, imported ones have it or the full name as their author, or rights name it.
    /// The user owns them, and has the rights, after the approval.
    #[serde(default)]
    pub author: bool,
}

/// Returns true if a text can be a mail address: one `@` with a name and a host around it, without blanks and marks.
pub fn is_mail_address(text: &str) -> bool {
    let mut parts = text.split('@');
    let (name, host, more) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next());
    let bad = |c: char| c.is_control() || c.is_whitespace() || "<>(),;:\"\\[]".contains(c);
    !name.is_empty() && !host.is_empty() && more.is_none() && !text.chars().any(bad) && text.chars().count() <= MAX_FIELD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_for_mail_are_known() {
        for (text, expected) in [
            ("zoe@example.org", true),
            ("zoë@localhost", true),
            ("zoe", false),
            ("@example.org", false),
            ("zoe@", false),
            ("a@b@c", false),
            ("a b@c", false),
            ("a@b\r\nBcc: all@c", false),
            ("a@b,c@d", false),
            ("Zoe <zoe@example.org>", false),
        ] {
            assert_eq!(is_mail_address(text), expected, "{text:?}");
        }
    }
}
