//! A user: the name to log in with, and what is known of the person or program.

use serde::{Deserialize, Serialize};

use super::password::Password;

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "user";
/// Characters of a login or the name of a group.
pub const MAX_LOGIN: usize = 64;
/// Characters of a full name or an address.
pub const MAX_FIELD: usize = 256;
/// Groups of one user.
pub const MAX_GROUPS: usize = 256;

/// Somebody who can log in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    /// What they log in with; compared as it stands.
    pub login: String,
    /// The name people know; entries are signed with it.
    pub full_name: String,
    /// Where mail goes; empty if there is no address.
    pub email: String,
    /// Groups, which rights can be given to. A group is there while it has a member.
    pub groups: Vec<String>,
    /// Whether all may be done in all books, and to all users.
    pub admin: bool,
    /// Whether they can do nothing for now.
    pub inactive: bool,
    /// Their password, as it is kept; none if they cannot log in with one.
    pub password: Option<Password>,
    /// Sessions of an earlier generation are worthless: one more with each password and each time they are made inactive.
    pub generation: u32,
}

/// Why a user is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUser {
    /// The name of a user or a group.
    #[error(
        "'{0}' is no name to log in with, nor of a group: 1 to {MAX_LOGIN} characters, none of them a control character, ',', ';', ':', '/', '\\' or a blank at an end"
    )]
    Name(String),
    /// A name that stands below entries of nobody in particular.
    #[error("'{0}' is a name that the logbook itself signs with: choose another one")]
    Reserved(String),
    /// Something else about them.
    #[error("{0} has more than {MAX_FIELD} characters, or a control character")]
    Field(&'static str),
    /// Too many groups.
    #[error("{0} groups; at most {MAX_GROUPS}")]
    Groups(usize),
}

/// Whether a text can be the login of a user or the name of a group.
pub fn check_name(name: &str) -> Result<(), BadUser> {
    let bad = |c: char| c.is_control() || [',', ';', ':', '/', '\\'].contains(&c);
    let good = (1..=MAX_LOGIN).contains(&name.chars().count()) && name.trim() == name && !name.chars().any(bad) && name != "*";
    if !good {
        return Err(BadUser::Name(name.to_owned()));
    }
    // As guests and what is taken over are signed.
    let lower = name.to_lowercase();
    if lower.starts_with("guest@") || ["(guest)", "import-elog", "follow-elog"].contains(&lower.as_str()) {
        return Err(BadUser::Reserved(name.to_owned()));
    }
    Ok(())
}

impl User {
    /// Somebody of whom nothing is known yet.
    pub fn new(login: &str) -> User {
        User { login: login.to_owned(), ..User::default() }
    }

    /// The name to show.
    pub fn shown(&self) -> &str {
        if self.full_name.is_empty() { &self.login } else { &self.full_name }
    }

    /// Whether it is as it must be.
    pub fn check(&self) -> Result<(), BadUser> {
        check_name(&self.login)?;
        self.groups.iter().try_for_each(|group| check_name(group))?;
        if self.groups.len() > MAX_GROUPS {
            return Err(BadUser::Groups(self.groups.len()));
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
