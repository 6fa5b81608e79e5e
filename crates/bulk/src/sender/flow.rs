//! A sender's flow: start, send, stop and reset, and their waits.
//!
//! The calling thread writes its data itself, to every receiver as much as its socket takes. The call returns when the
//! fastest receiver has taken all data. The other receivers may be a window behind. So a single fast receiver costs no
//! more than a plain loop over a socket, and no worker stands between the caller and the wire. The flow's own worker
//! sends the backlog of slower receivers between the calls. Rejected: a worker for each receiver, which costs two
//! switches a block where the caller's thread is running anyway.

use std::{
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use self::core::{FlowCore, FlowShared, TURN};
use super::{
    connecting::{self, Goal},
    error::SendError,
    group::GroupSender,
    link::Link,
    pool::{Block, Pool},
    rate::Rate,
};
use crate::{
    datagram::to_group,
    frame::{ASK, END, Header},
    handler::Peer,
    identity::Identity,
    message::{Cause, GroupKey, Lost, Patience, ProtectionLevel},
    name::Name,
    open::{OpenError, random_bytes, spawn},
    seal::{DatagramSealer, Half},
    sending::{Numbering, Phase},
    state::{Delivery, Report, SentFlowState},
    throttle::Throttle,
    time::until,
    window::{FRAMES_LIMIT, Framed, Window},
};
use call::Call;
pub use periodic::{Go, Periodic};
pub use settings::{Acknowledge, SendFlow, Slow};

mod call;
pub(super) mod core;
mod members;
mod pace;
mod periodic;
pub(super) mod settings;
mod turn;

/// Interval of frames that request an acknowledgement: a small part of the window.
const ASK_EVERY: u64 = FRAMES_LIMIT as u64 / 16;

/// Transfer that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The number of the transfer.
    pub transfer: u64,
    /// Number of participating receivers.
    pub receivers: usize,
    /// Number of bytes that all of them have already. The data may begin there ([`Flow::begin_at`]).
    pub from: u64,
}

/// A sender's flow. Cheap to clone.
#[derive(Clone)]
pub struct Flow {
    inner: Arc<FlowShared>,
}

impl Flow {
    pub(super) fn open(
        identity: Identity,
        stream: Name,
        settings: SendFlow,
        session: u32,
    ) -> Result<(Flow, JoinHandle<()>), OpenError> {
        let system = |why| OpenError::System { doing: "making a pair of sockets", why };
        let wake = UnixStream::pair().map_err(system)?;
        wake.0.set_nonblocking(true).map_err(system)?;
        wake.1.set_nonblocking(true).map_err(system)?;
        let frame = settings.frame.clamp(1, crate::frame::LENGTH_LIMIT) as usize;
        let no_group = |why: std::io::Error| OpenError::Group { flow: settings.name.clone(), why: why.to_string() };
        let (mut outlet, group) = settings.group.as_ref().map(to_group).transpose().map_err(no_group)?.unzip();
        let group_key = match settings.group_protection() {
            ProtectionLevel::None => None,
            ProtectionLevel::Authenticated | ProtectionLevel::Encrypted => {
                let key = GroupKey(random_bytes()?);
                let keys = Half::of_group(&key).and_then(|half| DatagramSealer::new(&half));
                let sealer = keys.map_err(|why| no_group(std::io::Error::other(why)))?;
                if let Some(outlet) = &mut outlet {
                    outlet.protect(sealer);
                }
                Some(key)
            }
        };
        let numbering = Numbering::new(session, frame);
        let core = FlowCore {
            window: Window::new(numbering.sequence(), settings.window.max(frame)),
            numbering,
            links: Vec::new(),
            group: outlet.map(GroupSender::new),
            throttle: Throttle::new(settings.throttle),
            paused: false,
            cancelled: false,
            halted: false,
            rate: Rate::new(),
            began: Instant::now(),
            start: 0,
            unlooked: 0,
            unwritten: 0,
            more: false,
            checked: settings.checked,
            ring: None,
            ring_from: 0,
            patience: Patience { wait: settings.wait, ack_wait: settings.ack_wait },
            hurried: false,
            caller: false,
            waits_since: None,
            waits_for: Vec::new(),
            ended: false,
            closing: false,
        };
        let pool = Pool::new(settings.window.max(frame));
        let inner = Arc::new(FlowShared {
            stream,
            identity,
            settings,
            session,
            group,
            group_key,
            core: Mutex::new(core),
            changed: Condvar::new(),
            calls: Mutex::default(),
            wake,
            pool,
            offered: Mutex::default(),
        });
        let of = Arc::downgrade(&inner);
        let worker = spawn("bulk-send", move || work(&of))?;
        Ok((Flow { inner }, worker))
    }

