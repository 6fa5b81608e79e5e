//! How a process of the bench is told what to do, and how it gives account.
//!
//! Where the log's text goes is measured, so standard output and error belong to the log; the account is a file of JSON.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use clap::{Subcommand, ValueEnum};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    call::{cost, delay, hub, network, paper, peer, program, scene::Amount},
    process::monotonic,
};

/// A role took so long that something must have gone wrong.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a process is to do; said by the bench, not by people.
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
    /// Does it.
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

/// Leaves an account, or why there is none.
fn give<T: Serialize>(path: &Path, account: &Result<T, String>) -> Result<(), String> {
    let text = serde_json::to_vec(account).map_err(|e| e.to_string())?;
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Takes the account that a process has left; nothing if it left none.
pub fn take<T: DeserializeOwned>(path: &Path) -> Option<Result<T, String>> {
    let text = fs::read(path).ok()?;
    // The directory goes as a whole if this does not succeed.
    let _ = fs::remove_file(path);
    Some(serde_json::from_slice(&text).unwrap_or_else(|e| Err(format!("an account that cannot be read: {e}"))))
}

/// A command that starts this program in a role.
pub fn this_program(role: &str) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program's own path: {e}"))?;
    let mut command = Command::new(program);
    command.arg("role").arg(role);
    Ok(command)
}

/// What a process shall be given beside its arguments.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its run-time directory, which says whose hub it logs to.
    pub run: PathBuf,
    /// For its account and its text.
    pub dir: PathBuf,
}

impl Stage {
    /// Runs a command that takes `--account`, with its standard output and error going to `sink`, and reads its account.
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
        command.env("TAMPU_RUN_DIR", &self.run).env("TAMPU_DOMAIN", hub::DOMAIN);
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

/// The command of a row.
pub fn program_command(row: &paper::Row, amount: &Amount, sink: &Path, name: &str) -> Result<Command, String> {
    let mut command = this_program("program")?;
    command.args(["--place", &word(&row.place), "--what", &word(&row.what), "--name", name]);
    command.args(["--threads", &row.threads.to_string(), "--calls", &amount.calls.to_string()]);
    command.args(["--seconds", &amount.seconds.to_string()]).arg("--sink").arg(sink);
    Ok(command)
}

/// The command that measures a logger.
pub fn cost_command(ask: &cost::Ask) -> Result<Command, String> {
    let mut command = this_program("cost")?;
    command.args(["--peer", &ask.peer, "--threads", &ask.threads.to_string(), "--calls", &ask.calls.to_string()]);
    command.args(["--rounds", &ask.rounds.to_string(), "--records", &ask.records.to_string()]).arg("--sink").arg(&ask.sink);
    if ask.brief {
        command.arg("--brief");
    }
    Ok(command)
}

/// An option's word.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
