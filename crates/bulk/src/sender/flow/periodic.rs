//! Sending at an interval, by a callback.

use std::{
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use super::Flow;
use crate::{
    open::{OpenError, spawn},
    time::{after, until},
};

/// The decision of a periodic callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Call again after the interval.
    On,
    /// The callback has ended.
    Done,
}

/// A callback that sends at an interval; ends when it is dropped.
pub struct Periodic {
    stop: Arc<(Mutex<bool>, Condvar)>,
    worker: Option<JoinHandle<()>>,
}

impl Periodic {
    /// Returns true if the callback has ended.
    pub fn is_done(&self) -> bool {
        self.worker.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Flow {
    /// Calls `callback` at this interval until it ends itself (ACS's asynchronous sending). A call that takes longer
    /// than the interval delays the next; missed calls are not repeated.
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
                let mut stopped = told.0.lock();
                while !*stopped && Instant::now() < due {
                    let left = due.saturating_duration_since(Instant::now());
                    told.1.wait_for(&mut stopped, left);
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
