//! The import of foreign entries into a book.
//!
//! The digest of an imported entry has two halves: one of the key, one of the content. So the store itself knows which
//! entry belongs to which key, without another table, also if the entry was deleted here since.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::foreign::{ForeignEntry, ForeignSource, SourceError, SourceFault};
use crate::{
    attachment::{
        Attachment, Upload, plain_name,
        reference::address,
        stored_name::{another, stamped},
    },
    book::{AttributeDef, AttributeKind, Book, EntryAttribute, MAX_ATTRIBUTES, check_said, same_name},
    entry::{Content, EntryRef, MAX_ID, MAX_TEXT, NewEntry},
    search::{Search, Sort, Stop},
    store::{ImportOutcome, Imported, MAX_ATTACHMENT, Progress, Store, StoreError},
};

/// The importer's name in the history of the entries.
const BY: &str = "import";
/// Entries of a transaction, and bytes of their texts and files.
const TOGETHER: usize = 200;
const TOGETHER_BYTES: u64 = 16 << 20;
/// Number of new entries after which the store optimises its search index.
const MANY: u64 = 1000;
/// Faults that a report lists.
const MAX_FAULTS: usize = 10_000;

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ForeignReport {
    /// The name of the book.
    pub book: String,
    /// The number of entries in the source.
    pub entries: u64,
    /// The number of new entries.
    pub new: u64,
    /// The number of entries that were changed in the source.
    pub changed: u64,
    /// The number of entries that are as they were.
    pub same: u64,
    /// The number of entries that were changed here too, and stay.
    pub conflicts: u64,
    /// The number of entries that were deleted or moved here, and stay so.
    pub gone: u64,
    /// The number of files with their bytes.
    pub attachments: u64,
    /// The errors in the source, in its order.
    pub faults: Vec<SourceFault>,
    /// The number of errors that are not listed.
    pub more_faults: u64,
    /// True if the import was interrupted before its end.
    pub interrupted: bool,
}

impl ForeignReport {
    fn fault(&mut self, fault: SourceFault) {
        if self.faults.len() < MAX_FAULTS { self.faults.push(fault) } else { self.more_faults += 1 }
    }
}

/// The first half of an entry's digest.
type Key = [u8; 8];

fn half(parts: &[&[u8]]) -> Key {
    let mut of = Sha256::new();
    for part in parts {
        of.update((part.len() as u64).to_le_bytes());
        of.update(part);
    }
    let mut key = Key::default();
    key.copy_from_slice(&of.finalize()[..8]);
    key
}

/// An entry's facts that the first pass finds.
struct Found {
    key: Key,
    parent: Option<Key>,
    wanted: Option<u32>,
    date: Option<Time>,
}

/// The number of an entry, its parent's, and that of the first entry of its thread.
struct Numbers {
    id: u32,
    parent: Option<u32>,
    thread: u32,
}

/// Imports all entries of a source into a book, which is made if it is missing. `progress` receives the number of
/// entries done and their total, and returns false to interrupt.
pub fn import_foreign(
    store: &dyn Store,
    source: &dyn ForeignSource,
    book: &str,
    progress: Progress<'_>,
) -> Result<ForeignReport, SourceError> {
    let mut report = ForeignReport { book: book.to_owned(), ..ForeignReport::default() };
    let mut found: Vec<Found> = Vec::new();
    let mut keys: HashMap<Key, usize> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    source.each(&mut |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(fault) => {
                report.fault(fault);
                return Ok(true);
            }
        };
        let key = half(&[source.name().as_bytes(), entry.key.as_bytes()]);
        if keys.contains_key(&key) {
            report.fault(fault(source, &entry, format!("'{}' occurs a second time: left out", entry.key.escape_debug())));
            return Ok(true);
        }
        keys.insert(key, found.len());
        for said in &entry.attributes {
            if !names.iter().any(|name| same_name(name, &said.name)) && names.len() < MAX_ATTRIBUTES {
                names.push(said.name.clone());
            }
        }
        let parent = entry.parent.as_ref().map(|parent| half(&[source.name().as_bytes(), parent.as_bytes()]));
        found.push(Found { key, parent, wanted: entry.id, date: entry.date.map(|(date, _)| date) });
        Ok(true)
    })?;
    report.entries = found.len() as u64;
    let known = agree_on_book(store, source, book, &names)?;
    let numbers = numbers(store, &known, &found, &keys)?;
    let stored: HashMap<u32, [u8; 16]> = store.digests(&known.name)?.into_iter().collect();
    let mut importing = Importing { store, source, book: known, report, batch: Batch::default(), stored };
    let mut seen: HashSet<Key> = HashSet::new();
    source.each(&mut |entry| {
        let Ok(entry) = entry else { return Ok(true) };
        let key = half(&[source.name().as_bytes(), entry.key.as_bytes()]);
        let place = keys.get(&key).filter(|_| seen.insert(key));
        if let Some(numbers) = place.and_then(|place| numbers.get(*place)) {
            importing.entry(entry, key, numbers, &found, &keys)?;
        }
        let is_wanted = progress(seen.len() as u64, found.len() as u64);
        importing.report.interrupted |= !is_wanted;
        Ok(is_wanted)
    })?;
    importing.send()?;
    if importing.report.new + importing.report.changed >= MANY {
        store.imported()?;
    }
    Ok(importing.report)
}

