//! Opens an archive: reads the manifest and the directories, and resolves their differences.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tampu_types::{Domain, Incarnation};

use crate::{
    ArchiveError, Fault,
    framed::BadHeader,
    ids::{
        known::Known,
        seen::{Run, Seen},
    },
    local::dirs::{aside_dir, below, ids_dir, parquet_dir, segments_dir},
    manifest::{Commit, FileEntry, Manifest, ids_name, write_whole},
    parquet::{
        self, Layout, Scratch, Table,
        stored::{Stored, Tables},
    },
    wal::{
        content::Content,
        segment::{self, SEGMENTS, Segment},
        side,
    },
};

/// State of an archive directory after opening.
pub(crate) struct Opened {
    content: Content,
    /// Highest number of a segment file.
    pub(crate) number: u64,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) files: Vec<Arc<Stored>>,
    pub(crate) manifest: Manifest,
    pub(crate) seen: Seen,
    pub(crate) offsets: HashMap<(Incarnation, u32), u64>,
    pub(crate) records: u64,
    pub(crate) faults: Vec<Fault>,
    /// Runs of ids in the last segment, which has no side file yet.
    pub(crate) runs: Vec<(Incarnation, Run)>,
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |source| ArchiveError::File { doing, path: path.clone(), source }
}

/// Opens the archive in a directory that is locked.
pub(crate) fn open(dir: &Path, domain: &Domain, content: Content, tables: &Arc<Tables>) -> Result<Opened, ArchiveError> {
    let mut faults = Vec::new();
    let manifest_path = dir.join(crate::manifest::NAME);
    let was_there = manifest_path.exists();
    let manifest = Manifest::open(dir, domain, content.layout().name, &mut faults).map_err(failed("reading", &manifest_path))?;
    // A commit that cannot be read may have named files. A file without a name in the manifest is then no left-over.
    let is_whole = faults.is_empty() && was_there;
    let mut opened = Opened {
        content,
        number: manifest.state.segments,
        segments: Vec::new(),
        files: Vec::new(),
        manifest,
        seen: Seen::default(),
        offsets: HashMap::new(),
        records: 0,
        faults,
        runs: Vec::new(),
    };
    opened.tell_set_aside(dir);
    opened.take_files(dir, is_whole, tables)?;
    opened.take_ids(dir, is_whole)?;
    opened.take_segments(dir, domain)?;
    Ok(opened)
}

impl Opened {
    fn fault(&mut self, file: PathBuf, bytes: u64, what: String) {
        self.faults.push(Fault { file, from: 0, to: bytes, what });
    }

    /// Reports files that were set aside, until an operator has removed them.
    fn tell_set_aside(&mut self, dir: &Path) {
        let aside = aside_dir(dir);
        for name in below(&aside).unwrap_or_default() {
            let path = aside.join(name);
            let bytes = fs::metadata(&path).map_or(0, |facts| facts.len());
            self.fault(
                path,
                bytes,
                "was set aside earlier, as it could not be read; take it away once it has been looked at".into(),
            );
        }
    }

    /// Opens the files that the manifest names. Other files belong to an unfinished compaction. If commits cannot be
    /// read, other files belong to the archive.
    fn take_files(&mut self, dir: &Path, is_whole: bool, tables: &Arc<Tables>) -> Result<(), ArchiveError> {
        let root = parquet_dir(dir);
        let mut adopted = Vec::new();
        let there = below(&root).map_err(failed("listing", &root))?;
        for name in &there {
            if self.manifest.state.files.contains_key(name) {
                continue;
            }
            let path = root.join(name);
            if is_whole
                || !name.ends_with(".parquet")
                || self.manifest.state.is_unfinished(name) && self.manifest.state.number > 0
            {
                fs::remove_file(&path).map_err(failed("removing the unfinished", &path))?;
                let _ = path.parent().map(fs::remove_dir);
                continue;
            }
            match adopt(&root, name, self.content.layout()) {
                Ok(entry) => adopted.push(entry),
                Err(why) => self.set_aside(dir, &path, &why),
            }
        }
        if !adopted.is_empty() {
            let number = adopted.iter().filter_map(|entry| crate::manifest::number_of(&entry.file)).max();
            let number = number.unwrap_or_default().max(self.manifest.state.number) + 1;
            let commit = Commit { number, add: adopted, ..Commit::default() };
            self.manifest.commit(&commit).map_err(failed("writing", &dir.join(crate::manifest::NAME)))?;
        }
        let (mut lost, mut again) = (Vec::new(), Vec::new());
        for (name, entry) in self.manifest.state.files.clone() {
            let path = root.join(&name);
            match fs::metadata(&path) {
                Ok(facts) if facts.len() == entry.bytes => {
                    self.records += entry.records;
                    self.files.push(Stored::new(&root, entry, tables));
                }
                // Another program may have rewritten it.
                Ok(facts) => match adopt(&root, &name, self.content.layout()) {
                    Ok(rewritten) => {
                        if rewritten.records != entry.records {
                            let what =
                                format!("was rewritten: it has {} records instead of {}", rewritten.records, entry.records);
                            self.fault(path, facts.len(), what);
                        }
                        self.records += rewritten.records;
                        lost.push(name);
                        again.push(rewritten.clone());
                        self.files.push(Stored::new(&root, rewritten, tables));
                    }
                    Err(why) => {
                        let why = format!("damaged: it has {} bytes instead of {} ({why})", facts.len(), entry.bytes);
                        self.set_aside(dir, &path, &why);
                        lost.push(name);
                    }
                },
                Err(error) => {
                    let what =
                        format!("{error}: {} records are not served; put it back, from a backup if need be", entry.records);
                    self.fault(path, 0, what);
                }
            }
        }
        if !lost.is_empty() {
            let commit = Commit { number: self.manifest.state.number + 1, remove: lost, add: again, ..Commit::default() };
            self.manifest.commit(&commit).map_err(failed("writing", &dir.join(crate::manifest::NAME)))?;
        }
        Ok(())
    }

