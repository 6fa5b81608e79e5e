//! A connection whose data comes as datagrams: put in order, what is missing asked for, what does not come given up in time.
//!
//! What is sent to a group comes to a socket that all its receivers on a host have; what is sent again to one comes to its own.

use std::{
    net::{SocketAddr, TcpStream, UdpSocket},
    os::fd::AsFd,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    Shared,
    connection::{Tenant, answer},
    flow::Answer,
    lock,
    reading::{Came, FrameReader},
};
use crate::{
    datagram::{self, Inlet, LOCAL, NETWORK, NETWORK_6},
    frame::{HEADER_LEN, Header, Kind},
    group::{GroupPlace, NotJoined},
    message::{Lost, Nack},
    poll::{self, Wanted},
    reorder::Reorder,
    sending::Phase,
};

/// The receive buffer asked for: what the sender may have under way, several times.
const BUFFER: usize = 4 << 20;
/// What the sender may have under way at most, bytes of payload; and at least, however small the buffer is.
const ROOM: usize = 1 << 20;
const LEAST_ROOM: usize = 2 * LOCAL as usize;
/// A datagram costs the kernel up to so many times its payload.
const KERNEL_COST: usize = 3;
/// Calls of the kernel for datagrams before the connection is looked at.
const AT_ONCE: usize = 32;
/// How long something is missing before it is asked for: datagrams overtake one another.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long an answer to that is waited for at least, and at most: longer than the last one took.
const AGAIN: Duration = Duration::from_millis(20);
const LONGEST_AGAIN: Duration = Duration::from_millis(500);
const TURN: Duration = Duration::from_millis(50);

/// Where datagrams are taken.
pub(super) struct Datagrams {
    /// The receiver's own, and the group's where there is one.
    inlets: Vec<Inlet>,
    /// Where its own is.
    pub place: String,
    /// The longest payload.
    pub frame: u32,
    /// Bytes that may be under way.
    pub room: u32,
}

impl Datagrams {
    /// Sockets beside this connection, for what comes from the port of its sender's host.
    pub fn open(
        stream: &TcpStream,
        port: u16,
        buffer: Option<usize>,
        group: Option<&GroupPlace>,
    ) -> Result<Datagrams, NotJoined> {
        let (here, there) = (stream.local_addr()?.ip(), stream.peer_addr()?.ip());
        let buffer = buffer.unwrap_or(BUFFER);
        let one_host = there.to_canonical().is_loopback() || there == here;
        let interface = group.map(|group| group.interface(here, there)).transpose()?;
        let frame = match interface {
            Some(interface) if interface.is_loopback() => LOCAL,
            Some(_) => NETWORK,
            None if one_host => LOCAL,
            None if there.to_canonical().is_ipv4() => NETWORK,
            None => NETWORK_6,
        };
        let own = Inlet::new(UdpSocket::bind((here, 0))?, there.to_canonical(), port, frame, buffer)?;
        let place = own.address()?.to_string();
        let mut inlets = vec![own];
        if let (Some(group), Some(interface)) = (group, interface) {
            let from = SocketAddr::V4(group.from);
            inlets.push(Inlet::new(datagram::join(group, interface)?, from.ip(), from.port(), frame, buffer)?);
        }
        let least = inlets.iter().map(|inlet| inlet.buffer).min().unwrap_or(0);
        let room = (least / KERNEL_COST).clamp(LEAST_ROOM, ROOM) as u32;
        Ok(Datagrams { inlets, place, frame, room })
    }
}

/// What is under way on such a connection.
struct Reading<'a> {
    tenant: &'a Tenant<'a>,
    reorder: Reorder,
    answers: Vec<Answer>,
    /// Where the flow stands: the frame it waits for, whether a transfer is under way, which.
    expected: u64,
    phase: Phase,
    transfer: u64,
    missed: Option<Missed>,
    /// When all that is missing was asked for last, and up to which frame.
    asked: Option<(Instant, u64)>,
    again: Duration,
    /// A datagram of its sender has come.
    heard: bool,
}

