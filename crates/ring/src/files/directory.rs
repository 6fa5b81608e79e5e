//! The directory of one incarnation's rings, and safe opening of its files, which another user may have replaced.
//!
//! Every file is opened relative to the directory's own descriptor, without following links and without waiting for the
//! other end of a pipe. It is used only if it is a plain file of this user. A file that others read gets its name when
//! it is complete.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags},
    io::Errno,
};

/// A file or directory that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct FileError {
    /// The file or directory.
    pub path: PathBuf,
    /// Reason for which it cannot be used.
    pub why: FileErrorKind,
}

/// Reason for which a file or directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileErrorKind {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It belongs to another user, with this id.
    #[error("belongs to user {0}, not to us")]
    Foreign(u32),
    /// The contents can be changed by other users.
    #[error("can be written by others (mode {0:o})")]
    Open(u32),
    /// No plain file, or no directory.
    #[error("is not a {0}")]
    Kind(&'static str),
    /// Longer than any file of this format.
    #[error("has {0} bytes; {1} are allowed")]
    Long(u64, u64),
}

impl From<Errno> for FileErrorKind {
    fn from(errno: Errno) -> FileErrorKind {
        FileErrorKind::Io(errno.into())
    }
}

/// File system of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystem {
    /// Memory: fast, and lost when the host stops.
    Memory,
    /// Something else, by its number in the kernel: the kernel writes the rings to it now and then, which costs and can
    /// stall.
    Other(u64),
}

/// A directory, held open.
#[derive(Debug)]
pub(crate) struct RingDirectory {
    path: PathBuf,
    directory: File,
    uid: u32,
}

impl RingDirectory {
    /// Makes a directory that only this user can enter, and its parents.
    pub fn create(path: &Path) -> Result<RingDirectory, FileError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|why| FileError { path: path.to_owned(), why: why.into() })?;
        RingDirectory::open(path)
    }

    pub fn open(path: &Path) -> Result<RingDirectory, FileError> {
        RingDirectory::open_as(path, rustix::process::geteuid().as_raw())
    }

    fn open_as(path: &Path, uid: u32) -> Result<RingDirectory, FileError> {
        let checked = || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
            let found = rustix::fs::fstat(&directory)?;
            if found.st_uid != uid {
                Err(FileErrorKind::Foreign(found.st_uid))
            } else if found.st_mode & 0o022 != 0 {
                Err(FileErrorKind::Open(found.st_mode & 0o7777))
            } else {
                Ok(RingDirectory { path: path.to_owned(), directory, uid })
            }
        };
        checked().map_err(|why| FileError { path: path.to_owned(), why })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Explains an error about one of its files.
    pub fn about<E: Into<FileErrorKind>>(&self, name: &str) -> impl Fn(E) -> FileError {
        let path = self.path.join(name);
        move |why| FileError { path: path.clone(), why: why.into() }
    }

    pub fn file_system(&self) -> FileSystem {
        const TMPFS: u64 = 0x0102_1994;
        const RAMFS: u64 = 0x8584_58f6;
        match rustix::fs::fstatfs(&self.directory).map(|found| found.f_type as u64) {
            Ok(TMPFS | RAMFS) => FileSystem::Memory,
            Ok(other) => FileSystem::Other(other),
            Err(_) => FileSystem::Other(0),
        }
    }

    /// Creates a file under a name that readers ignore; [`RingDirectory::publish`] gives it its own name.
    pub fn create_file(&self, name: &str, length: u64) -> Result<File, FileError> {
        let hidden = hidden(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let make = || {
            let file = File::from(rustix::fs::openat(&self.directory, &hidden, flags, Mode::RUSR | Mode::WUSR)?);
            if length > 0 {
                // Reserving here turns a full file system into an error instead of a signal at a later store.
                rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length)?;
            }
            Ok(file)
        };
        make().map_err(|why: Errno| {
            // An existing file belongs to another process, so it is not removed.
            if why != Errno::EXIST {
                let _ = rustix::fs::unlinkat(&self.directory, &hidden, AtFlags::empty());
            }
            self.about(name)(why)
        })
    }

    pub fn publish(&self, name: &str) -> Result<(), FileError> {
        rustix::fs::renameat(&self.directory, hidden(name), &self.directory, name).map_err(self.about(name))
    }

    /// Opens a plain file of this user of at most `longest` bytes, and returns its length.
    pub fn open_file(&self, name: &str, longest: u64) -> Result<(File, u64), FileError> {
        let checked = || {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
            let file = File::from(rustix::fs::openat(&self.directory, name, flags, Mode::empty())?);
            let found = rustix::fs::fstat(&file)?;
            let length = u64::try_from(found.st_size).unwrap_or(0);
            if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                Err(FileErrorKind::Kind("plain file"))
            } else if found.st_uid != self.uid {
                Err(FileErrorKind::Foreign(found.st_uid))
            } else if length > longest {
                Err(FileErrorKind::Long(length, longest))
            } else {
                Ok((file, length))
            }
        };
        checked().map_err(self.about(name))
    }

    /// Time since a file in it was created, renamed or removed.
    pub fn age(&self) -> Result<Duration, FileError> {
        let changed = || self.directory.metadata()?.modified();
        let changed = changed().map_err(|why| FileError { path: self.path.clone(), why: why.into() })?;
        Ok(changed.elapsed().unwrap_or_default())
    }

    /// Length of a file in bytes, if it exists.
    pub fn length(&self, name: &str) -> Option<u64> {
        let found = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        u64::try_from(found.st_size).ok()
    }

    /// Reads the whole of a plain file of this user.
    pub fn read_file(&self, name: &str, longest: u64) -> Result<Vec<u8>, FileError> {
        let (file, length) = self.open_file(name, longest)?;
        read_at(&file, 0, length as usize).map_err(self.about(name))
    }

    /// Returns true if this file still has that name.
    pub fn is_current(&self, name: &str, file: &File) -> bool {
        let named = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(file);
        matches!((named, held), (Ok(named), Ok(held)) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
    }

    /// The names in it.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        let read = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&self.directory)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            Ok(names)
        };
        read().map_err(|why| FileError { path: self.path.clone(), why: why.into() })
    }

    pub fn remove_file(&self, name: &str) -> Result<(), FileError> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Err(Errno::NOENT) | Ok(()) => Ok(()),
            Err(why) => Err(self.about(name)(why)),
        }
    }

    /// Removes the directory itself, which must be empty.
    pub fn remove(&self) -> Result<(), FileError> {
        match fs::remove_dir(&self.path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(FileError { path: self.path.clone(), why: why.into() }),
            _ => Ok(()),
        }
    }
}

