//! The bell that wakes a loop of asyncio: a descriptor that becomes readable.

use std::{
    io::{Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    time::Duration,
};

/// Longest wait before signals such as Ctrl-C are looked at.
pub const SIGNALS: Duration = Duration::from_millis(100);

/// Bell between a thread of the crates and a loop of Python.
pub struct Bell {
    ring: UnixStream,
    heard: UnixStream,
}

impl Bell {
    /// Makes a silent bell.
    pub fn new() -> std::io::Result<Bell> {
        let (ring, heard) = UnixStream::pair()?;
        ring.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok(Bell { ring, heard })
    }

    /// Makes the descriptor readable.
    pub fn ring(&self) {
        // A full socket rings already.
        let _ = (&self.ring).write(&[1]);
    }

    /// Ends the ringing.
    pub fn silence(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.heard).read(&mut bytes), Ok(1..)) {}
    }

    /// Returns the descriptor that becomes readable when the bell rings.
    pub fn descriptor(&self) -> i32 {
        self.heard.as_raw_fd()
    }
}
