//! The start of the measured programs, and the reading of their accounts.
//!
//! The destination of the log's text is part of the measurement, so standard output and error belong to the log. The
//! account is a JSON file.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use clap::ValueEnum;
use serde::de::DeserializeOwned;

use crate::{
    call::{amount::Amount, cost, marks::DOMAIN, paper},
    clock::monotonic,
};

/// Time limit of a role, after which it counts as failed.
const PATIENCE: Duration = Duration::from_secs(600);

/// Reads the account of a process; `None` if it left none.
pub fn take<T: DeserializeOwned>(path: &Path) -> Option<Result<T, String>> {
    let text = fs::read(path).ok()?;
    // If this fails, the whole directory is removed later.
    let _ = fs::remove_file(path);
    Some(serde_json::from_slice(&text).unwrap_or_else(|e| Err(format!("an account that cannot be read: {e}"))))
}

/// Returns a command that starts this program in a role.
pub fn this_program(role: &str) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program's own path: {e}"))?;
    let mut command = Command::new(program);
    command.arg("role").arg(role);
    Ok(command)
}

/// Directories of a process to be started.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its run-time directory, which selects its hub.
    pub run: PathBuf,
    /// Directory for its account and its text.
    pub dir: PathBuf,
}

impl Stage {
    /// Runs a command that takes `--account`, with its standard output and error going to `sink`, and reads its
    /// account.
    pub fn play<T: DeserializeOwned>(&self, mut command: Command, sink: &Path) -> Result<T, String> {
        let path = self.dir.join(format!("account-{}", monotonic()));
        let to = |path: &Path| {
            let append = File::options().append(true).create(true).open(path);
            append.map(Stdio::from).map_err(|e| format!("{}: {e}", path.display()))
        };
        command.arg("--account").arg(&path).stdin(Stdio::null()).stdout(to(sink)?).stderr(to(sink)?);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TAMPU_")) {
            command.env_remove(name);
        }
        command.env("TAMPU_RUN_DIR", &self.run).env("TAMPU_DOMAIN", DOMAIN);
        let mut child = command.spawn().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
        let ended = wait(&mut child, PATIENCE)?;
        take(&path).filter(|_| ended.success()).unwrap_or_else(|| {
            let text = fs::read(sink).unwrap_or_default();
            let last = String::from_utf8_lossy(&text[text.len().saturating_sub(400)..]).trim().to_owned();
            Err(format!("{ended}: {last}"))
        })
    }
}

/// Waits for the end of a process, but not for ever.
fn wait(child: &mut std::process::Child, patience: Duration) -> Result<std::process::ExitStatus, String> {
    let until = std::time::Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) if std::time::Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {patience:?}"));
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Returns the command of a row.
pub fn program_command(row: &paper::Row, amount: &Amount, sink: &Path, name: &str) -> Result<Command, String> {
    let mut command = this_program("program")?;
    command.args(["--place", &word(&row.place), "--what", &word(&row.what), "--name", name]);
    command.args(["--threads", &row.threads.to_string(), "--calls", &amount.calls.to_string()]);
    command.args(["--seconds", &amount.seconds.to_string()]).arg("--sink").arg(sink);
    Ok(command)
}

/// Returns the command that measures a logger.
pub fn cost_command(ask: &cost::Ask) -> Result<Command, String> {
    let mut command = this_program("cost")?;
    command.args(["--peer", &ask.peer, "--threads", &ask.threads.to_string(), "--calls", &ask.calls.to_string()]);
    command.args(["--rounds", &ask.rounds.to_string(), "--records", &ask.records.to_string()]).arg("--sink").arg(&ask.sink);
    if ask.brief {
        command.arg("--brief");
    }
    Ok(command)
}

/// Returns the word of an option's value.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
