//! The state of a file, by which a change is noticed.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::SystemTime};

/// Time of the last change, length and number of a file.
pub(crate) type Stamp = (Option<SystemTime>, u64, u64);

/// Returns the state of a file; `None` if it cannot be found.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|found| (found.modified().ok(), found.len(), found.ino()))
}
