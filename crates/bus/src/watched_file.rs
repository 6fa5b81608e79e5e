//! Files in the run-time directory by which a node passes values to the other processes of its host.
//!
//! The node replaces a file in one step, and each process looks at the file from time to time. A look costs one call of
//! the system as long as the file is the same.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};

use crate::run_dir::private_file;

/// Writes a value as JSON into a file of this name, for the processes of this host.
pub(crate) fn publish(directory: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    let fresh = directory.join(format!("{name}.{}", std::process::id()));
    let text = serde_json::to_vec(value).map_err(io::Error::other)?;
    private_file(&fresh)?.write_all(&text)?;
    fs::rename(&fresh, directory.join(name))
}

/// State of a file, by which a change is noticed.
type Stamp = (Option<SystemTime>, u64, u64);

/// Value of a process without the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The default, as if there never was a file.
    Default,
    /// The last one, if there was one.
    Last,
}

/// A value in a file that another process may replace.
pub(crate) struct WatchedFile<T> {
    path: PathBuf,
    missing: Missing,
    read: Mutex<(Option<Stamp>, Arc<T>)>,
}

impl<T: DeserializeOwned + Default> WatchedFile<T> {
    /// Watches the file of this name.
    pub fn new(directory: &Path, name: &str, missing: Missing) -> WatchedFile<T> {
        WatchedFile { path: directory.join(name), missing, read: Mutex::default() }
    }

    /// Returns the value in the file. It is the same [`Arc`] as long as the file is.
    pub fn current(&self) -> Arc<T> {
        let stamp = fs::metadata(&self.path).ok().map(|found| (found.modified().ok(), found.len(), found.ino()));
        let mut read = self.read.lock();
        if read.0 != stamp {
            read.0 = stamp;
            // The node replaces the file in one step, so an unreadable one is of another release.
            match stamp.and_then(|_| serde_json::from_slice(&fs::read(&self.path).ok()?).ok()) {
                Some(found) => read.1 = Arc::new(found),
                None if self.missing == Missing::Default => read.1 = Arc::default(),
                None => {}
            }
        }
        read.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_read_once_and_a_missing_one_gives_the_default_or_the_last_value() {
        let dir = tempfile::tempdir().unwrap();
        let of = |missing| WatchedFile::<Vec<u32>>::new(dir.path(), "v.json", missing);
        let (default, last) = (of(Missing::Default), of(Missing::Last));
        assert_eq!((default.current().len(), last.current().len()), (0, 0));
        publish(dir.path(), "v.json", &[1, 2]).unwrap();
        let first = last.current();
        assert_eq!((*first == [1, 2], default.current().len()), (true, 2));
        assert!(Arc::ptr_eq(&first, &last.current()), "the same file");
        publish(dir.path(), "v.json", &[3]).unwrap();
        assert_eq!(*last.current(), [3]);
        fs::remove_file(dir.path().join("v.json")).unwrap();
        assert_eq!((default.current().len(), last.current().len()), (0, 1));
        fs::write(dir.path().join("v.json"), "{").unwrap();
        assert_eq!((default.current().len(), last.current().len()), (0, 1), "of another release");
    }
}
