//! The space on a disk that uploads leave free.
//!
//! Attachments usually share a disk with the archive of logs and events. A full disk would stop the archive, so an upload ends while
//! the archive still has room.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::body::SMALL;

/// Bytes of a body between two looks at the disk.
const LOOK: u64 = 8 << 20;
/// The part of a small disk that is kept free at most: one twentieth.
const PART: u64 = 20;

/// The space that uploads leave free on the disk of a directory.
#[derive(Debug, Clone)]
pub struct FreeSpace {
    dir: PathBuf,
    /// Shared by all copies.
    least: Arc<AtomicU64>,
    /// The part of the disk that is kept free at most.
    part: u64,
}

impl FreeSpace {
    /// Keeps `least` bytes free on the disk of a directory; on a small disk a twentieth of it.
    pub fn new(dir: &Path, least: u64) -> FreeSpace {
        FreeSpace { dir: dir.to_owned(), least: Arc::new(AtomicU64::new(least)), part: PART }
    }

    /// Changes the space that is kept free, also for copies of this value.
    pub fn set_least(&self, least: u64) {
        self.least.store(least, Ordering::Relaxed);
    }

    /// Fails if the disk has less free space than it is to have.
    pub fn check(&self) -> io::Result<()> {
        let disk = rustix::fs::statvfs(&self.dir)?;
        let (free, size) = (disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize));
        if free >= self.least.load(Ordering::Relaxed).min(size / self.part) {
            Ok(())
        } else {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
}

/// A body with a limit for its caller; a long one must leave free space.
pub struct BoundedBody<'a> {
    /// The whole body.
    from: &'a mut (dyn Read + Send),
    /// Bytes that may still be read.
    left: u64,
    /// Bytes until the next look at the disk.
    look: u64,
    space: &'a FreeSpace,
}

impl<'a> BoundedBody<'a> {
    /// A body of at most `left` bytes.
    pub fn new(from: &'a mut (dyn Read + Send), left: u64, space: &'a FreeSpace) -> BoundedBody<'a> {
        BoundedBody { from, left, look: SMALL, space }
    }
}

impl Read for BoundedBody<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        let wrong = || io::Error::new(io::ErrorKind::FileTooLarge, "the body is too large for a caller without a login");
        self.left = self.left.checked_sub(read as u64).ok_or_else(wrong)?;
        match self.look.checked_sub(read as u64) {
            Some(look) => self.look = look,
            None => {
                self.space.check()?;
                self.look = LOOK;
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_leaves_space() {
        let (dir, long) = (tempfile::tempdir().unwrap(), vec![0; 2 * SMALL as usize]);
        std::fs::write(dir.path().join("some"), &long).unwrap();
        // A disk with a file on it is not all free.
        let full = FreeSpace { part: 1, ..FreeSpace::new(dir.path(), u64::MAX) };
        let read = |space: &FreeSpace, bytes: &[u8], left: u64| {
            let mut from = bytes;
            BoundedBody::new(&mut from, left, space).read_to_end(&mut Vec::new()).map_err(|error| error.kind())
        };
        assert_eq!(read(&full, &long[..100], u64::MAX), Ok(100), "a short body");
        assert_eq!(read(&full, &long, u64::MAX), Err(io::ErrorKind::StorageFull));
        full.clone().set_least(0);
        assert_eq!(read(&full, &long, u64::MAX), Ok(long.len()));
        assert_eq!(read(&full, &long, 1000), Err(io::ErrorKind::FileTooLarge));
    }
}
