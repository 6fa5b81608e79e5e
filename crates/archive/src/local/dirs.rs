//! The directories of an archive, and its lock.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use crate::ArchiveError;

/// Returns the directory of an archive's segments.
pub(crate) fn segments_dir(dir: &Path) -> PathBuf {
    dir.join("segments")
}

/// Returns the directory of an archive's Parquet files. It has one directory a day, and one for records with far times.
pub(crate) fn parquet_dir(dir: &Path) -> PathBuf {
    dir.join("parquet")
}

/// Returns the directory of the ids that are in Parquet files.
pub(crate) fn ids_dir(dir: &Path) -> PathBuf {
    dir.join("ids")
}

/// Returns the directory for files that cannot be read.
pub(crate) fn aside_dir(dir: &Path) -> PathBuf {
    dir.join("set-aside")
}

/// Returns all files below a directory, by their paths relative to it.
pub(crate) fn below(dir: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            names.extend(below(&entry.path())?.into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Returns the file whose lock the one process holds that writes there.
pub(crate) fn lock_file(dir: &Path) -> PathBuf {
    dir.join("archive.lock")
}

/// Locks an archive's directory against other processes; a process that is about to end is waited for.
pub(crate) fn lock(dir: &Path) -> Result<File, ArchiveError> {
    let path = lock_file(dir);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(locking(&path))?;
    hold(&mut file, dir)?;
    // The process id is for people only; on a full disk the lock works without it.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Locks an archive's directory without a change in it; `None` if no archive was ever there.
pub(crate) fn lock_existing(dir: &Path) -> Result<Option<File>, ArchiveError> {
    let path = lock_file(dir);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(locking(&path))?,
    };
    hold(&mut file, dir)?;
    Ok(Some(file))
}

fn locking(path: &Path) -> impl Fn(io::Error) -> ArchiveError {
    move |source| ArchiveError::File { doing: "locking", path: path.to_owned(), source }
}

/// Takes the lock, or names the process that has it.
fn hold(file: &mut File, dir: &Path) -> Result<(), ArchiveError> {
    if tampu_workers::lock_after_predecessor(file).map_err(locking(&lock_file(dir)))? {
        return Ok(());
    }
    let mut by = String::new();
    let _ = file.read_to_string(&mut by);
    let by = by.trim();
    let by = if by.is_empty() { "another process".to_owned() } else { format!("process {by}") };
    Err(ArchiveError::InUse { dir: dir.to_owned(), by })
}
