//! Return of freed memory to the operating system after large searches and compactions.
//!
//! glibc keeps freed memory for the next allocation, in an arena of each thread. After a search of a million records a
//! hub kept several hundred MB for ever. The keeper therefore calls `malloc_trim` after quiet looks. The first call
//! comes some looks after the last large piece of work, when its buffers are free. A second call comes later, when its
//! answer has been sent. Under load the keeper does not call it, because it holds the locks of all arenas.
//!
//! Rejected: fewer arenas (`M_ARENA_MAX`), which makes threads of a whole process wait for each other. Rejected:
//! another allocator, because a library cannot choose one for a program.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of looks of the keeper, about a second each, before memory is returned for the second time.
const LOOKS: u32 = 10;
/// Number of looks without another large piece of work before memory is returned for the first time.
const QUIET: u32 = 3;
/// Number of records or rows from which a search counts as large.
const LARGE: u64 = 20_000;

/// Number of looks until all memory of the last large piece of work has been returned.
#[derive(Debug, Default)]
pub(crate) struct FreedMemory(AtomicU32);

impl FreedMemory {
    /// Notes a piece of work that has used much memory.
    pub(crate) fn note(&self) {
        self.0.store(LOOKS, Ordering::Relaxed);
    }

    /// Notes a search that has examined so many records or rows, if it was large.
    pub(crate) fn note_search(&self, looked_at: u64) {
        if looked_at >= LARGE {
            self.note();
        }
    }

    /// Returns memory to the operating system if it is due. Called about once a second while there is no other work.
    pub(crate) fn look(&self) {
        let left = self.0.load(Ordering::Relaxed);
        if left == 0 {
            return;
        }
        // If work was noted in the meantime, the count starts again.
        let _ = self.0.compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed);
        if is_due(left) {
            give_back();
        }
    }
}

/// Returns whether memory is due for return when so many looks are left.
fn is_due(left: u32) -> bool {
    left == LOOKS - QUIET || left == 1
}

#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: the function takes a number, locks what it needs, and invalidates no allocation.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_twice_and_only_after_quiet_looks() {
        let freed = FreedMemory::default();
        let due = || is_due(freed.0.load(Ordering::Relaxed));
        for _ in 0..20 {
            freed.note();
            assert!(!due());
            freed.look();
            assert!(!due(), "a search every second");
        }
        let mut given_back = 0;
        for _ in 0..2 * LOOKS {
            given_back += u32::from(due());
            freed.look();
        }
        assert_eq!(given_back, 2);
        freed.note_search(LARGE - 1);
        assert_eq!(freed.0.load(Ordering::Relaxed), 0);
    }
}
