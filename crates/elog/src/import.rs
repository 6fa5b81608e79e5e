//! Imports ELOG's logbooks into a store.
//!
//! Each book is read twice. The first pass finds the positions of its entries and their parents. The second reads entry
//! by entry in the order of dates, with their attachments, some hundreds in a transaction. So memory holds a few bytes
//! for each entry and the texts of a transaction, however long a file is. A thread is known before its entries are
//! written, and an entry that cannot be stored is no part of it. An interrupted import continues where it was: an entry
//! whose digest is in the store is not touched.

use std::{
    collections::HashMap,
    fs::{self, File},
    path::{Path, PathBuf},
};

use tampu_logbook::{
    attachment::Upload,
    book::{AttributeDef, AttributeKind, Book, EntryAttribute, change::BookEdit, check_said, elog_options::key, same_name},
    entry::MAX_ID,
    people::{PeopleError, password_files::PasswordFiles},
    store::{ImportOutcome, Imported, Store, StoreError, naming::current_name},
};
use tampu_types::Time;

use crate::{
    FileFault,
    access_report::{self, GuestRights, access_report},
    config::{self, ElogConfig},
    convert::{EntryPosition, convert, digest, refusal},
    date, decode,
    entries::{self, FileEntry},
    entry_reader::{EntryReader, FilePart},
    fault_lines::number_lines,
    files,
    options::check,
    pages::clock::Zone,
    renumber::Renumber,
    site_files, site_record,
    site_zone::{self, DatesOfZone, SourceZone},
    thread_links::{BrokenLink, ThreadLink, ThreadLinks},
};
use found::{Found, SecondEntry, bytes_at, push_to_long};
pub use report::{BookReport, ImportReport};

mod found;
mod report;

/// Maximum number of entries in a transaction, and of the bytes of their texts and attachments.
const TOGETHER: usize = 500;
const TOGETHER_BYTES: u64 = 16 << 20;
/// Number of new entries after which the store optimises its search index.
const MANY: u64 = 1000;
/// The number of faults of a book that are reported one by one.
const MAX_FAULTS: usize = 10_000;
/// The author of imported entries.
pub(super) const BY: &str = "import-elog";

/// The source of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportSource {
    /// The path of `elogd.cfg`. Without it every folder with entries is a book, with the attributes of its entries.
    pub config: Option<PathBuf>,
    /// The parent folder of the books' folders.
    pub logbooks: PathBuf,
    /// The books' names; all books if empty.
    pub only: Vec<String>,
    /// The zone of dates without one, which also becomes that of the pages.
    pub zone: SourceZone,
    /// True to poll the files even if the kernel reports changes, because it does not report changes by another host.
    pub poll: bool,
    /// The rights of guests. `None` gives guests of new books those of elogd, and leaves those of known books alone.
    pub guests: Option<GuestRights>,
}

