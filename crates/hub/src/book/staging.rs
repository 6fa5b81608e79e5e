//! Files that were sent and are no entry's yet. They go when nobody wants them for a while.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread::Thread,
    time::{Duration, Instant},
};

use tampu_logbook::attachment::{Sha, Upload};

/// Files of one sender.
pub const OF_ONE: usize = 128;
/// Files of all.
pub const OF_ALL: usize = 2048;
/// How long one waits to become an entry's.
pub const KEPT: Duration = Duration::from_secs(3600);
/// How often those are thrown away that have waited so long.
const LOOK: Duration = Duration::from_secs(60);

/// Files by their sender and their SHA-256.
type Files = Mutex<HashMap<(String, Sha), (Upload, Instant)>>;

/// Files that wait.
#[derive(Debug)]
pub struct Staging {
    files: Arc<Files>,
    cleaner: Thread,
}

/// Those that have not waited too long; the others go.
fn fresh(files: &Files) -> MutexGuard<'_, HashMap<(String, Sha), (Upload, Instant)>> {
    let mut all = files.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, (_, since)| since.elapsed() < KEPT);
    all
}

impl Drop for Staging {
    fn drop(&mut self) {
        // It finds nothing to look after any longer.
        self.files = Arc::default();
        self.cleaner.unpark();
    }
}

impl Staging {
    /// None wait yet. Somebody looks after them until this value goes.
    pub fn start() -> io::Result<Staging> {
        let files = Arc::<Files>::default();
        let watched: Weak<Files> = Arc::downgrade(&files);
        let cleaner = std::thread::Builder::new().name("book staging".to_owned()).spawn(move || {
            while let Some(files) = watched.upgrade() {
                drop(fresh(&files));
                drop(files);
                std::thread::park_timeout(LOOK);
            }
        })?;
        Ok(Staging { files, cleaner: cleaner.thread().clone() })
    }

    /// Keeps one. Fails if there are too many.
    pub fn keep(&self, sender: &str, upload: Upload) -> Result<(), &'static str> {
        let mut all = fresh(&self.files);
        if all.len() >= OF_ALL || all.keys().filter(|(of, _)| of == sender).count() >= OF_ONE {
            return Err("too many files wait to become an entry's; post the entries, or wait an hour");
        }
        all.insert((sender.to_owned(), upload.sha().clone()), (upload, Instant::now()));
        Ok(())
    }

    /// Takes one out.
    pub fn take(&self, sender: &str, sha: &Sha) -> Option<Upload> {
        let mut all = fresh(&self.files);
        all.remove(&(sender.to_owned(), sha.clone())).map(|(upload, _)| upload)
    }

    /// Whether a file of theirs is here.
    pub fn has(&self, sender: &str, sha: &Sha) -> bool {
        fresh(&self.files).contains_key(&(sender.to_owned(), sha.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_waited_too_long_is_not_taken() {
        let staging = Staging::start().unwrap();
        let sha = |n: u8| Sha::try_from(format!("{n:064x}")).unwrap();
        for n in [1, 2] {
            staging.keep("zoe", Upload::elsewhere(sha(n), 1)).unwrap();
        }
        // A computer that was just started has no such time.
        let Some(old) = Instant::now().checked_sub(KEPT) else { return };
        staging.files.lock().unwrap().get_mut(&("zoe".to_owned(), sha(1))).unwrap().1 = old;
        assert!(!staging.has("zoe", &sha(1)) && staging.take("zoe", &sha(1)).is_none());
        assert!(staging.has("zoe", &sha(2)) && !staging.has("max", &sha(2)) && staging.take("zoe", &sha(2)).is_some());
    }
}
