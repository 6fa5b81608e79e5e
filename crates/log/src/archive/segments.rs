//! The built-in archive: opening it, taking arrivals, and what is known while it runs.
//!
//! Arrivals are gathered in memory; one worker writes what has gathered and syncs it, while the next group gathers (`commit`).
//! What was taken stays in memory until it is on disk, so a full disk loses nothing: the group waits, new arrivals are refused
//! once [`Options::pending`] is reached, and the transport holds them.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
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
    Appended, Archive, ArchiveError, Arrival, Counts, Fault, Found, Grouping, Health, Scanned, Stop, StreamOffset, Told, commit,
    counts,
    digest::{self, Digest},
    frame,
    group::{self, Group},
    search,
    seen::Seen,
    segment::{self, BadSegment, Segment},
    side,
};
use crate::query::Query;

/// The longest sample that is kept, in bytes: a frame of it is far from the length a reader takes for damage.
const LONGEST_SAMPLE: usize = frame::LONGEST / 2;

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
}

impl Options {
    /// The default bounds: segments of 128 MiB, 96 MiB pending, 2 s wait, 2 ms linger, 250 ms retry.
    pub fn new(domain: Domain) -> Options {
        Options {
            domain,
            roll: 128 << 20,
            pending: 96 << 20,
            wait: Duration::from_secs(2),
            linger: Duration::from_millis(2),
            retry: Duration::from_millis(250),
        }
    }
}

/// Write-ahead segments on a local disk.
pub struct Segments {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    /// Held for its lock.
    lock: File,
}

pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) dir: PathBuf,
    pub(super) gathering: Mutex<Gathering>,
    /// There is something to write, or the archive closes.
    pub(super) work: Condvar,
    /// A group has left the gathering, or has been committed.
    pub(super) moved: Condvar,
    pub(super) segments: RwLock<Vec<Arc<Segment>>>,
    pub(super) committed: AtomicU64,
    pub(super) told: Mutex<Vec<Told>>,
    pub(super) faults: Mutex<Vec<Fault>>,
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

    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Segments {
    /// Opens the archive in `dir`, making it where there is none: takes the lock, reads what is known of every segment, and
    /// cuts off what an interrupted write left behind the last commit.
    pub fn open(dir: impl Into<PathBuf>, options: Options) -> Result<Segments, ArchiveError> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(|source| ArchiveError::File { doing: "making", path: dir.clone(), source })?;
        let lock = lock(&dir)?;
        let mut opened = Opened::default();
        for (number, path) in listed(&dir)? {
            opened.number = opened.number.max(number);
            opened.paths.push((number, path));
        }
        let last = opened.paths.len();
        for (place, (number, path)) in std::mem::take(&mut opened.paths).into_iter().enumerate() {
            opened.take(&dir, number, path, place + 1 == last, &options.domain)?;
        }
        let gathering = Gathering {
            committed_offsets: opened.offsets.clone(),
            offsets: opened.offsets,
            seen: opened.seen,
            records: opened.records,
            ..Gathering::default()
        };
        let shared = Arc::new(Shared {
            options,
            dir,
            gathering: Mutex::new(gathering),
            work: Condvar::new(),
            moved: Condvar::new(),
            segments: RwLock::new(opened.segments),
            committed: AtomicU64::new(0),
            told: Mutex::default(),
            faults: Mutex::new(opened.faults),
        });
        let writer = commit::Writer::new(shared.clone(), opened.number, opened.runs);
        let worker = std::thread::Builder::new()
            .name("archive commit".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| ArchiveError::File { doing: "starting the worker of", path: shared.dir.clone(), source })?;
        Ok(Segments { shared, worker: Some(worker), lock })
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

impl Archive for Segments {
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        let mut digests: Vec<Digest> = Vec::with_capacity(arrival.samples.len());
        for (sample, bytes) in arrival.samples.iter().enumerate() {
            if bytes.len() > LONGEST_SAMPLE {
                let why = format!("it has {} bytes; {LONGEST_SAMPLE} are kept", bytes.len());
                return Err(ArchiveError::Undecodable { sample, why });
            }
            digests.push(digest::digest(bytes).map_err(|why| ArchiveError::Undecodable { sample, why })?);
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
        search::search(&self.shared.segments(), query, stop, sink)
    }

    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
        counts::count(&self.shared.segments(), query, by, stop)
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
        let segments = self.shared.segments();
        let mut health = Health { segments: segments.len(), ..Health::default() };
        for segment in &segments {
            health.bytes += segment.committed.load(Ordering::Acquire);
            if let Some((earliest, latest)) = segment.span() {
                health.earliest = Some(health.earliest.map_or(earliest, |before| before.min(earliest)));
                health.latest = Some(health.latest.map_or(latest, |before| before.max(latest)));
            }
        }
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
        health
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        self.shared.gathering().closing = true;
        self.shared.work.notify_all();
        self.shared.moved.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        // Said and not left to closing: a child process that is just being started has a copy of the file until it runs.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

fn lock(dir: &Path) -> Result<File, ArchiveError> {
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

fn listed(dir: &Path) -> Result<Vec<(u64, PathBuf)>, ArchiveError> {
    let list = || -> io::Result<Vec<(u64, PathBuf)>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if let Some(number) = entry.file_name().to_str().and_then(segment::number_of) {
                paths.push((number, entry.path()));
            }
        }
        paths.sort();
        Ok(paths)
    };
    list().map_err(|source| ArchiveError::File { doing: "listing", path: dir.to_owned(), source })
}

/// What opening has found so far.
#[derive(Default)]
struct Opened {
    number: u64,
    paths: Vec<(u64, PathBuf)>,
    segments: Vec<Arc<Segment>>,
    seen: Seen,
    offsets: HashMap<(Incarnation, u32), u64>,
    records: u64,
    faults: Vec<Fault>,
    /// Of the last segment, which has no side file yet.
    runs: Vec<(Incarnation, super::seen::Run)>,
}

impl Opened {
    fn take(&mut self, dir: &Path, number: u64, path: PathBuf, last: bool, domain: &Domain) -> Result<(), ArchiveError> {
        let failed = |doing| {
            let path = path.clone();
            move |source| ArchiveError::File { doing, path, source }
        };
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed("opening"))?;
        let length = file.metadata().map_err(failed("measuring"))?.len();
        let mut head = vec![0; length.min(512) as usize];
        io::Read::read_exact(&mut &file, &mut head).map_err(failed("reading"))?;
        let header = match segment::check_header(&head, domain) {
            Ok(header) => header,
            Err(BadSegment::Header) if last && length <= 512 => {
                // The machine went down while it was being made; nothing was ever committed to it.
                self.faults.push(Fault::torn(&path, 0, length));
                return fs::remove_file(&path).map_err(failed("removing the unfinished"));
            }
            Err(why) => {
                self.set_aside(dir, &path, length, &why);
                return Ok(());
            }
        };
        let known = if last { None } else { side::read(dir, number, length) };
        let content = match known {
            Some(content) => content,
            None => {
                let bytes = fs::read(&path).map_err(failed("reading"))?;
                let faults = self.faults.len();
                let content = segment::scan(&path, &bytes, header, last, &mut self.faults);
                if last && content.end < length {
                    file.set_len(content.end).and_then(|()| file.sync_all()).map_err(failed("cutting"))?;
                } else if !last && self.faults.len() == faults {
                    // Only a matter of the next start's speed.
                    let _ = side::write(dir, number, &content);
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

    /// What is no segment of ours is moved out of the way under its own name; what another release or installation may still
    /// want stays where it is.
    fn set_aside(&mut self, dir: &Path, path: &Path, length: u64, why: &BadSegment) {
        let mut what = format!("{why}; it is left as it is and not served");
        if matches!(why, BadSegment::Foreign | BadSegment::Header)
            && let Some(name) = path.file_name()
        {
            let aside = dir.join("set-aside");
            let moved = fs::create_dir_all(&aside).and_then(|()| fs::rename(path, aside.join(name)));
            if moved.is_ok() {
                what = format!("{why}; moved to {} and not served", aside.join(name).display());
            }
        }
        self.faults.push(Fault { file: path.to_owned(), from: 0, to: length, what });
    }
}
