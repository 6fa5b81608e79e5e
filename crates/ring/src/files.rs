//! The files of one incarnation of a process: its directory and everything in it but the code that writes and reads
//! rings.
//!
//! The layout is in `spec/log-ring.md`.

pub(crate) mod dictionary;
pub(crate) mod directory;
pub(crate) mod lock;
pub(crate) mod long;
pub(crate) mod names;
pub(crate) mod overflow;
pub(crate) mod ring_file;
pub(crate) mod source;
