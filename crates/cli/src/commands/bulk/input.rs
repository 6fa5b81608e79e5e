//! Standard input as a source of data that may stay away for long.

use std::{
    io::{self, Read, Stdin},
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

/// Standard input without a buffer, which would hide data from [`readable`].
pub struct Input(Stdin);

impl Input {
    /// Returns standard input, of which nothing was read before.
    pub fn new() -> Input {
        Input(io::stdin())
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0.as_fd(), into)?)
    }
}

/// Returns true if a read of standard input returns at once, or within this time.
pub fn readable(timeout: Duration) -> bool {
    let mut polled = libc::pollfd { fd: io::stdin().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the pointer is to one `pollfd`, as the count states, and it outlives the call. Standard input stays open.
    let found = unsafe { libc::poll(&raw mut polled, 1, milliseconds) };
    // An error is a result of the read.
    found > 0
}
