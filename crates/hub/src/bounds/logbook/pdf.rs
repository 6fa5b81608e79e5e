//! Bounds of a PDF.

use crate::bounds::bound::{Bound, Limit::Constant, bound};

pub(super) const BOUNDS: &[Bound] = &[
    bound("entries of a PDF", Constant("logbook/src/export/pdf.rs", "MAX_ENTRIES", "1000", "1000"), "a PDF of more is refused"),
    bound("bytes of the texts of a PDF", Constant("logbook/src/export/pdf.rs", "MAX_TEXT", "1 << 20", "1 MiB"), "the same"),
    bound("lines and paragraphs of a PDF", Constant("logbook/src/export/pdf.rs", "MAX_LINES", "50_000", "50 000"), "the same"),
    bound(
        "cells of the tables of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_CELLS", "4000", "4000"),
        "further tables are shown as lines",
    ),
    bound(
        "pictures of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_PICTURES", "100", "100"),
        "further ones are listed as files",
    ),
    bound(
        "bytes of the pictures of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_PICTURE_BYTES", "32 << 20", "32 MiB"),
        "the same",
    ),
];
