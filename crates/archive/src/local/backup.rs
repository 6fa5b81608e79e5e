//! Backup of a running archive: a directory that can be opened in the archive's place.
//!
//! Parquet files, ids and closed segments never change. They are hard-linked where the backup lies on the same file
//! system, and copied elsewhere. Files that the backup already holds are skipped. Of the open segment, the committed
//! part is copied. The manifest is written last: until then the directory is the previous backup, from then on the new
//! one. Files that are no longer in the backup are removed after that.
//!
//! The target must be empty or a backup of this archive, by the id in its manifest. Any other directory is refused
//! before anything in it changes. Manifests of earlier releases have no id: such a backup is this archive's if it shares
//! a file with the archive, with the same name and content, and no file of one name differs (see [`earlier`]).

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use serde::{Deserialize, Serialize};

use crate::{
    ArchiveError, Doing, Stop,
    local::{
        dirs::{below, ids_dir, lock, lock_file, parquet_dir, segments_dir},
        earlier::{self, Verdict},
        state::{ArchiveState, Contents},
    },
    manifest::{self, Owner, State, sync_dir, write_whole},
    wal::segment,
};

/// Summary of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackedUp {
    /// Directory of the backup.
    pub directory: PathBuf,
    /// Number of records in it.
    pub records: u64,
    /// Number of files that the backup held already.
    pub kept: u64,
    /// Number of files that were hard-linked.
    pub linked: u64,
    /// Number of copied files, and their bytes.
    pub copied: u64,
    pub copied_bytes: u64,
    /// Number of removed files, which the archive does not hold.
    pub removed: u64,
}

/// Copies the archive into `target`, which becomes an archive itself.
pub(crate) fn backup(
    shared: &ArchiveState,
    target: &Path,
    stop: &Stop,
    doing: &mut dyn FnMut(Doing),
) -> Result<BackedUp, ArchiveError> {
    let id = shared.manifest().id.clone();
    // Nothing is touched in a directory of somebody else.
    need_own(shared, target, &id)?;
    for dir in [segments_dir(target), parquet_dir(target), ids_dir(target)] {
        fs::create_dir_all(&dir).map_err(|source| ArchiveError::File { doing: "making", path: dir.clone(), source })?;
    }
    // The lock keeps other programs from opening the target.
    let _lock = lock(target)?;
    if need_own(shared, target, &id)? == Owner::Nobody {
        // From here on the directory is this archive's, also if the backup is interrupted.
        write_manifest(shared, target, &State::default(), &id)?;
    }
    let mut making = Making { target, stop, doing, done: 0, total: 0, made: BackedUp::default(), dirs: BTreeSet::new() };
    // The manifest stays locked to the end: no file is removed and no segment compacted. New records are still accepted.
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
        let to = segments_dir(target).join(segment::SEGMENTS.file_name(held.number));
        let length = held.committed.load(Ordering::Acquire);
        // Frames committed during the copy are not part of the backup.
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
    write_manifest(shared, target, &state, &id)?;
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

/// Returns the owner of the target, which is nobody or this archive; anything else is an error.
fn need_own(shared: &ArchiveState, target: &Path, id: &str) -> Result<Owner, ArchiveError> {
    let refused = |why: &str| Err(ArchiveError::NotOurs { target: target.to_owned(), why: why.to_owned() });
    let failed = |source| ArchiveError::File { doing: "reading", path: target.to_owned(), source };
    match manifest::owner(target).map_err(failed)? {
        Owner::Archive(other) if other == id => Ok(Owner::Archive(other)),
        Owner::Archive(_) => refused("it belongs to another archive"),
        Owner::Unnamed => match earlier::judge(shared, target).map_err(failed)? {
            Verdict::Ours => Ok(Owner::Unnamed),
            Verdict::NotOurs(why) => refused(&why),
        },
        Owner::Unreadable => refused("its manifest cannot be read"),
        Owner::Nobody if is_empty(target).map_err(failed)? => Ok(Owner::Nobody),
        Owner::Nobody => refused("it has other files"),
    }
}

/// Returns whether a directory holds only files from the beginning of a backup.
fn is_empty(target: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    let own = [segments_dir(target), parquet_dir(target), ids_dir(target)];
    for entry in entries {
        let path = entry?.path();
        let is_file = path == lock_file(target) || path == target.join(manifest::unfinished_name());
        let is_ours = is_file || own.contains(&path) && fs::read_dir(&path)?.next().is_none();
        if !is_ours {
            return Ok(false);
        }
    }
    Ok(true)
}

fn write_manifest(shared: &ArchiveState, target: &Path, state: &State, id: &str) -> Result<(), ArchiveError> {
    let path = target.join(manifest::NAME);
    let failed = |source| ArchiveError::File { doing: "writing", path: path.clone(), source };
    let bytes = manifest::whole(state, &shared.options.domain, shared.content.layout().name, id).map_err(failed)?;
    write_whole(&path, &bytes).map_err(failed)
}

/// Returns whether an immutable file is the one of the previous backup: the same inode, or the same length and time.
/// The name alone is not enough: an archive restored from an earlier backup gives a number to another file.
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

    /// Backs up a file that never changes.
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

    /// Copies the first bytes of a file, with its time. The copy is complete or absent.
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
