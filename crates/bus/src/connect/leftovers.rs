//! Removal of the files in shared memory that killed processes of this host have left.
//!
//! A process removes its files when it leaves. The node removes those of a killed one, a few seconds after its announcement
//! has gone: until then readers may map the memory in which its last samples lie.
//!
//! Rejected: removal by every process that notices the death. A hundred processes would search the directory for each
//! death. Rejected: removal at the next start of a node only. A process that is killed every minute left 20 MB a day.

use std::{
    collections::HashSet,
    fs,
    sync::{Arc, Mutex},
};

use tampu_types::{Domain, Incarnation};

use crate::{
    clock::{Clock, Gate},
    engine::{Engine, EngineError, Guard, Presence, Seen, Tick},
    host,
    links::lock,
    run_dir::DomainDir,
    wire::keys::Keys,
};

/// Time in ns between the end of an announcement and the removal of the files, and between two looks at files of a process
/// that lives without an announcement: its connection is cut.
const REST: u64 = 5_000_000_000;
/// Time in ns between two runs without work.
const IDLE: u64 = 3_600_000_000_000;

struct Leftovers {
    dir: DomainDir,
    clock: Arc<dyn Clock>,
    /// Processes without an announcement that may have files, with the time of the next look, in monotonic ns.
    unannounced: Mutex<Vec<(Incarnation, u64)>>,
    wake: Arc<Gate>,
}

/// The work of one node. It ends when this is dropped.
pub(super) struct Sweeping {
    // Dropped before the engine.
    _guards: Vec<Guard>,
    _engine: Arc<dyn Engine>,
}

impl Sweeping {
    /// Begins to watch the processes on the bus through an engine of the node.
    pub fn start(engine: Arc<dyn Engine>, domain: &Domain, dir: DomainDir) -> Result<Sweeping, EngineError> {
        let (clock, wake) = (engine.clock(), Arc::new(Gate::default()));
        let leftovers = Arc::new(Leftovers { dir, clock, unannounced: Mutex::default(), wake: wake.clone() });
        let keys = Keys::new(domain);
        let (presences, publishers) = (keys.presences(), keys.publishers());
        let noted = leftovers.clone();
        let seen: Seen = Arc::new(move |presence: Presence| {
            // Sockets of an engine have an incarnation of their own.
            let process = keys.parse_presence(&presence.key).map(|(process, _)| process);
            if let Some(process) = process.or_else(|| Some(keys.parse_publisher(&presence.key)?.0)) {
                noted.seen(process, presence.here);
            }
        });
        let guards = vec![
            engine.watch(&presences, seen.clone(), None)?,
            engine.watch(&publishers, seen, None)?,
            engine.drive(leftovers, wake)?,
        ];
        Ok(Sweeping { _guards: guards, _engine: engine })
    }
}

impl Leftovers {
    fn seen(&self, process: Incarnation, here: bool) {
        if process.boot != host::boot() {
            return;
        }
        let mut unannounced = lock(&self.unannounced);
        unannounced.retain(|(other, _)| *other != process);
        if !here {
            unannounced.push((process, self.clock.monotonic() + REST));
            self.wake.open();
        }
    }

    /// Removes the files of these processes as far as they have ended. Returns those that live and have files.
    fn sweep(&self, processes: &HashSet<Incarnation>) -> HashSet<Incarnation> {
        let mut living = HashSet::new();
        let files = self.dir.files_of_processes().into_iter().filter(|(process, _)| processes.contains(process));
        for (process, path) in files {
            if host::is_over(process) {
                // A file that cannot be removed stays until a node starts, which reports it.
                let _ = fs::remove_file(path);
            } else {
                living.insert(process);
            }
        }
        living
    }
}

impl Tick for Leftovers {
    fn tick(&self, now: u64) -> u64 {
        let due: HashSet<Incarnation> =
            lock(&self.unannounced).extract_if(.., |(_, at)| *at <= now).map(|(process, _)| process).collect();
        let living = if due.is_empty() { due } else { self.sweep(&due) };
        let mut unannounced = lock(&self.unannounced);
        for process in living {
            if !unannounced.iter().any(|(other, _)| *other == process) {
                unannounced.push((process, now + REST));
            }
        }
        unannounced.iter().map(|(_, at)| *at).min().unwrap_or(now + IDLE)
    }
}
