//! The keeper: the archive's second worker. It moves closed segments into Parquet files, joins small files, and removes
//! records whose retention has ended.
//!
//! The keeper works one step at a time. It writes files, syncs them, commits them to the manifest, and then switches
//! searches to them at once. Before the commit none of its new files counts; after the commit none of the replaced
//! files does. The keeper takes a declared share of one processor. It takes a whole processor only on request, or when
//! more closed segments wait than [`Options::backlog`].

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::MutexGuard;
use tampu_types::{BatchHeader, Incarnation, Time};

use crate::{
    Fault, News, Removal, StreamOffset,
    ids::known::Known,
    keeper::{budget::Budget, partition::Partition, requests::KeeperRequests},
    local::{
        dirs::{aside_dir, ids_dir, parquet_dir, segments_dir},
        options::Retention,
        state::ArchiveState,
    },
    manifest::{Commit, FileEntry, file_name, ids_name, sync_dir, write_whole},
    parquet::{Sent, stored::Stored},
    wal::{
        content::Gathered,
        frame::{self, Kind},
        reserve,
        segment::{self, Segment},
        side,
    },
};

pub(crate) mod budget;
pub(crate) mod keep;
pub(crate) mod merge;
mod partition;
pub(crate) mod requests;

/// Interval at which the keeper looks for work without a request.
const LOOK: Duration = Duration::from_secs(1);
/// Pause before a failed operation is retried.
const AGAIN: Duration = Duration::from_secs(5);
/// Most bytes of segments in one compaction, but at least one whole segment. This limits its memory to about as much
/// again.
const TAKEN: u64 = 160 << 20;
/// Number of id files above which they are joined.
const MOST_IDS: usize = 16;
/// Time after a removal for lack of space within which no more is removed, unless the space was free in between.
const SETTLE: Duration = Duration::from_secs(30);
/// Bytes of work between two looks at the clock.
const STEP: usize = 1 << 20;

/// Most news items kept until they are read; beyond it the oldest are dropped.
const MOST_NEWS: usize = 100;

pub(crate) struct Keeper {
    shared: Arc<ArchiveState>,
    budget: Budget,
    rows: Gathered,
    /// The partition of each row.
    partitions: Vec<Partition>,
    /// Files that were removed because the disk is full, until they are gone. A search may still hold one.
    freeing: Vec<PathBuf>,
    /// Time of that removal. Some file systems report the space later.
    freed: Option<Instant>,
}

/// Reason why a piece of work ended early.
#[derive(Debug)]
enum Stopped {
    Closing,
    Failed(String),
}

fn failed(doing: &str, path: &Path) -> impl Fn(io::Error) -> Stopped {
    let what = format!("{doing} {}", path.display());
    move |error| match error.kind() {
        io::ErrorKind::Interrupted => Stopped::Closing,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Stopped::Failed(format!("{what}: the disk is full; segments wait until there is room"))
        }
        _ => Stopped::Failed(format!("{what}: {error}")),
    }
}

impl Keeper {
    pub(crate) fn new(shared: Arc<ArchiveState>) -> Keeper {
        let budget = Budget::new(shared.options.share, Instant::now(), tampu_workers::thread_cpu());
        let rows = Gathered::new(shared.content);
        Keeper { shared, budget, rows, partitions: Vec::new(), freeing: Vec::new(), freed: None }
    }

    pub(crate) fn run(mut self) {
        let mut wait = Duration::ZERO;
        while self.wait(wait) {
            wait = match self.work() {
                Ok(true) => Duration::ZERO,
                Ok(false) => LOOK,
                Err(Stopped::Closing) => return,
                Err(Stopped::Failed(why)) => {
                    self.requests().stuck = Some(why);
                    self.shared.called.notify_all();
                    AGAIN
                }
            };
        }
    }

