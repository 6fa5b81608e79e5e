//! Report about sources: their traffic and their losses.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tampu_bus::SourceState;
use tampu_types::{Incarnation, SourceName, Time};

use super::{latency::Durable, router::TargetReport};
use tampu_archive::{Appended, Health};

/// A collector's state, as `log/status` answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Its name on the bus.
    pub collector: String,
    /// Incarnation of the collector.
    pub incarnation: Incarnation,
    /// Batches that could not be read.
    pub rejected: u64,
    /// Number of rejected batches that were set aside.
    pub rejected_kept: u64,
    /// Streams of writers that are here, and have sent something.
    pub streams: u64,
    /// Batches taken from the bus and not yet durable.
    pub waiting: u64,
    /// Times of batches until they were durable.
    pub durable: Durable,
    /// State of the router's targets.
    pub targets: Vec<TargetReport>,
    /// All sources that have sent something since the collector started.
    pub sources: Vec<SourceReport>,
    /// State of the archive.
    pub archive: Health,
}

/// Traffic of one source since the collector started, over all its incarnations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Name of the source.
    pub source: String,
    /// Its latest life.
    pub incarnation: Incarnation,
    /// State on the bus: appeared, silent, returned, left, died.
    pub state: String,
    /// Number of records kept.
    pub received: u64,
    /// Records that were there already.
    pub duplicates: u64,
    /// Samples reported lost. A sample holds one record or a packet of them.
    pub lost_samples: u64,
    /// Records lost in the source's log rings, or on the way to them, as the source reported in records of its own.
    #[serde(default)]
    pub lost_in_rings: u64,
    /// Streams with an unknown end, because their writer died.
    pub open_ends: u64,
    /// Samples that could not be read.
    pub rejected: u64,
    /// Records it was not allowed to send.
    pub refused: u64,
    /// Records that were over its quota.
    pub over_quota: u64,
    /// Records that a rule of the site keeps out of the archive.
    pub left_out: u64,
    /// Records kept that arrived from a spool; part of `received`.
    pub spooled: u64,
    /// Bytes of the packets from spools, including duplicates.
    pub spooled_bytes: u64,
    /// Reception time of the oldest of them in its spool, ns UTC.
    pub spooled_since: Option<Time>,
    /// Records for which a spool had no room, as spools count them.
    pub lost_in_spool: u64,
    /// Reason of the last refusal.
    pub refusal: Option<String>,
    /// Time of the last packet, ns UTC.
    pub last_seen: Option<Time>,
    /// Records a second, over the last seconds.
    pub rate: u64,
}

const SECOND: i64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Source {
    report: SourceReport,
    /// The second now being counted, its count, and the count of the one before.
    second: i64,
    counted: u64,
    before: u64,
}

impl Source {
    fn turn(&mut self, now: Time) {
        let second = now.0.div_euclid(SECOND);
        if second != self.second {
            self.before = if second == self.second + 1 { self.counted } else { 0 };
            self.counted = 0;
            self.second = second;
        }
    }
}

/// Counters of all sources.
#[derive(Debug, Default)]
pub(crate) struct Status(Mutex<BTreeMap<SourceName, Source>>);

impl Status {
    fn with(&self, name: &SourceName, change: impl FnOnce(&mut Source)) {
        let mut sources: MutexGuard<'_, BTreeMap<SourceName, Source>> = self.0.lock();
        if let Some(source) = sources.get_mut(name) {
            return change(source);
        }
        let source = sources.entry(name.clone()).or_default();
        source.report.source = name.to_string();
        change(source);
    }

    pub(crate) fn took(&self, name: &SourceName, incarnation: Incarnation, appended: &Appended, received: Time) {
        self.with(name, |source| {
            source.turn(received);
            source.counted += appended.records;
            source.report.incarnation = incarnation;
            source.report.received += appended.records;
            source.report.duplicates += appended.duplicates;
            source.report.last_seen = source.report.last_seen.max(Some(received));
        });
    }

    /// Counts an arrival from a spool: `bytes` at this time.
    pub(crate) fn spooled(&self, name: &SourceName, incarnation: Incarnation, appended: &Appended, bytes: u64, since: Time) {
        self.with(name, |source| {
            let report = &mut source.report;
            if report.incarnation.start < incarnation.start {
                report.incarnation = incarnation;
            }
            report.received += appended.records;
            report.duplicates += appended.duplicates;
            report.spooled += appended.records;
            report.spooled_bytes += bytes;
            report.spooled_since = Some(report.spooled_since.map_or(since, |before| before.min(since)));
            report.last_seen = report.last_seen.max(Some(since));
        });
    }

    /// Stores the total number of a source's records that spools have lost.
    pub(crate) fn lost_in_spool(&self, name: &SourceName, records: u64) {
        self.with(name, |source| source.report.lost_in_spool = records);
    }

    pub(crate) fn lost(&self, name: &SourceName, samples: Option<u64>) {
        self.with(name, |source| match samples {
            Some(samples) => source.report.lost_samples += samples,
            None => source.report.open_ends += 1,
        });
    }

    /// Adds the number of lost records that a source reported itself.
    pub(crate) fn lost_in_rings(&self, name: &SourceName, records: u64) {
        self.with(name, |source| source.report.lost_in_rings += records);
    }

    pub(crate) fn rejected(&self, name: &SourceName) {
        self.with(name, |source| source.report.rejected += 1);
    }

    pub(crate) fn refused(&self, name: &SourceName, records: u64, why: &str) {
        self.with(name, |source| {
            source.report.refused += records;
            source.report.refusal = Some(why.to_owned());
        });
    }

    pub(crate) fn over_quota(&self, name: &SourceName, records: u64) {
        self.with(name, |source| source.report.over_quota += records);
    }

    pub(crate) fn left_out(&self, name: &SourceName, records: u64) {
        self.with(name, |source| source.report.left_out += records);
    }

    pub(crate) fn changed(&self, name: &SourceName, incarnation: Incarnation, state: SourceState) {
        let word = match state {
            SourceState::Appeared => "appeared",
            SourceState::Silent => "silent",
            SourceState::Returned => "returned",
            SourceState::Left => "left",
            SourceState::Died => "died",
        };
        self.with(name, |source| {
            source.report.incarnation = incarnation;
            source.report.state = word.to_owned();
        });
    }

    pub(crate) fn sources(&self, now: Time) -> Vec<SourceReport> {
        let mut sources = self.0.lock();
        let report = |source: &mut Source| {
            source.turn(now);
            SourceReport { rate: source.before, ..source.report.clone() }
        };
        sources.values_mut().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_whole_second() {
        let status = Status::default();
        let name = SourceName::new("a").unwrap();
        let appended = Appended { records: 10, ..Appended::default() };
        for tenth in 0..20 {
            status.took(&name, Incarnation::default(), &appended, Time(tenth * SECOND / 10));
        }
        assert_eq!(status.sources(Time(2 * SECOND))[0].rate, 100);
        assert_eq!(status.sources(Time(3 * SECOND))[0].rate, 0);
        assert_eq!(status.sources(Time(3 * SECOND))[0].received, 200);
    }
}
