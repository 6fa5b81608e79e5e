//! spdlog: a C++ program of its own (`benches/peers/spdlog.cpp`) that measures the same way and gives the same account. `make
//! bench-call` builds it beside this program.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::call::cost::Ask;

/// Where it is, unless said otherwise.
pub fn beside() -> PathBuf {
    let here = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("bench-spdlog")));
    here.unwrap_or_else(|| PathBuf::from("bench-spdlog"))
}

/// The command that measures it; `--account` is still to be added.
pub fn command(program: &Path, ask: &Ask) -> Result<Command, String> {
    if !program.exists() {
        return Err(format!("{} is not there: make bench-spdlog builds it", program.display()));
    }
    let mut command = Command::new(program);
    command.arg(&ask.peer).args([ask.threads.to_string(), ask.calls.to_string(), ask.rounds.to_string()]);
    command.arg(ask.records.to_string()).arg(&ask.sink);
    Ok(command)
}