    /// Returns the name of its stream.
    pub fn stream(&self) -> &Name {
        &self.inner.stream
    }

    /// Returns its name.
    pub fn name(&self) -> &Name {
        &self.inner.settings.name
    }

    /// Returns its settings.
    pub fn settings(&self) -> &SendFlow {
        &self.inner.settings
    }

    /// Adds a receiver, connects to it, and reconnects whenever the connection breaks.
    pub(super) fn add(&self, key: String, peer: Peer, goal: Goal) -> Result<(), OpenError> {
        let mut core = self.inner.core.lock();
        match core.links.iter_mut().find(|link| link.key == key) {
            // The receiver was thought dead during a network cut; its connection may have survived the cut.
            Some(link) => link.removed = false,
            None => core.links.push(Link::new(key.clone(), peer)),
        }
        let Some(link) = core.links.iter_mut().find(|link| link.key == key && !link.kept) else { return Ok(()) };
        link.kept = true;
        drop(core);
        connecting::begin(&self.inner, key.clone(), goal).inspect_err(|_| {
            for link in self.inner.core.lock().links.iter_mut().filter(|link| link.key == key) {
                link.kept = false;
            }
        })
    }

    /// Removes a receiver. It keeps the data that it has received.
    pub(super) fn remove(&self, key: &str) {
        let mut core = self.inner.core.lock();
        for link in core.links.iter_mut().filter(|link| link.key == key) {
            link.removed = true;
        }
        drop(core);
        self.inner.changed.notify_all();
    }

    /// Returns the number of connected receivers.
    pub fn connected(&self) -> usize {
        self.inner.core.lock().links.iter().filter(|link| link.is_connected()).count()
    }

