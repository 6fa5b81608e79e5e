//! Entries, threads and searches as the document of a PDF.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
    sync::Arc,
};

use tampu_types::Time;
use tampu_workers::Stop;

use super::{
    MAX_ENTRIES, MAX_PICTURE_BYTES, MAX_PICTURES, MAX_TEXT, PdfError,
    blocks::{FILE_SCHEME, TextRoom, blocks},
    document::{PdfDocument, PdfEntry, PdfFile, PdfPicture},
    typeset::reduced,
};
use crate::{
    attachment::{Attachment, Sha},
    book::same_name,
    entry::{Encoding, Entry, EntryRef},
    export::{
        Pages,
        html::{
            links::{addresses, encoded, relinked},
            markup::title,
        },
    },
    render,
    search::Search,
    store::{Entries, Logbook, PagePart},
};

/// Entries of a thread that are read at a time.
const THREAD_PART: usize = 200;
/// Bytes of a picture's file. A larger one is listed as a file.
const MAX_FILE: u64 = 32 << 20;
/// Extensions of files that may be pictures.
const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The attributes that a caller sees, by book; a book that is not in the list shows all.
pub type ShownAttributes = [(String, Vec<String>)];

/// The caller and the circumstances of a PDF.
#[derive(Debug, Clone)]
pub struct PdfContext {
    /// The attributes that the caller sees.
    pub shown: Vec<(String, Vec<String>)>,
    /// The public address of ELOG's pages, for links to entries; without it, entries are not linked.
    pub base: Option<String>,
    /// The current time.
    pub now: Time,
    /// Ends the work.
    pub stop: Stop,
}

/// Collects the document of a PDF.
pub struct Collector {
    store: Arc<dyn Logbook>,
    context: PdfContext,
    document: PdfDocument,
    room: TextRoom,
    /// Bytes of texts so far.
    text: usize,
    /// Bytes of pictures so far.
    picture_bytes: usize,
    /// The number of each picture, and the remark about each file that is none, by the digest of the file.
    known: HashMap<Sha, Result<usize, String>>,
    /// The entries of the document.
    have: HashSet<EntryRef>,
}

impl Collector {
    /// Begins a document without entries.
    pub fn new(store: Arc<dyn Logbook>, context: PdfContext) -> Collector {
        let made = format!("{} UTC", moment(context.now));
        let document = PdfDocument { made, made_at: context.now, ..PdfDocument::default() };
        let (room, known, have) = (TextRoom::default(), HashMap::new(), HashSet::new());
        Collector { store, context, document, room, text: 0, picture_bytes: 0, known, have }
    }

    /// Adds an entry, unless the document has it.
    pub fn entry(&mut self, entry: Entry) -> Result<(), PdfError> {
        self.entry_with(entry, |_, _| {})
    }

    /// Adds an entry as [`Collector::entry`] does. `change` changes its data before its text is converted.
    pub fn entry_with(&mut self, mut entry: Entry, change: impl FnOnce(&mut Entry, &mut PdfEntry)) -> Result<(), PdfError> {
        if self.context.stop.is_stopped() {
            return Err(PdfError::Unfinished);
        }
        if self.have.contains(&entry.at) {
            return Ok(());
        }
        if self.document.entries.len() >= MAX_ENTRIES {
            return Err(PdfError::TooLarge { what: "entries", most: MAX_ENTRIES });
        }
        entry.content.keep_shown(shown(&self.context.shown, &entry.at.book));
        let mut made = self.head(&entry);
        change(&mut entry, &mut made);
        self.text += entry.content.bytes();
        if self.text > MAX_TEXT {
            return Err(PdfError::TooLarge { what: "bytes of text", most: MAX_TEXT });
        }
        self.room.take(made.attributes.len() + 3)?;
        self.body(&entry, &mut made)?;
        for (list, one) in [(&mut self.document.authors, &made.by), (&mut self.document.books, &made.book)] {
            if !list.contains(one) {
                list.push(one.clone());
            }
        }
        self.document.entries.push(made);
        self.have.insert(entry.at);
        Ok(())
    }

