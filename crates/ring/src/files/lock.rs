//! Locks that end with their holder: the *life* of a process, held on `source`, and the *lease* of a drainer, held on
//! `lease`.
//!
//! Decision: `flock`, which the kernel drops with the last descriptor, however the process ends. Rejected: a process
//! number and a heartbeat in the ring with compare-exchange. A stopped or merely slow holder looks dead, and two would
//! drain at once. Rejected: POSIX record locks, because any other `close` of the same file in the process drops them.
//!
//! The virtual machine of Java has no `flock`: a Java process holds a record lock on `source` instead, and opens that
//! file once. So both kinds of lock show a life. The kernel shows them to processes of other pid namespaces too.
//!
//! A child inherits descriptors and with them the lock. Children that run another program lose them at once
//! (close-on-exec); other children close them in the hook of `fork.rs`. A child made without that hook makes a dead
//! process look alive until the child ends. Recovery then comes later, but is never wrong.

use std::fs;
use std::path::Path;
use std::{fs::File, io, mem::ManuallyDrop, os::fd::AsRawFd};

use rustix::{
    fs::FlockOperation,
    io::Errno,
    process::{Flock, FlockType, fcntl_getlk},
};

use crate::{
    files::{
        directory::{FileError, RingDirectory},
        names::LEASE,
    },
    writer::fork::{self, Generation},
};

/// A lock that lasts as long as this value and its process.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: ManuallyDrop<File>,
    generation: Generation,
}

impl LockedFile {
    /// Takes the lock at once, or returns `None` if another process has it.
    pub fn take(file: File) -> io::Result<Option<LockedFile>> {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(why) => return Err(why.into()),
        }
        fork::close_in_children(file.as_raw_fd())?;
        Ok(Some(LockedFile { file: ManuallyDrop::new(file), generation: Generation::now() }))
    }

    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Returns true if no process holds a lock of this file.
pub(crate) fn is_free(file: &File) -> bool {
    // Closing the file releases the lock at once.
    rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_ok() && !has_record_lock(file)
}

/// Returns true if another process holds a POSIX record lock of this file.
pub(crate) fn has_record_lock(file: &File) -> bool {
    // The default covers the whole file.
    fcntl_getlk(file, &Flock::from(FlockType::WriteLock)).is_ok_and(|holder| holder.is_some())
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // In a child the descriptor was closed at the fork, and its number may belong to another file.
        if self.generation.is_now() {
            fork::forget(self.file.as_raw_fd());
            // SAFETY: not used after this; this is the drop of its owner.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// Reason for which the rings cannot be drained at this moment.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Another drainer holds the lease.
    #[error("another process drains these rings")]
    Taken,
    /// A file cannot be used.
    #[error(transparent)]
    Place(#[from] FileError),
    /// Invalid content of a file.
    #[error("{0}: {1}")]
    File(std::path::PathBuf, String),
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

pub(crate) fn take_lease(place: &RingDirectory) -> Result<LockedFile, Busy> {
    let (file, _) = place.open_file(LEASE, 0)?;
    LockedFile::take(file)?.ok_or(Busy::Taken)
}

/// Returns true if a living process has files of this directory mapped.
pub(crate) fn has_mapped(pid: u32, directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let needle = format!("/{name}/ring-");
    fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.windows(needle.len()).any(|found| found == needle.as_bytes()))
}
