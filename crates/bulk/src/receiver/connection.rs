//! One connection of a sender: the hand-shake, then frames until it ends.

use std::{
    io::{self, IoSlice, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Shared, Slot,
    datagrams::Datagrams,
    flow::Answer,
    leave,
    listener::Inside,
    lock,
    reading::{Came, FrameReader, ReadError},
};
use crate::{
    datagram::ROOM_A_DATAGRAM,
    frame::{Header, Kind},
    group::NotJoined,
    handler::{Connection, Peer},
    message::{CONTROL_LIMIT, Fault, FaultKind, Hello, Refusal, Refuse, Transport, VERSION, Welcome},
    name::Name,
    sending::Phase,
    shm::{Look, View},
    time::until,
};

/// How long reading waits before it looks whether it shall go on.
const TURN: Duration = Duration::from_millis(200);
/// With datagrams the sender has little under way, so it must hear often: of this part of it.
const DATAGRAM_ACKS: u32 = 4;
/// How often a reader of shared memory looks at its connection.
const LOOK: Duration = Duration::from_millis(50);
/// Refused senders that are remembered, so that each is told of once.
const TOLD_KEPT: usize = 64;
/// How long an answer may take to be written; the sender reads them all the time.
const ANSWER: Duration = Duration::from_secs(5);

/// Serves a connection to its end.
pub(super) fn serve(shared: &Arc<Shared>, mut stream: TcpStream, from: SocketAddr, caller: u64) {
    // What cannot be set is the system's default; whatever is wrong with the socket shows with the first call.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(TURN));
    let _ = stream.set_write_timeout(Some(ANSWER));
    let mut reader = FrameReader::new(CONTROL_LIMIT);
    let hello = hear(shared, &mut stream, &mut reader);
    shared.door.heard(caller);
    let Some(hello) = hello else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    match admit(shared, &mut stream, &hello, from) {
        Ok(tenant) => tenant.serve(shared, stream, reader),
        Err(refuse) => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            let payload = refuse.encode();
            let header = Header::of(Kind::Refuse).over(&payload, true);
            // Whoever does not hear it sees the connection close.
            let _ = write(&mut stream, &header, &payload);
            drop(stream);
            tell_refused(shared, &hello, from, refuse);
        }
    }
}

/// Tells the flow's handler of a sender that belongs here and was sent away all the same.
fn tell_refused(shared: &Shared, hello: &Hello, from: SocketAddr, refuse: Refuse) {
    if !matches!(refuse.why, Refusal::Taken | Refusal::Transport) {
        return;
    }
    let Some(slot) = slot_of(shared, hello) else { return };
    slot.refused.fetch_add(1, Ordering::Relaxed);
    let one = (hello.session, refuse.why);
    let mut told = lock(&slot.told_refused);
    if told.contains(&one) {
        return;
    }
    told.truncate(TOLD_KEPT - 1);
    told.push_front(one);
    drop(told);
    let change = Connection::Refused { sender: peer(hello, from), why: refuse.why, text: refuse.text };
    lock(&slot.flow).tell(&change);
}

fn peer(hello: &Hello, from: SocketAddr) -> Peer {
    Peer { source: hello.source.clone(), incarnation: hello.incarnation, address: from.to_string() }
}

/// The flow that the caller names.
fn slot_of<'a>(shared: &'a Shared, hello: &Hello) -> Option<&'a Slot> {
    let wanted = Name::new(hello.flow.as_str()).ok()?;
    shared.slots.iter().find(|slot| wanted == slot.settings.name)
}

/// The caller's Hello; `None` where it says something else, or nothing.
fn hear(shared: &Shared, stream: &mut TcpStream, reader: &mut FrameReader) -> Option<Hello> {
    let until = until(shared.settings.hello);
    // Also for one that goes on saying a little.
    reader.set_deadline(Some(until));
    while Instant::now() < until && !shared.closing.load(Ordering::Acquire) {
        match reader.next(stream) {
            Ok(Came::Frame(header)) if header.kind == Kind::Hello && header.check(reader.payload()).is_ok() => {
                reader.set_deadline(None);
                return Hello::decode(reader.payload()).ok();
            }
            Ok(Came::Idle) => {}
            _ => return None,
        }
    }
    None
}

/// A sender that was let in.
pub(super) struct Tenant<'a> {
    pub slot: &'a Slot,
    peer: Peer,
    number: u64,
    pub hello: Hello,
    welcome: Welcome,
    resumed: bool,
    /// The sender's memory, where data comes that way.
    view: Option<View>,
    /// Where datagrams come.
    datagrams: Option<Datagrams>,
    /// It counts among those connected.
    _inside: Inside<'a>,
}

