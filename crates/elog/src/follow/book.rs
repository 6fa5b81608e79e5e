//! One followed book: the entries of its files when they were last read, and the changes since.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tampu_logbook::{
    book::Book,
    entry::{Change, EntryRef},
    store::{Store, StoreError, pages::revisions},
};

use crate::{
    FileFault,
    convert::{EntryPosition, convert, digest, refusal},
    entries::{self, FileEntry},
    entry_reader::{EntryReader, FilePart},
    fault_lines::number_lines,
    files,
    follow::watch::FileStamp,
    import::{BY, BookReport, date_of, link_fault},
    pages::clock::Zone,
    thread_links::ThreadLinks,
};

/// The time without changes after which a file is read, because elogd writes an entry in several pieces.
const SETTLES: Duration = Duration::from_millis(120);
/// The time after which an entry that is in no file counts as deleted. To change an entry, elogd truncates the file and
/// writes its end again.
const GONE: Duration = Duration::from_millis(400);
/// The number of entries that may be deleted together with all files; if there were more, a disk was probably unmounted.
const FEW: usize = 10;

/// A book that is followed.
#[derive(Debug)]
pub struct FollowedBook {
    pub book: Book,
    directory: PathBuf,
    zone: Zone,
    files: BTreeMap<PathBuf, DayFile>,
    /// Files that differ from their last reading, with the time since which they are unchanged.
    pending: HashMap<PathBuf, (Option<FileStamp>, Instant)>,
    /// Entries that are in no file, with the time since which they are missing.
    leaving: HashMap<u32, Instant>,
    /// The faults that were reported, so that each is reported once.
    reported: HashSet<String>,
    /// True while the source is missing as a whole; then no entry is deleted.
    away: bool,
    /// Entries that have another number here, with their digests. An import of everything reads them.
    renumbered: HashMap<u32, [u8; 16]>,
}

/// A day's file at its last reading.
#[derive(Debug)]
struct DayFile {
    /// `None` if the file has to be read in any case.
    stamp: Option<FileStamp>,
    /// The entries: number, parent, and the digest that recognises the entry.
    entries: Vec<(u32, Option<u32>, [u8; 16])>,
    /// Attachments that were missing.
    missing: Vec<String>,
    /// Entries that cannot be stored as they are there. An earlier version of them stays.
    refused: Vec<u32>,
    /// True if a part of the file could not be read, so that its entries are unknown. Then no entry counts as deleted.
    is_obscured: bool,
}

/// Content of a day's file.
#[derive(Default)]
struct Reading {
    parsed: Vec<Parsed>,
    faults: PlacedFaults,
    refused: Vec<u32>,
    is_obscured: bool,
}

/// Returns the state of all files of a folder.
pub fn stamps(directory: &Path) -> BTreeMap<PathBuf, Option<FileStamp>> {
    let days = files::days(directory, &mut Vec::new());
    days.into_iter().map(|(path, _)| FileStamp::of(&path).map(|stamp| (path, stamp))).filter_map(Result::ok).collect()
}

impl FollowedBook {
    /// Begins to follow a book that was just imported. `before` is the state of its files before the import.
    pub fn begin(
        store: &dyn Store,
        book: Book,
        directory: PathBuf,
        zone: Zone,
        before: BTreeMap<PathBuf, Option<FileStamp>>,
        renumbered: &[u32],
    ) -> Result<FollowedBook, StoreError> {
        let mut followed = FollowedBook {
            book,
            directory,
            zone,
            files: BTreeMap::new(),
            pending: HashMap::new(),
            leaving: HashMap::new(),
            reported: HashSet::new(),
            away: false,
            renumbered: HashMap::new(),
        };
        let mut parsed: Vec<(PathBuf, Option<FileStamp>, Reading)> = Vec::new();
        for (path, stamp) in before {
            // A file that has changed meanwhile is read again as a whole.
            let reading = followed.parse(&path);
            let same = stamp.is_some() && FileStamp::of(&path).is_ok_and(|is| is == stamp);
            let unknown = || Reading { is_obscured: true, ..Reading::default() };
            parsed.push(match reading {
                Ok(reading) if same => (path, stamp, reading),
                _ => (path, None, unknown()),
            });
        }
        let entries = parsed.iter().flat_map(|(_, _, file)| &file.parsed).map(|parsed| &parsed.entry);
        let lines = ThreadLinks::new(entries.map(|entry| (entry.id, entry.parent)));
        for (path, stamp, reading) in parsed {
            let file = followed.known(stamp, &reading, &lines);
            followed.files.insert(path, file);
        }
        let digests = store.digests(&followed.book.name)?;
        followed.renumbered = digests.iter().copied().filter(|(id, _)| renumbered.contains(id)).collect();
        let there = followed.ids();
        let now = Instant::now();
        followed.away = there.is_empty() && digests.len() > FEW;
        let gone = digests.into_iter().map(|(id, _)| id).filter(|id| !there.contains(id));
        followed.leaving = gone.map(|id| (id, now)).collect();
        Ok(followed)
    }