    /// Reads the ids of the records in Parquet. If a file of ids cannot be read, it reads them from the Parquet files.
    fn take_ids(&mut self, dir: &Path, is_whole: bool) -> Result<(), ArchiveError> {
        let root = ids_dir(dir);
        let named = self.manifest.state.ids.clone();
        let mut lost = !is_whole && !self.files.is_empty();
        for name in below(&root).map_err(failed("listing", &root))? {
            if !named.contains(&name) {
                let path = root.join(&name);
                fs::remove_file(&path).map_err(failed("removing the unfinished", &path))?;
            }
        }
        let mut known = Known::default();
        for name in &named {
            let path = root.join(name);
            let read = fs::read(&path).map_err(|error| error.to_string());
            match read.and_then(|bytes| Known::decode(&bytes).map_err(|why| why.to_string())) {
                Ok(one) => known.join(one),
                Err(why) => {
                    lost = true;
                    self.fault(path, 0, format!("damaged ({why}): the ids were taken from the Parquet files"));
                }
            }
        }
        if lost {
            self.recover_ids(dir, &mut known)?;
        }
        self.seen.insert(&known.runs);
        for offset in known.offsets {
            let next = self.offsets.entry((offset.incarnation, offset.stream)).or_default();
            *next = offset.next.max(*next);
        }
        Ok(())
    }

    fn recover_ids(&mut self, dir: &Path, known: &mut Known) -> Result<(), ArchiveError> {
        for file in &self.files {
            let runs = file.open().map(|table| self.content.ids(&table));
            match runs {
                Some(Ok(runs)) => known.runs.extend(runs),
                Some(Err(error)) => file.note(&error),
                None => {}
            }
        }
        known.tidy();
        let number = self.manifest.state.number + 1;
        let path = ids_dir(dir).join(ids_name(number));
        write_whole(&path, &known.encode()).map_err(failed("writing", &path))?;
        let remove_ids: Vec<String> = self.manifest.state.ids.iter().cloned().collect();
        let commit = Commit { number, add_ids: vec![ids_name(number)], remove_ids: remove_ids.clone(), ..Commit::default() };
        self.manifest.commit(&commit).map_err(failed("writing", &dir.join(crate::manifest::NAME)))?;
        remove_ids.iter().for_each(|name| drop(fs::remove_file(ids_dir(dir).join(name))));
        Ok(())
    }

    fn take_segments(&mut self, dir: &Path, domain: &Domain) -> Result<(), ArchiveError> {
        let root = segments_dir(dir);
        let mut paths = Vec::new();
        for name in below(&root).map_err(failed("listing", &root))? {
            let path = root.join(&name);
            let number = SEGMENTS.number_of(&name).or_else(|| SEGMENTS.number_of(&name.replace(".idx", ".wal")));
            match number {
                // Its records are in Parquet; the process ended before it removed the segment.
                Some(number) if number <= self.manifest.state.segments => {
                    fs::remove_file(&path).map_err(failed("removing the compacted", &path))?;
                }
                Some(number) if name.ends_with(".wal") => paths.push((number, path)),
                _ => {}
            }
        }
        paths.sort();
        self.number = self.number.max(paths.last().map_or(0, |(number, _)| *number));
        let last = paths.len();
        for (place, (number, path)) in paths.into_iter().enumerate() {
            self.take(dir, number, path, place + 1 == last, domain)?;
        }
        Ok(())
    }

