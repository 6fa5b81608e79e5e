//! Joining the bus, for programs that use nothing else of it.

use tampu_bus::{
    BusError, Participant,
    connect::{BadEnvironment, Settings},
};

/// Errors of [`join`].
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// An environment variable is invalid.
    #[error(transparent)]
    Environment(#[from] BadEnvironment),
    /// The name is not a source name.
    #[error(transparent)]
    Name(#[from] tampu_types::identity::BadName),
    /// The domain cannot be joined.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Joins the domain that the environment names, under this source name.
///
/// [`tampu_bus::connect`] lists the variables: `TAMPU_DOMAIN` (default `local`), and for a hub on another host
/// `TAMPU_HUB` and `TAMPU_KEY`. Programs on one host find each other without a hub.
pub fn join(source: &str) -> Result<Participant, JoinError> {
    Ok(Participant::open(Settings::from_env()?, source.parse()?)?)
}
