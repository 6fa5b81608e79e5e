//! Sleeping until another thread or process changes a 32-bit word of shared memory.
//!
//! Decision: failures are not reported. A waiter reads its data again after every end of the wait: a wake-up, a signal,
//! the timeout, or a kernel that refuses. A failed wake-up leaves the waiter to its timeout. So each wait needs a
//! timeout.

use std::{sync::atomic::AtomicU32, time::Duration};

use rustix::thread::futex;

/// Sleeps while `word` is `expected`, at most `timeout`. Returns early after a wake-up or a signal.
#[inline]
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = futex::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&timeout));
}

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
