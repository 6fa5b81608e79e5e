//! The run-time directory: where the processes of one user on one host meet.
//!
//! ```text
//! <run>/                        $TAMPU_RUN_DIR, else $XDG_RUNTIME_DIR/tampu, else /dev/shm/tampu-<uid>, else /tmp/tampu-<uid>
//!   <domain>/                   0700: its sockets are reachable by the same user only
//!     node.lock                 locked by the host's node during its lifetime; holds its process number
//!     node.sock                 socket at which processes connect to the node; a link to it once the node made this anew
//!     node.restored             time at which the node made a vanished directory anew, else absent
//!     policy.json, qos.json     the access rules and the settings of topics that hold on this host, from the node
//!     node.engine               name of the node's engine, which the processes of the host use too
//!     node.key                  the password for node.sock if the node is open to the network, else absent
//!     peers/<incarnation>.sock  socket of a process without a node; `-direct` for direct links
//!     peers/<incarnation>-zmq   socket of a publisher of the engine zmq; `-zmq-urgent` for urgent samples
//!     shm/<incarnation>-<stream>.ring       loans; `.batches` batches; `<incarnation>-<reader>.progress` a reader's page
//!     rings/<incarnation>/      log records of a process that no collector has read yet (`spec/log-ring.md`)
//! ```
//! Names of files begin with the incarnation that made them. So the files of a killed process can be distinguished from
//! those of a living one, and any process can remove them ([`DomainDir::reclaim`]).
//!
//! The files here are shared memory. On a disk the kernel writes them out now and then, and log calls wait for that. So
//! the default is a directory in memory: `/dev/shm`, if it is a writable tmpfs. The choice depends on nothing that
//! changes while the host runs, such as free space, because all processes must make the same choice.

use std::{
    env, fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tampu_types::{Domain, Incarnation, name};

use crate::host;

/// Longest path of a unix socket: `sun_path` has 108 bytes, the last one is zero.
const SOCKET_PATH_LIMIT: usize = 107;

/// Longest directory name of a domain. With it a socket under `/run/user/<uid>/tampu` stays below the limit.
const DOMAIN_CHUNK_LIMIT: usize = 24;

/// The node's password file, beside its socket.
pub(crate) const NODE_KEY: &str = "node.key";

/// Name of the file with the name that this host's certificate proves.
pub(crate) const NODE_HOST: &str = "node.host";

/// Name of the file with the name of the node's engine.
pub(crate) const NODE_ENGINE: &str = "node.engine";

/// Name of the file with the name of the node's place, which stays when a node ends.
const NODE_PLACE: &str = "node.place";

/// Hexadecimal digits of the name of a place.
const PLACE_LENGTH: usize = 16;

/// Name of the file with the secret of this host's user.
pub(crate) const USER_KEY: &str = "user.key";

/// Name of the file with the node's access rules, as JSON.
pub(crate) const POLICY: &str = "policy.json";

/// File with the multicast groups of the node, and the hosts that each reaches.
pub(crate) const GROUPS: &str = "groups.json";

/// Name of the file with the site's settings of topics, as JSON.
pub(crate) const SITE_SETTINGS: &str = "qos.json";

/// The reason why the run-time directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The system refused.
    #[error("the run-time directory {path}: {why}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// Other users could reach its content, or it belongs to another user.
    #[error("the run-time directory {path} {what}; choose another with TAMPU_RUN_DIR")]
    Unsafe {
        /// The unsafe directory.
        path: PathBuf,
        /// The reason why it is unsafe.
        what: String,
    },
    /// The path is too long for a unix socket.
    #[error("the socket path {path} has {length} bytes, {SOCKET_PATH_LIMIT} are possible; choose a shorter TAMPU_RUN_DIR")]
    Long {
        /// Path of the socket.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RunDirError + '_ {
    |why| RunDirError::Io { path: path.to_owned(), why }
}

/// The run-time directory of one user on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    root: PathBuf,
    origin: Origin,
}

