//! The processes of one measurement: this process starts them, and ends them by closing their standard input. Each
//! reports one JSON object.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tampu_bus::{connect::Settings, run_dir::RunDir};
use tampu_types::Domain;

use crate::{
    failure::{Failure, Outcome},
    measure::{self, Usage},
};

/// Time limit for the start of a hub.
const STARTING: Duration = Duration::from_secs(20);

/// Configuration of a hub that logs nothing itself and keeps all records.
const HUB: &str = "[log]\nlocal = \"Warning\"\nlevel = \"Off\"\n[quota]\nbytes_per_s = 0\nrecords_per_s = 0\n";

/// Directories and a domain for one measurement; removed at its end.
pub struct Scene {
    directory: PathBuf,
    pub domain: Domain,
    /// Further lines of the configuration of its hubs.
    config: &'static str,
}

/// Lines by which the node keeps nothing either while no collector is there.
const NO_SPOOL: &str = "[spool]\nenabled = false\n";

impl Scene {
    /// A place below this directory, or below the system's for temporary files.
    pub fn new(below: Option<&Path>) -> Result<Scene, Failure> {
        let below = below.map_or_else(std::env::temp_dir, Path::to_owned);
        let directory = below.join(format!("tampu-perf-{}", std::process::id()));
        std::fs::create_dir_all(&directory).map_err(|error| Failure::failed(directory.display(), error))?;
        let domain = Domain::new("perf").map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Scene { directory, domain, config: "" })
    }

    /// Records that no collector keeps are kept by nobody.
    pub fn without_spool(mut self) -> Scene {
        self.config = NO_SPOOL;
        self
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Returns a directory in memory if there is one: sockets and loans must not count in the measurement of the disk.
    pub fn run_dir(&self) -> PathBuf {
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm } else { &self.directory };
        base.join(format!("tampu-perf-{}", std::process::id()))
    }

    /// Returns the settings of the scene's processes.
    pub fn config(&self) -> Settings {
        Settings::new(self.domain.clone(), RunDir::at(self.run_dir()))
    }

    /// Starts this program as a part of the scene.
    pub fn start(&self, name: &str, arguments: &[&str]) -> Result<Worker, Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::failed("this program's own file", error))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("TAMPU_RUN_DIR", self.run_dir())
            .env("TAMPU_DATA_DIR", self.data())
            .env("TAMPU_DOMAIN", self.domain.as_str())
            .env_remove("TAMPU_HUB")
            .env_remove("TAMPU_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| Failure::failed(format!("starting the {name}"), error))?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Ok(Worker { name: name.to_owned(), child, input, output })
    }

    /// Starts a hub with a node and waits until it serves.
    pub fn hub(&self, roles: &str) -> Result<Worker, Failure> {
        let mut hub = self.start_hub(roles)?;
        hub.await_work(|| self.config().run_dir.domain(&self.domain).is_ok_and(|dir| dir.node_answers()))?;
        Ok(hub)
    }

    /// Starts a hub.
    pub fn start_hub(&self, roles: &str) -> Result<Worker, Failure> {
        let config = self.directory.join("hub.toml");
        std::fs::write(&config, format!("{HUB}{}", self.config)).map_err(|error| Failure::failed(config.display(), error))?;
        self.start(roles, &["up", "--in-process", "--quiet", "--roles", roles, "--config", &config.to_string_lossy()])
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // If removing fails, the files remain in a directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
        let _ = std::fs::remove_dir_all(self.run_dir());
    }
}

/// One process of a scene; killed if it still runs when this is dropped.
pub struct Worker {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<std::process::ChildStdout>>,
}

impl Worker {
    /// Returns its resource usage so far.
    pub fn usage(&self) -> Usage {
        measure::usage(self.child.id()).unwrap_or_default()
    }

    /// Sends it a signal: one that has ended meanwhile is past being stopped.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until it works; returns an error if it ends first or takes too long.
    pub fn await_work(&mut self, mut works: impl FnMut() -> bool) -> Outcome {
        let until = Instant::now() + STARTING;
        while !works() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::Failed(format!("the measurement's {} ended: {status}", self.name)));
            }
            if Instant::now() > until {
                return Err(Failure::Failed(format!("the measurement's {} does not answer after {STARTING:?}", self.name)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Starts its work. A process that has ended is noticed when its report is read.
    pub fn begin(&mut self) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(b"begin\n");
        }
    }

    /// Requests the end of its work.
    pub fn finish(&mut self) {
        self.input = None;
    }

    /// Returns its next line, as JSON.
    pub fn report(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        let read = self.output.as_mut().map(|output| output.read_line(&mut line));
        match read {
            Some(Ok(length)) if length > 0 => {
                serde_json::from_str(&line).map_err(|error| Failure::failed(format!("the {}'s report", self.name), error))
            }
            _ => Err(Failure::Failed(format!("the {} ended without a report", self.name))),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
