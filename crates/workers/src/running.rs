//! Numbers of tasks that run at a time.
//!
//! A counter that is raised before a task and lowered after it stays raised when the task panics. After some panics
//! nothing is admitted. Here a guard lowers the number when it is dropped, so a panic releases its place.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// Number of tasks of one kind that run at this moment. Clones share the number.
#[derive(Debug, Clone, Default)]
pub struct Running(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicUsize,
    /// Locked for the news that the last task has ended.
    ending: Mutex<()>,
    ended: Condvar,
}

impl Running {
    /// A number that begins at 0.
    pub fn new() -> Running {
        Running::default()
    }

    /// Tasks that run at this moment.
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::Acquire)
    }

    /// Counts one more task until the guard is dropped.
    pub fn enter(&self) -> RunningGuard {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        RunningGuard(self.0.clone())
    }

    /// Counts one more task unless `limit` of them run.
    pub fn try_enter(&self, limit: usize) -> Option<RunningGuard> {
        let next = |count| (count < limit).then_some(count + 1);
        self.0.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        Some(RunningGuard(self.0.clone()))
    }

    /// Waits until no task runs, at most for this time. Returns true if none runs.
    pub fn wait_until_idle(&self, longest: Duration) -> bool {
        let mut ending = self.0.ending.lock();
        !self.0.ended.wait_while_for(&mut ending, |()| self.count() > 0, longest).timed_out()
    }
}

/// Place of one task in a [`Running`] number, released on drop.
#[derive(Debug)]
#[must_use = "the task counts as running only while its guard lives"]
pub struct RunningGuard(Arc<Shared>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Under the lock: a thread that has just seen the count is waiting by then.
            let _ending = self.0.ending.lock();
            self.0.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_releases_its_place() {
        let running = Running::new();
        let first = running.try_enter(2).unwrap();
        let inside = running.clone();
        let task = std::thread::spawn(move || {
            let _place = inside.try_enter(2).unwrap();
            assert!(inside.try_enter(2).is_none(), "two run");
            panic!("the task fails");
        });
        assert!(task.join().is_err());
        assert_eq!(running.count(), 1);
        drop(first);
        assert_eq!(running.count(), 0);
        let _unlimited = running.enter();
        assert_eq!(running.count(), 1);
    }
    #[test]
    fn waiting_ends_with_the_last_task_or_the_time() {
        let running = Running::new();
        assert!(running.wait_until_idle(Duration::ZERO), "none runs");
        let (one, two) = (running.enter(), running.enter());
        assert!(!running.wait_until_idle(Duration::from_millis(1)));
        let waiting = running.clone();
        let waiter = std::thread::spawn(move || waiting.wait_until_idle(Duration::from_secs(60)));
        drop(one);
        assert!(!running.wait_until_idle(Duration::from_millis(1)), "one still runs");
        drop(two);
        assert!(waiter.join().unwrap());
    }
}