/// A frame that others wait for.
struct Missed {
    frame: u64,
    since: Instant,
    asked: Option<Instant>,
}

impl Tenant<'_> {
    /// Reads until the connection ends; says why it did.
    pub(super) fn read_datagrams(
        &self,
        shared: &Shared,
        mut datagrams: Datagrams,
        stream: &mut TcpStream,
        reader: &mut FrameReader,
    ) -> String {
        let mut reading = Reading::begin(self);
        let mut heard = Instant::now();
        loop {
            let of = |socket| Wanted { socket, read: true, write: false };
            let mut wanted = vec![of(stream.as_fd())];
            wanted.extend(datagrams.inlets.iter().map(|inlet| of(inlet.as_fd())));
            let timeout = match reading.missed {
                _ if reader.is_ahead() => Duration::ZERO,
                Some(_) => PATIENCE,
                None => TURN,
            };
            let ready = poll::wait(&wanted, timeout);
            // Data first: what ends the connection ends it behind what came.
            let result = reading
                .take(&mut datagrams, stream)
                .and_then(|()| if ready[0] || reader.is_ahead() { reading.control(stream, reader) } else { Ok(()) })
                .and_then(|()| reading.repair());
            if let Err(why) = answer(stream, &mut reading.answers) {
                return why.to_string();
            }
            if let Err(why) = result {
                return why;
            }
            // What strangers send is no sign of life, and keeps nothing from its end.
            if ready[0] || std::mem::take(&mut reading.heard) {
                heard = Instant::now();
            } else if shared.closing.load(Ordering::Acquire) {
                return "the receiver closes".to_owned();
            } else if heard.elapsed() > shared.settings.silence {
                return self.silent(shared, stream);
            }
        }
    }
}

