//! The watch of the run-time directory: it is made anew when it vanishes, and a shortened file in it is reported.
//!
//! logind removes the directory at a user's logout, and an operator may remove or move it. A hub in one process makes it
//! anew around its living node ([`Node::restore`]). With a process for each role, the node ends in order, and the
//! supervisor starts it again, in a new directory. Logbook, inputs, metrics and the bridge follow it: their sandboxes name
//! the old directory, and no sandbox lets a process through the link that `restore` makes. The collector goes on, and
//! connects to the new node. Every process of the user can shorten a file that the hub has mapped
//! ([`tampu_bus::survive_truncation`]).

use std::{
    fs::{self, File},
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
    /// True if a supervisor starts this process again when it ends.
    pub has_supervisor: bool,
    pub logger: Logger,
}

impl RunDirWatch {
    /// Starts the watch.
    pub fn start(dependants: Dependants) -> std::io::Result<RunDirWatch> {
        let (stop, stopped) = channel::<()>();
        let mut watched = Watched {
            begun_in: dependants.role_dir.as_ref().and_then(|dir| File::open(dir.path()).ok()),
            dependants,
            is_ending: false,
            failure: None,
            lost: 0,
            trouble: Vec::new(),
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
    /// The directory in which this role began. It is held open, so that no new directory gets its number.
    begun_in: Option<File>,
    /// True once this process has asked itself to end.
    is_ending: bool,
    /// Reason why the directory could not be made anew, so that it is logged once.
    failure: Option<String>,
    /// Lost pages that have been logged.
    lost: u64,
    /// Faults of multicast groups and of the engine that have been logged.
    trouble: Vec<String>,
}

impl Watched {
    /// Logs faults of multicast groups and of the engine, each once while it lasts.
    fn tell_of_trouble(&mut self, trouble: Vec<String>) {
        for why in trouble.iter().filter(|why| !self.trouble.contains(why)) {
            warning!(self.dependants.logger, "{why}");
        }
        for why in self.trouble.iter().filter(|why| !trouble.contains(why)) {
            info!(self.dependants.logger, "no longer so: {why}");
        }
        self.trouble = trouble;
    }

    fn look(&mut self) {
        if self.is_ending {
            return;
        }
        let node = self.dependants.node.clone();
        if let Some(why) = node.as_ref().and_then(|node| node.failure()) {
            if self.failure.as_ref() != Some(&why) {
                error!(self.dependants.logger, "no process and no other host reaches this node: {why}");
            }
            self.failure = Some(why);
            // A new process may have more luck.
            if self.dependants.has_supervisor {
                self.end();
            }
            return;
        }
        if let Some(node) = &node {
            self.tell_of_trouble(node.trouble());
        }
        match node {
            Some(node) if self.dependants.has_supervisor && !node.is_found() => {
                let path = node.dir().path().display();
                warning!(
                    self.dependants.logger,
                    "the run-time directory {path} vanished: the node starts again in a new one; a logout removes it without \
                     lingering, and so does rm: see 'tampu doctor'"
                );
                return self.end();
            }
            Some(node) if !self.dependants.has_supervisor => self.restore(&node),
            _ => {}
        }
        if let (Some(dir), Some(begun_in)) = (&self.dependants.role_dir, &self.begun_in)
            && !is_at(begun_in, dir.path())
            && dir.node_answers()
        {
            info!(self.dependants.logger, "the run-time directory is a new one: this role starts again in it");
            return self.end();
        }
        if let Some(location) = self.dependants.location.as_ref().filter(|_| !self.dependants.has_supervisor) {
            location.restore();
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

    /// Asks this process to end in order, as a user does.
    fn end(&mut self) {
        self.is_ending = kill_process(getpid(), Signal::TERM).is_ok();
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

/// Returns true if the path still leads to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata().ok().map(identity) == fs::metadata(path).ok().map(identity)
}
