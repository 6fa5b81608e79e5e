//! The worker that keeps a process connected: to its node, or without one to its peers. When a node appears, the
//! process moves to it.
//!
//! | connected by | connection lost | moves |
//! |-|-|-|
//! | node | the engine reconnects by itself and repeats its declarations | to a fresh session when the node answers but the engine stays out (its key has changed); to the peers when the node has been gone for its grace |
//! | peers | a peer left | to the node as soon as it answers |
//! | hub | the same as for a node | to a fresh session after the grace, in case its key has changed; nowhere else, as no other place was named |
//! | fixed | nothing | never |
//!
//! A new session is complete before the old one is left. The old one is kept for a while, so that messages under way on
//! it still arrive.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use super::{
    connection::Connection,
    core::Core,
    declaration::Retired,
    inbox::{Inbox, Note},
    link::Link,
    presence::{DOUBT, RETURN, Register},
    worker::worker,
};
use crate::engine::EngineError;

/// Period at which a process without a node looks for one.
const LOOK: Duration = Duration::from_millis(250);

/// Time that a replaced session stays open.
const LINGER: Duration = Duration::from_secs(1);

/// State of the supervisor.
pub(super) struct Supervisor {
    core: Weak<Core>,
    inbox: Arc<Inbox>,
    connection: Connection,
    generation: u64,
    connections: HashMap<u64, HashSet<String>>,
    register: Register,
    /// Time until which disappearances are held back although the connection is up.
    returning_until: Instant,
    /// Time since which the connection is down.
    lost_since: Option<Instant>,
    /// True while a session is being opened.
    opening: bool,
    looked: Instant,
    left: VecDeque<(Instant, Left)>,
}

/// Session that the process has left.
struct Left {
    _handles: Vec<Retired>,
    _link: Arc<Link>,
}

impl Supervisor {
    pub fn start(core: &Arc<Core>, connection: Connection, generation: u64) -> Result<(), EngineError> {
        let now = Instant::now();
        let supervisor = Supervisor {
            core: Arc::downgrade(core),
            inbox: core.inbox.clone(),
            connection,
            generation,
            connections: HashMap::new(),
            register: Register::default(),
            returning_until: now,
            lost_since: None,
            opening: false,
            looked: now,
            left: VecDeque::new(),
        };
        worker("tampu-supervisor", move || supervisor.run())
    }

    fn run(mut self) {
        while let Some(notes) = self.inbox.take(self.next_deadline()) {
            let now = Instant::now();
            notes.into_iter().for_each(|note| self.take(note, now));
            self.look(now);
            if self.is_steady(now) {
                self.register.settle(now);
            }
            while self.left.front().is_some_and(|(until, _)| *until <= now) {
                // Closing may wait for the other side.
                let left = self.left.pop_front();
                let _ = worker("tampu-close", move || drop(left));
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let searching = self.connection == Connection::Peers || self.lost_since.is_some();
        // No decision is made while a session is being opened; its note ends the wait.
        let look = (searching && !self.opening).then(|| self.looked + LOOK);
        let telling = self.lost_since.is_none() && !self.opening;
        let tell = self.register.due().filter(|_| telling).map(|due| due.max(self.returning_until));
        let leave = self.left.front().map(|(until, _)| *until);
        [look, tell, leave].into_iter().flatten().min()
    }

    fn take(&mut self, note: Note, now: Instant) {
        match note {
            Note::Watch { number, seen } => self.register.watch(number, seen),
            Note::Unwatch { number } => self.register.unwatch(number),
            Note::Token { watch, generation, key, here, is_sure } => {
                let since = if is_sure { now.checked_sub(DOUBT).unwrap_or(now) } else { now };
                self.register.note(watch, generation, key, here, since);
            }
            Note::Unfed { generation } => {
                if generation == self.generation && self.connection == Connection::Node && !self.opening {
                    self.opening = self.core.upgrade().is_some_and(|core| open_in_background(Connection::Node, core).is_ok());
                }
            }
            Note::CaughtUp(call) => call(),
            Note::Connection { generation, there, up } => {
                let connections = self.connections.entry(generation).or_default();
                if up {
                    connections.insert(there)
                } else {
                    connections.remove(&there)
                };
                if generation == self.generation {
                    self.connection_changed(now);
                }
            }
            Note::Opened(connection, opened) => {
                self.opening = false;
                if let (Ok(link), Some(core)) = (*opened, self.core.upgrade()) {
                    self.move_to(connection, link, &core, now);
                }
            }
        }
    }

    fn connection_changed(&mut self, now: Instant) {
        let needs_one = matches!(self.connection, Connection::Node | Connection::Hub);
        let is_up = !needs_one || self.connections.get(&self.generation).is_some_and(|connections| !connections.is_empty());
        if !is_up {
            self.lost_since.get_or_insert(now);
        } else if self.lost_since.take().is_some() {
            self.returning_until = now + RETURN;
            if let Some(node) = self.core.upgrade().and_then(|core| core.current().1.node_keys.clone()) {
                node.renew();
            }
        }
    }

    fn move_to(&mut self, connection: Connection, link: Link, core: &Core, now: Instant) {
        let link = Arc::new(link);
        let (earlier, handles) = core.install(connection, link.clone());
        self.connections.remove(&self.generation);
        (self.connection, self.generation) = (connection, link.generation);
        self.left.push_back((now + LINGER, Left { _handles: handles, _link: earlier }));
        self.register.doubt_all_but(self.generation, now);
        self.returning_until = now + RETURN;
        self.lost_since = None;
        self.connection_changed(now);
    }

    /// Reports if a disappearance can be believed.
    fn is_steady(&self, now: Instant) -> bool {
        self.lost_since.is_none() && !self.opening && self.returning_until <= now
    }

    /// Checks for a better connection.
    fn look(&mut self, now: Instant) {
        let doubtful = matches!(self.connection, Connection::Peers) && self.register.due().is_some();
        if self.opening || (self.looked + LOOK > now && !doubtful) {
            return;
        }
        let Some(core) = self.core.upgrade() else { return };
        self.looked = now;
        let wanted = match (self.connection, self.lost_since) {
            // A peer that left may have moved to a node that has just appeared.
            (Connection::Peers, _) => core.dir.node_answers().then_some(Connection::Node),
            (_, Some(since)) if since + core.settings.node_grace <= now => {
                // The grace time of the next try starts here.
                self.lost_since = Some(now);
                let is_there = self.connection == Connection::Hub || core.dir.node_answers();
                Some(if is_there { self.connection } else { Connection::Peers })
            }
            _ => None,
        };
        if let Some(connection) = wanted {
            self.opening = open_in_background(connection, core).is_ok();
        }
    }
}

/// Opens a session on a thread of its own, because a stopped node accepts the connection and then sends nothing for
/// seconds.
fn open_in_background(connection: Connection, core: Arc<Core>) -> Result<(), EngineError> {
    worker("tampu-open", move || {
        let opened = core.open_link(connection);
        core.inbox.put(Note::Opened(connection, Box::new(opened)));
    })
}
