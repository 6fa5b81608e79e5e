//! Patterns of attribute names: `*/vacuum/*/pressure`, `sr/*`, `*/mount/*`.
//!
//! `*` stands for any characters of one part and `?` for one. A last part that is `*` alone also stands for all parts that
//! are missing behind it, so that `*/mount/*` are all attributes of the mounts and `*` is everything.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::name::{AttributeName, NAME_LIMIT, PLACES, fold};

/// A pattern of attribute names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttributePattern {
    text: String,
    /// In lower case.
    folded: String,
    /// It holds neither `*` nor `?`: it is a name.
    exact: bool,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no pattern of attributes: {why}")]
pub struct BadPattern {
    /// The text, or how it begins.
    pub text: String,
    /// What is wrong with it.
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
            return bad(format!("it has {} parts; write domain/family/member/attribute, or end it with '/*'", parts.len()));
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
        let exact = !text.contains(['*', '?']);
        Ok(AttributePattern { text, folded, exact })
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one name it matches, in lower case, if it is a name.
    pub fn exact(&self) -> Option<&str> {
        self.exact.then_some(&self.folded)
    }

    /// Whether a name falls under it; case does not count.
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
            if !names.next().is_some_and(|name| glob(part.as_bytes(), name.as_bytes())) {
                return false;
            }
        }
        names.next().is_none()
    }
}

/// Whether a text falls under a pattern with `*` and `?`. Goes back only to the last star, so it takes no longer than the product
/// of the lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') => {
                at += 1;
                from += character(text, from);
            }
            Some(&byte) if byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, star_from)) = star else { return false };
                let next = star_from + 1;
                star = Some((star_at, next));
                (at, from) = (star_at + 1, next);
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// How many bytes the character at this place takes.
fn character(text: &[u8], at: usize) -> usize {
    1 + text[at + 1..].iter().take_while(|&&byte| byte & 0xc0 == 0x80).count()
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
    use proptest::prelude::*;

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
        for (text, why) in [("a/b", "2 parts"), ("a/b/c/d/e", "5 parts"), ("a//*", "family is empty"), ("", "1 parts")] {
            let told = AttributePattern::new(text).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
    }

    /// The plain definition, for short texts.
    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skipped| slow(rest, &text[skipped..])),
            Some((b'?', rest)) => !text.is_empty() && slow(rest, &text[1..]),
            Some((byte, rest)) => text.first() == Some(byte) && slow(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn globs_are_what_they_are_defined_to_be(pattern in "[ab*?]{0,6}", text in "[ab]{0,7}") {
            prop_assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), slow(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
