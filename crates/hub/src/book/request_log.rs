//! The log and the counts of the logbook's requests: who asked for what, how long it took, and which searches were slow.
//!
//! Records go to two loggers, so that an operator can route or silence each: `access` has a record for each request, and
//! `slow-search` one for each search that took long. No record has the query of an address, a header or a body. What was
//! searched is known from the search itself.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tampu_log::{Logger, info, warning};
use tampu_logbook::search::cost::SearchCost;

use crate::http::exchange::{Exchange, ExchangeObserver};

/// The name of the logger for requests.
const ACCESS: &str = "access";
/// The name of the logger for slow searches.
const SLOW: &str = "slow-search";
/// Bounds of the histograms, in microseconds.
pub const BOUNDS_US: [u64; 15] = [
    500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
    30_000_000,
];
/// The status of a request whose client left before the answer, in records and counts.
const LEFT: u16 = 499;

/// A histogram of times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeHistogram {
    /// The number of times up to each bound, and above the last one.
    pub counts: [u64; BOUNDS_US.len() + 1],
    /// The sum in microseconds.
    pub sum_us: u64,
}

impl TimeHistogram {
    /// Makes the histogram of some times.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> TimeHistogram {
        let mut histogram = TimeHistogram::default();
        times.into_iter().for_each(|time| histogram.add(time));
        histogram
    }

    fn add(&mut self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum_us = self.sum_us.saturating_add(us);
    }
}

/// The counts of requests since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests by the kind of their work and their status.
    pub requests: BTreeMap<(&'static str, u16), u64>,
    /// The times until the answers began, by the kind of work.
    pub times: BTreeMap<&'static str, TimeHistogram>,
    /// Bytes of bodies of answers.
    pub bytes: u64,
    /// Searches, with those that pages make for themselves.
    pub searches: u64,
    /// Rows that searches looked at.
    pub search_rows: u64,
    /// Searches that were slow.
    pub slow_searches: u64,
}

/// The observer of the logbook's requests.
pub struct RequestLog {
    access: Option<Logger>,
    slow: Option<(Duration, Logger)>,
    counts: Mutex<RequestCounts>,
}

impl RequestLog {
    /// Logs requests if `access` is true, and searches that take at least `slow`.
    pub fn new(logger: &Logger, access: bool, slow: Option<Duration>) -> RequestLog {
        let access = access.then(|| logger.named(ACCESS));
        RequestLog { access, slow: slow.map(|least| (least, logger.named(SLOW))), counts: Mutex::default() }
    }

    /// Returns the counts.
    pub fn counts(&self) -> RequestCounts {
        self.counts.lock().clone()
    }

    fn count(&self, exchange: &Exchange, slow: u64) {
        let kind = exchange.kind.name();
        let mut counts = self.counts.lock();
        *counts.requests.entry((kind, status(exchange))).or_default() += 1;
        counts.times.entry(kind).or_default().add(exchange.answered.unwrap_or(exchange.took));
        counts.bytes += exchange.bytes;
        counts.searches += exchange.searches.searches;
        counts.search_rows += exchange.searches.rows;
        counts.slow_searches += slow;
    }
}

fn status(exchange: &Exchange) -> u16 {
    exchange.status.map_or(LEFT, |status| status.as_u16())
}

/// Returns the name of the caller in records.
fn caller(exchange: &Exchange) -> &str {
    exchange.who.as_deref().unwrap_or("unknown")
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the books of a search, for a record.
fn books(cost: &SearchCost) -> String {
    if cost.books.is_empty() { "all logbooks".to_owned() } else { cost.books.join(", ") }
}

impl ExchangeObserver for RequestLog {
    fn done(&self, exchange: &Exchange) {
        let least = self.slow.as_ref().map_or(Duration::MAX, |(least, _)| *least);
        let slow = exchange.searches.slowest.iter().filter(|cost| cost.time >= least);
        let mut count = 0;
        let who = caller(exchange);
        for cost in slow {
            count += 1;
            let Some((_, logger)) = &self.slow else { continue };
            let (from, books, end) =
                (exchange.from.to_string(), books(cost), if cost.stopped.is_some() { ", and was stopped" } else { "" });
            warning!(logger, "a search of {who} took {:.0} ms and looked at {} rows{end}: {}", millis(cost.time), cost.rows, cost.query;
                who = who, from = from.as_str(), query = cost.query.as_str(), books = books.as_str(), ms = millis(cost.time),
                rows = cost.rows, hits = cost.hits as u64, path = exchange.path.as_str());
        }
        self.count(exchange, count);
        let Some(logger) = &self.access else { return };
        let (from, method, status) = (exchange.from.to_string(), exchange.method.as_str(), status(exchange));
        let (path, ms, kind) = (exchange.path.as_str(), millis(exchange.took), exchange.kind.name());
        let search = exchange.searches.slowest.iter().max_by_key(|cost| cost.time).map_or("", |cost| cost.query.as_str());
        let trace = exchange.trace.as_deref().unwrap_or_default();
        info!(logger, "{method} {path} {status}, {} bytes in {ms:.3} ms, by {who} from {from}", exchange.bytes;
            who = who, from = from.as_str(), method = method, path = path, status = u64::from(status), bytes = exchange.bytes, ms = ms,
            kind = kind, search = search, trace = trace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_up_to_their_bound() {
        let histogram = TimeHistogram::of([1, 500, 501, 29_999_999, 60_000_000].map(Duration::from_micros));
        assert_eq!((histogram.counts[0], histogram.counts[1], histogram.counts[14], histogram.counts[15]), (2, 1, 1, 1));
        assert_eq!(histogram.sum_us, 90_001_001);
    }
}
