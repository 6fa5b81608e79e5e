//! The built-in archive: opening it, taking arrivals, and what is known while it runs.
//!
//! Arrivals are gathered in memory; one worker writes what has gathered and syncs it, while the next group gathers (`commit`).
//! What was taken stays in memory until it is on disk, so a full disk loses nothing: the group waits, new arrivals are refused
//! once [`Options::pending`] is reached, and the transport holds them. A second worker takes closed segments into Parquet files
//! (`keeper`).

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::fs::FlockOperation;
use tampu_types::{Domain, Incarnation};

use super::{
    Appended, Archive, ArchiveError, Arrival, BackedUp, Checked, Compacted, Counts, Doing, Fault, Found, Grouping, Health, Keep,
    News, Scanned, Stop, StreamOffset, Told, backup, check, commit,
    content::Content,
    counts,
    digest::Digest,
    frame,
    group::{self, Group},
    keeper::{Desk, Keeper},
    manifest::Manifest,
    open::{self, Opened},
    search,
    seen::Seen,
    segment::Segment,
    stored::{Stored, Tables},
};
use crate::query::Query;

/// The longest sample that is kept, in bytes: a frame of it is far from the length a reader takes for damage.
const LONGEST_SAMPLE: usize = frame::LONGEST / 2;

/// How long is waited at a time before it is looked whether to wait on.
const SLICE: Duration = Duration::from_millis(100);

/// The archive's bounds.
#[derive(Debug, Clone)]
pub struct Options {
    /// The installation; segments of another are not served.
    pub domain: Domain,
    /// A segment that has reached this many bytes is followed by a new one.
    pub roll: u64,
    /// Bytes that may wait for the disk; beyond them arrivals are refused.
    pub pending: usize,
    /// How long an arrival waits for room before it is refused.
    pub wait: Duration,
    /// How long a group gathers at least, so that a fast disk is not kept busy with tiny commits.
    pub linger: Duration,
    /// How long the worker waits after the disk refused a group before it tries again.
    pub retry: Duration,
    /// Whether closed segments are taken into Parquet files.
    pub compact: bool,
    /// Which share of one processor that may take.
    pub share: f64,
    /// Closed segments that may wait for it; beyond them it takes all of one processor.
    pub backlog: usize,
    /// A segment whose first record is older than this is closed.
    pub close_after: Duration,
    /// How long records are kept.
    pub keep: Keep,
}

impl Options {
    /// The default bounds: segments of 128 MiB or an hour, 96 MiB pending, 2 s wait, 2 ms linger, 250 ms retry; a quarter of a
    /// processor for compaction, a backlog of 16 segments; everything kept for ever.
    pub fn new(domain: Domain) -> Options {
        Options {
            domain,
            roll: 128 << 20,
            pending: 96 << 20,
            wait: Duration::from_secs(2),
            linger: Duration::from_millis(2),
            retry: Duration::from_millis(250),
            compact: true,
            share: 0.25,
            backlog: 16,
            close_after: Duration::from_secs(3600),
            keep: Keep::default(),
        }
    }
}

/// Write-ahead segments and Parquet files on a local disk.
pub struct LocalArchive {
    pub(super) shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held for its lock.
    lock: File,
}

pub(super) struct Shared {
    pub(super) options: Options,
    /// What is kept.
    pub(super) content: Content,
    pub(super) dir: PathBuf,
    pub(super) gathering: Mutex<Gathering>,
    /// There is something to write, or the archive closes.
    pub(super) work: Condvar,
    /// A group has left the gathering, or has been committed.
    pub(super) moved: Condvar,
    pub(super) contents: RwLock<Contents>,
    /// The highest number of a segment that is written no more.
    pub(super) closed: AtomicU64,
    pub(super) tables: Arc<Tables>,
    /// Held while files come and go.
    pub(super) manifest: Mutex<Manifest>,
    pub(super) desk: Mutex<Desk>,
    /// The keeper is called.
    pub(super) call: Condvar,
    /// The keeper has done something.
    pub(super) called: Condvar,
    pub(super) committed: AtomicU64,
    pub(super) told: Mutex<Vec<Told>>,
    pub(super) faults: Mutex<Vec<Fault>>,
}

