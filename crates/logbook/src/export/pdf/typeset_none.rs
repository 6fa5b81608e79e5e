//! A program without a typesetter.

use std::path::{Path, PathBuf};

use super::{PdfError, document::PdfDocument};

/// The maker of PDF, which this program does not have.
#[derive(Debug, Default)]
pub struct Typesetter;

/// A finished PDF.
#[derive(Debug)]
pub struct MadePdf {
    pub bytes: Vec<u8>,
    /// The number of pages.
    pub pages: usize,
    /// Remarks for the caller.
    pub notes: Vec<String>,
}

impl Typesetter {
    /// Rejects the settings of a layout, because nothing would obey them.
    pub fn new(_layout: Option<&Path>, _files: &[PathBuf]) -> Result<Typesetter, PdfError> {
        Err(PdfError::NotBuilt)
    }

    /// Returns the error [`PdfError::NotBuilt`].
    pub fn pdf(&self, _document: PdfDocument) -> Result<MadePdf, PdfError> {
        Err(PdfError::NotBuilt)
    }
}

/// Returns the reason why no picture is shown.
pub fn reduced(_picture: Vec<u8>, _number: usize) -> Result<Vec<u8>, String> {
    Err(PdfError::NotBuilt.to_string())
}
