//! The keeper: the archive's second worker, which takes closed segments into Parquet files, joins small files, and removes what
//! is older than it has to be kept.
//!
//! It works one piece at a time: write files, sync them, commit them to the manifest, and let searches see the exchange in one
//! step. Until the commit nothing of what it wrote counts; after it nothing of what it replaced does. It takes a declared share
//! of one processor, and all of one only when it is asked to hurry, or when more closed segments wait than [`Options::backlog`].

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::Path,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::{BatchHeader, Incarnation, Time};

use super::{
    Fault, News, StreamOffset,
    budget::{Budget, thread_cpu},
    content::Gathered,
    frame::{self, Kind},
    known::Known,
    local::{Shared, aside_dir, ids_dir, parquet_dir, segments_dir},
    manifest::{Commit, FileEntry, file_name, ids_name, sync_dir, write_whole},
    merge,
    parquet::Sent,
    segment::{self, Segment},
    side,
    stored::Stored,
};

/// How often it looks for work without being called.
const LOOK: Duration = Duration::from_secs(1);
/// After this long it tries again what has failed.
const AGAIN: Duration = Duration::from_secs(5);
/// Bytes of segments that one compaction takes, but always one whole segment. Bounds its memory: about as much again.
const TAKEN: u64 = 160 << 20;
/// Files of ids beyond which they are joined.
const MOST_IDS: usize = 16;
/// Bytes of work between two looks at the clock.
const STEP: usize = 1 << 20;

/// What the keeper is told and what it tells.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) closing: bool,
    /// Everything up to this segment is to be compacted, with no regard to the share.
    pub(super) hurry: u64,
    /// Everything up to this segment has been.
    pub(super) done: u64,
    /// Why it cannot go on.
    pub(super) stuck: Option<String>,
    pub(super) news: Vec<News>,
}

/// News kept until somebody takes them; beyond it the oldest go.
const MOST_NEWS: usize = 100;

pub(super) struct Keeper {
    shared: Arc<Shared>,
    budget: Budget,
    rows: Gathered,
}

