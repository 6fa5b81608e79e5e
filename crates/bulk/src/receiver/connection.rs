//! Connection of a sender: the handshake, then frames until it ends.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpStream},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    datagrams::{Datagrams, Seal},
    flow::Answer,
    line::Line,
    read_datagrams::read_datagrams,
    reading::{Came, FrameReader, ReadError},
    slot::{ReceiverState, Slot, leave},
    tenant::Tenant,
};
use crate::{
    datagram::ROOM_A_DATAGRAM,
    frame::{Header, Kind},
    group::NotJoined,
    handler::{Connection, Peer},
    message::{CONTROL_LIMIT, Fault, FaultKind, Hello, ProtectionLevel, Refusal, Refuse, Transport, VERSION, Welcome},
    name::Name,
    seal::{LinkKeys, RecordOpener, RecordSealer, SealError, handshake},
    sending::Phase,
    shm::{Look, View},
    time::until,
};

/// The longest wait of a read before it checks for the end.
const TURN: Duration = Duration::from_millis(200);
/// Acknowledgements of a datagram receiver for each full quantity of bytes in flight. The quantity is small, so the sender
/// needs frequent acknowledgements.
const DATAGRAM_ACKS: u32 = 4;
/// Interval at which a reader of shared memory checks its connection.
const LOOK: Duration = Duration::from_millis(50);
/// Number of refused senders that are remembered, so that each is reported once.
const TOLD_KEPT: usize = 64;
/// Longest write of an answer. The sender reads answers all the time.
const ANSWER: Duration = Duration::from_secs(5);

/// Serves a connection to its end.
pub(super) fn serve(shared: &Arc<ReceiverState>, stream: TcpStream, from: SocketAddr, caller: u64) {
    // If an option cannot be set, the system's default applies; a broken socket fails with the first call.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(TURN));
    let _ = stream.set_write_timeout(Some(ANSWER));
    let (mut line, mut reader) = (Line::new(stream), FrameReader::new(CONTROL_LIMIT));
    let heard = hear(shared, &mut line, &mut reader);
    shared.callers.remove(caller);
    let Some((hello, keys)) = heard else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return;
    };
    match admit(shared, &line.stream, &hello, keys.as_ref(), from) {
        Ok(tenant) => tenant.serve(shared, line, reader),
        Err(refuse) => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            let payload = refuse.encode();
            let header = Header::of(Kind::Refuse).over(&payload, true);
            // If the refusal is lost, the caller sees the connection close.
            let _ = line.write(&header, &payload);
            drop(line);
            tell_refused(shared, &hello, from, refuse);
        }
    }
}

/// Reports a refused sender with the right token to the flow's handler.
fn tell_refused(shared: &ReceiverState, hello: &Hello, from: SocketAddr, refuse: Refuse) {
    if !matches!(refuse.why, Refusal::Taken | Refusal::Transport | Refusal::Protection | Refusal::Denied) {
        return;
    }
    let Some(slot) = slot_of(shared, hello) else { return };
    slot.refused.fetch_add(1, Ordering::Relaxed);
    let one = (hello.session, refuse.why);
    let mut told = slot.told_refused.lock();
    if told.contains(&one) {
        return;
    }
    told.truncate(TOLD_KEPT - 1);
    told.push_front(one);
    drop(told);
    let change = Connection::Refused { sender: peer(hello, from), why: refuse.why, text: refuse.text };
    slot.flow.lock().tell(&change);
}

fn peer(hello: &Hello, from: SocketAddr) -> Peer {
    Peer { source: hello.source.clone(), incarnation: hello.incarnation, address: from.to_string() }
}

/// Returns the flow that the caller names.
fn slot_of<'a>(shared: &'a ReceiverState, hello: &Hello) -> Option<&'a Slot> {
    let wanted = Name::new(hello.flow.as_str()).ok()?;
    shared.slots.iter().find(|slot| wanted == slot.settings.name)
}

