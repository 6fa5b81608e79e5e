//! One book that is followed: what its files held when they were last read, and what of that has changed.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    super::{
        Fault,
        entries::{self, FileEntry},
        files,
        import::{BY, BookReport, date_of, odd},
        lineage::{Line, lineage},
        taking::{Whereabouts, digest, take},
    },
    watch::Stamp,
};
use crate::{
    book::Book,
    entry::{Change, EntryRef},
    store::{Store, StoreError},
};

/// How long a file has to have been left alone before it is read: elogd writes an entry in some pieces.
const SETTLES: Duration = Duration::from_millis(120);
/// How long an entry has to be in no file before it counts as deleted: elogd cuts a file and writes its end again to change an entry.
const GONE: Duration = Duration::from_millis(400);
/// Entries that may all go at once with their files; more have gone with a disk that was taken away.
const FEW: usize = 10;

/// A book that is followed.
#[derive(Debug)]
pub struct Followed {
    pub book: Book,
    directory: PathBuf,
    zone: i16,
    files: BTreeMap<PathBuf, DayFile>,
    /// Files that are not as they were read, since when they are as they are.
    pending: HashMap<PathBuf, (Option<Stamp>, Instant)>,
    /// Entries that are in no file any longer, since when.
    leaving: HashMap<u32, Instant>,
    /// What was told already, so that it is not told with every look.
    told: HashSet<String>,
    /// Whether the source is away as a whole; then nothing is deleted.
    away: bool,
}

/// A day's file as it was read.
#[derive(Debug)]
struct DayFile {
    /// None if it has to be read whatever it is.
    stamp: Option<Stamp>,
    /// Numbers, what they answer, and by what they are known again.
    entries: Vec<(u32, Option<u32>, [u8; 16])>,
    /// Attachments that were not there.
    missing: Vec<String>,
}

/// The files of a folder as they are.
pub fn stamps(directory: &Path) -> BTreeMap<PathBuf, Option<Stamp>> {
    let days = files::days(directory, &mut Vec::new());
    days.into_iter().map(|(path, _)| Stamp::of(&path).map(|stamp| (path, stamp))).filter_map(Result::ok).collect()
}

impl Followed {
    /// Begins to follow a book that was just imported; `before` are its files as they were before that.
    pub fn begin(
        store: &dyn Store,
        book: Book,
        directory: PathBuf,
        zone: i16,
        before: BTreeMap<PathBuf, Option<Stamp>>,
    ) -> Result<Followed, StoreError> {
        let mut followed = Followed {
            book,
            directory,
            zone,
            files: BTreeMap::new(),
            pending: HashMap::new(),
            leaving: HashMap::new(),
            told: HashSet::new(),
            away: false,
        };
        let mut read: BTreeMap<PathBuf, (Option<Stamp>, Vec<u8>)> = BTreeMap::new();
        for (path, stamp) in before {
            // What has changed meanwhile is read as if nothing had been.
            let bytes = fs::read(&path).unwrap_or_default();
            let same = stamp.is_some() && Stamp::of(&path).is_ok_and(|is| is == stamp);
            read.insert(path, if same { (stamp, bytes) } else { (None, Vec::new()) });
        }
        let parsed: Vec<(PathBuf, Option<Stamp>, Vec<Parsed>)> = read
            .into_iter()
            .map(|(path, (stamp, bytes))| {
                let parsed = followed.parse(&bytes);
                (path, stamp, parsed)
            })
            .collect();
        let answers: Vec<(u32, Option<u32>)> =
            parsed.iter().flat_map(|(_, _, entries)| entries).map(|parsed| (parsed.entry.id, parsed.entry.parent)).collect();
        let lines = lineage(&answers);
        for (path, stamp, parsed) in parsed {
            let file = followed.known(stamp, &parsed, &lines);
            followed.files.insert(path, file);
        }
        let there = followed.ids();
        let now = Instant::now();
        let digests = store.digests(&followed.book.name)?;
        followed.away = there.is_empty() && digests.len() > FEW;
        let gone = digests.into_iter().map(|(id, _)| id).filter(|id| !there.contains(id));
        followed.leaving = gone.map(|id| (id, now)).collect();
        Ok(followed)
    }

    /// The folders in which something can happen to it.
    pub fn folders(&self) -> Vec<PathBuf> {
        files::folders(&self.directory)
    }

