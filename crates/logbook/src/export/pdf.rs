//! Entries as PDF, with the layout of a site, and without a browser.
//!
//! ```text
//! entries -> collect -> document (plain data) -> layout of the site -> PDF
//!               |           '- blocks: made from the cleaned HTML of a text
//!               '- pictures, checked and reduced
//! ```
//! | subject | module |
//! |-|-|
//! | the data of a PDF | [`document`] |
//! | blocks of a text | [`blocks`] |
//! | entries, threads and searches as a document | [`collect`] |
//! | fonts, the layout, the typesetter | [`typeset`] |
//!
//! The typesetter is Typst, which the feature `pdf` builds. Without the feature, [`BUILT_IN`] is false, and
//! [`typeset::Typesetter::pdf`] returns [`PdfError::NotBuilt`].
//!
//! Texts reach the typesetter as JSON strings and never as its source. Its files are in memory: the built-in source, the
//! files that the site names, the document and its pictures. There are no packages and no network. A running typesetter
//! cannot be stopped, so the document is bounded before: entries, text, lines, cells and pictures. A document that is too
//! large is refused and never cut. Rejected: a browser that prints, because it is a large program with its own updates.

use std::path::PathBuf;

use super::PageError;
use crate::{render::Unfinished, store::StoreError};

pub mod blocks;
pub mod collect;
pub mod document;
#[cfg_attr(not(feature = "pdf"), path = "pdf/typeset_none.rs")]
pub mod typeset;

/// True if this program can make PDF.
pub const BUILT_IN: bool = cfg!(feature = "pdf");
/// The media type of a PDF.
pub const CONTENT_TYPE: &str = "application/pdf";

/// Entries of a PDF.
pub const MAX_ENTRIES: usize = 1000;
/// Bytes of the texts of a PDF.
pub const MAX_TEXT: usize = 1 << 20;
/// Lines, paragraphs and other blocks of a PDF.
pub const MAX_LINES: usize = 50_000;
/// Cells of the tables of a PDF. Tables with more are shown as lines.
pub const MAX_CELLS: usize = 4000;
/// Pictures that a PDF shows. Further ones are listed as files.
pub const MAX_PICTURES: usize = 100;
/// Bytes of the pictures of a PDF. Further pictures are listed as files.
pub const MAX_PICTURE_BYTES: usize = 32 << 20;

/// The reason for a missing PDF.
#[derive(Debug, thiserror::Error)]
pub enum PdfError {
    /// The program has no typesetter.
    #[error("this program was built without PDF; build it with the feature 'pdf'")]
    NotBuilt,
    /// The document is too large.
    #[error("a PDF holds at most {most} {what}, and these entries have more")]
    TooLarge {
        /// The things that are counted.
        what: &'static str,
        most: usize,
    },
    /// The layout of the site has an error.
    #[error("{}{}: {message}", .path.display(), .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Layout {
        path: PathBuf,
        /// The line of the error, from 1.
        line: Option<usize>,
        message: String,
    },
    /// A file that the settings name cannot be used.
    #[error("{}: {why}", .path.display())]
    File { path: PathBuf, why: String },
    /// The typesetter failed.
    #[error("no PDF was made: {0}")]
    Failed(String),
    /// A page of entries was not read to its end.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The time was over, or the caller left.
    #[error("the time was over before the PDF was made")]
    Unfinished,
}

impl From<Unfinished> for PdfError {
    fn from(_: Unfinished) -> PdfError {
        PdfError::Unfinished
    }
}
