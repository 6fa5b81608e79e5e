//! The file format of the ELN consortium: a ZIP archive with one folder, which is an RO-Crate 1.1.
//!
//! ```text
//! shift/ro-crate-metadata.json           all entries, persons and files as one graph
//! shift/Shift/12/tampu-entry.json        the entry as this logbook keeps it
//! shift/Shift/12/plot.png                a file of the entry
//! ```
//! Another program reads title, author, dates, HTML, tags, attributes and files of an entry in the graph. This logbook
//! reads its own archives from `tampu-entry.json`, so markup, links and lists of values come back as they were.
//! Rejected: the source of Markdown or ELCode as `text`, because other programs show it as HTML.

pub mod archive;
pub mod metadata;
pub mod read;
pub mod write;

pub use archive::{ElnArchive, is_zip};
pub use read::Eln;
pub use write::export_eln;

/// The file that describes an archive.
pub const METADATA: &str = "ro-crate-metadata.json";
/// The file of an entry as this logbook keeps it.
pub const ENTRY: &str = "tampu-entry.json";
