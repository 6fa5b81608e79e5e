//! Connects to a receiver, and reconnects whenever the connection breaks: a worker for each receiver of a flow.

use std::{
    io,
    net::{TcpStream, ToSocketAddrs, UdpSocket},
    sync::Arc,
    time::{Duration, Instant},
};

use tampu_bus::host;

use super::flow::{
    core::FlowShared,
    settings::{SendFlow, Slow},
};
use crate::{
    datagram::Outlet,
    frame::{Header, Kind},
    message::{CONTROL_LIMIT, Hello, LEAST_FRAME, ProtectionLevel, Refusal, Refuse, Token, Transport, VERSION, Welcome},
    open::{OpenError, spawn},
    passes::PassOffice,
    protection::Protection,
    receiver::{
        Line,
        reading::{Came, FrameReader},
    },
    seal::{DatagramSealer, LinkKeys, RecordOpener, RecordSealer, SealError, handshake},
    shm::Seat,
    target::Target,
};

/// The longest duration of a connect.
const CONNECT: Duration = Duration::from_secs(5);
/// The longest wait for the answer to a Hello. The receiver may be in a callback.
const WELCOME: Duration = Duration::from_secs(10);
/// First pause between attempts; each is twice as long, up to the second constant.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Receiver to connect to.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    pub target: Target,
    /// Boot of its host, if known.
    pub boot: Option<u32>,
    /// Transports that its flow declares; empty if unknown.
    pub transports: Vec<Transport>,
    /// Protection that its flow declares.
    pub protection: Protection,
    /// Place of its passes, if the bus announces it.
    pub passes: Option<PassOffice>,
}

impl Goal {
    /// Returns true if the peer is on this host.
    fn is_here(&self, stream: &TcpStream) -> bool {
        self.boot.map_or_else(|| stays_here(stream), |boot| boot == host::boot())
    }

    /// Returns the protection to demand by this transport.
    fn protection(&self, settings: &SendFlow, way: Transport, stream: &TcpStream) -> ProtectionLevel {
        // The traffic of two addresses of one host does not leave it, wherever the boot was declared.
        let one_host = stays_here(stream);
        let demanded = settings.protection.level(one_host).max(self.protection.level(one_host));
        if way == Transport::Multicast { demanded.max(settings.group_protection()) } else { demanded }
    }

    /// Returns the transports to request, one by one until the receiver accepts one. There is always one.
    fn ways(&self, settings: &SendFlow, here: bool) -> Vec<Transport> {
        // Skipping in shared memory may pass over a Start or a Stop; on the connection it does not.
        let shared = settings.slow != Slow::Skip;
        match settings.way() {
            Some(Transport::Shm) if !shared => vec![Transport::Tcp],
            Some(way) => vec![way],
            None => {
                let mut ways = if here && shared { vec![Transport::Shm] } else { Vec::new() };
                ways.extend([Transport::Tcp, Transport::Udp]);
                if !self.transports.is_empty() {
                    ways.retain(|way| self.transports.contains(way));
                }
                // If no transport fits, the receiver's refusal reports it.
                if ways.is_empty() { vec![Transport::Tcp] } else { ways }
            }
        }
    }
}

/// Returns true if both addresses of the connection belong to this host.
fn stays_here(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(there), Ok(here)) => there.ip().to_canonical() == here.ip().to_canonical() || there.ip().to_canonical().is_loopback(),
        _ => false,
    }
}

/// Connection to a receiver.
pub(super) struct Made {
    pub stream: TcpStream,
    /// Reader of the Welcome, perhaps with buffered bytes after it.
    pub reader: FrameReader,
    pub seat: Option<Seat>,
    pub datagrams: Option<Outlet>,
    /// Keys for the sender's frames on a protected connection.
    pub sealer: Option<RecordSealer>,
    pub welcome: Welcome,
}

