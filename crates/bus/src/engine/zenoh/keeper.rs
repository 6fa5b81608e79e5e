//! The worker that keeps a process connected: to its node, or without one to its peers, and over to the node when one
//! appears.
//!
//! | way | connection lost | moves |
//! |-|-|-|
//! | node | the engine reconnects by itself; what is declared is declared again by it | to a fresh session when the node answers but the engine stays out (its key has changed); to the peers when the node has been gone for its grace |
//! | peers | somebody left | to the node as soon as it answers |
//! | hub | the same | to a fresh session after the grace, in case its key has changed; nowhere else, as no other place was named |
//! | fixed | nothing | never |
//!
//! A new session is complete before the old one is left, and the old one is kept for a while, so that what is under way on
//! it still arrives.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Condvar, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Core, Way,
    declaration::Retired,
    link::Link,
    presence::{RETURN, Register},
};
use crate::engine::{EngineError, Seen};

/// How often a process looks for a node while it has none.
const LOOK: Duration = Duration::from_millis(250);

/// How long a session that was moved away from stays open.
const LINGER: Duration = Duration::from_secs(1);

/// What the keeper is told.
pub(super) enum Note {
    /// A connection of a link came or went.
    Connection { generation: u64, there: String, up: bool },
    /// A watch begins.
    Watch { number: u64, seen: Seen },
    /// A watch ends.
    Unwatch { number: u64 },
    /// A watch saw a key come or go.
    Token { watch: u64, generation: u64, key: String, here: bool },
    /// A session asked for has been opened, or not.
    Opened(Way, Box<Result<Link, EngineError>>),
}

/// Where notes wait for the keeper. Bounded by what is announced: every key has at most a few notes under way.
#[derive(Default)]
pub(super) struct Inbox {
    notes: Mutex<(VecDeque<Note>, bool)>,
    news: Condvar,
    watches: AtomicU64,
}

impl Inbox {
    pub fn put(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.1 {
            // Without the lock: a session in the note closes, which makes notes of its connections.
            drop(notes);
            return drop(note);
        }
        notes.0.push_back(note);
        self.news.notify_all();
    }

    /// Ends the keeper.
    pub fn close(&self) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.1 = true;
        let unread = std::mem::take(&mut notes.0);
        self.news.notify_all();
        drop(notes);
        drop(unread);
    }

    pub fn next_watch(&self) -> u64 {
        self.watches.fetch_add(1, Ordering::Relaxed)
    }

    /// What has arrived, at the latest at the deadline; `None` once closed.
    fn take(&self, deadline: Option<Instant>) -> Option<VecDeque<Note>> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if notes.1 {
                return None;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !notes.0.is_empty() || left == Some(Duration::ZERO) {
                return Some(std::mem::take(&mut notes.0));
            }
            notes = match left {
                None => self.news.wait(notes).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.news.wait_timeout(notes, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

/// The keeper's knowledge.
pub(super) struct Keeper {
    core: Weak<Core>,
    inbox: Arc<Inbox>,
    way: Way,
    generation: u64,
    connections: HashMap<u64, HashSet<String>>,
    register: Register,
    /// Until when disappearances are held back although the connection is up.
    returning_until: Instant,
    /// Since when the way's connection is down.
    lost_since: Option<Instant>,
    /// Whether a session is being opened.
    opening: bool,
    looked: Instant,
    left: VecDeque<(Instant, Left)>,
}

/// A session moved away from.
struct Left {
    _handles: Vec<Retired>,
    _link: Arc<Link>,
}

impl Keeper {
    pub fn start(core: &Arc<Core>, way: Way, generation: u64) -> Result<(), EngineError> {
        let now = Instant::now();
        let keeper = Keeper {
            core: Arc::downgrade(core),
            inbox: core.inbox.clone(),
            way,
            generation,
            connections: HashMap::new(),
            register: Register::default(),
            returning_until: now,
            lost_since: None,
            opening: false,
            looked: now,
            left: VecDeque::new(),
        };
        worker("tampu-keeper", move || keeper.run())
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
        let searching = self.way == Way::Peers || self.lost_since.is_some();
        // While a session is being opened nothing is decided; its note ends the waiting.
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
            Note::Token { watch, generation, key, here } => self.register.note(watch, generation, key, here, now),
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
            Note::Opened(way, opened) => {
                self.opening = false;
                if let (Ok(link), Some(core)) = (*opened, self.core.upgrade()) {
                    self.move_to(way, link, &core, now);
                }
            }
        }
    }

    fn connection_changed(&mut self, now: Instant) {
        let needs_one = matches!(self.way, Way::Node | Way::Hub);
        let is_up = !needs_one || self.connections.get(&self.generation).is_some_and(|connections| !connections.is_empty());
        if !is_up {
            self.lost_since.get_or_insert(now);
        } else if self.lost_since.take().is_some() {
            self.returning_until = now + RETURN;
        }
    }

    fn move_to(&mut self, way: Way, link: Link, core: &Core, now: Instant) {
        let link = Arc::new(link);
        let (earlier, handles) = core.install(way, link.clone());
        self.connections.remove(&self.generation);
        (self.way, self.generation) = (way, link.generation);
        self.left.push_back((now + LINGER, Left { _handles: handles, _link: earlier }));
        self.register.doubt_all_but(self.generation, now);
        self.returning_until = now + RETURN;
        self.lost_since = None;
        self.connection_changed(now);
    }

    /// Whether a disappearance means what it says.
    fn is_steady(&self, now: Instant) -> bool {
        self.lost_since.is_none() && !self.opening && self.returning_until <= now
    }

    /// Looks for a better way to be connected.
    fn look(&mut self, now: Instant) {
        let doubtful = matches!(self.way, Way::Peers) && self.register.due().is_some();
        if self.opening || (self.looked + LOOK > now && !doubtful) {
            return;
        }
        let Some(core) = self.core.upgrade() else { return };
        self.looked = now;
        let wanted = match (self.way, self.lost_since) {
            // A peer that left may have moved to a node that has just appeared.
            (Way::Peers, _) => core.dir.node_answers().then_some(Way::Node),
            (_, Some(since)) if since + core.config.node_grace <= now => {
                // Counted anew for the next try.
                self.lost_since = Some(now);
                let is_there = self.way == Way::Hub || core.dir.node_answers();
                Some(if is_there { self.way } else { Way::Peers })
            }
            _ => None,
        };
        if let Some(way) = wanted {
            self.opening = open_in_background(way, core).is_ok();
        }
    }
}

/// Opening may take seconds where a stopped node accepts the connection and says nothing.
fn open_in_background(way: Way, core: Arc<Core>) -> Result<(), EngineError> {
    worker("tampu-open", move || {
        let opened = core.open_link(way);
        core.inbox.put(Note::Opened(way, Box::new(opened)));
    })
}

/// Starts a thread.
pub(super) fn worker(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), EngineError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(|why| EngineError::Refused {
        engine: super::NAME,
        doing: format!("starting the worker {name}"),
        why: why.to_string(),
    })
}
