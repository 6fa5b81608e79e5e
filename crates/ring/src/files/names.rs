//! Names of the files of one incarnation, and removing them.

use crate::files::directory::{FileError, RingDirectory};

pub(crate) const SOURCE: &str = "source";
pub(crate) const LEASE: &str = "lease";
pub(crate) const CLOCK: &str = "clock";
pub(crate) const DICTIONARY: &str = "dictionary";
/// An empty file that a process leaves at its orderly end if others drain its rings.
pub(crate) const ENDED: &str = "ended";

/// The name of a ring's file.
pub(crate) fn ring_name(number: u32) -> String {
    format!("ring-{number}")
}

/// The number in a ring file's name.
pub(crate) fn ring_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("ring-")?;
    digits.parse().ok().filter(|number| ring_name(*number) == name)
}

/// Removes the files of an incarnation, its `source` last, and the directory. Files that cannot be removed are found
/// and removed later.
pub(crate) fn remove_all(place: &RingDirectory) -> Vec<FileError> {
    let mut names = match place.names() {
        Ok(names) => names,
        Err(error) => return vec![error],
    };
    names.sort_by_key(|name| name == SOURCE);
    let mut failed: Vec<_> = names.iter().filter_map(|name| place.remove_file(name).err()).collect();
    failed.extend(place.remove().err());
    failed
}
