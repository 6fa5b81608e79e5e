//! Uploaded files that no entry has yet. They are removed after a while.
//!
//! A file of a draft gets a name in a directory of the logbook, so that a restart of the hub does not lose it: the sender
//! as hexadecimal digits, then the SHA-256. The time of its last change tells how long it waits. Its bytes are read and
//! checked again when an entry takes it. Where the file system cannot name it, the draft tells after a restart that it is
//! missing.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread::Thread,
    time::{Duration, Instant, SystemTime},
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

/// A file that waits.
#[derive(Debug)]
struct Waiting {
    /// The bytes, unless they came in another life of the hub.
    upload: Option<Upload>,
    size: u64,
    until: Instant,
    /// The name that outlives the hub, of a draft's file.
    kept: Option<PathBuf>,
}

impl Waiting {
    /// Lets the file wait this long from now on, in the next life of the hub too.
    fn wait(&mut self, time: Duration) {
        self.until = Instant::now() + time;
        if let Some(path) = &self.kept {
            let changed = SystemTime::now().checked_sub(KEPT_FOR_DRAFT.saturating_sub(time)).unwrap_or(SystemTime::UNIX_EPOCH);
            // A failure is about this hub's own file, and shortens or lengthens its time.
            let _ = File::open(path).and_then(|file| file.set_modified(changed));
        }
    }

