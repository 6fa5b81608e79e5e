//! The watch of the run-time directory: it is made anew when it vanishes, and a shortened file in it is reported.
//!
//! logind removes the directory at a user's logout, and an operator may remove or move it. The process with the node
//! makes it anew, with the rules. Logbook, inputs, metrics and the bridge, in processes of their own, end then in order, and
//! the supervisor starts them again: their sandboxes name the old directory. The collector goes on: its connection lives,
//! and its answers must not pause. Every process of the user can shorten a file that the hub has mapped
//! ([`tampu_bus::survive_truncation`]).

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};
use tampu_bus::{connect::Node, lost_pages, run_dir::DomainDir};
use tampu_log::{Logger, error, info, warning};
use tampu_workers::WorkerThread;

use crate::{book::LocationKeeper, rules::Rules};

/// Period of the looks at the directory.
const LOOK: Duration = Duration::from_secs(1);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);

/// The worker of the watch; it ends when this is dropped.
pub(crate) struct RunDirWatch {
    // Dropped first: that ends the worker.
    stop: Option<Sender<()>>,
    worker: Option<JoinHandle<()>>,
}

/// The parts of a process that depend on the run-time directory.
pub(crate) struct Dependants {
    pub node: Option<Arc<Node>>,
    pub rules: Arc<Rules>,
    /// The file that says where the logbook of this process is.
    pub location: Option<LocationKeeper>,
    /// The directory of a role in a process of its own that begins anew in a new directory.
    pub role_dir: Option<DomainDir>,
    pub logger: Logger,
}

impl RunDirWatch {
    /// Starts the watch.
    pub fn start(dependants: Dependants) -> std::io::Result<RunDirWatch> {
        let (stop, stopped) = channel::<()>();
        let mut watched = Watched {
            identity: dependants.role_dir.as_ref().and_then(|dir| identity(dir.path())),
            dependants,
            failure: None,
            lost: 0,
        };
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
                watched.look();
            }
        };
        let worker = WorkerThread::named("run-dir-watch").spawn_restarting(RESTART, work)?;
        Ok(RunDirWatch { stop: Some(stop), worker: Some(worker) })
    }
}

impl Drop for RunDirWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

struct Watched {
    dependants: Dependants,
    /// Device and number of the directory in which this role began.
    identity: Option<(u64, u64)>,
    /// Reason why the directory could not be made anew, so that it is logged once.
    failure: Option<String>,
    /// Lost pages that have been logged.
    lost: u64,
}

impl Watched {
    fn look(&mut self) {
        if let Some(node) = self.dependants.node.clone() {
            self.restore(&node);
        }
        if let Some(location) = &self.dependants.location {
            location.restore();
        }
        if let Some(dir) = &self.dependants.role_dir
            && self.identity != identity(dir.path())
            && dir.restored().is_some()
        {
            info!(self.dependants.logger, "the run-time directory was made anew: this role starts again in it");
            // To this process: its main thread ends it in order.
            let _ = kill_process(getpid(), Signal::TERM);
            self.dependants.role_dir = None;
        }
        let pages = lost_pages();
        if pages > self.lost {
            warning!(
                self.dependants.logger,
                "another process shortened files of the run-time directory that this hub has mapped ({} pages): the hub goes \
                 on without them; restart it when it suits",
                pages - self.lost
            );
            self.lost = pages;
        }
    }

    fn restore(&mut self, node: &Node) {
        let Dependants { rules, logger, .. } = &self.dependants;
        let path = node.dir().path().display();
        let failure = match node.restore() {
            Ok(false) => None,
            Ok(true) => {
                rules.publish();
                warning!(
                    logger,
                    "the run-time directory {path} vanished, and was made anew; a logout removes it without lingering, and so does \
                     rm: see 'tampu doctor'"
                );
                None
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = failure.as_ref().filter(|&why| self.failure.as_ref() != Some(why)) {
            error!(logger, "the run-time directory {path} vanished, and no process finds this hub: {why}");
        }
        self.failure = failure;
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
