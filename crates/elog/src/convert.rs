//! Converts an entry of a file into one of a store: its attributes, its attachments, and the digest by which it is recognised.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};
use tampu_logbook::{
    attachment::{Attachment, Upload, kept_elog_name, plain_name},
    book::{Book, EntryAttribute, check_said, elog_options},
    entry::{Content, Encoding, NewEntry},
    store::{Imported, MAX_ATTACHMENT, Store, now},
};
use tampu_types::Time;

use crate::{
    entries::{self, FileEntry},
    files,
};

/// The facts about an entry that its own lines do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPosition {
    pub id: u32,
    /// The date of writing.
    pub date: Time,
    /// The zone, in minutes east of UTC.
    pub zone: i16,
    /// The parent, if it exists.
    pub parent: Option<u32>,
    /// The first entry of its thread.
    pub thread: u32,
}

/// The result of converting an entry of a file.
#[derive(Debug, Default)]
pub struct ConvertedEntry {
    /// The entry; `None` if it is invalid.
    pub imported: Option<Imported>,
    /// The files of its attachments.
    pub uploads: Vec<Upload>,
    /// Bytes of those.
    pub bytes: u64,
    /// The faults that were found.
    pub faults: Vec<String>,
}

/// Returns the digest that recognises an entry. It covers the entry's bytes, the attachments that are present, and
/// whether the parent is present. So attachments and parents that appear later are imported later.
pub fn digest(book: &Path, bytes: &[u8], entry: &FileEntry, parent: Option<u32>) -> [u8; 16] {
    let mut hash = Sha256::new();
    entries::lasting(bytes).for_each(|piece| hash.update(piece));
    for name in &entry.attachments {
        let size = files::attachment(book, name).and_then(|file| fs::metadata(file).ok()).map(|file| file.len());
        hash.update(format!("\0{name}\0{size:?}"));
    }
    if entry.parent != parent {
        hash.update("\0alone");
    }
    let digest = hash.finalize();
    std::array::from_fn(|at| digest[at])
}

/// The content of an entry without its text and its files.
fn content_of(book: &Book, entry: &FileEntry, faults: &mut Vec<String>) -> Content {
    let encoding = entry.encoding.parse().unwrap_or_else(|_| {
        faults.push(format!("unknown encoding '{}': read as plain", entry.encoding));
        Encoding::Plain
    });
    let mut content = Content { encoding, ..Content::default() };
    for (name, value) in &entry.attributes {
        let several = book.attribute(name).is_some_and(|attribute| attribute.takes_several());
        let values = match several {
            true => value.split('|').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect(),
            false => vec![value.clone()],
        };
        let attribute = EntryAttribute { name: name.clone(), values };
        match check_said(std::slice::from_ref(&attribute)) {
            Ok(()) => content.attributes.push(attribute),
            Err(why) => faults.push(format!("{why}: left out")),
        }
    }
    content
}

/// An attachment whose bytes are missing. Control characters and too long names are no part of a name here.
fn missing_attachment(stored: &str, date: Time) -> Attachment {
    let (added, name) = files::stamped(stored).unwrap_or((date, stored));
    Attachment { name: plain_name(name), sha: None, size: 0, added, elog: Some(kept_elog_name(stored)) }
}

/// Returns the reason why an entry cannot be stored, whatever its files are. An import knows it before it decides about threads, so that a reply to
/// such an entry begins a thread.
pub fn refusal(book: &Book, mut entry: FileEntry) -> Option<String> {
    let mut content = content_of(book, &entry, &mut Vec::new());
    content.text = std::mem::take(&mut entry.text);
    if entry.draft.is_none() {
        content.attachments = entry.attachments.iter().map(|stored| missing_attachment(stored, Time(0))).collect();
    }
    content.check().err().map(|why| format!("{why}: left out"))
}

/// Converts an entry and its files. `folder` is the book's.
pub fn convert(
    store: &dyn Store,
    book: &Book,
    folder: &Path,
    at: EntryPosition,
    entry: FileEntry,
    digest: [u8; 16],
) -> ConvertedEntry {
    let mut converted = ConvertedEntry::default();
    let mut content = content_of(book, &entry, &mut converted.faults);
    content.text = entry.text;
    let is_of_utf8 = elog_options::option(book, "charset").is_some_and(|charset| charset.to_ascii_lowercase().contains("utf"));
    if !entry.is_utf8 && is_of_utf8 {
        converted.faults.push("bytes that are not UTF-8: read as ISO-8859-1".to_owned());
    }
    if at.date > now() {
        converted.faults.push(format!("its date {} is in the future: kept", entry.date));
    }
    for stored in entry.attachments {
        let missing = missing_attachment(&stored, at.date);
        let (added, known) = (missing.added, missing.elog.clone());
        let (_, name) = files::stamped(&stored).unwrap_or((at.date, &stored));
        if known.as_ref() != Some(&stored) {
            converted.faults.push(format!("attachment '{}': its name is kept without control characters", stored.escape_debug()));
        }
        // A draft has no files here.
        let path = if entry.draft.is_some() { continue } else { files::attachment(folder, &stored) };
        let Some(path) = path else {
            converted.faults.push(format!("attachment '{stored}' is missing; its name is kept"));
            content.attachments.push(missing);
            continue;
        };
        let read = fs::File::open(&path).map_err(|error| error.to_string());
        match read.and_then(|mut file| store.upload(&mut file, MAX_ATTACHMENT).map_err(|error| error.to_string())) {
            Ok(upload) => {
                let attachment = upload.attachment(name, added);
                converted.bytes += attachment.size;
                content.attachments.push(Attachment { elog: known, ..attachment });
                converted.uploads.push(upload);
            }
            Err(error) => {
                converted.faults.push(format!("attachment '{stored}': {error}; its name is kept"));
                content.attachments.push(missing);
            }
        }
    }
    if let Some(by) = &entry.locked_by {
        converted.faults.push(format!("it was locked by {by}: the lock is not imported"));
    }
    if let Err(why) = content.check() {
        converted.faults.push(format!("{why}: left out"));
        return converted;
    }
    let new = NewEntry { book: book.name.clone(), parent: at.parent, content, date: Some(at.date), zone: at.zone };
    converted.imported = Some(Imported { id: at.id, entry: new, thread: at.thread, digest, draft: entry.draft, author: None });
    converted
}
