//! Messages in TCP streams: one worker for each connection, up to a limit.

use std::{
    collections::HashMap,
    io::{self, Read},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::net::sockopt;
use tampu_types::frames::Frames;
use tampu_workers::{OnPanic, WorkerThread};

use super::{dispatcher::Dispatcher, error::InputError};

/// Period of the check whether the worker must end.
const LOOK: Duration = Duration::from_millis(250);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Number of bytes that are read at once.
const CHUNK: usize = 16 << 10;
/// Stack size of a connection's worker. It is small, because there may be a thousand workers with little work.
const STACK: usize = 512 << 10;

/// An open connection.
struct Connection {
    stream: TcpStream,
    peer: IpAddr,
    /// Milliseconds from the start of the input until its last bytes came.
    heard: Arc<AtomicU64>,
    /// True from the moment at which the connection is closed for another one. Its worker then reads no further.
    evicted: Arc<AtomicBool>,
}

/// Connections whose workers run, by number.
type Open = Arc<Mutex<HashMap<u64, Connection>>>;

/// Workers that one address may have, as a multiple of its open connections: those of closed connections end soon.
const ENDING: usize = 4;

/// Limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Connections in all.
    pub all: usize,
    /// Connections of one address.
    pub of_one_address: usize,
}

/// A listener, its connections and their workers; ends when dropped.
pub(crate) struct Streams {
    address: SocketAddr,
    dispatcher: Arc<Dispatcher>,
    open: Open,
    acceptor: Option<JoinHandle<()>>,
}

impl Streams {
    pub fn start(address: SocketAddr, limits: ConnectionLimits, dispatcher: Arc<Dispatcher>) -> Result<Streams, InputError> {
        let input = dispatcher.kind.name;
        let listen = |why: io::Error| InputError::Listen { input, address, why };
        let listener = TcpListener::bind(address).map_err(listen)?;
        // It also bounds the wait for the next connection.
        sockopt::set_socket_timeout(listener.as_fd(), sockopt::Timeout::Recv, Some(LOOK)).map_err(|why| listen(why.into()))?;
        let bound = listener.local_addr().map_err(listen)?;
        let open = Open::default();
        let mut acceptor = Acceptor {
            listener,
            limits,
            dispatcher: dispatcher.clone(),
            open: open.clone(),
            workers: Vec::new(),
            next: 0,
            began: Instant::now(),
        };
        let worker = WorkerThread::named(format!("{input}-streams")).spawn_restarting(RESTART, move || acceptor.run());
        let worker = worker.map_err(|why| InputError::Worker { input, why })?;
        Ok(Streams { address: bound, dispatcher, open, acceptor: Some(worker) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u64 {
        self.open.lock().values().filter(|connection| connection.is_open()).count() as u64
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.dispatcher.stopping.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Connection {
    fn is_open(&self) -> bool {
        !self.evicted.load(Ordering::Acquire)
    }
}

/// An entry of the connections, which is removed when its worker ends.
struct OpenStream {
    open: Open,
    number: u64,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.open.lock().remove(&self.number);
    }
}

struct Acceptor {
    listener: TcpListener,
    limits: ConnectionLimits,
    dispatcher: Arc<Dispatcher>,
    open: Open,
    workers: Vec<JoinHandle<()>>,
    next: u64,
    began: Instant,
}

impl Acceptor {
    fn run(&mut self) {
        while !self.dispatcher.is_stopping() {
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(stream, from.ip()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                // Most likely there are no free file descriptors: the connection waits in the kernel until there are.
                Err(_) => std::thread::park_timeout(LOOK),
            }
            self.dispatcher.tell(false);
            self.workers.retain(|worker| !worker.is_finished());
        }
        // Wakes the workers that wait for their senders; they forward the messages they have received.
        for connection in self.open.lock().values() {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        self.dispatcher.tell(true);
    }

    /// Closes the longest silent connection of an address that has its share, and of all where there is no room. Its worker
    /// forwards what its share allows at once, and ends. Returns false if too many workers of the address still run.
    fn make_room(&self, peer: IpAddr) -> bool {
        let open = self.open.lock();
        let running = open.values().filter(|connection| connection.peer == peer).count();
        if running >= self.limits.of_one_address.saturating_mul(ENDING) {
            return false;
        }
        let is_open = || open.iter().filter(|(_, one)| one.is_open());
        let of_peer = is_open().filter(|(_, one)| one.peer == peer).count();
        if of_peer < self.limits.of_one_address && is_open().count() < self.limits.all {
            return true;
        }
        let candidates = is_open().filter(|(_, one)| of_peer < self.limits.of_one_address || one.peer == peer);
        let longest_silent = candidates.min_by_key(|(number, one)| (one.heard.load(Ordering::Relaxed), **number));
        if let Some((_, connection)) = longest_silent {
            connection.evicted.store(true, Ordering::Release);
            let _ = connection.stream.shutdown(Shutdown::Both);
            self.dispatcher.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    fn admit(&mut self, stream: TcpStream, peer: IpAddr) {
        let peer = peer.to_canonical();
        // The listener's timeout is inherited, but a sender may be silent for any time.
        let patient = stream.set_read_timeout(None).and_then(|()| stream.try_clone());
        // Workers of closed connections may still forward what they have; there are never more than twice the limit.
        let has_room = self.workers.len() < self.limits.all.saturating_mul(2);
        let handle = patient.ok().filter(|_| has_room && self.make_room(peer));
        let Some(handle) = handle else {
            self.dispatcher.counters.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        // The kernel detects a host that has gone.
        let _ = sockopt::set_socket_keepalive(stream.as_fd(), true);
        self.dispatcher.counters.connections.fetch_add(1, Ordering::Relaxed);
        let number = self.next;
        self.next += 1;
        let heard = Arc::new(AtomicU64::new(since(self.began)));
        let evicted = Arc::new(AtomicBool::new(false));
        let connection = Connection { stream: handle, peer, heard: heard.clone(), evicted: evicted.clone() };
        self.open.lock().insert(number, connection);
        let (dispatcher, open, began) = (self.dispatcher.clone(), self.open.clone(), self.began);
        let (name, counted) = (format!("{} {peer}", dispatcher.kind.name), dispatcher.kind.connection_worker);
        let worker = WorkerThread::named(name).counted_as(counted).stack_size(STACK).spawn(OnPanic::ReportOnly, move || {
            let _open = OpenStream { open, number };
            let heard = || heard.store(since(began), Ordering::Relaxed);
            read(stream, peer, &dispatcher, &heard, &|| evicted.load(Ordering::Acquire));
        });
        match worker {
            Ok(worker) => self.workers.push(worker),
            Err(_) => {
                self.open.lock().remove(&number);
                self.dispatcher.counters.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Milliseconds since this moment.
fn since(moment: Instant) -> u64 {
    u64::try_from(moment.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Reads one stream to its end, or until it is `gone`; calls `heard` after bytes have come.
fn read(mut stream: TcpStream, peer: IpAddr, dispatcher: &Dispatcher, heard: &dyn Fn(), gone: &dyn Fn() -> bool) {
    let mut frames = Frames::new(dispatcher.kind.framing, dispatcher.kind.limit);
    let mut buffer = vec![0; CHUNK];
    let mut take = |frame: tampu_types::frames::Frame<'_>| {
        if dispatcher.wait_for_share(peer, frame.bytes.len(), gone) {
            dispatcher.take(frame, peer, gone);
        } else {
            dispatcher.shed(peer);
        }
    };
    while !dispatcher.is_stopping() && !gone() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                heard();
                frames.push(&buffer[..length], &mut take);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    frames.end(&mut take);
}
