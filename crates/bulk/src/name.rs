//! Name of a stream, of a flow or of an offer of control: stored in its original case, compared without case.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// Longest name in bytes.
pub const NAME_LIMIT: usize = 200;

/// Name of a stream, of a flow or of an offer of control: 1 to 200 bytes of UTF-8 without control characters and without
/// `#`. The `#` separates the names of stream and flow where they are written together (`correlator#spectra`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Error for an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid name {0:?} of a stream, a flow or a control: 1 to 200 bytes, no control characters, no '#'")]
pub struct BadBulkName(pub String);

impl Name {
    /// Checks the name.
    pub fn new(name: impl Into<String>) -> Result<Name, BadBulkName> {
        let name = name.into();
        let fits = (1..=NAME_LIMIT).contains(&name.len()) && !name.chars().any(|letter| letter.is_control() || letter == '#');
        if fits { Ok(Name(name)) } else { Err(BadBulkName(name.chars().take(40).collect())) }
    }

    /// Returns the name in its original case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn folded(&self) -> impl Iterator<Item = char> + '_ {
        self.0.chars().flat_map(char::to_lowercase)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.folded().eq(other.folded())
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded().for_each(|letter| letter.hash(state));
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Name {
    type Err = BadBulkName;

    fn from_str(name: &str) -> Result<Name, BadBulkName> {
        Name::new(name)
    }
}

impl TryFrom<String> for Name {
    type Error = BadBulkName;

    fn try_from(name: String) -> Result<Name, BadBulkName> {
        Name::new(name)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_case_and_are_compared_without_it() {
        let (one, other) = (Name::new("Correlator É").unwrap(), Name::new("correlator é").unwrap());
        assert_eq!(one, other);
        assert_eq!(one.to_string(), "Correlator É");
        assert_ne!(one, Name::new("correlator").unwrap());
        for bad in ["", "a#b", "a\nb", &"x".repeat(201)] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
    }
}