impl<'a> Reading<'a> {
    fn begin(tenant: &'a Tenant<'a>) -> Reading<'a> {
        let flow = lock(&tenant.slot.flow);
        Reading {
            tenant,
            reorder: Reorder::default(),
            answers: Vec::new(),
            expected: flow.position().0,
            phase: flow.phase(),
            transfer: flow.transfer(),
            missed: None,
            asked: None,
            again: AGAIN,
            heard: false,
        }
    }

    /// A frame whose turn it is.
    fn hand(&mut self, header: &Header, payload: &[u8]) -> Result<(), String> {
        let mut flow = lock(&self.tenant.slot.flow);
        if !self.tenant.is_mine() {
            return Err("the sender has connected again".to_owned());
        }
        let result = flow.frame(header, payload, &mut self.answers).map_err(|bad| bad.to_string());
        (self.expected, self.phase, self.transfer) = (flow.position().0, flow.phase(), flow.transfer());
        result
    }

    /// That, and what was waiting for it.
    fn hand_on(&mut self, header: &Header, payload: &[u8]) -> Result<(), String> {
        self.hand(header, payload)?;
        while let Some((header, payload)) = self.reorder.next(self.expected, self.transfer) {
            self.hand(&header, &payload)?;
        }
        Ok(())
    }

    fn take(&mut self, datagrams: &mut Datagrams, stream: &mut TcpStream) -> Result<(), String> {
        let frame = datagrams.frame;
        for inlet in &mut datagrams.inlets {
            for _ in 0..AT_ONCE {
                // Its sender waits for word of what came, and a slow handler makes a batch last.
                let each = |datagram: &[u8]| {
                    self.datagram(datagram, frame)?;
                    answer(stream, &mut self.answers).map_err(|why| why.to_string())
                };
                let any = inlet.take(each).map_err(|error| error.to_string())??;
                if !any {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Anybody can send a datagram: one that makes no sense, or is of another flow, is nobody's.
    fn datagram(&mut self, datagram: &[u8], frame: u32) -> Result<(), String> {
        let Some((head, payload)) = datagram.split_first_chunk::<HEADER_LEN>() else { return Ok(()) };
        let Ok(header) = Header::decode(head, frame) else { return Ok(()) };
        let ours = header.session == self.tenant.hello.session && header.kind == Kind::Data;
        if !ours || payload.len() != header.length as usize {
            return Ok(());
        }
        self.heard = true;
        let now = self.phase == Phase::Data && header.transfer == self.transfer;
        if now && header.sequence < self.expected || header.check(payload).is_err() {
            return Ok(());
        }
        if now && header.sequence == self.expected {
            return self.hand_on(&header, payload);
        }
        // Of a later transfer: the connection's word of its beginning is still on its way.
        if now || header.transfer > self.transfer {
            self.reorder.hold(&header, payload, (self.phase == Phase::Data).then_some(self.transfer));
        }
        Ok(())
    }

    /// What must not be lost comes on the connection, with numbers among the datagrams'; what comes before them waits for them.
    fn control(&mut self, stream: &mut TcpStream, reader: &mut FrameReader) -> Result<(), String> {
        let header = match reader.next(stream) {
            Ok(Came::Frame(header)) => header,
            Ok(Came::Idle) => return Ok(()),
            Ok(Came::Closed { .. }) => return Err("the sender closed the connection".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if header.session != self.tenant.hello.session {
            return Err("a frame of another flow came".to_owned());
        }
        let payload = reader.payload().to_vec();
        let early = self.phase == Phase::Data && header.sequence > self.expected && header.check(&payload).is_ok();
        match header.kind {
            Kind::Start | Kind::Stop if early => self.reorder.keep(&header, &payload, 0).map_err(|why| why.to_string()),
            Kind::Lost if early => {
                let lost = Lost::decode(&payload).map_err(|bad| bad.to_string())?;
                self.reorder.keep(&header, &payload, lost.next_sequence).map_err(|why| why.to_string())
            }
            Kind::Ping => {
                self.reorder.tell(header.sequence);
                self.reorder.leave_out(header.transfer, (self.phase == Phase::Data).then_some(self.transfer));
                self.hand(&header, &payload)
            }
            Kind::Reset => {
                self.reorder.clear(header.sequence.saturating_add(1));
                self.hand_on(&header, &payload)
            }
            _ => self.hand_on(&header, &payload),
        }
    }

    /// Asks for what is missing, and gives up what has been missing for too long.
    fn repair(&mut self) -> Result<(), String> {
        // Outside of a transfer nothing is missing: the next one begins on the connection.
        let missing = if self.phase == Phase::Data { self.reorder.missing(self.expected, self.transfer) } else { Vec::new() };
        let now = Instant::now();
        if let Some(missed) = self.missed.take_if(|missed| missed.frame != self.expected || missing.is_empty())
            && let Some(asked) = missed.asked
        {
            // It has come: so long the way there and back takes.
            self.again = ((now - asked) * 3 / 2).clamp(AGAIN, LONGEST_AGAIN);
        }
        let Some(&(_, last)) = missing.last() else { return Ok(()) };
        let missed = self.missed.get_or_insert(Missed { frame: self.expected, since: now, asked: None });
        if now - missed.since >= self.tenant.slot.settings.repair {
            // The machine finds the hole, and says which bytes it is. Where nothing is behind it the sender is asked on.
            if let Some((header, payload)) = self.reorder.give_up(self.transfer) {
                return self.hand_on(&header, &payload);
            }
        }
        let (asked, upto) = self.asked.unzip();
        let again = asked.is_none_or(|asked| now - asked >= self.again);
        let upto = if again { 0 } else { upto.unwrap_or(0) };
        if now - missed.since >= PATIENCE && last > upto {
            missed.asked.get_or_insert(now);
            self.asked = Some((if again { now } else { asked.unwrap_or(now) }, last));
            // What was asked for is on its way, as far as anybody knows.
            let fresh = missing.iter().filter(|(_, to)| *to > upto).map(|(from, to)| ((*from).max(upto), *to));
            let header = Header { session: self.tenant.hello.session, sequence: self.expected, ..Header::of(Kind::Nack) };
            self.answers.push((header, Nack { missing: fresh.collect() }.encode()));
        }
        Ok(())
    }
}
