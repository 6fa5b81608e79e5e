//! Settings of the rings of a process.

use std::path::PathBuf;

use crate::files::source::Source;

/// Settings of the rings of a process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `<run>/<domain>/rings`; `None` keeps the rings in memory that ends with the process.
    pub directory: Option<PathBuf>,
    /// Identity of the process that logs.
    pub source: Source,
    /// Bytes of each ring; a power of two is made of it.
    pub ring_bytes: usize,
    /// Threads that have a ring of their own at one time; further ones share one.
    pub max_rings: usize,
}

impl Settings {
    /// The usual sizes: 1 MiB for each of at most 256 threads.
    pub fn new(directory: Option<PathBuf>, source: Source) -> Settings {
        Settings { directory, source, ring_bytes: 1 << 20, max_rings: 256 }
    }
}