/// The rule by which a run-time directory was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A setting or `TAMPU_RUN_DIR` names it.
    Named,
    /// It lies below the directory that `XDG_RUNTIME_DIR` names.
    Session,
    /// No directory was named, and `/dev/shm` is memory.
    SharedMemory,
    /// No directory was named, and `/dev/shm` cannot be used, for this reason.
    Temporary(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Named => f.write_str("named by TAMPU_RUN_DIR or a setting"),
            Origin::Session => f.write_str("in XDG_RUNTIME_DIR"),
            Origin::SharedMemory => f.write_str("XDG_RUNTIME_DIR is not set, so it is in shared memory"),
            Origin::Temporary(why) => write!(f, "XDG_RUNTIME_DIR is not set, and {why}"),
        }
    }
}

impl RunDir {
    /// Returns the directory that the environment names.
    pub fn from_env() -> RunDir {
        let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        RunDir::choose(named("TAMPU_RUN_DIR"), named("XDG_RUNTIME_DIR"), Path::new("/dev/shm"))
    }

    fn choose(named: Option<PathBuf>, session: Option<PathBuf>, shared_memory: &Path) -> RunDir {
        if let Some(root) = named {
            return RunDir { root, origin: Origin::Named };
        }
        if let Some(session) = session {
            return RunDir { root: session.join("tampu"), origin: Origin::Session };
        }
        let ours = format!("tampu-{}", rustix::process::geteuid().as_raw());
        match is_shared_memory(shared_memory) {
            Ok(()) => RunDir { root: shared_memory.join(ours), origin: Origin::SharedMemory },
            Err(why) => RunDir { root: Path::new("/tmp").join(ours), origin: Origin::Temporary(why) },
        }
    }

    /// Uses this directory.
    pub fn at(root: impl Into<PathBuf>) -> RunDir {
        RunDir { root: root.into(), origin: Origin::Named }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the rule by which it was chosen.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns a warning for the host's operators: no directory was named, and there is no memory for one.
    pub fn remark(&self) -> Option<String> {
        let Origin::Temporary(_) = &self.origin else { return None };
        let path = self.root.display();
        Some(format!("the run-time directory is {path}: {}; set TAMPU_RUN_DIR to a directory on a tmpfs", self.origin))
    }

    /// Returns the domain's directory, which may be missing, or another user's.
    pub(crate) fn unchecked(&self, domain: &Domain) -> DomainDir {
        DomainDir { path: self.root.join(domain_chunk(domain)) }
    }

    /// Creates the domain's directory if it is missing, and checks that no other user can access it.
    pub fn domain(&self, domain: &Domain) -> Result<DomainDir, RunDirError> {
        create_private(&self.root, true)?;
        check_ours(&self.root, 0o022, "can be written by others")?;
        let path = self.unchecked(domain).path;
        create_private(&path, false)?;
        check_ours(&path, 0o077, "can be entered by others")?;
        for inner in ["peers", "shm"] {
            create_private(&path.join(inner), false)?;
        }
        Ok(DomainDir { path })
    }
}

/// A hub that runs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveHub {
    /// Domain of the hub. For a hub of an earlier release, it is the name of its directory.
    pub domain: String,
    /// Process number that the hub wrote.
    pub pid: Option<u32>,
    /// Its part of the run-time directory.
    pub path: PathBuf,
}

impl RunDir {
    /// Returns the hubs whose nodes accept connections in this directory, by domain.
    pub fn live_hubs(&self) -> Vec<LiveHub> {
        let hub = |path: PathBuf| {
            let dir = DomainDir { path };
            dir.node_answers().then(|| dir.hub())
        };
        let mut hubs: Vec<LiveHub> = entries(&self.root).into_iter().filter_map(hub).collect();
        hubs.sort_by(|a, b| a.domain.cmp(&b.domain));
        hubs
    }
}

/// Returns an error with the reason if no directories in memory can be created there.
fn is_shared_memory(path: &Path) -> Result<(), String> {
    const TMPFS: u64 = 0x0102_1994;
    let wrong = |why: &str| Err(format!("{} {why}", path.display()));
    match rustix::fs::statfs(path) {
        Err(why) => wrong(&format!("cannot be used ({why})")),
        Ok(found) if found.f_type as u64 != TMPFS => wrong("is not memory (no tmpfs)"),
        Ok(_) => match rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
            Ok(()) => Ok(()),
            Err(why) => wrong(&format!("cannot be written to ({why})")),
        },
    }
}

fn create_private(path: &Path, parents: bool) -> Result<(), RunDirError> {
    match fs::DirBuilder::new().mode(0o700).recursive(parents).create(path) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => Err(io_error(path)(why)),
        _ => Ok(()),
    }
}