fn fault(source: &dyn ForeignSource, entry: &ForeignEntry, what: String) -> SourceFault {
    SourceFault { file: source.path(), place: entry.place.clone(), what }
}

/// Makes the book, or adds the attributes that it lacks.
fn agree_on_book(store: &dyn Store, source: &dyn ForeignSource, name: &str, names: &[String]) -> Result<Book, SourceError> {
    let mut book = match store.book(name) {
        Ok(book) => book,
        Err(StoreError::NoBook(_)) => Book::new(name, vec![]),
        Err(other) => return Err(other.into()),
    };
    for name in names {
        let is_sound = check_said(&[EntryAttribute::new(name, "")]).is_ok();
        if book.attribute(name).is_none() && is_sound && book.attributes.len() < MAX_ATTRIBUTES {
            let kind = source.kinds().iter().find(|(known, _)| same_name(known, name));
            book.attributes.push(AttributeDef::new(name, kind.map_or(AttributeKind::Text, |(_, kind)| *kind)));
        }
    }
    store.put_book(&book)?;
    Ok(book)
}

/// Chooses the numbers of all entries: that of an earlier import, the wanted one, or the next.
fn numbers(store: &dyn Store, book: &Book, found: &[Found], keys: &HashMap<Key, usize>) -> Result<Vec<Numbers>, SourceError> {
    let mut before: HashMap<Key, u32> = HashMap::new();
    let mut used: HashSet<u32> = HashSet::new();
    for (id, digest) in store.all_imports(&book.name)? {
        let mut key = Key::default();
        key.copy_from_slice(&digest[..8]);
        before.insert(key, id);
        used.insert(id);
    }
    let is_free = |id: u32| match store.entry(&EntryRef::new(&book.name, id)) {
        Ok(_) | Err(StoreError::Gone(_)) => Ok(false),
        Err(StoreError::NoEntry(_)) => Ok(true),
        Err(other) => Err(other),
    };
    let mut ids: Vec<Option<u32>> = found.iter().map(|one| before.get(&one.key).copied()).collect();
    for (one, id) in found.iter().zip(&mut ids) {
        if let (None, Some(wanted)) = (&id, one.wanted.filter(|wanted| (1..=MAX_ID).contains(wanted)))
            && !used.contains(&wanted)
            && is_free(wanted)?
        {
            used.insert(wanted);
            *id = Some(wanted);
        }
    }
    let last = Search { books: vec![book.name.clone()], sort: Sort::Id, limit: 1, count_to: 0, ..Search::default() };
    let last = store.search(&last, &Stop::default())?.hits.first().map_or(0, |hit| hit.entry.at.id);
    let mut next = used.iter().copied().max().unwrap_or(0).max(last);
    let mut rest: Vec<usize> = (0..found.len()).filter(|place| ids[*place].is_none()).collect();
    rest.sort_by_key(|place| found[*place].date);
    for place in rest {
        loop {
            next = next
                .checked_add(1)
                .filter(|next| *next <= MAX_ID)
                .ok_or_else(|| StoreError::Full(format!("'{}' has no more numbers for entries", book.name)))?;
            if is_free(next)? {
                break;
            }
        }
        ids[place] = Some(next);
    }
    let parents: Vec<Option<usize>> = found.iter().map(|one| one.parent.and_then(|parent| keys.get(&parent).copied())).collect();
    let id = |place: usize| ids.get(place).copied().flatten().unwrap_or_default();
    let of = |(place, (first, parent)): (usize, (usize, Option<usize>))| Numbers {
        id: id(place),
        parent: parent.map(id),
        thread: id(first),
    };
    Ok(threads(&parents).into_iter().enumerate().map(of).collect())
}

