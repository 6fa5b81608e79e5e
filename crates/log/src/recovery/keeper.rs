//! The keeper of a host's log rings: recovers the rings of dead processes, and drains those of living processes whose backend
//! is missing.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::{Participant, engine::Fate, host};
use tampu_ring::RecoverError;
use tampu_types::{Incarnation, SourceName};
use tampu_workers::{OnPanic, WorkerThread, guard};

use super::{
    NotRecovered, Recovered, Recoverer,
    orphans::{Foster, NotAdopted},
};

/// The name of the worker.
const NAME: &str = "tampu-rings";
/// Pause before rings that caused a panic are tried again.
const AFTER_PANIC: Duration = Duration::from_secs(3600);
/// Interval at which the directory is read.
const LOOK: Duration = Duration::from_millis(500);
/// Longest time of one recovery before the next directory is served.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before a directory that could not be recovered is retried.
const AGAIN: Duration = Duration::from_secs(5);
/// Time after the release of a living process's rings during which only the process drains them.
const ITS_TURN: Duration = Duration::from_secs(1);
/// Living processes that are drained at a time, each by a thread; further ones wait until one of them ends.
const FOSTERED_MAX: usize = 64;

/// Event that a [`RingKeeper`] reports.
#[derive(Debug)]
pub enum News {
    /// A dead process's rings are empty and gone.
    Recovered(Recovered),
    /// Failure to recover a dead process's rings, which is retried; reported once a directory.
    NotRecovered(NotRecovered),
    /// A living process without a drainer: its rings are drained here.
    Adopted {
        /// Name of the process.
        source: SourceName,
        /// Incarnation of the process.
        incarnation: Incarnation,
        /// True if the process says that others drain its rings, as programs in Java do.
        is_expected: bool,
    },
    /// Failure to drain the rings of a living process that has no drainer; reported once a directory.
    NotAdopted(String),
}

/// Keeps the rings of this host's processes from filling up or being abandoned, until it is dropped.
pub struct RingKeeper {
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl RingKeeper {
    /// Starts to maintain this directory (`<run>/<domain>/rings`) and to report its actions.
    pub fn start(
        participant: Participant,
        rings: PathBuf,
        on_panic: OnPanic,
        tell: impl Fn(&Path, News) + Send + 'static,
    ) -> std::io::Result<RingKeeper> {
        let stopping = Arc::new(AtomicBool::new(false));
        let work = Work {
            recoverer: Recoverer::new(participant.clone()),
            participant,
            stop: stopping.clone(),
            later: HashMap::new(),
            fostered: HashMap::new(),
            tell,
        };
        let worker = WorkerThread::named(NAME).spawn(on_panic, move || work.run(&rings))?;
        Ok(RingKeeper { stopping, worker: Some(worker) })
    }
}

impl Drop for RingKeeper {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            worker.thread().unpark();
            // A worker that panicked has reported it.
            let _ = worker.join();
        }
    }
}

struct Work<T> {
    participant: Participant,
    recoverer: Recoverer,
    stop: Arc<AtomicBool>,
    /// Directories that are left alone until then.
    later: HashMap<PathBuf, Instant>,
    fostered: HashMap<PathBuf, Foster>,
    tell: T,
}

impl<T: Fn(&Path, News)> Work<T> {
    fn run(mut self, rings: &Path) {
        while !self.stop.load(Ordering::Acquire) {
            let lives = lives_in(rings);
            self.later.retain(|path, _| lives.iter().any(|life| life.path == *path));
            self.reap();
            for life in lives {
                if self.stop.load(Ordering::Acquire) {
                    break;
                }
                if self.later.get(&life.path).is_none_or(|at| *at <= Instant::now()) && !self.fostered.contains_key(&life.path) {
                    let path = life.path.clone();
                    // Rings that cause a panic must not end the node again and again.
                    if guard(NAME, || self.look_after(life)).is_err() {
                        self.leave_alone(path, AFTER_PANIC);
                    }
                }
            }
            std::thread::park_timeout(LOOK);
        }
        for (_, foster) in self.fostered {
            // By this time the workers have seen the request to release their leases.
            foster.was_wanted_back();
        }
    }

