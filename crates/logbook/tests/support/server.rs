//! A PostgreSQL server of the test's own: in a directory of its own, on a unix socket, removed after its last use.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, Weak, atomic::AtomicU32, atomic::Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tampu_logbook::store::postgres::PostgresStore;

/// The time limit for the server's start and end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A PostgreSQL server of its own.
pub struct Server {
    dir: tempfile::TempDir,
    process: Mutex<Option<Child>>,
    next: AtomicU32,
    /// Port for connections by TLS, if there are any.
    port: Option<u16>,
}

/// The one of this process, which all its tests share.
pub fn server() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Server::start());
        *shared = Arc::downgrade(&server);
        server
    })
}

/// A program of the server; Debian keeps them apart from others.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.exists()).collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("there is no {name}: 'scripts/need.sh postgres' installs PostgreSQL"))
}

/// A command that does not run as root, which PostgreSQL refuses, and ends with this process.
fn as_somebody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if rustix::process::getuid().is_root() {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"]);
    }
    command.arg(program).stdin(Stdio::null());
    command
}

impl Server {
    /// Starts a server in a new directory.
    pub fn start() -> Server {
        Server::start_with(None)
    }

    /// Starts a server in a new directory that other hosts would reach by TLS alone, with a password.
    pub fn start_encrypted(certificate: &Path, key: &Path, password: &str) -> Server {
        let server = Server::start_with(Some([certificate, key]));
        let mut client = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
        client.batch_execute(&format!("ALTER USER tampu PASSWORD '{password}'")).unwrap();
        server
    }

    fn start_with(encrypted: Option<[&Path; 2]>) -> Server {
        let dir = tempfile::Builder::new().prefix("tampu-pg").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let made = as_somebody(&program("initdb"))
            .args(["--auth=trust", "--no-sync", "--username=tampu", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(dir.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut port = None;
        if let Some(files) = encrypted {
            for (file, name) in files.into_iter().zip(["server.crt", "server.key"]) {
                let readable = dir.path().join(name);
                fs::copy(file, &readable).unwrap();
                fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
                let mut install = as_somebody(Path::new("install"));
                let installed = install.args(["-m", "600"]).arg(&readable).arg(dir.path().join("data").join(name)).status();
                assert!(installed.unwrap().success());
            }
            let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
            fs::write(dir.path().join("data/pg_hba.conf"), rules).unwrap();
            port = Some(std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        }
        let server = Server { dir, process: Mutex::new(None), next: AtomicU32::new(0), port };
        server.run();
        server
    }

    /// Starts it, and waits until it answers.
    pub fn run(&self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        // A process ends with the thread that started it; this thread lives as long as the process.
        let (dir, (tell, told)) = (self.dir.path().to_owned(), std::sync::mpsc::channel());
        let network = match self.port {
            None => vec!["listen_addresses=".to_owned()],
            Some(port) => ["listen_addresses=127.0.0.1", &format!("port={port}"), "ssl=on"].map(str::to_owned).to_vec(),
        };
        std::thread::spawn(move || {
            let child = as_somebody(&program("postgres"))
                .arg("-D")
                .arg(dir.join("data"))
                .arg("-k")
                .arg(&dir)
                .args(network.iter().flat_map(|setting| ["-c", setting]))
                .args(["-c", "fsync=off", "-c", "max_connections=300", "-c", "shared_buffers=64MB"])
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn()
                .unwrap();
            tell.send(child).unwrap();
            std::thread::park();
        });
        *self.process.lock().unwrap() = Some(told.recv().unwrap());
        let begun = Instant::now();
        while let Err(error) = postgres::Client::connect(&self.address(), postgres::NoTls) {
            let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "{error}\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it at once: connections are cut, transactions rolled back.
    pub fn end(&self) {
        if let Some(mut child) = self.process.lock().unwrap().take() {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            child.wait().unwrap();
        }
    }

    /// The server's address.
    pub fn address(&self) -> String {
        let port = self.port.map(|port| format!(" port={port}")).unwrap_or_default();
        format!("host={} user=tampu dbname=postgres{port}", self.dir.path().display())
    }

    /// The server's address over TCP under this name.
    pub fn address_as(&self, name: &str) -> String {
        format!("host={name} hostaddr=127.0.0.1 port={} user=tampu dbname=postgres", self.port.unwrap_or_default())
    }

    /// The directory of its tables.
    pub fn tables(&self) -> PathBuf {
        self.dir.path().join("data/base")
    }

    /// An unused name of a domain.
    pub fn domain(&self) -> String {
        format!("test{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Logbooks for one caller alone.
    pub fn store(&self) -> PostgresStore {
        PostgresStore::open(&self.address(), &self.domain()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
