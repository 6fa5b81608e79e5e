//! A sender's flow: start, send, stop, reset, and the waiting they do.
//!
//! The call that brings data writes it itself, to every receiver as much as its socket takes, and returns when the fastest has taken
//! it all. The others may be a window behind. So a single fast receiver costs what a plain loop over a socket does, and no worker
//! stands between the caller and the wire; the flow's own worker writes what slower receivers are owed between the calls.
//! Rejected: a worker for each receiver, which costs two switches a block where the caller's thread is running anyway.

use std::{
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    SendError,
    connecting::{self, Goal},
    group::GroupSender,
    link::Link,
    pool::{Block, Pool},
    rate::Rate,
};
use crate::{
    datagram::to_group,
    frame::{ASK, END, Header},
    group::GroupPlace,
    handler::Peer,
    message::{Cause, Lost, Patience},
    name::Name,
    poll::{self, Wanted},
    receiver::{Identity, OpenError, lock, spawn},
    sending::{Numbering, Phase},
    shm::Ring,
    state::{Delivery, Report, SentFlowState},
    throttle::Throttle,
    time::until,
    window::{FRAMES_LIMIT, Framed, Window},
};
use call::Call;
pub use periodic::{Go, Periodic};
pub use settings::{Acknowledge, SendFlow, Slow};

mod call;
mod members;
mod periodic;
mod settings;
mod turn;

/// How long a call sleeps at most before it looks at everything again.
const TURN: Duration = Duration::from_millis(50);
/// A receiver hears of its sender this often.
const PING: Duration = Duration::from_secs(1);
/// Every so many frames are to be acknowledged at once: a small part of the window's.
const ASK_EVERY: u64 = FRAMES_LIMIT as u64 / 16;
/// How long closing waits for what can still be delivered.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A transfer that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Its number.
    pub transfer: u64,
    /// Receivers that take part.
    pub receivers: usize,
    /// All of them have so many bytes already: the data may begin there ([`Flow::begin_at`]).
    pub from: u64,
}

struct Core {
    numbering: Numbering,
    window: Window,
    links: Vec<Link>,
    /// What goes once for all receivers.
    group: Option<GroupSender>,
    throttle: Throttle,
    rate: Rate,
    began: Instant,
    /// The frame the transfer began with.
    start: u64,
    unlooked: usize,
    /// Bytes of frames that were taken in and that nobody was sent yet.
    unwritten: usize,
    /// One of both ends wants checksums.
    checked: bool,
    /// The memory that readers on this host share, once one of them does.
    ring: Option<Arc<Ring>>,
    /// The first frame that is in it.
    ring_from: u64,
    /// How long receivers are waited for.
    patience: Patience,
    /// Somebody before this sender waits no longer than that: also a broken connection has no more time.
    hurried: bool,
    /// A call is under way and does the work.
    caller: bool,
    waits_since: Option<Instant>,
    waits_for: Vec<String>,
    /// No call goes on any more.
    ended: bool,
    closing: bool,
}

pub(super) struct Inner {
    pub stream: Name,
    pub identity: Identity,
    pub settings: SendFlow,
    pub session: u32,
    /// The group its data goes to, as a Hello names it.
    pub group: Option<GroupPlace>,
    core: Mutex<Core>,
    changed: Condvar,
    /// One call at a time.
    calls: Mutex<()>,
    /// Wakes the worker out of its wait for sockets.
    wake: (UnixStream, UnixStream),
    pool: Arc<Pool>,
    /// The same memory, from when it was first offered.
    offered: Mutex<Option<Arc<Ring>>>,
}

