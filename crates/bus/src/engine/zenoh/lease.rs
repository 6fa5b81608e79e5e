//! Use of a node's session by the node's own engines.
//!
//! The engine's router panics in calls that run while its session is closed. So a node that opens its session anew lets
//! calls end before it closes the session, and takes no more. Other sessions belong to one engine alone, and have no lease.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

/// Promise of a node to its own engines: after a closed session it opens another one, and moves them there.
#[derive(Debug, Default)]
pub(super) struct Promise(AtomicBool);

impl Promise {
    /// Gives the promise, or takes it back.
    pub fn give(&self, holds: bool) {
        self.0.store(holds, Ordering::Release);
    }
}

/// Lease of one session.
#[derive(Default)]
pub(super) struct Lease {
    is_over: AtomicBool,
    in_use: RwLock<()>,
    promise: Arc<Promise>,
    /// Handles that were dropped after the end. The engine must not be called about them before the session is closed.
    leftovers: Mutex<Vec<Box<dyn Any + Send>>>,
}

/// Permission for calls to a session, which is not closed meanwhile.
pub(super) struct Use<'a> {
    _in_use: Option<RwLockReadGuard<'a, ()>>,
}

impl Lease {
    pub fn new(promise: &Arc<Promise>) -> Arc<Lease> {
        Arc::new(Lease { promise: promise.clone(), ..Lease::default() })
    }

    /// Permits calls; none after the end. A session without a lease is always usable.
    pub fn of(lease: Option<&Arc<Lease>>) -> Option<Use<'_>> {
        let Some(lease) = lease else { return Some(Use { _in_use: None }) };
        // Calls may call back and come here again. The flag keeps new ones from delaying the end for ever.
        let in_use = lease.in_use.read_recursive();
        (!lease.is_over.load(Ordering::Acquire)).then_some(Use { _in_use: Some(in_use) })
    }

    /// Drops a handle of the session, at once or when the session is closed.
    pub fn discard(lease: Option<&Arc<Lease>>, handle: impl Any + Send) {
        match (Lease::of(lease), lease) {
            (None, Some(lease)) => lease.leftovers.lock().push(Box::new(handle)),
            (_in_use, _) => drop(handle),
        }
    }

    /// Returns true after the end, if another session will follow.
    pub fn awaits_another(&self) -> bool {
        self.is_over.load(Ordering::Acquire) && self.promise.0.load(Ordering::Acquire)
    }

    /// Ends the lease when all calls have ended, and then closes the session.
    pub fn end(&self, close: impl FnOnce()) {
        self.is_over.store(true, Ordering::Release);
        drop(self.in_use.write());
        close();
        let leftovers = std::mem::take(&mut *self.leftovers.lock());
        drop(leftovers);
    }
}
