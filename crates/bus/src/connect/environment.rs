//! Settings from environment variables.

use std::env;

/// Error for an environment variable with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {why}")]
pub struct BadEnvironment {
    /// Name of the variable.
    pub variable: &'static str,
    /// The reason why its value is invalid.
    pub why: String,
}

/// Reads a variable; an empty one counts as unset.
pub(super) fn read<T>(
    variable: &'static str,
    parse: impl FnOnce(String) -> Result<T, String>,
) -> Result<Option<T>, BadEnvironment> {
    match env::var(variable) {
        Ok(text) if !text.is_empty() => parse(text).map(Some).map_err(|why| BadEnvironment { variable, why }),
        Ok(_) | Err(env::VarError::NotPresent) => Ok(None),
        Err(why) => Err(BadEnvironment { variable, why: why.to_string() }),
    }
}