    fn requests(&self) -> MutexGuard<'_, KeeperRequests> {
        self.shared.requests()
    }

    /// Waits this long, or until a call; returns `false` when the archive closes.
    fn wait(&self, time: Duration) -> bool {
        let mut requests = self.requests();
        if requests.closing || time.is_zero() {
            return !requests.closing;
        }
        self.shared.call.wait_for(&mut requests, time);
        !requests.closing
    }

    /// Sleeps as the processor share demands; returns an error when the archive closes.
    fn pace(&mut self) -> io::Result<()> {
        let backlog = self.shared.waiting();
        let due = self.budget.due(Instant::now(), tampu_workers::thread_cpu());
        let mut requests = self.shared.requests();
        let until = Instant::now() + due;
        loop {
            if requests.closing {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || requests.hurry > requests.done || backlog > self.shared.options.backlog {
                return Ok(());
            }
            self.shared.call.wait_for(&mut requests, left);
        }
    }

    /// Does one piece of work; returns whether there was any.
    fn work(&mut self) -> Result<bool, Stopped> {
        let segments = self.closed_segments();
        let done = if self.make_room()? {
            true
        } else if !segments.is_empty() {
            self.compact(&segments)?;
            true
        } else {
            self.join_ids()? || self.merge()? || self.set_broken_aside()? || self.remove_old()?
        };
        let mut requests = self.requests();
        requests.stuck = None;
        requests.done = self.shared.manifest().state.segments;
        let closed = self.shared.closed.load(Ordering::Acquire);
        if self.shared.contents().segments.iter().all(|segment| segment.number > closed) {
            requests.done = requests.done.max(closed);
        }
        drop(requests);
        self.shared.called.notify_all();
        Ok(done)
    }

    /// Returns the oldest closed segments for one compaction.
    fn closed_segments(&self) -> Vec<Arc<Segment>> {
        let closed = self.shared.closed.load(Ordering::Acquire);
        let mut bytes = 0;
        let mut taken = Vec::new();
        for segment in &self.shared.contents().segments {
            let size = segment.committed.load(Ordering::Acquire);
            if segment.number > closed || !taken.is_empty() && bytes + size > TAKEN {
                break;
            }
            bytes += size;
            taken.push(segment.clone());
        }
        taken
    }

    fn compact(&mut self, segments: &[Arc<Segment>]) -> Result<(), Stopped> {
        self.rows.clear();
        self.partitions.clear();
        let mut known = Known::default();
        let mut taken = 0;
        let mut damaged = Vec::new();
        for segment in segments {
            let content = self.take_in(segment, &mut known)?;
            taken += content.records;
            if content.damaged {
                damaged.push(segment.number);
            }
        }
        known.tidy();
        let through = segments.last().map_or(0, |segment| segment.number);
        let number = self.shared.manifest().state.number + 1;
        let parts = partition::split(&self.rows.ordered(), &self.partitions);
        let far = parts.get(&Partition::Far).map_or(0, Vec::len) as u64;
        let parts = parts.into_iter().map(|(partition, places)| (partition.directory(), places)).collect();
        let added = self.write_gathered(parts, number)?;
        let ids = ids_name(number);
        let path = ids_dir(&self.shared.dir).join(&ids);
        write_whole(&path, &known.encode()).map_err(failed("writing", &path))?;
        let commit = Commit { number, segments: Some(through), add: added, add_ids: vec![ids], ..Commit::default() };
        self.commit(&commit, through, damaged, taken)?;
        if far > 0 {
            self.tell(News::Far { records: far });
        }
        Ok(())
    }

    /// Writes the gathered rows: for each directory a file with the rows at these positions.
    fn write_gathered(&mut self, parts: Vec<(String, Vec<u32>)>, number: u64) -> Result<Vec<FileEntry>, Stopped> {
        let rows = std::mem::replace(&mut self.rows, Gathered::new(self.shared.content));
        let added = self.write_files(&rows, parts, number);
        self.rows = rows;
        added
    }

    /// Writes the rows, a file for each directory. If one file fails, all are removed.
    fn write_files(&mut self, rows: &Gathered, parts: Vec<(String, Vec<u32>)>, number: u64) -> Result<Vec<FileEntry>, Stopped> {
        let dir = parquet_dir(&self.shared.dir);
        let mut added: Vec<FileEntry> = Vec::new();
        let domain = self.shared.options.domain.to_string();
        for (directory, places) in parts {
            let name = file_name(&directory, number);
            let path = dir.join(&name);
            let parent = path.parent().unwrap_or(&dir).to_owned();
            let is_new = !parent.exists();
            let written = fs::create_dir_all(&parent)
                .and_then(|()| rows.write_file(&path, &places, &domain, &mut || self.pace()))
                .and_then(|written| {
                    sync_dir(&parent)?;
                    if is_new {
                        sync_dir(&dir)?;
                    }
                    Ok(written)
                });
            match written {
                Ok(written) => added.push(FileEntry::new(name, &written)),
                Err(error) => {
                    let _ = fs::remove_file(&path);
                    added.iter().for_each(|entry| drop(fs::remove_file(dir.join(&entry.file))));
                    return Err(failed("writing", &path)(error));
                }
            }
        }
        Ok(added)
    }

    /// Adds a segment's records. Unreadable parts are reported and set aside.
    fn take_in(&mut self, segment: &Segment, known: &mut Known) -> Result<TakenIn, Stopped> {
        let entries = segment.select(|_| true);
        let mut taken = TakenIn { records: 0, damaged: self.shared.is_damaged(segment) };
        let from_side = side::read(&segments_dir(&self.shared.dir), segment.number, segment.committed.load(Ordering::Acquire));
        let digest_needed = from_side.is_none();
        known.runs.extend(from_side.into_iter().flat_map(|content| content.runs));
        let (mut buffer, mut since) = (Vec::new(), 0);
        for entry in &entries {
            taken.records += u64::from(entry.records);
            if entry.kind != Kind::Batch {
                continue;
            }
            let Some((header, body)) = segment.load(entry, &mut buffer) else {
                taken.damaged = true;
                continue;
            };
            let received = header.received;
            if digest_needed && let Ok(digest) = self.shared.content.digest_body(body) {
                known.runs.extend(digest.runs);
            }
            let mut unreadable = 0;
            match BatchHeader::decode(body) {
                Ok((batch, samples)) => {
                    let sent = Sent::by(&batch);
                    for sample in frame::samples(samples) {
                        unreadable += sample.map_or(1, |sample| self.rows.push_sample(&batch, &sent, sample, received));
                    }
                    let taken_in = self.rows.times_from(self.partitions.len());
                    self.partitions.extend(taken_in.map(|time| Partition::of(time, received)));
                }
                Err(_) => unreadable = 1,
            }
            // The sample stays in its segment unchanged: a later release may be able to read it.
            taken.damaged |= unreadable > 0;
            since += entry.length as usize;
            if since > STEP {
                since = 0;
                self.pace().map_err(failed("reading", &segment.path))?;
            }
        }
        let mut offsets = HashMap::new();
        segment::gather_offsets(&entries, &mut offsets);
        known.offsets.extend(offsets.into_iter().map(|((incarnation, stream), next): ((Incarnation, u32), u64)| StreamOffset {
            incarnation,
            stream,
            next,
        }));
        Ok(taken)
    }

    /// Commits the exchange: on disk by the manifest's line, for searches by one assignment.
    fn commit(&mut self, commit: &Commit, through: u64, damaged: Vec<u64>, taken: u64) -> Result<(), Stopped> {
        let dir = parquet_dir(&self.shared.dir);
        let shared = self.shared.clone();
        let mut manifest = shared.manifest();
        if let Err(error) = manifest.commit(commit) {
            commit.add.iter().for_each(|entry| drop(fs::remove_file(dir.join(&entry.file))));
            commit.add_ids.iter().for_each(|name| drop(fs::remove_file(ids_dir(&shared.dir).join(name))));
            return Err(failed("writing", &shared.dir.join(crate::manifest::NAME))(error));
        }
        let removed: Vec<Arc<Stored>>;
        let gone: Vec<Arc<Segment>>;
        {
            let mut contents = shared.contents.write();
            let mut files: Vec<Arc<Stored>> = contents.files.to_vec();
            (removed, files) = files.into_iter().partition(|file| commit.remove.contains(&file.entry.file));
            files.extend(commit.add.iter().map(|entry| Stored::new(&dir, entry.clone(), &shared.tables)));
            contents.files = Arc::new(files);
            gone = contents.segments.iter().filter(|segment| segment.number <= through).cloned().collect();
            contents.segments.retain(|segment| segment.number > through);
        }
        {
            let mut gathering = shared.gathering();
            let added: u64 = commit.add.iter().map(|entry| entry.records).sum();
            let before = taken + removed.iter().map(|file| file.entry.records).sum::<u64>();
            gathering.records = (gathering.records + added).saturating_sub(before);
        }
        removed.iter().for_each(|file| file.doom());
        for name in &commit.remove_ids {
            let _ = fs::remove_file(ids_dir(&shared.dir).join(name));
        }
        // The next start removes the files that remain here, because the manifest says that their records are in Parquet.
        for segment in gone {
            if damaged.contains(&segment.number) {
                shared.set_segment_aside(&segment);
            } else {
                let _ = fs::remove_file(&segment.path);
            }
            let _ = fs::remove_file(segment.path.with_extension("idx"));
        }
        Ok(())
    }

    /// Joins files of ids if there are many.
    fn join_ids(&mut self) -> Result<bool, Stopped> {
        let (number, names) = {
            let manifest = self.shared.manifest();
            (manifest.state.number + 1, manifest.state.ids.iter().cloned().collect::<Vec<_>>())
        };
        if names.len() <= MOST_IDS {
            return Ok(false);
        }
        let dir = ids_dir(&self.shared.dir);
        let mut known = Known::default();
        for name in &names {
            let path = dir.join(name);
            let bytes = fs::read(&path).map_err(failed("reading", &path))?;
            known.join(Known::decode(&bytes).map_err(|why| Stopped::Failed(format!("{}: {why}", path.display())))?);
            self.pace().map_err(failed("reading", &path))?;
        }
        known.tidy();
        let path = dir.join(ids_name(number));
        write_whole(&path, &known.encode()).map_err(failed("writing", &path))?;
        let commit = Commit { number, add_ids: vec![ids_name(number)], remove_ids: names, ..Commit::default() };
        self.commit(&commit, 0, Vec::new(), 0)?;
        Ok(true)
    }

    /// Joins small files of one directory.
    fn merge(&mut self) -> Result<bool, Stopped> {
        let files = self.shared.contents().files;
        let Some(small) = merge::choose(&files) else { return Ok(false) };
        self.rows.clear();
        let mut rows = std::mem::replace(&mut self.rows, Gathered::new(self.shared.content));
        let read = merge::read(&small, &mut rows, &mut || self.pace());
        self.rows = rows;
        match read {
            Ok(true) => {}
            // Damaged files are not joined.
            Ok(false) => return Ok(false),
            Err(error) => return Err(failed("reading", &parquet_dir(&self.shared.dir))(error)),
        }
        let number = self.shared.manifest().state.number + 1;
        let parts = merge::directory(&small).map(|directory| (directory.to_owned(), self.rows.ordered()));
        let added = self.write_gathered(parts.into_iter().collect(), number);
        let remove = small.iter().map(|file| file.entry.file.clone()).collect();
        self.commit(&Commit { number, add: added?, remove, ..Commit::default() }, 0, Vec::new(), 0)?;
        Ok(true)
    }

    /// Sets files aside that cannot be read at all.
    fn set_broken_aside(&mut self) -> Result<bool, Stopped> {
        let Some(broken) = self.shared.contents().files.iter().find(|file| file.is_broken()).cloned() else { return Ok(false) };
        let number = self.shared.manifest().state.number + 1;
        let aside = aside_dir(&self.shared.dir);
        let name = broken.entry.file.replace('/', "-");
        fs::create_dir_all(&aside)
            .and_then(|()| fs::hard_link(&broken.path, aside.join(&name)))
            .or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
            .map_err(failed("setting aside", &broken.path))?;
        let commit = Commit { number, remove: vec![broken.entry.file.clone()], ..Commit::default() };
        self.commit(&commit, 0, Vec::new(), 0)?;
        let mut faults = broken.met();
        faults.iter_mut().for_each(|fault| fault.what.push_str("; it was moved to set-aside"));
        self.shared.faults.lock().extend(faults);
        Ok(true)
    }

    /// Removes files whose retention has ended.
    fn remove_old(&mut self) -> Result<bool, Stopped> {
        let files = self.shared.contents().files;
        let keep = self.shared.retention.read().keep.clone();
        let (old, news) = keep.choose(files.iter().map(|file| &file.entry), present());
        if let Some(news) = news {
            self.tell(news);
        }
        if old.is_empty() {
            return Ok(false);
        }
        self.remove(&old)?;
        let Removal { files, records, bytes, earliest, latest } = Removal::of(&old);
        self.tell(News::Removed { files, records, bytes, earliest, latest });
        Ok(true)
    }

    /// Removes the oldest files if less than the reserve is free on the disk, where retention allows it. This comes before
    /// a compaction, which needs space itself.
    fn make_room(&mut self) -> Result<bool, Stopped> {
        let Retention { keep, min_free } = self.shared.retention.read().clone();
        let missing = reserve::missing(&self.shared.dir, min_free);
        let missing = missing.map_err(failed("looking at the disk of", &self.shared.dir))?;
        if missing == 0 {
            self.freed = None;
            return Ok(false);
        }
        self.freeing.retain(|path| path.exists());
        if !self.freeing.is_empty() || self.freed.is_some_and(|freed| freed.elapsed() < SETTLE) {
            return Ok(false);
        }
        let files = self.shared.contents().files;
        let dir = parquet_dir(&self.shared.dir);
        let frees = |entry: &FileEntry| frees(&dir, entry);
        let (old, news) = keep.choose_for_room(files.iter().map(|file| &file.entry), present(), missing, frees);
        if let Some(news) = news {
            self.tell(news);
        }
        if old.is_empty() {
            return Ok(false);
        }
        // The list would keep the files on the disk.
        drop(files);
        self.remove(&old)?;
        self.freeing = old.iter().map(|entry| dir.join(&entry.file)).collect();
        self.freed = Some(Instant::now());
        let Removal { files, records, bytes, earliest, latest } = Removal::of(&old);
        self.tell(News::RemovedForRoom { files, records, bytes, earliest, latest });
        Ok(true)
    }

    fn remove(&mut self, old: &[FileEntry]) -> Result<(), Stopped> {
        let number = self.shared.manifest().state.number + 1;
        let commit = Commit { number, remove: old.iter().map(|entry| entry.file.clone()).collect(), ..Commit::default() };
        self.commit(&commit, 0, Vec::new(), 0)
    }

    fn tell(&self, news: News) {
        let mut requests = self.requests();
        if requests.news.last() != Some(&news) {
            requests.news.push(news);
        }
        if requests.news.len() > MOST_NEWS {
            requests.news.remove(0);
        }
    }
}

