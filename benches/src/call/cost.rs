//! What a logger costs: the same calls through ours, through others, and the floor beneath all of them.
//!
//! Each logger is measured in a process of its own, one way after the other: processor time of the calling threads in rounds
//! without a clock between the calls; each call timed, as fast as possible; each call timed, in bursts of 20 a millisecond; and
//! at last many records without a pause, until the last one lies where it shall.

use std::{
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::call::{
    gang::{self, Plan},
    program::{TEXT, angle, state},
    scene::Amount,
    summary::Summary,
    tsc::Scale,
};

/// Calls of a burst, every millisecond.
const BURST: u64 = 20;

/// A logger as an application uses it.
pub trait Peer: Sync + Sized {
    /// What a thread logs with: a closure that logs two integers and a short string.
    fn hand(&self) -> impl FnMut(u64, u64, &'static str);

    /// Waits until everything lies where it shall; false where that could not be had.
    fn finish(self) -> Result<bool, String>;

    /// What a call costs whose level is off, in ns, if that is asked of this one.
    fn noop_ns(&self) -> Option<f64> {
        None
    }

    /// Records that the logger itself says it has dropped.
    fn dropped(&self) -> u64 {
        0
    }
}

/// What is asked for.
#[derive(Debug, Clone, clap::Args)]
pub struct Ask {
    /// Which logger.
    #[arg(long)]
    pub peer: String,
    /// How many threads share the calls.
    #[arg(long)]
    pub threads: usize,
    /// Calls of a round, all threads together.
    #[arg(long)]
    pub calls: u64,
    /// How many rounds.
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
    /// Where the account goes.
    #[arg(long)]
    pub account: PathBuf,
}

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    /// Processor time of the calling thread, a call, in ns.
    pub cpu_ns: f64,
    /// As fast as possible.
    pub flat_out: Summary,
    /// In bursts.
    pub bursts: Summary,
    /// Records a second without a pause, until the last one lay where it shall.
    pub sustained_per_s: f64,
    /// All records that were logged.
    pub logged: u64,
    /// How many of them the logger says it has dropped.
    pub dropped: u64,
    /// The logger waited until everything was there.
    pub confirmed: bool,
    /// What a call costs whose level is off.
    pub noop_ns: Option<f64>,
}

impl Ask {
    /// So much of this logger, whose text goes to `sink`.
    pub fn of(peer: &str, threads: usize, amount: &Amount, sink: &Path) -> Ask {
        let Amount { calls, rounds, records, .. } = *amount;
        let (peer, sink) = (peer.to_owned(), sink.to_owned());
        // Where the account goes is said by who starts the process.
        Ask { peer, threads, calls, rounds, records, brief: false, sink, account: PathBuf::new() }
    }

    fn plan(&self) -> Plan {
        Plan { threads: self.threads, calls: self.calls, rounds: self.rounds, warm_up: 1, limit: Duration::MAX }
    }

    /// How many records are logged in all: of each way, and of its warm-up.
    fn logged(&self) -> u64 {
        let ways = if self.brief { 2 } else { 3 };
        ways * self.calls * (self.rounds as u64 + 1) + self.at_once()
    }

    /// How many without a pause.
    fn at_once(&self) -> u64 {
        if self.brief { 0 } else { self.records }
    }
}

/// Measures a logger in every way.
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

/// How many lines say what is measured; a program may say other things as well.
pub fn lines(from: impl Read) -> io::Result<u64> {
    let mut from = BufReader::with_capacity(1 << 20, from);
    let (mut line, mut count) = (Vec::new(), 0);
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(count);
        }
        count += u64::from(line.windows(TEXT.len()).any(|words| words == TEXT.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_were_measured_count() {
        let text = b"begins\n12:00 Info antenna 0 at 0 is idle\nmonitor point read\n antenna 1 at 7 is idle antenna\nantenna";
        assert_eq!(lines(&text[..]).ok(), Some(3));
        assert_eq!(lines(&b""[..]).ok(), Some(0));
    }

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
