//! Messages inside one process, with seeded faults and a virtual clock: the engine of tests.
//!
//! A [`MemoryNet`] is a whole network: hosts joined by links, and on each host simulated processes, every one with an engine
//! of its own. Time stands still until somebody moves it: [`MemoryNet::advance`], [`MemoryNet::until`] and, so that a caller
//! who blocks does not wait for ever, [`Clock::wait`](crate::clock::Clock::wait). Whatever falls due meanwhile (arrivals, ticks, presence, timeouts) runs
//! on the calling thread, in an order that depends on the seed alone. So a test that failed once fails again.
//!
//! ```text
//! net.rs        the step that does the next thing due, and what may happen to processes and links
//! state.rs      who is there, what is under way, and who knows of whom
//! link.rs       what a link does to a message: lose, delay, repeat, reorder, drop when full
//! presence.rs   who is told that whom is here, and when
//! question.rs   asking and answering
//! process.rs    one process's view: the Engine
//! key.rs        keys and patterns
//! random.rs     the one source of chance
//! ```
//! Threads were rejected: they would make the scheduler a second, unrepeatable seed. A callback may send, ask, subscribe and
//! even wait; no lock is held while one runs.
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
//! let _guard = there.subscribe("a/**", Arc::new(move |_| { counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed); }))?;
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

use crate::{clock::Gate, engine::Class};

mod key;
mod link;
mod net;
mod presence;
mod process;
mod question;
mod random;
mod state;
#[cfg(test)]
mod tests;

pub use key::matches;
pub use process::MemoryEngine;

use net::Net;

/// What a link does to what it carries. The default carries everything in order within 100 us.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message arrives twice.
    pub duplicate: f64,
    /// Probability that a message is held back so that later ones overtake it.
    pub reorder: f64,
    /// How far a message is held back at most when it is.
    pub reorder_by: Duration,
    /// The shortest and the longest time a message takes; order is kept unless `reorder` says otherwise.
    pub delay: (Duration, Duration),
    /// How many bytes may be under way between two processes; what comes beyond is dropped. Questions and answers are exempt.
    pub capacity: usize,
    /// Bytes a second between two processes; 0 is without limit.
    pub rate: u64,
}

impl Default for Faults {
    fn default() -> Faults {
        let delay = Duration::from_micros(100);
        Faults {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::from_millis(5),
            delay: (delay, delay),
            capacity: usize::MAX,
            rate: 0,
        }
    }
}

/// What a message on its way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sent through an outlet.
    Message(Class),
    /// A question.
    Question,
    /// Part of an answer.
    Answer,
}

/// A message about to leave, as [`MemoryNet::lose_if`] is shown it.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    /// Host it leaves.
    pub from: &'a str,
    /// Host it goes to.
    pub to: &'a str,
    /// Key it was sent under.
    pub key: &'a str,
    /// What it is.
    pub kind: Kind,
    /// Its content.
    pub bytes: &'a [u8],
}

/// Says which messages a link loses.
pub type LoseIf = Arc<dyn Fn(&Passing<'_>) -> bool + Send + Sync>;

/// How many messages came to which end, over all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Handed to a link, one for each process they were for.
    pub sent: u64,
    /// Given to the process they were for; repetitions count.
    pub delivered: u64,
    /// Lost by chance or because a test wanted it.
    pub lost: u64,
    /// Repeated.
    pub duplicated: u64,
    /// Held back so that others overtook.
    pub reordered: u64,
    /// Dropped because the link or a stopped process's queue was full.
    pub full: u64,
    /// Dropped because the hosts were cut from each other, or the process was dead or cut off.
    pub unreachable: u64,
}

/// A network of simulated processes. Clones are the same network.
#[derive(Clone)]
pub struct MemoryNet {
    net: Arc<Net>,
}

impl MemoryNet {
    /// An empty network whose every accident follows from the seed.
    pub fn new(seed: u64) -> MemoryNet {
        MemoryNet { net: Net::new(seed) }
    }

