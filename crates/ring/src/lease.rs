//! Locks that end with their holder: the *life* of a process, held on `source`, and the *lease* of a drainer, held on `lease`.
//!
//! Decision: `flock`, which the kernel drops with the last descriptor, however the process ends. Rejected: a process number and
//! a heartbeat in the ring with compare-exchange, because a stopped or merely slow holder looks dead and two would drain at
//! once; POSIX record locks, because any other `close` of the same file in the process drops them.
//!
//! A child inherits descriptors and with them the lock. Children that run another program lose them at once (close-on-exec);
//! children that do not close them in the hook of `fork.rs`. A child made without that hook makes a dead process look alive
//! until the child ends: recovery comes later, never wrongly.

use std::{fs::File, io, mem::ManuallyDrop, os::fd::AsRawFd};

use rustix::{fs::FlockOperation, io::Errno};

use crate::fork::{self, Generation};

/// A lock that lasts as long as this value and its process.
#[derive(Debug)]
pub(crate) struct Held {
    file: ManuallyDrop<File>,
    generation: Generation,
}

impl Held {
    /// Takes the lock at once or says that somebody else has it (`None`).
    pub fn take(file: File) -> io::Result<Option<Held>> {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(why) => return Err(why.into()),
        }
        fork::close_in_children(file.as_raw_fd())?;
        Ok(Some(Held { file: ManuallyDrop::new(file), generation: Generation::now() }))
    }

    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Whether nobody holds a lock of this file.
pub(crate) fn is_free(file: &File) -> bool {
    // Let go of with the file, at once.
    rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_ok()
}

impl Drop for Held {
    fn drop(&mut self) {
        // In a child the descriptor was closed when it was made, and its number may be somebody else's by now.
        if self.generation.is_now() {
            fork::forget(self.file.as_raw_fd());
            // SAFETY: not used after this; this is the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}
