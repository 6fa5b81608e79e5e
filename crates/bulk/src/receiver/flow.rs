//! A flow at its receiver: passes the frames of its sender through the machine to the handler, and returns the answers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    frame::{ASK, BadFrame, Header, Kind},
    handler::{CallbackError, Connection, Data, End, Handler, Peer, Start},
    message::{Cause, Fault, FaultKind, LEAST_FRAME, Lost, Patience},
    name::Name,
    protection::Protection,
    receiving::{Judged, Losses, LostRange, Machine, Verdict},
    sending::Phase,
};

/// Number of damaged arrivals of a payload before it counts as lost.
const CORRUPT_LIMIT: u32 = 3;
/// Time after which an acknowledgement is due, however few bytes arrived.
const ACK_PERIOD: Duration = Duration::from_millis(100);

/// The settings of a received flow.
#[derive(Debug, Clone)]
pub struct FlowSettings {
    /// The name of the flow.
    pub name: Name,
    /// True to ask for checksums. They are made if one end asks.
    pub checked: bool,
    /// Longest frame that the flow accepts, in bytes. A smaller value than 1024 counts as 1024.
    pub frame: u32,
    /// Limit for a call of the handler. A longer call is reported as slow.
    pub callback_limit: Duration,
    /// Limit for the average of a transfer's calls. A slower transfer is reported when it ends.
    pub callback_average_limit: Duration,
    /// Time after which a missing datagram counts as lost. Meanwhile it is requested repeatedly.
    pub repair: Duration,
    /// Protection that the flow demands on connections. The sender may demand more.
    pub protection: Protection,
    /// The accepted transports.
    pub transports: Vec<crate::message::Transport>,
}

impl FlowSettings {
    /// Makes the settings of a flow with this name.
    pub fn new(name: Name) -> FlowSettings {
        use crate::message::Transport::*;
        FlowSettings {
            name,
            checked: false,
            frame: 1 << 20,
            callback_limit: Duration::from_secs(1),
            callback_average_limit: Duration::from_millis(50),
            repair: Duration::from_secs(1),
            protection: Protection::Auto,
            transports: vec![Tcp, Shm, Udp, Multicast],
        }
    }
}

/// Counters that can be read while a callback runs.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub bytes: AtomicU64,
    pub frames: AtomicU64,
    pub lost_bytes: AtomicU64,
    pub transfers: AtomicU64,
    /// Start of the running callback, in ns since `began` of the flow, plus one; 0 if none runs.
    pub in_callback: AtomicU64,
}

/// Frame for an answer.
pub(crate) type Answer = (Header, Vec<u8>);

/// Faults so far, each kind once.
#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// Counts a fault. Returns true if it is the first of its kind and should be reported.
    fn count(&mut self, kind: FaultKind, text: &str) -> (bool, Fault) {
        if let Some(fault) = self.0.iter_mut().find(|fault| fault.kind == kind) {
            fault.count = fault.count.saturating_add(1);
            return (false, fault.clone());
        }
        let fault = Fault { kind, count: 1, text: text.to_owned() };
        self.0.push(fault.clone());
        (true, fault)
    }
}

/// Transfer that is running.
#[derive(Debug)]
struct Transfer {
    began: Instant,
    bytes: u64,
    lost: Losses,
    faults: Faults,
    calls: u32,
    in_calls: Duration,
    given_up: bool,
}

impl Transfer {
    fn new() -> Transfer {
        Transfer {
            began: Instant::now(),
            bytes: 0,
            lost: Losses::default(),
            faults: Faults::default(),
            calls: 0,
            in_calls: Duration::ZERO,
            given_up: false,
        }
    }
}

/// Reports to a transfer's sender. They are kept because the connection may end before they have arrived.
#[derive(Debug, Default)]
struct Told {
    transfer: u64,
    lost: Losses,
    /// First fault of each kind.
    faults: Vec<Fault>,
}

impl Told {
    fn fault(&mut self, transfer: u64, fault: Fault) {
        if transfer == self.transfer && self.faults.iter().all(|one| one.kind != fault.kind) {
            self.faults.push(fault);
        }
    }
}

