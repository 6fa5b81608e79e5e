//! Errors of starting a hub.

use std::{io, net::SocketAddr, path::PathBuf};

use tampu_bulk::transfers::TransfersError;
use tampu_bus::{BusError, access::Denied, connect::NodeError, engine::EngineError};
use tampu_event::history::HistoryError;
use tampu_tango::BridgeError;

use crate::{
    book::BookError, collecting::CollectingError, config::ConfigError, inputs::InputError, private::PrivateError,
    rules::file::PolicyError, setting_changes::ChangeError,
};

/// Errors of starting a hub.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The changed settings are invalid.
    #[error(transparent)]
    Settings(#[from] ChangeError),
    /// The access rules deny something that the configuration needs.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The policy file or a rule of the configuration is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The directory of the data cannot be written.
    #[error("the data directory {path} cannot be written: {why}; name another one with --data DIR (or TAMPU_DATA_DIR)")]
    Data { path: PathBuf, why: io::Error },
    /// The directories of the data cannot be made or shared.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The domain's key cannot be used.
    #[error("the key file {path}: {why}")]
    Key { path: PathBuf, why: String },
    /// The watch of the run-time directory cannot start.
    #[error("the watch of the run-time directory: {0}")]
    RunDirWatch(#[source] io::Error),
    /// The node cannot start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The bus engine cannot start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The bus cannot be joined.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The collector cannot start.
    #[error(transparent)]
    Collecting(#[from] CollectingError),
    /// The history of events cannot start.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The inputs of other programs' logs cannot start.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The bridge to Tango cannot start.
    #[error(transparent)]
    Tango(#[from] BridgeError),
    /// The socket of the gateway cannot be bound.
    #[error("the gateway cannot listen at {path}: {why}; choose a shorter run-time directory, or set [gateway] enabled = false")]
    Gateway { path: PathBuf, why: io::Error },
    /// The gateway cannot serve other hosts.
    #[error("the gateway cannot listen at {address}: {why}; change [gateway] listen or tokens")]
    RemoteGateway { address: SocketAddr, why: io::Error },
    /// The address for metrics cannot be bound.
    #[error(
        "metrics cannot be served at {address}: {why}; give another address with [metrics] listen, or port 0 for any free one"
    )]
    Metrics { address: SocketAddr, why: io::Error },
    /// The logbook cannot start.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The listener of bulk transfers cannot start.
    #[error(transparent)]
    Transfers(#[from] TransfersError),
    /// The system has no more threads.
    #[error("starting the hub's log: {0}")]
    Log(io::Error),
    /// The thread that returns memory cannot be started.
    #[error("starting the thread that returns memory: {0}")]
    Memory(io::Error),
}