/// Where the records are: each in one segment or in one Parquet file.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) files: Arc<Vec<Arc<Stored>>>,
}

/// Where an archive has its segments.
pub(super) fn segments_dir(dir: &Path) -> PathBuf {
    dir.join("segments")
}

/// Where it has its Parquet files, a directory a day.
pub(super) fn parquet_dir(dir: &Path) -> PathBuf {
    dir.join("parquet")
}

/// Where it has the ids of what is in Parquet.
pub(super) fn ids_dir(dir: &Path) -> PathBuf {
    dir.join("ids")
}

/// Where it puts what cannot be read.
pub(super) fn aside_dir(dir: &Path) -> PathBuf {
    dir.join("set-aside")
}

/// What arrivals change.
#[derive(Default)]
pub(super) struct Gathering {
    pub(super) group: Group,
    pub(super) seen: Seen,
    /// Including what is not committed yet.
    pub(super) offsets: HashMap<(Incarnation, u32), u64>,
    pub(super) committed_offsets: HashMap<(Incarnation, u32), u64>,
    pub(super) ticket: u64,
    /// Bytes of the group that is being written.
    pub(super) writing: usize,
    pub(super) hurry: bool,
    pub(super) closing: bool,
    /// The segment that is written is to be closed.
    pub(super) roll: bool,
    pub(super) stuck: Option<String>,
    pub(super) records: u64,
    pub(super) duplicates: u64,
    pub(super) commits: u64,
    pub(super) slowest_commit: Duration,
}