/// The reason for an import that could not begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or folder failed.
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: std::io::Error },
    /// The source has no book of this name.
    #[error("the source has no logbook '{0}'")]
    NoBook(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The access rules cannot be read.
    #[error(transparent)]
    Access(#[from] PeopleError),
}

/// A callback that receives the bytes done and the bytes in all, twice those of the files. It returns false to
/// interrupt.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Imports a site. `progress` receives the bytes done and in all, and returns false to interrupt.
pub fn import_elog(store: &dyn Store, source: &ImportSource, progress: Progress<'_>) -> Result<ImportReport, ImportError> {
    let mut report = ImportReport::default();
    let mut books = match &source.config {
        Some(path) => {
            let bytes = read(path)?;
            report.options = Some(check(&bytes));
            let config = config::parse(&bytes);
            report.public_host = config.public_host();
            report.faults = config_faults(path, &config);
            site_record::store(store, &config)?;
            let left_out = site_files::import(store, &config, path, &source.logbooks)?;
            report.faults.extend(left_out.iter().map(|line| config_fault(path, line)));
            let mut books = configured(&config, &source.logbooks);
            books.iter_mut().for_each(|(book, folder)| read_preset_texts(book, path, &source.logbooks, folder));
            books
        }
        None => folders(&source.logbooks)?,
    };
    if let Some(missing) = source.only.iter().find(|name| !books.iter().any(|(book, _)| same_name(&book.name, name))) {
        return Err(ImportError::NoBook(missing.clone()));
    }
    books.retain(|(book, _)| source.only.is_empty() || source.only.iter().any(|name| same_name(&book.name, name)));
    follow_names(store, &mut books)?;
    let mut total = 0;
    let mut imports = Vec::new();
    for (book, directory) in books {
        let mut unreadable = Vec::new();
        let files = if directory.is_dir() { files::days(&directory, &mut unreadable) } else { Vec::new() };
        total += files.iter().map(|(_, size)| size * 2).sum::<u64>();
        imports.push((book, directory, files, unreadable));
    }
    let there = store.books()?;
    let new = imports.iter().map(|(book, ..)| book);
    let others =
        there.iter().map(|info| &info.book).filter(|known| !imports.iter().any(|(new, ..)| same_name(&new.name, &known.name)));
    let password_files = &PasswordFiles::of(new.chain(others));
    let (mut done, mut dates) = (0, DatesOfZone::default());
    for (book, directory, files, unreadable) in imports {
        let faults = unreadable.into_iter().map(|(file, what)| FileFault { file, at: 0, what, line: 0 }).collect();
        let report_of = BookReport { book: book.name.clone(), directory, faults, ..BookReport::default() };
        let mut import =
            Importing { store, source, password_files, book, files, report: report_of, done, total, go_on: true, dates };
        import.run(progress)?;
        number_lines(&mut import.report.faults);
        (done, dates) = (import.done, import.dates);
        report.interrupted |= !import.go_on;
        report.books.push(import.report);
        if report.interrupted {
            return Ok(report);
        }
    }
    report.zone = site_zone::store(store, &source.zone, dates)?;
    Ok(report)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, ImportError> {
    fs::read(path).map_err(|error| ImportError::Io { path: path.to_owned(), error })
}

fn config_faults(path: &Path, config: &ElogConfig) -> Vec<FileFault> {
    config.faults.iter().map(|fault| config_fault(path, fault)).collect()
}

fn config_fault(path: &Path, (line, why): &(usize, String)) -> FileFault {
    FileFault { file: path.to_owned(), at: 0, what: format!("line {line}: {why}"), line: 0 }
}

pub(super) fn configured(config: &ElogConfig, logbooks: &Path) -> Vec<(Book, PathBuf)> {
    config.logbooks().iter().map(|logbook| (logbook.book(), logbook.directory(logbooks))).collect()
}

/// Gives books the names that they have here, if they were renamed here after an earlier import.
pub(super) fn follow_names(store: &dyn Store, books: &mut [(Book, PathBuf)]) -> Result<(), StoreError> {
    for (book, _) in books {
        if let Err(StoreError::NoBook(_)) = store.book(&book.name)
            && let Some(name) = current_name(store, &book.name)?
        {
            book.name = name;
        }
    }
    Ok(())
}

/// Maximum size of a file that `Preset text` names.
const MAX_PRESET: u64 = 250_000;

/// Replaces each `Preset text` that names a file beside the configuration, or in the folder of the logbooks or the book, by the text of the file, as elogd does.
fn read_preset_texts(book: &mut Book, config: &Path, logbooks: &Path, folder: &Path) {
    let config = config.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let roots = [config, logbooks, folder];
    for (name, value) in &mut book.elog {
        let bare = name.split_once('}').filter(|_| name.starts_with('{')).map_or(name.as_str(), |(_, bare)| bare);
        if key(bare) != "preset text" || value.is_empty() || value.contains('\n') {
            continue;
        }
        let Some(file) = roots.iter().find_map(|root| site_files::inside(&roots, &root.join(value.as_str()))) else { continue };
        if fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= MAX_PRESET)
            && let Ok(bytes) = fs::read(&file)
        {
            *value = decode(&bytes).replace('\r', "").trim_end_matches('\n').replace('\n', "\\n");
        }
    }
}

/// Returns the books of a site without configuration: every folder is a book.
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

/// Returns the date of an entry with its zone, and the fault of its date line. `zone` is for dates without a zone.
pub(super) fn date_of(entry: &FileEntry, file: &Path, zone: &Zone) -> (Option<(Time, i16)>, Option<String>) {
    if let Some(date) = date::parse(&entry.date, zone) {
        return (Some(date), None);
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_file = files::day(&name);
    let done = if of_file.is_some() { "the day of the file is used" } else { "left out" };
    (of_file.map(|date| (date, 0)), Some(format!("entry {}: invalid date '{}': {done}", entry.id, entry.date)))
}

/// Returns the fault of an entry that names a wrong parent.
pub(super) fn link_fault(id: u32, line: &ThreadLink) -> Option<String> {
    line.broken.map(|broken| match broken {
        BrokenLink::Missing(parent) => format!("entry {id}: it replies to {parent}, which is missing"),
        BrokenLink::Circle => format!("entry {id}: its replies lead back to it; it begins the thread"),
    })
}

struct Importing<'a> {
    store: &'a dyn Store,
    source: &'a ImportSource,
    /// The password files of all logbooks, those of this import included.
    password_files: &'a PasswordFiles,
    book: Book,
    files: Vec<(PathBuf, u64)>,
    report: BookReport,
    done: u64,
    total: u64,
    go_on: bool,
    dates: DatesOfZone,
}

/// Entries of one transaction.
#[derive(Default)]
struct Batch {
    entries: Vec<Imported>,
    /// The position of each entry: index of its file, first byte.
    places: Vec<(usize, u64)>,
    uploads: Vec<Upload>,
    bytes: u64,
}

impl Importing<'_> {
    fn fault(&mut self, file: usize, at: u64, what: impl Into<String>) {
        if self.report.faults.len() >= MAX_FAULTS {
            self.report.more_faults += 1;
            return;
        }
        let file = self.files.get(file).map_or_else(|| self.report.directory.clone(), |(file, _)| file.clone());
        self.report.faults.push(FileFault { file, at, what: what.into(), line: 0 });
    }

    fn advance(&mut self, bytes: u64, progress: Progress<'_>) {
        self.done += bytes;
        self.go_on = self.go_on && progress(self.done, self.total);
    }

    fn run(&mut self, progress: Progress<'_>) -> Result<(), ImportError> {
        if !self.report.directory.is_dir() {
            self.fault(usize::MAX, 0, "the folder is missing: no entries");
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
            // Without a configuration only the names of attributes are known: the book in the store decides about the rest.
            self.book = there.clone();
        }
        let mut found = self.survey(progress)?;
        if !self.go_on {
            return Ok(());
        }
        if there.is_none() && self.source.config.is_some() {
            // Before the book, so that an interrupted import leaves none without its rights.
            access_report::give_rights_of_elog(self.store, &self.book, self.source.guests)?;
        } else if let Some(guests) = self.source.guests {
            access_report::change_guests(self.store, &self.book, guests)?;
        }
        self.agree_on_book(there)?;
        self.report.access = Some(access_report(self.store, &self.book, self.password_files)?);
        let threads = self.threads(&mut found);
        found.sort_unstable_by_key(|found| (found.date, found.id));
        self.entries(&found, &threads, progress)
    }

    /// Finds the entries of all files in the first pass.
    fn survey(&mut self, progress: Progress<'_>) -> Result<Vec<Found>, ImportError> {
        // The place of the first entry of each number; none if that entry is left out.
        let mut firsts: HashMap<u32, Option<u32>> = HashMap::new();
        let (mut all, mut again): (Vec<Found>, Vec<SecondEntry>) = Default::default();
        let names: Vec<String> = self.book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let mut seen: Vec<String> = Vec::new();
        for file in 0..self.files.len() {
            let (path, size) = self.files[file].clone();
            let mut reader = match File::open(&path) {
                Ok(opened) => EntryReader::new(opened),
                Err(error) => {
                    self.fault(file, 0, format!("{error}: left out"));
                    continue;
                }
            };
            loop {
                let (range, bytes) = match reader.read_part() {
                    Ok(Some(FilePart::Entry(range, bytes))) => (range, bytes),
                    Ok(Some(FilePart::Fault(at, what))) => {
                        self.fault(file, at, what);
                        continue;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.fault(file, 0, format!("{error}: the rest of the file is left out"));
                        break;
                    }
                };
                let Some(entry) = entries::parse(&bytes, &names) else { continue };
                // The number that it has here is known when all numbers are.
                let first = firsts.get(&entry.id).copied();
                let is_second = first.is_some();
                if first.flatten().is_some_and(|first| self.is_copy(&all[first as usize], &bytes)) {
                    self.fault(file, range.start, format!("entry {} occurs a second time, as it is: read once", entry.id));
                    continue;
                }
                let is_again = is_second || entry.id == 0;
                if !is_again {
                    firsts.insert(entry.id, None);
                }
                let told = if entry.id == 0 { format!("entry '{}'", entry.number) } else { format!("entry {}", entry.id) };
                for what in &entry.faults {
                    self.fault(file, range.start, format!("{told}: {what}"));
                }
                let Some((date, zone)) = self.date(file, range.start, &entry) else { continue };
                for (name, _) in &entry.attributes {
                    if !seen.iter().any(|seen| same_name(seen, name)) {
                        seen.push(name.clone());
                    }
                }
                if date::has_zone(&entry.date) {
                    self.dates.count(&self.source.zone, date, zone);
                }
                let (id, parent) = (entry.id, entry.parent);
                // The parent can be missing.
                let folder = &self.report.directory;
                let digests = is_again.then(|| [parent, None].map(|parent| digest(folder, &bytes, &entry, parent)));
                if let Some(what) = refusal(&self.book, entry) {
                    self.fault(file, range.start, format!("{told}: {what}"));
                    continue;
                }
                again.extend(digests.map(|digests| SecondEntry { nth: all.len(), told, digests }));
                if !is_again {
                    firsts.insert(id, Some(all.len() as u32));
                }
                let length = (range.end - range.start) as u32;
                let found = Found { id, source: id, file: file as u32, length, begin: range.start, date, parent, zone };
                push_to_long(&mut all, found);
            }
            self.advance(size, progress);
            if !self.go_on {
                break;
            }
        }
        self.renumber(&mut all, again, firsts)?;
        if self.source.config.is_none() {
            seen.retain(|name| self.book.attribute(name).is_none());
            self.book.attributes.extend(seen.iter().map(|name| AttributeDef::new(name, AttributeKind::Text)));
        }
        self.report.entries = all.len() as u64;
        Ok(all)
    }

    /// Returns true if these bytes are the same entry as the first one of their number.
    fn is_copy(&self, first: &Found, bytes: &[u8]) -> bool {
        let read = || bytes_at(&File::open(&self.files[first.file()].0).ok()?, &first.place()).ok();
        read().is_some_and(|first| entries::lasting(&first).eq(entries::lasting(bytes)))
    }

    /// Gives numbers to entries that have none of their own, and reports them.
    fn renumber(
        &mut self,
        all: &mut Vec<Found>,
        again: Vec<SecondEntry>,
        known: HashMap<u32, Option<u32>>,
    ) -> Result<(), ImportError> {
        if again.is_empty() {
            return Ok(());
        }
        let name = self.book.name.clone();
        let mut numbers = Renumber::new(self.store, &name, known.into_keys().collect())?;
        for SecondEntry { nth, told, digests } in again {
            let (file, at, is_bad) = (all[nth].file(), all[nth].begin, all[nth].source == 0);
            let why = if is_bad { format!("has no valid number (1 to {MAX_ID})") } else { "occurs a second time".to_owned() };
            let Some(id) = numbers.number(&digests)? else {
                self.fault(file, at, format!("{told} {why}, and all numbers are used: left out"));
                continue;
            };
            all[nth].id = id;
            self.report.renumbered.push(id);
            self.fault(file, at, format!("{told} {why}: it is entry {id} here"));
        }
        all.retain(|found| found.id != 0);
        Ok(())
    }

    fn date(&mut self, file: usize, at: u64, entry: &FileEntry) -> Option<(Time, i16)> {
        let (date, fault) = date_of(entry, &self.files[file].0, self.source.zone.zone());
        if let Some(what) = fault {
            self.fault(file, at, what);
        }
        date
    }

    /// Brings the book in the store into line with the source. The store's additional settings stay.
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
        self.store.change_book(BookEdit::of(&self.book, BY))?;
        Ok(())
    }

    /// Returns the first entry of each entry's thread. A missing parent is reported, and its reply begins a thread.
    fn threads(&mut self, found: &mut [Found]) -> ThreadLinks {
        let lines = ThreadLinks::new(found.iter().map(|found| (found.id, found.parent)));
        for found in found {
            let line = lines.of(found.id);
            found.parent = line.parent;
            if let Some(what) = link_fault(found.id, &line) {
                self.fault(found.file(), found.begin, what);
            }
        }
        lines
    }

    fn entries(&mut self, found: &[Found], threads: &ThreadLinks, progress: Progress<'_>) -> Result<(), ImportError> {
        let known: HashMap<u32, [u8; 16]> = self.store.digests(&self.book.name)?.into_iter().collect();
        let names: Vec<String> = self.book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let mut open: Option<(usize, Option<File>)> = None;
        let mut batch = Batch::default();
        for found in found {
            if open.as_ref().is_none_or(|(file, _)| *file != found.file()) {
                // A file that has become unreadable is reported with each of its entries.
                open = Some((found.file(), File::open(&self.files[found.file()].0).ok()));
            }
            let file = open.as_ref().and_then(|(_, file)| file.as_ref());
            let Some(bytes) = file.and_then(|file| bytes_at(file, &found.place()).ok()) else {
                self.fault(
                    found.file(),
                    found.begin,
                    format!("entry {}: the file cannot be read, or was changed meanwhile; import again", found.id),
                );
                continue;
            };
            let size = bytes.len() as u64;
            match entries::parse(&bytes, &names).filter(|entry| entry.id == found.source) {
                None => self.fault(found.file(), found.begin, format!("entry {}: the file was changed meanwhile", found.id)),
                Some(entry) => {
                    let digest = digest(&self.report.directory, &bytes, &entry, found.parent);
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
            self.advance(size, progress);
            if !self.go_on {
                break;
            }
        }
        self.send(&mut batch)?;
        // A few more entries do not need it, and it blocks other writers.
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

    fn count(&mut self, id: u32, draft: Option<&str>, outcome: ImportOutcome, (file, begin): (usize, u64)) {
        if let Some(what) = self.report.count(id, draft, outcome) {
            self.fault(file, begin, what);
        }
    }

    fn entry(&mut self, found: &Found, threads: &ThreadLinks, entry: FileEntry, digest: [u8; 16], batch: &mut Batch) {
        let Found { id, date, zone, parent, .. } = *found;
        let thread = threads.of(id).thread;
        let at = EntryPosition { id, date, zone, parent, thread };
        let converted = convert(self.store, &self.book, &self.report.directory, at, entry, digest);
        for what in converted.faults {
            self.fault(found.file(), found.begin, format!("entry {id}: {what}"));
        }
        batch.bytes += converted.bytes;
        batch.uploads.extend(converted.uploads);
        if let Some(imported) = converted.imported {
            batch.entries.push(imported);
            batch.places.push((found.file(), found.begin));
        }
    }
}
