//! Numbers about a store, for its operators.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Time for which measured sizes count: measuring reads a part of the index.
const FRESH: Duration = Duration::from_secs(30);

/// Numbers about a store.
pub trait Reports {
    /// Returns the current numbers. Sizes may be some seconds old; they are missing while the database cannot be read.
    fn report(&self) -> StoreReport;
}

/// Numbers about a store at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// The connections, by their use.
    pub connections: Vec<ConnectionReport>,
    /// Transactions that changed something, since the store was opened.
    pub committed: u64,
    /// Transactions that failed and changed nothing.
    pub failed: u64,
    /// Pages and numbers of entries of searches that were remembered.
    pub remembered: u64,
    /// The sizes on disk.
    pub sizes: Option<StoreSizes>,
}

/// Connections of one use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionReport {
    /// The use: `write`, `read` or `search`.
    pub used_to: &'static str,
    /// Number of open connections.
    pub open: usize,
    /// Those of them that work.
    pub busy: usize,
    /// Threads that wait for one.
    pub waiting: usize,
}

/// Sizes on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSizes {
    /// Bytes of the database, without files of entries that are stored beside it.
    pub bytes: u64,
    /// Bytes of the index of words, about.
    pub index_bytes: u64,
    /// Parts of that index, which merges join. A search looks each of them up. `None` if the index has no parts.
    pub index_parts: Option<u64>,
}

/// Counters of transactions, and the sizes that were measured last.
#[derive(Debug, Default)]
pub struct StoreCounts {
    committed: AtomicU64,
    failed: AtomicU64,
    remembered: AtomicU64,
    sizes: Mutex<Option<(Instant, StoreSizes)>>,
}

impl StoreCounts {
    /// Counts a transaction by its outcome.
    pub fn count<T, E>(&self, done: &Result<T, E>) {
        let counter = if done.is_ok() { &self.committed } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a result of a search that was remembered.
    pub fn count_remembered(&self) {
        self.remembered.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the report; `measure` is called if the sizes are too old.
    pub fn report<E>(&self, connections: Vec<ConnectionReport>, measure: impl FnOnce() -> Result<StoreSizes, E>) -> StoreReport {
        let mut last = self.sizes.lock();
        let fresh = last.filter(|(at, _)| at.elapsed() < FRESH);
        *last = fresh.or_else(|| Some((Instant::now(), measure().ok()?)));
        let [committed, failed, remembered] =
            [&self.committed, &self.failed, &self.remembered].map(|counter| counter.load(Ordering::Relaxed));
        StoreReport { connections, committed, failed, remembered, sizes: last.map(|(_, sizes)| sizes) }
    }
}
