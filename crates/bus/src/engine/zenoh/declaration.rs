//! What has been declared through the engine, so that it can be declared again on another session: when a node appears, is
//! restarted with another key, or has gone for good.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
};

use super::link::Link;
use crate::engine::EngineError;

/// What a declaration leaves on the session it moved away from; kept until that session is closed.
pub(super) type Retired = Box<dyn Any + Send>;

/// Something declared.
pub(super) trait Declaration: Send + Sync {
    /// Declares it on the link unless it is on this or a later one already.
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError>;

    /// Takes it back for good.
    fn withdraw(&self);
}

/// The handle of a declaration on the session it is on now.
pub(super) struct Slot<H> {
    state: RwLock<State<H>>,
    /// Held while declaring, so that two who notice the same new session do not both declare.
    attaching: Mutex<()>,
}

enum State<H> {
    Empty,
    Live(u64, Arc<H>),
    Withdrawn,
}

impl<H> Default for Slot<H> {
    fn default() -> Slot<H> {
        Slot { state: RwLock::new(State::Empty), attaching: Mutex::new(()) }
    }
}

impl<H: Send + Sync + 'static> Slot<H> {
    /// The handle, if it is declared anywhere.
    pub fn get(&self) -> Option<Arc<H>> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Live(_, handle) => Some(handle.clone()),
            State::Empty | State::Withdrawn => None,
        }
    }

    /// Replaces the handle by one on the link.
    pub fn attach(
        &self,
        link: &Link,
        doing: impl FnOnce() -> String,
        declare: impl FnOnce() -> zenoh::Result<H>,
    ) -> Result<Option<Retired>, EngineError> {
        let needed = |state: &State<H>| match state {
            State::Empty => true,
            State::Live(generation, _) => *generation < link.generation,
            State::Withdrawn => false,
        };
        let _attaching = self.attaching.lock().unwrap_or_else(PoisonError::into_inner);
        if !needed(&self.state.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(None);
        }
        // Declared without the state's lock: the engine may call back before it returns, and senders go on meanwhile.
        let handle =
            declare().map_err(|why| EngineError::Refused { engine: super::NAME, doing: doing(), why: why.to_string() })?;
        let handle = Arc::new(handle);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if !needed(&state) {
            drop(state);
            return Ok(None);
        }
        match std::mem::replace(&mut *state, State::Live(link.generation, handle)) {
            State::Live(_, earlier) => Ok(Some(Box::new(earlier))),
            State::Empty | State::Withdrawn => Ok(None),
        }
    }

    /// Takes the declaration back for good.
    pub fn withdraw(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *state, State::Withdrawn);
        drop(state);
        drop(last);
    }
}

/// All declarations of one engine.
#[derive(Default)]
pub(super) struct Registry {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    last: u64,
    declarations: BTreeMap<u64, Arc<dyn Declaration>>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the declaration until it is withdrawn.
    pub fn keep(&self, declaration: Arc<dyn Declaration>) -> u64 {
        let mut kept = self.lock();
        kept.last += 1;
        let number = kept.last;
        kept.declarations.insert(number, declaration);
        number
    }

    /// Forgets a declaration.
    pub fn withdraw(&self, number: u64) {
        let withdrawn = self.lock().declarations.remove(&number);
        if let Some(withdrawn) = withdrawn {
            withdrawn.withdraw();
        }
    }

    /// Everything declared now.
    pub fn all(&self) -> Vec<Arc<dyn Declaration>> {
        self.lock().declarations.values().cloned().collect()
    }
}

/// Withdraws a declaration when dropped, if its engine still lives.
pub(super) struct Withdraw {
    pub registry: Weak<Registry>,
    pub number: u64,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.withdraw(self.number);
        }
    }
}
