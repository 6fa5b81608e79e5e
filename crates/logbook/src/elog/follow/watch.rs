//! Word of changes in folders: from the kernel (inotify), which tells of what happens on this host; where files come over a network, or the
//! kernel has no more watches to give, by looking again and again.

use std::{
    collections::HashMap,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::store::sqlite::network_file_system;

/// How often everything is looked at though nothing was told: folders that are new, links that lead elsewhere.
const EVERY: Duration = Duration::from_secs(30);
/// How often where nothing is told; longer where looking takes long, so that it takes a tenth of the time at most.
const POLL: Duration = Duration::from_millis(400);
const SHARE: u32 = 10;
/// Bytes of events that are read at a time.
const EVENTS: usize = 16 * 1024;

/// Watches the folders of some books, each known by its number.
#[derive(Debug)]
pub struct Watch {
    kernel: Option<OwnedFd>,
    why_not: Option<String>,
    folders: HashMap<i32, Vec<usize>>,
    looked: Instant,
    every: Duration,
}

/// What is to be looked at.
#[derive(Debug, PartialEq, Eq)]
pub enum Stirred {
    /// Everything.
    All,
    /// The books of these numbers; perhaps none.
    Books(Vec<usize>),
}

impl Watch {
    /// Watches these folders; by looking again and again where that is wanted.
    pub fn over(folders: &[(usize, PathBuf)], poll: bool) -> Watch {
        let mut watch = Watch { kernel: None, why_not: None, folders: HashMap::new(), looked: Instant::now(), every: EVERY };
        let begun = if poll { Err("so it was asked for".to_owned()) } else { watch.begin(folders) };
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
                return Err(format!("{} is on {kind}, of which the kernel does not tell what others change", folder.display()));
            }
            let number = inotify::add_watch(&kernel, folder.as_path(), what)
                .map_err(|error| format!("{}: inotify: {error}", folder.display()))?;
            self.folders.entry(number).or_default().push(*book);
        }
        Ok(kernel)
    }

    /// Why it looks again and again, if it does.
    pub fn polls(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// What has stirred since the last time; never waits.
    pub fn stirred(&mut self) -> Stirred {
        let mut books: Vec<usize> = Vec::new();
        if let Some(kernel) = &self.kernel {
            let mut room = [MaybeUninit::uninit(); EVENTS];
            let mut reader = Reader::new(kernel, &mut room);
            // The end is told as an error: nothing is there now.
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    self.looked = Instant::now();
                    return Stirred::All;
                }
                books.extend(self.folders.get(&event.wd()).into_iter().flatten());
            }
        }
        if self.looked.elapsed() >= self.every {
            return Stirred::All;
        }
        books.sort_unstable();
        books.dedup();
        Stirred::Books(books)
    }

    /// Everything was looked at, which took so long.
    pub fn looked(&mut self, took: Duration) {
        self.looked = Instant::now();
        if self.kernel.is_none() {
            self.every = POLL.max(took * SHARE);
        }
    }
}

/// A file as it is: whatever is written to it makes it another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    bytes: u64,
    number: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    /// The stamp of a file; none if it is not there.
    pub fn of(path: &Path) -> std::io::Result<Option<Stamp>> {
        use std::os::unix::fs::MetadataExt;
        match std::fs::metadata(path) {
            Ok(is) => Ok(Some(Stamp {
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
        let mut watch = Watch::over(&[(0, PathBuf::from("/nowhere at all"))], false);
        assert!(watch.polls().is_some_and(|why| why.contains("/nowhere at all")), "{watch:?}");
        while watch.stirred() != Stirred::All {
            std::thread::sleep(Duration::from_millis(10));
        }
        watch.looked(Duration::from_secs(1));
        assert_eq!((watch.every, watch.stirred()), (Duration::from_secs(10), Stirred::Books(vec![])));
    }

    #[test]
    fn what_stirs_is_told_by_its_book() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&other).unwrap();
        let mut watch = Watch::over(&[(0, one), (1, other.clone()), (2, other.clone())], false);
        assert_eq!(watch.polls(), None);
        assert_eq!(watch.stirred(), Stirred::Books(vec![]));
        std::fs::write(other.join("080910a.log"), "x").unwrap();
        assert_eq!(watch.stirred(), Stirred::Books(vec![1, 2]));
        assert_eq!(watch.stirred(), Stirred::Books(vec![]));
    }
}
