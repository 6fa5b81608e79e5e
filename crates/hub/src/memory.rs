//! Gives freed memory back to the system after large work.
//!
//! A large question or an import frees its memory in many arenas of the allocator, which keep it. Other programs of the
//! host then have less. So a worker looks at the hub's memory from time to time. When it has grown much since the last
//! return, and grows no more, the worker asks the allocator to return the free part. Rejected: another allocator, because it
//! would also serve the hot path of the log, and this needs no dependency.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_workers::WorkerThread;

/// Period of the looks at the memory.
const LOOK: Duration = Duration::from_secs(10);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(10);
/// Growth in bytes since the last return that is worth another one.
const GROWTH: u64 = 32 << 20;

/// Decides when memory is returned.
#[derive(Debug, Default)]
struct ReturnPolicy {
    /// The least memory since the last return; none before the first look.
    least: Option<u64>,
    last: u64,
}

impl ReturnPolicy {
    /// Returns true if memory is to be returned, at a look that found this number of bytes.
    fn is_due(&mut self, bytes: u64) -> bool {
        let least = *self.least.get_or_insert(bytes);
        // Work that still goes on needs what it frees.
        let grows = bytes > self.last.saturating_add(GROWTH / 8);
        self.last = bytes;
        self.least = Some(least.min(bytes));
        !grows && bytes > least.saturating_add(GROWTH)
    }

    /// Notes the memory after a return. What is still in use is no growth.
    fn returned(&mut self, bytes: u64) {
        (self.least, self.last) = (Some(bytes), bytes);
    }
}

/// A worker that returns memory until it is dropped.
#[derive(Debug)]
pub struct MemoryReturn {
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl MemoryReturn {
    /// Starts the worker.
    pub fn start() -> io::Result<MemoryReturn> {
        let stopping = Arc::new(AtomicBool::new(false));
        let stops = stopping.clone();
        let mut policy = ReturnPolicy::default();
        let worker = WorkerThread::named("memory").spawn_restarting(RESTART, move || {
            while !stops.load(Ordering::Acquire) {
                if resident().is_some_and(|bytes| policy.is_due(bytes)) {
                    trim::return_free();
                    if let Some(bytes) = resident() {
                        policy.returned(bytes);
                    }
                }
                std::thread::park_timeout(LOOK);
            }
        })?;
        Ok(MemoryReturn { stopping, worker: Some(worker) })
    }
}

impl Drop for MemoryReturn {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

/// Returns the bytes of this process that are private and in memory. Mapped files are not counted: the system takes them
/// back by itself.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The call into the C library.
mod trim {
    /// Returns the free memory of all arenas to the system.
    #[cfg(target_env = "gnu")]
    pub fn return_free() {
        // SAFETY: malloc_trim takes a number and no pointers. It locks each arena itself and may be called by any thread.
        unsafe { libc::malloc_trim(0) };
    }

    /// Does nothing: other allocators return memory by themselves.
    #[cfg(not(target_env = "gnu"))]
    pub fn return_free() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_is_returned_after_large_work_and_not_during_it() {
        let mut policy = ReturnPolicy::default();
        let mut looks = |sizes: &[u64]| sizes.iter().map(|size| policy.is_due(size * MIB)).collect::<Vec<_>>();
        assert_eq!(looks(&[100, 101, 120, 130]), [false; 4], "small changes");
        assert_eq!(looks(&[200, 300, 300, 299]), [false, false, true, true], "after it has grown, and grows no more");
        policy.returned(110 * MIB);
        assert!(!policy.is_due(111 * MIB) && !policy.is_due(140 * MIB) && policy.is_due(143 * MIB));
        // What is in use for long is returned in vain once.
        policy.returned(142 * MIB);
        assert!(!policy.is_due(142 * MIB) && !policy.is_due(150 * MIB));
        // Memory that went by itself lowers the mark.
        assert!(!policy.is_due(60 * MIB) && !policy.is_due(95 * MIB) && policy.is_due(95 * MIB));
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn free_memory_between_used_memory_is_returned() {
        // Blocks below the size that the allocator maps apart, of which every tenth stays.
        let blocks: Vec<Vec<u8>> = (0..4096).map(|_| vec![1; 64 << 10]).collect();
        let full = resident().unwrap();
        let kept: Vec<Vec<u8>> =
            blocks.into_iter().enumerate().filter(|(nth, _)| nth % 10 == 0).map(|(_, block)| block).collect();
        trim::return_free();
        let after = resident().unwrap();
        assert!(after + 128 * MIB < full, "{full} bytes, then {after}");
        assert_eq!(kept.len(), 410);
    }
}