/// A receiver's flow.
pub(crate) struct ReceivedFlow {
    pub settings: FlowSettings,
    pub gauges: Arc<Gauges>,
    handler: Box<dyn Handler>,
    machine: Machine,
    transfer: Option<Transfer>,
    told: Told,
    corrupt: (u64, u32),
    unacknowledged: u64,
    unacknowledged_frames: u64,
    acknowledged_at: Instant,
    /// The interval of acknowledgements that the sender wants, in bytes.
    pub ack_every: u64,
    /// Number of frames after which an acknowledgement is due, however short they are.
    pub ack_frames: u64,
    /// True if the frame after the present one is here already, and goes on with the data or ends it.
    pub more: bool,
    pub sender: Option<Peer>,
    /// Latest waiting times from the sender.
    patience: Option<Patience>,
    /// Session by which its frames are recognised.
    session: u32,
    epoch: Instant,
}

impl ReceivedFlow {
    pub fn new(mut settings: FlowSettings, handler: Box<dyn Handler>) -> ReceivedFlow {
        settings.frame = settings.frame.max(LEAST_FRAME);
        ReceivedFlow {
            settings,
            gauges: Arc::default(),
            handler,
            machine: Machine::new(),
            transfer: None,
            told: Told::default(),
            corrupt: (0, 0),
            unacknowledged: 0,
            unacknowledged_frames: 0,
            acknowledged_at: Instant::now(),
            ack_every: 1 << 20,
            ack_frames: u64::MAX,
            more: false,
            sender: None,
            patience: None,
            session: 0,
            epoch: Instant::now(),
        }
    }

    pub fn phase(&self) -> Phase {
        self.machine.phase()
    }

    /// Returns the expected frame and byte.
    pub fn position(&self) -> (u64, u64) {
        (self.machine.expected(), self.machine.offset())
    }

    /// Returns the running transfer, or the last one.
    pub fn transfer(&self) -> u64 {
        self.machine.transfer()
    }

    /// Resets the flow for a different sender and ends the running transfer of the previous one. One process may have
    /// several senders; each numbers its own frames, and the session distinguishes them.
    pub fn another_sender(&mut self, sender: &Peer, session: u32) {
        let same = self.sender.as_ref().is_some_and(|before| before.incarnation == sender.incarnation) && self.session == session;
        if !same {
            self.give_up(Cause::SenderGone);
            self.machine = Machine::new();
            self.told = Told::default();
            self.corrupt = (0, 0);
            self.patience = None;
        }
        self.sender = Some(sender.clone());
        self.session = session;
    }

    /// Returns the reports about the running transfer, or the last one, for a new connection. The previous connection
    /// may have ended with them.
    pub fn told(&self) -> Vec<Answer> {
        let of = |kind| Header { session: self.session, transfer: self.told.transfer, ..Header::of(kind) };
        let lost = self.told.lost.ranges.iter().filter_map(|lost| {
            let payload = Lost { next_sequence: lost.frames, next_offset: lost.to?, cause: lost.cause };
            Some((Header { offset: lost.from, ..of(Kind::Lost) }, payload.encode()))
        });
        lost.chain(self.told.faults.iter().map(|fault| (of(Kind::Fault), fault.encode()))).collect()
    }

    /// Reports a change of the connection to the handler.
    pub fn tell(&mut self, change: &Connection) {
        let handler = &mut self.handler;
        let _ = catch_unwind(AssertUnwindSafe(|| handler.connection(change)));
    }

    /// Ends the running transfer; no more data of it will arrive.
    pub fn give_up(&mut self, cause: Cause) {
        if let Some(lost) = self.machine.give_up(cause) {
            self.lose(lost, None);
            self.end(false, false, &mut Vec::new());
        }
    }

    /// Processes a frame. `Err` means that the connection is useless and the sender should reconnect.
    pub fn frame(&mut self, header: &Header, payload: &[u8], answers: &mut Vec<Answer>) -> Result<(), BadFrame> {
        self.gauges.frames.fetch_add(1, Ordering::Relaxed);
        if let Err(bad) = header.check(payload) {
            let corrupt = self.corrupt(header, answers);
            return if corrupt { Err(bad) } else { Ok(()) };
        }
        if header.kind == Kind::Ping {
            self.patience = Patience::decode(payload).ok().or(self.patience);
        }
        let lost = match header.kind {
            Kind::Lost => Some(Lost::decode(payload)?),
            _ => None,
        };
        let judged = self.machine.take(header, payload.len(), lost);
        self.judged(header, payload, judged, answers);
        let before = matches!(judged.verdict, Verdict::Nothing);
        let ends = matches!(judged.verdict, Verdict::Start | Verdict::Stop | Verdict::Reset);
        self.unacknowledged += payload.len() as u64;
        self.unacknowledged_frames += 1;
        let asked = header.has(ASK) || header.kind == Kind::Ping || (before && header.kind != Kind::Data);
        let many = self.unacknowledged >= self.ack_every || self.unacknowledged_frames >= self.ack_frames;
        if ends || asked || many || self.acknowledged_at.elapsed() >= ACK_PERIOD {
            answers.push((self.acknowledge(header), Vec::new()));
        }
        Ok(())
    }

