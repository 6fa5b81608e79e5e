//! Declarations of the engine, kept so that they can be repeated on another session.
//!
//! This happens when a node appears, restarts with another key, or disappears for good.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
};

use super::{lease::Lease, link::Link};
use crate::engine::EngineError;

/// Handle of a declaration on its earlier session, kept until that session is closed.
pub(super) type Retired = Box<dyn Any + Send>;

/// A declaration: a subscription, a service, an announcement, a watch.
pub(super) trait Declaration: Send + Sync {
    /// Declares it on the link, unless it is already on this or a later one.
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError>;

    /// Withdraws it for good.
    fn withdraw(&self);
}

/// Handle of a declaration on its current session.
pub(super) struct Slot<H> {
    state: RwLock<State<H>>,
    /// Lock during a declaration, so that two threads that notice the same new session do not both declare.
    attaching: Mutex<()>,
}

enum State<H> {
    Empty,
    /// Generation of its link, the handle, and the lease of the link's session.
    Live(u64, Arc<H>, Option<Arc<Lease>>),
    Withdrawn,
}

impl<H> Default for Slot<H> {
    fn default() -> Slot<H> {
        Slot { state: RwLock::new(State::Empty), attaching: Mutex::new(()) }
    }
}

impl<H: Send + Sync + 'static> Slot<H> {
    /// Works with the handle, if it is declared anywhere.
    pub fn with<T>(&self, work: impl FnOnce(&H) -> T) -> Option<T> {
        let (handle, lease) = match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Live(_, handle, lease) => (handle.clone(), lease.clone()),
            State::Empty | State::Withdrawn => return None,
        };
        let worked = Lease::of(lease.as_ref()).map(|_in_use| work(&handle));
        if lease.is_some() {
            // It may have been the last use.
            Lease::discard(lease.as_ref(), handle);
        }
        worked
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
            State::Live(generation, ..) => *generation < link.generation,
            State::Withdrawn => false,
        };
        let _attaching = self.attaching.lock().unwrap_or_else(PoisonError::into_inner);
        if !needed(&self.state.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(None);
        }
        let refused = |doing: String, why: String| EngineError::Refused { engine: super::settings::NAME, doing, why };
        let Some(_in_use) = Lease::of(link.lease.as_ref()) else {
            return Err(refused(doing(), "the node has closed its session".to_owned()));
        };
        // Declared without the state's lock: the engine may call back before it returns, and senders continue meanwhile.
        let handle = declare().map_err(|why| refused(doing(), why.to_string()))?;
        let handle = Arc::new(handle);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if !needed(&state) {
            drop(state);
            return Ok(None);
        }
        match std::mem::replace(&mut *state, State::Live(link.generation, handle, link.lease.clone())) {
            State::Live(_, earlier, _) => Ok(Some(Box::new(earlier))),
            State::Empty | State::Withdrawn => Ok(None),
        }
    }

    /// Withdraws the declaration for good.
    pub fn withdraw(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *state, State::Withdrawn);
        drop(state);
        if let State::Live(_, handle, lease) = last {
            Lease::discard(lease.as_ref(), handle);
        }
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

    /// Returns all present declarations.
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
