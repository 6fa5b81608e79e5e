//! Time as the bus sees it: the host's clock, or a simulated one that a test moves.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::Time;

use self::discipline::{Discipline, Watch};

pub mod discipline;
mod kernel;

/// Something to wait at: opened by whoever has news. Opening counts, so an opening between looking and waiting is not missed.
#[derive(Debug, Default)]
pub struct Gate {
    openings: Mutex<u64>,
    opened: Condvar,
}

impl Gate {
    /// How often it has been opened; read before looking at what one waits for.
    pub fn openings(&self) -> u64 {
        *self.openings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody who waits.
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

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Nanoseconds that never go back.
    fn monotonic(&self) -> u64;

    /// UTC now.
    fn utc(&self) -> Time;

    /// How far UTC can be trusted.
    fn discipline(&self) -> Discipline;

    /// Waits until the gate has been opened more than `seen` times, or `until` (monotonic ns).
    fn wait(&self, gate: &Gate, seen: u64, until: u64);

    /// Whether time passes by itself, so that the kernel may do the waiting.
    fn is_the_host_s(&self) -> bool {
        false
    }
}

/// The host's clocks.
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