    /// Returns an acknowledgement of its position.
    pub fn acknowledge(&mut self, header: &Header) -> Header {
        self.unacknowledged = 0;
        self.unacknowledged_frames = 0;
        self.acknowledged_at = Instant::now();
        Header {
            session: header.session,
            transfer: self.machine.transfer(),
            sequence: self.machine.expected(),
            offset: self.machine.offset(),
            ..Header::of(Kind::Ack)
        }
    }

    /// Handles a damaged payload: requests it again a few times and then reports it as lost. Returns whether to request
    /// it again.
    fn corrupt(&mut self, header: &Header, answers: &mut Vec<Answer>) -> bool {
        self.fault(FaultKind::Corrupt, "a payload was changed on its way", header, answers);
        let (sequence, times) = self.corrupt;
        self.corrupt = (header.sequence, if sequence == header.sequence { times + 1 } else { 1 });
        if self.corrupt.1 < CORRUPT_LIMIT || header.kind != Kind::Data {
            return true;
        }
        let lost = Lost {
            next_sequence: header.sequence.saturating_add(1),
            next_offset: header.offset.saturating_add(u64::from(header.length)),
            cause: Cause::Corrupt,
        };
        let judged = self.machine.take(&Header { kind: Kind::Lost, ..*header }, 0, Some(lost));
        self.judged(header, &[], judged, answers);
        false
    }

    fn judged(&mut self, header: &Header, payload: &[u8], judged: Judged, answers: &mut Vec<Answer>) {
        if let Some(lost) = judged.lost {
            // The sender already knows the ranges that it left out.
            self.lose(lost, (header.kind != Kind::Lost).then_some((header, &mut *answers)));
        }
        if let Some(kind) = judged.fault {
            let text = format!("{kind} at frame {} of transfer {}", header.sequence, header.transfer);
            self.fault(kind, &text, header, answers);
        }
        if judged.breaks {
            self.end(false, false, answers);
        }
        match judged.verdict {
            Verdict::Start => self.start(header, payload, answers),
            Verdict::Data { skip } => self.data(header, &payload[skip.min(payload.len())..], skip as u64, answers),
            Verdict::Stop => self.end(true, false, answers),
            Verdict::Reset => self.end(false, true, answers),
            Verdict::Nothing => {}
        }
    }

    fn lose(&mut self, lost: LostRange, told: Option<(&Header, &mut Vec<Answer>)>) {
        if let (Some((header, answers)), Some(to)) = (told, lost.to) {
            let payload = Lost { next_sequence: header.sequence, next_offset: to, cause: lost.cause };
            let first = header.sequence.saturating_sub(lost.frames);
            answers
                .push((Header { kind: Kind::Lost, flags: 0, sequence: first, offset: lost.from, ..*header }, payload.encode()));
            self.told.lost.add(lost);
        }
        self.gauges.lost_bytes.fetch_add(lost.to.map_or(0, |to| to - lost.from), Ordering::Relaxed);
        if let Some(transfer) = &mut self.transfer {
            transfer.lost.add(lost);
        }
        let handler = &mut self.handler;
        let _ = catch_unwind(AssertUnwindSafe(|| handler.lost(&lost)));
    }

    fn fault(&mut self, kind: FaultKind, text: &str, header: &Header, answers: &mut Vec<Answer>) {
        let (first, fault) = match &mut self.transfer {
            Some(transfer) => transfer.faults.count(kind, text),
            None => (true, Fault { kind, count: 1, text: text.to_owned() }),
        };
        if first {
            let handler = &mut self.handler;
            let _ = catch_unwind(AssertUnwindSafe(|| handler.fault(&fault)));
            let told = Header { session: header.session, transfer: self.machine.transfer(), ..Header::of(Kind::Fault) };
            answers.push((told, fault.encode()));
            self.told.fault(self.machine.transfer(), fault);
        }
    }

    /// Reports a timeout to both ends, although the sender may not receive it.
    pub fn timeout(&mut self, session: u32, text: &str, answers: &mut Vec<Answer>) {
        self.fault(FaultKind::Timeout, text, &Header { session, ..Header::of(Kind::Ping) }, answers);
    }