fn refuse(why: Refusal, text: impl Into<String>) -> Refuse {
    Refuse { why, text: text.into() }
}

/// Whether the caller gets the flow, and tells it.
fn admit<'a>(shared: &'a Shared, stream: &mut TcpStream, hello: &Hello, from: SocketAddr) -> Result<Tenant<'a>, Refuse> {
    // Strangers first: they learn nothing else.
    if hello.token != shared.token || hello.domain != shared.identity.domain {
        return Err(refuse(Refusal::Stranger, ""));
    }
    if hello.version == 0 {
        return Err(refuse(Refusal::Version, format!("this is version {VERSION}")));
    }
    let limit = shared.settings.connections;
    let Some(inside) = shared.door.enter(limit) else { return Err(refuse(Refusal::Full, format!("{limit} at most"))) };
    if Name::new(hello.stream.as_str()).as_ref() != Ok(&shared.stream) {
        return Err(refuse(Refusal::NoStream, format!("this is '{}'", shared.stream)));
    }
    let Some(slot) = slot_of(shared, hello) else {
        let names: Vec<&str> = shared.slots.iter().map(|slot| slot.settings.name.as_str()).collect();
        return Err(refuse(Refusal::NoFlow, format!("there is {}", names.join(", "))));
    };
    let ways = &slot.settings.transports;
    let not_taken = |text: String| {
        let names: Vec<&str> = ways.iter().map(|way| way.name()).collect();
        refuse(Refusal::Transport, format!("{text}; it takes {}", names.join(", ")))
    };
    if !ways.contains(&hello.transport) {
        return Err(not_taken(format!("not {}", hello.transport)));
    }
    let peer = peer(hello, from);
    let number = shared.next_connection.fetch_add(1, Ordering::Relaxed);
    let (view, why) = match hello.transport {
        Transport::Shm => match View::open(&hello.place) {
            Ok(view) => (Some(view), String::new()),
            Err(why) => (None, format!("no shared memory: {why}")),
        },
        _ => (None, String::new()),
    };
    let (datagrams, why) = match hello.transport {
        Transport::Udp | Transport::Multicast => match datagrams(shared, stream, hello) {
            Ok(datagrams) => {
                let place = datagrams.place.clone();
                (Some(datagrams), place)
            }
            Err(why) => (None, format!("no datagrams: {why}")),
        },
        _ => (None, why),
    };
    let room = datagrams.as_ref().map_or(0, |one| one.room);
    let transport = match (&view, &datagrams) {
        (Some(_), _) => Transport::Shm,
        (None, Some(_)) => hello.transport,
        (None, None) => Transport::Tcp,
    };
    if !ways.contains(&transport) {
        return Err(not_taken(why));
    }
    take(slot, &peer, number, hello, stream)?;
    let mut flow = lock(&slot.flow);
    // A callback may have run for long: the same sender may have come once more, or given up and left the flow to another.
    if !slot.is_held_by(number) {
        return Err(refuse(Refusal::Taken, "by a later connection"));
    }
    flow.another_sender(&peer, hello.session);
    let resumed = flow.phase() == Phase::Data;
    let (sequence, offset) = flow.position();
    flow.ack_frames = if room > 0 { u64::from(room / ROOM_A_DATAGRAM / DATAGRAM_ACKS) } else { u64::MAX };
    // In shared memory the sender sees how far the receiver is.
    flow.ack_every = match transport {
        Transport::Shm => u64::MAX,
        Transport::Udp | Transport::Multicast => hello.ack_every.clamp(1 << 12, u64::from(room / DATAGRAM_ACKS)),
        _ => hello.ack_every.clamp(1 << 12, 1 << 30),
    };
    lock(&slot.tenancy).transport = Some(transport);
    let welcome = Welcome {
        version: hello.version.min(VERSION),
        transport,
        checked: hello.checked || slot.settings.checked,
        frame: hello.frame.clamp(1, datagrams.as_ref().map_or(slot.settings.frame, |one| one.frame.min(slot.settings.frame))),
        sequence,
        offset,
        incarnation: shared.identity.incarnation,
        source: shared.identity.source.clone(),
        place: why,
        room,
    };
    Ok(Tenant { slot, peer, number, hello: hello.clone(), welcome, resumed, view, datagrams, _inside: inside })
}

/// Sockets for datagrams, and the group they are sent to where the caller names one.
fn datagrams(shared: &Shared, stream: &TcpStream, hello: &Hello) -> Result<Datagrams, NotJoined> {
    let group = match hello.transport {
        Transport::Multicast => Some(hello.place.parse()?),
        _ => None,
    };
    let port = Some(hello.port).filter(|port| *port > 0).ok_or(NotJoined::NoPort)?;
    Datagrams::open(stream, port, shared.settings.socket_buffer, group.as_ref())
}

