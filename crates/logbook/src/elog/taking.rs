//! From an entry of a file to one of a store: its attributes, its attachments, and by what it is known again.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::{entries, entries::FileEntry, files};
use crate::{
    attachment::{Attachment, Upload, plain_name},
    book::{Book, EntryAttribute, check_said},
    entry::{Content, Encoding, NewEntry},
    store::{Imported, MAX_ATTACHMENT, Store},
};

/// What is known of an entry from elsewhere than its own lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whereabouts {
    /// Its number.
    pub id: u32,
    /// When it was written.
    pub date: Time,
    /// In which zone, minutes east of UTC.
    pub zone: i16,
    /// What it answers, if that is there.
    pub parent: Option<u32>,
    /// The first entry of its thread.
    pub thread: u32,
}

/// What became of an entry of a file.
#[derive(Debug, Default)]
pub struct Taken {
    /// The entry; none if it cannot be one.
    pub imported: Option<Imported>,
    /// Its files.
    pub uploads: Vec<Upload>,
    /// Bytes of those.
    pub bytes: u64,
    /// What is not as it should be.
    pub faults: Vec<String>,
}

/// By what an entry is known again: its bytes, which of its attachments are there, and whether what it answers is. So what comes later is
/// taken later.
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

/// Takes an entry and its files. `folder` is the book's.
pub fn take(store: &dyn Store, book: &Book, folder: &Path, at: Whereabouts, entry: FileEntry, digest: [u8; 16]) -> Taken {
    let mut taken = Taken::default();
    let mut content = Content { text: entry.text, ..Content::default() };
    content.encoding = entry.encoding.parse().unwrap_or_else(|_| {
        taken.faults.push(format!("'{}' is no encoding: taken as plain", entry.encoding));
        Encoding::Plain
    });
    for (name, value) in entry.attributes {
        let several = book.attribute(&name).is_some_and(|attribute| attribute.kind.is_multiple());
        let values = match several {
            true => value.split('|').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect(),
            false => vec![value],
        };
        let attribute = EntryAttribute { name, values };
        match check_said(std::slice::from_ref(&attribute)) {
            Ok(()) => content.attributes.push(attribute),
            Err(why) => taken.faults.push(format!("{why}: left out")),
        }
    }
    for stored in entry.attachments {
        let (added, name) = files::stamped(&stored).unwrap_or((at.date, &stored));
        let missing = Attachment { name: plain_name(name), sha: None, size: 0, added, elog: Some(stored.clone()) };
        // A draft has no files here.
        let path = if entry.draft.is_some() { continue } else { files::attachment(folder, &stored) };
        let Some(path) = path else {
            taken.faults.push(format!("its attachment '{stored}' is not there; its name is kept"));
            content.attachments.push(missing);
            continue;
        };
        let read = fs::File::open(&path).map_err(|error| error.to_string());
        match read.and_then(|mut file| store.upload(&mut file, MAX_ATTACHMENT).map_err(|error| error.to_string())) {
            Ok(upload) => {
                let attachment = upload.attachment(name, added);
                taken.bytes += attachment.size;
                content.attachments.push(Attachment { elog: Some(stored), ..attachment });
                taken.uploads.push(upload);
            }
            Err(error) => {
                taken.faults.push(format!("its attachment '{stored}': {error}; its name is kept"));
                content.attachments.push(missing);
            }
        }
    }
    if let Some(by) = &entry.locked_by {
        taken.faults.push(format!("it was locked by {by}: the lock is not taken over"));
    }
    if let Err(why) = content.check() {
        taken.faults.push(format!("{why}: left out"));
        return taken;
    }
    let new = NewEntry { book: book.name.clone(), parent: at.parent, content, date: Some(at.date), zone: at.zone };
    taken.imported = Some(Imported { id: at.id, entry: new, thread: at.thread, digest, draft: entry.draft });
    taken
}
