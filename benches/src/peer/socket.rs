//! The raw loop: length, bytes, length, bytes, joined to 64 KB, written to each socket in turn. There are no topics, no
//! queues and no isolation of readers. It shows the best rate of the wire and the kernel.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::Arc,
    thread,
};

use crate::{
    payload::Message,
    process::{RoleMessage, say},
    role::{self, Inbox, Outgoing, Speed},
};

const COALESCE: usize = 64 * 1024;
const READ: usize = 256 * 1024;
const PREFIX: usize = 4;

/// Kind of socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Loopback TCP without Nagle's delay.
    Tcp,
    /// A unix stream socket.
    Unix,
}

struct Out {
    sockets: Vec<Box<dyn Write>>,
    buffer: Vec<u8>,
    filled: usize,
}

impl Outgoing for Out {
    #[inline]
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        let length = PREFIX + message.size;
        if self.filled + length > self.buffer.len() {
            self.push()?;
        }
        let (prefix, payload) = self.buffer[self.filled..self.filled + length].split_at_mut(PREFIX);
        prefix.copy_from_slice(&(message.size as u32).to_le_bytes());
        message.write(payload);
        self.filled += length;
        Ok(())
    }

    fn push(&mut self) -> Result<(), String> {
        for socket in &mut self.sockets {
            socket.write_all(&self.buffer[..self.filled]).map_err(|e| format!("write: {e}"))?;
        }
        self.filled = 0;
        Ok(())
    }
}

/// Runs the writer, which waits for its readers to connect and then writes.
pub fn writer(kind: Kind, dir: &Path, readers: usize, size: usize, speed: Speed) -> Result<(), String> {
    let sockets = listen(kind, dir, readers).map_err(|e| format!("listen: {e}"))?;
    role::write(Out { sockets, buffer: vec![0; COALESCE.max(PREFIX + size)], filled: 0 }, size, speed)
}

fn listen(kind: Kind, dir: &Path, readers: usize) -> io::Result<Vec<Box<dyn Write>>> {
    match kind {
        Kind::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            say(&RoleMessage::At(listener.local_addr()?.to_string()));
            let accept = |_| {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream) as Box<dyn Write>)
            };
            (0..readers).map(accept).collect()
        }
        Kind::Unix => {
            let path = dir.join("raw.sock");
            let listener = UnixListener::bind(&path)?;
            say(&RoleMessage::At(path.display().to_string()));
            (0..readers).map(|_| Ok(Box::new(listener.accept()?.0) as Box<dyn Write>)).collect()
        }
    }
}

pub fn reader(kind: Kind, at: &str, size: usize) -> Result<(), String> {
    let connected = match kind {
        Kind::Tcp => TcpStream::connect(at).map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        Kind::Unix => UnixStream::connect(at).map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    };
    let mut socket = connected.map_err(|e| format!("connect {at}: {e}"))?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    thread::spawn(move || {
        let ended = if PREFIX + size > COALESCE { take_long(&mut *socket, size, &to) } else { take_short(&mut *socket, &to) };
        if let Err(e) = ended {
            to.fail(format!("read: {e}"));
        }
    });
    role::read(&inbox)
}

/// Reads long messages one by one into one buffer: no byte is moved twice.
fn take_long(socket: &mut dyn Read, size: usize, inbox: &Inbox) -> io::Result<()> {
    let mut message = vec![0; PREFIX + size];
    loop {
        socket.read_exact(&mut message)?;
        if message[..PREFIX] != (size as u32).to_le_bytes() {
            return Err(io::Error::other("invalid length"));
        }
        inbox.take(&message[PREFIX..]);
    }
}

/// Splits the bytes of one read into short messages.
fn take_short(socket: &mut dyn Read, inbox: &Inbox) -> io::Result<()> {
    let mut buffer = vec![0; READ];
    let mut filled = 0;
    loop {
        let count = socket.read(&mut buffer[filled..])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += count;
        let mut at = 0;
        inbox.with(|tally| {
            while let Some((prefix, rest)) = buffer[at..filled].split_first_chunk::<PREFIX>() {
                let length = u32::from_le_bytes(*prefix) as usize;
                let Some(payload) = rest.get(..length) else { break };
                tally.take(payload);
                at += PREFIX + length;
            }
        });
        buffer.copy_within(at..filled, 0);
        filled -= at;
    }
}