/// Gives the flow to the caller, unless another sender has it.
fn take(slot: &Slot, peer: &Peer, number: u64, hello: &Hello, stream: &TcpStream) -> Result<(), Refuse> {
    let mut tenancy = lock(&slot.tenancy);
    let same = tenancy.sender.as_ref().is_some_and(|one| one.incarnation == peer.incarnation) && tenancy.session == hello.session;
    let held = tenancy.connection.is_some() || tenancy.broken_since.is_some();
    if let (true, false, Some(sender)) = (held, same, &tenancy.sender) {
        let alive = tampu_bus::host::fate(sender.incarnation) != tampu_bus::engine::Fate::Dead;
        if alive {
            return Err(refuse(Refusal::Taken, format!("by {sender}")));
        }
    }
    let Ok(shut) = stream.try_clone() else { return Err(refuse(Refusal::Full, "out of file numbers")) };
    if let Some((_, old)) = tenancy.connection.replace((number, shut)) {
        // The same sender came again before the end of its old connection was seen.
        let _ = old.shutdown(std::net::Shutdown::Both);
    }
    tenancy.last_connection = number;
    tenancy.sender = Some(peer.clone());
    tenancy.session = hello.session;
    tenancy.transport = Some(Transport::Tcp);
    tenancy.connected_since = Some(Instant::now());
    tenancy.broken_since = None;
    Ok(())
}

