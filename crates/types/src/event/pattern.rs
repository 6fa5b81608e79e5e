//! Patterns of attribute names: `*/vacuum/*/pressure`, `sr/*`, `*/mount/*`.
//!
//! `*` matches any characters of one part and `?` one character. A last part that is `*` alone also matches all missing
//! parts behind it. So `*/mount/*` are all attributes of the mounts, and `*` is everything.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::name::{AttributeName, NAME_LIMIT, PLACES, fold};
use crate::glob;

/// A pattern of attribute names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttributePattern {
    text: String,
    /// The pattern in lower case.
    folded: String,
    /// True without `*` and `?`: the pattern is a name.
    exact: bool,
}

/// Error of a text that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a pattern of attributes: {why}")]
pub struct BadPattern {
    /// The text, or how it begins.
    pub text: String,
    /// Defect of the text.
    pub why: String,
}

impl AttributePattern {
    /// Checks a pattern. An attribute's name is one, which only that name matches.
    pub fn new(text: impl Into<String>) -> Result<AttributePattern, BadPattern> {
        let text: String = text.into();
        let bad = |why: String| Err(BadPattern { text: text.chars().take(60).collect(), why });
        if text.len() > NAME_LIMIT {
            return bad(format!("it has {} bytes; {NAME_LIMIT} are allowed", text.len()));
        }
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() > PLACES.len() || (parts.len() < PLACES.len() && parts.last() != Some(&"*")) {
            let count = if parts.len() == 1 { "1 part".to_owned() } else { format!("{} parts", parts.len()) };
            return bad(format!("it has {count}; write domain/family/member/attribute, or end it with '/*'"));
        }
        for (part, place) in parts.iter().zip(PLACES) {
            if part.is_empty() {
                return bad(format!("its {place} is empty"));
            }
            if part.chars().any(char::is_control) {
                return bad(format!("its {place} holds a control character"));
            }
        }
        let folded = fold(&text).map_or_else(|| text.clone(), String::from);
        let exact = !glob::has_wildcard(&text);
        Ok(AttributePattern { text, folded, exact })
    }

    /// Returns the pattern in its original spelling.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one name it matches, in lower case, if it is a name.
    pub fn exact(&self) -> Option<&str> {
        self.exact.then_some(&self.folded)
    }

    /// Returns true if the name matches the pattern; case does not count.
    pub fn matches(&self, name: &AttributeName) -> bool {
        if self.exact {
            return self.folded == name.folded();
        }
        let mut parts = self.folded.split('/').peekable();
        let mut names = name.folded().split('/');
        while let Some(part) = parts.next() {
            if part == "*" && parts.peek().is_none() {
                return true;
            }
            if !names.next().is_some_and(|name| glob::matches(part, name)) {
                return false;
            }
        }
        names.next().is_none()
    }
}

impl fmt::Display for AttributePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for AttributePattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<AttributePattern, BadPattern> {
        AttributePattern::new(text)
    }
}

impl TryFrom<String> for AttributePattern {
    type Error = BadPattern;

    fn try_from(text: String) -> Result<AttributePattern, BadPattern> {
        AttributePattern::new(text)
    }
}

impl From<AttributePattern> for String {
    fn from(pattern: AttributePattern) -> String {
        pattern.text
    }
}

impl From<&AttributeName> for AttributePattern {
    fn from(name: &AttributeName) -> AttributePattern {
        AttributePattern { text: name.as_str().to_owned(), folded: name.folded().to_owned(), exact: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        AttributePattern::new(pattern).unwrap().matches(&AttributeName::new(name).unwrap())
    }

    #[test]
    fn stars_stand_for_one_part_and_the_last_for_the_rest() {
        let name = "SR/Vacuum/C01-1/Pressure";
        for pattern in ["*", "*/vacuum/*/pressure", "sr/*", "*/Vacuum/*", "sr/vac*/c??-1/*s*re", "SR/VACUUM/C01-1/PRESSURE"] {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["*/vacuum/*/temperature", "sr/vac/*", "sr/*/pressure/*", "?/*", "sr/vacuum/c01-1/pressur"] {
            assert!(!matches(pattern, name), "{pattern}");
        }
        assert!(matches("a/b/c/?", "a/b/c/é"));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, why) in [("a/b", "2 parts"), ("a/b/c/d/e", "5 parts"), ("a//*", "family is empty"), ("", "1 part;")] {
            let told = AttributePattern::new(text).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
