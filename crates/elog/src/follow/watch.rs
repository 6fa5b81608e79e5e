//! Changes of folders. The kernel (inotify) reports the changes that this host makes. On network file systems, or if
//! the kernel has no watches left, the files are polled.

use std::{
    collections::HashMap,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tampu_logbook::store::sqlite::network_file_system;

/// The time between two full checks if the kernel reports changes. They find new folders, and links with other targets.
const EVERY: Duration = Duration::from_secs(30);
/// The time between two checks if the kernel reports no changes. Slow checks run less often, so that they take at most
/// a tenth of the time.
const POLL: Duration = Duration::from_millis(400);
const SHARE: u32 = 10;
/// Bytes of events that are read at a time.
const EVENTS: usize = 16 * 1024;

/// Watches the folders of some books, each known by its number.
#[derive(Debug)]
pub struct FolderWatch {
    kernel: Option<OwnedFd>,
    why_not: Option<String>,
    folders: HashMap<i32, Vec<usize>>,
    looked: Instant,
    every: Duration,
}

/// The books that have to be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Changes {
    All,
    /// The books with these numbers; may be empty.
    Books(Vec<usize>),
}

impl FolderWatch {
    /// Watches these folders. `poll` requests polling instead of the kernel's reports.
    pub fn over(folders: &[(usize, PathBuf)], poll: bool) -> FolderWatch {
        let mut watch =
            FolderWatch { kernel: None, why_not: None, folders: HashMap::new(), looked: Instant::now(), every: EVERY };
        let begun = if poll { Err("polling was requested".to_owned()) } else { watch.begin(folders) };
        match begun {
            Ok(kernel) => watch.kernel = Some(kernel),
            Err(why) => (watch.why_not, watch.every) = (Some(why), POLL),
        }
        watch
    }

    fn begin(&mut self, folders: &[(usize, PathBuf)]) -> Result<OwnedFd, String> {
        let kernel = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|error| format!("inotify: {error}"))?;
        let what = WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        for (book, folder) in folders {
            if let Some(kind) = network_file_system(folder) {
                return Err(format!(
                    "{} is on {kind}, where the kernel does not report the changes of other hosts",
                    folder.display()
                ));
            }
            let number = inotify::add_watch(&kernel, folder.as_path(), what)
                .map_err(|error| format!("{}: inotify: {error}", folder.display()))?;
            self.folders.entry(number).or_default().push(*book);
        }
        Ok(kernel)
    }

    /// Returns the reason for polling, if it polls.
    pub fn polls(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// Returns the changes since the last call; never waits.
    pub fn changes(&mut self) -> Changes {
        let mut books: Vec<usize> = Vec::new();
        if let Some(kernel) = &self.kernel {
            let mut room = [MaybeUninit::uninit(); EVENTS];
            let mut reader = Reader::new(kernel, &mut room);
            // The end of the events is reported as an error.
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    self.looked = Instant::now();
                    return Changes::All;
                }
                books.extend(self.folders.get(&event.wd()).into_iter().flatten());
            }
        }
        if self.looked.elapsed() >= self.every {
            return Changes::All;
        }
        books.sort_unstable();
        books.dedup();
        Changes::Books(books)
    }

    /// Records a full check and its duration.
    pub fn looked(&mut self, took: Duration) {
        self.looked = Instant::now();
        if self.kernel.is_none() {
            self.every = POLL.max(took * SHARE);
        }
    }
}

/// The state of a file: every write changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    bytes: u64,
    number: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl FileStamp {
    /// Returns the stamp of a file; `None` if the file is missing.
    pub fn of(path: &Path) -> std::io::Result<Option<FileStamp>> {
        use std::os::unix::fs::MetadataExt;
        match std::fs::metadata(path) {
            Ok(is) => Ok(Some(FileStamp {
                bytes: is.len(),
                number: is.ino(),
                changed: (is.ctime(), is.ctime_nsec()),
                modified: (is.mtime(), is.mtime_nsec()),
            })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_told_it_looks_again_and_again() {
        let mut watch = FolderWatch::over(&[(0, PathBuf::from("/nowhere at all"))], false);
        assert!(watch.polls().is_some_and(|why| why.contains("/nowhere at all")), "{watch:?}");
        while watch.changes() != Changes::All {
            std::thread::sleep(Duration::from_millis(10));
        }
        watch.looked(Duration::from_secs(1));
        assert_eq!((watch.every, watch.changes()), (Duration::from_secs(10), Changes::Books(vec![])));
    }

    #[test]
    fn what_stirs_is_told_by_its_book() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&other).unwrap();
        let mut watch = FolderWatch::over(&[(0, one), (1, other.clone()), (2, other.clone())], false);
        assert_eq!(watch.polls(), None);
        assert_eq!(watch.changes(), Changes::Books(vec![]));
        std::fs::write(other.join("080910a.log"), "x").unwrap();
        assert_eq!(watch.changes(), Changes::Books(vec![1, 2]));
        assert_eq!(watch.changes(), Changes::Books(vec![]));
    }
}
