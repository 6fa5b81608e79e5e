//! Sleeping until another thread or process changes a 32-bit word of shared memory.
//!
//! Decision: failures are not reported. A waiter reads its data again after every end of the wait: a wake-up, a signal,
//! the timeout, or a kernel that refuses. A failed wake-up leaves the waiter to its timeout. So each wait needs a
//! timeout.

use std::{sync::atomic::AtomicU32, time::Duration};

use rustix::{
    io::Errno,
    thread::{ClockId, futex},
    time::clock_gettime,
};

/// Sleeps while `word` is `expected`, at most `timeout`. Returns early after a wake-up or a signal.
#[inline]
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = futex::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&timeout));
}

/// Sleeps while each of the words has the value beside it, at most `timeout`. Returns early after a wake-up or a signal.
/// Returns false, at once, where the kernel cannot wait for several words: before Linux 5.16, or under a filter of
/// system calls that does not know the call.
pub fn futex_wait_any(words: &[(&AtomicU32, u32)], timeout: Duration) -> bool {
    let wait = |&(word, expected): &(&AtomicU32, u32)| {
        let mut wait = futex::Wait::new();
        wait.val = expected.into();
        wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
        wait.flags = futex::WaitFlags::SIZE_U32;
        wait
    };
    let waits: Vec<futex::Wait> = words.iter().map(wait).collect();
    // This call wants the time at which it ends, not how long it takes.
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    let nanos = now.tv_nsec + i64::from(timeout.subsec_nanos());
    let seconds = now.tv_sec.saturating_add(i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX / 2));
    let until = futex::Timespec { tv_sec: seconds.saturating_add(nanos / NANOS), tv_nsec: nanos % NANOS };
    let ended = futex::waitv(&waits, futex::WaitvFlags::empty(), Some(&until), ClockId::Monotonic);
    !matches!(ended, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
}

/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;

/// Wakes at most `waiters` of the threads that sleep on `word`, in all processes.
#[inline]
pub fn futex_wake(word: &AtomicU32, waiters: u32) {
    let _ = futex::wake(word, futex::Flags::empty(), waiters);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_waiter_for_several_words_wakes_for_each_of_them() {
        let words = [AtomicU32::new(7), AtomicU32::new(7)];
        let both = || [(&words[0], 7), (&words[1], 7)];
        if !futex_wait_any(&both(), Duration::from_millis(1)) {
            eprintln!("this kernel cannot wait for several words");
            return;
        }
        assert!(futex_wait_any(&[(&words[0], 7), (&words[1], 6)], Duration::from_secs(3600)), "one has changed before");
        for word in &words {
            word.store(7, Ordering::SeqCst);
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    while words.iter().all(|word| word.load(Ordering::SeqCst) == 7) {
                        futex_wait_any(&both(), Duration::from_secs(3600));
                    }
                });
                word.store(8, Ordering::SeqCst);
                while !waiter.is_finished() {
                    futex_wake(word, i32::MAX as u32);
                    std::thread::yield_now();
                }
            });
            word.store(7, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_waiter_wakes_when_the_word_changes_and_not_before_it_sleeps() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0, Duration::from_secs(3600));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                while word.load(Ordering::SeqCst) == 1 {
                    futex_wait(&word, 1, Duration::from_secs(3600));
                }
            });
            word.store(2, Ordering::SeqCst);
            while !waiter.is_finished() {
                futex_wake(&word, i32::MAX as u32);
                std::thread::yield_now();
            }
        });
    }
}
