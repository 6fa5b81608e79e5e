//! Time on the bus: the host's clock, or a simulated one that a test moves.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::Time;

use self::discipline::{Discipline, Watch};

pub mod discipline;
mod kernel;

/// Gate at which threads wait for news. It counts its openings, so an opening between a check and the wait is not
/// missed.
#[derive(Debug, Default)]
pub struct Gate {
    openings: Mutex<u64>,
    opened: Condvar,
}

impl Gate {
    /// Returns the number of openings so far. A waiter reads it before it checks its condition.
    pub fn openings(&self) -> u64 {
        *self.openings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all waiting threads.
    pub fn open(&self) {
        *self.openings.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.opened.notify_all();
    }

    /// Waits on the host's clock until it has been opened more than `seen` times, or the timeout is over.
    pub fn wait_host(&self, seen: u64, timeout: Duration) {
        let openings = self.openings.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.opened.wait_timeout_while(openings, timeout, |openings| *openings <= seen);
    }
}

/// A source of time: the host's clock, or a simulated one.
pub trait Clock: Send + Sync {
    /// Returns nanoseconds that never go back.
    fn monotonic(&self) -> u64;

    /// Returns the current UTC time.
    fn utc(&self) -> Time;

    /// Returns the quality of the UTC time.
    fn discipline(&self) -> Discipline;

    /// Waits until the gate has been opened more than `seen` times, or until the time `until` (monotonic ns).
    fn wait(&self, gate: &Gate, seen: u64, until: u64);

    /// Reports if time passes by itself, so that the kernel can do the waiting.
    fn is_the_host_s(&self) -> bool {
        false
    }
}

/// Clocks of the host.
#[derive(Debug)]
pub struct HostClock {
    origin: Instant,
    watch: Watch,
}

impl Default for HostClock {
    fn default() -> HostClock {
        HostClock { origin: Instant::now(), watch: Watch::default() }
    }
}

impl Clock for HostClock {
    fn monotonic(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn utc(&self) -> Time {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
    }

    fn discipline(&self) -> Discipline {
        self.watch.look(self.monotonic())
    }

    fn is_the_host_s(&self) -> bool {
        true
    }

    fn wait(&self, gate: &Gate, seen: u64, until: u64) {
        gate.wait_host(seen, Duration::from_nanos(until.saturating_sub(self.monotonic())));
    }
}
