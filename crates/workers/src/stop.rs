//! The signal that ends a search or another long task, from outside or when its time is over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Signal to a task that it has to end. Clones share the request; the deadline is each one's own.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    until: Option<Instant>,
}

/// Reason why a task has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// [`Stop::stop`] was called.
    Requested,
    /// The deadline has passed.
    TimeLimit,
}

impl Stop {
    /// A signal with a deadline this far from now.
    pub fn after(time: Duration) -> Stop {
        Stop::default().within(time)
    }

    /// Ends every task that checks this signal or a clone of it.
    pub fn stop(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Returns the same signal with a deadline this far from now, or with its own deadline if that is earlier.
    pub fn within(&self, time: Duration) -> Stop {
        let until = Instant::now().checked_add(time);
        let until = match (self.until, until) {
            (Some(own), Some(new)) => Some(own.min(new)),
            (own, new) => own.or(new),
        };
        Stop { requested: self.requested.clone(), until }
    }

    /// Reason why the task has to end; `None` while it may continue.
    pub fn reason(&self) -> Option<StopReason> {
        if self.requested.load(Ordering::Relaxed) {
            return Some(StopReason::Requested);
        }
        self.until.is_some_and(|until| Instant::now() >= until).then_some(StopReason::TimeLimit)
    }

    /// Returns true once the task has to end.
    pub fn is_stopped(&self) -> bool {
        self.reason().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reaches_clones_and_deadlines_do_not() {
        let stop = Stop::default();
        let short = stop.within(Duration::ZERO);
        assert_eq!((stop.reason(), short.reason()), (None, Some(StopReason::TimeLimit)));
        assert_eq!(short.within(Duration::from_secs(3600)).reason(), Some(StopReason::TimeLimit));
        assert!(!Stop::after(Duration::from_secs(3600)).is_stopped());
        stop.within(Duration::MAX).stop();
        assert_eq!((stop.reason(), short.reason()), (Some(StopReason::Requested), Some(StopReason::Requested)));
    }
}
