//! From ELOG to a store.
//!
//! Twice over each book: first where its entries are and who answers whom, then the entries by date, some hundreds in a transaction, with
//! their attachments. So memory holds some bytes an entry, a thread is known before its members come, and a run that was cut off goes on
//! where it was: what is in the store with the same digest is not touched.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use tampu_types::Time;

use super::{
    Fault,
    config::{self, Config},
    date,
    entries::{self, FileEntry},
    files,
    lineage::{Line, Odd, lineage},
    options::{Effect, effect},
    taking::{Whereabouts, digest, take},
};
use crate::{
    attachment::Upload,
    book::{AttributeDef, AttributeKind, Book, EntryAttribute, check_said, same_name},
    store::{ImportOutcome, Imported, Store, StoreError},
};

/// Entries of a transaction, and bytes of their texts and attachments.
const TOGETHER: usize = 500;
const TOGETHER_BYTES: u64 = 16 << 20;
/// Entries after which the store puts in order what makes searches quick.
const MANY: u64 = 1000;
/// Faults of a book that are told one by one.
const MAX_FAULTS: usize = 10_000;
/// Who has posted what is imported.
pub(super) const BY: &str = "import-elog";

/// What is imported.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// `elogd.cfg`; without it every folder with entries is a book, and its attributes are those its entries have.
    pub config: Option<PathBuf>,
    /// The folder the books' folders are in.
    pub logbooks: PathBuf,
    /// The books' names; none means all.
    pub only: Vec<String>,
    /// The zone of dates that do not say theirs, minutes east of UTC.
    pub zone: i16,
    /// Whether it is followed by looking again and again, though the kernel would tell of changes: of what another host changes it does not.
    pub poll: bool,
}

