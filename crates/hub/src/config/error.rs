//! Errors of the configuration.

use std::path::PathBuf;

/// Errors of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {path}: {why}")]
    File { path: PathBuf, why: String },
    /// The file has an error in one line.
    #[error("the configuration {path}, line {line}: {why}")]
    Line {
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        why: String,
    },
    /// A setting has an invalid value.
    #[error("{setting}: {why}")]
    Value {
        /// The name of the setting.
        setting: String,
        why: String,
    },
}