fn check_ours(path: &Path, forbidden: u32, what: &str) -> Result<(), RunDirError> {
    // Links are not followed: in /tmp any user can create one.
    let found = fs::symlink_metadata(path).map_err(io_error(path))?;
    let unsafe_because = |what: String| Err(RunDirError::Unsafe { path: path.to_owned(), what });
    if !found.is_dir() {
        unsafe_because("is not a directory".to_owned())
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        unsafe_because(format!("belongs to user {}", found.uid()))
    } else if found.permissions().mode() & forbidden != 0 {
        unsafe_because(format!("{what} (mode {:o})", found.permissions().mode() & 0o7777))
    } else {
        Ok(())
    }
}

/// Returns the domain's escaped name, or for long ones its beginning and a hash. `-` is not a character of escaped
/// names, so the two kinds cannot collide.
fn domain_chunk(domain: &Domain) -> String {
    let key = name::escape(domain.as_str());
    if key.len() <= DOMAIN_CHUNK_LIMIT {
        return key;
    }
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{}-{:012x}", &key[..11], hash >> 16)
}

/// Files that [`DomainDir::reclaim`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Sockets of dead processes.
    pub sockets: usize,
    /// Shared-memory rings of dead processes.
    pub rings: usize,
    /// Bytes those rings held.
    pub bytes: u64,
}

/// One domain's part of the run-time directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDir {
    path: PathBuf,
}

impl DomainDir {
    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the socket at which the host's node listens.
    pub fn node_socket(&self) -> Result<PathBuf, RunDirError> {
        socket_path(self.path.join("node.sock"))
    }

    /// Returns the lock file, which the host's node locks during its lifetime.
    pub fn node_lock(&self) -> PathBuf {
        self.path.join("node.lock")
    }

    /// Returns the file of the password for the node's socket, if there is one.
    pub fn node_key(&self) -> PathBuf {
        self.path.join(NODE_KEY)
    }

    /// Returns the file with the name under which other hosts know this one, if its certificate proves it.
    pub fn node_host(&self) -> PathBuf {
        self.path.join(NODE_HOST)
    }

    /// Returns the file with the name of the node's engine.
    pub fn node_engine(&self) -> PathBuf {
        self.path.join(NODE_ENGINE)
    }

    /// Returns the file with the name of the node's place.
    pub fn node_place(&self) -> PathBuf {
        self.path.join(NODE_PLACE)
    }

    /// Returns the name of the node's place: other directories, also on other hosts, have other ones. `None` before the first
    /// node.
    pub fn place(&self) -> Option<String> {
        let name = fs::read_to_string(self.node_place()).ok()?;
        let name = name.trim();
        let is_name = name.len() == PLACE_LENGTH && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_name.then(|| name.to_owned())
    }

    /// Returns the file that says when the node made this directory anew.
    pub fn restored_file(&self) -> PathBuf {
        self.path.join("node.restored")
    }

    /// Returns the time at which the node made this directory anew after it had vanished.
    pub fn restored(&self) -> Option<SystemTime> {
        fs::metadata(self.restored_file()).and_then(|found| found.modified()).ok()
    }

    /// Returns the file of the secret by which processes of this host's user prove that they are.
    pub fn user_key(&self) -> PathBuf {
        self.path.join(USER_KEY)
    }

    /// Returns the file of the node's access rules, for the other processes of this host.
    pub fn policy(&self) -> PathBuf {
        self.path.join(POLICY)
    }

    /// Returns the file of the site's settings of topics, for the other processes of this host.
    pub fn site_settings(&self) -> PathBuf {
        self.path.join(SITE_SETTINGS)
    }

    /// Returns the directory of the sockets of processes without a node.
    pub fn peers(&self) -> PathBuf {
        self.path.join("peers")
    }

    /// Returns the socket at which this process can be met without a node.
    pub fn peer_socket(&self, incarnation: Incarnation) -> Result<PathBuf, RunDirError> {
        socket_path(self.peers().join(format!("{incarnation}.sock")))
    }

    /// Returns the socket at which this process accepts direct links.
    pub fn direct_socket(&self, incarnation: Incarnation) -> Result<PathBuf, RunDirError> {
        socket_path(self.peers().join(format!("{incarnation}-direct.sock")))
    }

