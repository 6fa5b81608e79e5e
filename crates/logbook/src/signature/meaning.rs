//! The text of a meaning.

/// Characters of a meaning.
pub const MAX_MEANING: usize = 64;

/// Checks the text of a meaning.
pub fn check_meaning(meaning: &str) -> Result<(), InvalidMeaning> {
    let bad = meaning.is_empty()
        || meaning.chars().count() > MAX_MEANING
        || meaning.trim() != meaning
        || meaning.chars().any(|c| c.is_control() || matches!(c, '=' | ','));
    if bad { Err(InvalidMeaning(meaning.to_owned())) } else { Ok(()) }
}

/// An error: the text cannot be a meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid meaning of a signature '{}'; use 1 to {MAX_MEANING} characters without control characters, '=' and ','", .0.escape_debug())]
pub struct InvalidMeaning(pub String);
