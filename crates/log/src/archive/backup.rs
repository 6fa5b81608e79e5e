//! A copy of an archive, made while it runs: a directory that can be opened in its place.
//!
//! What never changes any more (Parquet files, ids, closed segments) is linked where the copy lies on the same file system, else
//! copied, and only if it is not there yet; of the segment that is written, what is committed is copied. The manifest comes
//! last: until then the copy is the one before, from then on this one, and only then what is no longer in it is removed.

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use serde::{Deserialize, Serialize};

use super::{
    ArchiveError, Doing, Stop,
    local::{Contents, Shared, ids_dir, lock, parquet_dir, segments_dir},
    manifest::{self, sync_dir, write_whole},
    open::below,
    segment,
};

/// What a backup did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackedUp {
    /// Where it is.
    pub directory: PathBuf,
    /// Records in it.
    pub records: u64,
    /// Files that were there already.
    pub kept: u64,
    /// Files linked.
    pub linked: u64,
    /// Files copied, and their bytes.
    pub copied: u64,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// Files removed that are no longer the archive's.
    pub removed: u64,
}

/// Copies the archive into `target`, which becomes one itself.
pub(super) fn backup(
    shared: &Shared,
    target: &Path,
    stop: &Stop,
    doing: &mut dyn FnMut(Doing),
) -> Result<BackedUp, ArchiveError> {
    for dir in [segments_dir(target), parquet_dir(target), ids_dir(target)] {
        fs::create_dir_all(&dir).map_err(|source| ArchiveError::File { doing: "making", path: dir.clone(), source })?;
    }
    // Nobody has it open meanwhile.
    let _lock = lock(target)?;
    let mut making = Making { target, stop, doing, done: 0, total: 0, made: BackedUp::default(), dirs: BTreeSet::new() };
    // Held to the end: no file goes away and no segment is compacted meanwhile. Records are taken all the same.
    let manifest = shared.manifest();
    let Contents { segments, files } = shared.contents();
    let state = manifest.state.clone();
    let lengths = segments.iter().map(|segment| segment.committed.load(Ordering::Acquire));
    making.total = lengths.sum::<u64>() + files.iter().map(|file| file.entry.bytes).sum::<u64>();
    let closed = shared.closed.load(Ordering::Acquire);
    let mut wanted = BTreeSet::new();
    let mut records = files.iter().map(|file| file.entry.records).sum::<u64>();
    for file in files.iter() {
        let to = parquet_dir(target).join(&file.entry.file);
        making.whole(&file.path, &to, Some(file.entry.bytes))?;
        wanted.insert(to);
    }
    for name in &state.ids {
        let to = ids_dir(target).join(name);
        making.whole(&ids_dir(&shared.dir).join(name), &to, None)?;
        wanted.insert(to);
    }
    for held in &segments {
        let to = segments_dir(target).join(segment::file_name(held.number));
        let length = held.committed.load(Ordering::Acquire);
        // More may be committed while it is copied; that is not in the copy.
        let within = held.select(|entry| entry.at + u64::from(entry.length) <= length);
        records += within.iter().map(|entry| u64::from(entry.records)).sum::<u64>();
        if held.number <= closed {
            making.whole(&held.path, &to, Some(length))?;
        } else {
            making.begin(&held.path, &to, length)?;
        }
        wanted.insert(to);
    }
    for dir in std::mem::take(&mut making.dirs) {
        sync_dir(&dir).map_err(|source| ArchiveError::File { doing: "syncing", path: dir.clone(), source })?;
    }
    let path = target.join(manifest::NAME);
    let failed = |source| ArchiveError::File { doing: "writing", path: path.clone(), source };
    let bytes = manifest::whole(&state, &shared.options.domain, shared.content.layout().name).map_err(failed)?;
    write_whole(&path, &bytes).map_err(failed)?;
    let mut made = making.made;
    for dir in [segments_dir(target), parquet_dir(target), ids_dir(target)] {
        for name in below(&dir).unwrap_or_default() {
            let path = dir.join(name);
            if !wanted.contains(&path) && fs::remove_file(&path).is_ok() {
                made.removed += 1;
                let _ = path.parent().map(fs::remove_dir);
            }
        }
    }
    made.directory = target.to_owned();
    made.records = records;
    Ok(made)
}

/// Whether a file that never changes is the one that was backed up before: the same one, or as long and as old. Its name alone
/// would not do: an archive that was restored from an earlier backup gives a number to another file.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
        || one.len() == other.len() && (one.mtime(), one.mtime_nsec()) == (other.mtime(), other.mtime_nsec())
}

struct Making<'a> {
    target: &'a Path,
    stop: &'a Stop,
    doing: &'a mut dyn FnMut(Doing),
    done: u64,
    total: u64,
    made: BackedUp,
    /// Directories whose names have to be synced.
    dirs: BTreeSet<PathBuf>,
}

impl Making<'_> {
    fn step(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.done += bytes;
        (self.doing)(Doing { done: self.done, total: self.total });
        if self.stop.is_stopped() { Err(ArchiveError::Stopped("the backup")) } else { Ok(()) }
    }

    fn will_hold(&mut self, to: &Path) -> Result<(), ArchiveError> {
        let dir = to.parent().unwrap_or(self.target).to_owned();
        if !self.dirs.contains(&dir) {
            fs::create_dir_all(&dir).map_err(|source| ArchiveError::File { doing: "making", path: dir.clone(), source })?;
            self.dirs.insert(dir.parent().unwrap_or(self.target).to_owned());
            self.dirs.insert(dir);
        }
        Ok(())
    }

    /// A file that never changes any more.
    fn whole(&mut self, from: &Path, to: &Path, length: Option<u64>) -> Result<(), ArchiveError> {
        self.will_hold(to)?;
        let failed = |source| ArchiveError::File { doing: "backing up", path: from.to_owned(), source };
        let source = fs::metadata(from).map_err(failed)?;
        let expected = length.unwrap_or(source.len());
        match fs::metadata(to) {
            Ok(there) if is_same(&source, &there) => {
                self.made.kept += 1;
                return self.step(expected);
            }
            Ok(_) => fs::remove_file(to).map_err(failed)?,
            Err(_) => {}
        }
        if fs::hard_link(from, to).is_ok() {
            self.made.linked += 1;
            return self.step(expected);
        }
        self.begin(from, to, expected)
    }

    /// Copies the first bytes of a file, with its time, whole or not at all.
    fn begin(&mut self, from: &Path, to: &Path, length: u64) -> Result<(), ArchiveError> {
        self.will_hold(to)?;
        let failed = |source| ArchiveError::File { doing: "copying", path: from.to_owned(), source };
        let unfinished = to.with_extension("unfinished");
        let copy = || -> io::Result<u64> {
            let (mut out, source) = (File::create(&unfinished)?, File::open(from)?);
            let modified = source.metadata()?.modified()?;
            let copied = io::copy(&mut source.take(length), &mut out)?;
            out.set_modified(modified)?;
            out.sync_all()?;
            Ok(copied)
        };
        let copied = copy().and_then(|copied| {
            if copied < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            fs::rename(&unfinished, to)
        });
        if copied.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        copied.map_err(failed)?;
        self.made.copied += 1;
        self.made.copied_bytes += length;
        self.step(length)
    }
}
