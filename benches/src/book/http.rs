//! Requests to a hub's API over one persistent connection, plain or with TLS 1.3. The client costs so little that the
//! hub is measured.

use std::{
    io::{BufRead, BufReader, Error, ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, StreamOwned, client::Resumption, pki_types::ServerName,
};
use serde_json::Value;
use tampu_tls::client::{certificates, client_config};

/// Longest time for a response before the bench fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that are read from a socket at a time.
const AT_ONCE: usize = 256 << 10;

/// The address of a hub's logbook, and the way to reach it.
#[derive(Clone)]
pub struct Target {
    host: String,
    address: SocketAddr,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Target {
    /// Reads `http://HOST:PORT`, or `https://HOST:PORT` with the address of the host and a file of trusted certificates.
    pub fn new(url: &str, address: Option<SocketAddr>, trusted: Option<&Path>) -> Result<Target, String> {
        let invalid = || format!("invalid hub address {url}");
        if let Some(host) = url.strip_prefix("http://") {
            return Ok(Target { host: host.to_owned(), address: host.parse().map_err(|_| invalid())?, tls: None });
        }
        let host = url.strip_prefix("https://").ok_or_else(invalid)?;
        let name = host.rsplit_once(':').ok_or_else(invalid)?.0;
        let roots = certificates(trusted.ok_or_else(invalid)?).map_err(|error| error.to_string())?;
        let config = client_config(roots).map_err(|error| error.to_string())?;
        let name = ServerName::try_from(name.to_owned()).map_err(|_| invalid())?;
        Ok(Target { host: host.to_owned(), address: address.ok_or_else(invalid)?, tls: Some((Arc::new(config), name)) })
    }

    /// Returns the same target, for connections that each make a whole handshake.
    pub fn without_resumption(&self) -> Target {
        let mut target = self.clone();
        if let Some((config, _)) = &mut target.tls {
            let mut whole = ClientConfig::clone(config);
            whole.resumption = Resumption::disabled();
            *config = Arc::new(whole);
        }
        target
    }
}

/// A socket that is read in large pieces.
struct Socket(BufReader<TcpStream>);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The bytes of a connection.
enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

pub struct Client {
    stream: BufReader<Stream>,
    host: String,
    token: String,
    piece: Vec<u8>,
}

/// Escapes a text for an address.
pub fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// Connects from an address of this host.
fn connected(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// The head of a response.
struct Head {
    status: u16,
    length: usize,
    is_chunked: bool,
}

impl Client {
    /// Connects from the usual address of this host.
    pub fn new(target: &Target, token: &str) -> Result<Client, String> {
        Client::from(Ipv4Addr::LOCALHOST, target, token)
    }

    /// Connects from an address of this host, since a hub gives each address a share.
    pub fn from(from: Ipv4Addr, target: &Target, token: &str) -> Result<Client, String> {
        let failed = |error: Error| format!("{}: {error}", target.host);
        let stream = connected(from, target.address).map_err(failed)?;
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE))).map_err(failed)?;
        let stream = match &target.tls {
            None => Stream::Plain(stream),
            Some((config, name)) => {
                let connection = ClientConnection::new(config.clone(), name.clone()).map_err(|error| error.to_string())?;
                let socket = Socket(BufReader::with_capacity(AT_ONCE, stream));
                Stream::Tls(Box::new(StreamOwned::new(connection, socket)))
            }
        };
        Ok(Client { stream: BufReader::new(stream), host: target.host.clone(), token: token.to_owned(), piece: Vec::new() })
    }

    /// Sends a request of the API. A response without success is an error.
    pub fn ask(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let sent = self.send(method, &format!("/api/v1{path}"), kind, body);
        let answer = sent.and_then(|head| self.body(&head, |piece| bytes.extend_from_slice(piece)).map(|_| head.status));
        match answer.map_err(|error| format!("{method} {path}: {error}"))? {
            200..300 => Ok(bytes),
            status => Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(&bytes))),
        }
    }

    /// Reads a page at a path from the root; returns the number of its bytes. A response without success is an error.
    pub fn fetch(&mut self, path: &str) -> Result<u64, String> {
        let sent = self.send("GET", path, "application/json", b"");
        let answer = sent.and_then(|head| self.body(&head, |_| {}).map(|bytes| (head.status, bytes)));
        match answer.map_err(|error| format!("GET {path}: {error}"))? {
            (200..300, bytes) => Ok(bytes),
            (status, _) => Err(format!("GET {path}: {status}")),
        }
    }

    /// Returns true if the connection speaks TLS 1.3, and false for one without TLS. An earlier version is an error.
    pub fn is_tls(&self) -> Result<bool, String> {
        match self.stream.get_ref() {
            Stream::Plain(_) => Ok(false),
            Stream::Tls(stream) => match stream.conn.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => Ok(true),
                other => Err(format!("{other:?} instead of TLS 1.3")),
            },
        }
    }

    /// Returns true if the connection went on with the keys of an earlier one.
    pub fn is_resumed(&self) -> bool {
        match self.stream.get_ref() {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.conn.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Reads a value.
    pub fn get(&mut self, path: &str) -> Result<Value, String> {
        let bytes = self.ask("GET", path, "application/json", b"")?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
    }

    /// Sends a value, and returns the response.
    pub fn post(&mut self, path: &str, value: &Value) -> Result<Value, String> {
        let bytes = self.ask("POST", path, "application/json", value.to_string().as_bytes())?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
    }

    fn send(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> std::io::Result<Head> {
        let bad = |what: &str| Error::new(ErrorKind::InvalidData, what.to_owned());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.host,
            self.token,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat())?;
        stream.flush()?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| bad("no status"))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(bad("the headers do not end"));
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(|_| bad("no length"))?,
                "transfer-encoding" => is_chunked = value.trim().eq_ignore_ascii_case("chunked"),
                _ => {}
            }
        }
        Ok(Head { status, length, is_chunked })
    }

    /// Reads a body in pieces; returns its length.
    fn body(&mut self, head: &Head, mut act: impl FnMut(&[u8])) -> std::io::Result<u64> {
        self.piece.resize(AT_ONCE, 0);
        if !head.is_chunked {
            return self.bytes(head.length, &mut act);
        }
        let (mut line, mut all) = (String::new(), 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16);
            let size = size.map_err(|_| Error::new(ErrorKind::InvalidData, "no size of a chunk"))?;
            all += self.bytes(size, &mut act)?;
            line.clear();
            self.stream.read_line(&mut line)?;
            if size == 0 {
                return Ok(all);
            }
        }
    }

    fn bytes(&mut self, length: usize, act: &mut impl FnMut(&[u8])) -> std::io::Result<u64> {
        let mut left = length;
        while left > 0 {
            let room = left.min(self.piece.len());
            match self.stream.read(&mut self.piece[..room])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => {
                    act(&self.piece[..read]);
                    left -= read;
                }
            }
        }
        Ok(length as u64)
    }
}
