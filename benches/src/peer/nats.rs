//! `nats-server` with a minimal client of its text protocol: `PUB`, `SUB`, `MSG`, `PING`. Core NATS neither stores nor
//! acknowledges messages.
//!
//! ```text
//! client: CONNECT {..}\r\n  PUB records 250\r\n<250 bytes>\r\n  SUB records 1\r\n
//! server: INFO {..}\r\n     MSG records 1 250\r\n<250 bytes>\r\n  PING\r\n
//! ```

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{
    payload::{Message, SHORTEST},
    process::{RoleMessage, say},
    role::{self, Inbox, Outgoing, Speed},
};

const SUBJECT: &str = "records";
/// Number of bytes that the client joins before it writes; clients of NATS use 32 to 64 KB.
const COALESCE: usize = 64 * 1024;
const READ: usize = 256 * 1024;
const CONNECT: &[u8] =
    b"CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false,\"lang\":\"rust\",\"version\":\"0\"}\r\nPING\r\n";

/// Replaces this process by the server.
pub fn server(dir: &Path) -> Result<(), String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let at = free.map_err(|e| format!("a free port: {e}"))?;
    // Unlike our own roles, the server does not watch its input for the end of the bench.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("death signal: {e}"))?;
    say(&RoleMessage::At(at.to_string()));
    let mut command = Command::new("nats-server");
    command.args(["--addr", "127.0.0.1", "--port", &at.port().to_string(), "--log"]).arg(dir.join("nats.log"));
    Err(format!("nats-server (Debian has it under this name): {}", command.exec()))
}

/// Connects, and waits until the server runs.
fn connect(at: &str) -> Result<TcpStream, String> {
    let until = Instant::now() + Duration::from_secs(10);
    let mut stream = loop {
        match TcpStream::connect(at) {
            Ok(stream) => break stream,
            Err(e) if Instant::now() > until => return Err(format!("nats at {at}: {e}")),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut greet = || -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.write_all(CONNECT)?;
        until_pong(&mut stream)
    };
    greet().map_err(|e| format!("nats at {at}: {e}"))?;
    Ok(stream)
}

/// Reads lines until the answer to our `PING`; nothing but lines comes where nothing is subscribed to.
fn until_pong(stream: &mut TcpStream) -> io::Result<()> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
        if byte[0] == b'\n' {
            if line.starts_with(b"-ERR") {
                return Err(io::Error::other(String::from_utf8_lossy(&line).into_owned()));
            }
            if line.starts_with(b"PONG") {
                return Ok(());
            }
            line.clear();
        }
    }
}

struct Out {
    stream: TcpStream,
    records: usize,
    joined: usize,
    message: Vec<u8>,
    buffer: Vec<u8>,
    wire: u64,
}

impl Out {
    /// Makes one message of the joined records.
    fn seal(&mut self) {
        if self.joined == 0 {
            return;
        }
        // Writing to a vector does not fail.
        let _ = write!(self.buffer, "PUB {SUBJECT} {}\r\n", self.message.len());
        self.buffer.extend_from_slice(&self.message);
        self.buffer.extend_from_slice(b"\r\n");
        self.message.clear();
        self.joined = 0;
    }

    fn flush(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.buffer).map_err(|e| format!("nats write: {e}"))?;
        self.wire += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Outgoing for Out {
    #[inline]
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        message.append(&mut self.message);
        self.joined += 1;
        if self.joined >= self.records {
            self.seal();
            if self.buffer.len() >= COALESCE {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn push(&mut self) -> Result<(), String> {
        self.seal();
        self.flush()
    }

    fn finish(&mut self) -> Result<Option<String>, String> {
        self.push()?;
        // The server answers when it has processed everything before.
        let asked = self.stream.write_all(b"PING\r\n").and_then(|()| until_pong(&mut self.stream));
        asked.map(|()| None).map_err(|e| format!("nats ping: {e}"))
    }

    fn wire(&self) -> Option<u64> {
        Some(self.wire)
    }
}

/// Runs the writer, with `records` records in each message.
pub fn writer(at: &str, records: usize, size: usize, speed: Speed) -> Result<(), String> {
    let stream = connect(at)?;
    say(&RoleMessage::At(at.to_owned()));
    let buffer = Vec::with_capacity(2 * COALESCE);
    role::write(Out { stream, records, joined: 0, message: Vec::new(), buffer, wire: 0 }, size, speed)
}

pub fn reader(at: &str, size: usize) -> Result<(), String> {
    let mut stream = connect(at)?;
    stream.write_all(format!("SUB {SUBJECT} 1\r\n").as_bytes()).map_err(|e| format!("nats subscribe: {e}"))?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    thread::spawn(move || {
        if let Err(e) = take(&mut stream, size.max(SHORTEST), &to) {
            to.fail(format!("nats read: {e}"));
        }
    });
    role::read(&inbox)
}

fn take(stream: &mut TcpStream, size: usize, inbox: &Inbox) -> io::Result<()> {
    let mut buffer = vec![0; READ];
    let mut filled = 0;
    loop {
        let count = stream.read(&mut buffer[filled..])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        inbox.came(count);
        filled += count;
        let mut at = 0;
        while let Some((length, item)) = next(&buffer[at..filled])? {
            at += length;
            match item {
                Item::Message(payload) => inbox.with(|tally| {
                    for record in payload.chunks(size) {
                        tally.take(record);
                    }
                }),
                Item::Ping => stream.write_all(b"PONG\r\n")?,
                Item::Other => {}
            }
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        if filled == buffer.len() {
            return Err(io::Error::other("a message longer than the buffer"));
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Item<'a> {
    Message(&'a [u8]),
    Ping,
    Other,
}

/// Returns the next message of the server and its length, if it is complete.
fn next(bytes: &[u8]) -> io::Result<Option<(usize, Item<'_>)>> {
    let Some(end) = bytes.iter().take(512).position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = bytes[..end].trim_ascii_end();
    let start = end + 1;
    if line.starts_with(b"MSG ") {
        let digits = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let length: Option<usize> = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let length = length.ok_or_else(|| io::Error::other("a MSG line without a length"))?;
        let payload = bytes.get(start..start + length).filter(|_| bytes.len() >= start + length + 2);
        return Ok(payload.map(|payload| (start + length + 2, Item::Message(payload))));
    }
    if line.starts_with(b"-ERR") {
        return Err(io::Error::other(String::from_utf8_lossy(line).into_owned()));
    }
    Ok(Some((start, if line == b"PING" { Item::Ping } else { Item::Other })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_protocol_is_read_piece_by_piece() {
        let said = b"PING\r\nMSG records 1 5\r\nhello\r\n+OK\r\n";
        assert_eq!(next(said).ok(), Some(Some((6, Item::Ping))));
        assert_eq!(next(&said[6..]).ok(), Some(Some((24, Item::Message(b"hello")))));
        for short in 6..30 {
            assert_eq!(next(&said[6..short]).ok(), Some(None));
        }
        assert_eq!(next(&said[30..]).ok(), Some(Some((5, Item::Other))));
        assert!(next(b"-ERR 'Slow Consumer'\r\n").is_err());
        assert!(next(b"MSG records 1 x\r\n").is_err());
    }
}
