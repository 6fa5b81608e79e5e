//! Reads a connection with datagrams: puts frames in order, requests missing ones again, and reports them as lost after
//! a time.

use std::{
    os::fd::AsFd,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    datagrams::Datagrams,
    flow::Answer,
    line::Line,
    reading::{Came, FrameReader},
    slot::ReceiverState,
    tenant::Tenant,
};
use crate::{
    frame::{HEADER_LEN, Header, Kind},
    message::{Lost, Nack},
    poll::{self, Wanted},
    reorder::Reorder,
    sending::Phase,
};

/// Number of system calls for datagrams before the connection is checked.
const AT_ONCE: usize = 32;
/// Age of a gap before it is requested again, because datagrams overtake one another.
const PATIENCE: Duration = Duration::from_millis(2);
/// Limits of the wait for an answer, which is longer than the last answer took.
const AGAIN: Duration = Duration::from_millis(20);
const LONGEST_AGAIN: Duration = Duration::from_millis(500);
const TURN: Duration = Duration::from_millis(50);

/// State of a reader for one such connection.
struct Reading<'a> {
    tenant: &'a Tenant<'a>,
    reorder: Reorder,
    answers: Vec<Answer>,
    /// Expected frame of the flow, its transfer, and true while the transfer runs.
    expected: u64,
    phase: Phase,
    transfer: u64,
    missed: Option<Missed>,
    /// Time of the last request for all missing frames, and its last frame.
    asked: Option<(Instant, u64)>,
    again: Duration,
    /// True once a datagram of the sender has arrived.
    heard: bool,
}

/// Missing frame for which others wait.
struct Missed {
    frame: u64,
    since: Instant,
    asked: Option<Instant>,
}

/// Reads until the connection ends; returns the reason.
pub(super) fn read_datagrams(
    tenant: &Tenant<'_>,
    shared: &ReceiverState,
    mut datagrams: Datagrams,
    line: &mut Line,
    reader: &mut FrameReader,
) -> String {
    let mut reading = Reading::begin(tenant);
    let mut heard = Instant::now();
    loop {
        let of = |socket| Wanted { socket, read: true, write: false };
        let mut wanted = vec![of(line.as_fd())];
        wanted.extend(datagrams.inlets.iter().map(|inlet| of(inlet.as_fd())));
        let timeout = match reading.missed {
            _ if reader.is_ahead() => Duration::ZERO,
            Some(_) => PATIENCE,
            None => TURN,
        };
        let ready = poll::wait(&wanted, timeout);
        // Data first: the end of a connection comes after the data that arrived before it.
        let result = reading
            .take(&mut datagrams, line)
            .and_then(|()| if ready[0] || reader.is_ahead() { reading.control(line, reader) } else { Ok(()) })
            .and_then(|()| reading.repair());
        if let Err(why) = line.answer(&mut reading.answers) {
            return why.to_string();
        }
        if let Err(why) = result {
            return why;
        }
        // Datagrams of strangers neither count as a sign of life nor delay the silence timeout.
        if ready[0] || std::mem::take(&mut reading.heard) {
            heard = Instant::now();
        } else if shared.closing.load(Ordering::Acquire) {
            return "the receiver closes".to_owned();
        } else if heard.elapsed() > shared.settings.silence {
            return tenant.silent(shared, line);
        }
    }
}

impl<'a> Reading<'a> {
    fn begin(tenant: &'a Tenant<'a>) -> Reading<'a> {
        let flow = tenant.slot.flow.lock();
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

    /// Delivers the next frame in order.
    fn hand(&mut self, header: &Header, payload: &[u8]) -> Result<(), String> {
        let mut flow = self.tenant.slot.flow.lock();
        if !self.tenant.is_mine() {
            return Err("the sender has connected again".to_owned());
        }
        let result = flow.frame(header, payload, &mut self.answers).map_err(|bad| bad.to_string());
        (self.expected, self.phase, self.transfer) = (flow.position().0, flow.phase(), flow.transfer());
        result
    }

    /// Delivers a frame and the frames that waited for it.
    fn hand_on(&mut self, header: &Header, payload: &[u8]) -> Result<(), String> {
        self.hand(header, payload)?;
        while let Some((header, payload)) = self.reorder.next(self.expected, self.transfer) {
            self.hand(&header, &payload)?;
        }
        Ok(())
    }

    fn take(&mut self, datagrams: &mut Datagrams, line: &mut Line) -> Result<(), String> {
        let frame = datagrams.frame;
        for inlet in &mut datagrams.inlets {
            for _ in 0..AT_ONCE {
                // The sender waits for acknowledgements, and a slow handler prolongs a batch.
                let each = |datagram: &[u8]| {
                    self.datagram(datagram, frame)?;
                    line.answer(&mut self.answers).map_err(|why| why.to_string())
                };
                let any = inlet.take(each).map_err(|error| error.to_string())??;
                if !any {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Processes a datagram. Any host can send one, so an invalid one, or one of another flow, is ignored.
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
        // For a datagram of a later transfer, the start on the connection is still under way.
        if now || header.transfer > self.transfer {
            self.reorder.hold(&header, payload, (self.phase == Phase::Data).then_some(self.transfer));
        }
        Ok(())
    }

    /// Reads control frames from the connection. They must not be lost, and wait for the datagrams numbered before
    /// them.
    fn control(&mut self, line: &mut Line, reader: &mut FrameReader) -> Result<(), String> {
        let header = match reader.next(&mut line.stream) {
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

    /// Requests missing frames again, and reports those that have been missing for too long as lost.
    fn repair(&mut self) -> Result<(), String> {
        // Outside of a transfer nothing is missing: the next transfer starts on the connection.
        let missing = if self.phase == Phase::Data { self.reorder.missing(self.expected, self.transfer) } else { Vec::new() };
        let now = Instant::now();
        if let Some(missed) = self.missed.take_if(|missed| missed.frame != self.expected || missing.is_empty())
            && let Some(asked) = missed.asked
        {
            // The request was answered: its delay is the round-trip time.
            self.again = ((now - asked) * 3 / 2).clamp(AGAIN, LONGEST_AGAIN);
        }
        let Some(&(_, last)) = missing.last() else { return Ok(()) };
        let missed = self.missed.get_or_insert(Missed { frame: self.expected, since: now, asked: None });
        if now - missed.since >= self.tenant.slot.settings.repair {
            // The state machine finds the gap and its bytes. Without a frame behind the gap, the requests continue.
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
            // Requested frames are assumed to be under way.
            let fresh = missing.iter().filter(|(_, to)| *to > upto).map(|(from, to)| ((*from).max(upto), *to));
            let header = Header { session: self.tenant.hello.session, sequence: self.expected, ..Header::of(Kind::Nack) };
            self.answers.push((header, Nack { missing: fresh.collect() }.encode()));
        }
        Ok(())
    }
}
