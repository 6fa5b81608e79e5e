//! Bandwidth of the host's memory.

use std::time::{Duration, Instant};

/// Size of the buffer in bytes, more than any cache holds.
const BUFFER: usize = 64 << 20;
const TIME: Duration = Duration::from_millis(600);

/// Returns the speed at which all processors together read memory outside the caches, in bytes a second.
pub fn bandwidth() -> f64 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let read = || {
        let words: Vec<u64> = (0..BUFFER as u64 / 8).collect();
        let begun = Instant::now();
        let (mut bytes, mut sum) = (0usize, 0u64);
        while begun.elapsed() < TIME {
            sum = sum.wrapping_add(words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
            bytes += BUFFER;
        }
        std::hint::black_box(sum);
        bytes as f64 / begun.elapsed().as_secs_f64()
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|_| scope.spawn(read)).collect();
        all.into_iter().filter_map(|worker| worker.join().ok()).sum()
    })
}
