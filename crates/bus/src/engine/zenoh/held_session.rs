//! The session of a node, which may be opened anew while the node runs.
//!
//! Whoever needs the session meanwhile waits for the next one, at most [`PATIENCE`]. Engines on the node are moved to the
//! next one, and their declarations with them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, MappedMutexGuard, Mutex, MutexGuard};
use zenoh::{Session, liveliness::LivelinessToken, pubsub::Subscriber, query::Queryable};

use super::{
    lease::{Lease, Promise},
    settings::NAME,
};
use crate::engine::EngineError;

/// Longest wait for a session that is being opened anew. It takes half a second, and longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which a session that cannot be opened makes those who wait give up.
pub(super) const TROUBLE: Duration = Duration::from_secs(5);

/// An open session.
pub(super) struct Open {
    pub session: Session,
    /// Lease for the node's own engines, if the session may be opened anew.
    pub lease: Option<Arc<Lease>>,
    /// Number of its opening.
    pub number: u64,
    /// The announcement of the node.
    pub _here: LivelinessToken,
    /// The declarations of its processes' control messages and refetches on other hosts.
    pub _of_processes: Option<(Subscriber<()>, Queryable<()>)>,
}

#[derive(Default)]
enum State {
    /// No session yet, or none while it is opened anew.
    #[default]
    Opening,
    Open(Open),
    /// It could not be opened in time, for this reason. The node goes on trying.
    Failing(String),
    /// The node ends.
    Over,
}

impl State {
    fn open(&mut self) -> Option<&mut Open> {
        match self {
            State::Open(open) => Some(open),
            _ => None,
        }
    }
}

/// Holder of a node's session.
#[derive(Default)]
pub(super) struct HeldSession {
    state: Mutex<State>,
    changed: Condvar,
    /// The promise of another session, for engines on the node.
    pub promise: Arc<Promise>,
}

fn refused(why: String) -> EngineError {
    EngineError::Refused { engine: NAME, doing: "opening the node's connections anew".to_owned(), why }
}

impl HeldSession {
    /// Returns the session, locked: it stays open meanwhile. Waits for one that is being opened anew.
    pub fn opened(&self) -> Result<MappedMutexGuard<'_, Open>, EngineError> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.lock();
        loop {
            state = match MutexGuard::try_map(state, State::open) {
                Ok(open) => return Ok(open),
                Err(state) => state,
            };
            match &*state {
                State::Failing(why) => return Err(refused(why.clone())),
                State::Over => return Err(refused("the node has ended".to_owned())),
                State::Opening | State::Open(_) => {
                    if self.changed.wait_until(&mut state, until).timed_out() {
                        return Err(refused(format!("it takes longer than {} s", PATIENCE.as_secs())));
                    }
                }
            }
        }
    }

    /// Takes the session, to be closed. Another one will follow. Returns none if there is none.
    pub fn take(&self) -> Option<Open> {
        let mut state = self.state.lock();
        match std::mem::take(&mut *state) {
            State::Open(open) => {
                self.promise.give(true);
                Some(open)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Holds this session, and calls `moved` before anybody else uses it. After the end it closes it.
    pub fn put(&self, open: Open, moved: impl FnOnce(&Open)) {
        let mut state = self.state.lock();
        if matches!(*state, State::Over) {
            return;
        }
        self.promise.give(open.number > 0);
        moved(&open);
        *state = State::Open(open);
        self.changed.notify_all();
    }

    /// Tells everybody who waits that the session cannot be opened at present.
    pub fn fail(&self, why: String) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Over) {
            self.promise.give(false);
            *state = State::Failing(why);
            self.changed.notify_all();
        }
    }

    /// Ends waiting: the node ends before it has opened the session.
    pub fn give_up(&self) {
        *self.state.lock() = State::Over;
        self.changed.notify_all();
    }

    /// Ends it. Returns the session, also one that is just being opened.
    pub fn end(&self) -> Option<Open> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.lock();
        while matches!(*state, State::Opening | State::Failing(_)) {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        self.promise.give(false);
        let State::Open(open) = std::mem::replace(&mut *state, State::Over) else { return None };
        self.changed.notify_all();
        Some(open)
    }
}
