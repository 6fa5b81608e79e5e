//! The one matcher of wildcards: `*` matches any characters, `?` one character.
//!
//! [`matches`] and [`matches_ignoring_case`] compare texts, and [`Glob`] keeps a pattern for many comparisons.
//! [`matches_path`] compares names with parts between slashes, where `**` matches any number of parts.
//!
//! A comparison goes back only to the last star, so it takes no longer than the product of both lengths. Nothing is
//! allocated. Regular expressions were rejected for names: `.` is in most of them, and would match any character.

use std::fmt;

/// Returns true if `text` matches `pattern`; upper and lower case differ.
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_characters(pattern.chars(), text.chars())
}

/// Returns true if `text` matches `pattern`; upper and lower case are the same.
pub fn matches_ignoring_case(pattern: &str, text: &str) -> bool {
    let lower = |text: &'_ str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    // A lower-case pattern compares against the characters of the text as they are folded one by one.
    matches_characters(lower(pattern).chars(), text.chars().flat_map(char::to_lowercase))
}

/// Returns true if the text holds a wildcard, so that it is not simply a name.
pub fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// A pattern kept for many comparisons, in which upper and lower case are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    lower: Box<str>,
}

impl Glob {
    /// Every text is a pattern.
    pub fn ignoring_case(pattern: &str) -> Glob {
        Glob { lower: pattern.chars().flat_map(char::to_lowercase).collect::<String>().into() }
    }

    /// Returns true if `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        matches_characters(self.lower.chars(), text.chars().flat_map(char::to_lowercase))
    }

    /// The only text that matches, in lower case, if the pattern holds no wildcard.
    pub fn exact(&self) -> Option<&str> {
        (!has_wildcard(&self.lower)).then_some(&self.lower)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.lower)
    }
}

fn matches_characters<P, T>(mut pattern: P, mut text: T) -> bool
where
    P: Iterator<Item = char> + Clone,
    T: Iterator<Item = char> + Clone,
{
    // Where to continue if the characters after the last star do not match: one character further in the text.
    let mut retry: Option<(P, T)> = None;
    loop {
        let rest = text.clone();
        match (pattern.next(), text.next()) {
            (Some('*'), _) => {
                text = rest;
                retry = Some((pattern.clone(), text.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            (None, None) => return true,
            _ => {
                let Some((after_star, from)) = &mut retry else { return false };
                if from.next().is_none() {
                    return false;
                }
                pattern = after_star.clone();
                text = from.clone();
            }
        }
    }
}

/// Returns true if the parts of `path` match those of `pattern`, both separated by `/`. A part `**` matches any number
/// of parts, also none. Any other part is compared by `part_matches(pattern part, path part)`.
pub fn matches_path(pattern: &str, path: &str, part_matches: impl Fn(&str, &str) -> bool) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    // Where to continue if the parts after the last `**` do not match: one part further in the path.
    let mut retry = None;
    loop {
        let rest = path.clone();
        match (pattern.next(), path.next()) {
            (Some("**"), _) => {
                path = rest;
                retry = Some((pattern.clone(), path.clone()));
            }
            (Some(part), Some(name)) if part_matches(part, name) => {}
            (None, None) => return true,
            _ => {
                let Some((after_stars, from)) = &mut retry else { return false };
                if from.next().is_none() {
                    return false;
                }
                pattern = after_stars.clone();
                path = from.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_of_many_double_stars_compares_few_parts() {
        let (pattern, path) = (["**/a"; 12].join("/") + "/x", ["a"; 60].join("/"));
        let compared = std::cell::Cell::new(0_u32);
        let matched = matches_path(&pattern, &path, |part, name| {
            compared.set(compared.get() + 1);
            part == name
        });
        assert!(!matched && compared.get() <= 25 * 60, "{} comparisons", compared.get());
    }

    #[test]
    fn names_and_patterns_are_compared_without_case() {
        for (pattern, name, expected) in [
            ("control/dv01", "CONTROL/DV01", true),
            ("CONTROL/*", "control/DV01/FrontEnd", true),
            ("*/FrontEnd", "CONTROL/DV01/FrontEnd", true),
            ("DV??", "dv01", true),
            ("DV??", "dv1", false),
            ("*a*b*", "xxaYYbzz", true),
            ("*a*b*", "xxbYYa", false),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("ä*", "ÄRGER", true),
        ] {
            assert_eq!(matches_ignoring_case(pattern, name), expected, "{pattern} {name}");
            assert_eq!(Glob::ignoring_case(pattern).matches(name), expected, "{pattern} {name}");
        }
        assert!(!matches("a*", "A") && matches("a*", "ab"));
        assert_eq!(Glob::ignoring_case("Ab").exact(), Some("ab"));
        assert_eq!(Glob::ignoring_case("A?").exact(), None);
    }

    #[test]
    fn two_stars_stand_for_any_number_of_parts() {
        for (pattern, path, expected) in [
            ("a/**", "a", true),
            ("a/**", "a/b/c", true),
            ("**/c", "a/b/c", true),
            ("a/**/c", "a/c", true),
            ("a/**/c", "a/b/d", false),
            ("a/b*", "a/bc", true),
            ("a/*", "a/b/c", false),
            ("a", "a/b", false),
        ] {
            assert_eq!(matches_path(pattern, path, matches), expected, "{pattern} {path}");
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
            let expected = slow(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(&pattern, &text), expected);
            prop_assert_eq!(matches_ignoring_case(&pattern, &text.to_uppercase()), expected);
        }
    }
}
