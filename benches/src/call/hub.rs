//! The hub that receives the records: a real `tampu up` in directories of its own.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    call::{
        marks::{DOMAIN, TEXT, lines},
        stage::this_program,
    },
    disk::run_dir,
};

/// Text that a hub prints when its roles run.
const UP: &str = "' is up: ";
/// The configuration without a quota. The quota limits programs that log a million records without a pause, and here
/// such a program is measured.
const CONFIG: &str = "[log]\nlocal = \"Warning\"\nlevel = \"Off\"\n[quota]\nbytes_per_s = 0\nrecords_per_s = 0\n";
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// A hub. It ends when dropped, and its directory is removed.
#[derive(Debug)]
pub struct Hub {
    child: Child,
    _dir: tempfile::TempDir,
    run: tempfile::TempDir,
    tampu: PathBuf,
    within: Vec<String>,
}

impl Hub {
    /// Starts a hub with these arguments and waits until it runs. `within` is the command that runs the hub, such as
    /// `ip netns exec`, or nothing. Its data is below `data`, on the measured disk.
    pub fn start(tampu: &Path, data: &Path, within: &[String], arguments: &[&str]) -> Result<Hub, String> {
        let dir = tempfile::Builder::new().prefix("tampu-bench-").tempdir_in(data);
        let dir = dir.map_err(|e| format!("{}: {e}", data.display()))?;
        let run = run_dir().map_err(|e| format!("a run-time directory: {e}"))?;
        let said = dir.path().join("said");
        let log = File::create(&said).map_err(|e| format!("{}: {e}", said.display()))?;
        let config = dir.path().join("tampu.toml");
        fs::write(&config, CONFIG).map_err(|e| format!("{}: {e}", config.display()))?;
        // The process becomes the program that this one was started as. It ends with the bench, however that ends.
        let mut command = this_program("become")?;
        command.args(within).arg(tampu).arg("up").arg("--in-process").arg("--data").arg(dir.path().join("data"));
        command.arg("--config").arg(config).args(arguments);
        clean(&mut command, run.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|e| format!("{}: {e}", tampu.display()))?;
        let mut hub = Hub { child, _dir: dir, run, tampu: tampu.to_owned(), within: within.to_vec() };
        let until = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&said).unwrap_or_default();
            if text.contains(UP) {
                return Ok(hub);
            }
            let ended = hub.child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || Instant::now() > until {
                return Err(format!("the hub did not come up: {}", text.trim()));
            }
            thread::sleep(LOOK);
        }
    }

    /// Returns its run-time directory.
    pub fn run(&self) -> PathBuf {
        self.run.path().to_owned()
    }

    /// Number of of that the measured records of a process the collector keeps.
    pub fn kept(&self, process: &str) -> Result<u64, String> {
        let mut command = match self.within.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&self.tampu);
                command
            }
            None => Command::new(&self.tampu),
        };
        command.args(["log", "query", "--process", process, "--contains", TEXT, "--limit", "0", "--json"]);
        clean(&mut command, self.run.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| format!("{}: {e}", self.tampu.display()))?;
        let found = match child.stdout.take() {
            Some(output) => lines(output),
            None => Ok(0),
        };
        let ended = child.wait().map_err(|e| e.to_string())?;
        if ended.success() { found.map_err(|e| e.to_string()) } else { Err(format!("tampu log query: {ended}")) }
    }
}

/// Removes the settings of the caller's own installation from a command's environment.
fn clean(command: &mut Command, run: &Path) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TAMPU_")) {
        command.env_remove(name);
    }
    command.env("TAMPU_RUN_DIR", run).env("TAMPU_DOMAIN", DOMAIN);
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