impl Shared {
    pub(super) fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a search sees: one state, although the archive goes on.
    pub(super) fn contents(&self) -> Contents {
        self.contents.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closed segments that are not yet in Parquet.
    pub(super) fn waiting(&self) -> usize {
        let closed = self.closed.load(Ordering::Acquire);
        let contents = self.contents.read().unwrap_or_else(PoisonError::into_inner);
        contents.segments.iter().filter(|segment| segment.number <= closed).count()
    }

    /// Whether damage of a segment is known.
    pub(super) fn is_damaged(&self, segment: &Segment) -> bool {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter().any(|fault| fault.file == segment.path)
            || !segment.met.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl LocalArchive {
    /// Opens the archive in `dir`, making it where there is none: takes the lock, reads the manifest and what is known of every
    /// segment, and removes what an interrupted write or compaction left behind.
    pub fn open(dir: impl Into<PathBuf>, options: Options) -> Result<LocalArchive, ArchiveError> {
        LocalArchive::open_with(dir.into(), options, Content::Log)
    }

    /// The same for whatever is kept. Only one of log records can be searched and counted as one.
    pub(super) fn open_with(dir: PathBuf, options: Options, content: Content) -> Result<LocalArchive, ArchiveError> {
        for dir in [&dir, &segments_dir(&dir), &parquet_dir(&dir), &ids_dir(&dir)] {
            fs::create_dir_all(dir).map_err(|source| ArchiveError::File { doing: "making", path: dir.clone(), source })?;
        }
        let lock = lock(&dir)?;
        let tables = Arc::new(Tables::new(content.layout()));
        let Opened { number, segments, files, manifest, seen, offsets, records, faults, runs, .. } =
            open::open(&dir, &options.domain, content, &tables)?;
        let gathering = Gathering { committed_offsets: offsets.clone(), offsets, seen, records, ..Gathering::default() };
        let closed = segments.iter().map(|segment| segment.number).filter(|&closed| closed != number).max();
        let shared = Arc::new(Shared {
            options,
            content,
            dir,
            gathering: Mutex::new(gathering),
            work: Condvar::new(),
            moved: Condvar::new(),
            contents: RwLock::new(Contents { segments, files: Arc::new(files) }),
            closed: AtomicU64::new(closed.unwrap_or_default()),
            tables,
            manifest: Mutex::new(manifest),
            desk: Mutex::default(),
            call: Condvar::new(),
            called: Condvar::new(),
            committed: AtomicU64::new(0),
            told: Mutex::default(),
            faults: Mutex::new(faults),
        });
        let writer = commit::Writer::new(shared.clone(), number, runs);
        let mut archive = LocalArchive { shared: shared.clone(), workers: Vec::new(), lock };
        archive.start("archive commit", move || writer.run())?;
        if shared.options.compact {
            let keeper = Keeper::new(shared);
            archive.start("archive keeper", move || keeper.run())?;
        }
        Ok(archive)
    }

    fn start(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ArchiveError> {
        let path = self.shared.dir.clone();
        let worker = std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(|source| ArchiveError::File {
            doing: "starting a worker of",
            path,
            source,
        })?;
        self.workers.push(worker);
        Ok(())
    }

    /// What has happened since this was last asked that somebody should read of; at most a hundred.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.shared.desk().news)
    }

    /// Closes the segment that is written now and waits until everything taken so far is in Parquet files.
    fn compact_now(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<(), ArchiveError> {
        let unfinished = |why: &str| ArchiveError::Compaction(why.to_owned());
        if !self.shared.options.compact {
            return Err(unfinished("this archive was opened without it"));
        }
        while !self.flush(SLICE) {
            if stop.is_stopped() {
                return Err(unfinished("what was taken is not yet on disk"));
            }
        }
        let through = {
            let mut gathering = self.shared.gathering();
            gathering.roll = true;
            self.shared.work.notify_one();
            while gathering.roll {
                if stop.is_stopped() || gathering.closing {
                    return Err(unfinished("the segment that is written could not be closed in time"));
                }
                gathering = self.shared.moved.wait_timeout(gathering, SLICE).unwrap_or_else(PoisonError::into_inner).0;
            }
            self.shared.closed.load(Ordering::Acquire)
        };
        let mut desk = self.shared.desk();
        desk.hurry = desk.hurry.max(through);
        desk.stuck = None;
        self.shared.call.notify_all();
        while desk.done < through {
            if let Some(why) = &desk.stuck {
                return Err(ArchiveError::Compaction(why.clone()));
            }
            if stop.is_stopped() || desk.closing {
                return Err(unfinished("it was ended before; what is left goes on at its own pace"));
            }
            drop(desk);
            let health = self.health();
            doing(Doing { done: health.in_files, total: health.records });
            desk = self.shared.desk();
            if desk.done < through {
                desk = self.shared.called.wait_timeout(desk, SLICE).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        Ok(())
    }

    /// Why nothing can be compacted now.
    pub fn compaction_stuck(&self) -> Option<String> {
        self.shared.desk().stuck.clone()
    }

    fn wait_for_room<'a>(&'a self, size: usize) -> Result<MutexGuard<'a, Gathering>, ArchiveError> {
        let until = Instant::now() + self.shared.options.wait;
        let mut gathering = self.shared.gathering();
        loop {
            if gathering.closing {
                return Err(ArchiveError::Closed);
            }
            let waiting = gathering.group.bytes.len();
            // A batch larger than the bound is taken alone.
            if waiting == 0 || waiting + size <= self.shared.options.pending {
                return Ok(gathering);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let pending = (waiting + gathering.writing) as u64;
                let why = gathering.stuck.clone().unwrap_or_else(|| "the disk is slower than what arrives".to_owned());
                return Err(ArchiveError::Full { dir: self.shared.dir.clone(), pending, why });
            }
            gathering = self.shared.moved.wait_timeout(gathering, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Archive for LocalArchive {
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        let mut digests: Vec<Digest> = Vec::with_capacity(arrival.samples.len());
        for (sample, bytes) in arrival.samples.iter().enumerate() {
            if bytes.len() > LONGEST_SAMPLE {
                let why = format!("it has {} bytes; {LONGEST_SAMPLE} are kept", bytes.len());
                return Err(ArchiveError::Undecodable { sample, why });
            }
            digests.push(
                self.shared.content.digest(arrival.header, bytes).map_err(|why| ArchiveError::Undecodable { sample, why })?,
            );
        }
        let size = arrival.samples.iter().map(|sample| sample.len() + 8).sum::<usize>() + group::OVERHEAD;
        let mut gathering = self.wait_for_room(size)?;
        let was_empty = gathering.group.is_empty();
        let appended = gathering.take(arrival, &digests);
        if was_empty && !gathering.group.is_empty() {
            self.shared.work.notify_one();
        }
        Ok(appended)
    }

    fn committed(&self) -> u64 {
        self.shared.committed.load(Ordering::Acquire)
    }

    fn on_commit(&self, told: Told) {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    fn flush(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut gathering = self.shared.gathering();
        let ticket = gathering.ticket;
        while self.committed() < ticket {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            gathering.hurry = true;
            self.shared.work.notify_one();
            gathering = self.shared.moved.wait_timeout(gathering, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn search(&self, query: &Query, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError> {
        search::search(&self.shared.contents(), query, stop, sink)
    }

    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
        counts::count(&self.shared.contents(), query, by, stop)
    }

    fn compact(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Compacted, ArchiveError> {
        self.compact_now(stop, doing)?;
        let health = self.health();
        let bytes = self.shared.contents().files.iter().map(|file| file.entry.bytes).sum();
        Ok(Compacted { files: health.files as u64, records: health.in_files, bytes })
    }

    fn check(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Checked, ArchiveError> {
        Ok(check::check(&self.shared, stop, doing))
    }

    fn backup(&self, target: &Path, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<BackedUp, ArchiveError> {
        backup::backup(&self.shared, target, stop, doing)
    }

    fn offsets(&self) -> Vec<StreamOffset> {
        let gathering = self.shared.gathering();
        let offset = |(&(incarnation, stream), &next)| StreamOffset { incarnation, stream, next };
        gathering.committed_offsets.iter().map(offset).collect()
    }

    fn stuck(&self) -> Option<String> {
        self.shared.gathering().stuck.clone()
    }

    fn health(&self) -> Health {
        let Contents { segments, files } = self.shared.contents();
        let mut health = Health { segments: segments.len(), files: files.len(), ..Health::default() };
        let mut spans = Vec::new();
        for segment in &segments {
            health.bytes += segment.committed.load(Ordering::Acquire);
            spans.extend(segment.span());
        }
        for file in files.iter() {
            health.bytes += file.entry.bytes;
            health.in_files += file.entry.records;
            spans.push((file.entry.earliest, file.entry.latest));
        }
        health.earliest = spans.iter().map(|(earliest, _)| *earliest).min();
        health.latest = spans.iter().map(|(_, latest)| *latest).max();
        health.waiting = self.shared.waiting();
        health.compaction_stuck.clone_from(&self.shared.desk().stuck);
        let gathering = self.shared.gathering();
        health.records = gathering.records;
        health.duplicates = gathering.duplicates;
        health.pending = (gathering.group.bytes.len() + gathering.writing) as u64;
        health.commits = gathering.commits;
        health.slowest_commit_us = gathering.slowest_commit.as_micros() as u64;
        health.stuck.clone_from(&gathering.stuck);
        drop(gathering);
        health.faults.clone_from(&self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner));
        for segment in &segments {
            health.faults.extend_from_slice(&segment.met.lock().unwrap_or_else(PoisonError::into_inner));
        }
        files.iter().for_each(|file| health.faults.extend(file.met()));
        health
    }
}

impl Drop for LocalArchive {
    fn drop(&mut self) {
        self.shared.gathering().closing = true;
        self.shared.work.notify_all();
        self.shared.moved.notify_all();
        self.shared.desk().closing = true;
        self.shared.call.notify_all();
        self.shared.called.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        // Said and not left to closing: a child process that is just being started has a copy of the file until it runs.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

pub(super) fn lock(dir: &Path) -> Result<File, ArchiveError> {
    let path = dir.join("archive.lock");
    let file_error = |source| ArchiveError::File { doing: "locking", path: path.clone(), source };
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(file_error)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut by = String::new();
            let _ = file.read_to_string(&mut by);
            let by = by.trim();
            let by = if by.is_empty() { "another process".to_owned() } else { format!("process {by}") };
            return Err(ArchiveError::InUse { dir: dir.to_owned(), by });
        }
        Err(error) => return Err(file_error(error.into())),
    }
    // Who holds it is for people; on a full disk the lock holds without it.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}