impl Tenant<'_> {
    fn serve(mut self, shared: &Shared, mut stream: TcpStream, mut reader: FrameReader) {
        let payload = self.welcome.encode();
        let mut again = lock(&self.slot.flow).told();
        let told = write(&mut stream, &Header::of(Kind::Welcome).over(&payload, true), &payload)
            .and_then(|()| answer(&mut stream, &mut again));
        let why = match told {
            Ok(()) => {
                let change =
                    Connection::Connected { sender: self.peer.clone(), transport: self.welcome.transport, resumed: self.resumed };
                lock(&self.slot.flow).tell(&change);
                reader.set_limit(self.welcome.frame.max(CONTROL_LIMIT));
                match (self.view.take(), self.datagrams.take()) {
                    (None, Some(datagrams)) => self.read_datagrams(shared, datagrams, &mut stream, &mut reader),
                    (Some(view), _) => self.read_memory(shared, view, &mut stream, &mut reader),
                    (None, None) => self.read(shared, &mut stream, &mut reader),
                }
            }
            Err(error) => error.to_string(),
        };
        // A sender that has closed in order has said so, and one that comes again finds the flow as it was.
        let _ = stream.shutdown(std::net::Shutdown::Both);
        leave(shared, self.slot, self.number, &self.peer, &why);
    }

    pub(super) fn is_mine(&self) -> bool {
        self.slot.is_held_by(self.number)
    }

    /// Nothing came in time: tells both ends, and says so.
    pub(super) fn silent(&self, shared: &Shared, stream: &mut TcpStream) -> String {
        let text = format!("nothing came for {} s", shared.settings.silence.as_secs_f64());
        let mut answers = Vec::new();
        let mut flow = lock(&self.slot.flow);
        if self.is_mine() {
            flow.timeout(self.hello.session, &text, &mut answers);
        }
        drop(flow);
        // A sender that is only stopped finds it when it goes on; one that is gone does not.
        let _ = answer(stream, &mut answers);
        text
    }

    /// Reads frames in the sender's memory until the connection ends; says why it did.
    fn read_memory(&self, shared: &Shared, mut view: View, stream: &mut TcpStream, reader: &mut FrameReader) -> String {
        let mut answers: Vec<Answer> = Vec::new();
        let mut looked = Instant::now();
        let mut heard = Instant::now();
        loop {
            let look = view.next(|head, map, position| -> Result<Header, String> {
                let header = Header::decode(head, self.welcome.frame.max(CONTROL_LIMIT)).map_err(|bad| bad.to_string())?;
                if header.session != self.hello.session {
                    return Err("a frame of another flow came".to_owned());
                }
                let mut flow = lock(&self.slot.flow);
                if !self.is_mine() {
                    return Err("the sender has connected again".to_owned());
                }
                let used = map.with(position, header.length as usize, |payload| flow.frame(&header, payload, &mut answers));
                match used {
                    Some(Ok(())) => Ok(header),
                    Some(Err(bad)) => Err(bad.to_string()),
                    None => Err("a frame lies outside of the memory".to_owned()),
                }
            });
            let busy = match look {
                // Torn by the sender's next frame, because this receiver was moved on.
                Look::Used(Err(_), true) => true,
                Look::Used(Err(why), false) => return why,
                Look::Used(Ok(header), overwritten) => {
                    if overwritten {
                        lock(&self.slot.flow).overwritten(&header, &mut answers);
                    }
                    if view.done() && answers.is_empty() {
                        answers.push((lock(&self.slot.flow).acknowledge(&header), Vec::new()));
                    }
                    true
                }
                Look::Nothing => false,
                Look::Senseless => return "the memory makes no sense".to_owned(),
            };
            if let Err(why) = answer(stream, &mut answers) {
                return why.to_string();
            }
            if busy && looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            if reader.is_ahead() || crate::poll::readable(stream, Duration::ZERO) {
                // Whatever is still in the memory was sent before the connection ended.
                match self.control(stream, reader) {
                    Ok(()) => heard = looked,
                    Err(why) if !busy => return why,
                    Err(_) => {}
                }
            } else if !busy {
                if shared.closing.load(Ordering::Acquire) {
                    return "the receiver closes".to_owned();
                }
                if heard.elapsed() > shared.settings.silence {
                    return self.silent(shared, stream);
                }
                view.sleep(LOOK);
            }
        }
    }

    /// Takes what comes on the connection beside the memory.
    fn control(&self, stream: &mut TcpStream, reader: &mut FrameReader) -> Result<(), String> {
        match reader.next(stream) {
            Ok(Came::Frame(header)) if header.session != self.hello.session => Err("a frame of another flow came".to_owned()),
            Ok(Came::Frame(header)) => {
                let mut answers = Vec::new();
                let mut flow = lock(&self.slot.flow);
                if !self.is_mine() {
                    return Err("the sender has connected again".to_owned());
                }
                let result = flow.frame(&header, reader.payload(), &mut answers);
                drop(flow);
                answer(stream, &mut answers).map_err(|why| why.to_string())?;
                result.map_err(|bad| bad.to_string())
            }
            Ok(Came::Idle) => Ok(()),
            Ok(Came::Closed { .. }) => Err("the sender closed the connection".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads frames until the connection ends; says why it did.
    fn read(&self, shared: &Shared, stream: &mut TcpStream, reader: &mut FrameReader) -> String {
        let mut heard = Instant::now();
        let mut answers: Vec<Answer> = Vec::new();
        loop {
            match reader.next(stream) {
                Ok(Came::Frame(header)) => {
                    if header.session != self.hello.session {
                        return "a frame of another flow came".to_owned();
                    }
                    let mut flow = lock(&self.slot.flow);
                    // Looked at under the flow's lock: whoever has the flow now has it alone.
                    if !self.is_mine() {
                        return "the sender has connected again".to_owned();
                    }
                    let result = flow.frame(&header, reader.payload(), &mut answers);
                    drop(flow);
                    if let Err(why) = answer(stream, &mut answers) {
                        return why.to_string();
                    }
                    if let Err(bad) = result {
                        return bad.to_string();
                    }
                    heard = Instant::now();
                }
                Ok(Came::Idle) => {
                    if shared.closing.load(Ordering::Acquire) {
                        return "the receiver closes".to_owned();
                    }
                    if heard.elapsed() > shared.settings.silence {
                        return self.silent(shared, stream);
                    }
                }
                Ok(Came::Closed { inside: false }) => return "the sender closed the connection".to_owned(),
                Ok(Came::Closed { inside: true }) => return "the connection ended inside a frame".to_owned(),
                Err(ReadError::Io(error)) => return error.to_string(),
                Err(ReadError::Frame(bad)) => {
                    let kind = match bad {
                        crate::frame::BadFrame::TooLong { .. } => FaultKind::FrameTooLong,
                        _ => FaultKind::Garbled,
                    };
                    let fault = Fault { kind, count: 1, text: bad.to_string() }.encode();
                    answers.push((Header { session: self.hello.session, ..Header::of(Kind::Fault) }, fault));
                    let _ = answer(stream, &mut answers);
                    return bad.to_string();
                }
            }
        }
    }
}

pub(super) fn answer(stream: &mut TcpStream, answers: &mut Vec<Answer>) -> io::Result<()> {
    for (header, payload) in answers.drain(..) {
        write(stream, &header.over(&payload, true), &payload)?;
    }
    Ok(())
}

/// Writes one frame whole.
pub(crate) fn write(stream: &mut TcpStream, header: &Header, payload: &[u8]) -> io::Result<()> {
    let head = header.encode();
    let mut written = stream.write_vectored(&[IoSlice::new(&head), IoSlice::new(payload)])?;
    if written < head.len() {
        stream.write_all(&head[written..])?;
        written = head.len();
    }
    stream.write_all(&payload[written - head.len()..])
}
