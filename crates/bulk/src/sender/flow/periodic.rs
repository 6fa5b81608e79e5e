//! Sending at an interval, by a callback.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::Flow;
use crate::{
    receiver::{OpenError, lock, spawn},
    time::{after, until},
};

/// Whether a periodic callback goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Again after the interval.
    On,
    /// No more.
    Done,
}

/// A callback that sends at an interval; ends when it is dropped.
pub struct Periodic {
    stop: Arc<(Mutex<bool>, Condvar)>,
    worker: Option<JoinHandle<()>>,
}

impl Periodic {
    /// Whether the callback has said that it has done.
    pub fn is_done(&self) -> bool {
        self.worker.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        *lock(&self.stop.0) = true;
        self.stop.1.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Flow {
    /// Calls `callback` at this interval until it says that it has done (ACS's asynchronous sending). A call that takes longer than
    /// the interval delays the next; none is made up for.
    pub fn every(
        &self,
        interval: Duration,
        mut callback: impl FnMut(&Flow) -> Go + Send + 'static,
    ) -> Result<Periodic, OpenError> {
        let flow = self.clone();
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let told = stop.clone();
        let worker = spawn("bulk-every", move || {
            let mut due = until(interval);
            loop {
                let mut stopped = lock(&told.0);
                while !*stopped && Instant::now() < due {
                    let left = due.saturating_duration_since(Instant::now());
                    stopped = told.1.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                if *stopped {
                    return;
                }
                drop(stopped);
                if callback(&flow) == Go::Done {
                    return;
                }
                due = after(due, interval).max(Instant::now());
            }
        })?;
        Ok(Periodic { stop, worker: Some(worker) })
    }
}
