//! Threads whose calls return when the collector has their record, and the time of each call.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tampu_log::{Grade, Logger, info};

use crate::{
    commands::perf::{process::PATIENCE, verify::Texts},
    interrupt::Interrupt,
};

/// The calls of all threads.
#[derive(Default)]
pub struct Calls {
    /// Their times, in nanoseconds.
    times: Vec<u64>,
    unconfirmed: u64,
}

impl Calls {
    /// Returns the number of calls.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Reports how long they took.
    pub fn report(mut self) -> Value {
        self.times.sort_unstable();
        let at = |share: f64| {
            let index = (self.times.len() as f64 * share) as usize;
            self.times.get(index.min(self.times.len().saturating_sub(1))).map(|nanos| *nanos as f64 / 1e3)
        };
        json!({
            "count": self.times.len(),
            "unconfirmed": self.unconfirmed,
            "p50_us": at(0.5),
            "p99_us": at(0.99),
            "max_us": at(1.0),
        })
    }
}

/// The calls that are asked for.
#[derive(Clone, Copy)]
pub struct Plan {
    pub grade: Grade,
    pub callers: u16,
    pub size: usize,
    pub seconds: f64,
}

/// Makes calls until the time is over. Records of several threads are numbered thread by thread, so only one thread's can be
/// verified by clients.
pub fn log(logger: &Logger, plan: Plan, interrupt: &Interrupt) -> Calls {
    let (begun, length) = (Instant::now(), Duration::from_secs_f64(plan.seconds));
    let call = move || {
        let texts = Texts::for_record_size(plan.size);
        let sure = logger.acknowledged_as(plan.grade, PATIENCE);
        let mut times = Vec::new();
        while begun.elapsed() < length && !interrupt.asked() {
            let number = times.len() as u64;
            let called = Instant::now();
            info!(sure, "{number:016} {}", texts.of(number));
            times.push(called.elapsed().as_nanos() as u64);
        }
        Calls { times, unconfirmed: sure.unconfirmed() }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.callers).map(|_| scope.spawn(call)).collect();
        threads.into_iter().fold(Calls::default(), |mut all, thread| {
            let mut calls = thread.join().unwrap_or_default();
            all.times.append(&mut calls.times);
            all.unconfirmed += calls.unconfirmed;
            all
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_calls_are_reported_in_microseconds() {
        let calls = Calls { times: (1..=1000).rev().map(|nanos| nanos * 1000).collect(), unconfirmed: 2 };
        let report = calls.report();
        assert_eq!((&report["count"], &report["unconfirmed"]), (&json!(1000), &json!(2)));
        assert_eq!((&report["p50_us"], &report["p99_us"], &report["max_us"]), (&json!(501.0), &json!(991.0), &json!(1000.0)));
        assert_eq!(Calls::default().report()["p50_us"], Value::Null);
    }
}
