//! Waits for sockets. Only this module calls `poll(2)`.
//!
//! It uses libc and not rustix: the rustix module for it is a feature with which everything below the engine would be
//! built again.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

/// A socket and the events to wait for.
pub(crate) struct Wanted<'a> {
    pub socket: BorrowedFd<'a>,
    pub read: bool,
    pub write: bool,
}

/// Waits until a socket is ready, at most this long. Returns the readiness of each socket, in order. A socket with an
/// error is ready, because the next call to it returns the error.
pub(crate) fn wait(wanted: &[Wanted<'_>], timeout: Duration) -> Vec<bool> {
    let events = |one: &Wanted<'_>| (if one.read { libc::POLLIN } else { 0 }) | (if one.write { libc::POLLOUT } else { 0 });
    let mut polled: Vec<libc::pollfd> =
        wanted.iter().map(|one| libc::pollfd { fd: one.socket.as_raw_fd(), events: events(one), revents: 0 }).collect();
    // Rounded up, so that a short wait does not become a busy loop.
    let milliseconds = timeout.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
    // SAFETY: the pointer and the count are those of one vector that outlives the call. The kernel writes only `revents` of its
    // entries. The descriptors are borrowed, hence open.
    let found = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    polled.iter().map(|one| found > 0 && one.revents != 0).collect()
}

/// Returns true if bytes can be read, or arrive within this time.
pub(crate) fn readable(socket: &impl AsFd, timeout: Duration) -> bool {
    wait(&[Wanted { socket: socket.as_fd(), read: true, write: false }], timeout)[0]
}