/// Why a piece of work ended early.
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
    pub(super) fn new(shared: Arc<Shared>) -> Keeper {
        let budget = Budget::new(shared.options.share, Instant::now(), thread_cpu());
        let rows = Gathered::new(shared.content);
        Keeper { shared, budget, rows }
    }

    pub(super) fn run(mut self) {
        let mut wait = Duration::ZERO;
        while self.wait(wait) {
            wait = match self.work() {
                Ok(true) => Duration::ZERO,
                Ok(false) => LOOK,
                Err(Stopped::Closing) => return,
                Err(Stopped::Failed(why)) => {
                    self.desk().stuck = Some(why);
                    self.shared.called.notify_all();
                    AGAIN
                }
            };
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.shared.desk()
    }

    /// Waits this long, or until it is called; `false` at the end.
    fn wait(&self, time: Duration) -> bool {
        let desk = self.desk();
        if desk.closing || time.is_zero() {
            return !desk.closing;
        }
        let (desk, _) = self.shared.call.wait_timeout(desk, time).unwrap_or_else(PoisonError::into_inner);
        !desk.closing
    }

    /// Keeps to the share; an error when the archive closes.
    fn pace(&mut self) -> io::Result<()> {
        let backlog = self.shared.waiting();
        let due = self.budget.due(Instant::now(), thread_cpu());
        let mut desk = self.shared.desk();
        let until = Instant::now() + due;
        loop {
            if desk.closing {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || desk.hurry > desk.done || backlog > self.shared.options.backlog {
                return Ok(());
            }
            desk = self.shared.call.wait_timeout(desk, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does one piece of work; whether there was any.
    fn work(&mut self) -> Result<bool, Stopped> {
        let segments = self.closed_segments();
        let done = if !segments.is_empty() {
            self.compact(&segments)?;
            true
        } else {
            self.join_ids()? || self.merge()? || self.set_broken_aside()? || self.remove_old()?
        };
        let mut desk = self.desk();
        desk.stuck = None;
        desk.done = self.shared.manifest().state.segments;
        let closed = self.shared.closed.load(Ordering::Acquire);
        if self.shared.contents().segments.iter().all(|segment| segment.number > closed) {
            desk.done = desk.done.max(closed);
        }
        drop(desk);
        self.shared.called.notify_all();
        Ok(done)
    }

    /// The oldest closed segments, as many as are taken at once.
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
        let added = self.write_gathered(number)?;
        let ids = ids_name(number);
        let path = ids_dir(&self.shared.dir).join(&ids);
        write_whole(&path, &known.encode()).map_err(failed("writing", &path))?;
        let commit = Commit { number, segments: Some(through), add: added, add_ids: vec![ids], ..Commit::default() };
        self.commit(&commit, through, damaged, taken)
    }

    /// Writes what is gathered.
    fn write_gathered(&mut self, number: u64) -> Result<Vec<FileEntry>, Stopped> {
        let rows = std::mem::replace(&mut self.rows, Gathered::new(self.shared.content));
        let added = self.write_days(&rows, number);
        self.rows = rows;
        added
    }

    /// Writes the rows, a file a day. Where one fails, none is left.
    fn write_days(&mut self, rows: &Gathered, number: u64) -> Result<Vec<FileEntry>, Stopped> {
        let dir = parquet_dir(&self.shared.dir);
        let mut added: Vec<FileEntry> = Vec::new();
        let domain = self.shared.options.domain.to_string();
        for (day, places) in rows.by_day() {
            let name = file_name(day, number);
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

    /// Takes a segment's records in; what cannot be read of it is told and kept aside.
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
                }
                Err(_) => unreadable = 1,
            }
            // Kept as it came: a later release may be able to read it.
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

    /// The exchange: on disk by the manifest's line, for searches by one assignment.
    fn commit(&mut self, commit: &Commit, through: u64, damaged: Vec<u64>, taken: u64) -> Result<(), Stopped> {
        let dir = parquet_dir(&self.shared.dir);
        let shared = self.shared.clone();
        let mut manifest = shared.manifest();
        if let Err(error) = manifest.commit(commit) {
            commit.add.iter().for_each(|entry| drop(fs::remove_file(dir.join(&entry.file))));
            commit.add_ids.iter().for_each(|name| drop(fs::remove_file(ids_dir(&shared.dir).join(name))));
            return Err(failed("writing", &shared.dir.join(super::manifest::NAME))(error));
        }
        let removed: Vec<Arc<Stored>>;
        let gone: Vec<Arc<Segment>>;
        {
            let mut contents = shared.contents.write().unwrap_or_else(PoisonError::into_inner);
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
        // What stays of these files is removed at the next start, as the manifest says that it is in Parquet.
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

    /// Joins files of ids where there are many.
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

    /// Joins small files of one day.
    fn merge(&mut self) -> Result<bool, Stopped> {
        let files = self.shared.contents().files;
        let Some(small) = merge::choose(&files) else { return Ok(false) };
        self.rows.clear();
        let mut rows = std::mem::replace(&mut self.rows, Gathered::new(self.shared.content));
        let read = merge::read(&small, &mut rows, &mut || self.pace());
        self.rows = rows;
        match read {
            Ok(true) => {}
            // What is damaged stays as it is.
            Ok(false) => return Ok(false),
            Err(error) => return Err(failed("reading", &parquet_dir(&self.shared.dir))(error)),
        }
        let number = self.shared.manifest().state.number + 1;
        let added = self.write_gathered(number);
        let remove = small.iter().map(|file| file.entry.file.clone()).collect();
        self.commit(&Commit { number, add: added?, remove, ..Commit::default() }, 0, Vec::new(), 0)?;
        Ok(true)
    }

    /// Moves files out of the way that cannot be read at all.
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
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
        Ok(true)
    }

    /// Removes what has been kept long enough.
    fn remove_old(&mut self) -> Result<bool, Stopped> {
        let keep = &self.shared.options.keep;
        let files = self.shared.contents().files;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Time::from_unix(now.as_secs() as i64, now.subsec_nanos());
        let (old, news) = keep.choose(files.iter().map(|file| &file.entry), now);
        if let Some(news) = news {
            self.tell(news);
        }
        if old.is_empty() {
            return Ok(false);
        }
        let number = self.shared.manifest().state.number + 1;
        let commit = Commit { number, remove: old.iter().map(|entry| entry.file.clone()).collect(), ..Commit::default() };
        self.commit(&commit, 0, Vec::new(), 0)?;
        self.tell(News::Removed {
            files: old.len() as u64,
            records: old.iter().map(|entry| entry.records).sum(),
            bytes: old.iter().map(|entry| entry.bytes).sum(),
            earliest: old.iter().map(|entry| entry.earliest).min().unwrap_or_default(),
            latest: old.iter().map(|entry| entry.latest).max().unwrap_or_default(),
        });
        Ok(true)
    }

    fn tell(&self, news: News) {
        let mut desk = self.desk();
        if desk.news.last() != Some(&news) {
            desk.news.push(news);
        }
        if desk.news.len() > MOST_NEWS {
            desk.news.remove(0);
        }
    }
}

struct TakenIn {
    records: u64,
    damaged: bool,
}

impl Shared {
    /// Moves a damaged segment out of the way once what is good of it is in Parquet.
    fn set_segment_aside(&self, segment: &Segment) {
        let aside = aside_dir(&self.dir);
        let name = segment::file_name(segment.number);
        let moved = fs::create_dir_all(&aside).and_then(|()| fs::rename(&segment.path, aside.join(&name)));
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.extend(segment.met.lock().unwrap_or_else(PoisonError::into_inner).drain(..));
        let of_it: BTreeMap<usize, ()> =
            faults.iter().enumerate().filter(|(_, fault)| fault.file == segment.path).map(|(place, _)| (place, ())).collect();
        let what = "what could be read of it is in Parquet; it was moved to set-aside";
        if moved.is_ok() {
            of_it.keys().for_each(|&place| faults[place].file = aside.join(&name));
        }
        if of_it.is_empty() {
            let to = segment.committed.load(Ordering::Acquire);
            faults.push(Fault { file: aside.join(&name), from: 0, to, what: format!("records that cannot be read: {what}") });
        }
    }
}