/// Returns the first entry of each entry's thread, and its parent. In a circle of replies, each entry begins a thread.
fn threads(parents: &[Option<usize>]) -> Vec<(usize, Option<usize>)> {
    let mut first: Vec<Option<usize>> = vec![None; parents.len()];
    let mut is_circle = vec![false; parents.len()];
    for start in 0..parents.len() {
        let (mut path, mut walked) = (Vec::new(), HashSet::new());
        let mut at = start;
        while first[at].is_none() {
            if !walked.insert(at) {
                for member in path.iter().rev().take_while(|member| **member != at).chain([&at]) {
                    first[*member] = Some(*member);
                    is_circle[*member] = true;
                }
                break;
            }
            path.push(at);
            match parents[at].filter(|parent| *parent != at) {
                Some(parent) => at = parent,
                None => first[at] = Some(at),
            }
        }
        for member in path.into_iter().rev() {
            if first[member].is_none() {
                first[member] = parents[member].and_then(|parent| first[parent]);
            }
        }
    }
    let parent = |at: usize| parents[at].filter(|parent| *parent != at && !is_circle[at]);
    (0..parents.len()).map(|at| (first[at].unwrap_or(at), parent(at))).collect()
}

/// Entries of one transaction.
#[derive(Default)]
struct Batch {
    entries: Vec<Imported>,
    places: Vec<String>,
    uploads: Vec<Upload>,
    bytes: u64,
}

struct Importing<'a> {
    store: &'a dyn Store,
    source: &'a dyn ForeignSource,
    book: Book,
    report: ForeignReport,
    batch: Batch,
    stored: HashMap<u32, [u8; 16]>,
}

impl Importing<'_> {
    fn entry(
        &mut self,
        mut entry: ForeignEntry,
        key: Key,
        numbers: &Numbers,
        found: &[Found],
        keys: &HashMap<Key, usize>,
    ) -> Result<(), SourceError> {
        let digest = digest(key, &entry, numbers.parent);
        if self.stored.get(&numbers.id) == Some(&digest) {
            self.report.same += 1;
            return Ok(());
        }
        if let (Some(parent), None) = (&entry.parent, numbers.parent) {
            let known = keys.get(&key).and_then(|place| found[*place].parent).is_some_and(|parent| keys.contains_key(&parent));
            let parent = parent.escape_debug();
            entry.faults.push(match known {
                true => format!("its replies lead back to it ('{parent}'): it begins a thread"),
                false => format!("it replies to '{parent}', which is missing: it begins a thread"),
            });
        }
        let Some((date, zone)) = entry.date else {
            self.fault(&entry, "it has no date that can be read: left out".to_owned());
            return Ok(());
        };
        let mut text = std::mem::take(&mut entry.text);
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            entry.faults.push(format!("its text is longer than {MAX_TEXT} bytes: the rest is left out"));
        }
        if text.contains('\0') {
            text.retain(|c| c != '\0');
            entry.faults.push("NUL characters in its text are left out".to_owned());
        }
        let (attachments, uploads) = self.files(&mut entry, date, &mut text)?;
        let attributes = std::mem::take(&mut entry.attributes);
        let attributes = attributes.into_iter().map(|said| self.joined(said)).collect();
        let content =
            Content { attributes, encoding: entry.encoding, text, attachments, links: std::mem::take(&mut entry.links) };
        if let Err(why) = content.check() {
            self.fault(&entry, format!("{why}: left out"));
            return Ok(());
        }
        for what in std::mem::take(&mut entry.faults) {
            self.fault(&entry, what);
        }
        self.batch.bytes += content.bytes() as u64;
        let new = NewEntry { book: self.book.name.clone(), parent: numbers.parent, content, date: Some(date), zone };
        let author = Some(entry.by).filter(|by| !by.is_empty());
        let imported = Imported { id: numbers.id, entry: new, thread: numbers.thread, digest, draft: None, author };
        self.batch.entries.push(imported);
        self.batch.places.push(entry.place);
        self.batch.uploads.extend(uploads);
        if self.batch.entries.len() >= TOGETHER || self.batch.bytes >= TOGETHER_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn fault(&mut self, entry: &ForeignEntry, what: String) {
        let fault = fault(self.source, entry, what);
        self.report.fault(fault);
    }

    /// Joins several values where the book's attribute takes one.
    fn joined(&self, said: EntryAttribute) -> EntryAttribute {
        match self.book.attribute(&said.name) {
            Some(def) if !def.takes_several() && said.values.len() > 1 => {
                EntryAttribute { values: vec![said.values.join(", ")], ..said }
            }
            _ => said,
        }
    }

    /// Stores the files of an entry, and puts their addresses into its text.
    fn files(
        &mut self,
        entry: &mut ForeignEntry,
        date: Time,
        text: &mut String,
    ) -> Result<(Vec<Attachment>, Vec<Upload>), SourceError> {
        let (mut attachments, mut uploads) = (Vec::new(), Vec::new());
        let mut names: HashSet<String> = HashSet::new();
        for file in std::mem::take(&mut entry.files) {
            let name = plain_name(&file.name);
            if name != file.name {
                entry.faults.push(format!("attachment '{}': its name is kept as '{name}'", file.name.escape_debug()));
            }
            let mut stored = stamped(&name, date, 0);
            while !names.insert(stored.clone()) {
                stored = another(&stored);
            }
            let elog = Some(stored);
            let opened = self.source.open(&file);
            let upload = opened.and_then(|mut bytes| {
                self.store.upload(&mut bytes, MAX_ATTACHMENT).map_err(|error| match error {
                    StoreError::Io { error, .. } => error.to_string(),
                    error => error.to_string(),
                })
            });
            let attachment = match upload {
                Ok(upload) => {
                    if file.sha.as_ref().is_some_and(|sha| sha != upload.sha()) {
                        entry.faults.push(format!(
                            "attachment '{name}': its bytes differ from the digest in the source: kept as they are"
                        ));
                    }
                    let attachment = Attachment { elog, ..upload.attachment(&name, date) };
                    self.batch.bytes += attachment.size;
                    self.report.attachments += 1;
                    uploads.push(upload);
                    attachment
                }
                Err(why) => {
                    entry.faults.push(format!("attachment '{name}': {why}: its name is kept"));
                    Attachment { name, sha: None, size: 0, added: date, elog }
                }
            };
            for known in file.addresses.iter().filter(|known| !known.is_empty()) {
                if text.contains(known.as_str()) {
                    *text = text.replace(known.as_str(), &address(&attachment));
                }
            }
            attachments.push(attachment);
        }
        Ok((attachments, uploads))
    }

    /// Imports the entries of the transaction.
    fn send(&mut self) -> Result<(), SourceError> {
        let batch = std::mem::take(&mut self.batch);
        if batch.entries.is_empty() {
            return Ok(());
        }
        let outcomes = self.store.import(&self.book.name, batch.entries, batch.uploads, BY)?;
        for (outcome, place) in outcomes.into_iter().zip(batch.places) {
            let mut fault = |what: &str| {
                self.report.fault(SourceFault { file: self.source.path(), place: place.clone(), what: what.to_owned() })
            };
            match outcome {
                ImportOutcome::New => self.report.new += 1,
                ImportOutcome::Changed => self.report.changed += 1,
                ImportOutcome::Same => self.report.same += 1,
                ImportOutcome::Conflict => {
                    fault("the entry was changed here and in the source: the entry here stays");
                    self.report.conflicts += 1;
                }
                ImportOutcome::Gone => {
                    fault("the entry was deleted or moved here, and stays so");
                    self.report.gone += 1;
                }
                // Only drafts can be too many.
                ImportOutcome::Full => {}
            }
        }
        Ok(())
    }
}

