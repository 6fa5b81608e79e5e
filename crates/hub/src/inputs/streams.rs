//! Messages in TCP streams: a worker for each connection, as many as are allowed.

use std::{
    collections::HashMap,
    io::{self, Read},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{Arc, Mutex, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

use rustix::net::sockopt;
use tampu_types::frames::Frames;

use super::{
    InputError,
    desk::{Desk, lock},
};

/// How often it looks whether it shall end.
const LOOK: Duration = Duration::from_millis(250);
/// Bytes read at once.
const CHUNK: usize = 16 << 10;
/// The stack of a connection's worker: there may be a thousand, and all of them do little.
const STACK: usize = 512 << 10;

type Open = Arc<Mutex<HashMap<u64, TcpStream>>>;

/// A listener, its connections and their workers; ends when dropped.
pub(crate) struct Streams {
    address: SocketAddr,
    desk: Arc<Desk>,
    open: Open,
    acceptor: Option<JoinHandle<()>>,
}

impl Streams {
    pub fn start(address: SocketAddr, limit: usize, desk: Arc<Desk>) -> Result<Streams, InputError> {
        let input = desk.kind.name;
        let listen = |why: io::Error| InputError::Listen { input, address, why };
        let listener = TcpListener::bind(address).map_err(listen)?;
        // Bounds the wait for the next connection, too.
        sockopt::set_socket_timeout(listener.as_fd(), sockopt::Timeout::Recv, Some(LOOK)).map_err(|why| listen(why.into()))?;
        let bound = listener.local_addr().map_err(listen)?;
        let open = Open::default();
        let acceptor = Acceptor { listener, limit, desk: desk.clone(), open: open.clone(), workers: Vec::new(), next: 0 };
        let worker = std::thread::Builder::new().name(format!("{input} streams")).spawn(move || acceptor.run());
        let worker = worker.map_err(|why| InputError::Worker { input, why })?;
        Ok(Streams { address: bound, desk, open, acceptor: Some(worker) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are open.
    pub fn open(&self) -> u64 {
        lock(&self.open).len() as u64
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.desk.stopping.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

struct Acceptor {
    listener: TcpListener,
    limit: usize,
    desk: Arc<Desk>,
    open: Open,
    workers: Vec<JoinHandle<()>>,
    next: u64,
}

impl Acceptor {
    fn run(mut self) {
        while !self.desk.is_stopping() {
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(stream, from.ip()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                // Out of file descriptors, most likely: the connection waits in the kernel until some are free.
                Err(_) => std::thread::park_timeout(LOOK),
            }
            self.desk.tell(false);
            self.workers.retain(|worker| !worker.is_finished());
        }
        // Wakes those that wait for their senders; they hand out what they have.
        for stream in lock(&self.open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for worker in self.workers {
            let _ = worker.join();
        }
        self.desk.tell(true);
    }

    fn admit(&mut self, stream: TcpStream, peer: IpAddr) {
        // The listener's timeout is inherited; a sender may be silent as long as it likes.
        let patient = stream.set_read_timeout(None).and_then(|()| stream.try_clone());
        let handle = patient.ok().filter(|_| lock(&self.open).len() < self.limit);
        let Some(handle) = handle else {
            self.desk.counters.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        // One whose host is gone is found out by the kernel.
        let _ = sockopt::set_socket_keepalive(stream.as_fd(), true);
        self.desk.counters.connections.fetch_add(1, Ordering::Relaxed);
        let number = self.next;
        self.next += 1;
        lock(&self.open).insert(number, handle);
        let (desk, open) = (self.desk.clone(), self.open.clone());
        let name = format!("{} {peer}", desk.kind.name);
        let worker = std::thread::Builder::new().name(name).stack_size(STACK).spawn(move || {
            read(stream, peer, &desk);
            lock(&open).remove(&number);
        });
        match worker {
            Ok(worker) => self.workers.push(worker),
            Err(_) => {
                lock(&self.open).remove(&number);
                self.desk.counters.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Reads one stream to its end.
fn read(mut stream: TcpStream, peer: IpAddr, desk: &Desk) {
    let mut frames = Frames::new(desk.kind.framing, desk.kind.limit);
    let mut buffer = vec![0; CHUNK];
    let mut take = |frame: tampu_types::frames::Frame<'_>| desk.take(frame, peer);
    while !desk.is_stopping() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => frames.push(&buffer[..length], &mut take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    frames.end(&mut take);
}
