//! The state of a flow at its sender, and the wait for its sockets.

use std::{
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{
    super::{group::GroupSender, link::Link, pool::Pool, rate::Rate},
    settings::SendFlow,
};
use crate::{
    group::GroupPlace,
    identity::Identity,
    message::{GroupKey, Patience},
    name::Name,
    poll::{self, Wanted},
    sending::Numbering,
    shm::Ring,
    throttle::Throttle,
    window::Window,
};

/// The longest sleep of a call before it checks everything again.
pub(super) const TURN: Duration = Duration::from_millis(50);
/// Interval of signs of life to a receiver.
pub(super) const PING: Duration = Duration::from_secs(1);

pub(in crate::sender) struct FlowCore {
    pub(in crate::sender) numbering: Numbering,
    pub(in crate::sender) window: Window,
    pub(in crate::sender) links: Vec<Link>,
    /// The data for all receivers of the group.
    pub(in crate::sender) group: Option<GroupSender>,
    pub(in crate::sender) throttle: Throttle,
    /// True while no data is sent, by a command.
    pub(in crate::sender) paused: bool,
    /// True if the running transfer must send nothing more.
    pub(in crate::sender) cancelled: bool,
    /// True if nothing more is sent and begun, until the work that a command has stopped ends.
    pub(in crate::sender) halted: bool,
    pub(in crate::sender) rate: Rate,
    pub(in crate::sender) began: Instant,
    /// Sequence of the transfer's first frame.
    pub(in crate::sender) start: u64,
    pub(in crate::sender) unlooked: usize,
    /// Bytes of accepted frames that no receiver was sent yet.
    pub(in crate::sender) unwritten: usize,
    /// True if they wait for the next frame, which the caller has at hand.
    pub(in crate::sender) more: bool,
    /// True if one of the ends wants checksums.
    pub(in crate::sender) checked: bool,
    /// Memory that readers on this host share, if any.
    pub(in crate::sender) ring: Option<Arc<Ring>>,
    /// First frame in this memory.
    pub(in crate::sender) ring_from: u64,
    /// The waiting times for receivers.
    pub(in crate::sender) patience: Patience,
    /// True if an upstream sender limits the waiting times. A broken connection gets no extra time either.
    pub(in crate::sender) hurried: bool,
    /// True while a call runs and does the work.
    pub(in crate::sender) caller: bool,
    pub(in crate::sender) waits_since: Option<Instant>,
    pub(in crate::sender) waits_for: Vec<String>,
    /// True when no call may continue.
    pub(in crate::sender) ended: bool,
    pub(in crate::sender) closing: bool,
}

pub(in crate::sender) struct FlowShared {
    pub(in crate::sender) stream: Name,
    pub(in crate::sender) identity: Identity,
    pub(in crate::sender) settings: SendFlow,
    pub(in crate::sender) session: u32,
    /// Group for the data, in the notation of a Hello.
    pub(in crate::sender) group: Option<GroupPlace>,
    /// Secret of the group, if its datagrams are sealed.
    pub(in crate::sender) group_key: Option<GroupKey>,
    pub(in crate::sender) core: Mutex<FlowCore>,
    pub(in crate::sender) changed: Condvar,
    /// Lock that admits one call at a time.
    pub(in crate::sender) calls: Mutex<()>,
    /// Sockets that wake the worker from its wait.
    pub(in crate::sender) wake: (UnixStream, UnixStream),
    pub(in crate::sender) pool: Arc<Pool>,
    /// Shared memory, from its first offer on.
    pub(in crate::sender) offered: Mutex<Option<Arc<Ring>>>,
}

impl FlowShared {
    pub(super) fn wake(&self) {
        // A full pipe also wakes the worker.
        let _ = std::io::Write::write(&mut &self.wake.0, &[1]);
    }

    /// Waits for sockets, without the lock, at most this long.
    pub(super) fn wait<'a>(&'a self, core: MutexGuard<'a, FlowCore>, timeout: Duration, woken: bool) -> MutexGuard<'a, FlowCore> {
        let streams: Vec<(Arc<TcpStream>, bool)> =
            core.links.iter().filter_map(|link| Some((link.stream.clone()?, link.has_unsent(&core.window)))).collect();
        // A receiver with datagrams under way may need the count of sent ones.
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
        self.core.lock()
    }
}
