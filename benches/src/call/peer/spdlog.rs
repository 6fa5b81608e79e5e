//! spdlog, in a C++ program of its own (`benches/peers/spdlog.cpp`) with the same measurement and the same account.
//! `make bench-call` builds it beside this program.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::call::cost::Ask;

/// Returns the default path of the program.
pub fn beside() -> PathBuf {
    let here = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("bench-spdlog")));
    here.unwrap_or_else(|| PathBuf::from("bench-spdlog"))
}

/// Returns the command that measures it, without the argument `--account`.
pub fn command(program: &Path, ask: &Ask) -> Result<Command, String> {
    if !program.exists() {
        return Err(format!("{} is not there: make bench-spdlog builds it", program.display()));
    }
    let mut command = Command::new(program);
    command.arg(&ask.peer).args([ask.threads.to_string(), ask.calls.to_string(), ask.rounds.to_string()]);
    command.arg(ask.records.to_string()).arg(&ask.sink);
    Ok(command)
}
