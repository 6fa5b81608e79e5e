//! Uploaded files that no entry has yet. They are removed after a while.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Weak},
    thread::Thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tampu_logbook::attachment::{Sha, Upload};
use tampu_workers::WorkerThread;

/// Maximum number of waiting files of one sender.
pub const OF_ONE: usize = 128;
/// Maximum number of waiting files of all senders.
pub const OF_ALL: usize = 2048;
/// All senders together have as much space as this number of them.
pub const SENDERS: u64 = 4;
/// Time that a file waits for its entry.
pub const KEPT: Duration = Duration::from_secs(3600);
/// Time that a file waits for its entry after a draft with it was saved.
pub const KEPT_FOR_DRAFT: Duration = Duration::from_secs(72 * 3600);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Period of the removal of expired files.
const LOOK: Duration = Duration::from_secs(60);

/// Files by their sender and their SHA-256, with the time until which they wait.
type Files = Mutex<HashMap<(String, Sha), (Upload, Instant)>>;

/// Uploaded files that no entry has yet.
#[derive(Debug)]
pub struct Staging {
    files: Arc<Files>,
    /// Maximum number of bytes of one sender's files.
    bytes_of_one: u64,
    cleaner: Thread,
}

/// Removes files that have waited too long, and returns the others.
fn fresh(files: &Files) -> MutexGuard<'_, HashMap<(String, Sha), (Upload, Instant)>> {
    let mut all = files.lock();
    let now = Instant::now();
    all.retain(|_, (_, until)| *until > now);
    all
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The worker finds no files, and ends.
        self.files = Arc::default();
        self.cleaner.unpark();
    }
}

impl Staging {
    /// Starts empty, with a worker that removes old files until this value is dropped. One sender may have files of
    /// `bytes_of_one` bytes, and all senders of [`SENDERS`] times as many.
    pub fn start(bytes_of_one: u64) -> io::Result<Staging> {
        let files = Arc::<Files>::default();
        let watched: Weak<Files> = Arc::downgrade(&files);
        let cleaner = WorkerThread::named("book-staging").spawn_restarting(RESTART, move || {
            while let Some(files) = watched.upgrade() {
                drop(fresh(&files));
                drop(files);
                std::thread::park_timeout(LOOK);
            }
        })?;
        Ok(Staging { files, bytes_of_one, cleaner: cleaner.thread().clone() })
    }

    /// Stores a file. Fails if there are too many.
    pub fn keep(&self, sender: &str, upload: Upload) -> Result<(), &'static str> {
        let mut all = fresh(&self.files);
        if all.len() >= OF_ALL || all.keys().filter(|(of, _)| of == sender).count() >= OF_ONE {
            return Err("too many uploaded files wait for an entry; post the entries, or wait an hour");
        }
        let bytes = |of: Option<&str>| {
            let theirs = all.iter().filter(|((sender, _), _)| of.is_none_or(|of| of == sender));
            theirs.map(|(_, (upload, _))| upload.size()).sum::<u64>().saturating_add(upload.size())
        };
        if bytes(Some(sender)) > self.bytes_of_one || bytes(None) > self.bytes_of_one.saturating_mul(SENDERS) {
            return Err("uploaded files that wait for an entry take too much space; post the entries, or wait an hour");
        }
        all.insert((sender.to_owned(), upload.sha().clone()), (upload, Instant::now() + KEPT));
        Ok(())
    }

    /// Returns the bytes of the files that wait, of one sender or of all.
    pub fn waiting(&self, sender: Option<&str>) -> u64 {
        let all = fresh(&self.files);
        let theirs = all.iter().filter(|((of, _), _)| sender.is_none_or(|sender| sender == of));
        theirs.map(|(_, (upload, _))| upload.size()).sum()
    }

    /// Keeps a file for a draft, and returns its size; `None` if no file of this sender waits.
    pub fn hold(&self, sender: &str, sha: &Sha) -> Option<u64> {
        let mut all = fresh(&self.files);
        let (upload, until) = all.get_mut(&(sender.to_owned(), sha.clone()))?;
        *until = Instant::now() + KEPT_FOR_DRAFT;
        Some(upload.size())
    }

    /// Keeps a file no longer than one without a draft.
    pub fn release(&self, sender: &str, sha: &Sha) {
        let mut all = fresh(&self.files);
        if let Some((_, until)) = all.get_mut(&(sender.to_owned(), sha.clone())) {
            *until = (*until).min(Instant::now() + KEPT);
        }
    }

    /// Removes a file and returns it.
    pub fn take(&self, sender: &str, sha: &Sha) -> Option<Upload> {
        let mut all = fresh(&self.files);
        all.remove(&(sender.to_owned(), sha.clone())).map(|(upload, _)| upload)
    }

    /// Returns true if a file of this sender waits.
    pub fn has(&self, sender: &str, sha: &Sha) -> bool {
        fresh(&self.files).contains_key(&(sender.to_owned(), sha.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_files_have_a_bounded_size() {
        let staging = Staging::start(100).unwrap();
        let sha = |n: u8| Sha::try_from(format!("{n:064x}")).unwrap();
        let keep = |sender: &str, n: u8, size: u64| staging.keep(sender, Upload::elsewhere(sha(n), size)).is_ok();
        assert!(keep("zoe", 1, 60) && !keep("zoe", 2, 50) && keep("zoe", 3, 40), "one sender");
        assert!(
            keep("a", 1, 100) && keep("b", 1, 100) && keep("c", 1, 90) && !keep("d", 1, 20) && keep("d", 2, 10),
            "all senders"
        );
        staging.take("zoe", &sha(1));
        assert!(keep("d", 3, 20));
    }

    #[test]
    fn what_has_waited_too_long_is_not_taken() {
        let staging = Staging::start(1000).unwrap();
        let sha = |n: u8| Sha::try_from(format!("{n:064x}")).unwrap();
        for n in [1, 2] {
            staging.keep("zoe", Upload::elsewhere(sha(n), 1)).unwrap();
        }
        staging.files.lock().get_mut(&("zoe".to_owned(), sha(1))).unwrap().1 = Instant::now();
        assert!(!staging.has("zoe", &sha(1)) && staging.take("zoe", &sha(1)).is_none());
        assert!(staging.has("zoe", &sha(2)) && !staging.has("max", &sha(2)) && staging.take("zoe", &sha(2)).is_some());
    }

    #[test]
    fn a_file_waits_longer_for_a_draft() {
        let staging = Staging::start(1000).unwrap();
        let sha = Sha::try_from(format!("{:064x}", 1)).unwrap();
        staging.keep("zoe", Upload::elsewhere(sha.clone(), 7)).unwrap();
        let left = || staging.files.lock()[&("zoe".to_owned(), sha.clone())].1.duration_since(Instant::now());
        assert!(left() <= KEPT);
        assert_eq!((staging.hold("max", &sha), staging.hold("zoe", &sha)), (None, Some(7)));
        assert!(left() > KEPT);
        staging.release("zoe", &sha);
        assert!(left() <= KEPT);
    }
}
