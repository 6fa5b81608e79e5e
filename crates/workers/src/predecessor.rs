//! A lock that the process before may still hold.
//!
//! The kernel frees the lock of a killed process when that process has ended. That takes a moment for one with many
//! mapped files, and whoever killed it may start its successor at once. A successor that gives up then would stay away
//! until somebody looks.

use std::{
    fs::{File, TryLockError},
    io, thread,
    time::{Duration, Instant},
};

/// Longest wait for a process that is about to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a file for this process alone (`flock`), and waits up to 3 s for a holder that is about to end. Returns false
/// if another process holds the lock after that.
pub fn lock_after_predecessor(file: &File) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_a_process_that_ends_is_waited_for() {
        let path = std::env::temp_dir().join(format!("tampu-predecessor-{}", std::process::id()));
        let (before, after) = (File::create(&path).unwrap(), File::open(&path).unwrap());
        assert!(lock_after_predecessor(&before).unwrap());
        let (waits, waiting) = std::sync::mpsc::channel();
        let successor = thread::spawn(move || {
            assert!(matches!(after.try_lock(), Err(TryLockError::WouldBlock)));
            waits.send(()).unwrap();
            lock_after_predecessor(&after).unwrap()
        });
        waiting.recv().unwrap();
        drop(before);
        assert!(successor.join().unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
