//! An attribute's name: `domain/family/member/attribute`.
//!
//! The case is kept for people and is ignored when names are compared, as Tango's users expect. A name in lower case,
//! as most are, is stored once.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// The longest name, in bytes of UTF-8.
pub const NAME_LIMIT: usize = 255;

/// Names of the four parts in messages.
pub(super) const PLACES: [&str; 4] = ["domain", "family", "member", "attribute"];

/// The name of an attribute. Equal names may differ in case.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttributeName {
    text: Box<str>,
    /// The name in lower case, if it differs.
    folded: Option<Box<str>>,
}

/// Error of a text that is not an attribute's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAttributeName {
    /// A name with more or fewer than four parts.
    #[error("'{name}' has {parts} parts between slashes; an attribute's name has four: domain/family/member/attribute")]
    Parts {
        /// Text that was given.
        name: String,
        /// Number of its parts.
        parts: usize,
    },
    /// A part is empty.
    #[error("the {place} of '{name}' is empty")]
    Empty {
        /// Text that was given.
        name: String,
        /// Name of the part.
        place: &'static str,
    },
    /// A part contains a character that is forbidden in names.
    #[error("the {place} of {name:?} holds {character:?}, which no name can")]
    Character {
        /// Text that was given.
        name: String,
        /// Name of the part.
        place: &'static str,
        /// Character that is not allowed.
        character: char,
    },
    /// A part begins or ends with a blank.
    #[error("the {place} of '{name}' begins or ends with a blank")]
    Blank {
        /// Text that was given.
        name: String,
        /// Name of the part.
        place: &'static str,
    },
    /// A name that is too long.
    #[error("the name '{start}...' has {length} bytes; {NAME_LIMIT} are allowed")]
    Long {
        /// Beginning of the text.
        start: String,
        /// Length of the text in bytes.
        length: usize,
    },
}

/// Wildcards of patterns, and characters at which other systems cut names.
fn forbidden(character: char) -> bool {
    character.is_control() || matches!(character, '*' | '?' | '#' | '$')
}

pub(super) fn fold(text: &str) -> Option<Box<str>> {
    let lower = text.to_lowercase();
    (lower != text).then(|| lower.into_boxed_str())
}

impl AttributeName {
    /// Checks a name.
    pub fn new(text: impl AsRef<str>) -> Result<AttributeName, BadAttributeName> {
        let text = text.as_ref();
        if text.len() > NAME_LIMIT {
            return Err(BadAttributeName::Long { start: text.chars().take(20).collect(), length: text.len() });
        }
        let parts = text.split('/').count();
        let name = || text.to_owned();
        if parts != PLACES.len() {
            return Err(BadAttributeName::Parts { name: name(), parts });
        }
        for (part, place) in text.split('/').zip(PLACES) {
            if part.is_empty() {
                return Err(BadAttributeName::Empty { name: name(), place });
            }
            if let Some(character) = part.chars().find(|&character| forbidden(character)) {
                return Err(BadAttributeName::Character { name: name(), place, character });
            }
            if part.trim() != part {
                return Err(BadAttributeName::Blank { name: name(), place });
            }
        }
        Ok(AttributeName { text: text.into(), folded: fold(text) })
    }

    /// Returns the name in its original spelling.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name by which it is compared: in lower case.
    pub fn folded(&self) -> &str {
        self.folded.as_ref().unwrap_or(&self.text)
    }

    /// The device: everything before the last slash, as given.
    pub fn device(&self) -> &str {
        self.text.rsplit_once('/').map_or("", |(device, _)| device)
    }

    /// The last part, as given.
    pub fn attribute(&self) -> &str {
        self.text.rsplit_once('/').map_or("", |(_, attribute)| attribute)
    }
}

impl PartialEq for AttributeName {
    fn eq(&self, other: &AttributeName) -> bool {
        self.folded() == other.folded()
    }
}

impl Eq for AttributeName {}

impl Hash for AttributeName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded().hash(state);
    }
}

impl PartialOrd for AttributeName {
    fn partial_cmp(&self, other: &AttributeName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AttributeName {
    fn cmp(&self, other: &AttributeName) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl fmt::Display for AttributeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for AttributeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttributeName({})", self.text)
    }
}

impl FromStr for AttributeName {
    type Err = BadAttributeName;

    fn from_str(text: &str) -> Result<AttributeName, BadAttributeName> {
        AttributeName::new(text)
    }
}

impl TryFrom<String> for AttributeName {
    type Error = BadAttributeName;

    fn try_from(text: String) -> Result<AttributeName, BadAttributeName> {
        AttributeName::new(text)
    }
}

impl From<AttributeName> for String {
    fn from(name: AttributeName) -> String {
        name.text.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn case_is_kept_and_does_not_count() {
        let name = AttributeName::new("SR/Vacuum/C01-1/Pressure").unwrap();
        assert_eq!(name.as_str(), "SR/Vacuum/C01-1/Pressure");
        assert_eq!((name.device(), name.attribute()), ("SR/Vacuum/C01-1", "Pressure"));
        assert_eq!(name, "sr/vacuum/c01-1/pressure".parse().unwrap());
        assert_ne!(name, "sr/vacuum/c01-2/pressure".parse().unwrap());
        assert!(HashSet::from([name]).contains(&"sr/VACUUM/c01-1/pressure".parse::<AttributeName>().unwrap()));
        assert_eq!(AttributeName::new("É/b/c/d").unwrap(), AttributeName::new("é/b/c/d").unwrap());
    }

    #[test]
    fn what_is_no_name_is_told_with_its_place() {
        let told = |text: &str| AttributeName::new(text).unwrap_err().to_string();
        assert!(told("a/b/c").contains("3 parts"));
        assert!(told("").contains("1 parts"));
        assert!(told("tango://h:1/a/b/c/d").contains("7 parts"));
        assert!(told("a//c/d").contains("the family of"));
        assert!(told("a/b/*/d").contains("the member of \"a/b/*/d\" holds '*'"));
        assert!(told("a/b/c/d\n").contains("the attribute of"));
        assert!(told("a/b/c/ d").contains("begins or ends with a blank"));
        assert!(told(&format!("a/b/c/{}", "d".repeat(250))).contains("256 bytes"));
    }
}
