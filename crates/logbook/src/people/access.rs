//! Who may do what in a book, and how long its entries can be changed: what is kept of it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    Right,
    user::{BadUser, check_name},
};

/// The kind of the store's records, which are named by the book's name in lower case.
pub const KIND: &str = "access";
/// What holds for books of which nothing is said.
pub const EVERY_BOOK: &str = "*";
/// Grants of a book.
pub const MAX_GRANTS: usize = 1000;

/// Whom a right is given to. Written `user:zoe`, `group:operators`, `everybody`, `guests`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Subject {
    /// A user.
    User(String),
    /// The users of a group.
    Group(String),
    /// All who have logged in.
    Everybody,
    /// All, also who has not logged in.
    Guests,
}

/// Why a text is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is nobody: write user:LOGIN, group:NAME, everybody or guests")]
pub struct BadSubject(pub String);

impl FromStr for Subject {
    type Err = BadSubject;

    fn from_str(text: &str) -> Result<Subject, BadSubject> {
        let named = |name: &str| check_name(name).map(|()| name.to_owned()).map_err(|_: BadUser| BadSubject(text.to_owned()));
        match text.split_once(':') {
            Some(("user", name)) => named(name).map(Subject::User),
            Some(("group", name)) => named(name).map(Subject::Group),
            None if text == "everybody" => Ok(Subject::Everybody),
            None if text == "guests" => Ok(Subject::Guests),
            _ => Err(BadSubject(text.to_owned())),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::User(name) => write!(f, "user:{name}"),
            Subject::Group(name) => write!(f, "group:{name}"),
            Subject::Everybody => f.write_str("everybody"),
            Subject::Guests => f.write_str("guests"),
        }
    }
}

impl TryFrom<String> for Subject {
    type Error = BadSubject;

    fn try_from(text: String) -> Result<Subject, BadSubject> {
        text.parse()
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> String {
        subject.to_string()
    }
}

/// Rights given to somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// To whom.
    pub to: Subject,
    /// Which.
    pub may: Vec<Right>,
}

/// How long entries can be changed and deleted, by whoever has the right to. What they said before stays in their history always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EditPolicy {
    /// At any time.
    #[default]
    Free,
    /// One's own for so many minutes after they were written; whoever may edit everybody's, at any time.
    OwnWithin {
        /// Minutes.
        minutes: u32,
    },
    /// Everybody's for so many hours after they were written, then only by who has the book's administration.
    LockedAfter {
        /// Hours.
        hours: u32,
    },
    /// Never: what is wrong is put right by a reply.
    AppendOnly,
}

/// Who may do what in a book.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Rights, by whom they are given to; they add up.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// How long entries can be changed.
    #[serde(default)]
    pub policy: EditPolicy,
}

impl Access {
    /// What holds where nobody has said anything: who has logged in may read, write and edit their own; guests what the site lets them.
    pub fn usual(guests: &[Right]) -> Access {
        let everybody = Grant { to: Subject::Everybody, may: vec![Right::Read, Right::Write, Right::EditOwn] };
        let guests = Grant { to: Subject::Guests, may: guests.to_vec() };
        Access { grants: vec![everybody, guests], policy: EditPolicy::Free }
    }

    /// The rights of somebody; an empty login is a guest.
    pub fn rights(&self, login: &str, groups: &[String]) -> Vec<Right> {
        let holds = |to: &Subject| match to {
            Subject::User(name) => !login.is_empty() && name == login,
            Subject::Group(name) => groups.contains(name),
            Subject::Everybody => !login.is_empty(),
            Subject::Guests => true,
        };
        let given = |right: &Right| self.grants.iter().any(|grant| holds(&grant.to) && grant.may.contains(right));
        Right::ALL.into_iter().filter(given).collect()
    }

    /// Gives somebody these rights and no others; none takes the grant away.
    pub fn give(&mut self, to: Subject, may: Vec<Right>) {
        self.grants.retain(|grant| grant.to != to);
        if !may.is_empty() {
            self.grants.push(Grant { to, may });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_add_up() {
        let access: Access = serde_json::from_str(
            r#"{"grants": [{"to": "guests", "may": ["read"]}, {"to": "group:ops", "may": ["write", "edit-own"]},
                {"to": "user:zoe", "may": ["admin"]}], "policy": {"kind": "own-within", "minutes": 30}}"#,
        )
        .unwrap();
        let ops = ["ops".to_owned()];
        assert_eq!(access.rights("", &[]), [Right::Read]);
        assert_eq!(access.rights("max", &ops), [Right::Read, Right::Write, Right::EditOwn]);
        assert_eq!(access.rights("zoe", &[]), [Right::Read, Right::Admin]);
        assert_eq!(access.policy, EditPolicy::OwnWithin { minutes: 30 });
        assert_eq!(serde_json::from_str::<Access>(&serde_json::to_string(&access).unwrap()).unwrap(), access);
        let usual = Access::usual(&[]);
        assert!(usual.rights("", &[]).is_empty() && usual.rights("max", &[]).contains(&Right::EditOwn));
    }

    #[test]
    fn nobody_is_given_nothing() {
        for text in ["", "zoe", "user:", "user: zoe", "group:a:b", "Guests", "everyone"] {
            assert!(text.parse::<Subject>().is_err(), "{text:?}");
        }
        for text in
            [r#"{"grants": [{"to": "guests", "may": ["fly"]}]}"#, r#"{"policy": {"kind": "sometimes"}}"#, r#"{"polici": {}}"#]
        {
            assert!(serde_json::from_str::<Access>(text).is_err(), "{text}");
        }
        let mut access = Access::default();
        access.give(Subject::Guests, vec![Right::Read]);
        access.give(Subject::Guests, vec![]);
        assert!(access.grants.is_empty());
    }
}