/// Returns the caller's Hello, and the keys of a protected connection; `None` if it sends anything else, or nothing.
fn hear(shared: &ReceiverState, line: &mut Line, reader: &mut FrameReader) -> Option<(Hello, Option<LinkKeys>)> {
    let until = until(shared.settings.hello);
    // The deadline also holds for a caller that sends a few bytes at a time.
    reader.set_deadline(Some(until));
    let mut keys = None;
    while Instant::now() < until && !shared.closing.load(Ordering::Acquire) {
        match reader.next(&mut line.stream) {
            Ok(Came::Frame(header)) if header.check(reader.payload()).is_err() => return None,
            Ok(Came::Frame(header)) if header.kind == Kind::Hello => {
                reader.set_deadline(None);
                return Hello::decode(reader.payload()).ok().map(|hello| (hello, keys));
            }
            Ok(Came::Frame(header)) if header.kind == Kind::KeyOffer && keys.is_none() => {
                keys = Some(exchange(shared, line, reader).ok()?);
            }
            Ok(Came::Idle) => {}
            _ => return None,
        }
    }
    None
}

/// Answers an offer of keys. All frames after it are sealed.
fn exchange(shared: &ReceiverState, line: &mut Line, reader: &mut FrameReader) -> Result<LinkKeys, SealError> {
    let (keys, payload) = handshake::reply(&shared.token, reader.payload())?;
    let (opener, sealer) = (RecordOpener::new(&keys.sender)?, RecordSealer::new(&keys.receiver)?);
    // If the reply is lost, the next read fails.
    let _ = line.write(&Header::of(Kind::KeyReply).over(&payload, true), &payload);
    line.protect(sealer);
    reader.protect(opener);
    Ok(keys)
}

fn refuse(why: Refusal, text: impl Into<String>) -> Refuse {
    Refuse { why, text: text.into() }
}

/// Returns true if a sender is on this host: it calls from a loopback address, or from the address it has called.
fn is_of_this_host(stream: &TcpStream, from: SocketAddr) -> bool {
    let caller = from.ip().to_canonical();
    caller.is_loopback() || stream.local_addr().is_ok_and(|called| called.ip().to_canonical() == caller)
}

/// Decides about a caller's request for the flow, and answers it.
fn admit<'a>(
    shared: &'a ReceiverState,
    stream: &TcpStream,
    hello: &Hello,
    keys: Option<&LinkKeys>,
    from: SocketAddr,
) -> Result<Tenant<'a>, Refuse> {
    // The check for strangers comes first, so that they learn nothing else. Keys prove that a sender has the token, and
    // the bus has given a pass to a member alone.
    let knows = keys.is_some() || hello.token.is(&shared.token) || shared.passes.knows(&hello.token);
    if !knows || hello.domain != shared.identity.domain {
        return Err(refuse(Refusal::Stranger, ""));
    }
    if hello.version == 0 {
        return Err(refuse(Refusal::Version, format!("this is version {VERSION}")));
    }
    let limit = shared.settings.connections;
    let Some(inside) = shared.callers.admit(limit) else { return Err(refuse(Refusal::Full, format!("{limit} at most"))) };
    if Name::new(hello.stream.as_str()).as_ref() != Ok(&shared.stream) {
        return Err(refuse(Refusal::NoStream, format!("this is '{}'", shared.stream)));
    }
    let admission = shared.admission.read().clone();
    if let Some(why) = admission.and_then(|rule| rule(&peer(hello, from), &hello.token)) {
        return Err(refuse(Refusal::Denied, why));
    }
    let Some(slot) = slot_of(shared, hello) else {
        let names: Vec<&str> = shared.slots.iter().map(|slot| slot.settings.name.as_str()).collect();
        return Err(refuse(Refusal::NoFlow, format!("there is {}", names.join(", "))));
    };
    let demanded = slot.settings.protection.level(is_of_this_host(stream, from));
    let protection = demanded.max(hello.protection);
    if keys.is_none() && protection > ProtectionLevel::None {
        return Err(refuse(Refusal::Protection, format!("the flow is {protection} here")));
    }
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
        Transport::Shm if !is_of_this_host(stream, from) => (None, "no shared memory: the sender is on another host".to_owned()),
        Transport::Shm => match View::open(&hello.place) {
            Ok(view) => (Some(view), String::new()),
            Err(why) => (None, format!("no shared memory: {why}")),
        },
        _ => (None, String::new()),
    };
    let (datagrams, why) = match hello.transport {
        Transport::Udp | Transport::Multicast => match datagrams(shared, stream, hello, keys, protection) {
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
    let mut flow = slot.flow.lock();
    // A callback may have run for long: the same sender may have connected again, or another may have the flow.
    if !slot.is_held_by(number) {
        return Err(refuse(Refusal::Taken, "by a later connection"));
    }
    flow.another_sender(&peer, hello.session);
    let resumed = flow.phase() == Phase::Data;
    let (sequence, offset) = flow.position();
    flow.ack_frames = if room > 0 { u64::from(room / ROOM_A_DATAGRAM / DATAGRAM_ACKS) } else { u64::MAX };
    flow.more = false;
    // In shared memory the sender sees the receiver's position.
    flow.ack_every = match transport {
        Transport::Shm => u64::MAX,
        Transport::Udp | Transport::Multicast => hello.ack_every.clamp(1 << 12, u64::from(room / DATAGRAM_ACKS)),
        _ => hello.ack_every.clamp(1 << 12, 1 << 30),
    };
    let mut tenancy = slot.tenancy.lock();
    (tenancy.transport, tenancy.protection) = (Some(transport), protection);
    drop(tenancy);
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
        protection,
    };
    Ok(Tenant { slot, peer, number, hello: hello.clone(), welcome, resumed, view, datagrams, _place: inside })
}

