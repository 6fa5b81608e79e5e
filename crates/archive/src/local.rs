//! The built-in archive: opening, arrivals, and state at run time.
//!
//! Arrivals gather in memory. The commit writer writes and syncs one group while the next group gathers (`commit`).
//! Accepted records stay in memory until they are on disk, so a full disk loses nothing. The group waits, and the
//! archive refuses new arrivals once [`Options::pending`] is reached; the transport holds them. A second worker moves
//! closed segments into Parquet files (`keeper`).

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use rustix::fs::FlockOperation;
use tampu_workers::WorkerThread;

use crate::query::Query;
use crate::{
    Appended, Archive, ArchiveError, Arrival, BackedUp, Checked, Compacted, Counts, Doing, Found, Grouping, Health, News,
    Patterns, PatternsWanted, Removal, Scanned, Stop, StreamOffset, Told,
    columns::{ColumnBatch, ColumnType},
    framed,
    keeper::{self, Keeper},
    local::{
        dirs::{ids_dir, lock, lock_existing, parquet_dir, segments_dir},
        gathering::Gathering,
        open::Opened,
        options::{Options, Retention},
        state::{ArchiveState, Contents},
    },
    parquet::stored::Tables,
    search::{self, Sink, counts, patterns},
    wal::{commit, content::Content, digest::Digest, group},
};

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod dirs;
mod earlier;
pub(crate) mod gathering;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod state;

/// Longest accepted sample, in bytes. Its frame is far shorter than the length at which a reader assumes damage.
const LONGEST_SAMPLE: usize = framed::LONGEST / 2;

/// Pause before a keeper that panicked starts again.
const KEEPER_RESTART: Duration = Duration::from_secs(5);

/// Longest single wait. After it the waiting thread checks whether it should continue to wait.
const SLICE: Duration = Duration::from_millis(100);

/// Write-ahead segments and Parquet files on a local disk.
pub struct LocalArchive {
    pub(crate) shared: Arc<ArchiveState>,
    workers: Vec<JoinHandle<()>>,
    /// File that holds the archive's lock.
    lock: File,
}

impl LocalArchive {
    /// Opens the archive in `dir` and creates it if it is missing. It takes the lock, and reads the manifest and the
    /// index of every segment. It removes files that an interrupted write or compaction left.
    pub fn open(dir: impl Into<PathBuf>, options: Options) -> Result<LocalArchive, ArchiveError> {
        LocalArchive::open_with(dir.into(), options, Content::Log)
    }

    /// Opens an archive of any content. Only an archive of log records supports search and count.
    pub(crate) fn open_with(dir: PathBuf, options: Options, content: Content) -> Result<LocalArchive, ArchiveError> {
        for dir in [&dir, &segments_dir(&dir), &parquet_dir(&dir), &ids_dir(&dir)] {
            fs::create_dir_all(dir).map_err(|source| ArchiveError::File { doing: "making", path: dir.clone(), source })?;
        }
        let lock = lock(&dir)?;
        let tables = Arc::new(Tables::new(content.layout()));
        let Opened { number, segments, files, manifest, seen, offsets, records, faults, runs, .. } =
            open::open(&dir, &options.domain, content, &tables)?;
        let gathering = Gathering { committed_offsets: offsets.clone(), offsets, seen, records, ..Gathering::default() };
        let closed = segments.iter().map(|segment| segment.number).filter(|&closed| closed != number).max();
        let shared = Arc::new(ArchiveState {
            retention: RwLock::new(options.retention()),
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
            requests: Mutex::default(),
            call: Condvar::new(),
            called: Condvar::new(),
            committed: AtomicU64::new(0),
            told: Mutex::default(),
            faults: Mutex::new(faults),
        });
        let writer = commit::Writer::new(shared.clone(), number, runs);
        let mut archive = LocalArchive { shared: shared.clone(), workers: Vec::new(), lock };
        let started = WorkerThread::named("archive commit").spawn(shared.options.on_panic, move || writer.run());
        archive.workers.push(started.map_err(|source| shared.not_started(source))?);
        if shared.options.compact {
            let state = shared.clone();
            let work = move || Keeper::new(state.clone()).run();
            let started = WorkerThread::named("archive keeper").spawn_restarting(KEEPER_RESTART, work);
            archive.workers.push(started.map_err(|source| shared.not_started(source))?);
        }
        Ok(archive)
    }

    /// Locks the archive of a directory, without a change there, against processes that write it; `None` if no archive
    /// was ever there. Dropping the file frees the lock.
    pub fn lock_existing(dir: &Path) -> Result<Option<File>, ArchiveError> {
        lock_existing(dir)
    }

    /// Changes the retention. Files beyond the new limits are removed within a second.
    pub fn set_retention(&self, retention: Retention) {
        *self.shared.retention.write() = retention;
        self.shared.call.notify_all();
    }