fn digest(key: Key, entry: &ForeignEntry, parent: Option<u32>) -> [u8; 16] {
    let mut parts: Vec<Vec<u8>> = vec![
        entry.by.clone().into_bytes(),
        format!("{:?} {parent:?} {:?} {:?}", entry.date, entry.encoding, entry.links).into_bytes(),
        entry.text.clone().into_bytes(),
    ];
    parts.extend(entry.attributes.iter().map(|said| format!("{said:?}").into_bytes()));
    parts.extend(entry.files.iter().map(|file| format!("{} {} {:?}", file.name, file.place, file.sha).into_bytes()));
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&key);
    digest[8..].copy_from_slice(&half(&parts));
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_a_first_entry_and_circles_are_cut() {
        // 0 <- 1 <- 2; 3 <-> 4 <- 5; 6 replies to itself.
        let parents = [None, Some(0), Some(1), Some(4), Some(3), Some(4), Some(6)];
        let expected = [(0, None), (0, Some(0)), (0, Some(1)), (3, None), (4, None), (4, Some(4)), (6, None)];
        assert_eq!(threads(&parents), expected);
        let long: Vec<Option<usize>> = (0..200_000_usize).map(|at| at.checked_sub(1)).collect();
        assert!(threads(&long).iter().all(|(first, _)| *first == 0));
        let backwards: Vec<Option<usize>> = (1..=200_000_usize).map(|at| Some(at).filter(|at| *at < 200_000)).collect();
        assert!(threads(&backwards).iter().all(|(first, _)| *first == 199_999));
    }
}