    /// Reports a frame whose payload may have been overwritten while the handler had it.
    pub fn overwritten(&mut self, header: &Header, answers: &mut Vec<Answer>) {
        if header.kind == Kind::Data && self.transfer.is_some() {
            let to = header.offset.saturating_add(u64::from(header.length));
            let lost = LostRange { from: header.offset, to: Some(to), frames: 1, cause: Cause::Overwritten };
            self.lose(lost, Some((&Header { sequence: header.sequence.saturating_add(1), ..*header }, answers)));
        }
    }

    fn start(&mut self, header: &Header, parameter: &[u8], answers: &mut Vec<Answer>) {
        self.transfer = Some(Transfer::new());
        self.told = Told { transfer: header.transfer, ..Told::default() };
        self.gauges.transfers.fetch_add(1, Ordering::Relaxed);
        let nobody = Peer { source: String::new(), incarnation: Default::default(), address: String::new() };
        let sender = self.sender.clone().unwrap_or(nobody);
        let start = Start { transfer: header.transfer, sender: &sender, parameter, patience: self.patience };
        let mut from = 0;
        self.call(header, answers, |handler| {
            from = handler.start(&start)?;
            Ok(())
        });
        self.machine.has(from);
    }

    fn data(&mut self, header: &Header, bytes: &[u8], skip: u64, answers: &mut Vec<Answer>) {
        let Some(transfer) = &mut self.transfer else { return };
        if skip > 0 && bytes.is_empty() {
            // The handler already has all of it. The first new piece reports where the new data begins.
            return;
        }
        if transfer.given_up {
            let lost = LostRange {
                from: header.offset + skip,
                to: Some(header.offset + skip + bytes.len() as u64),
                frames: 1,
                cause: Cause::GivenUp,
            };
            transfer.lost.add(lost);
            return;
        }
        transfer.bytes += bytes.len() as u64;
        self.gauges.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let end_of_block = header.has(crate::frame::END);
        let data = Data { transfer: header.transfer, bytes, offset: header.offset + skip, end_of_block, more: self.more };
        self.call(header, answers, |handler| handler.data(&data));
    }

    fn end(&mut self, stopped: bool, reset: bool, answers: &mut Vec<Answer>) {
        let Some(mut transfer) = self.transfer.take() else { return };
        let average = transfer.in_calls / transfer.calls.max(1);
        let header = Header { transfer: self.machine.transfer(), ..Header::of(Kind::Stop) };
        if average > self.settings.callback_average_limit {
            let text = format!("{} calls took {} us each on average", transfer.calls, average.as_micros());
            let (_, fault) = transfer.faults.count(FaultKind::CallbackSlowOnAverage, &text);
            answers.push((Header { kind: Kind::Fault, ..header }, fault.encode()));
            self.told.fault(header.transfer, fault);
        }
        let end = End {
            transfer: header.transfer,
            complete: stopped && transfer.lost.ranges.is_empty() && !transfer.given_up,
            stopped,
            bytes: transfer.bytes,
            offset: self.machine.offset(),
            lost: transfer.lost.ranges,
            lost_bytes: transfer.lost.bytes,
            faults: transfer.faults.0,
            took: transfer.began.elapsed(),
        };
        self.call(&header, answers, |handler| if reset { handler.reset(&end) } else { handler.stop(&end) });
    }

    /// Calls the handler and measures the time. A panic counts as a failure.
    fn call(
        &mut self,
        header: &Header,
        answers: &mut Vec<Answer>,
        call: impl FnOnce(&mut dyn Handler) -> Result<(), CallbackError>,
    ) {
        let before = Instant::now();
        let since = before.duration_since(self.epoch).as_nanos() as u64 + 1;
        self.gauges.in_callback.store(since, Ordering::Relaxed);
        let handler = self.handler.as_mut();
        let result = catch_unwind(AssertUnwindSafe(|| call(handler)));
        self.gauges.in_callback.store(0, Ordering::Relaxed);
        let took = before.elapsed();
        if let Some(transfer) = &mut self.transfer {
            transfer.calls = transfer.calls.saturating_add(1);
            transfer.in_calls += took;
        }
        if took > self.settings.callback_limit {
            let text =
                format!("a call took {} ms, at most {} are expected", took.as_millis(), self.settings.callback_limit.as_millis());
            self.fault(FaultKind::CallbackSlow, &text, header, answers);
        }
        let error = match result {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => CallbackError::failed("the callback panicked"),
        };
        self.fault(FaultKind::CallbackFailed, &error.text, header, answers);
        if error.give_up {
            if let Some(transfer) = &mut self.transfer {
                transfer.given_up = true;
            }
            self.fault(FaultKind::GaveUp, &error.text, header, answers);
        }
    }

    /// Returns the base of the time of the running callback.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }
}
