//! Calls to the C library instead of the kernel: the clocks and the page size. The library knows the memory in which
//! the kernel publishes them. This also works under valgrind, which hides that memory from other code and counts this
//! crate's instructions.

use std::mem::MaybeUninit;

/// A clock of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// UTC since 1970.
    Utc,
    /// Since some moment, never set.
    Monotonic,
}

/// ns on this clock.
pub(crate) fn ns(clock: Clock) -> i64 {
    let id = match clock {
        Clock::Utc => libc::CLOCK_REALTIME,
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
    };
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel writes a time to this memory, or nothing; zeros are a valid time.
    let time = unsafe {
        libc::clock_gettime(id, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Bytes of a page of memory.
pub(crate) fn page_size() -> usize {
    // SAFETY: the call only reads a system setting.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
