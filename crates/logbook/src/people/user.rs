//! Users: the login, and the properties of the person or program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{outside::Outside, password::Password};
use crate::book::same_name;

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "user";
/// Characters of a login or the name of a group.
pub const MAX_LOGIN: usize = 64;
/// Characters of a full name or an address.
pub const MAX_FIELD: usize = 256;
/// Groups of one user.
pub const MAX_GROUPS: usize = 256;
/// Logbooks of which one user gets mail.
pub const MAX_NOTIFY: usize = 4096;

/// A person or program that can log in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    /// The login, compared with case.
    pub login: String,
    /// The full name, which others see: as the author, where a logbook fills it in, and in signatures.
    pub full_name: String,
    /// The mail address, or empty.
    pub email: String,
    /// Groups, which can receive rights. A group exists while it has a member.
    pub groups: Vec<String>,
    /// Logbooks about whose entries ELOG's configuration mails the user; `*` stands for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// True for administrators of the site. They may do everything in all books and manage users.
    pub admin: bool,
    /// True while the user is disabled.
    pub inactive: bool,
    /// The stored password; `None` if the user cannot log in with one.
    pub password: Option<Password>,
    /// The generation of the user. It rises with each new password and each time the user is disabled. Sessions of an
    /// earlier generation are invalid.
    pub generation: u32,
    /// The login method outside that proves the user, if it is not a password here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
}

/// A user without secrets, as the API and the command line show them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "UserSummary")]
pub struct UserInfo {
    pub login: String,
    /// The name to show.
    pub full_name: String,
    /// The mail address, or empty.
    pub email: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// True for administrators of the site.
    pub admin: bool,
    /// True while the user is disabled.
    pub inactive: bool,
    /// True if the user can log in with a password.
    pub has_password: bool,
    /// The login method that proves the user, if it is not a password here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> UserInfo {
        let User { login, full_name, email, groups, admin, inactive, password, outside, .. } = user.clone();
        let method = outside.map(|outside| outside.method);
        UserInfo { login, full_name, email, groups, admin, inactive, has_password: password.is_some(), method }
    }
}

impl From<UserInfo> for User {
    /// A user without a password.
    fn from(info: UserInfo) -> User {
        let UserInfo { login, full_name, email, groups, admin, inactive, .. } = info;
        User { login, full_name, email, groups, admin, inactive, ..User::default() }
    }
}

/// The reasons to reject a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUser {
    /// The name of a user or a group.
    #[error(
        "invalid name '{0}' of a user or group; use 1 to {MAX_LOGIN} characters without control characters, ',', ';', ':', '/', '\\' and blanks at an end"
    )]
    Name(String),
    /// A name with which the logbook itself signs entries.
    #[error("the logbook itself signs entries with '{0}'; choose another name")]
    Reserved(String),
    /// Another invalid property.
    #[error("{0} has more than {MAX_FIELD} characters, or a control character")]
    Field(&'static str),
    /// Too many groups.
    #[error("{0} groups; at most {MAX_GROUPS}")]
    Groups(usize),
}

/// Checks the login of a user or the name of a group.
pub fn check_name(name: &str) -> Result<(), BadUser> {
    let bad = |c: char| c.is_control() || [',', ';', ':', '/', '\\'].contains(&c);
    let good = (1..=MAX_LOGIN).contains(&name.chars().count()) && name.trim() == name && !name.chars().any(bad) && name != "*";
    if !good {
        return Err(BadUser::Name(name.to_owned()));
    }
    // The names that sign entries of guests and of imports.
    let lower = name.to_lowercase();
    if lower.starts_with("guest@") || ["(guest)", "import-elog", "follow-elog"].contains(&lower.as_str()) {
        return Err(BadUser::Reserved(name.to_owned()));
    }
    Ok(())
}

impl User {
    /// A new user with only a login.
    pub fn new(login: &str) -> User {
        User { login: login.to_owned(), ..User::default() }
    }

    /// Returns true if the user wants ELOG's mails about entries of a logbook.
    pub fn wants_mail_of(&self, book: &str) -> bool {
        self.notify.iter().any(|wanted| wanted == "*" || same_name(wanted, book))
    }

    /// The name to show.
    pub fn shown(&self) -> &str {
        if self.full_name.is_empty() { &self.login } else { &self.full_name }
    }

    /// Checks names, address and groups.
    pub fn check(&self) -> Result<(), BadUser> {
        check_name(&self.login)?;
        self.groups.iter().try_for_each(|group| check_name(group))?;
        if self.groups.len() > MAX_GROUPS {
            return Err(BadUser::Groups(self.groups.len()));
        }
        let is_wrong = |book: &String| book.chars().count() > MAX_FIELD || book.chars().any(char::is_control);
        if self.notify.len() > MAX_NOTIFY || self.notify.iter().any(is_wrong) {
            return Err(BadUser::Field("the list of logbooks for mail"));
        }
        for (what, text) in [("the full name", &self.full_name), ("the address for mail", &self.email)] {
            if text.chars().count() > MAX_FIELD || text.chars().any(char::is_control) {
                return Err(BadUser::Field(what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["zoe", "guest", "zoe@example.org", "Zoë Müller", "a"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "(guest)",
            "guest@10.0.0.5",
            "Guest@::1",
            "import-elog",
            "follow-elog",
            "",
            " zoe",
            "a\nb",
            "a:b",
            "a/b",
            "*",
            &"x".repeat(65),
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(User { email: "a\r\nBcc: all".into(), ..User::new("zoe") }.check().is_err());
    }
}
