//! Calls of services outside that may take long, each in a thread of its own, so that no worker of requests waits longer
//! than a limit.
//!
//! A library's look-up of a name cannot be ended from outside. The thread that waits for it keeps its place until it
//! ends, and the request goes on without it. So a silent service costs as many threads as calls are allowed.

use std::{
    sync::mpsc::sync_channel,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use tampu_logbook::people::outside::MethodFailure;
use tampu_workers::{OnPanic, WorkerThread};

/// The calls of one service that run at a time.
#[derive(Clone)]
pub struct Calls(Arc<Shared>);

struct Shared {
    limit: usize,
    running: Mutex<usize>,
    freed: Condvar,
}

/// The place of a running call, released on drop.
struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.running.lock() -= 1;
        self.0.freed.notify_one();
    }
}

impl Calls {
    /// Allows this number of calls at a time.
    pub fn new(limit: usize) -> Calls {
        Calls(Arc::new(Shared { limit, running: Mutex::new(0), freed: Condvar::new() }))
    }

    /// Runs a call, and waits at most this time for its place and its result.
    pub fn run<T: Send + 'static>(&self, most: Duration, call: impl FnOnce() -> T + Send + 'static) -> Result<T, MethodFailure> {
        let until = Instant::now() + most;
        let place = self.place(until).ok_or(MethodFailure::Busy)?;
        let (sender, receiver) = sync_channel(1);
        let work = move || {
            let _place = place;
            let _ = sender.send(call());
        };
        WorkerThread::named("login")
            .spawn(OnPanic::ReportOnly, work)
            .map_err(|why| MethodFailure::Away(format!("no thread for it: {why}")))?;
        receiver.recv_timeout(until.saturating_duration_since(Instant::now())).map_err(|why| {
            MethodFailure::Away(match why {
                std::sync::mpsc::RecvTimeoutError::Timeout => format!("no answer within {} s", most.as_secs_f32()),
                std::sync::mpsc::RecvTimeoutError::Disconnected => "the call failed; the log has the reason".to_owned(),
            })
        })
    }

    fn place(&self, until: Instant) -> Option<Place> {
        let mut running = self.0.running.lock();
        while *running >= self.0.limit {
            if self.0.freed.wait_until(&mut running, until).timed_out() {
                return None;
            }
        }
        *running += 1;
        Some(Place(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_service_holds_its_places_and_no_request() {
        let calls = Calls::new(1);
        let (release, held) = sync_channel::<()>(0);
        let silent = calls.run(Duration::from_millis(20), move || held.recv());
        assert!(matches!(silent, Err(MethodFailure::Away(_))));
        assert_eq!(calls.run(Duration::from_millis(20), || 1), Err(MethodFailure::Busy));
        release.send(()).unwrap();
        assert_eq!(calls.run(Duration::from_secs(60), || 2), Ok(2));
        assert!(matches!(calls.run(Duration::from_secs(60), || panic!("on purpose")), Err(MethodFailure::Away(_))));
        assert_eq!(calls.run(Duration::from_secs(60), || 3), Ok(3), "a panic releases its place");
    }
}
