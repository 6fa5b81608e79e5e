//! Memory of received batches that is used again.
//!
//! A batch of a fast stream is larger than what the allocator keeps, so every copy would get fresh memory from the
//! kernel, page by page, each cleared and mapped: a tenth of a reader's work at full speed. Small batches come from the
//! allocator as ever.

use bytes::Bytes;
use parking_lot::Mutex;

/// Length from which memory is used again, in bytes.
const FROM: usize = 16 << 10;
/// Most bytes that a process keeps for the next batches.
const KEPT: usize = 1 << 20;

/// Memory that waits for the next batch.
struct Pool {
    free: Mutex<Vec<Vec<u8>>>,
}

static POOL: Pool = Pool { free: Mutex::new(Vec::new()) };

/// A batch whose memory goes back when nobody reads it any more.
struct Reused(Vec<u8>);

impl AsRef<[u8]> for Reused {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Reused {
    fn drop(&mut self) {
        POOL.give(std::mem::take(&mut self.0));
    }
}

impl Pool {
    /// Returns empty memory for this many bytes: the newest that is large enough and not much too large.
    fn take(&self, length: usize) -> Vec<u8> {
        let mut free = self.free.lock();
        let fits = |memory: &Vec<u8>| (length..=4 * length).contains(&memory.capacity());
        let found = free.iter().rposition(fits).map(|at| free.swap_remove(at));
        drop(free);
        found.unwrap_or_else(|| Vec::with_capacity(length.next_power_of_two()))
    }

    fn give(&self, mut memory: Vec<u8>) {
        memory.clear();
        let mut free = self.free.lock();
        let kept: usize = free.iter().map(Vec::capacity).sum();
        if kept + memory.capacity() <= KEPT {
            free.push(memory);
        }
    }
}

/// Copies a batch.
pub(super) fn copy(batch: &[u8]) -> Bytes {
    if batch.len() < FROM {
        return Bytes::copy_from_slice(batch);
    }
    let mut memory = POOL.take(batch.len());
    memory.extend_from_slice(batch);
    Bytes::from_owner(Reused(memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_with_the_last_reader_and_is_bounded() {
        let pool = Pool { free: Mutex::default() };
        for _ in 0..100 {
            pool.give(Vec::with_capacity(64 << 10));
        }
        assert_eq!(pool.free.lock().len(), KEPT / (64 << 10));
        assert_eq!(pool.take(60_000).capacity(), 64 << 10);
        assert_eq!(pool.free.lock().len(), KEPT / (64 << 10) - 1);
        assert!(pool.take(FROM - 1000).capacity() <= FROM, "64 KiB would be wasted on these");
    }

    #[test]
    fn a_batch_stays_whole_while_others_come_and_go() {
        let first = copy(&[1; 100_000]);
        let part = first.slice(50_000..);
        drop(first);
        for byte in 2..50 {
            let other = copy(&vec![byte; 100_000]);
            assert!(other.len() == 100_000 && other.iter().all(|&there| there == byte));
        }
        assert!(part.len() == 50_000 && part.iter().all(|&byte| byte == 1));
    }
}