/// Name of a file until it is complete; readers ignore such names.
pub(crate) fn hidden(name: &str) -> String {
    format!("{name}.new")
}

/// Reads up to `length` bytes; fewer where the file has become shorter meanwhile.
pub(crate) fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut have = 0;
    while have < length {
        match file.read_at(&mut bytes[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    bytes.truncate(have);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_plain_files_of_ours_are_opened() {
        let temporary = tempfile::tempdir().unwrap();
        let place = RingDirectory::create(&temporary.path().join("life")).unwrap();
        fs::write(place.path().join("plain"), "0123456789").unwrap();
        symlink("plain", place.path().join("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, place.path().join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(place.read_file("plain", 10).unwrap(), b"0123456789");
        assert!(matches!(place.open_file("plain", 9), Err(FileError { why: FileErrorKind::Long(10, 9), .. })));
        assert!(matches!(place.open_file("pipe", 9), Err(FileError { why: FileErrorKind::Kind(_), .. })));
        assert!(matches!(place.open_file("link", 99), Err(FileError { why: FileErrorKind::Io(_), .. })));
        assert!(place.open_file("none", 99).unwrap_err().to_string().contains("life/none"));

        let uid = rustix::process::geteuid().as_raw();
        assert!(matches!(RingDirectory::open_as(place.path(), uid + 1), Err(FileError { why: FileErrorKind::Foreign(_), .. })));
        let other = RingDirectory { uid: uid + 1, ..RingDirectory::open(place.path()).unwrap() };
        assert!(matches!(other.open_file("plain", 99), Err(FileError { why: FileErrorKind::Foreign(_), .. })));
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(matches!(RingDirectory::open(place.path()), Err(FileError { why: FileErrorKind::Open(0o770), .. })));
    }
}
