//! Roles of the processes of the bench.
//!
//! The destination of the log's text is part of the measurement, so standard output and error belong to the log. The
//! account is a JSON file.

use std::{fs, os::unix::process::CommandExt, path::Path, process::Command};

use clap::Subcommand;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;

use crate::call::{cost, delay, network, peer, program};

/// Work of a process; the bench passes it, not people.
#[derive(Debug, Clone, Subcommand)]
pub enum Role {
    /// Logs as a row of the published table says.
    #[command(hide = true)]
    Program(program::Ask),
    /// Logs through a logger, in every way.
    #[command(hide = true)]
    Cost(cost::Ask),
    /// In a network of its own: measures with a collector that is far away.
    #[command(hide = true)]
    Network(network::Ask),
    /// Carries bytes, late.
    #[command(hide = true)]
    Delay(delay::Ask),
    /// Becomes another program, and dies with the bench.
    #[command(hide = true)]
    Become {
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

impl Role {
    pub fn play(&self) -> Result<(), String> {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("death signal: {e}"))?;
        match self {
            Role::Program(ask) => give(&ask.account, &program::run(ask)),
            Role::Cost(ask) => give(&ask.account, &peer::run(ask)),
            Role::Network(ask) => give(&ask.account, &network::run(ask)),
            Role::Delay(ask) => delay::run(ask),
            Role::Become { command } => {
                let Some((program, arguments)) = command.split_first() else { return Err("nothing to become".to_owned()) };
                Err(format!("{program}: {}", Command::new(program).args(arguments).exec()))
            }
        }
    }
}

/// Writes an account, or the error that prevented it.
fn give<T: Serialize>(path: &Path, account: &Result<T, String>) -> Result<(), String> {
    let text = serde_json::to_vec(account).map_err(|e| e.to_string())?;
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
