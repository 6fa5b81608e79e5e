//! The typesetter: Typst with files in memory.
//!
//! ```text
//! /main.typ         the built-in source, which reads the document and calls the layout
//! /tampu.typ        the built-in layout, which a layout of the site may use
//! /layout.typ       the layout of the site, or the built-in one
//! /document.json    the document
//! /pictures/7       its pictures
//! /logo.png         the files that the site names, by their names
//! ```
//! One PDF is made at a time, on one thread with a large stack, so that a PDF takes one processor at most. What the
//! typesetter remembers is dropped after each PDF.

use std::{
    collections::HashMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use parking_lot::Mutex;
use tampu_types::Time;
use tampu_workers::guard;
use typst::{
    Library, LibraryExt, World, WorldExt, comemo,
    diag::{FileError, FileResult, SourceDiagnostic, Warned},
    foundations::{Bytes, Datetime, Duration, Smart},
    syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot},
    text::{Font, FontBook},
    utils::LazyHash,
};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, Timestamp};

use super::{
    MAX_PICTURES, PdfError,
    document::{PdfBlock, PdfDocument, PdfEntry, PdfRun},
};

mod pictures;

pub use pictures::reduced;

/// Bytes of the stack of the typesetter. Unoptimised builds need most of it.
const STACK: usize = 64 << 20;
/// Bytes of the files that a site names, in all.
const MAX_FILES: u64 = 64 << 20;
/// Bytes of a layout.
const MAX_LAYOUT: u64 = 1 << 20;
/// Characters without a glyph that a remark names.
const NAMED: usize = 12;

const MAIN: &str = "/main.typ";
const LAYOUT: &str = "/layout.typ";
const BUILT_IN_LAYOUT: &str = "/tampu.typ";
const DOCUMENT: &str = "/document.json";

/// The maker of PDF, with the layout and the fonts of a site.
pub struct Typesetter {
    /// The layout of the site, and its path for errors.
    layout: Option<(PathBuf, String)>,
    /// Pictures and sources of the site, by their names.
    files: Vec<(String, Bytes)>,
    /// Fonts of the site.
    own_fonts: Vec<Font>,
    fonts: OnceLock<Fonts>,
    /// Held while a PDF is made.
    one: Mutex<()>,
}

struct Fonts {
    book: LazyHash<FontBook>,
    all: Vec<Font>,
    library: LazyHash<Library>,
}

/// A finished PDF.
#[derive(Debug)]
pub struct MadePdf {
    pub bytes: Vec<u8>,
    /// The number of pages.
    pub pages: usize,
    /// Remarks for the caller.
    pub notes: Vec<String>,
}

impl Default for Typesetter {
    fn default() -> Typesetter {
        let fonts = OnceLock::new();
        Typesetter { layout: None, files: Vec::new(), own_fonts: Vec::new(), fonts, one: Mutex::default() }
    }
}

impl Typesetter {
    /// Reads the layout of a site, and the pictures and fonts that it names. A sample is set to check the layout.
    pub fn new(layout: Option<&Path>, files: &[PathBuf]) -> Result<Typesetter, PdfError> {
        let mut made = Typesetter::default();
        let mut left = MAX_FILES;
        for path in files {
            let wrong = |why: String| PdfError::File { path: path.clone(), why };
            let bytes = read(path, left)?;
            left -= bytes.len() as u64;
            let name =
                path.file_name().and_then(|name| name.to_str()).ok_or_else(|| wrong("its name is not UTF-8".to_owned()))?;
            let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
            match extension.as_str() {
                "ttf" | "otf" | "ttc" | "otc" => {
                    let before = made.own_fonts.len();
                    made.own_fonts.extend(Font::iter(Bytes::new(bytes)));
                    if made.own_fonts.len() == before {
                        return Err(wrong("it is no font that can be read".to_owned()));
                    }
                }
                "png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" | "typ" => {
                    let taken = [MAIN, LAYOUT, BUILT_IN_LAYOUT, DOCUMENT].contains(&format!("/{name}").as_str());
                    if taken || made.files.iter().any(|(known, _)| known == name) {
                        return Err(wrong("another file has this name; rename it".to_owned()));
                    }
                    made.files.push((name.to_owned(), Bytes::new(bytes)));
                }
                _ => {
                    let kinds = "a picture (png, jpg, gif, webp, svg), a font (ttf, otf, ttc, otc) or a source (typ)";
                    return Err(wrong(format!("its name does not end as that of {kinds}")));
                }
            }
        }
        if let Some(path) = layout {
            let text = String::from_utf8(read(path, MAX_LAYOUT)?);
            let text = text.map_err(|_| PdfError::File { path: path.to_owned(), why: "it is not UTF-8".to_owned() })?;
            made.layout = Some((path.to_owned(), text));
            made.pdf(sample())?;
        }
        Ok(made)
    }

