//! The spool: keeps a host's records on its disk while no collector keeps them.
//!
//! Decision: the host's node becomes the durable reader of its host's log streams when no collector has kept them for a
//! while. It reads each stream from the position of the last keeper ([`tampu_bus::Hold::Interim`]). It writes the
//! packets unchanged into files, and acknowledges the synced ones. Processes may end or continue to log without loss,
//! and a record is always in a ring, in a spool or in an archive.
//!
//! After a collector is back, the spool leaves the streams and sends its packets on a topic of its own. The ids never
//! change, so a record that arrives twice (from the spool and from a writer's cache) is kept once. A file is removed
//! when all its packets are acknowledged. A node or collector that dies in between continues at its last position.
//!
//! An acknowledgement of the spool releases room in a ring. It never confirms a call of
//! [`crate::Logger::acknowledged`], which waits for a collector's commit. Rejected:
//! - the node always writes everything: twice the disk for a case that is rare;
//! - a spool per process: a thousand files to sync, and no process to replay those of the dead;
//! - packets are published again in their streams: the sequence numbers belong to their writer.
//!
//! | part | module |
//! |-|-|
//! | one packet, as bytes | `frame` |
//! | one file of them | `file` |
//! | the directory, its bounds | `store` |
//! | the record of packets that were removed | `ledger` |
//! | the search for a collector that keeps records | `watch` |
//! | reading, and sending back | `work` |
//! | services | `answer` |
//!
//! `spec/log-spool.md` is the contract of the files and of the messages.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use parking_lot::Mutex;
use tampu_bus::{Participant, engine::Guard};
use tampu_workers::{OnPanic, WorkerThread};

use self::{state::SpoolShared, store::Store, watch::Watch};

pub(crate) mod answer;
mod error;
pub(crate) mod file;
pub(crate) mod frame;
pub(crate) mod ledger;
mod options;
mod report;
mod state;
mod store;
pub(crate) mod topic;
mod watch;
mod work;

pub use answer::{SPOOL, reports, taken};
pub use error::SpoolError;
pub use ledger::Lost;
pub use options::SpoolOptions;
pub use report::{Doing, News, SourceSpool, SpoolReport};
pub use topic::{SPOOL_TOPIC, SPOOLED};

/// A running spool; ends when dropped. Its contents stay for the next one.
pub struct Spool {
    shared: Arc<SpoolShared>,
    workers: Vec<JoinHandle<()>>,
    _services: Vec<Guard>,
}

impl Spool {
    /// Opens the directory and starts to keep this host's records. Reports its actions to `tell`, which may log but
    /// must not block.
    pub fn start(
        participant: Participant,
        directory: &Path,
        options: SpoolOptions,
        tell: impl Fn(News) + Send + 'static,
    ) -> Result<Spool, SpoolError> {
        let on_panic = options.on_panic;
        let store = Store::open(directory, participant.domain(), options.clone())?;
        let shared = Arc::new(SpoolShared {
            directory: directory.to_owned(),
            options,
            store: Mutex::new(store),
            watch: Watch::default(),
            state: Mutex::default(),
            stopping: AtomicBool::new(false),
            participant,
        });
        let mut spool = Spool { shared: shared.clone(), workers: Vec::new(), _services: Vec::new() };
        spool._services = answer::declare(&shared)?;
        let watched = shared.clone();
        spool.work("tampu-spool-eye", on_panic, move || watched.watch.run(&watched.participant, || watched.is_stopping()))?;
        spool.work("tampu-spool", on_panic, move || work::Work::new(shared, Box::new(tell)).run())?;
        Ok(spool)
    }

    fn work(&mut self, name: &str, on_panic: OnPanic, work: impl FnOnce() + Send + 'static) -> Result<(), SpoolError> {
        let worker = WorkerThread::named(name).spawn(on_panic, work);
        self.workers.push(worker.map_err(SpoolError::Worker)?);
        Ok(())
    }

    /// Returns the present state.
    pub fn report(&self) -> SpoolReport {
        self.shared.report()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self._services.clear();
        for worker in self.workers.drain(..) {
            // A worker that panicked has reported it.
            let _ = worker.join();
        }
    }
}
