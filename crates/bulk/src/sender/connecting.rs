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
    message::{CONTROL_LIMIT, Hello, LEAST_FRAME, Refusal, Refuse, Transport, VERSION, Welcome},
    open::{OpenError, spawn},
    receiver::reading::{Came, FrameReader},
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
}

impl Goal {
    /// Returns true if the peer is on this host.
    fn is_here(&self, stream: &TcpStream) -> bool {
        match (self.boot, stream.peer_addr(), stream.local_addr()) {
            (Some(boot), ..) => boot == host::boot(),
            (None, Ok(there), Ok(here)) => there.ip() == here.ip() || there.ip().is_loopback(),
            _ => false,
        }
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

/// Connection to a receiver.
pub(super) struct Made {
    pub stream: TcpStream,
    /// Reader of the Welcome, perhaps with buffered bytes after it.
    pub reader: FrameReader,
    pub seat: Option<Seat>,
    pub datagrams: Option<Outlet>,
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
    // The number of refused transports; after a broken connection the accepted transport is requested again.
    let mut refusals = 0;
    while inner.keeps(key) {
        match connect(inner, goal, &mut refusals) {
            Ok(made) => {
                pause = PAUSE;
                inner.attach(key, made, goal.target.address.clone());
                if !inner.until_gone(key) {
                    return;
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

fn connect(inner: &FlowShared, goal: &Goal, refusals: &mut usize) -> Result<Made, Failed> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in goal.target.address.to_socket_addrs().map_err(Failed::Io)? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return greet(inner, goal, stream, refusals),
            Err(why) => error = why,
        }
    }
    Err(Failed::Io(error))
}

/// Does the handshake: one request, one answer.
fn greet(inner: &FlowShared, goal: &Goal, mut stream: TcpStream, refusals: &mut usize) -> Result<Made, Failed> {
    let prepare = |stream: &TcpStream| -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        stream.set_write_timeout(Some(CONNECT))?;
        if let Some(bytes) = inner.settings.socket_buffer {
            rustix::net::sockopt::set_socket_send_buffer_size(stream, bytes)?;
        }
        Ok(())
    };
    prepare(&stream).map_err(Failed::Io)?;
    let settings = &inner.settings;
    let ways = goal.ways(settings, goal.is_here(&stream));
    let way = ways[*refusals % ways.len()];
    let seat = if way == Transport::Shm { inner.offer() } else { None };
    let datagrams =
        matches!(way, Transport::Udp | Transport::Multicast).then(|| bound(&stream)).transpose().map_err(Failed::Io)?;
    let hello = Hello {
        version: VERSION,
        // A machine without room for shared memory uses TCP.
        transport: if way == Transport::Shm && seat.is_none() { Transport::Tcp } else { way },
        checked: settings.checked,
        frame: settings.frame,
        session: inner.session,
        ack_every: settings.ack_every.min(settings.window as u64 / 2).max(1),
        transfer: inner.transfer(),
        token: goal.target.token,
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
    };
    let payload = hello.encode();
    crate::receiver::write(&mut stream, &Header::of(Kind::Hello).over(&payload, true), &payload).map_err(Failed::Io)?;
    let mut reader = FrameReader::new(CONTROL_LIMIT);
    let until = Instant::now() + WELCOME;
    reader.set_deadline(Some(until));
    while Instant::now() < until {
        let header = match reader.next(&mut stream) {
            Ok(Came::Frame(header)) => header,
            Ok(Came::Idle) => continue,
            Ok(Came::Closed { .. }) => return Err(Failed::Garbled("nothing, and closed".to_owned())),
            Err(error) => return Err(Failed::Garbled(error.to_string())),
        };
        let payload = reader.payload();
        if let Err(bad) = header.check(payload) {
            return Err(Failed::Garbled(bad.to_string()));
        }
        return match header.kind {
            Kind::Welcome => {
                let welcome = Welcome::decode(payload).map_err(|bad| Failed::Garbled(bad.to_string()))?;
                stream.set_nonblocking(true).map_err(Failed::Io)?;
                let least = settings.frame.min(LEAST_FRAME);
                if welcome.frame < least {
                    return Err(Failed::Garbled(format!("frames of {} bytes, {least} at least are wanted", welcome.frame)));
                }
                if welcome.transport != hello.transport && welcome.transport != Transport::Tcp {
                    return Err(Failed::Garbled(format!("{} where {} was asked for", welcome.transport, hello.transport)));
                }
                let datagrams = datagrams.filter(|_| matches!(welcome.transport, Transport::Udp | Transport::Multicast));
                let to = |(socket, _)| outlet(socket, &welcome.place);
                let datagrams = datagrams.map(to).transpose().map_err(Failed::Io)?;
                reader.set_deadline(None);
                Ok(Made { stream, reader, seat, datagrams, welcome })
            }
            Kind::Refuse => {
                let refuse = Refuse::decode(payload).map_err(|bad| Failed::Garbled(bad.to_string()))?;
                *refusals += usize::from(refuse.why == Refusal::Transport);
                let another = refuse.why == Refusal::Transport && !refusals.is_multiple_of(ways.len());
                Err(if another { Failed::NotThisWay } else { Failed::Refused(refuse) })
            }
            kind => Err(Failed::Garbled(format!("a frame of kind {kind:?}"))),
        };
    }
    Err(Failed::Io(io::ErrorKind::TimedOut.into()))
}
