//! Counts looks at entries, and writes them into the store together.
//!
//! Decision: a look costs a look-up in memory, and one transaction every [`PERIOD`] writes what has come together. A
//! reader counts once for an entry and a day. The memory of who was counted is a set of digests that is never written:
//! the store has numbers alone. After a restart, or beyond [`KNOWN`] readers, a reader may count twice. Rejected: a row for each
//! reader, because it would record who reads what.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::{Condvar, Mutex};
use tampu_log::{Logger, warning};
use tampu_logbook::{
    entry::EntryRef,
    store::{LookCount, Store},
};
use tampu_workers::WorkerThread;

/// Time for which looks come together.
const PERIOD: Duration = Duration::from_secs(5);
/// Readers of entries of a day that are remembered.
const KNOWN: usize = 500_000;
/// Entries whose looks wait; the looks of further ones are not counted until these are written.
const WAITING: usize = 20_000;
const RESTART: Duration = Duration::from_secs(1);

/// The counter of one hub. Dropping it writes what waits.
pub struct LookCounter {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

struct Shared {
    store: Arc<dyn Store>,
    logger: Logger,
    state: Mutex<State>,
    more: Condvar,
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The looks that are not written, by book in lower case, entry and day.
    waiting: HashMap<(String, u32, u32), u64>,
    /// Digests of readers and entries of the day.
    known: HashSet<u64>,
    day: u32,
    hasher: RandomState,
}

impl State {
    /// Counts a look, unless the reader was counted for the entry on this day.
    fn count(&mut self, at: &EntryRef, who: &str, day: u32) {
        if self.day != day || self.known.len() >= KNOWN {
            (self.known, self.day) = (HashSet::new(), day);
        }
        let key = (at.book.to_lowercase(), at.id, day);
        let is_new = self.known.insert(self.hasher.hash_one((&key, who)));
        if is_new && (self.waiting.len() < WAITING || self.waiting.contains_key(&key)) {
            *self.waiting.entry(key).or_default() += 1;
        }
    }

    fn take(&mut self) -> Vec<LookCount> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|((book, id, day), looks)| LookCount { at: EntryRef::new(&book, id), day, looks }).collect()
    }
}

/// Returns the day in UTC, counted from 1970-01-01.
fn today() -> u32 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since_1970.as_secs() / 86_400).unwrap_or(u32::MAX)
}

impl LookCounter {
    /// Starts the worker that writes.
    pub fn start(store: Arc<dyn Store>, logger: Logger) -> io::Result<LookCounter> {
        let shared =
            Arc::new(Shared { store, logger, state: Mutex::default(), more: Condvar::new(), stopping: AtomicBool::new(false) });
        let of_worker = shared.clone();
        let worker = WorkerThread::named("looks").spawn_restarting(RESTART, move || of_worker.run())?;
        Ok(LookCounter { shared, worker: Some(worker) })
    }

    /// Counts a reader's look at an entry.
    pub fn count(&self, at: &EntryRef, who: &str) {
        let mut state = self.shared.state.lock();
        let was_empty = state.waiting.is_empty();
        state.count(at, who, today());
        if was_empty && !state.waiting.is_empty() {
            self.shared.more.notify_one();
        }
    }
}

impl Shared {
    fn run(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            let mut state = self.state.lock();
            while state.waiting.is_empty() && !self.stopping.load(Ordering::Acquire) {
                self.more.wait(&mut state);
            }
            // The stop ends this wait; a further look does not.
            if !self.stopping.load(Ordering::Acquire) {
                self.more.wait_for(&mut state, PERIOD);
            }
            let looks = state.take();
            drop(state);
            if let Err(error) = self.store.add_looks(&looks) {
                warning!(self.logger, "looks at {} entries could not be counted: {error}", looks.len());
            }
        }
    }
}

impl Drop for LookCounter {
    fn drop(&mut self) {
        {
            let _state = self.shared.state.lock();
            self.shared.stopping.store(true, Ordering::Release);
            self.shared.more.notify_all();
        }
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        let looks = self.shared.state.lock().take();
        if !looks.is_empty()
            && let Err(error) = self.shared.store.add_looks(&looks)
        {
            warning!(self.shared.logger, "looks at {} entries could not be counted: {error}", looks.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_counts_once_for_an_entry_and_a_day() {
        let mut state = State::default();
        let (one, two) = (EntryRef::new("Shift", 1), EntryRef::new("Shift", 2));
        for (at, who, day) in [
            (&one, "zoe", 5),
            (&one, "zoe", 5),
            (&EntryRef::new("SHIFT", 1), "zoe", 5),
            (&one, "max", 5),
            (&two, "zoe", 5),
            (&one, "zoe", 6),
        ] {
            state.count(at, who, day);
        }
        let mut looks: Vec<_> = state.take().into_iter().map(|one| (one.at.id, one.day, one.looks)).collect();
        looks.sort_unstable();
        assert_eq!(looks, [(1, 5, 2), (1, 6, 1), (2, 5, 1)]);
        state.count(&one, "zoe", 6);
        assert!(state.take().is_empty(), "written looks are remembered");
    }
}