    fn take(&mut self, dir: &Path, number: u64, path: PathBuf, last: bool, domain: &Domain) -> Result<(), ArchiveError> {
        let failed = |doing| {
            let path = path.clone();
            move |source| ArchiveError::File { doing, path, source }
        };
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed("opening"))?;
        let length = file.metadata().map_err(failed("measuring"))?.len();
        let mut head = vec![0; length.min(512) as usize];
        io::Read::read_exact(&mut &file, &mut head).map_err(failed("reading"))?;
        let header = match SEGMENTS.check_header(&head, domain) {
            Ok(header) => header,
            Err(BadHeader::Damaged) if last && length <= 512 => {
                // The machine failed while the segment was being created; no commit was ever written to it.
                self.faults.push(Fault::torn(&path, 0, length));
                return fs::remove_file(&path).map_err(failed("removing the unfinished"));
            }
            Err(why @ (BadHeader::Foreign | BadHeader::Damaged)) => {
                self.set_aside(dir, &path, &why.to_string());
                return Ok(());
            }
            // Another release or installation may still need this segment, so it is not moved.
            Err(why) => {
                self.fault(path, length, format!("{why}; it is left as it is and not served"));
                return Ok(());
            }
        };
        let known = if last { None } else { side::read(&segments_dir(dir), number, length) };
        let content = match known {
            Some(content) => content,
            None => {
                let bytes = fs::read(&path).map_err(failed("reading"))?;
                let faults = self.faults.len();
                let content = segment::scan(self.content, &path, &bytes, header, last, &mut self.faults);
                if last && content.end < length {
                    file.set_len(content.end).and_then(|()| file.sync_all()).map_err(failed("cutting"))?;
                } else if !last && self.faults.len() == faults {
                    // A missing side file only slows the next start.
                    let _ = side::write(&segments_dir(dir), number, &content);
                }
                content
            }
        };
        self.seen.insert(&content.runs);
        self.records += content.entries.iter().map(|entry| u64::from(entry.records)).sum::<u64>();
        segment::gather_offsets(&content.entries, &mut self.offsets);
        self.segments.push(Arc::new(Segment::open(path, number, file, &content)));
        if last {
            self.runs = content.runs;
        }
        Ok(())
    }

    /// Moves an unreadable file aside under its own name.
    fn set_aside(&mut self, dir: &Path, path: &Path, why: &str) {
        let bytes = fs::metadata(path).map_or(0, |facts| facts.len());
        let name = path.strip_prefix(parquet_dir(dir)).or(path.strip_prefix(segments_dir(dir))).unwrap_or(path);
        let aside = aside_dir(dir).join(name.to_string_lossy().replace('/', "-"));
        let moved = fs::create_dir_all(aside_dir(dir)).and_then(|()| fs::rename(path, &aside));
        let what = match moved {
            Ok(()) => format!("{why}; moved to {} and not served", aside.display()),
            Err(error) => format!("{why}; it is not served, and could not be moved away ({error})"),
        };
        self.fault(path.to_owned(), bytes, what);
    }
}

/// Makes the manifest entry of a file.
fn adopt(root: &Path, name: &str, layout: &'static Layout) -> Result<FileEntry, String> {
    let path = root.join(name);
    let bytes = fs::read(&path).map_err(|error| error.to_string())?;
    let table = Table::open(&path, layout).map_err(|error| error.to_string())?;
    let groups = &table.index.groups;
    // In every layout the reception time follows the time.
    let received_column = layout.time + 1;
    let mut scratch = Scratch::new().map_err(|error| error.to_string())?;
    let mut entry = FileEntry {
        file: name.to_owned(),
        bytes: bytes.len() as u64,
        crc32c: format!("{:08x}", crc32c::crc32c(&bytes)),
        records: 0,
        earliest: groups.first().map_or_else(Default::default, parquet::Group::earliest),
        latest: groups.last().map_or_else(Default::default, parquet::Group::latest),
        received: Default::default(),
        levels: 0,
    };
    for group in groups {
        entry.records += u64::from(group.rows);
        entry.levels |= group.levels.0;
        for unit in 0..group.units.len() {
            let received = table.numbers(group, received_column, unit, &mut scratch).map_err(|error| error.to_string())?;
            entry.received = entry.received.max(tampu_types::Time(received.into_iter().max().unwrap_or_default()));
        }
    }
    Ok(entry)
}