/// A sender's flow. Cheap to clone.
#[derive(Clone)]
pub struct Flow {
    inner: Arc<Inner>,
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
        let (outlet, group) = settings.group.as_ref().map(to_group).transpose().map_err(no_group)?.unzip();
        let numbering = Numbering::new(session, frame);
        let core = Core {
            window: Window::new(numbering.sequence(), settings.window.max(frame)),
            numbering,
            links: Vec::new(),
            group: outlet.map(GroupSender::new),
            throttle: Throttle::new(settings.throttle),
            rate: Rate::new(),
            began: Instant::now(),
            start: 0,
            unlooked: 0,
            unwritten: 0,
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
        let inner = Arc::new(Inner {
            stream,
            identity,
            settings,
            session,
            group,
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

    /// Of which stream.
    pub fn stream(&self) -> &Name {
        &self.inner.stream
    }

    /// Which.
    pub fn name(&self) -> &Name {
        &self.inner.settings.name
    }

    /// How it was opened.
    pub fn settings(&self) -> &SendFlow {
        &self.inner.settings
    }

    /// Adds a receiver and connects to it, now and whenever the connection breaks.
    pub(super) fn add(&self, key: String, peer: Peer, goal: Goal) -> Result<(), OpenError> {
        let mut core = lock(&self.inner.core);
        match core.links.iter_mut().find(|link| link.key == key) {
            // It was thought dead, because the network was cut, and is not: its connection may have lived through that.
            Some(link) => link.removed = false,
            None => core.links.push(Link::new(key.clone(), peer)),
        }
        let Some(link) = core.links.iter_mut().find(|link| link.key == key && !link.kept) else { return Ok(()) };
        link.kept = true;
        drop(core);
        connecting::begin(&self.inner, key.clone(), goal).inspect_err(|_| {
            for link in lock(&self.inner.core).links.iter_mut().filter(|link| link.key == key) {
                link.kept = false;
            }
        })
    }

    /// Takes a receiver off the list; what it was sent it keeps.
    pub(super) fn remove(&self, key: &str) {
        let mut core = lock(&self.inner.core);
        for link in core.links.iter_mut().filter(|link| link.key == key) {
            link.removed = true;
        }
        drop(core);
        self.inner.changed.notify_all();
    }

    /// How many receivers are connected.
    pub fn connected(&self) -> usize {
        lock(&self.inner.core).links.iter().filter(|link| link.is_connected()).count()
    }

    /// Waits until so many are connected, at most this long. Says whether they are.
    pub fn wait_for(&self, receivers: usize, timeout: Duration) -> bool {
        let until = until(timeout);
        let mut core = lock(&self.inner.core);
        loop {
            if core.links.iter().filter(|link| link.is_connected()).count() >= receivers {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || core.ended {
                return false;
            }
            core = self.inner.changed.wait_timeout(core, left.min(TURN)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Memory for a block of this length, to be filled and sent with [`Flow::send`] after [`Block::freeze`]. What is in it is not said.
    pub fn block(&self, length: usize) -> Block {
        let ring = lock(&self.inner.core).ring.clone();
        // Where there is no room the block is copied when it is sent, when there may be.
        match ring.and_then(|ring| ring.block(length)) {
            Some(region) => Block::shared(region),
            None => self.inner.pool.block(length),
        }
    }

    /// Begins a transfer. Waits for receivers, and until they have taken the parameter, as the settings say.
    pub fn start(&self, parameter: &[u8]) -> Result<Started, SendError> {
        let inner = &self.inner;
        let may_start = |core: &mut Core| {
            if core.numbering.phase() != Phase::Data {
                core.fit();
            }
            core.numbering.may_start(parameter.len())
        };
        may_start(&mut lock(&inner.core))?;
        let (wanted, wait) = (inner.settings.receivers, inner.settings.connect_wait);
        // Not in a call: meanwhile the worker attends to those who are there already.
        if wanted > 0 && !self.wait_for(wanted, wait) {
            let refused = lock(&inner.core).links.iter().filter_map(Link::refused).collect();
            return Err(SendError::NoReceiver { flow: self.name().clone(), wanted, here: self.connected(), refused });
        }
        let call = Call::begin(inner);
        let mut core = lock(&inner.core);
        may_start(&mut core)?;
        let header = core.numbering.start(parameter.len())?;
        core.began = Instant::now();
        core.start = header.sequence;
        for link in &mut core.links {
            link.start(header.transfer, header.sequence);
        }
        let framed = Framed::new(header, Bytes::copy_from_slice(parameter), core.checked);
        core = call.push(core, framed)?;
        if inner.settings.acknowledge != Acknowledge::Never {
            core = call.acknowledged(core, header.sequence)?;
        }
        let taking_part = |core: &Core| core.links.iter().filter(|link| link.takes_part()).count();
        let receivers = taking_part(&core);
        if receivers == 0 && wanted > 0 {
            let why = call.why_nobody(&core);
            // Nobody holds it, so nobody is to be told that it is given up.
            let given_up = Framed::new(core.numbering.reset(), Bytes::new(), false);
            core.window.push(given_up);
            core.release();
            return Err(SendError::NobodyLeft { flow: self.name().clone(), why });
        }
        let from = core.links.iter().filter(|link| link.takes_part()).map(|link| link.from).min().unwrap_or(0);
        Ok(Started { transfer: header.transfer, receivers, from })
    }

    /// Receivers are waited for no longer than this from now on, and never longer than the settings say: for who gives on what comes from
    /// somebody else ([`crate::handler::Start::patience`]).
    pub fn hurry(&self, patience: Patience) {
        let mut core = lock(&self.inner.core);
        let settings = self.settings();
        let patience = patience.min(Patience { wait: settings.wait, ack_wait: settings.ack_wait });
        core.hurried = true;
        if core.patience != patience {
            core.patience = patience;
            core.links.iter_mut().for_each(|link| link.tell_patience(self.inner.session, patience, 0));
        }
    }

    /// The transfer's data begins at this byte, which all receivers must have come to ([`Started::from`]). Before the first `send`.
    pub fn begin_at(&self, offset: u64) -> Result<(), SendError> {
        Ok(lock(&self.inner.core).numbering.begin_at(offset)?)
    }

    /// Sends a block of any length. The bytes are shared, not copied, and are kept until all receivers have acknowledged them.
    pub fn send(&self, block: Bytes) -> Result<(), SendError> {
        self.send_piece(block, true)
    }

    /// Sends a part of a block, which goes on with the next or ends here.
    pub fn send_piece(&self, block: Bytes, end_of_block: bool) -> Result<(), SendError> {
        let inner = &self.inner;
        let call = Call::begin(inner);
        let mut core = lock(&inner.core);
        core.numbering.may_send()?;
        let mut rest = block;
        loop {
            let (mut header, taken) = core.numbering.data(rest.len())?;
            let last = taken == rest.len();
            let ask = last && inner.settings.acknowledge == Acknowledge::EverySend;
            // Many short frames fill the window long before their bytes are due to be acknowledged.
            header.flags |= if ask || header.sequence % ASK_EVERY == 0 { ASK } else { 0 };
            header.flags &= if end_of_block { !0 } else { !END };
            let framed = Framed::new(header, rest.split_to(taken), core.checked);
            core = call.push(core, framed)?;
            core.rate.add(taken, Instant::now());
            let now = Instant::now();
            let pause = core.throttle.sent(taken, now);
            if !pause.is_zero() {
                core = call.pause(core, pause);
            }
            if core.ended {
                return Err(SendError::Closed);
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

    /// Data up to this byte will not come: receivers are told, in its place between the pieces.
    pub fn lose(&self, next_offset: u64, cause: Cause) -> Result<(), SendError> {
        let call = Call::begin(&self.inner);
        let mut core = lock(&self.inner.core);
        if let Some(header) = core.numbering.lose(next_offset)? {
            let lost = Lost { next_sequence: header.sequence + 1, next_offset, cause };
            drop(call.push(core, Framed::new(header, lost.encode().into(), true))?);
        }
        Ok(())
    }

    /// Ends the transfer as given up, behind all data that was sent. Nothing where none is under way.
    pub fn give_up(&self) {
        let call = Call::begin(&self.inner);
        let mut core = lock(&self.inner.core);
        if core.numbering.phase() == Phase::Data {
            let header = core.numbering.reset();
            // A sender that is closed has ended it already.
            drop(call.push(core, Framed::new(header, Bytes::new(), false)));
        }
    }

    /// Ends the transfer. Waits until every receiver has had all its data, as the settings say, and tells how it went.
    pub fn stop(&self) -> Result<Report, SendError> {
        let inner = &self.inner;
        let call = Call::begin(inner);
        let mut core = lock(&inner.core);
        let header = core.numbering.stop()?;
        core = call.push(core, Framed::new(header, Bytes::new(), false))?;
        if inner.settings.acknowledge != Acknowledge::Never {
            core = call.acknowledged(core, header.sequence)?;
        }
        let seconds = core.began.elapsed().as_secs_f64();
        let part = core.links.iter().filter(|link| link.took_part == header.transfer);
        let deliveries: Vec<Delivery> = part.map(|link| link.delivery(header.sequence)).collect();
        Ok(Report { transfer: header.transfer, bytes: header.offset, seconds, deliveries })
    }

    /// Gives up what is under way. Always possible; receivers are told, and what was not sent yet is not sent, but to those who are not
    /// known to have come to this transfer's beginning: they get all in order, for what is before it was not given up.
    pub fn reset(&self) {
        let inner = &self.inner;
        let _call = Call::begin(inner);
        let mut core = lock(&inner.core);
        if core.ended {
            return;
        }
        let under_way = core.numbering.phase() == Phase::Data;
        let from = if under_way { core.start } else { core.window.end() };
        let header = core.numbering.reset();
        core.read();
        core.reset(Framed::new(header, Bytes::new(), false), from);
        core.write();
        core.release();
    }

    /// How it stands. Does not wait for anything.
    pub fn state(&self) -> SentFlowState {
        let mut core = lock(&self.inner.core);
        let now = Instant::now();
        SentFlowState {
            flow: self.name().clone(),
            phase: core.numbering.phase(),
            transfer: core.numbering.transfer(),
            bytes: core.numbering.offset(),
            rate: core.rate.per_second(now),
            window: core.window.bytes(),
            window_limit: core.window.limit(),
            waits: core.waits_since.map(|since| since.elapsed().as_secs_f64()),
            waits_for: core.waits_for.clone(),
            receivers: core.links.iter().map(|link| link.state(&core.window)).collect(),
        }
    }

    pub(super) fn close(&self) {
        let mut core = lock(&self.inner.core);
        core.ended = true;
        if core.numbering.phase() == Phase::Data {
            // In its place behind the data, which is delivered if that can be done soon. A call that waits for room has numbered a frame
            // that will not be sent.
            let header = Header { sequence: core.window.end(), ..core.numbering.reset() };
            core.push(Framed::new(header, Bytes::new(), false));
        }
        let until = Instant::now() + CLOSE_WAIT;
        while (core.has_unsent() || !core.is_read()) && Instant::now() < until {
            core.pump(self.inner.session, self.inner.settings.resume);
            core = self.inner.wait(core, Duration::from_millis(10), false);
        }
        let Core { window, links, .. } = &mut *core;
        for link in links.iter_mut() {
            link.write(window);
            link.removed = true;
            if let Some(stream) = link.stream.take() {
                // What was written is still delivered; only nothing more comes.
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
        }
        core.closing = true;
        drop(core);
        self.inner.changed.notify_all();
        self.inner.wake();
    }
}

impl Inner {
    fn wake(&self) {
        // A full pipe wakes as well.
        let _ = std::io::Write::write(&mut &self.wake.0, &[1]);
    }

    /// Waits for sockets, without the lock, at most this long.
    fn wait<'a>(&'a self, core: MutexGuard<'a, Core>, timeout: Duration, woken: bool) -> MutexGuard<'a, Core> {
        let streams: Vec<(Arc<TcpStream>, bool)> =
            core.links.iter().filter_map(|link| Some((link.stream.clone()?, link.has_unsent(&core.window)))).collect();
        // Who has datagrams under way may have to be told how many there were.
        let timeout = if core.links.iter().any(Link::is_probed) { timeout.min(Duration::from_millis(20)) } else { timeout };
        let already = core.links.iter().filter(|link| link.wants_word(&core.window)).count() > 0;
        let already = already || core.links.iter().any(Link::is_ahead);
        let timeout = if already { Duration::ZERO } else { timeout };
        drop(core);
        let mut wanted: Vec<Wanted<'_>> =
            streams.iter().map(|(stream, write)| Wanted { socket: stream.as_fd(), read: true, write: *write }).collect();
        if woken {
            wanted.push(Wanted { socket: self.wake.1.as_fd(), read: true, write: false });
        }
        let ready = poll::wait(&wanted, timeout);
        if woken && ready.last() == Some(&true) {
            let _ = std::io::Read::read(&mut &self.wake.1, &mut [0; 64]);
        }
        lock(&self.core)
    }
}

/// The flow's worker: what is to be done between the calls.
fn work(of: &Weak<Inner>) {
    while let Some(inner) = of.upgrade() {
        let mut core = lock(&inner.core);
        if core.closing {
            return;
        }
        if core.caller {
            // The call does everything meanwhile.
            let _ = inner.changed.wait_timeout(core, TURN).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        core.pump(inner.session, inner.settings.resume);
        drop(inner.wait(core, 4 * TURN, true));
    }
}