    /// Makes the PDF of a document.
    pub fn pdf(&self, mut document: PdfDocument) -> Result<MadePdf, PdfError> {
        let _one = self.one.lock();
        let fonts = self.fonts.get_or_init(|| self.all_fonts());
        document.notes.extend(fonts.missing(&document));
        let notes = document.notes.clone();
        let json = serde_json::to_vec(&document).map_err(|error| PdfError::Failed(error.to_string()))?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(STACK).thread_name(|_| "pdf".to_owned()).build();
        let pool = pool.map_err(|error| PdfError::Failed(error.to_string()))?;
        let memory = Memory::new(self, fonts, document, json)?;
        let made = pool.install(|| guard("pdf", || self.set(&memory)));
        comemo::evict(0);
        let (bytes, pages) =
            made.map_err(|_| PdfError::Failed("the typesetter has failed; the log of the hub says more".to_owned()))??;
        Ok(MadePdf { bytes, pages, notes })
    }

    fn set(&self, memory: &Memory<'_>) -> Result<(Vec<u8>, usize), PdfError> {
        let wrong = |errors: &[SourceDiagnostic]| self.error(memory, errors);
        let Warned { output, .. } = typst::compile::<PagedDocument>(memory);
        let document = output.map_err(|errors| wrong(&errors))?;
        let creator = Smart::Custom(Some(format!("Tampu {}", env!("CARGO_PKG_VERSION"))));
        let timestamp = moment(memory.now).map(Timestamp::new_utc);
        let options = PdfOptions { creator, timestamp, ..PdfOptions::default() };
        let bytes = typst_pdf::pdf(&document, &options).map_err(|errors| wrong(&errors))?;
        Ok((bytes, document.pages().len()))
    }

    /// Returns the first error, with its place in the layout of the site if it is there.
    fn error(&self, memory: &Memory<'_>, errors: &[SourceDiagnostic]) -> PdfError {
        let Some(error) = errors.first() else { return PdfError::Failed("the typesetter names no reason".to_owned()) };
        // Some hints are about the typesetter's own command line.
        let hints =
            error.hints.iter().filter(|hint| !hint.v.contains("--")).map(|hint| format!("; {}", hint.v)).collect::<String>();
        let message = match error.message.as_str() {
            "unresolved import" => "it has no function 'layout(data, body)', or imports a name that is not there".to_owned(),
            message => format!("{message}{hints}"),
        };
        // An error in a built-in source comes from a call of the layout.
        let spans = std::iter::once(error.span).chain(error.trace.iter().map(|call| call.span.into()));
        let path = |id: FileId| {
            let name = id.get().vpath().get_without_slash().to_owned();
            match &self.layout {
                Some((path, _)) if name == LAYOUT.trim_start_matches('/') => Some(path.clone()),
                _ => self.files.iter().any(|(known, _)| *known == name).then(|| PathBuf::from(&name)),
            }
        };
        let found = spans.filter_map(|span| Some((span, path(span.id()?)?))).next();
        match (found, &self.layout) {
            (Some((span, path)), _) => {
                let line = span.id().and_then(|id| {
                    let range = memory.range(span)?;
                    memory.source(id).ok()?.lines().byte_to_line(range.start)
                });
                PdfError::Layout { path, line: line.map(|line| line + 1), message }
            }
            (None, Some((path, _))) => PdfError::Layout { path: path.clone(), line: None, message },
            (None, None) => PdfError::Failed(message),
        }
    }

    fn all_fonts(&self) -> Fonts {
        let built_in = [
            dejavu::sans::regular(),
            dejavu::sans::bold(),
            dejavu::sans::oblique(),
            dejavu::sans::bold_oblique(),
            dejavu::sans_mono::regular(),
            dejavu::sans_mono::bold(),
            dejavu::sans_mono::oblique(),
            dejavu::sans_mono::bold_oblique(),
        ];
        let built_in = built_in.into_iter().flat_map(|bytes| Font::iter(Bytes::new(bytes)));
        let all: Vec<Font> = self.own_fonts.iter().cloned().chain(built_in).collect();
        Fonts { book: LazyHash::new(FontBook::from_fonts(&all)), library: LazyHash::new(Library::default()), all }
    }
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, PdfError> {
    let wrong = |why: String| PdfError::File { path: path.to_owned(), why };
    let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(wrong(format!(
            "it is too large: a layout has at most {MAX_LAYOUT} bytes, all other files {MAX_FILES} bytes together"
        )));
    }
    Ok(bytes)
}

/// Returns the document on which a layout is tried.
fn sample() -> PdfDocument {
    let text = |text: &str| vec![PdfBlock::Paragraph { runs: vec![PdfRun::Plain(text.to_owned())], align: "" }];
    let entry = PdfEntry {
        book: "Sample".to_owned(),
        id: 1,
        title: "Sample".to_owned(),
        by: "tampu".to_owned(),
        date: "2026-01-01 00:00:00 UTC".to_owned(),
        attributes: vec![("Author".to_owned(), "tampu".to_owned())],
        blocks: text("A sample."),
        ..PdfEntry::default()
    };
    PdfDocument {
        title: "Sample".to_owned(),
        authors: vec!["tampu".to_owned()],
        books: vec!["Sample".to_owned()],
        made: "2026-01-01 00:00:00 UTC".to_owned(),
        entries: vec![entry],
        ..PdfDocument::default()
    }
}

