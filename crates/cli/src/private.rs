//! File modes: what a command writes is for its user alone.
//!
//! Records, logbooks and their exports hold what not everybody may read. Man pages are for everybody.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::{fs::Mode, process::umask};

/// Bits of a directory that a hub shares with a group of readers: its group inherits, reads and enters.
const SHARED: u32 = 0o2050;

/// Closes all files that this process makes to other users.
pub fn close() {
    set(0o077);
}

/// Sets the process's umask.
pub fn set(mask: u32) {
    umask(Mode::from_raw_mode(mask));
}

/// Lets a group read what this process makes in a data directory that a hub shares with the group.
pub fn follow(directory: &Path) {
    let there = directory.ancestors().find_map(|path| fs::metadata(path).ok());
    if there.is_some_and(|metadata| metadata.mode() & SHARED == SHARED) {
        set(0o027);
    }
}
