//! Cost of a logger: the same calls through Tampu, through other loggers, and the floor beneath all of them.
//!
//! Each logger is measured in a process of its own, by four methods:
//!
//! 1. Processor time of the calling threads, in rounds without a clock between the calls.
//! 2. Each call timed, as fast as possible.
//! 3. Each call timed, in bursts of 20 a millisecond.
//! 4. Many records without a pause, until the last one has reached its destination.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::call::{
    amount::Amount,
    gang::{self, Plan},
    program::{angle, state},
    summary::Summary,
    tsc::Scale,
};

/// Calls of a burst, every millisecond.
const BURST: u64 = 20;

/// A logger, in an application's use.
pub trait Peer: Sync + Sized {
    /// Returns a closure with which a thread logs two integers and a short string.
    fn hand(&self) -> impl FnMut(u64, u64, &'static str);

    /// Waits until everything lies where it shall; false where that could not be had.
    fn finish(self) -> Result<bool, String>;

    /// Returns the cost of a call whose level is off, in ns, if it is measured for this logger.
    fn noop_ns(&self) -> Option<f64> {
        None
    }

    /// Returns the number of records that the logger reports as dropped.
    fn dropped(&self) -> u64 {
        0
    }
}

/// Arguments of the role.
#[derive(Debug, Clone, clap::Args)]
pub struct Ask {
    /// Name of the logger.
    #[arg(long)]
    pub peer: String,
    /// Number of threads that share the calls.
    #[arg(long)]
    pub threads: usize,
    /// Calls of a round, all threads together.
    #[arg(long)]
    pub calls: u64,
    /// Number of rounds.
    #[arg(long)]
    pub rounds: usize,
    /// Records without a pause, at last.
    #[arg(long)]
    pub records: u64,
    /// Only what can be compared between two places: no bursts, and nothing without a pause.
    #[arg(long)]
    pub brief: bool,
    /// The file that text is written to.
    #[arg(long)]
    pub sink: PathBuf,
    /// File for the account.
    #[arg(long)]
    pub account: PathBuf,
}

/// Results for one logger.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    /// Processor time of the calling thread for each call, in ns.
    pub cpu_ns: f64,
    /// Times of calls that are made as fast as possible.
    pub flat_out: Summary,
    pub bursts: Summary,
    /// Records a second without a pause, until the last one has reached its destination.
    pub sustained_per_s: f64,
    /// Number of all logged records.
    pub logged: u64,
    /// Number of of that them the logger says it has dropped.
    pub dropped: u64,
    /// True if the logger waited until every record had arrived.
    pub confirmed: bool,
    /// Cost of a call whose level is off, in ns.
    pub noop_ns: Option<f64>,
}

impl Ask {
    /// Returns the arguments for this amount of work of a logger, whose text goes to `sink`.
    pub fn of(peer: &str, threads: usize, amount: &Amount, sink: &Path) -> Ask {
        let Amount { calls, rounds, records, .. } = *amount;
        let (peer, sink) = (peer.to_owned(), sink.to_owned());
        // The starter of the process sets the path of the account.
        Ask { peer, threads, calls, rounds, records, brief: false, sink, account: PathBuf::new() }
    }

    fn plan(&self) -> Plan {
        Plan { threads: self.threads, calls: self.calls, rounds: self.rounds, warm_up: 1, limit: Duration::MAX }
    }

    /// Number of records that are logged in all: of each way, and of its warm-up.
    fn logged(&self) -> u64 {
        let ways = if self.brief { 2 } else { 3 };
        ways * self.calls * (self.rounds as u64 + 1) + self.at_once()
    }

    /// Number of without that a pause.
    fn at_once(&self) -> u64 {
        if self.brief { 0 } else { self.records }
    }
}

/// Measures a logger by all methods.
pub fn measure<P: Peer>(ask: &Ask, peer: P) -> Result<Account, String> {
    let scale = Scale::measure();
    let plan = ask.plan();
    let work = || {
        let mut hand = peer.hand();
        move |number| hand(number, angle(number), state(number))
    };
    let cpu_ns = gang::cpu(plan, work);
    let flat_out = Summary::of(gang::timed(plan, work), scale);
    let bursts = if ask.brief { Vec::new() } else { gang::bursts(plan, BURST, work) };
    let bursts = Summary::of(bursts, scale);
    let noop_ns = if ask.brief { None } else { peer.noop_ns() };
    let begun = Instant::now();
    thread::scope(|scope| {
        for share in plan.shares(ask.at_once()) {
            scope.spawn(|| share.for_each(work()));
        }
    });
    let dropped = peer.dropped();
    let confirmed = peer.finish()?;
    let sustained_per_s = ask.at_once() as f64 / begun.elapsed().as_secs_f64();
    Ok(Account { cpu_ns, flat_out, bursts, sustained_per_s, logged: ask.logged(), dropped, confirmed, noop_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A logger that counts.
    #[derive(Default)]
    struct Counter(std::sync::atomic::AtomicU64);

    impl Peer for &Counter {
        fn hand(&self) -> impl FnMut(u64, u64, &'static str) {
            |_, _, _| {
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }

        fn finish(self) -> Result<bool, String> {
            Ok(true)
        }
    }

    #[test]
    fn as_many_records_are_logged_as_the_account_says() -> Result<(), String> {
        for (brief, bursts) in [(false, 200), (true, 0)] {
            let counter = Counter::default();
            let (sink, account) = (PathBuf::new(), PathBuf::new());
            let ask = Ask { peer: String::new(), threads: 3, calls: 100, rounds: 2, records: 1000, brief, sink, account };
            let account = measure(&ask, &counter)?;
            assert_eq!(counter.0.into_inner(), account.logged);
            assert_eq!((account.flat_out.calls, account.bursts.calls), (200, bursts));
        }
        Ok(())
    }
}