/// Opens sockets for datagrams, and joins the group if the caller names one.
fn datagrams(
    shared: &ReceiverState,
    stream: &TcpStream,
    hello: &Hello,
    keys: Option<&LinkKeys>,
    protection: ProtectionLevel,
) -> Result<Datagrams, NotJoined> {
    let group = match hello.transport {
        Transport::Multicast => Some(hello.place.parse()?),
        _ => None,
    };
    let port = Some(hello.port).filter(|port| *port > 0).ok_or(NotJoined::NoPort)?;
    // The group is sealed as its sender demands, for all members alike.
    if group.is_some() && protection > hello.protection {
        return Err(NotJoined::Readable);
    }
    let seal = keys.map(|keys| Seal { own: keys.datagrams.clone(), group: hello.group_key });
    Datagrams::open(stream, port, shared.settings.socket_buffer, group.as_ref(), seal.as_ref())
}

/// Assigns the flow to the caller, unless another sender has it.
fn take(slot: &Slot, peer: &Peer, number: u64, hello: &Hello, stream: &TcpStream) -> Result<(), Refuse> {
    let mut tenancy = slot.tenancy.lock();
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
        // The same sender connected again before the end of its old connection was seen.
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
    fn serve(mut self, shared: &ReceiverState, mut line: Line, mut reader: FrameReader) {
        let payload = self.welcome.encode();
        let mut again = self.slot.flow.lock().told();
        let welcomed = line.write(&Header::of(Kind::Welcome).over(&payload, true), &payload);
        let told = welcomed.and_then(|()| line.answer(&mut again));
        let why = match told {
            Ok(()) => {
                let change =
                    Connection::Connected { sender: self.peer.clone(), transport: self.welcome.transport, resumed: self.resumed };
                self.slot.flow.lock().tell(&change);
                reader.set_limit(self.welcome.frame.max(CONTROL_LIMIT));
                match (self.view.take(), self.datagrams.take()) {
                    (None, Some(datagrams)) => read_datagrams(&self, shared, datagrams, &mut line, &mut reader),
                    (Some(view), _) => self.read_memory(shared, view, &mut line, &mut reader),
                    (None, None) => self.read(shared, &mut line, &mut reader),
                }
            }
            Err(error) => error.to_string(),
        };
        // A sender that closed in order has announced it; a sender that connects again finds the flow unchanged.
        let _ = line.stream.shutdown(std::net::Shutdown::Both);
        leave(shared, self.slot, self.number, &self.peer, &why);
    }

    /// Reads frames in the sender's memory until the connection ends; returns the reason.
    fn read_memory(&self, shared: &ReceiverState, mut view: View, line: &mut Line, reader: &mut FrameReader) -> String {
        let mut answers: Vec<Answer> = Vec::new();
        let mut looked = Instant::now();
        let mut heard = Instant::now();
        loop {
            let look = view.next(|head, map, position| -> Result<Header, String> {
                let header = Header::decode(head, self.welcome.frame.max(CONTROL_LIMIT)).map_err(|bad| bad.to_string())?;
                if header.session != self.hello.session {
                    return Err("a frame of another flow came".to_owned());
                }
                let mut flow = self.slot.flow.lock();
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
                // The sender's next frame overwrote this one, because this receiver was moved on.
                Look::Used(Err(_), true) => true,
                Look::Used(Err(why), false) => return why,
                Look::Used(Ok(header), overwritten) => {
                    if overwritten {
                        self.slot.flow.lock().overwritten(&header, &mut answers);
                    }
                    if view.done() && answers.is_empty() {
                        answers.push((self.slot.flow.lock().acknowledge(&header), Vec::new()));
                    }
                    true
                }
                Look::Nothing => false,
                Look::Senseless => return "the shared memory is invalid".to_owned(),
            };
            if let Err(why) = line.answer(&mut answers) {
                return why.to_string();
            }
            if busy && looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            if reader.is_ahead() || crate::poll::readable(line, Duration::ZERO) {
                // Frames still in the memory were sent before the connection ended.
                match self.control(line, reader) {
                    Ok(()) => heard = looked,
                    Err(why) if !busy => return why,
                    Err(_) => {}
                }
            } else if !busy {
                if shared.closing.load(Ordering::Acquire) {
                    return "the receiver closes".to_owned();
                }
                if heard.elapsed() > shared.settings.silence {
                    return self.silent(shared, line);
                }
                view.sleep(LOOK);
            }
        }
    }

    /// Reads the frames on the connection beside the memory.
    fn control(&self, line: &mut Line, reader: &mut FrameReader) -> Result<(), String> {
        match reader.next(&mut line.stream) {
            Ok(Came::Frame(header)) if header.session != self.hello.session => Err("a frame of another flow came".to_owned()),
            Ok(Came::Frame(header)) => {
                let mut answers = Vec::new();
                let mut flow = self.slot.flow.lock();
                if !self.is_mine() {
                    return Err("the sender has connected again".to_owned());
                }
                let result = flow.frame(&header, reader.payload(), &mut answers);
                drop(flow);
                line.answer(&mut answers).map_err(|why| why.to_string())?;
                result.map_err(|bad| bad.to_string())
            }
            Ok(Came::Idle) => Ok(()),
            Ok(Came::Closed { .. }) => Err("the sender closed the connection".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads frames until the connection ends; returns the reason.
    fn read(&self, shared: &ReceiverState, line: &mut Line, reader: &mut FrameReader) -> String {
        let mut heard = Instant::now();
        let mut answers: Vec<Answer> = Vec::new();
        // The sender has closed its end. The frames that it sent before are still to be read.
        let mut closed: Option<String> = None;
        loop {
            match reader.next(&mut line.stream) {
                Ok(Came::Frame(header)) => {
                    if header.session != self.hello.session {
                        return "a frame of another flow came".to_owned();
                    }
                    let mut flow = self.slot.flow.lock();
                    // Checked under the flow's lock, so that only one connection uses the flow.
                    if !self.is_mine() {
                        return "the sender has connected again".to_owned();
                    }
                    flow.more = reader.is_data_ahead();
                    let result = flow.frame(&header, reader.payload(), &mut answers);
                    drop(flow);
                    match line.answer(&mut answers) {
                        Ok(()) => {}
                        Err(why) if matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                            closed.get_or_insert_with(|| why.to_string());
                        }
                        Err(why) => return why.to_string(),
                    }
                    if let Err(bad) = result {
                        return bad.to_string();
                    }
                    heard = Instant::now();
                }
                Ok(Came::Idle) => {
                    if let Some(why) = closed {
                        return why;
                    }
                    if shared.closing.load(Ordering::Acquire) {
                        return "the receiver closes".to_owned();
                    }
                    if heard.elapsed() > shared.settings.silence {
                        return self.silent(shared, line);
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
                    let _ = line.answer(&mut answers);
                    return bad.to_string();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_a_sender_of_this_host_may_name_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_, from) = listener.accept().unwrap();
        assert!(is_of_this_host(&stream, from));
        let far = SocketAddr::from(([192, 0, 2, 7], 4711));
        assert!(!is_of_this_host(&stream, far));
    }
}