    /// Adds all entries of a thread, by date, without their hidden attributes.
    pub fn thread(&mut self, at: &EntryRef) -> Result<(), PdfError> {
        let mut part = PagePart { after: None, limit: THREAD_PART };
        loop {
            let page = self.store.thread_page(at, part, true)?;
            for entry in page.entries {
                self.entry(entry)?;
            }
            match page.next {
                Some(next) => part.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Adds the entries that a search finds; with `threads`, each with its thread.
    pub fn search(&mut self, search: Search, threads: bool) -> Result<(), PdfError> {
        let store: Arc<dyn Entries> = self.store.clone();
        for page in Pages::begin(store, search, self.context.stop.clone())? {
            for entry in page? {
                if threads && !self.have.contains(&entry.at) {
                    self.thread(&entry.at)?;
                }
                self.entry(entry)?;
            }
        }
        Ok(())
    }

    /// Returns the document under a title. An empty title stands for the entry, or for the books.
    pub fn finish(mut self, title: &str, subtitle: &str) -> PdfDocument {
        self.document.title = match (title, &self.document.entries[..]) {
            ("", [one]) => format!("{}/{}: {}", one.book, one.id, one.title),
            ("", []) => "No entries".to_owned(),
            ("", _) => self.document.books.join(", "),
            (title, _) => title.to_owned(),
        };
        self.document.subtitle = subtitle.to_owned();
        self.document
    }

    fn head(&self, entry: &Entry) -> PdfEntry {
        let content = &entry.content;
        let parents = &self.document.entries;
        let above =
            entry.parent.and_then(|parent| parents.iter().rev().find(|one| one.id == parent && one.book == entry.at.book));
        let changed = match entry.revision {
            0 => String::new(),
            revision => format!("{}, revision {revision}", moment_at(entry.changed, entry.zone)),
        };
        let attributes = content.attributes.iter().filter(|attribute| !attribute.values.is_empty());
        PdfEntry {
            book: entry.at.book.clone(),
            id: entry.at.id,
            title: title(entry),
            by: entry.by.clone(),
            date: moment_at(entry.date, entry.zone),
            changed,
            parent: entry.parent,
            depth: above.map_or(0, |above| above.depth + 1),
            attributes: attributes.map(|attribute| (attribute.name.clone(), attribute.joined())).collect(),
            links: content.links.iter().map(ToString::to_string).collect(),
            blocks: Vec::new(),
            files: Vec::new(),
            signatures: entry.signatures.iter().map(|one| (one.label().to_owned(), one.told(entry.revision))).collect(),
        }
    }

    /// Converts the text and the files of an entry.
    fn body(&mut self, entry: &Entry, made: &mut PdfEntry) -> Result<(), PdfError> {
        let content = &entry.content;
        let base = self.context.base.clone();
        let link = |target: &str| {
            let Some(base) = &base else { return String::new() };
            let (book, id) = target.rsplit_once('/').unwrap_or((&entry.at.book, target));
            format!("{base}/{}/{}", encoded(book), encoded(id))
        };
        let html = render::html_until(content.encoding, &content.text, &link, &self.context.stop)?;
        let html = relinked(&html, &addresses(&content.attachments, &|place| Some(format!("{FILE_SCHEME}{place}"))));
        let (mut in_text, mut room) = (HashSet::new(), std::mem::take(&mut self.room));
        let mut picture = |place: usize| {
            let number = content.attachments.get(place).and_then(|file| self.picture(file).ok()?);
            in_text.extend(number.map(|_| place));
            number
        };
        let blocks = blocks(&html, content.encoding == Encoding::Plain, &mut room, &mut picture);
        self.room = room;
        made.blocks = blocks?;
        for (place, file) in content.attachments.iter().enumerate() {
            let sha = file.sha.as_ref().map(|sha| sha.as_str().to_owned()).unwrap_or_default();
            let (picture, remark) = match self.picture(file) {
                Ok(picture) => (picture.filter(|_| !in_text.contains(&place)), String::new()),
                Err(remark) => (None, remark),
            };
            self.room.take(1)?;
            made.files.push(PdfFile { name: file.name.clone(), size: file.size, sha, picture, remark });
        }
        Ok(())
    }

    /// Returns the number of a file's picture; `None` if it is no picture. An error is a remark for the reader.
    fn picture(&mut self, file: &Attachment) -> Result<Option<usize>, String> {
        let extension = file.name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        if !extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str())) {
            return Ok(None);
        }
        let Some(sha) = &file.sha else { return Err("its bytes are missing".to_owned()) };
        if let Some(known) = self.known.get(sha) {
            return known.clone().map(Some);
        }
        let read = self.read_picture(sha).map(|bytes| {
            self.picture_bytes += bytes.len();
            self.document.pictures.push(PdfPicture { bytes });
            self.document.pictures.len() - 1
        });
        self.known.insert(sha.clone(), read.clone());
        read.map(Some)
    }

    fn read_picture(&self, sha: &Sha) -> Result<Vec<u8>, String> {
        let full = || Err("not shown: this PDF has no room for more pictures".to_owned());
        if self.document.pictures.len() >= MAX_PICTURES {
            return full();
        }
        let unread = |_| "not shown: its bytes could not be read".to_owned();
        let file = self.store.attachment(sha).map_err(|_| unread(()))?;
        if file.size() > MAX_FILE {
            return Err(format!("not shown: a picture has at most {} MiB", MAX_FILE >> 20));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|_| unread(()))?;
        let bytes = reduced(bytes, self.document.pictures.len()).map_err(|why| format!("not shown: {why}"))?;
        if self.picture_bytes + bytes.len() > MAX_PICTURE_BYTES { full() } else { Ok(bytes) }
    }
}

fn shown<'a>(all: &'a ShownAttributes, book: &str) -> Option<&'a [String]> {
    all.iter().find(|(name, _)| same_name(name, book)).map(|(_, shown)| shown.as_slice())
}

fn moment(time: Time) -> String {
    time.to_acs()[..19].replace('T', " ")
}

/// Returns a time in the zone of an entry.
fn moment_at(time: Time, zone: i16) -> String {
    if zone == 0 {
        return format!("{} UTC", moment(time));
    }
    let text = time.to_rfc3339_at(i32::from(zone));
    let (day, offset) = (text.get(..19).unwrap_or(&text), text.get(text.len().saturating_sub(6)..).unwrap_or_default());
    format!("{} {offset}", day.replace('T', " "))
}
