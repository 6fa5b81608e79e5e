//! SIGPIPE in programs of other people.
//!
//! A write to a connection whose other end has gone raises the signal in the writing thread. Rust's own programs ignore it,
//! but it ends a program in C or C++ that does not. Every thread of Tampu therefore blocks it, and its writes return the
//! error only.
//!
//! Decision: the mask of threads. Rejected: `SIG_IGN` for the process, which would change what the writes of the program
//! itself do, for example a filter in a pipeline that is to end with its reader.

use std::{marker::PhantomData, mem::MaybeUninit, ptr};

/// SIGPIPE blocked in this thread until dropped, for a call that writes, or that starts threads of another library:
/// these inherit the mask. A signal that was raised meanwhile is dropped.
#[derive(Debug)]
pub struct SigpipeBlocked {
    /// True if the thread had not blocked it before.
    unblocks: bool,
    /// True if a signal was pending before, which is not ours to drop.
    pending: bool,
    /// The mask belongs to this thread.
    _of_thread: PhantomData<*const ()>,
}

impl SigpipeBlocked {
    /// Blocks the signal in this thread.
    pub fn new() -> SigpipeBlocked {
        let pending = is_pending();
        SigpipeBlocked { unblocks: !block(), pending, _of_thread: PhantomData }
    }
}

impl Default for SigpipeBlocked {
    fn default() -> SigpipeBlocked {
        SigpipeBlocked::new()
    }
}

impl Drop for SigpipeBlocked {
    fn drop(&mut self) {
        if !self.unblocks {
            return;
        }
        let set = only();
        if !self.pending && is_pending() {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: both pointers are to values that outlive the call, and a null pointer for the description is allowed.
            unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const at_once) };
        }
        // SAFETY: the set is initialised, and a null pointer for the former mask is allowed.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()) };
    }
}

/// Blocks the signal in this thread for good. Returns true if it was blocked before.
pub(crate) fn block() -> bool {
    let (set, mut before) = (only(), MaybeUninit::uninit());
    // SAFETY: the set is initialised, and `before` is memory for another one.
    let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
    // SAFETY: a call that has not failed has filled `before`.
    failed == 0 && unsafe { libc::sigismember(before.as_ptr(), libc::SIGPIPE) } == 1
}

fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: `pending` is memory for a set. A call that has not failed has filled it.
    unsafe { libc::sigpending(pending.as_mut_ptr()) == 0 && libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1 }
}

/// The set of this signal.
fn only() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set; the number of the signal is valid.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixStream, thread, time::Duration};

    use super::*;
    use crate::{OnPanic, WorkerThread};

    /// Returns true if this thread blocks the signal.
    fn is_blocked() -> bool {
        let mut mask = MaybeUninit::uninit();
        // SAFETY: without a set nothing changes, and `mask` is memory for the present one.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr());
            libc::sigismember(mask.as_ptr(), libc::SIGPIPE) == 1
        }
    }

    /// Raises the signal in this thread, as a write to a closed connection does.
    fn raise() {
        // SAFETY: the number of the signal is valid.
        assert_eq!(unsafe { libc::raise(libc::SIGPIPE) }, 0);
    }

    #[test]
    fn every_worker_blocks_the_signal() {
        let worker = WorkerThread::named("piped").spawn(OnPanic::ReportOnly, is_blocked).unwrap();
        assert!(worker.join().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        let restarting = WorkerThread::named("piped").spawn_restarting(Duration::ZERO, move || tell.send(is_blocked()).unwrap());
        restarting.unwrap().join().unwrap();
        assert!(told.recv().unwrap());
        thread::scope(|scope| {
            let worker = WorkerThread::named("piped").spawn_scoped(scope, OnPanic::ReportOnly, is_blocked).unwrap();
            assert!(worker.join().unwrap());
        });
    }

    #[test]
    fn a_call_blocks_it_for_itself_and_the_threads_it_starts() {
        thread::spawn(|| {
            assert!(!is_blocked());
            let outer = SigpipeBlocked::new();
            assert!(thread::spawn(is_blocked).join().unwrap(), "threads inherit it");
            drop(SigpipeBlocked::new());
            assert!(is_blocked(), "the inner one leaves it as it was");
            raise();
            assert!(is_pending());
            drop(outer);
            assert!(!is_blocked() && !is_pending(), "a signal of our own writes is dropped");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_signal_that_was_pending_before_remains() {
        thread::spawn(|| {
            block();
            raise();
            drop(SigpipeBlocked::new());
            assert!(is_pending() && is_blocked());
            let (one, other) = UnixStream::pair().unwrap();
            drop(other);
            assert!(std::io::Write::write_vectored(&mut &one, &[std::io::IoSlice::new(b"x")]).is_err());
        })
        .join()
        .unwrap();
    }
}
