//! Client of a gateway, for programs that do not join the bus themselves: `spec/wire/gateway.md`.
//!
//! A [`GatewayClient`] is a value without threads. Its caller reads frames with [`GatewayClient::next`], which also
//! acknowledges them and sends beats. After a lost connection [`GatewayClient::resume`] goes on with the same session;
//! frames of both sides that were under way are sent again, and none comes twice.
//!
//! ```no_run
//! use std::{path::Path, time::Duration};
//! use tampu_bus::gateway::GatewayClient;
//! use tampu_types::gateway::{Kind, messages::{Hello, Open}};
//!
//! # fn main() -> Result<(), tampu_bus::gateway::GatewayError> {
//! let mut client = GatewayClient::connect(Path::new("/run/user/1000/tampu/local/gateway.sock"), Hello::default())?;
//! let open = Open { topics: vec!["weather/*".into()], credit: Some(1 << 20), ..Open::default() };
//! client.send_json(Kind::Open, 1, &open)?;
//! while let Some(frame) = client.next(Duration::from_secs(5))? {
//!     println!("{} of {}: {} bytes", frame.kind.name(), frame.id, frame.body.len());
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::net::{RecvFlags, recv};
use serde::Serialize;
use tampu_types::gateway::{
    BadFrame, Frame, FrameHeader, HEADER_LEN, Kind,
    messages::{Big, End, Hello, VERSION, Welcome},
    put_frame,
};

/// Time between two frames of this side before the gateway has said what it allows.
const FIRST_BEAT: Duration = Duration::from_secs(1);
/// Bytes of counted frames after which they are acknowledged.
const ACKNOWLEDGE_AFTER: usize = 64 << 10;
/// Longest body that this client takes where HELLO names none.
const FRAME: u32 = 16 << 20;
/// Bytes that are read at once.
const READ: usize = 64 << 10;

/// Error of a client.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The connection is lost; the session can be resumed.
    #[error("the connection to the gateway at {path}: {why}")]
    Connection {
        /// Socket of the gateway.
        path: PathBuf,
        /// Reason of the system.
        why: io::Error,
    },
    /// The gateway has ended the session.
    #[error("the gateway has ended the session: {}", .0.error)]
    Ended(End),
    /// The gateway does not keep to the protocol.
    #[error("the gateway's frames: {0}")]
    Frame(#[from] BadFrame),
    /// A frame came out of order, or a body is no JSON of its kind.
    #[error("the gateway's frames: {0}")]
    Protocol(String),
}

/// A counted frame of the gateway.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Kind of the frame.
    pub kind: Kind,
    /// Flags of the kind.
    pub flags: u8,
    /// Subscription, publisher or question.
    pub id: u32,
    /// Body of the frame.
    pub body: &'a [u8],
}

impl Received<'_> {
    /// Returns the body as JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, GatewayError> {
        serde_json::from_slice(self.body).map_err(|why| GatewayError::Protocol(format!("{}: {why}", self.kind.name())))
    }
}

/// A session with a gateway.
pub struct GatewayClient {
    path: PathBuf,
    socket: UnixStream,
    hello: Hello,
    welcome: Welcome,
    /// Bytes that arrived; those before `at` were processed.
    input: Vec<u8>,
    at: usize,
    sent: u64,
    received: u64,
    unacknowledged: usize,
    /// Frames that the gateway has not acknowledged.
    kept: VecDeque<(u64, Vec<u8>)>,
    next_beat: Instant,
}

impl GatewayClient {
    /// Begins a session at the gateway of this socket.
    pub fn connect(path: &Path, hello: Hello) -> Result<GatewayClient, GatewayError> {
        let socket = UnixStream::connect(path).map_err(|why| GatewayError::Connection { path: path.to_owned(), why })?;
        let mut client = GatewayClient {
            path: path.to_owned(),
            socket,
            hello: Hello { versions: vec![VERSION], ..hello },
            welcome: Welcome::default(),
            input: Vec::new(),
            at: 0,
            sent: 0,
            received: 0,
            unacknowledged: 0,
            kept: VecDeque::new(),
            next_beat: Instant::now() + FIRST_BEAT,
        };
        client.greet()?;
        Ok(client)
    }