/// Why an import could not begin, or go on.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or folder.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What happened.
        error: std::io::Error,
    },
    /// The source has no such book.
    #[error("the source has no logbook '{0}'")]
    NoBook(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an import did with one book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BookReport {
    /// Its name.
    pub book: String,
    /// Where its files are.
    pub directory: PathBuf,
    /// Entries that were found.
    pub entries: u64,
    /// Of these: new in the store.
    pub new: u64,
    /// Changed in the source since the last import, and now in the store.
    pub changed: u64,
    /// As they were.
    pub same: u64,
    /// Changed in the source and in the store: the store's stay.
    pub conflicts: u64,
    /// Their ids, as many as faults are told one by one.
    pub conflicting: Vec<u32>,
    /// Deleted or moved in the store: they stay so.
    pub gone: u64,
    /// Deleted in the source, and now here; only while it is followed.
    pub deleted: u64,
    /// Drafts that are new or changed there, and are drafts here.
    pub drafts: u64,
    /// Attachments that were found.
    pub attachments: u64,
    /// What could not be read, or not as it stands.
    pub faults: Vec<Fault>,
    /// Faults beyond those told one by one.
    pub more_faults: u64,
    /// Options that are kept without effect.
    pub kept_options: Vec<String>,
    /// Options that ELOG does not have either; they are kept too.
    pub unknown_options: Vec<String>,
}

impl BookReport {
    /// Counts what became of an entry or draft; what is to be told with its place.
    pub(super) fn count(&mut self, id: u32, draft: Option<&str>, outcome: ImportOutcome) -> Option<String> {
        match (outcome, draft) {
            (ImportOutcome::New | ImportOutcome::Changed, Some(owner)) => {
                self.drafts += 1;
                return Some(format!("entry {id}: it is a draft of {owner}, and is one here"));
            }
            (ImportOutcome::Full, owner) => {
                let owner = owner.unwrap_or_default();
                return Some(format!("entry {id}: a draft of {owner}, who has no room for more: left out"));
            }
            (ImportOutcome::New, None) => self.new += 1,
            (ImportOutcome::Changed, None) => self.changed += 1,
            (ImportOutcome::Same, None) => self.same += 1,
            (ImportOutcome::Same, Some(_)) => {}
            (ImportOutcome::Conflict, _) => self.conflict(id),
            (ImportOutcome::Gone, _) => self.gone += 1,
        }
        None
    }

    /// One that was changed here too.
    pub(super) fn conflict(&mut self, id: u32) {
        self.conflicts += 1;
        if self.conflicting.len() < MAX_FAULTS {
            self.conflicting.push(id);
        }
    }
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Book by book.
    pub books: Vec<BookReport>,
    /// Faults of the configuration.
    pub faults: Vec<Fault>,
    /// Whether it was ended before all was done.
    pub interrupted: bool,
}

/// How far it is: bytes of files of entries.
pub type Doing<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Imports. `doing` is told how far it is, in bytes, and ends it by returning `false`.
pub fn import_elog(store: &dyn Store, source: &Source, doing: Doing<'_>) -> Result<Report, ImportError> {
    let mut report = Report::default();
    let mut books = match &source.config {
        Some(path) => {
            let config = config::parse(&read(path)?);
            report.faults = config_faults(path, &config);
            configured(&config, &source.logbooks)
        }
        None => folders(&source.logbooks)?,
    };
    if let Some(missing) = source.only.iter().find(|name| !books.iter().any(|(book, _)| same_name(&book.name, name))) {
        return Err(ImportError::NoBook(missing.clone()));
    }
    books.retain(|(book, _)| source.only.is_empty() || source.only.iter().any(|name| same_name(&book.name, name)));
    let mut total = 0;
    let mut imports = Vec::new();
    for (book, directory) in books {
        let mut unreadable = Vec::new();
        let files = if directory.is_dir() { files::days(&directory, &mut unreadable) } else { Vec::new() };
        total += files.iter().map(|(_, size)| size * 2).sum::<u64>();
        imports.push((book, directory, files, unreadable));
    }
    let mut done = 0;
    for (book, directory, files, unreadable) in imports {
        let faults = unreadable.into_iter().map(|(file, what)| Fault { file, at: 0, what }).collect();
        let report_of = BookReport { book: book.name.clone(), directory, faults, ..BookReport::default() };
        let mut import = Importing { store, source, book, files, report: report_of, done, total, go_on: true };
        import.run(doing)?;
        done = import.done;
        report.interrupted |= !import.go_on;
        report.books.push(import.report);
        if report.interrupted {
            break;
        }
    }
    Ok(report)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, ImportError> {
    fs::read(path).map_err(|error| ImportError::Io { path: path.to_owned(), error })
}

fn config_faults(path: &Path, config: &Config) -> Vec<Fault> {
    let fault = |(line, why): &(usize, String)| Fault { file: path.to_owned(), at: 0, what: format!("line {line}: {why}") };
    config.faults.iter().map(fault).collect()
}

pub(super) fn configured(config: &Config, logbooks: &Path) -> Vec<(Book, PathBuf)> {
    config.logbooks().iter().map(|logbook| (logbook.book(), logbook.directory(logbooks))).collect()
}

/// Every folder is a book.
pub(super) fn folders(logbooks: &Path) -> Result<Vec<(Book, PathBuf)>, ImportError> {
    let io = |error| ImportError::Io { path: logbooks.to_owned(), error };
    let mut found = Vec::new();
    for folder in fs::read_dir(logbooks).map_err(io)? {
        let folder = folder.map_err(io)?.path();
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if folder.is_dir() {
            found.push((Book::new(&name, vec![]), folder));
        }
    }
    found.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    Ok(found)
}

/// When an entry was written, and what is wrong with what it says about that. `zone` is the zone of dates that do not say theirs.
pub(super) fn date_of(entry: &FileEntry, file: &Path, zone: i16) -> (Option<(Time, i16)>, Option<String>) {
    if let Some(date) = date::parse(&entry.date, zone) {
        return (Some(date), None);
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_file = files::day(&name);
    let done = if of_file.is_some() { "the day of the file taken" } else { "left out" };
    (of_file.map(|date| (date, 0)), Some(format!("entry {}: '{}' is no date: {done}", entry.id, entry.date)))
}

/// What is odd in what an entry answers.
pub(super) fn odd(id: u32, line: &Line) -> Option<String> {
    line.odd.map(|odd| match odd {
        Odd::Missing(parent) => format!("entry {id}: it answers {parent}, which is not there"),
        Odd::Circle => format!("entry {id}: its answers lead back to it; it begins the thread"),
    })
}

/// Where an entry is and what its thread needs to know.
struct Found {
    id: u32,
    file: usize,
    begin: usize,
    end: usize,
    date: Time,
    zone: i16,
    parent: Option<u32>,
}

struct Importing<'a> {
    store: &'a dyn Store,
    source: &'a Source,
    book: Book,
    files: Vec<(PathBuf, u64)>,
    report: BookReport,
    done: u64,
    total: u64,
    go_on: bool,
}

/// Entries that go into one transaction.
#[derive(Default)]
struct Batch {
    entries: Vec<Imported>,
    /// Where each was found: its file, its first byte.
    places: Vec<(usize, usize)>,
    uploads: Vec<Upload>,
    bytes: u64,
}

impl Importing<'_> {
    fn fault(&mut self, file: usize, at: usize, what: impl Into<String>) {
        if self.report.faults.len() >= MAX_FAULTS {
            self.report.more_faults += 1;
            return;
        }
        let file = self.files.get(file).map_or_else(|| self.report.directory.clone(), |(file, _)| file.clone());
        self.report.faults.push(Fault { file, at: at as u64, what: what.into() });
    }

    fn advance(&mut self, bytes: u64, doing: Doing<'_>) {
        self.done += bytes;
        self.go_on = self.go_on && doing(self.done, self.total);
    }

    fn run(&mut self, doing: Doing<'_>) -> Result<(), ImportError> {
        if !self.report.directory.is_dir() {
            self.fault(usize::MAX, 0, "there is no such folder: no entries");
        }
        for (name, _) in self.book.elog.clone() {
            match effect(&name) {
                Effect::Honoured => {}
                Effect::Kept => self.report.kept_options.push(name),
                Effect::Unknown => self.report.unknown_options.push(name),
            }
        }
        if let Err(why) = Book::new(&self.book.name, vec![]).check() {
            self.fault(usize::MAX, 0, format!("{why}: the logbook is left out"));
            return Ok(());
        }
        let there = match self.store.book(&self.book.name) {
            Ok(there) => Some(there),
            Err(StoreError::NoBook(_)) => None,
            Err(other) => return Err(other.into()),
        };
        if let (None, Some(there)) = (&self.source.config, &there) {
            // Without a configuration only names of attributes are known: what the book is was decided before.
            self.book = there.clone();
        }
        let mut found = self.survey(doing)?;
        if !self.go_on {
            return Ok(());
        }
        self.agree_on_book(there)?;
        let threads = self.threads(&mut found);
        found.sort_by_key(|found| (found.date, found.id));
        self.entries(&found, &threads, doing)
    }

    /// Where the entries are.
    fn survey(&mut self, doing: Doing<'_>) -> Result<Vec<Found>, ImportError> {
        let (mut all, mut known): (Vec<Found>, HashMap<u32, ()>) = (Vec::new(), HashMap::new());
        let names: Vec<String> = self.book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let mut seen: Vec<String> = Vec::new();
        for file in 0..self.files.len() {
            let (path, size) = self.files[file].clone();
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.fault(file, 0, format!("{error}: left out"));
                    continue;
                }
            };
            let (ranges, faults) = entries::split(&bytes);
            faults.into_iter().for_each(|(at, what)| self.fault(file, at, what));
            for range in ranges {
                let Some(entry) = entries::parse(&bytes[range.clone()], &names) else {
                    self.fault(
                        file,
                        range.start,
                        format!("an entry whose number is not one from 1 to {}: left out", entries::MAX_ID),
                    );
                    continue;
                };
                if known.insert(entry.id, ()).is_some() {
                    self.fault(file, range.start, format!("entry {} a second time: left out", entry.id));
                    continue;
                }
                for what in &entry.faults {
                    self.fault(file, range.start, format!("entry {}: {what}", entry.id));
                }
                let Some((date, zone)) = self.date(file, &range, &entry) else { continue };
                for (name, _) in &entry.attributes {
                    if !seen.iter().any(|seen| same_name(seen, name)) {
                        seen.push(name.clone());
                    }
                }
                let (begin, end, parent) = (range.start, range.end, entry.parent);
                all.push(Found { id: entry.id, file, begin, end, date, zone, parent });
            }
            self.advance(size, doing);
            if !self.go_on {
                break;
            }
        }
        if self.source.config.is_none() {
            seen.retain(|name| self.book.attribute(name).is_none());
            self.book.attributes.extend(seen.iter().map(|name| AttributeDef::new(name, AttributeKind::Text)));
        }
        self.report.entries = all.len() as u64;
        Ok(all)
    }

    fn date(&mut self, file: usize, range: &std::ops::Range<usize>, entry: &FileEntry) -> Option<(Time, i16)> {
        let (date, fault) = date_of(entry, &self.files[file].0, self.source.zone);
        if let Some(what) = fault {
            self.fault(file, range.start, what);
        }
        date
    }

    /// The book in the store has what the source's has, and what it has more of its own.
    fn agree_on_book(&mut self, there: Option<Book>) -> Result<(), ImportError> {
        let mut kept: Vec<AttributeDef> = Vec::new();
        for attribute in std::mem::take(&mut self.book.attributes) {
            match check_said(&[EntryAttribute::new(&attribute.name, "")]) {
                Ok(()) => kept.push(attribute),
                Err(why) => self.fault(usize::MAX, 0, format!("{why}: the attribute is left out")),
            }
        }
        self.book.attributes = kept;
        for own in there.into_iter().flat_map(|there| there.attributes) {
            match self.book.attributes.iter_mut().find(|attribute| same_name(&attribute.name, &own.name)) {
                // Options that were added here stay.
                Some(attribute) => {
                    let new: Vec<String> = own.options.into_iter().filter(|option| !attribute.options.contains(option)).collect();
                    attribute.options.extend(new);
                }
                None => self.book.attributes.push(own),
            }
        }
        Ok(self.store.put_book(&self.book)?)
    }

    /// The first entry of each one's thread. What is answered and is not there is told, and the answer begins a thread.
    fn threads(&mut self, found: &mut [Found]) -> HashMap<u32, u32> {
        let lines = lineage(&found.iter().map(|found| (found.id, found.parent)).collect::<Vec<_>>());
        for found in found {
            let Some(line) = lines.get(&found.id) else { continue };
            found.parent = line.parent;
            if let Some(what) = odd(found.id, line) {
                self.fault(found.file, found.begin, what);
            }
        }
        lines.into_iter().map(|(id, line)| (id, line.thread)).collect()
    }

    fn entries(&mut self, found: &[Found], threads: &HashMap<u32, u32>, doing: Doing<'_>) -> Result<(), ImportError> {
        let known: HashMap<u32, [u8; 16]> = self.store.digests(&self.book.name)?.into_iter().collect();
        let names: Vec<String> = self.book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let mut open: Option<(usize, Vec<u8>)> = None;
        let mut batch = Batch::default();
        for found in found {
            if open.as_ref().is_none_or(|(file, _)| *file != found.file) {
                // What cannot be read any longer is told with each of its entries.
                open = Some((found.file, fs::read(&self.files[found.file].0).unwrap_or_default()));
            }
            let Some(bytes) = open.as_ref().and_then(|(_, bytes)| bytes.get(found.begin..found.end)) else {
                self.fault(
                    found.file,
                    found.begin,
                    format!("entry {}: the file cannot be read any longer, or was changed meanwhile; import once more", found.id),
                );
                continue;
            };
            let size = bytes.len() as u64;
            match entries::parse(bytes, &names).filter(|entry| entry.id == found.id) {
                None => self.fault(found.file, found.begin, format!("entry {}: the file was changed meanwhile", found.id)),
                Some(entry) => {
                    let digest = digest(&self.report.directory, bytes, &entry, found.parent);
                    self.report.attachments += entry.attachments.len() as u64;
                    if known.get(&found.id) == Some(&digest) {
                        self.report.same += u64::from(entry.draft.is_none());
                    } else {
                        self.entry(found, threads, entry, digest, &mut batch);
                        batch.bytes += size;
                    }
                }
            }
            if batch.entries.len() >= TOGETHER || batch.bytes >= TOGETHER_BYTES {
                self.send(&mut batch)?;
            }
            self.advance(size, doing);
            if !self.go_on {
                break;
            }
        }
        self.send(&mut batch)?;
        // A few entries more do not need it, and it holds up who writes.
        if self.report.new + self.report.changed >= MANY {
            self.store.imported()?;
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), ImportError> {
        let batch = std::mem::take(batch);
        if batch.entries.is_empty() {
            return Ok(());
        }
        let about: Vec<(u32, Option<String>)> =
            batch.entries.iter().map(|imported| (imported.id, imported.draft.clone())).collect();
        let outcomes = self.store.import(&self.book.name, batch.entries, batch.uploads, BY)?;
        for (((id, draft), (file, begin)), outcome) in about.into_iter().zip(batch.places).zip(outcomes) {
            self.count(id, draft.as_deref(), outcome, (file, begin));
        }
        Ok(())
    }

    fn count(&mut self, id: u32, draft: Option<&str>, outcome: ImportOutcome, (file, begin): (usize, usize)) {
        if let Some(what) = self.report.count(id, draft, outcome) {
            self.fault(file, begin, what);
        }
    }

    fn entry(&mut self, found: &Found, threads: &HashMap<u32, u32>, entry: FileEntry, digest: [u8; 16], batch: &mut Batch) {
        let Found { id, date, zone, parent, .. } = *found;
        let thread = threads.get(&id).copied().unwrap_or(id);
        let at = Whereabouts { id, date, zone, parent, thread };
        let taken = take(self.store, &self.book, &self.report.directory, at, entry, digest);
        for what in taken.faults {
            self.fault(found.file, found.begin, format!("entry {id}: {what}"));
        }
        batch.bytes += taken.bytes;
        batch.uploads.extend(taken.uploads);
        if let Some(imported) = taken.imported {
            batch.entries.push(imported);
            batch.places.push((found.file, found.begin));
        }
    }
}