    /// Returns the sockets at which a process publishes without the node: ordinary samples, and urgent ones.
    #[cfg(feature = "zmq")]
    pub(crate) fn publisher_sockets(&self, process: Incarnation) -> Result<[PathBuf; 2], RunDirError> {
        let socket = |end: &str| socket_path(self.peers().join(format!("{process}-{end}")));
        Ok([socket("zmq")?, socket("zmq-urgent")?])
    }

    /// Returns true if a path is that of a socket for direct links in this directory.
    pub fn has_direct_socket(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.parent() == Some(&self.peers()) && name.ends_with("-direct.sock")
    }

    /// Returns the directory of the log rings of processes, with a directory for each incarnation.
    pub fn log_rings(&self) -> PathBuf {
        self.path.join("rings")
    }

    /// Returns the directory of the files of shared memory.
    pub fn rings(&self) -> PathBuf {
        self.path.join("shm")
    }

    /// Reads the node's process number and domain from its lock file.
    fn hub(self) -> LiveHub {
        let text = fs::read_to_string(self.node_lock()).unwrap_or_default();
        let mut lines = text.lines();
        let pid = lines.next().and_then(|pid| pid.trim().parse().ok());
        let chunk = || self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        LiveHub { domain: lines.next().map_or_else(chunk, str::to_owned), pid, path: self.path }
    }

    /// Reports if a process accepts connections at the node's socket; the file alone may be a dead node's.
    pub fn node_answers(&self) -> bool {
        self.node_socket().is_ok_and(|path| answers(&path))
    }

    /// Returns the sockets at which living processes can be met.
    pub fn meeting_sockets(&self) -> Vec<PathBuf> {
        let is_meeting_point = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".sock") && !name.ends_with("-direct.sock")
        };
        entries(&self.peers()).into_iter().filter(is_meeting_point).filter(|path| answers(path)).collect()
    }

    /// Returns the sockets and files of shared memory, with the processes that have made them.
    pub(crate) fn files_of_processes(&self) -> Vec<(Incarnation, PathBuf)> {
        let paths = entries(&self.peers()).into_iter().chain(entries(&self.rings()));
        paths.filter_map(|path| Some((maker_of(&path)?, path))).collect()
    }

    /// Removes the sockets and rings of dead processes.
    pub fn reclaim(&self) -> Reclaimed {
        let mut reclaimed = Reclaimed::default();
        for path in entries(&self.peers()) {
            // In another container the process may live although its number is unknown here, so the socket is checked too.
            if is_left_behind(&path) && !answers(&path) && fs::remove_file(&path).is_ok() {
                reclaimed.sockets += usize::from(path.extension().is_some_and(|extension| extension == "sock"));
            }
        }
        for path in entries(&self.rings()) {
            let bytes = fs::symlink_metadata(&path).map(|found| found.len()).unwrap_or_default();
            if is_left_behind(&path) && fs::remove_file(&path).is_ok() {
                reclaimed.rings += 1;
                reclaimed.bytes += bytes;
            }
        }
        reclaimed
    }
}

/// Creates a file that only its user can read.
pub(crate) fn private_file(path: &Path) -> io::Result<fs::File> {
    // Removed first, so that the mode applies and no process reads half of the text in an old file.
    let _ = fs::remove_file(path);
    fs::File::options().write(true).create_new(true).mode(0o600).open(path)
}

fn socket_path(path: PathBuf) -> Result<PathBuf, RunDirError> {
    let length = path.as_os_str().as_bytes().len();
    if length <= SOCKET_PATH_LIMIT { Ok(path) } else { Err(RunDirError::Long { path, length }) }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(directory) else { return Vec::new() };
    found.flatten().map(|entry| entry.path()).collect()
}

/// Reports if a process accepts connections there. The connection is closed at once, which is harmless for the
/// listener. It does not wait: a stopped listener with a full queue counts too.
fn answers(socket: &Path) -> bool {
    // A node that made its directory anew has a link to its socket there.
    let is_socket = fs::metadata(socket).is_ok_and(|found| found.file_type().is_socket());
    let connected = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let ours = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&ours, &SocketAddrUnix::new(socket)?)
    };
    is_socket && matches!(connected(), Ok(()) | Err(rustix::io::Errno::AGAIN))
}

/// Returns the incarnation with which the file's name begins.
fn maker_of(path: &Path) -> Option<Incarnation> {
    const INCARNATION_LEN: usize = 8 + 1 + 8 + 1 + 16;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.get(..INCARNATION_LEN)?.parse().ok()
}