/// Returns what limits would remove at once of these files of an archive in a directory.
pub(crate) fn removal(shared: &ArchiveState, retention: &Retention) -> Removal {
    let Retention { keep, min_free } = retention;
    let files = shared.contents().files;
    let entries = || files.iter().map(|file| &file.entry);
    let (mut old, _) = keep.choose(entries(), present());
    // A disk that cannot be looked at is not known to be full.
    let missing = reserve::missing(&shared.dir, *min_free).unwrap_or_default();
    let missing = missing.saturating_sub(old.iter().map(|entry| entry.bytes).sum());
    let dir = parquet_dir(&shared.dir);
    let rest = entries().filter(|entry| !old.contains(entry));
    let (more, _) = keep.choose_for_room(rest, present(), missing, |entry| frees(&dir, entry));
    old.extend(more);
    Removal::of(&old)
}

/// Returns true if the removal of a file frees its space: no backup links it.
fn frees(dir: &Path, entry: &FileEntry) -> bool {
    fs::metadata(dir.join(&entry.file)).is_ok_and(|metadata| metadata.nlink() == 1)
}

impl Removal {
    fn of(old: &[FileEntry]) -> Removal {
        Removal {
            files: old.len() as u64,
            records: old.iter().map(|entry| entry.records).sum(),
            bytes: old.iter().map(|entry| entry.bytes).sum(),
            earliest: old.iter().map(|entry| entry.earliest).min().unwrap_or_default(),
            latest: old.iter().map(|entry| entry.latest).max().unwrap_or_default(),
        }
    }
}

