//! A hub with only a logbook, started by `tampu up`, and a PostgreSQL server of the bench. Both end when their values
//! are dropped.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tampu_tls::CertificateDir;

use super::http::{Client, Target};
use crate::process::cpu_of;

/// Longest time for a process to start.
const PATIENCE: Duration = Duration::from_secs(120);

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("{what}: not within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that is terminated and waited for on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let _ = self.0.wait();
    }
}

/// A server of a database.
pub struct Server {
    process: Ended,
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts one on a unix socket, with the settings it comes with.
    pub fn start() -> Result<Server, String> {
        let directory = tempfile::Builder::new().prefix("tampu-pg").tempdir().map_err(|error| error.to_string())?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).map_err(|error| error.to_string())?;
        let data = directory.path().join("data");
        let made = as_somebody("initdb")?
            .current_dir(directory.path())
            .args(["--auth=trust", "--username=tampu", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .map_err(|error| format!("initdb: {error}"))?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
        }
        let process = as_somebody("postgres")?
            .current_dir(directory.path())
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(directory.path())
            .args(["-c", "listen_addresses="])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("postgres: {error}"))?;
        let server = Server { process: Ended(process), directory };
        // The server writes `ready` there when it accepts connections.
        let told = data.join("postmaster.pid");
        until("the database's server", || fs::read_to_string(&told).ok()?.contains("ready").then_some(()))?;
        Ok(server)
    }

    /// Processor time of its processes, s.
    pub fn cpu(&self) -> f64 {
        let own = self.process.0.id();
        let is_child = |pid: &u32| parent_of(*pid) == Some(own);
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let children = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child);
        // A process that has just ended is not in it; the hub keeps its connections.
        cpu_of(own) + children.map(cpu_of).filter(|seconds| seconds.is_finite()).sum::<f64>()
    }

    /// Address of the server.
    pub fn address(&self) -> String {
        format!("postgres://tampu@{}/postgres", self.directory.path().display().to_string().replace('/', "%2F"))
    }
}

/// Returns the process that has started another one.
fn parent_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Returns a command for a program of PostgreSQL, which does not run as root. Debian installs these programs in a
/// directory of their own.
fn as_somebody(name: &str) -> Result<Command, String> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.exists()).collect();
    found.sort();
    let program = found.pop().ok_or_else(|| format!("there is no {name}: 'scripts/need.sh postgres' installs PostgreSQL"))?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if rustix::process::getuid().is_root() {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"]);
    }
    command.arg(program).stdin(Stdio::null());
    Ok(command)
}

/// Contents of a hub's file for its owner's programs.
#[derive(Debug, Clone, Deserialize)]
struct HubFile {
    url: String,
    #[serde(default)]
    address: Option<SocketAddr>,
    token: String,
}

pub struct Hub {
    process: Ended,
    /// The address of its logbook.
    pub target: Target,
    /// The token of its owner.
    pub token: String,
    /// Time from its start to its first page, s.
    pub started: f64,
}

/// Logbook of a hub, and the program that starts it.
pub struct Place<'a> {
    pub tampu: &'a Path,
    /// Directory of this hub alone.
    pub directory: &'a Path,
    /// The database; `None` for a directory.
    pub postgres: Option<&'a str>,
    /// The certificates for https; without them the hub speaks http.
    pub certificates: Option<&'a CertificateDir>,
}

/// The domain of the bench.
const DOMAIN: &str = "bench-book";

impl Place<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.tampu);
        command.env("TAMPU_RUN_DIR", self.directory.join("run")).env("TAMPU_DOMAIN", DOMAIN).stdin(Stdio::null());
        command
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Imports a site. Returns the duration in s.
    pub fn import(&self, site: &Path) -> Result<f64, String> {
        let begun = Instant::now();
        let mut command = self.command();
        command
            .args(["book", "import-elog", "--elog-config"])
            .arg(site.join("elogd.cfg"))
            .arg(site.join("logbooks"))
            .arg("--data");
        match self.postgres {
            Some(address) => command.arg(address),
            None => command.arg(self.data()),
        };
        let done = command.output().map_err(|error| format!("{}: {error}", self.tampu.display()))?;
        if done.status.success() {
            Ok(begun.elapsed().as_secs_f64())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    }

    /// Starts the hub.
    pub fn up(&self) -> Result<Hub, String> {
        let config = self.directory.join("tampu.toml");
        let postgres = self.postgres.map_or(String::new(), |address| format!("postgres = \"{address}\"\n"));
        let https = self.certificates.map_or(String::new(), |directory| {
            let (certificate, key) = (directory.host(), directory.host_key());
            format!("certificate = \"{}\"\ncertificate_key = \"{}\"\n", certificate.display(), key.display())
        });
        let text = format!("roles = [\"book\"]\n[book]\nlisten = \"127.0.0.1:0\"\n{postgres}{https}");
        fs::write(&config, text).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        let mut command = self.command();
        command
            .arg("up")
            .arg("--in-process")
            .arg("--config")
            .arg(&config)
            .arg("--data")
            .arg(self.data())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Ended(command.spawn().map_err(|error| format!("{}: {error}", self.tampu.display()))?);
        let told: HubFile = until("the hub's logbook", || {
            serde_json::from_str(&fs::read_to_string(book_json(&self.directory.join("run"))?).ok()?).ok()
        })?;
        let trusted = self.certificates.map(CertificateDir::authority);
        let target = Target::new(&told.url, told.address, trusted.as_deref())?;
        let mut client = Client::new(&target, &told.token)?;
        client.get("/search?limit=20")?;
        if client.is_tls()? != self.certificates.is_some() {
            return Err(format!("{}: the hub speaks another protocol than expected", told.url));
        }
        Ok(Hub { process, target, token: told.token, started: begun.elapsed().as_secs_f64() })
    }
}

/// Returns the file in a run-time directory that holds the logbook's address.
fn book_json(directory: &Path) -> Option<PathBuf> {
    let mut found = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    found.find_map(|path| match path.file_name() {
        Some(name) if name == "book.json" => Some(path),
        _ if path.is_dir() => book_json(&path),
        _ => None,
    })
}

impl Hub {
    /// Returns a connection to the hub.
    pub fn client(&self) -> Result<Client, String> {
        Client::new(&self.target, &self.token)
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Number of times that it has read from files.
    pub fn reads(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/io", self.pid())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("syscr: "));
        line.and_then(|count| count.parse().ok()).unwrap_or(f64::NAN)
    }
}
