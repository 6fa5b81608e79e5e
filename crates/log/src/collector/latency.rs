//! Times of batches from the bus to the disk: a writer's wait for its acknowledgement, without the transport there and
//! back.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The buckets' upper ends, in microseconds; beyond the last is one more bucket.
pub const BOUNDS_US: [u64; 11] = [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000, 30_000_000];

/// Counted since the collector started.
#[derive(Debug, Default)]
pub(super) struct Latency {
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// The times at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Durable {
    /// Batches by how long they took: up to each of [`BOUNDS_US`], and longer.
    pub counts: Vec<u64>,
    /// The sum of all, in microseconds.
    pub sum_us: u64,
}

impl Latency {
    pub(super) fn add(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.iter().position(|bound| took <= *bound).unwrap_or(BOUNDS_US.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Durable {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Durable { counts, sum_us: self.sum_us.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_is_in_the_bucket_whose_bound_it_keeps() {
        let latency = Latency::default();
        for micros in [0, 1000, 1001, 30_000_000, 30_000_001] {
            latency.add(Duration::from_micros(micros));
        }
        let durable = latency.read();
        assert_eq!((durable.counts[0], durable.counts[1], durable.counts[10], durable.counts[11]), (2, 1, 1, 1));
        assert_eq!(durable.sum_us, 60_002_002);
    }
}
