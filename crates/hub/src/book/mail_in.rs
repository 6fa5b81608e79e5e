//! Entries by mail: the site's mail server (MTA) gives mails to the logbook by LMTP (RFC 2033).
//!
//! | subject | module |
//! |-|-|
//! | the conversation | [`session`] |
//! | a mail as an entry | [`entry`] |
//! | what both need of the hub | [`site`] |
//! | the listener | here |
//!
//! The author is the user whose address the mail's `From` has. Whether that address is genuine is the MTA's to check (SPF,
//! DKIM, DMARC). So the listener is a socket in a directory, or a port of this computer.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_log::warning;
use tampu_logbook::mail::settings::MailInAddress;
use tampu_workers::{OnPanic, WorkerThread};

mod entry;
mod session;
mod shape;
mod site;

pub use site::MailInSite;

/// Conversations at a time.
pub const CONVERSATIONS: usize = 16;
/// Pause between two looks for a connection.
const LOOK: Duration = Duration::from_millis(100);
/// Pause of the listener after a panic.
const RESTART: Duration = Duration::from_secs(5);
/// Time limit of each read and write of a conversation.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The running listener. Dropping it ends it, and removes its socket.
pub struct MailInput {
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
    socket: Option<PathBuf>,
    /// The bound port of this computer.
    pub port: Option<SocketAddr>,
}

enum Listener {
    Port(TcpListener),
    Socket(UnixListener),
}

impl MailInput {
    /// Opens the listener.
    pub fn start(site: MailInSite) -> io::Result<MailInput> {
        let (listener, socket, port) = match &site.settings.listen {
            MailInAddress::Port(at) => {
                let listener = TcpListener::bind(at)?;
                listener.set_nonblocking(true)?;
                let port = listener.local_addr()?;
                (Listener::Port(listener), None, Some(port))
            }
            MailInAddress::Socket(path) => {
                let listener = open_socket(path)?;
                listener.set_nonblocking(true)?;
                (Listener::Socket(listener), Some(path.clone()), None)
            }
        };
        let stopping = Arc::new(AtomicBool::new(false));
        let (asked, site, open) = (stopping.clone(), Arc::new(site), Arc::new(AtomicUsize::new(0)));
        let work = move || {
            while !asked.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok(conversation) => begin(&site, &open, &asked, conversation),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                    Err(error) => {
                        warning!(site.logger, "mail cannot be received: {error}");
                        std::thread::sleep(RESTART);
                    }
                }
            }
        };
        let worker = WorkerThread::named("book-lmtp").spawn_restarting(RESTART, work)?;
        Ok(MailInput { stopping, worker: Some(worker), socket, port })
    }
}

/// Opens a socket in the file system, for its owner and group. A socket that nobody serves any more is replaced.
fn open_socket(path: &Path) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program serves this socket"));
    }
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
    if is_socket {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

impl Listener {
    fn accept(&self) -> io::Result<Box<dyn session::Conversation>> {
        match self {
            Listener::Port(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                Ok(Box::new(stream))
            }
            Listener::Socket(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// Begins a conversation in a thread of its own. One too many is closed; the MTA keeps the mail and comes back.
fn begin(site: &Arc<MailInSite>, open: &Arc<AtomicUsize>, stopping: &Arc<AtomicBool>, with: Box<dyn session::Conversation>) {
    if open.fetch_add(1, Ordering::AcqRel) >= CONVERSATIONS {
        open.fetch_sub(1, Ordering::AcqRel);
        return;
    }
    let (site, place, stopping) = (site.clone(), Place(open.clone()), stopping.clone());
    let logger = site.logger.clone();
    let converse = move || {
        let _place = place;
        session::converse(&site, with, &stopping);
    };
    if let Err(error) = WorkerThread::named("book-lmtp").spawn(OnPanic::ReportOnly, converse) {
        warning!(logger, "mail cannot be received: {error}");
    }
}

/// The place of a conversation, released on drop.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for MailInput {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        if let Some(socket) = &self.socket {
            let _ = fs::remove_file(socket);
        }
    }
}
