//! State shared by writers, readers and the participant: the engine, its clock, the keys, and the gate that wakes the
//! heartbeat worker.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use tampu_types::{Domain, Incarnation, SourceName};

use crate::{
    clock::{Clock, Gate},
    engine::{Class, Engine, EngineError, Outlet},
    wire::keys::Keys,
};

/// Takes a lock, also after a panic elsewhere: every change under these locks is complete in itself.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Links {
    pub engine: Arc<dyn Engine>,
    pub clock: Arc<dyn Clock>,
    pub keys: Keys,
    pub domain: Domain,
    pub source: SourceName,
    pub incarnation: Incarnation,
    pub shared_dir: Option<PathBuf>,
    /// Wakes the heartbeat worker.
    pub wake: Arc<Gate>,
    /// Next run of the heartbeat worker, in monotonic ns.
    pub next_heartbeat: AtomicU64,
    /// True if heartbeats are due at once.
    pub beat_now: AtomicBool,
    /// Wakes the refetch server.
    pub wake_refetch_server: Arc<Gate>,
    control: Mutex<HashMap<Incarnation, Arc<dyn Outlet>>>,
}

impl Links {
    pub fn new(engine: Arc<dyn Engine>, domain: Domain, source: SourceName) -> Links {
        Links {
            clock: engine.clock(),
            keys: Keys::new(&domain),
            domain,
            source,
            incarnation: engine.incarnation(),
            shared_dir: engine.shared_dir(),
            wake: Arc::default(),
            next_heartbeat: AtomicU64::new(0),
            beat_now: AtomicBool::new(false),
            wake_refetch_server: Arc::default(),
            control: Mutex::default(),
            engine,
        }
    }

    /// Makes the heartbeat worker run no later than `when`.
    pub fn wake_by(&self, when: u64) {
        if self.next_heartbeat.fetch_min(when, Ordering::AcqRel) > when {
            self.wake.open();
        }
    }

    /// Makes the heartbeat worker send now.
    pub fn beat_soon(&self) {
        self.beat_now.store(true, Ordering::Release);
        self.wake_by(0);
    }

    /// Sends a control message to a participant. The next message repeats the content of a lost one.
    pub fn tell(&self, to: Incarnation, message: Vec<u8>) -> Result<(), EngineError> {
        let known = lock(&self.control).get(&to).cloned();
        let outlet = match known {
            Some(outlet) => outlet,
            None => {
                let outlet: Arc<dyn Outlet> = Arc::from(self.engine.outlet(&self.keys.control(to), Class::Control)?);
                lock(&self.control).insert(to, outlet.clone());
                outlet
            }
        };
        outlet.send(Bytes::from(message))
    }

    /// Path of a reader's progress page, for processes that share memory and sleep by the host's clock.
    pub fn progress_page(&self, reader_of: Incarnation, reader: u32) -> Option<PathBuf> {
        let dir = self.shared_dir.as_ref().filter(|_| self.clock.is_the_host_s())?;
        Some(dir.join(format!("{reader_of}-{reader}.progress")))
    }

    /// Drops the outlet to a participant that is gone.
    pub fn forget(&self, to: Incarnation) {
        lock(&self.control).remove(&to);
    }
}