    /// A new process on this host.
    pub fn engine(&self, host: &str) -> Arc<MemoryEngine> {
        MemoryEngine::new(self.net.clone(), host)
    }

    /// Monotonic ns, as every process's clock shows it.
    pub fn now(&self) -> u64 {
        self.net.now()
    }

    /// Lets this much time pass and does everything that falls due.
    pub fn advance(&self, time: Duration) {
        let end = self.net.after(time);
        while self.net.now() < end {
            self.net.step(end);
        }
    }

    /// Does the next thing due, however far ahead; false if nothing is.
    pub fn step(&self) -> bool {
        self.net.step(u64::MAX)
    }

    /// Lets time pass until the condition holds; false if it does not within the limit.
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

    /// What every link does that was not told otherwise.
    pub fn set_faults(&self, faults: Faults) {
        self.net.lock().links.set_default(faults);
    }

    /// What the link from one host to another (or between the processes of one) does.
    pub fn set_link(&self, from: &str, to: &str, faults: Faults) {
        let mut state = self.net.lock();
        let pair = (state.host(from), state.host(to));
        state.links.set(pair, faults);
    }

    /// Loses every message the closure says yes to, beside what chance loses; `None` ends it. It must not use this network.
    pub fn lose_if(&self, lose: Option<LoseIf>) {
        let before = std::mem::replace(&mut self.net.lock().lose_if, lose);
        drop(before);
    }

    /// How long it takes until others know of a subscription, an answerer or an announcement (1 ms).
    pub fn set_discovery(&self, time: Duration) {
        self.net.lock().discovery = time.as_nanos() as u64;
    }

    /// How long a process that is cut off or stopped still counts as present (10 s).
    pub fn set_lease(&self, time: Duration) {
        self.net.lock().lease = time.as_nanos() as u64;
    }

    /// How many bytes wait for a stopped process before more are dropped (256 KiB).
    pub fn set_hold(&self, bytes: usize) {
        self.net.lock().hold = bytes;
    }

    /// Lets the processes of a host share memory by files in this directory, as loans need.
    pub fn share_memory(&self, directory: impl Into<PathBuf>) {
        self.net.lock().shared_dir = Some(directory.into());
    }

    /// Cuts two hosts from each other: what is under way is lost, presence ends when the lease does.
    pub fn cut(&self, one: &str, other: &str) {
        self.net.cut(one, other);
    }

    /// Joins two hosts again.
    pub fn heal(&self, one: &str, other: &str) {
        self.net.heal(one, other);
    }

    /// Stops a process as SIGSTOP does: nothing of it runs, what arrives waits up to a bound and is dropped beyond it.
    pub fn stop(&self, engine: &MemoryEngine) {
        self.net.stop(engine.process());
    }

    /// Lets a stopped process run on.
    pub fn resume(&self, engine: &MemoryEngine) {
        self.net.resume(engine.process());
    }

    /// Ends a process as SIGKILL does: nothing of it runs any more, and whoever it could reach sees its presence end.
    pub fn kill(&self, engine: &MemoryEngine) {
        self.net.kill(engine.process());
    }

    /// Steps the UTC clock of a process by this many ns, back or forth.
    pub fn step_utc(&self, engine: &MemoryEngine, ns: i64) {
        engine.step_utc(ns);
    }

    /// How messages fared so far.
    pub fn counts(&self) -> Counts {
        self.net.lock().counts
    }

    /// A number that is equal for two runs in which the same things happened at the same times.
    pub fn digest(&self) -> u64 {
        self.net.lock().digest
    }

    /// Begins to keep a line for everything that happens to a message, for [`MemoryNet::trace`].
    pub fn keep_trace(&self) {
        self.net.lock().trace.get_or_insert_default();
    }

    /// The lines kept so far: time, hosts, key, kind, length, fate.
    pub fn trace(&self) -> Vec<String> {
        self.net.lock().trace.clone().unwrap_or_default()
    }
}
