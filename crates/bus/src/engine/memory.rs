//! Messages inside one process, with seeded faults and a virtual clock: the engine of tests.
//!
//! A [`MemoryNet`] is a whole network: hosts joined by links, and on each host simulated processes, each with its own
//! engine. Time stands still until a test moves it with [`MemoryNet::advance`] or [`MemoryNet::until`].
//! [`Clock::wait`](crate::clock::Clock::wait) moves it too, so that a blocking call ends. All due work (arrivals,
//! ticks, presence, timeouts) runs on the calling thread, in an order that depends on the seed alone. So a test that
//! failed once fails again.
//!
//! ```text
//! net.rs        the step that does the next due work, and faults of processes and links
//! state.rs      processes, messages under way, and the knowledge of each process about the others
//! link.rs       faults of a link: lose, delay, repeat, reorder, drop when full
//! presence.rs   notices of presence, and their times
//! question.rs   asking and answering
//! process.rs    one process's view: the Engine
//! key.rs        keys and patterns
//! random.rs     the one source of chance
//! ```
//! Threads were rejected: they would make the scheduler a second, unrepeatable seed. A callback may send, ask,
//! subscribe and even wait; no lock is held while one runs.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use bytes::Bytes;
//! use tampu_bus::engine::{Class, Engine, memory::{Faults, MemoryNet}};
//!
//! let net = MemoryNet::new(1);
//! net.set_faults(Faults { loss: 0.5, ..Faults::default() });
//! let (here, there) = (net.engine("here"), net.engine("there"));
//! let count = Arc::new(std::sync::atomic::AtomicU32::new(0));
//! let counter = count.clone();
//! let _guard = there.subscribe("a/**", Arc::new(move |_, _| { counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed); }))?;
//! net.advance(Duration::from_millis(10));
//! let outlet = here.outlet("a/b", Class::Data)?;
//! for _ in 0..100 {
//!     outlet.send(Bytes::from_static(b"x"))?;
//! }
//! net.advance(Duration::from_millis(10));
//! let arrived = count.load(std::sync::atomic::Ordering::Relaxed);
//! assert!((30..70).contains(&arrived), "half of a hundred, more or less: {arrived}");
//! # Ok::<(), tampu_bus::engine::EngineError>(())
//! ```

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::clock::Gate;

mod bounds;
mod ids;
mod key;
mod link;
mod message;
mod net;
mod presence;
mod process;
mod question;
mod random;
mod records;
mod state;
#[cfg(test)]
mod tests;

pub use key::matches;
pub use message::{Counts, Faults, Kind, LoseIf, Passing};
pub use process::MemoryEngine;

use net::Net;

/// A network of simulated processes. Clones are the same network.
#[derive(Clone)]
pub struct MemoryNet {
    net: Arc<Net>,
}

impl MemoryNet {
    /// Makes an empty network. All its faults follow from the seed.
    pub fn new(seed: u64) -> MemoryNet {
        MemoryNet { net: Net::new(seed) }
    }

    /// Adds a process on this host.
    pub fn engine(&self, host: &str) -> Arc<MemoryEngine> {
        MemoryEngine::new(self.net.clone(), host)
    }

    /// Returns monotonic ns, as every process's clock shows them.
    pub fn now(&self) -> u64 {
        self.net.now()
    }

    /// Lets this much time pass and does all due work.
    pub fn advance(&self, time: Duration) {
        let end = self.net.after(time);
        while self.net.now() < end {
            self.net.step(end);
        }
    }

    /// Does the next due work, however far ahead; returns false if there is none.
    pub fn step(&self) -> bool {
        self.net.step(u64::MAX)
    }

    /// Lets time pass until the condition holds; returns false if it does not within the limit.
    pub fn until(&self, mut condition: impl FnMut() -> bool, limit: Duration) -> bool {
        let end = self.net.after(limit);
        loop {
            if condition() {
                return true;
            }
            if self.net.now() >= end {
                return false;
            }
            self.net.step(end);
        }
    }

    /// Waits as [`Clock::wait`](crate::clock::Clock::wait) does.
    pub fn wait(&self, gate: &Gate, seen: u64, until: u64) {
        self.net.wait(gate, seen, until);
    }

    /// Sets the faults of every link without settings of its own.
    pub fn set_faults(&self, faults: Faults) {
        self.net.lock().links.set_default(faults);
    }

    /// Sets the faults of the link from one host to another, or between the processes of one.
    pub fn set_link(&self, from: &str, to: &str, faults: Faults) {
        let mut state = self.net.lock();
        let pair = (state.host(from), state.host(to));
        state.links.set(pair, faults);
    }

    /// Loses every message for which the closure returns true, besides random losses; `None` ends it. The closure must
    /// not use this network.
    pub fn lose_if(&self, lose: Option<LoseIf>) {
        let before = std::mem::replace(&mut self.net.lock().lose_if, lose);
        drop(before);
    }

    /// Sets the time until others learn of a subscription, an answerer or an announcement (1 ms).
    pub fn set_discovery(&self, time: Duration) {
        self.net.lock().discovery = time.as_nanos() as u64;
    }

    /// Sets the time that a process still counts as present after it is cut off or stopped (10 s).
    pub fn set_lease(&self, time: Duration) {
        self.net.lock().lease = time.as_nanos() as u64;
    }

    /// Sets the bytes that wait for a stopped process before more are dropped (256 KiB).
    pub fn set_hold(&self, bytes: usize) {
        self.net.lock().hold = bytes;
    }

    /// Lets every host prove its name, as certificates do.
    pub fn prove_hosts(&self) {
        self.net.lock().proves_hosts = true;
    }

    /// Lets the processes of a host share memory by files in this directory, which loans need.
    pub fn share_memory(&self, directory: impl Into<PathBuf>) {
        self.net.lock().shared_dir = Some(directory.into());
    }

    /// Cuts two hosts from each other: messages under way are lost, presence ends with the lease.
    pub fn cut(&self, one: &str, other: &str) {
        self.net.cut(one, other);
    }

    /// Joins two hosts again.
    pub fn heal(&self, one: &str, other: &str) {
        self.net.heal(one, other);
    }

    /// Stops a process like SIGSTOP: none of its code runs. Arrivals wait up to a limit and are dropped beyond it.
    pub fn stop(&self, engine: &MemoryEngine) {
        self.net.stop(engine.process());
    }

    /// Lets a stopped process continue.
    pub fn resume(&self, engine: &MemoryEngine) {
        self.net.resume(engine.process());
    }

    /// Ends a process like SIGKILL: none of its code runs, and every process that it could reach sees its presence end.
    pub fn kill(&self, engine: &MemoryEngine) {
        self.net.kill(engine.process());
    }

    /// Steps the UTC clock of a process by this many ns, back or forth.
    pub fn step_utc(&self, engine: &MemoryEngine, ns: i64) {
        engine.step_utc(ns);
    }

    /// Returns the counters of messages so far.
    pub fn counts(&self) -> Counts {
        self.net.lock().counts
    }

    /// Returns a number that is equal for two runs with the same events at the same times.
    pub fn digest(&self) -> u64 {
        self.net.lock().digest
    }

    /// Begins to record a line for every event of a message, for [`MemoryNet::trace`].
    pub fn keep_trace(&self) {
        self.net.lock().trace.get_or_insert_default();
    }

    /// Returns the recorded lines: time, hosts, key, kind, length, fate.
    pub fn trace(&self) -> Vec<String> {
        self.net.lock().trace.clone().unwrap_or_default()
    }
}