    /// Whether it has to be looked at though nothing stirs.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty() || !self.leaving.is_empty() && !self.away
    }

    fn ids(&self) -> HashSet<u32> {
        self.files.values().flat_map(|file| &file.entries).map(|(id, ..)| *id).collect()
    }

    /// Looks at its files, and takes what has changed and been left alone since. Nothing to tell is `None`.
    pub fn look(&mut self, store: &dyn Store) -> Result<Option<BookReport>, StoreError> {
        let mut report = BookReport { book: self.book.name.clone(), directory: self.directory.clone(), ..BookReport::default() };
        let ready = self.changed(&mut report);
        if !ready.is_empty() {
            self.read(store, ready, &mut report)?;
        }
        self.delete(store, &mut report)?;
        report.faults.retain(|fault| self.told.insert(fault.to_string()));
        let quiet = BookReport { book: report.book.clone(), directory: report.directory.clone(), ..BookReport::default() };
        let quiet = BookReport { entries: report.entries, same: report.same, attachments: report.attachments, ..quiet };
        Ok((report != quiet).then_some(report))
    }

    /// The files that have changed and were left alone since.
    fn changed(&mut self, report: &mut BookReport) -> Vec<PathBuf> {
        let mut unreadable = Vec::new();
        let mut now: BTreeMap<PathBuf, Option<Stamp>> = BTreeMap::new();
        for (path, _) in files::days(&self.directory, &mut unreadable) {
            match Stamp::of(&path) {
                Ok(stamp) => drop(now.insert(path, stamp)),
                Err(error) => unreadable.push((path, format!("{error}: left as it was"))),
            }
        }
        let kept = |path: &Path| unreadable.iter().any(|(bad, _)| path.starts_with(bad));
        for path in self.files.keys() {
            // What cannot be looked at has not gone.
            if !now.contains_key(path) && !kept(path) {
                now.insert(path.clone(), None);
            }
        }
        let left = now.values().any(Option::is_some);
        self.away = !left && self.ids().len().max(self.leaving.len()) > FEW;
        if self.away {
            unreadable.push((self.directory.clone(), "all its files are away: nothing is deleted here".to_owned()));
            now.clear();
        }
        report.faults.extend(unreadable.into_iter().map(|(file, what)| Fault { file, at: 0, what }));
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

    /// Reads files, and takes what is new or another in them.
    fn read(&mut self, store: &dyn Store, ready: Vec<PathBuf>, report: &mut BookReport) -> Result<(), StoreError> {
        let before = self.ids();
        let mut fresh: Vec<(PathBuf, Stamp, Vec<Parsed>)> = Vec::new();
        let known: HashMap<u32, [u8; 16]> =
            self.files.values().flat_map(|file| &file.entries).map(|(id, _, digest)| (*id, *digest)).collect();
        for path in ready {
            let Some((Some(stamp), _)) = self.pending.remove(&path) else {
                self.files.remove(&path);
                continue;
            };
            match fs::read(&path) {
                Ok(bytes) if Stamp::of(&path).is_ok_and(|is| is == Some(stamp)) => {
                    let parsed = self.parse(&bytes);
                    self.faults(&path, &bytes, &parsed, report);
                    fresh.push((path, stamp, parsed));
                }
                // Somebody writes to it: it is looked at again.
                Ok(_) => drop(self.pending.insert(path, (Some(stamp), Instant::now()))),
                Err(error) => report.faults.push(Fault { file: path, at: 0, what: format!("{error}: left as it was") }),
            }
        }
        let rest = self.files.iter().filter(|(path, _)| !fresh.iter().any(|(fresh, ..)| fresh == *path));
        let rest = rest.flat_map(|(_, file)| file.entries.iter().map(|(id, parent, _)| (*id, *parent)));
        let new = fresh.iter().flat_map(|(_, _, parsed)| parsed.iter().map(|parsed| (parsed.entry.id, parsed.entry.parent)));
        let answers: Vec<(u32, Option<u32>)> = rest.chain(new).collect();
        let lines = lineage(&answers);
        let (mut entries, mut uploads, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (path, stamp, parsed) in fresh {
            let file = self.known(Some(stamp), &parsed, &lines);
            for (Parsed { begin, bytes: _, entry }, (id, _, digest)) in parsed.into_iter().zip(&file.entries) {
                report.attachments += entry.attachments.len() as u64;
                if known.get(id) == Some(digest) && before.contains(id) {
                    continue;
                }
                let fault = |what: String| Fault { file: path.clone(), at: begin as u64, what };
                let Some(line) = lines.get(id) else { continue };
                report.faults.extend(odd(*id, line).map(fault));
                let (date, wrong) = date_of(&entry, &path, self.zone);
                report.faults.extend(wrong.map(fault));
                let Some((date, zone)) = date else { continue };
                let at = Whereabouts { id: *id, date, zone, parent: line.parent, thread: line.thread };
                let taken = take(store, &self.book, &self.directory, at, entry, *digest);
                report.faults.extend(taken.faults.into_iter().map(|what| fault(format!("entry {id}: {what}"))));
                uploads.extend(taken.uploads);
                if let Some(imported) = taken.imported {
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
        // What is answered comes before its answers.
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&at| places[at].0);
        let mut slots: Vec<Option<_>> = entries.into_iter().zip(places).map(Some).collect();
        let (entries, places): (Vec<_>, Vec<_>) = order.into_iter().filter_map(|at| slots[at].take()).unzip();
        if entries.is_empty() {
            return Ok(());
        }
        let outcomes = store.import(&self.book.name, entries, uploads, BY)?;
        for ((id, draft, file, begin), outcome) in places.into_iter().zip(outcomes) {
            let told = report.count(id, draft.as_deref(), outcome);
            report.faults.extend(told.map(|what| Fault { file, at: begin as u64, what }));
        }
        Ok(())
    }

    /// What has been in no file for long enough is deleted here, if it is as it was imported.
    fn delete(&mut self, store: &dyn Store, report: &mut BookReport) -> Result<(), StoreError> {
        if self.away || !self.pending.is_empty() {
            return Ok(());
        }
        let gone: Vec<u32> = self.leaving.iter().filter(|(_, since)| since.elapsed() >= GONE).map(|(id, _)| *id).collect();
        for id in gone {
            let at = EntryRef::new(&self.book.name, id);
            let last = match store.history(&at) {
                Ok(history) => history.last().map(|revision| revision.what),
                // It was a draft.
                Err(StoreError::NoEntry(_)) => None,
                Err(error) => return Err(error),
            };
            match last {
                None | Some(Change::Deleted) => {}
                Some(Change::Imported) => match store.delete(&at, BY, false) {
                    Ok(_) => report.deleted += 1,
                    Err(StoreError::Gone(_)) => report.gone += 1,
                    // Somebody is editing it: it is asked again.
                    Err(StoreError::Locked { .. }) => continue,
                    Err(error) => return Err(error),
                },
                Some(_) => report.conflict(id),
            }
            self.leaving.remove(&id);
        }
        Ok(())
    }

    fn parse(&self, bytes: &[u8]) -> Vec<Parsed> {
        let names: Vec<String> = self.book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        let mut seen = HashSet::new();
        let (ranges, _) = entries::split(bytes);
        let parsed = ranges.into_iter().filter_map(|range| {
            let entry = entries::parse(&bytes[range.clone()], &names)?;
            seen.insert(entry.id).then(|| Parsed { begin: range.start, bytes: bytes[range].to_vec(), entry })
        });
        parsed.collect()
    }

    fn known(&self, stamp: Option<Stamp>, parsed: &[Parsed], lines: &HashMap<u32, Line>) -> DayFile {
        let entry = |Parsed { bytes, entry, .. }: &Parsed| {
            let parent = lines.get(&entry.id).and_then(|line| line.parent);
            (entry.id, entry.parent, digest(&self.directory, bytes, entry, parent))
        };
        let names = parsed.iter().filter(|parsed| parsed.entry.draft.is_none()).flat_map(|parsed| &parsed.entry.attachments);
        let missing = names.filter(|name| files::attachment(&self.directory, name).is_none()).cloned().collect();
        DayFile { stamp, entries: parsed.iter().map(entry).collect(), missing }
    }

    fn faults(&self, path: &Path, bytes: &[u8], parsed: &[Parsed], report: &mut BookReport) {
        let fault = |at: usize, what: String| Fault { file: path.to_owned(), at: at as u64, what };
        report.faults.extend(entries::split(bytes).1.into_iter().map(|(at, what)| fault(at, what)));
        for Parsed { begin, entry, .. } in parsed {
            report.faults.extend(entry.faults.iter().map(|what| fault(*begin, format!("entry {}: {what}", entry.id))));
        }
    }
}

/// An entry of a file that was read.
struct Parsed {
    begin: usize,
    bytes: Vec<u8>,
    entry: FileEntry,
}
