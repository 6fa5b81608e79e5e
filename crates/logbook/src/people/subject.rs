//! The receivers of rights.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::user::{BadUser, check_name};

/// The receiver of a right, written `user:zoe`, `group:operators`, `everybody` or `guests`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Subject {
    /// One user, by login.
    User(String),
    /// The users of a group.
    Group(String),
    /// All logged-in users.
    Everybody,
    /// Everybody, including guests.
    Guests,
}

/// An error: the text names no receiver of rights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown receiver of rights '{0}'; write user:LOGIN, group:NAME, everybody or guests")]
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
