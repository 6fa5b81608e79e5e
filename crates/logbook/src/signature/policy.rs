//! The rules of a book for signatures: the meanings, the people of each, and the lock of signed entries.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::meaning::{InvalidMeaning, check_meaning};
use crate::people::subject::{BadSubject, Subject};

/// A meaning of signatures, and the people who may sign with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Meaning {
    /// The meaning, as `approved`.
    pub meaning: String,
    /// The people who may sign with it. Guests cannot sign.
    pub by: Vec<Subject>,
}

/// The rules of a book for signatures. Without a meaning nobody signs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SigningPolicy {
    /// The meanings, in the order of forms.
    #[serde(default)]
    pub meanings: Vec<Meaning>,
    /// True if a signed entry cannot be edited, moved or deleted: replies correct it.
    #[serde(default)]
    pub lock: bool,
}

/// The reasons to reject a meaning of the command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMeaning {
    #[error(transparent)]
    Meaning(#[from] InvalidMeaning),
    #[error(transparent)]
    Subject(#[from] BadSubject),
    /// Guests have no password.
    #[error("guests cannot sign '{0}', because they have no login")]
    Guests(String),
    /// Two of the same name.
    #[error("the meaning '{0}' is given twice")]
    Twice(String),
}

impl FromStr for Meaning {
    type Err = BadMeaning;

    /// Parses `approved`, which everybody may sign, or `approved=group:leads+user:zoe`.
    fn from_str(text: &str) -> Result<Meaning, BadMeaning> {
        let (meaning, by) = text.split_once('=').unwrap_or((text, "everybody"));
        let by = by.split('+').map(str::parse).collect::<Result<Vec<Subject>, BadSubject>>()?;
        let meaning = Meaning { meaning: meaning.to_owned(), by };
        meaning.check()?;
        Ok(meaning)
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by: Vec<String> = self.by.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.meaning, by.join("+"))
    }
}

impl Meaning {
    fn check(&self) -> Result<(), BadMeaning> {
        check_meaning(&self.meaning)?;
        if self.by.contains(&Subject::Guests) { Err(BadMeaning::Guests(self.meaning.clone())) } else { Ok(()) }
    }

    fn is_for(&self, login: &str, groups: &[String]) -> bool {
        self.by.iter().any(|subject| match subject {
            Subject::User(name) => name == login,
            Subject::Group(name) => groups.contains(name),
            Subject::Everybody => true,
            Subject::Guests => false,
        })
    }
}

impl SigningPolicy {
    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        *self == SigningPolicy::default()
    }

    /// Checks the meanings.
    pub fn check(&self) -> Result<(), BadMeaning> {
        for (at, meaning) in self.meanings.iter().enumerate() {
            meaning.check()?;
            if self.meanings[..at].iter().any(|other| other.meaning == meaning.meaning) {
                return Err(BadMeaning::Twice(meaning.meaning.clone()));
            }
        }
        Ok(())
    }

    /// Returns the meanings with which a user may sign.
    pub fn meanings_of(&self, login: &str, groups: &[String]) -> Vec<&str> {
        if login.is_empty() {
            return Vec::new();
        }
        self.meanings.iter().filter(|meaning| meaning.is_for(login, groups)).map(|meaning| meaning.meaning.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meanings_are_for_the_people_that_they_name() {
        let policy = SigningPolicy {
            meanings: vec!["author".parse().unwrap(), "approved=group:leads+user:zoe".parse().unwrap()],
            lock: true,
        };
        assert!(policy.check().is_ok());
        assert_eq!(policy.meanings_of("max", &[]), ["author"]);
        assert_eq!(policy.meanings_of("max", &["leads".to_owned()]), ["author", "approved"]);
        assert_eq!(policy.meanings_of("zoe", &[]), ["author", "approved"]);
        assert!(policy.meanings_of("", &[]).is_empty());
        assert_eq!(policy.meanings[1].to_string(), "approved=group:leads+user:zoe");
        for bad in ["", "=user:zoe", "a,b", "approved=guests", "approved=zoe", " a", "approved="] {
            assert!(bad.parse::<Meaning>().is_err(), "{bad:?}");
        }
        let twice = SigningPolicy { meanings: vec!["a".parse().unwrap(), "a".parse().unwrap()], lock: false };
        assert!(twice.check().is_err());
    }
}
