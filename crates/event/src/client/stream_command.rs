//! Commands from the directory to the stream workers, and the queue in which they wait.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tampu_bus::{Alarm, SourceInfo};
use tampu_types::{Incarnation, Time, event::Reason};

use super::{event::AttributeInfo, subscriber::SubscriptionState};

/// Streams that one worker reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StreamKey {
    /// Topic filter of the streams.
    pub topics: String,
    /// True if lost samples are requested again.
    pub reliable: bool,
    /// True for streams of servers for this host, which have what their readers tell the server that they want.
    pub of_host: bool,
    /// The only subscription that the worker serves; see [`super::SubscribeOptions::alone`].
    pub alone: Option<u64>,
}

/// Attribute of one incarnation of a server.
pub(super) struct BindTarget {
    /// The server that owns it.
    pub source: Arc<SourceInfo>,
    /// The attribute's number at the server.
    pub attribute: u32,
    /// True if the attribute has a separate stream.
    pub own: bool,
    /// Time of its first declaration, by the server's clock.
    pub since: Time,
}

/// A command from the directory to a stream worker.
pub(super) enum StreamCommand {
    /// Binds a subscription to an attribute.
    Bind {
        target: BindTarget,
        info: Arc<AttributeInfo>,
        sub: Arc<SubscriptionState>,
        /// True if the subscription was bound to another incarnation before.
        rebound: bool,
        /// True if the attribute was declared a moment ago: samples that arrived since then are replayed.
        new: bool,
        /// Commands forwarded by another worker are dropped once this is false: the attribute may have ended meanwhile.
        valid: Option<Arc<AtomicBool>>,
    },
    /// Sends a command to another worker, after all earlier commands of this one.
    Forward { to: Arc<StreamCommands>, command: Box<StreamCommand> },
    /// Unbinds a subscription. `report` is delivered to it as the reason.
    Unbind { incarnation: Incarnation, attribute: u32, sub: u64, report: Option<Reason> },
    /// Sets a new configuration of an attribute.
    Configured { incarnation: Incarnation, attribute: u32, info: Arc<AttributeInfo> },
    /// Delivers a reason to every subscription bound to an attribute.
    Notify { incarnation: Incarnation, attribute: u32, reason: Reason },
    /// Ends an attribute that its server withdrew.
    Withdrawn { incarnation: Incarnation, attribute: u32 },
    /// A server is heard again on its stream of declarations. It may have closed its stream for this host meanwhile, which
    /// therefore says nothing.
    Reachable { incarnation: Incarnation },
    /// Ends an incarnation of a server. The stream of declarations reported it.
    Ended { incarnation: Incarnation, reason: Reason },
}

/// The queue of commands of one stream worker.
#[derive(Default)]
pub(super) struct StreamCommands {
    pending: Mutex<Vec<StreamCommand>>,
    notified: AtomicBool,
    alarm: OnceLock<Alarm>,
    /// Number of subscriptions bound by the worker, counted per attribute.
    pub bindings: AtomicUsize,
}

impl StreamCommands {
    /// Sets the alarm that wakes the worker. Only the first call has an effect.
    pub fn wake_by(&self, alarm: Alarm) {
        let _ = self.alarm.set(alarm);
    }

    /// Adds a command. The worker sees it after [`StreamCommands::notify`].
    pub fn push(&self, command: StreamCommand) {
        self.pending.lock().push(command);
    }

    /// Takes all commands if the worker was notified.
    pub fn take_notified(&self) -> Option<Vec<StreamCommand>> {
        self.notified.swap(false, Ordering::AcqRel).then(|| std::mem::take(&mut *self.pending.lock()))
    }

    /// Returns whether no command waits.
    pub fn is_empty(&self) -> bool {
        self.pending.lock().is_empty()
    }

    /// Returns whether commands wait without a notification.
    pub fn needs_notify(&self) -> bool {
        !self.notified.load(Ordering::Acquire) && !self.pending.lock().is_empty()
    }

    /// Wakes the worker to run its commands.
    pub fn notify(&self) {
        self.notified.store(true, Ordering::Release);
        if let Some(alarm) = self.alarm.get() {
            alarm.ring();
        }
    }
}
