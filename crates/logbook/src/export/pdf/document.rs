//! The data of a PDF, as the built-in source and a layout of a site read it: `spec/pdf-layout.md`.

use serde::Serialize;

/// The data of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PdfDocument {
    /// The title, which is also that of the file.
    pub title: String,
    /// The query or another line below the title; may be empty.
    pub subtitle: String,
    /// The authors of the entries, each once.
    pub authors: Vec<String>,
    /// The books of the entries, each once.
    pub books: Vec<String>,
    /// The time at which the PDF was made, for people.
    pub made: String,
    pub entries: Vec<PdfEntry>,
    /// Remarks at the end, such as characters without a glyph.
    pub notes: Vec<String>,
    /// The pictures, by their number in blocks and files.
    #[serde(skip)]
    pub pictures: Vec<PdfPicture>,
    /// The time at which the PDF was made.
    #[serde(skip)]
    pub made_at: tampu_types::Time,
}

/// An entry of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PdfEntry {
    pub book: String,
    pub id: u32,
    /// The subject, or the first line of the text.
    pub title: String,
    /// The poster of the entry.
    pub by: String,
    /// The date, for people.
    pub date: String,
    /// The time and number of the last change, for people; empty if there was none.
    pub changed: String,
    /// The number of the entry that this one replies to.
    pub parent: Option<u32>,
    /// The number of entries of the thread above this one; 0 for the first.
    pub depth: usize,
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// Links to records, events, transfers, runs and other entries.
    pub links: Vec<String>,
    /// The blocks of its text.
    pub blocks: Vec<PdfBlock>,
    pub files: Vec<PdfFile>,
    /// Labels and texts of signatures.
    pub signatures: Vec<(String, String)>,
}

/// A file of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PdfFile {
    pub name: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes; empty if they were never here.
    pub sha: String,
    /// The number of the picture below the text; none if the file is no picture, or the text shows it.
    pub picture: Option<usize>,
    /// The reason why a picture is not shown; may be empty.
    pub remark: String,
}

/// A picture that the typesetter accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfPicture {
    /// JPEG or PNG.
    pub bytes: Vec<u8>,
}

/// A block of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PdfBlock {
    /// A paragraph of text.
    Paragraph {
        runs: Vec<PdfRun>,
        /// `center` or `right`; empty for the start of the line.
        #[serde(skip_serializing_if = "str::is_empty")]
        align: &'static str,
    },
    /// A heading of the text, from 1 to 6.
    Heading { level: u8, runs: Vec<PdfRun> },
    /// Lines with their spaces: code, or a text without markup.
    Lines {
        runs: Vec<PdfRun>,
        /// True for a text without markup.
        plain: bool,
    },
    /// A list with items.
    List {
        /// The number of the first item of a numbered list.
        start: Option<u32>,
        items: Vec<Vec<PdfBlock>>,
    },
    /// A quotation of blocks.
    Quote { blocks: Vec<PdfBlock> },
    /// A table of cells.
    Table { columns: usize, cells: Vec<PdfCell> },
    /// A picture, by its number.
    Picture { picture: usize },
    /// A line across the page.
    Rule,
}

/// A cell of a table, at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PdfCell {
    pub x: usize,
    pub y: usize,
    pub colspan: usize,
    pub rowspan: usize,
    /// True for a cell of a head.
    pub head: bool,
    pub blocks: Vec<PdfBlock>,
}

/// A piece of text with one style.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PdfRun {
    /// Text without a style.
    Plain(String),
    /// Text with a style.
    Styled {
        text: String,
        #[serde(flatten)]
        style: PdfStyle,
    },
}

impl PdfRun {
    /// Returns the text.
    pub fn text(&self) -> &str {
        match self {
            PdfRun::Plain(text) | PdfRun::Styled { text, .. } => text,
        }
    }
}

/// The style of a piece of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PdfStyle {
    #[serde(skip_serializing_if = "is_off")]
    pub bold: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub italic: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub underline: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub strike: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub code: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub sub: bool,
    #[serde(skip_serializing_if = "is_off")]
    pub sup: bool,
    /// A color as `#rrggbb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The address of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

fn is_off(on: &bool) -> bool {
    !on
}