    /// Removes the name.
    fn forget(&mut self) {
        if let Some(path) = self.kept.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Files by their sender and their SHA-256.
type Files = Mutex<HashMap<(String, Sha), Waiting>>;

/// Receives the bytes of a file that came in another life of the hub.
type Receive = Box<dyn Fn(&mut File) -> Option<Upload> + Send + Sync>;

/// Uploaded files that no entry has yet.
pub struct Staging {
    files: Arc<Files>,
    /// The directory of files with a draft.
    directory: PathBuf,
    receive: Receive,
    /// Maximum number of bytes of one sender's files.
    bytes_of_one: AtomicU64,
    cleaner: Thread,
}

/// Removes files that have waited too long, and returns the others.
fn fresh(files: &Files) -> MutexGuard<'_, HashMap<(String, Sha), Waiting>> {
    let mut all = files.lock();
    let now = Instant::now();
    all.retain(|_, waiting| {
        let waits = waiting.until > now;
        if !waits {
            waiting.forget();
        }
        waits
    });
    all
}

/// Returns the name of a sender's directory.
fn name_of(sender: &str) -> String {
    sender.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads such a name.
fn sender_of(name: &str) -> Option<String> {
    let byte = |at: usize| u8::from_str_radix(name.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..name.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

/// Finds the files of drafts that still wait, and removes the others.
fn load(directory: &Path) -> HashMap<(String, Sha), Waiting> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let text = |entry: &fs::DirEntry| entry.file_name().into_string().ok();
    let mut all = HashMap::new();
    for of_sender in entries(directory) {
        let Some(sender) = text(&of_sender).and_then(|name| sender_of(&name)) else { continue };
        for file in entries(&of_sender.path()) {
            let (Some(sha), Ok(found)) = (text(&file).and_then(|name| Sha::try_from(name).ok()), file.metadata()) else {
                continue;
            };
            let age =
                found.modified().ok().and_then(|changed| SystemTime::now().duration_since(changed).ok()).unwrap_or_default();
            let left = KEPT_FOR_DRAFT.saturating_sub(age);
            let waiting = Waiting { upload: None, size: found.len(), until: Instant::now() + left, kept: Some(file.path()) };
            all.insert((sender.clone(), sha), waiting);
        }
    }
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
    /// Starts with the files of drafts in a directory, and a worker that removes old files until this value is dropped.
    /// One sender may have files of `bytes_of_one` bytes, and all senders of [`SENDERS`] times as many.
    pub fn start(
        bytes_of_one: u64,
        directory: PathBuf,
        receive: impl Fn(&mut File) -> Option<Upload> + Send + Sync + 'static,
    ) -> io::Result<Staging> {
        let files = Arc::new(Mutex::new(load(&directory)));
        let watched: Weak<Files> = Arc::downgrade(&files);
        let cleaner = WorkerThread::named("book-staging").spawn_restarting(RESTART, move || {
            while let Some(files) = watched.upgrade() {
                drop(fresh(&files));
                drop(files);
                std::thread::park_timeout(LOOK);
            }
        })?;
        Ok(Staging {
            files,
            directory,
            receive: Box::new(receive),
            bytes_of_one: AtomicU64::new(bytes_of_one),
            cleaner: cleaner.thread().clone(),
        })
    }

    /// Changes the bytes of one sender's files. Files that wait already stay.
    pub fn set_bytes(&self, bytes_of_one: u64) {
        self.bytes_of_one.store(bytes_of_one, Ordering::Relaxed);
    }

    /// Stores a file. Fails if there are too many.
    pub fn keep(&self, sender: &str, upload: Upload) -> Result<(), &'static str> {
        let mut all = fresh(&self.files);
        if all.len() >= OF_ALL || all.keys().filter(|(of, _)| of == sender).count() >= OF_ONE {
            return Err("too many uploaded files wait for an entry; post the entries, or wait an hour");
        }
        let bytes = |of: Option<&str>| {
            let theirs = all.iter().filter(|((sender, _), _)| of.is_none_or(|of| of == sender));
            theirs.map(|(_, waiting)| waiting.size).sum::<u64>().saturating_add(upload.size())
        };
        let most = self.bytes_of_one.load(Ordering::Relaxed);
        if bytes(Some(sender)) > most || bytes(None) > most.saturating_mul(SENDERS) {
            return Err("uploaded files that wait for an entry take too much space; post the entries, or wait an hour");
        }
        let key = (sender.to_owned(), upload.sha().clone());
        // The same file of a draft waits as long as before.
        let before = all.remove(&key);
        let until = before.as_ref().map_or(Instant::now(), |before| before.until).max(Instant::now() + KEPT);
        let kept = before.and_then(|before| before.kept);
        all.insert(key, Waiting { size: upload.size(), upload: Some(upload), until, kept });
        Ok(())
    }

    /// Returns the bytes of the files that wait, of one sender or of all.
    pub fn waiting(&self, sender: Option<&str>) -> u64 {
        let all = fresh(&self.files);
        let theirs = all.iter().filter(|((of, _), _)| sender.is_none_or(|sender| sender == of));
        theirs.map(|(_, waiting)| waiting.size).sum()
    }

    /// Keeps a file for a draft, and returns its size; `None` if no file of this sender waits.
    pub fn hold(&self, sender: &str, sha: &Sha) -> Option<u64> {
        let key = (sender.to_owned(), sha.clone());
        let unnamed = {
            let mut all = fresh(&self.files);
            let waiting = all.get_mut(&key)?;
            waiting.wait(KEPT_FOR_DRAFT);
            if waiting.kept.is_none() { waiting.upload.as_ref().and_then(|upload| upload.again().ok()) } else { None }
        };
        // A large file takes long to reach the disk; other senders do not wait for that.
        let linked = unnamed.and_then(|upload| {
            let directory = self.directory.join(name_of(sender));
            let path = directory.join(sha.as_str());
            fs::create_dir_all(&directory).and_then(|()| upload.link_as(&path)).ok().map(|()| path)
        });
        let mut all = fresh(&self.files);
        let Some(waiting) = all.get_mut(&key) else {
            // Meanwhile an entry took it.
            linked.iter().for_each(|path| drop(fs::remove_file(path)));
            return None;
        };
        if linked.is_some() {
            waiting.kept = linked;
        }
        waiting.wait(KEPT_FOR_DRAFT);
        Some(waiting.size)
    }

    /// Keeps a file no longer than one without a draft.
    pub fn release(&self, sender: &str, sha: &Sha) {
        let mut all = fresh(&self.files);
        if let Some(waiting) = all.get_mut(&(sender.to_owned(), sha.clone()))
            && waiting.until > Instant::now() + KEPT
        {
            waiting.wait(KEPT);
        }
    }

    /// Returns a file. One of a draft stays until it is [`Staging::done`], because an entry may not come of it.
    pub fn take(&self, sender: &str, sha: &Sha) -> Option<Upload> {
        let key = (sender.to_owned(), sha.clone());
        let kept = {
            let mut all = fresh(&self.files);
            let waiting = all.get_mut(&key)?;
            match (&waiting.kept, waiting.upload.take()) {
                (None, upload) => {
                    all.remove(&key);
                    return upload;
                }
                (Some(_), Some(upload)) => return Some(upload),
                (Some(path), None) => path.clone(),
            }
        };
        // Its bytes are read without the lock. If they cannot be read, as on a full disk, the file stays for later.
        let upload = File::open(kept).ok().and_then(|mut file| (self.receive)(&mut file))?;
        if upload.sha() == sha {
            return Some(upload);
        }
        self.done(sender, sha);
        None
    }

    /// Forgets a file that was taken: an entry has it, or nobody wants it.
    pub fn done(&self, sender: &str, sha: &Sha) {
        if let Some(mut waiting) = fresh(&self.files).remove(&(sender.to_owned(), sha.clone())) {
            waiting.forget();
        }
    }

    /// Returns true if a file of this sender waits.
    pub fn has(&self, sender: &str, sha: &Sha) -> bool {
        fresh(&self.files).contains_key(&(sender.to_owned(), sha.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(bytes_of_one: u64, directory: &Path) -> Staging {
        Staging::start(bytes_of_one, directory.to_owned(), |_| None).unwrap()
    }

    fn sha(n: u8) -> Sha {
        Sha::try_from(format!("{n:064x}")).unwrap()
    }

    /// A directory in which two files of zoe's wait, and zoe's own directory.
    fn with_files() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let of_zoe = directory.path().join(name_of("zoe"));
        fs::create_dir_all(&of_zoe).unwrap();
        for n in [1, 2] {
            fs::write(of_zoe.join(sha(n).as_str()), b"bytes").unwrap();
        }
        (directory, of_zoe)
    }

    #[test]
    fn the_name_of_a_directory_has_any_sender() {
        for sender in ["zoe", "Zoë Müller", "", "../x"] {
            assert_eq!(sender_of(&name_of(sender)).as_deref(), Some(sender));
        }
        assert_eq!((sender_of("zz"), sender_of("f"), sender_of("ff")), (None, None, None));
    }

    #[test]
    fn files_of_drafts_wait_for_the_next_life_and_not_for_ever() {
        let (directory, of_zoe) = with_files();
        fs::write(of_zoe.join("no-file-of-ours"), b"").unwrap();
        let old = SystemTime::now() - KEPT_FOR_DRAFT - Duration::from_secs(1);
        File::open(of_zoe.join(sha(2).as_str())).unwrap().set_modified(old).unwrap();
        let staging = started(100, directory.path());
        assert!(staging.has("zoe", &sha(1)) && !staging.has("zoe", &sha(2)) && !staging.has("max", &sha(1)));
        assert!(!of_zoe.join(sha(2).as_str()).exists());
        assert_eq!((staging.waiting(Some("zoe")), staging.hold("zoe", &sha(1))), (5, Some(5)));
        // Without a draft it waits an hour, also in the next life.
        staging.release("zoe", &sha(1));
        drop(staging);
        let again = started(100, directory.path());
        let left = again.files.lock()[&("zoe".to_owned(), sha(1))].until.duration_since(Instant::now());
        assert!(left <= KEPT, "{left:?}");
        // A disk without room loses nothing.
        assert!(again.take("zoe", &sha(1)).is_none() && again.has("zoe", &sha(1)));
        assert!(of_zoe.join(sha(1).as_str()).exists());
    }

    #[test]
    fn a_file_of_a_draft_stays_until_an_entry_has_it() {
        let (directory, of_zoe) = with_files();
        // Whatever is read, its bytes are those of file 1.
        let receive = move |_: &mut File| Some(Upload::elsewhere(sha(1), 5));
        let staging = Staging::start(100, directory.path().to_owned(), receive).unwrap();
        // An entry that was refused gives it back, and it may be taken again.
        let taken = staging.take("zoe", &sha(1)).unwrap();
        assert!(staging.has("zoe", &sha(1)) && of_zoe.join(sha(1).as_str()).exists());
        staging.keep("zoe", taken).unwrap();
        assert!(staging.take("zoe", &sha(1)).is_some());
        staging.done("zoe", &sha(1));
        assert!(!staging.has("zoe", &sha(1)) && !of_zoe.join(sha(1).as_str()).exists());
        // Bytes that are not those of the name are no file of the draft.
        assert!(staging.take("zoe", &sha(2)).is_none());
        assert!(!staging.has("zoe", &sha(2)) && !of_zoe.join(sha(2).as_str()).exists());
    }

    #[test]
    fn waiting_files_have_a_bounded_size() {
        let directory = tempfile::tempdir().unwrap();
        let staging = started(100, directory.path());
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
        let directory = tempfile::tempdir().unwrap();
        let staging = started(1000, directory.path());
        let sha = |n: u8| Sha::try_from(format!("{n:064x}")).unwrap();
        for n in [1, 2] {
            staging.keep("zoe", Upload::elsewhere(sha(n), 1)).unwrap();
        }
        staging.files.lock().get_mut(&("zoe".to_owned(), sha(1))).unwrap().until = Instant::now();
        assert!(!staging.has("zoe", &sha(1)) && staging.take("zoe", &sha(1)).is_none());
        assert!(staging.has("zoe", &sha(2)) && !staging.has("max", &sha(2)) && staging.take("zoe", &sha(2)).is_some());
    }

    #[test]
    fn a_file_waits_longer_for_a_draft() {
        let directory = tempfile::tempdir().unwrap();
        let staging = started(1000, directory.path());
        let sha = Sha::try_from(format!("{:064x}", 1)).unwrap();
        staging.keep("zoe", Upload::elsewhere(sha.clone(), 7)).unwrap();
        let left = || staging.files.lock()[&("zoe".to_owned(), sha.clone())].until.duration_since(Instant::now());
        assert!(left() <= KEPT);
        assert_eq!((staging.hold("max", &sha), staging.hold("zoe", &sha)), (None, Some(7)));
        assert!(left() > KEPT);
        staging.release("zoe", &sha);
        assert!(left() <= KEPT);
    }
}