/// Reports if the file's name begins with an incarnation that has ended.
fn is_left_behind(path: &Path) -> bool {
    // The directory is local to this host, so incarnations of another boot are over too.
    maker_of(path).is_some_and(host::is_over)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str) -> Domain {
        Domain::new(name).unwrap()
    }

    #[test]
    fn without_a_name_the_directory_is_in_memory_where_there_is_any() {
        let uid = rustix::process::geteuid().as_raw();
        let (named, session) = (Some(PathBuf::from("/a")), Some(PathBuf::from("/b")));
        let shm = Path::new("/dev/shm");
        let chosen = RunDir::choose(named, session.clone(), shm);
        assert_eq!((chosen.path(), chosen.origin()), (Path::new("/a"), &Origin::Named));
        let chosen = RunDir::choose(None, session, shm);
        assert_eq!((chosen.path(), chosen.origin()), (Path::new("/b/tampu"), &Origin::Session));
        assert_eq!(chosen.remark(), None);

        // /proc exists and is not a tmpfs.
        for (unusable, why) in [("/proc", "no tmpfs"), ("/nowhere", "cannot be used")] {
            let chosen = RunDir::choose(None, None, Path::new(unusable));
            assert_eq!(chosen.path(), Path::new(&format!("/tmp/tampu-{uid}")));
            let remark = chosen.remark().unwrap();
            assert!(remark.contains(why) && remark.contains(unusable) && remark.contains("TAMPU_RUN_DIR"), "{remark}");
        }
        match is_shared_memory(shm) {
            Ok(()) => assert_eq!(RunDir::choose(None, None, shm).path(), Path::new(&format!("/dev/shm/tampu-{uid}"))),
            Err(why) => assert!(RunDir::choose(None, None, shm).remark().unwrap().contains(&why)),
        }
    }

    #[test]
    fn a_directory_others_can_enter_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let run = RunDir::at(temporary.path().join("run"));
        let ours = run.domain(&domain("Lab")).unwrap();
        assert_eq!(ours.path(), temporary.path().join("run/lab"));
        assert_eq!(fs::metadata(ours.path()).unwrap().permissions().mode() & 0o777, 0o700);

        fs::set_permissions(ours.path(), fs::Permissions::from_mode(0o750)).unwrap();
        assert!(run.domain(&domain("Lab")).unwrap_err().to_string().contains("can be entered by others (mode 750)"));

        std::os::unix::fs::symlink("/", run.path().join("else")).unwrap();
        assert!(run.domain(&domain("else")).unwrap_err().to_string().contains("is not a directory"));
    }

    #[test]
    fn long_domains_keep_socket_paths_short_and_apart() {
        let long = "x".repeat(200);
        let one = domain_chunk(&domain(&long));
        let two = domain_chunk(&domain(&format!("{}y", &long[1..])));
        assert_eq!(one.len(), DOMAIN_CHUNK_LIMIT);
        assert_ne!(one, two);

        let deep = DomainDir { path: PathBuf::from("/").join("d".repeat(70)) };
        assert!(matches!(deep.direct_socket(host::incarnation()), Err(RunDirError::Long { .. })));
    }

    #[test]
    fn only_what_the_dead_left_is_reclaimed() {
        let temporary = tempfile::tempdir().unwrap();
        let ours = RunDir::at(temporary.path()).domain(&domain("lab")).unwrap();
        let living = host::incarnation();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = Incarnation { pid: child.id(), ..living };
        child.wait().unwrap();
        let recycled = Incarnation { start: 1, ..living };
        let other_boot = Incarnation { boot: !living.boot, ..living };

        for maker in [living, dead, recycled, other_boot] {
            fs::write(ours.rings().join(format!("{maker}-7.ring")), [0; 100]).unwrap();
            fs::write(ours.peer_socket(maker).unwrap(), "").unwrap();
        }
        fs::write(ours.rings().join("notes.txt"), "not ours to judge").unwrap();
        assert_eq!(ours.reclaim(), Reclaimed { sockets: 3, rings: 3, bytes: 300 });
        assert!(ours.rings().join(format!("{living}-7.ring")).exists() && ours.peer_socket(living).unwrap().exists());
        assert!(ours.rings().join("notes.txt").exists());
    }
}