impl Fonts {
    /// Returns a remark about the characters that no font has.
    fn missing(&self, document: &PdfDocument) -> Option<String> {
        // Serialisation leaves characters beyond ASCII as they are.
        let text = serde_json::to_string(document).unwrap_or_default();
        let mut missing: Vec<char> = Vec::new();
        for c in text.chars().filter(|c| !c.is_ascii() && !is_invisible(*c)) {
            let has = |font: &Font| font.info().coverage.contains(u32::from(c));
            if !missing.contains(&c) && !self.all.iter().any(has) {
                missing.push(c);
                if missing.len() > NAMED {
                    break;
                }
            }
        }
        let more = if missing.len() > NAMED { " and others" } else { "" };
        let names: Vec<String> = missing.iter().take(NAMED).map(|c| format!("U+{:04X}", u32::from(*c))).collect();
        let names = names.join(" ");
        let fonts = "the site can name a font that has them ([book] pdf_files)";
        (!names.is_empty()).then(|| format!("Characters shown as boxes, because no font has them: {names}{more}; {fonts}."))
    }
}

/// Returns true for characters that need no glyph: joiners, marks of direction, variants.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Returns a time in the typesetter's form.
fn moment(time: Time) -> Option<Datetime> {
    let text = time.to_acs();
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<u8>().ok();
    let year = text.get(..4)?.parse().ok()?;
    Datetime::from_ymd_hms(year, part(5, 7)?, part(8, 10)?, part(11, 13)?, part(14, 16)?, part(17, 19)?)
}

/// The files of one PDF.
struct Memory<'a> {
    fonts: &'a Fonts,
    main: FileId,
    sources: HashMap<FileId, Source>,
    files: HashMap<FileId, Bytes>,
    now: Time,
}

/// Returns the number of a file. The typesetter keeps numbers for good and has 65535, so names come from a small set.
fn file_id(path: &str) -> Result<FileId, PdfError> {
    let path = VirtualPath::new(path).map_err(|_| PdfError::Failed(format!("'{path}' is no name of a file")))?;
    Ok(RootedPath::new(VirtualRoot::Project, path).intern())
}

impl<'a> Memory<'a> {
    fn new(setter: &Typesetter, fonts: &'a Fonts, document: PdfDocument, json: Vec<u8>) -> Result<Memory<'a>, PdfError> {
        let built_in = include_str!("typeset/tampu.typ");
        let layout = setter.layout.as_ref().map_or(built_in, |(_, text)| text.as_str());
        let (mut sources, mut files) = (HashMap::new(), HashMap::new());
        let own = setter.files.iter().filter(|(name, _)| name.ends_with(".typ"));
        let own = own.map(|(name, bytes)| (format!("/{name}"), String::from_utf8_lossy(bytes.as_slice()).into_owned()));
        let fixed = [(MAIN, include_str!("typeset/main.typ")), (BUILT_IN_LAYOUT, built_in), (LAYOUT, layout)];
        for (path, text) in fixed.map(|(path, text)| (path.to_owned(), text.to_owned())).into_iter().chain(own) {
            let id = file_id(&path)?;
            sources.insert(id, Source::new(id, text));
        }
        for (name, bytes) in setter.files.iter().filter(|(name, _)| !name.ends_with(".typ")) {
            files.insert(file_id(&format!("/{name}"))?, bytes.clone());
        }
        let now = document.made_at;
        for (number, picture) in document.pictures.into_iter().take(MAX_PICTURES).enumerate() {
            files.insert(file_id(&format!("/pictures/{number}"))?, Bytes::new(picture.bytes));
        }
        files.insert(file_id(DOCUMENT)?, Bytes::new(json));
        Ok(Memory { fonts, main: file_id(MAIN)?, sources, files, now })
    }
}

impl World for Memory<'_> {
    fn library(&self) -> &LazyHash<Library> {
        &self.fonts.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.fonts.book
    }

    fn main(&self) -> FileId {
        self.main
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        self.sources.get(&id).cloned().ok_or_else(|| missing(id))
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        let source = || self.sources.get(&id).map(|source| Bytes::from_string(source.text().to_owned()));
        self.files.get(&id).cloned().or_else(source).ok_or_else(|| missing(id))
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.fonts.all.get(index).cloned()
    }

    fn today(&self, _offset: Option<Duration>) -> Option<Datetime> {
        moment(self.now)
    }
}

/// Returns the error about a file that is not in memory.
fn missing(id: FileId) -> FileError {
    match id.get().root() {
        VirtualRoot::Project => FileError::NotFound(PathBuf::from(id.get().vpath().get_without_slash())),
        VirtualRoot::Package(_) => FileError::Other(Some("packages are not loaded; name its files in pdf_files".into())),
    }
}