    /// Returns the folders whose changes affect the book.
    pub fn folders(&self) -> Vec<PathBuf> {
        files::folders(&self.directory)
    }

    /// Returns true if the book has to be read again although no folder has changed.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty() || !self.leaving.is_empty() && !self.away && !self.is_obscured()
    }

    fn is_obscured(&self) -> bool {
        self.files.values().any(|file| file.is_obscured)
    }

    fn ids(&self) -> HashSet<u32> {
        let refused = self.files.values().flat_map(|file| &file.refused).copied();
        let renumbered = self.renumbered.keys().copied();
        self.files.values().flat_map(|file| &file.entries).map(|(id, ..)| *id).chain(refused).chain(renumbered).collect()
    }

    /// Imports the changes of its files that have settled. Returns `None` if there is nothing to report.
    pub fn look(&mut self, store: &dyn Store) -> Result<Option<BookReport>, StoreError> {
        let mut report = BookReport { book: self.book.name.clone(), directory: self.directory.clone(), ..BookReport::default() };
        let ready = self.changed(&mut report);
        if !ready.is_empty() {
            self.read(store, ready, &mut report)?;
        }
        self.delete(store, &mut report)?;
        report.faults.retain(|fault| self.reported.insert(fault.to_string()));
        number_lines(&mut report.faults);
        let quiet = BookReport { book: report.book.clone(), directory: report.directory.clone(), ..BookReport::default() };
        let quiet = BookReport { entries: report.entries, same: report.same, attachments: report.attachments, ..quiet };
        Ok((report != quiet).then_some(report))
    }

    /// Returns the files that have changed and settled.
    fn changed(&mut self, report: &mut BookReport) -> Vec<PathBuf> {
        let mut unreadable = Vec::new();
        let mut now: BTreeMap<PathBuf, Option<FileStamp>> = BTreeMap::new();
        for (path, _) in files::days(&self.directory, &mut unreadable) {
            match FileStamp::of(&path) {
                Ok(stamp) => drop(now.insert(path, stamp)),
                Err(error) => unreadable.push((path, format!("{error}: left as it was"))),
            }
        }
        let kept = |path: &Path| unreadable.iter().any(|(bad, _)| path.starts_with(bad));
        for path in self.files.keys() {
            // A file that cannot be read is not a deleted file.
            if !now.contains_key(path) && !kept(path) {
                now.insert(path.clone(), None);
            }
        }
        let left = now.values().any(Option::is_some);
        self.away = !left && self.ids().len().max(self.leaving.len()) > FEW;
        if self.away {
            unreadable.push((self.directory.clone(), "all files are missing: nothing is deleted here".to_owned()));
            now.clear();
        }
        report.faults.extend(unreadable.into_iter().map(|(file, what)| FileFault { file, at: 0, what, line: 0 }));
        self.pending.retain(|path, _| now.contains_key(path));
        let mut ready = Vec::new();
        for (path, stamp) in now {
            let came = |name: &String| files::attachment(&self.directory, name).is_some();
            let known = self.files.get(&path);
            if known.is_some_and(|known| known.stamp == stamp && stamp.is_some() && !known.missing.iter().any(came)) {
                self.pending.remove(&path);
                continue;
            }
            let (since_stamp, since) = self.pending.entry(path.clone()).or_insert((stamp, Instant::now()));
            if *since_stamp != stamp {
                (*since_stamp, *since) = (stamp, Instant::now());
            } else if since.elapsed() >= SETTLES {
                ready.push(path);
            }
        }
        ready
    }

    /// Reads files, and imports their new and changed entries.
    fn read(&mut self, store: &dyn Store, ready: Vec<PathBuf>, report: &mut BookReport) -> Result<(), StoreError> {
        let before = self.ids();
        let mut fresh: Vec<(PathBuf, FileStamp, Reading)> = Vec::new();
        let known: HashMap<u32, [u8; 16]> =
            self.files.values().flat_map(|file| &file.entries).map(|(id, _, digest)| (*id, *digest)).collect();
        for path in ready {
            let Some((Some(stamp), _)) = self.pending.remove(&path) else {
                self.files.remove(&path);
                continue;
            };
            match self.parse(&path) {
                Ok(mut reading) if FileStamp::of(&path).is_ok_and(|is| is == Some(stamp)) => {
                    self.faults(&path, std::mem::take(&mut reading.faults), &reading.parsed, report);
                    fresh.push((path, stamp, reading));
                }
                // Another program is writing the file: it is read again later.
                Ok(_) => drop(self.pending.insert(path, (Some(stamp), Instant::now()))),
                Err(error) => {
                    report.faults.push(FileFault { file: path, at: 0, what: format!("{error}: left as it was"), line: 0 })
                }
            }
        }
        let rest = self.files.iter().filter(|(path, _)| !fresh.iter().any(|(fresh, ..)| fresh == *path));
        let rest = rest.flat_map(|(_, file)| file.entries.iter().map(|(id, parent, _)| (*id, *parent)));
        let new = fresh.iter().flat_map(|(_, _, file)| file.parsed.iter().map(|parsed| (parsed.entry.id, parsed.entry.parent)));
        let lines = ThreadLinks::new(rest.chain(new));
        let (mut entries, mut uploads, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (path, stamp, reading) in fresh {
            let file = self.known(Some(stamp), &reading, &lines);
            for (Parsed { begin, bytes: _, entry }, (id, _, digest)) in reading.parsed.into_iter().zip(&file.entries) {
                report.attachments += entry.attachments.len() as u64;
                if known.get(id) == Some(digest) && before.contains(id) {
                    continue;
                }
                if self.renumbered.values().any(|renumbered| renumbered == digest) {
                    continue;
                }
                let fault = |what: String| FileFault { file: path.clone(), at: begin, what, line: 0 };
                let line = lines.of(*id);
                report.faults.extend(link_fault(*id, &line).map(fault));
                let (date, wrong) = date_of(&entry, &path, &self.zone);
                report.faults.extend(wrong.map(fault));
                let Some((date, zone)) = date else { continue };
                let at = EntryPosition { id: *id, date, zone, parent: line.parent, thread: line.thread };
                let converted = convert(store, &self.book, &self.directory, at, entry, *digest);
                report.faults.extend(converted.faults.into_iter().map(|what| fault(format!("entry {id}: {what}"))));
                uploads.extend(converted.uploads);
                if let Some(imported) = converted.imported {
                    places.push((imported.id, imported.draft.clone(), path.clone(), begin));
                    entries.push(imported);
                }
            }
            self.files.insert(path, file);
        }
        let there = self.ids();
        let now = Instant::now();
        self.leaving.retain(|id, _| !there.contains(id));
        for id in before.difference(&there) {
            self.leaving.entry(*id).or_insert(now);
        }
        report.entries = there.len() as u64;
        // A parent is imported before its replies.
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&at| places[at].0);
        let mut slots: Vec<Option<_>> = entries.into_iter().zip(places).map(Some).collect();
        let (entries, places): (Vec<_>, Vec<_>) = order.into_iter().filter_map(|at| slots[at].take()).unzip();
        if entries.is_empty() {
            return Ok(());
        }
        let outcomes = store.import(&self.book.name, entries, uploads, BY)?;
        for ((id, draft, file, begin), outcome) in places.into_iter().zip(outcomes) {
            let fault_of_entry = report.count(id, draft.as_deref(), outcome);
            report.faults.extend(fault_of_entry.map(|what| FileFault { file, at: begin, what, line: 0 }));
        }
        Ok(())
    }

    /// Deletes the entries that have been in no file for [`GONE`], if they are as they were imported.
    fn delete(&mut self, store: &dyn Store, report: &mut BookReport) -> Result<(), StoreError> {
        if self.away || self.is_obscured() || !self.pending.is_empty() {
            return Ok(());
        }
        let gone: Vec<u32> = self.leaving.iter().filter(|(_, since)| since.elapsed() >= GONE).map(|(id, _)| *id).collect();
        for id in gone {
            let at = EntryRef::new(&self.book.name, id);
            let last = match revisions(store, &at).try_fold(None, |_, revision| revision.map(|revision| Some(revision.what))) {
                Ok(last) => last,
                // The entry was a draft.
                Err(StoreError::NoEntry(_)) => None,
                Err(error) => return Err(error),
            };
            match last {
                None | Some(Change::Deleted) => {}
                Some(Change::Imported) => match store.delete(&at, BY, false) {
                    Ok(_) => report.deleted += 1,
                    Err(StoreError::Gone(_)) => report.gone += 1,
                    // A user is editing the entry: deleting it is tried again.
                    Err(StoreError::Locked { .. }) => continue,
                    Err(error) => return Err(error),
                },
                Some(_) => report.conflict(id),
            }
            self.leaving.remove(&id);
        }
        Ok(())
    }

    /// Reads the entries of a file that can be stored, and the faults between them.
    fn parse(&self, path: &Path) -> io::Result<Reading> {
        let names: Vec<String> = self.book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let (mut seen, mut read) = (HashSet::new(), Reading::default());
        let mut reader = EntryReader::new(File::open(path)?);
        while let Some(part) = reader.read_part()? {
            let (range, bytes) = match part {
                FilePart::Entry(range, bytes) => (range, bytes),
                FilePart::Fault(at, what) => {
                    read.faults.push((at, what));
                    read.is_obscured = true;
                    continue;
                }
            };
            let Some(entry) = entries::parse(&bytes, &names) else { continue };
            if entry.id == 0 || !seen.insert(entry.id) {
                let told = if entry.id == 0 { format!("entry '{}'", entry.number) } else { format!("entry {}", entry.id) };
                let what = format!("{told} has no number of its own: the next import of everything gives it one");
                if self.renumbered.is_empty() {
                    read.faults.push((range.start, what));
                }
                continue;
            }
            match refusal(&self.book, entry.clone()) {
                Some(what) => {
                    read.faults.push((range.start, format!("entry {}: {what}", entry.id)));
                    read.refused.push(entry.id);
                }
                None => read.parsed.push(Parsed { begin: range.start, bytes, entry }),
            }
        }
        Ok(read)
    }

    fn known(&self, stamp: Option<FileStamp>, reading: &Reading, lines: &ThreadLinks) -> DayFile {
        let parsed = &reading.parsed;
        let entry = |Parsed { bytes, entry, .. }: &Parsed| {
            let parent = lines.of(entry.id).parent;
            (entry.id, entry.parent, digest(&self.directory, bytes, entry, parent))
        };
        let names = parsed.iter().filter(|parsed| parsed.entry.draft.is_none()).flat_map(|parsed| &parsed.entry.attachments);
        let missing = names.filter(|name| files::attachment(&self.directory, name).is_none()).cloned().collect();
        let entries = parsed.iter().map(entry).collect();
        DayFile { stamp, entries, missing, refused: reading.refused.clone(), is_obscured: reading.is_obscured }
    }

    fn faults(&self, path: &Path, faults: PlacedFaults, parsed: &[Parsed], report: &mut BookReport) {
        let fault = |at: u64, what: String| FileFault { file: path.to_owned(), at, what, line: 0 };
        report.faults.extend(faults.into_iter().map(|(at, what)| fault(at, what)));
        for Parsed { begin, entry, .. } in parsed {
            report.faults.extend(entry.faults.iter().map(|what| fault(*begin, format!("entry {}: {what}", entry.id))));
        }
    }
}

/// Faults of a file, with their places in it.
type PlacedFaults = Vec<(u64, String)>;

/// An entry of a file, after parsing.
struct Parsed {
    begin: u64,
    bytes: Vec<u8>,
    entry: FileEntry,
}
