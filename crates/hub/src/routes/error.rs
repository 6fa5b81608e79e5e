//! Errors of the routes.

use crate::config::error::ConfigError;

/// Errors of starting the routes.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A thread cannot be started.
    #[error("starting the routes: {0}")]
    Worker(std::io::Error),
}