/// Opens a socket beside this connection. The Hello carries its port, and datagrams from other addresses are ignored.
fn bound(stream: &TcpStream) -> io::Result<(UdpSocket, u16)> {
    let socket = UdpSocket::bind((stream.local_addr()?.ip(), 0))?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

/// Makes an outlet to the receiver's datagram address.
fn outlet(socket: UdpSocket, place: &str) -> io::Result<Outlet> {
    socket.connect(place)?;
    let to = socket.peer_addr()?;
    Outlet::new(socket, to)
}

/// Congestion control of connections that stay on one host. There is no network to share, and every Linux has this one.
/// BBR, the default of some systems, sets a timer for each packet, which takes half of a sender's time there.
const ON_ONE_HOST: &str = "reno";

enum Failed {
    Refused(Refuse),
    /// The transport failed; there is another one to request.
    NotThisWay,
    Io(io::Error),
    Garbled(String),
}

pub(super) fn begin(inner: &Arc<FlowShared>, key: String, goal: Goal) -> Result<(), OpenError> {
    let inner = inner.clone();
    spawn("bulk-connect", move || keep(&inner, &key, &goal)).map(drop)
}

/// Connects, and reconnects after each broken connection, as long as the receiver is wanted.
fn keep(inner: &FlowShared, key: &str, goal: &Goal) {
    let mut pause = PAUSE;
    let mut learnt = Learnt::default();
    while inner.keeps(key) {
        match connect(inner, goal, &mut learnt) {
            Ok(made) => {
                let (protected, began) = (made.sealer.is_some(), Instant::now());
                inner.attach(key, made, goal.target.address.clone());
                if !inner.until_gone(key) {
                    return;
                }
                if protected && began.elapsed() < LONGEST_PAUSE {
                    // Somebody on the way may spoil each connection: the exchange of keys must not fill the time.
                    inner.pause(key, pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                } else {
                    pause = PAUSE;
                }
            }
            Err(failed) => {
                let (refusal, why) = match failed {
                    Failed::Refused(Refuse { why, text }) if text.is_empty() => (Some(why), why.to_string()),
                    Failed::Refused(Refuse { why, text }) => (Some(why), format!("{why}: {text}")),
                    Failed::Io(error) => (None, format!("{}: {error}", goal.target.address)),
                    Failed::Garbled(why) => (None, format!("{} answers: {why}", goal.target.address)),
                    Failed::NotThisWay => continue,
                };
                inner.failed(key, refusal, why);
                inner.pause(key, pause);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Results of the attempts so far.
#[derive(Default)]
struct Learnt {
    /// Number of refused transports; after a broken connection the accepted transport is requested again.
    refusals: usize,
    /// True once the receiver has demanded protection.
    protected: bool,
}

fn connect(inner: &FlowShared, goal: &Goal, learnt: &mut Learnt) -> Result<Made, Failed> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in goal.target.address.to_socket_addrs().map_err(Failed::Io)? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return greet(inner, goal, stream, learnt),
            Err(why) => error = why,
        }
    }
    Err(Failed::Io(error))
}

/// Does the handshake: one request, one answer. Before it keys are exchanged, if one end demands protection.
fn greet(inner: &FlowShared, goal: &Goal, stream: TcpStream, learnt: &mut Learnt) -> Result<Made, Failed> {
    let prepare = |stream: &TcpStream| -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        stream.set_write_timeout(Some(CONNECT))?;
        if stays_here(stream) {
            // Where the system has another one, it stays.
            let _ = rustix::net::sockopt::set_tcp_congestion(stream, ON_ONE_HOST);
        }
        if let Some(bytes) = inner.settings.socket_buffer {
            rustix::net::sockopt::set_socket_send_buffer_size(stream, bytes)?;
        }
        Ok(())
    };
    prepare(&stream).map_err(Failed::Io)?;
    let settings = &inner.settings;
    let ways = goal.ways(settings, goal.is_here(&stream));
    let way = ways[learnt.refusals % ways.len()];
    let mut demanded = goal.protection(settings, way, &stream);
    if learnt.protected {
        demanded = demanded.max(ProtectionLevel::Authenticated);
    }
    // Asked for before the handshake, in which the receiver does not wait long.
    let pass = goal.passes.as_ref().and_then(PassOffice::ask).transpose().map_err(|why| Failed::Io(io::Error::other(why)))?;
    let mut dialogue = Dialogue::new(stream);
    let keys = if demanded > ProtectionLevel::None { Some(dialogue.exchange(&goal.target.token)?) } else { None };
    let stream = &dialogue.line.stream;
    let seat = if way == Transport::Shm { inner.offer() } else { None };
    let datagrams =
        matches!(way, Transport::Udp | Transport::Multicast).then(|| bound(stream)).transpose().map_err(Failed::Io)?;
    let hello = Hello {
        version: VERSION,
        // A machine without room for shared memory uses TCP.
        transport: if way == Transport::Shm && seat.is_none() { Transport::Tcp } else { way },
        checked: settings.checked,
        frame: settings.frame,
        session: inner.session,
        ack_every: settings.ack_every.min(settings.window as u64 / 2).max(1),
        transfer: inner.transfer(),
        token: match pass {
            Some(pass) => pass,
            // The keys prove the token, so it stays here.
            None if keys.is_some() => Token::default(),
            None => goal.target.token,
        },
        incarnation: inner.identity.incarnation,
        domain: inner.identity.domain.clone(),
        source: inner.identity.source.clone(),
        stream: inner.stream.as_str().to_owned(),
        flow: settings.name.as_str().to_owned(),
        place: match (&seat, inner.group) {
            (Some(seat), _) => seat.place(),
            (None, Some(group)) => group.to_string(),
            (None, None) => String::new(),
        },
        port: datagrams.as_ref().map_or(0, |(_, port)| *port),
        protection: demanded,
        group_key: inner.group_key.filter(|_| way == Transport::Multicast && keys.is_some()),
    };
    let header = dialogue.ask(Kind::Hello, &hello.encode())?;
    let payload = dialogue.reader.payload();
    match header.kind {
        Kind::Welcome => {
            let welcome = Welcome::decode(payload).map_err(garbled)?;
            check_welcome(&hello, &welcome, settings)?;
            let datagrams = datagrams.filter(|_| matches!(welcome.transport, Transport::Udp | Transport::Multicast));
            let to = |(socket, _)| outlet(socket, &welcome.place);
            let mut datagrams = datagrams.map(to).transpose().map_err(Failed::Io)?;
            if let (Some(outlet), Some(keys)) = (&mut datagrams, &keys) {
                outlet.protect(DatagramSealer::new(&keys.datagrams).map_err(garbled)?);
            }
            let Dialogue { line, mut reader } = dialogue;
            reader.set_deadline(None);
            let (stream, sealer) = line.into_parts();
            stream.set_nonblocking(true).map_err(Failed::Io)?;
            Ok(Made { stream, reader, seat, datagrams, sealer, welcome })
        }
        Kind::Refuse => {
            let refuse = Refuse::decode(payload).map_err(garbled)?;
            learnt.refusals += usize::from(refuse.why == Refusal::Transport);
            let another = refuse.why == Refusal::Transport && !learnt.refusals.is_multiple_of(ways.len());
            let stronger = refuse.why == Refusal::Protection && !learnt.protected && keys.is_none();
            learnt.protected |= stronger;
            Err(if another || stronger { Failed::NotThisWay } else { Failed::Refused(refuse) })
        }
        kind => Err(Failed::Garbled(format!("a frame of kind {kind:?}"))),
    }
}

/// Checks that the receiver's answer fits the request.
fn check_welcome(hello: &Hello, welcome: &Welcome, settings: &SendFlow) -> Result<(), Failed> {
    let least = settings.frame.min(LEAST_FRAME);
    if welcome.frame < least {
        return Err(Failed::Garbled(format!("frames of {} bytes, {least} at least are wanted", welcome.frame)));
    }
    if welcome.transport != hello.transport && welcome.transport != Transport::Tcp {
        return Err(Failed::Garbled(format!("{} where {} was asked for", welcome.transport, hello.transport)));
    }
    if welcome.protection < hello.protection {
        return Err(Failed::Garbled(format!("{} where {} is demanded", welcome.protection, hello.protection)));
    }
    Ok(())
}

fn garbled(why: impl std::fmt::Display) -> Failed {
    Failed::Garbled(why.to_string())
}

/// Connection during its handshake: a question, an answer.
struct Dialogue {
    line: Line,
    reader: FrameReader,
}

impl Dialogue {
    fn new(stream: TcpStream) -> Dialogue {
        Dialogue { line: Line::new(stream), reader: FrameReader::new(CONTROL_LIMIT) }
    }

    /// Exchanges keys with a receiver that must know this token. All frames after it are sealed.
    fn exchange(&mut self, token: &Token) -> Result<LinkKeys, Failed> {
        let offered = handshake::offer().map_err(garbled)?;
        let header = self.ask(Kind::KeyOffer, &offered.payload)?;
        if header.kind != Kind::KeyReply {
            return Err(Failed::Garbled(format!("a frame of kind {:?} in place of its key", header.kind)));
        }
        let keys = offered.accept(token, self.reader.payload()).map_err(|why| match why {
            SealError::Proof => Failed::Refused(Refuse { why: Refusal::Stranger, text: why.to_string() }),
            _ => garbled(why),
        })?;
        self.line.protect(RecordSealer::new(&keys.sender).map_err(garbled)?);
        self.reader.protect(RecordOpener::new(&keys.receiver).map_err(garbled)?);
        Ok(keys)
    }

    /// Sends a frame, and waits for the answer.
    fn ask(&mut self, kind: Kind, payload: &[u8]) -> Result<Header, Failed> {
        self.line.write(&Header::of(kind).over(payload, true), payload).map_err(Failed::Io)?;
        let until = Instant::now() + WELCOME;
        self.reader.set_deadline(Some(until));
        while Instant::now() < until {
            match self.reader.next(&mut self.line.stream) {
                Ok(Came::Frame(header)) => {
                    header.check(self.reader.payload()).map_err(garbled)?;
                    return Ok(header);
                }
                Ok(Came::Idle) => {}
                Ok(Came::Closed { .. }) => return Err(Failed::Garbled("nothing, and closed".to_owned())),
                Err(error) => return Err(garbled(error)),
            }
        }
        Err(Failed::Io(io::ErrorKind::TimedOut.into()))
    }
}
