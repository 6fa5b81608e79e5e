//! Messages by UDP: one message in each datagram.

use std::{
    fs, io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsFd,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_types::frames::Frame;
use tampu_workers::WorkerThread;

use super::{dispatcher::Dispatcher, error::InputError};

/// Period of the check for the end of the worker, and of the kernel's count of drops.
const LOOK: Duration = Duration::from_millis(250);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Maximum length of a datagram.
const LONGEST: usize = 65536;

/// A socket and its worker; ends when dropped.
pub(crate) struct Datagrams {
    address: SocketAddr,
    dispatcher: Arc<Dispatcher>,
    worker: Option<JoinHandle<()>>,
}

impl Datagrams {
    pub fn start(address: SocketAddr, buffer: usize, dispatcher: Arc<Dispatcher>) -> Result<Datagrams, InputError> {
        let input = dispatcher.kind.name;
        let listen = |why: io::Error| InputError::Listen { input, address, why };
        let socket = UdpSocket::bind(address).map_err(listen)?;
        socket.set_read_timeout(Some(LOOK)).map_err(listen)?;
        widen(&socket, buffer).map_err(listen)?;
        let bound = socket.local_addr().map_err(listen)?;
        let drops = Drops::of(&socket);
        let mut taking = Taking { socket, drops, dispatcher: dispatcher.clone(), looked: Instant::now() };
        let worker = WorkerThread::named(format!("{input}-datagrams")).spawn_restarting(RESTART, move || taking.run());
        let worker = worker.map_err(|why| InputError::Worker { input, why })?;
        Ok(Datagrams { address: bound, dispatcher, worker: Some(worker) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.dispatcher.stopping.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// Requests this much buffer for datagrams: above the system's limit if the hub has the right to, else up to it.
fn widen(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    use rustix::net::sockopt;
    let forced = sockopt::set_socket_recv_buffer_size_force(socket.as_fd(), bytes);
    forced.or_else(|_| sockopt::set_socket_recv_buffer_size(socket.as_fd(), bytes)).map_err(io::Error::from)
}

struct Taking {
    socket: UdpSocket,
    drops: Option<Drops>,
    dispatcher: Arc<Dispatcher>,
    looked: Instant,
}

impl Taking {
    fn run(&mut self) {
        let mut buffer = vec![0; LONGEST];
        while !self.dispatcher.is_stopping() {
            // The only error is a timeout: this socket sends nothing that could be rejected.
            if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
                let whole = buffer[..length].trim_ascii_end();
                let bytes = &whole[..whole.len().min(self.dispatcher.kind.limit)];
                if !bytes.is_empty() && self.dispatcher.admits_datagram(from.ip(), bytes.len()) {
                    self.dispatcher.take(Frame { bytes, whole: whole.len() as u64, broken_off: false }, from.ip(), &|| false);
                }
            }
            if self.looked.elapsed() >= LOOK {
                self.look(false);
            }
        }
        self.look(true);
    }

    fn look(&mut self, last: bool) {
        self.looked = Instant::now();
        if let Some(drops) = &mut self.drops {
            self.dispatcher.counters.lost.fetch_add(drops.since(), Ordering::Relaxed);
        }
        self.dispatcher.tell(last);
    }
}

/// Counter of datagrams that the kernel dropped because its buffer was full, from `/proc/net/udp` and `udp6`. They list
/// every socket, so no datagram has to carry it.
struct Drops {
    table: &'static str,
    inode: String,
    before: u64,
}

impl Drops {
    /// Finds the counter of a socket. Returns `None` if the system has no such counter.
    fn of(socket: &UdpSocket) -> Option<Drops> {
        let inode = rustix::fs::fstat(socket.as_fd()).ok()?.st_ino.to_string();
        let table = match socket.local_addr().ok()? {
            SocketAddr::V4(_) => "/proc/self/net/udp",
            SocketAddr::V6(_) => "/proc/self/net/udp6",
        };
        let drops = Drops { table, inode, before: 0 };
        drops.total()?;
        Some(drops)
    }

    fn total(&self) -> Option<u64> {
        drops_in(&fs::read_to_string(self.table).ok()?, &self.inode)
    }

    fn since(&mut self) -> u64 {
        // The kernel counts in 32 bits.
        let Some(total) = self.total() else { return 0 };
        let since = (total as u32).wrapping_sub(self.before as u32);
        self.before = total;
        u64::from(since)
    }
}

/// Returns the drops of the socket with this inode: the tenth column is the inode, the thirteenth the drops.
fn drops_in(table: &str, inode: &str) -> Option<u64> {
    let line = table.lines().find(|line| line.split_whitespace().nth(9) == Some(inode))?;
    line.split_whitespace().nth(12)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_drops_is_known() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(socket.as_fd(), 4096).unwrap();
        let mut drops = Drops::of(&socket).expect("this kernel tells drops");
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sent = 1000u64;
        for _ in 0..sent {
            sender.send_to(&[b'x'; 100], socket.local_addr().unwrap()).unwrap();
        }
        socket.set_nonblocking(true).unwrap();
        let mut received = 0;
        while socket.recv(&mut [0; 200]).is_ok() {
            received += 1;
        }
        assert!(received < sent, "the buffer is too small for all");
        assert_eq!(drops.since(), sent - received);
        assert_eq!(drops.since(), 0);
        assert_eq!(drops_in("no such line", "1"), None);
    }
}