    fn look_after(&mut self, life: Life) {
        // A process of another pid namespace may have the number of a living process here.
        if !life.is_over() && self.adopt(&life) {
            return;
        }
        match self.recoverer.recover(&life.path, PATIENCE) {
            Ok(recovered) => (self.tell)(&life.path, News::Recovered(recovered)),
            // The process number is unknown here, as in a container, but the process lives.
            Err(NotRecovered::Rings(RecoverError::Alive(_))) => {
                self.adopt(&life);
            }
            // A collector may appear later.
            Err(NotRecovered::Rings(RecoverError::Busy(_))) => self.leave_alone(life.path, AGAIN),
            // The process died during its start.
            Err(NotRecovered::Rings(RecoverError::Unfinished(_))) => match tampu_ring::remove_unfinished(&life.path) {
                Ok(_) => self.leave_alone(life.path, AGAIN),
                Err(error) => self.tell_once(&life.path, News::NotRecovered(RecoverError::from(error).into())),
            },
            Err(error) => self.tell_once(&life.path, News::NotRecovered(error)),
        }
    }

    /// Drains the rings of a living process without a drainer. Returns false if its locks show that it has died.
    fn adopt(&mut self, life: &Life) -> bool {
        if self.fostered.len() >= FOSTERED_MAX || !life.is_grown_up() && !tampu_ring::has_no_drainer(&life.path) {
            return true;
        }
        match Foster::adopt(&life.path, &self.participant, self.stop.clone()) {
            Ok(foster) => {
                let (source, incarnation) = (foster.source().clone(), life.incarnation);
                let is_expected = tampu_ring::has_no_drainer(&life.path);
                let news = News::Adopted { source, incarnation, is_expected };
                (self.tell)(&life.path, news);
                self.fostered.insert(life.path.clone(), foster);
            }
            Err(NotAdopted::Dead) => return false,
            // Its own process drains the rings, or they are about to be removed.
            Err(NotAdopted::Drained) => {}
            Err(NotAdopted::Unusable(why)) => self.tell_once(&life.path, News::NotAdopted(why)),
        }
        true
    }

    /// Removes the workers that have ended, or whose process wants to drain itself.
    fn reap(&mut self) {
        let ended: Vec<PathBuf> =
            self.fostered.iter().filter(|(_, foster)| foster.has_ended()).map(|(path, _)| path.clone()).collect();
        for path in ended {
            if self.fostered.remove(&path).is_some_and(Foster::was_wanted_back) {
                self.leave_alone(path, ITS_TURN);
            }
        }
    }

    fn leave_alone(&mut self, path: PathBuf, time: Duration) {
        self.later.insert(path, Instant::now() + time);
    }

    /// Reports a retried failure, unless it was reported before.
    fn tell_once(&mut self, path: &Path, news: News) {
        if self.later.insert(path.to_owned(), Instant::now() + AGAIN).is_none() {
            (self.tell)(path, news);
        }
    }
}

/// One directory of rings.
struct Life {
    incarnation: Incarnation,
    path: PathBuf,
}

impl Life {
    fn is_over(&self) -> bool {
        self.incarnation.boot != host::boot() || host::fate(self.incarnation) == Fate::Dead
    }

    /// Returns whether a process had the time to begin draining, which it does when it begins to log. One that says that
    /// it will not drain is not given this time.
    fn is_grown_up(&self) -> bool {
        /// Since it began.
        const CHILDHOOD: Duration = Duration::from_secs(1);
        let age = crate::logger::clock::now().0.saturating_sub(self.incarnation.start as i64);
        age >= CHILDHOOD.as_nanos() as i64
    }
}

fn lives_in(rings: &Path) -> Vec<Life> {
    let entries = fs::read_dir(rings).into_iter().flatten().flatten();
    let life = |path: PathBuf| Some(Life { incarnation: path.file_name()?.to_str()?.parse().ok()?, path });
    let mut lives: Vec<Life> = entries.filter_map(|entry| life(entry.path())).collect();
    lives.sort_unstable_by(|one, other| (one.incarnation.start, &one.path).cmp(&(other.incarnation.start, &other.path)));
    lives
}

/// The directories of lives that have ended, the oldest first.
pub fn dead_in(rings: &Path) -> Vec<PathBuf> {
    lives_in(rings).into_iter().filter(Life::is_over).map(|life| life.path).collect()
}
