//! A group of threads that begin their calls at the same moment.
//!
//! The threads of a gang live for all its rounds. The setup of a logger for each thread belongs to no call. It would
//! otherwise appear as the slowest thousandth of ten threads' calls. The bench sleeps between rounds, so that remaining
//! work of other threads for one round does not disturb the next.

use std::{
    ops::Range,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::call::tsc;

const SETTLE: Duration = Duration::from_millis(50);
/// Time between two bursts.
const BURST_EVERY: Duration = Duration::from_millis(1);

/// Plan of the calls.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Number of threads that share the calls.
    pub threads: usize,
    /// Calls in a round, all threads together.
    pub calls: u64,
    /// Number of repetitions.
    pub rounds: usize,
    /// Number of earlier rounds that do not count.
    pub warm_up: usize,
    /// Time limit for the start of a call, from the beginning of its round.
    pub limit: Duration,
}

impl Plan {
    /// Returns the numbers of each thread's calls, out of `calls` in all.
    pub fn shares(&self, calls: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let threads = self.threads as u64;
        (0..threads).map(move |thread| calls * thread / threads..calls * (thread + 1) / threads)
    }
}

/// Runs the rounds. `work` makes a thread's hand, a closure that makes the call of a given number. `round` runs the
/// calls of a round with it and returns the result.
fn rounds<W, T>(plan: Plan, work: &(impl Fn() -> W + Sync), round: impl Fn(&mut W, Range<u64>) -> T + Sync) -> Vec<T>
where
    W: FnMut(u64),
    T: Send,
{
    let gate = Barrier::new(plan.threads + 1);
    let all = plan.warm_up + plan.rounds;
    thread::scope(|scope| {
        let (gate, round) = (&gate, &round);
        let threads: Vec<_> = plan
            .shares(plan.calls)
            .map(|share| {
                scope.spawn(move || {
                    let mut hand = work();
                    let mut found = Vec::with_capacity(plan.rounds);
                    for number in 0..all {
                        gate.wait();
                        let got = round(&mut hand, share.clone());
                        if number >= plan.warm_up {
                            found.push(got);
                        }
                        gate.wait();
                    }
                    found
                })
            })
            .collect();
        for _ in 0..all {
            gate.wait();
            gate.wait();
            thread::sleep(SETTLE);
        }
        threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
    })
}

/// Makes calls as fast as possible, each timed, in ticks.
pub fn timed<W: FnMut(u64)>(plan: Plan, work: impl Fn() -> W + Sync) -> Vec<u64> {
    let found = rounds(plan, &work, |hand, share| {
        // Filled once, so that no page fault falls between two calls; zeros would not be written.
        let mut ticks = vec![u64::MAX; (share.end - share.start) as usize];
        let (begun, mut made) = (Instant::now(), 0);
        let patient = plan.limit < Duration::MAX;
        for number in share {
            if patient && begun.elapsed() > plan.limit {
                break;
            }
            let before = tsc::now();
            hand(number);
            let after = tsc::now();
            ticks[made] = after.saturating_sub(before);
            made += 1;
        }
        ticks.truncate(made);
        ticks
    });
    found.concat()
}

/// Makes bursts of `burst` calls (all threads together) every millisecond for a round of `plan.calls`, each timed, in
/// ticks.
pub fn bursts<W: FnMut(u64)>(plan: Plan, burst: u64, work: impl Fn() -> W + Sync) -> Vec<u64> {
    let found = rounds(plan, &work, |hand, share| {
        let mut ticks = Vec::with_capacity((share.end - share.start) as usize);
        let at_once = (burst / plan.threads as u64).max(1);
        let mut next = Instant::now();
        for number in share.clone() {
            if (number - share.start) % at_once == 0 {
                thread::sleep(next.saturating_duration_since(Instant::now()));
                next += BURST_EVERY;
            }
            let before = tsc::now();
            hand(number);
            let after = tsc::now();
            ticks.push(after.saturating_sub(before));
        }
        ticks
    });
    found.concat()
}

/// Makes calls as fast as possible without reading a clock between them. Returns the processor time of the calling
/// threads for one call, in ns.
pub fn cpu<W: FnMut(u64)>(plan: Plan, work: impl Fn() -> W + Sync) -> f64 {
    let found = rounds(plan, &work, |hand, share| {
        let before = thread_cpu();
        share.for_each(hand);
        thread_cpu().saturating_sub(before).saturating_sub(reading())
    });
    found.iter().sum::<u64>() as f64 / (plan.calls * plan.rounds as u64).max(1) as f64
}

/// Returns the processor time of this thread so far, in ns.
pub fn thread_cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the cost of reading the thread's clock. It is a system call, and with 1000 calls between two readings it
/// would be visible.
fn reading() -> u64 {
    let mut between: [u64; 15] = std::array::from_fn(|_| {
        let before = thread_cpu();
        thread_cpu() - before
    });
    between.sort_unstable();
    between[between.len() / 2]
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        sync::{
            Mutex,
            atomic::{AtomicU64, Ordering},
        },
    };

    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    const PLAN: Plan = Plan { threads: 3, calls: 100, rounds: 2, warm_up: 1, limit: Duration::MAX };

    #[test]
    fn every_number_is_called_once_a_round_and_the_warm_up_does_not_count() {
        let called = Mutex::new(Vec::new());
        let ticks = timed(PLAN, || |number| called.lock().unwrap().push(number));
        let called = called.into_inner().unwrap();
        assert_eq!((ticks.len(), called.len()), (200, 300));
        assert!(called.iter().copied().collect::<BTreeSet<u64>>().into_iter().eq(0..100));
    }

    proptest! {
        #[test]
        fn shares_follow_one_another_and_differ_by_one_at_most(threads in 1usize..50, calls in 0u64..10_000) {
            let shares: Vec<_> = Plan { threads, ..PLAN }.shares(calls).collect();
            prop_assert_eq!(shares.len(), threads);
            prop_assert_eq!((shares[0].start, shares[threads - 1].end), (0, calls));
            prop_assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes = || shares.iter().map(|share| share.end - share.start);
            prop_assert!(sizes().max() <= sizes().min().map(|least| least + 1));
        }
    }

    #[test]
    fn a_round_ends_at_its_limit() {
        let plan = Plan { limit: Duration::ZERO, ..PLAN };
        let ticks = timed(plan, || |_| thread::sleep(Duration::from_millis(1)));
        assert!(ticks.len() < 200);
    }

    #[test]
    fn bursts_and_processor_time_make_the_calls_too() {
        let calls = AtomicU64::new(0);
        let count = || {
            |_| {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        };
        assert_eq!(bursts(PLAN, 20, count).len(), 200);
        assert!(cpu(PLAN, count) >= 0.0);
        assert_eq!(calls.load(Ordering::Relaxed), 600);
    }
}