/// The clock's time.
fn present() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(now.as_secs() as i64, now.subsec_nanos())
}

impl Drop for Keeper {
    /// Reports a panic at once to threads that wait for the keeper. The next successful piece of work clears the
    /// reason.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.requests().stuck = Some("the keeper ended by an internal error and begins again".to_owned());
            self.shared.called.notify_all();
        }
    }
}

struct TakenIn {
    records: u64,
    damaged: bool,
}

impl ArchiveState {
    /// Sets a damaged segment aside once its readable part is in Parquet.
    fn set_segment_aside(&self, segment: &Segment) {
        let aside = aside_dir(&self.dir);
        let name = segment::SEGMENTS.file_name(segment.number);
        let moved = fs::create_dir_all(&aside).and_then(|()| fs::rename(&segment.path, aside.join(&name)));
        let mut faults = self.faults.lock();
        faults.extend(segment.met.lock().drain(..));
        let of_it: BTreeMap<usize, ()> =
            faults.iter().enumerate().filter(|(_, fault)| fault.file == segment.path).map(|(place, _)| (place, ())).collect();
        let what = "its readable records are in Parquet; it was moved to set-aside";
        if moved.is_ok() {
            of_it.keys().for_each(|&place| faults[place].file = aside.join(&name));
        }
        if of_it.is_empty() {
            let to = segment.committed.load(Ordering::Acquire);
            faults.push(Fault { file: aside.join(&name), from: 0, to, what: format!("records that cannot be read: {what}") });
        }
    }
}