    /// Waits until so many receivers are connected, at most this long. Returns whether they are.
    pub fn wait_for(&self, receivers: usize, timeout: Duration) -> bool {
        let until = until(timeout);
        let mut core = self.inner.core.lock();
        loop {
            if core.links.iter().filter(|link| link.is_connected()).count() >= receivers {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || core.ended || core.is_cancelled() {
                return false;
            }
            self.inner.changed.wait_for(&mut core, left.min(TURN));
        }
    }

    /// Returns memory for a block of this length. Fill it and send it with [`Flow::send`] after [`Block::freeze`]. Its
    /// initial content is undefined.
    pub fn block(&self, length: usize) -> Block {
        let ring = self.inner.core.lock().ring.clone();
        // Without room in the ring, the block is copied when it is sent; room may be free by then.
        match ring.and_then(|ring| ring.block(length)) {
            Some(region) => Block::shared(region),
            None => self.inner.pool.block(length),
        }
    }

    /// Begins a transfer. Waits for receivers, and until they have taken the parameter, as configured.
    pub fn start(&self, parameter: &[u8]) -> Result<Started, SendError> {
        let inner = &self.inner;
        let may_start = |core: &mut FlowCore| {
            if core.numbering.phase() != Phase::Data {
                core.fit();
            }
            core.numbering.may_start(parameter.len())
        };
        may_start(&mut inner.core.lock())?;
        let (wanted, wait) = (inner.settings.receivers, inner.settings.connect_wait);
        // Not inside a call, so that the worker serves the connected receivers meanwhile.
        if wanted > 0 && !self.wait_for(wanted, wait) {
            if inner.core.lock().is_cancelled() {
                return Err(self.was_cancelled());
            }
            let refused = inner.core.lock().links.iter().filter_map(Link::refused).collect();
            return Err(SendError::NoReceiver { flow: self.name().clone(), wanted, here: self.connected(), refused });
        }
        let call = Call::begin(inner);
        let mut core = inner.core.lock();
        may_start(&mut core)?;
        if core.is_cancelled() {
            return Err(self.was_cancelled());
        }
        let header = core.numbering.start(parameter.len())?;
        core.began = Instant::now();
        core.start = header.sequence;
        for link in &mut core.links {
            link.start(header.transfer, header.sequence);
        }
        let framed = Framed::new(header, Bytes::copy_from_slice(parameter), core.checked);
        core = call.push(core, framed, false)?;
        if inner.settings.acknowledge != Acknowledge::Never {
            core = call.acknowledged(core, header.sequence)?;
        }
        let taking_part = |core: &FlowCore| core.links.iter().filter(|link| link.takes_part()).count();
        let receivers = taking_part(&core);
        if receivers == 0 && wanted > 0 {
            let why = call.why_nobody(&core);
            // No receiver holds the transfer, so none needs the reset.
            let given_up = Framed::new(core.numbering.reset(), Bytes::new(), false);
            core.window.push(given_up);
            core.release();
            return Err(SendError::NobodyLeft { flow: self.name().clone(), why });
        }
        let from = core.links.iter().filter(|link| link.takes_part()).map(|link| link.from).min().unwrap_or(0);
        Ok(Started { transfer: header.transfer, receivers, from })
    }

    /// Shortens the waiting times for receivers, which never exceed the settings. A distributor uses this for its
    /// upstream limits ([`crate::handler::Start::patience`]).
    pub fn hurry(&self, patience: Patience) {
        let mut core = self.inner.core.lock();
        let settings = self.settings();
        let patience = patience.min(Patience { wait: settings.wait, ack_wait: settings.ack_wait });
        core.hurried = true;
        if core.patience != patience {
            core.patience = patience;
            core.links.iter_mut().for_each(|link| link.tell_patience(self.inner.session, patience, 0));
        }
    }

    /// Sets the first byte of the transfer's data, which all receivers must have reached ([`Started::from`]). Call it
    /// before the first `send`.
    pub fn begin_at(&self, offset: u64) -> Result<(), SendError> {
        Ok(self.inner.core.lock().numbering.begin_at(offset)?)
    }

    /// Sends a block of any length. The bytes are shared, not copied, and are kept until all receivers have acknowledged them.
    pub fn send(&self, block: Bytes) -> Result<(), SendError> {
        self.send_piece(block, true)
    }

    /// Sends a part of a block, which continues with the next part or ends here.
    pub fn send_piece(&self, block: Bytes, end_of_block: bool) -> Result<(), SendError> {
        self.send_piece_while(block, end_of_block, &mut || true)
    }

    /// Sends a part of a block as [`Flow::send_piece`] does, and can be ended by its caller: while it waits for the end of a pause or
    /// for the limit of the rate, it asks about every 50 ms if it goes on. If not, it returns [`SendError::Cancelled`], and
    /// the rest of the part is not sent.
    pub fn send_piece_while(&self, block: Bytes, end_of_block: bool, goes_on: &mut dyn FnMut() -> bool) -> Result<(), SendError> {
        self.send_frames(block, end_of_block, false, goes_on)
    }

    /// Passes a part of a block on, as [`Flow::send_piece`] does. With `more`, the next call is about to follow, and the part
    /// may be written with what that brings.
    pub(crate) fn pass_on(&self, block: Bytes, end_of_block: bool, more: bool) -> Result<(), SendError> {
        self.send_frames(block, end_of_block, more, &mut || true)
    }

    fn send_frames(
        &self,
        block: Bytes,
        end_of_block: bool,
        more: bool,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), SendError> {
        let inner = &self.inner;
        let call = Call::begin(inner);
        let mut core = inner.core.lock();
        core.numbering.may_send()?;
        let mut rest = block;
        loop {
            core = call.while_paused(core, goes_on)?;
            let (mut header, taken) = core.numbering.data(rest.len())?;
            let last = taken == rest.len();
            let ask = last && inner.settings.acknowledge == Acknowledge::EverySend;
            // Many short frames fill the window long before their bytes require an acknowledgement.
            header.flags |= if ask || header.sequence % ASK_EVERY == 0 { ASK } else { 0 };
            header.flags &= if end_of_block { !0 } else { !END };
            let framed = Framed::new(header, rest.split_to(taken), core.checked);
            core = call.push(core, framed, more && last && !ask)?;
            let now = Instant::now();
            core.rate.add(taken, now);
            let pause = core.throttle.sent(taken, now);
            if !pause.is_zero() {
                core = call.pause(core, goes_on)?;
            }
            if core.ended {
                return Err(SendError::Closed);
            }
            // Also after the last frame: otherwise a stop between two short blocks or files would be lost.
            if core.is_cancelled() {
                return Err(self.was_cancelled());
            }
            if last {
                if ask {
                    core = call.acknowledged(core, header.sequence)?;
                }
                return call.somebody(&core);
            }
        }
    }

    /// Sends a copy of these bytes.
    pub fn send_copy(&self, bytes: &[u8]) -> Result<(), SendError> {
        let mut block = self.block(bytes.len());
        block.copy_from_slice(bytes);
        self.send(block.freeze())
    }

    /// Marks data up to this byte as lost. Receivers get the report in its place between the pieces.
    pub fn lose(&self, next_offset: u64, cause: Cause) -> Result<(), SendError> {
        let call = Call::begin(&self.inner);
        let mut core = self.inner.core.lock();
        if let Some(header) = core.numbering.lose(next_offset)? {
            let lost = Lost { next_sequence: header.sequence + 1, next_offset, cause };
            drop(call.push(core, Framed::new(header, lost.encode().into(), true), false)?);
        }
        Ok(())
    }

    /// Ends the transfer as given up, after all sent data. Does nothing without a running transfer.
    pub fn give_up(&self) {
        let call = Call::begin(&self.inner);
        let mut core = self.inner.core.lock();
        if core.numbering.phase() == Phase::Data {
            let header = core.numbering.reset();
            core.cancelled = false;
            // A closed sender has already ended the transfer.
            drop(call.push(core, Framed::new(header, Bytes::new(), false), false));
        }
    }

    /// Ends the transfer. Waits until every receiver has all its data, as configured, and returns the report.
    pub fn stop(&self) -> Result<Report, SendError> {
        let inner = &self.inner;
        let call = Call::begin(inner);
        let mut core = inner.core.lock();
        let header = core.numbering.stop()?;
        core.cancelled = false;
        core = call.push(core, Framed::new(header, Bytes::new(), false), false)?;
        if inner.settings.acknowledge != Acknowledge::Never {
            core = call.acknowledged(core, header.sequence)?;
        }
        let seconds = core.began.elapsed().as_secs_f64();
        let part = core.links.iter().filter(|link| link.took_part == header.transfer);
        let deliveries: Vec<Delivery> = part.map(|link| link.delivery(header.sequence)).collect();
        Ok(Report { transfer: header.transfer, bytes: header.offset, seconds, deliveries })
    }

    /// Gives up the running transfer. This is always allowed. Receivers are notified, and unsent data is dropped.
    /// Receivers that may not have reached the transfer's start get all frames in order, because the frames before it
    /// were not given up.
    pub fn reset(&self) {
        let inner = &self.inner;
        let _call = Call::begin(inner);
        let mut core = inner.core.lock();
        if core.ended {
            return;
        }
        let under_way = core.numbering.phase() == Phase::Data;
        let from = if under_way { core.start } else { core.window.end() };
        let header = core.numbering.reset();
        core.cancelled = false;
        core.read();
        core.reset(Framed::new(header, Bytes::new(), false), from);
        core.write();
        core.release();
    }

    /// Returns its state, without waiting.
    pub fn state(&self) -> SentFlowState {
        let mut core = self.inner.core.lock();
        let now = Instant::now();
        SentFlowState {
            flow: self.name().clone(),
            phase: core.numbering.phase(),
            transfer: core.numbering.transfer(),
            bytes: core.numbering.offset(),
            rate: core.rate.per_second(now),
            throttle: core.throttle.rate(),
            paused: core.paused,
            window: core.window.bytes(),
            window_limit: core.window.limit(),
            waits: core.waits_since.map(|since| since.elapsed().as_secs_f64()),
            waits_for: core.waits_for.clone(),
            receivers: core.links.iter().map(|link| link.state(&core.window)).collect(),
        }
    }

    /// Ends the flow: sends what is unsent until this time, and ends the writing side of its connections. Returns them; the
    /// receivers may still read.
    pub(super) fn close(&self, until: Instant) -> Vec<Arc<TcpStream>> {
        let mut core = self.inner.core.lock();
        core.ended = true;
        if core.numbering.phase() == Phase::Data {
            // The reset takes its place behind the data, which is delivered if that takes little time. A call that waits for room
            // has numbered a frame that will not be sent.
            let header = Header { sequence: core.window.end(), ..core.numbering.reset() };
            core.push(Framed::new(header, Bytes::new(), false));
        }
        while (core.has_unsent() || !core.is_read()) && Instant::now() < until {
            core.pump(self.inner.session, self.inner.settings.resume);
            core = self.inner.wait(core, Duration::from_millis(10), false);
        }
        let FlowCore { window, links, .. } = &mut *core;
        let mut ended = Vec::new();
        for link in links.iter_mut() {
            link.write(window);
            link.removed = true;
            if let Some(stream) = link.stream.take() {
                let _ = stream.shutdown(Shutdown::Write);
                ended.push(stream);
            }
        }
        core.closing = true;
        drop(core);
        self.inner.changed.notify_all();
        self.inner.wake();
        ended
    }
}

/// Runs the flow's worker, which does the work between the calls.
fn work(of: &Weak<FlowShared>) {
    while let Some(inner) = of.upgrade() {
        let mut core = inner.core.lock();
        if core.closing {
            return;
        }
        if core.caller {
            // The call does all the work meanwhile.
            inner.changed.wait_for(&mut core, TURN);
            continue;
        }
        core.pump(inner.session, inner.settings.resume);
        drop(inner.wait(core, 4 * TURN, true));
    }
}