    /// Connects again, and goes on with the session. Returns false if the gateway does not know it any more: then a new
    /// session has begun, without subscriptions and publishers.
    pub fn resume(&mut self) -> Result<bool, GatewayError> {
        self.socket = UnixStream::connect(&self.path).map_err(|why| self.lost(why))?;
        self.input.clear();
        self.at = 0;
        self.hello.session = Some(self.welcome.session.clone());
        self.hello.received = Some(Big(self.received));
        self.greet()?;
        if !self.welcome.resumed {
            (self.sent, self.received, self.unacknowledged) = (0, 0, 0);
            self.kept.clear();
            return Ok(false);
        }
        self.forget(self.welcome.received.0);
        let again: Vec<u8> = self.kept.iter().flat_map(|(_, frame)| frame.iter().copied()).collect();
        self.write(&again)?;
        Ok(true)
    }

    /// Returns the gateway's welcome.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Returns the number of frames that the gateway has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.kept.len()
    }

    /// Returns the connection, for a caller that closes it.
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Sends a counted frame. It is kept until the gateway has acknowledged it, also if the connection is lost.
    pub fn send(&mut self, kind: Kind, flags: u8, id: u32, body: &[u8]) -> Result<(), GatewayError> {
        self.sent += 1;
        let mut frame = Vec::new();
        put_frame(&mut frame, kind, flags, id, self.sent, body);
        let written = self.write(&frame);
        self.kept.push_back((self.sent, frame));
        written
    }

    /// Sends a counted frame whose body is JSON.
    pub fn send_json(&mut self, kind: Kind, id: u32, body: &impl Serialize) -> Result<(), GatewayError> {
        let body = serde_json::to_vec(body).map_err(|why| GatewayError::Protocol(why.to_string()))?;
        self.send(kind, 0, id, &body)
    }

    /// Sets the total credit of a subscription, in bytes.
    pub fn credit(&mut self, id: u32, total: u64) -> Result<(), GatewayError> {
        self.send(Kind::Credit, 0, id, &total.to_le_bytes())
    }

    /// Ends the session in order.
    pub fn bye(mut self) -> Result<(), GatewayError> {
        let mut frame = Vec::new();
        put_frame(&mut frame, Kind::Bye, 0, 0, 0, b"{}");
        self.write(&frame)?;
        loop {
            match self.next(Duration::from_secs(5)) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(GatewayError::Ended(end)) if end.error.is_empty() => return Ok(()),
                Err(why) => return Err(why),
            }
        }
    }

    /// Returns the next counted frame; none within the time. The call acknowledges frames and sends beats.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Received<'_>>, GatewayError> {
        let until = Instant::now() + timeout;
        loop {
            if self.unacknowledged >= ACKNOWLEDGE_AFTER || Instant::now() >= self.next_beat {
                self.acknowledge()?;
            }
            let Some((header, body)) = self.parsed()? else {
                if !self.fill(until)? {
                    return Ok(None);
                }
                continue;
            };
            match header.kind {
                Kind::Ack => {
                    let number = Frame { header, body: &self.input[body] }.value()?;
                    self.forget(number);
                }
                Kind::Bye => return Err(GatewayError::Ended(serde_json::from_slice(&self.input[body]).unwrap_or_default())),
                kind if !kind.is_counted() => return Err(GatewayError::Protocol(format!("{} came", kind.name()))),
                // A frame that came before, sent again after a reconnect.
                _ if header.number <= self.received => {}
                _ if header.number != self.received + 1 => {
                    let wanted = self.received + 1;
                    return Err(GatewayError::Protocol(format!("frame {} came instead of {wanted}", header.number)));
                }
                kind => {
                    self.received = header.number;
                    self.unacknowledged += HEADER_LEN + body.len();
                    return Ok(Some(Received { kind, flags: header.flags, id: header.id, body: &self.input[body] }));
                }
            }
        }
    }

    /// Acknowledges all received frames.
    pub fn acknowledge(&mut self) -> Result<(), GatewayError> {
        let mut frame = Vec::new();
        put_frame(&mut frame, Kind::Ack, 0, 0, 0, &self.received.to_le_bytes());
        self.unacknowledged = 0;
        self.write(&frame)
    }

    fn greet(&mut self) -> Result<(), GatewayError> {
        let body = serde_json::to_vec(&self.hello).map_err(|why| GatewayError::Protocol(why.to_string()))?;
        let mut frame = Vec::new();
        put_frame(&mut frame, Kind::Hello, 0, 0, 0, &body);
        self.write(&frame)?;
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some((header, body)) = self.parsed()? {
                let body = &self.input[body];
                return match header.kind {
                    Kind::Welcome => {
                        self.welcome =
                            serde_json::from_slice(body).map_err(|why| GatewayError::Protocol(format!("welcome: {why}")))?;
                        Ok(())
                    }
                    Kind::Bye => Err(GatewayError::Ended(serde_json::from_slice(body).unwrap_or_default())),
                    kind => Err(GatewayError::Protocol(format!("{} came before welcome", kind.name()))),
                };
            }
            if !self.fill(until)? {
                return Err(self.lost(io::ErrorKind::TimedOut.into()));
            }
        }
    }

    /// Takes the next frame of the input, if it is there.
    fn parsed(&mut self) -> Result<Option<(FrameHeader, std::ops::Range<usize>)>, GatewayError> {
        let limit = self.hello.frame.unwrap_or(FRAME).max(64 << 10);
        let Some((frame, _)) = Frame::first(&self.input[self.at..], limit)? else { return Ok(None) };
        let (header, body) = (frame.header, self.at + HEADER_LEN..self.at + HEADER_LEN + frame.body.len());
        self.at = body.end;
        Ok(Some((header, body)))
    }

    /// Waits for bytes. Returns whether some came in time.
    fn fill(&mut self, until: Instant) -> Result<bool, GatewayError> {
        self.input.drain(..self.at);
        self.at = 0;
        loop {
            let now = Instant::now();
            let wait = until.min(self.next_beat).saturating_duration_since(now);
            let length = self.input.len();
            self.input.resize(length + READ, 0);
            let read = if wait.is_zero() {
                // A time limit of nothing would mean none.
                recv(&self.socket, &mut self.input[length..], RecvFlags::DONTWAIT).map(|(read, _)| read).map_err(io::Error::from)
            } else {
                self.socket.set_read_timeout(Some(wait)).and_then(|()| self.socket.read(&mut self.input[length..]))
            };
            self.input.truncate(length + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => return Ok(true),
                Err(why) if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(self.lost(why)),
            }
            let now = Instant::now();
            if now >= self.next_beat {
                self.acknowledge()?;
            }
            if now >= until {
                return Ok(false);
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), GatewayError> {
        self.next_beat = Instant::now() + self.beat();
        self.socket.write_all(bytes).map_err(|why| self.lost(why))
    }

    /// Returns the time between two frames of this side: three quarters of what the gateway allows.
    fn beat(&self) -> Duration {
        match self.welcome.beat_ms {
            0 => FIRST_BEAT,
            longest => Duration::from_millis((longest * 3 / 4).min(60_000)),
        }
    }

    fn forget(&mut self, number: u64) {
        while self.kept.front().is_some_and(|(first, _)| *first <= number) {
            self.kept.pop_front();
        }
    }

    fn lost(&self, why: io::Error) -> GatewayError {
        GatewayError::Connection { path: self.path.clone(), why }
    }
}
