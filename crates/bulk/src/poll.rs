//! Waiting for sockets: the only place that calls `poll(2)`.
//!
//! Of libc and not of rustix, whose module for it would be a feature that everything below the engine is built with again.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

/// What to wait for at a socket.
pub(crate) struct Wanted<'a> {
    pub socket: BorrowedFd<'a>,
    pub read: bool,
    pub write: bool,
}

/// Waits until one of them is ready, at most this long. Says which are, in order; an error of a socket is readiness, because the
/// next call to it tells.
pub(crate) fn wait(wanted: &[Wanted<'_>], timeout: Duration) -> Vec<bool> {
    let events = |one: &Wanted<'_>| (if one.read { libc::POLLIN } else { 0 }) | (if one.write { libc::POLLOUT } else { 0 });
    let mut polled: Vec<libc::pollfd> =
        wanted.iter().map(|one| libc::pollfd { fd: one.socket.as_raw_fd(), events: events(one), revents: 0 }).collect();
    // Rounded up, so that a short wait does not become a loop without any.
    let milliseconds = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
    // SAFETY: the pointer and the count are those of one vector, which lives beyond the call; the kernel writes `revents` of these
    // entries alone. The descriptors are open: they are borrowed.
    let found = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    polled.iter().map(|one| found > 0 && one.revents != 0).collect()
}

/// Whether there is something to read, or comes within this time.
pub(crate) fn readable(socket: &impl AsFd, timeout: Duration) -> bool {
    wait(&[Wanted { socket: socket.as_fd(), read: true, write: false }], timeout)[0]
}