    /// Returns events of the archive since the last call, and forgets them. They belong in the log; there are at most a
    /// hundred.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.shared.requests().news)
    }

    /// Closes the open segment and waits until every accepted record is in Parquet files.
    fn compact_now(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<(), ArchiveError> {
        let unfinished = |why: &str| ArchiveError::Compaction(why.to_owned());
        if !self.shared.options.compact {
            return Err(unfinished("this archive was opened without it"));
        }
        while !self.flush(SLICE) {
            if stop.is_stopped() {
                return Err(unfinished("accepted records are not yet on disk"));
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
                self.shared.moved.wait_for(&mut gathering, SLICE);
            }
            self.shared.closed.load(Ordering::Acquire)
        };
        let mut requests = self.shared.requests();
        requests.hurry = requests.hurry.max(through);
        requests.stuck = None;
        self.shared.call.notify_all();
        while requests.done < through {
            if let Some(why) = &requests.stuck {
                return Err(ArchiveError::Compaction(why.clone()));
            }
            if stop.is_stopped() || requests.closing {
                return Err(unfinished("it was stopped early; the rest continues at its own pace"));
            }
            drop(requests);
            let health = self.health();
            doing(Doing { done: health.in_files, total: health.records });
            requests = self.shared.requests();
            if requests.done < through {
                self.shared.called.wait_for(&mut requests, SLICE);
            }
        }
        Ok(())
    }

    /// Returns the reason why nothing can be compacted at present.
    pub fn compaction_stuck(&self) -> Option<String> {
        self.shared.requests().stuck.clone()
    }

    fn wait_for_room<'a>(&'a self, size: usize) -> Result<MutexGuard<'a, Gathering>, ArchiveError> {
        let until = Instant::now() + self.shared.options.wait;
        let mut gathering = self.shared.gathering();
        loop {
            if gathering.closing {
                return Err(ArchiveError::Closed);
            }
            let waiting = gathering.group.bytes.len();
            // A batch larger than the limit is accepted alone.
            if waiting == 0 || waiting + size <= self.shared.options.pending {
                return Ok(gathering);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let pending = (waiting + gathering.writing) as u64;
                let why = gathering.stuck.clone().unwrap_or_else(|| "the disk is slower than what arrives".to_owned());
                return Err(ArchiveError::Full { dir: self.shared.dir.clone(), pending, why });
            }
            self.shared.moved.wait_for(&mut gathering, left);
        }
    }
}

impl Archive for LocalArchive {
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        let undecodable = |(sample, why)| ArchiveError::Undecodable { sample, why };
        if let Some(sample) = arrival.samples.iter().position(|bytes| bytes.len() > LONGEST_SAMPLE) {
            let why = format!("it has {} bytes; {LONGEST_SAMPLE} are kept", arrival.samples[sample].len());
            return Err(undecodable((sample, why)));
        }
        let content = self.shared.content;
        let each = || {
            let samples = arrival.samples.iter().enumerate();
            let digests = samples.map(|(place, bytes)| content.digest(arrival.header, bytes).map_err(|why| (place, why)));
            digests.collect::<Result<Vec<Digest>, _>>()
        };
        let whole = content.digest_all(arrival.samples).map_err(undecodable)?;
        let mut digests = if whole.is_none() { each().map_err(undecodable)? } else { Vec::new() };
        let size = arrival.samples.iter().map(|sample| sample.len() + 8).sum::<usize>() + group::OVERHEAD;
        let mut gathering = self.wait_for_room(size)?;
        let was_empty = gathering.group.is_empty();
        let taken = whole.as_ref().and_then(|whole| gathering.take_whole(arrival, whole));
        let appended = match taken {
            Some(appended) => appended,
            None => {
                if whole.is_some() {
                    digests = each().map_err(undecodable)?;
                }
                gathering.take(arrival, &digests)
            }
        };
        if was_empty && !gathering.group.is_empty() {
            self.shared.work.notify_one();
        }
        Ok(appended)
    }

    fn committed(&self) -> u64 {
        self.shared.committed.load(Ordering::Acquire)
    }

    fn hurry(&self) {
        let mut gathering = self.shared.gathering();
        if !gathering.group.is_empty() {
            gathering.hurry = true;
            self.shared.work.notify_one();
        }
    }

    fn on_commit(&self, told: Told) {
        self.shared.told.lock().push(told);
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
            self.shared.moved.wait_for(&mut gathering, left);
        }
        true
    }

    fn search(&self, query: &Query, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError> {
        search::search(&self.shared.contents(), query, stop, &mut Sink::Records(sink))
    }

    fn columns(
        &self,
        query: &Query,
        schema: &[(&'static str, ColumnType)],
        stop: &Stop,
        sink: &mut dyn FnMut(ColumnBatch) -> bool,
    ) -> Result<Scanned, ArchiveError> {
        search::search(&self.shared.contents(), query, stop, &mut Sink::Columns(schema, sink))
    }

    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
        counts::count(&self.shared.contents(), query, by, stop)
    }

    fn removal(&self, retention: &Retention) -> Removal {
        keeper::removal(&self.shared, retention)
    }

    fn patterns(&self, query: &Query, wanted: &PatternsWanted, stop: &Stop) -> Result<Patterns, ArchiveError> {
        patterns::patterns(&self.shared.contents(), query, wanted, stop)
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
        health.compaction_stuck.clone_from(&self.shared.requests().stuck);
        let gathering = self.shared.gathering();
        health.records = gathering.records;
        health.duplicates = gathering.duplicates;
        health.pending = (gathering.group.bytes.len() + gathering.writing) as u64;
        health.commits = gathering.commits;
        health.slowest_commit_us = gathering.slowest_commit.as_micros() as u64;
        health.stuck.clone_from(&gathering.stuck);
        drop(gathering);
        health.faults.clone_from(&self.shared.faults.lock());
        for segment in &segments {
            health.faults.extend_from_slice(&segment.met.lock());
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
        self.shared.requests().closing = true;
        self.shared.call.notify_all();
        self.shared.called.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        // Closing is not enough: a child process that is being started holds a copy of the file until its exec.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}
