//! Quotas: limits on one source's bytes and records a second, and on its streams.
//!
//! Quotas stop accidents (a process in a loop that logs errors), not work. A source's packets are counted in spans of
//! [`SPAN`] seconds by the time at which their writer *sent* them. Packets that waited in a writer's cache while no
//! collector ran arrive all at once; they do not exceed the quota for that reason. A packet that begins within the
//! quota is kept whole, and later packets of its span are dropped. So the oldest records are kept, and a span holds at
//! most one packet more than its quota.
//!
//! The writer chooses the time of sending. So a second count goes by the collector's clock. In any period a source has at
//! most its quota of that period kept, and a [`BACKLOG`]. The backlog is more than a writer's cache and rings hold.
//! Packets from a node's spool are exempt, because a spool has limits of its own.
//!
//! Urgent records (from Error on, which a logger sends without waiting) have a second share of the same size. Records
//! published for attached readers alone count like all others, where they are kept. Records from files have no quota,
//! because their importer waits for the collector.
//!
//! Rejected: a bucket by the collector's clock alone, because it would drop a backlog. Rejected: cutting packets. Each
//! would have to be encoded again, for a precision of less than one packet.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, Level, SourceName, Time, TopicName};

use tampu_types::glob;

/// Length of a counted span, in seconds.
const SPAN: u64 = 10;

/// Longest backlog that a writer may send at once, in seconds of its quota, and the most bytes of it.
const BACKLOG: u64 = 600;
const BACKLOG_BYTES: u64 = 1 << 30;

/// Number of spans remembered for a source: an hour. Older packets find a new span.
const SPANS: usize = 360;

/// Limits of one source; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of packets a second.
    pub bytes_per_s: u64,
    /// Records a second.
    pub records_per_s: u64,
    /// Streams at a time, over all its living incarnations.
    pub streams: u64,
}

/// Limits of all sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Bytes of packets a second.
    pub bytes_per_s: u64,
    /// Records a second.
    pub records_per_s: u64,
    /// Streams at a time.
    pub streams: u64,
    /// Sources with other quotas; later ones override earlier ones.
    pub source: Vec<QuotaOf>,
}

/// The quota of some sources, where it differs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaOf {
    /// A pattern of source names, without case; `*` and `?` are wildcards.
    pub names: String,
    /// Bytes of packets a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<u64>,
    /// Records a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records_per_s: Option<u64>,
    /// Streams at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u64>,
}

impl Default for Quotas {
    /// More than any one process has good reason to log, and less than fills a disk in an hour.
    fn default() -> Quotas {
        Quotas { bytes_per_s: 50_000_000, records_per_s: 200_000, streams: 1000, source: Vec::new() }
    }
}

impl Quotas {
    /// Returns quotas without any limit.
    pub fn none() -> Quotas {
        Quotas { bytes_per_s: 0, records_per_s: 0, streams: 0, source: Vec::new() }
    }

    /// Returns the limits of this source.
    pub fn of(&self, source: &SourceName) -> Quota {
        let mut quota = Quota { bytes_per_s: self.bytes_per_s, records_per_s: self.records_per_s, streams: self.streams };
        for of in self.source.iter().filter(|of| glob::matches_ignoring_case(&of.names, source.as_str())) {
            quota.bytes_per_s = of.bytes_per_s.unwrap_or(quota.bytes_per_s);
            quota.records_per_s = of.records_per_s.unwrap_or(quota.records_per_s);
            quota.streams = of.streams.unwrap_or(quota.streams);
        }
        quota
    }
}

/// Share of a source from which a packet is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    Usual,
    Urgent,
}

impl Share {
    /// Returns the share of a topic, of which there is one a level; `None` without a quota.
    fn of(topic: &TopicName) -> Option<Share> {
        let level = topic.as_str().strip_prefix("log/").or_else(|| topic.as_str().strip_prefix("log-attached/"))?;
        let is_urgent = level.parse::<Level>().is_ok_and(|level| level >= Level::Error);
        Some(if is_urgent { Share::Urgent } else { Share::Usual })
    }
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Bytes(u64),
    Records(u64),
    Streams(u64),
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Over::Bytes(limit) => write!(f, "over its quota of {limit} bytes/s"),
            Over::Records(limit) => write!(f, "over its quota of {limit} records/s"),
            Over::Streams(limit) => write!(f, "over its quota of {limit} streams"),
        }
    }
}

/// A packet that asks to be kept.
pub(super) struct Packet<'a> {
    pub(super) source: &'a SourceName,
    pub(super) incarnation: Incarnation,
    pub(super) stream: u32,
    pub(super) topic: &'a TopicName,
    pub(super) sent: Time,
    /// Time of reception by the collector's clock; `None` for a packet that a spool has kept.
    pub(super) received: Option<Time>,
}

impl Packet<'_> {
    fn span(&self, share: Share) -> (i64, Share) {
        (self.sent.0.div_euclid(SPAN as i64 * 1_000_000_000), share)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    bytes: u64,
    records: u64,
}

/// Amount that a source may still send, by the collector's clock. It grows with time, up to a backlog.
#[derive(Debug, Clone, Copy)]
struct Budget {
    at: Time,
    bytes: f64,
    records: f64,
}

impl Budget {
    /// The largest budget of a quota.
    fn full(quota: &Quota, at: Time) -> Budget {
        let bytes = quota.bytes_per_s.saturating_mul(BACKLOG).min(BACKLOG_BYTES).max(quota.bytes_per_s.saturating_mul(SPAN));
        Budget { at, bytes: bytes as f64, records: quota.records_per_s as f64 * BACKLOG as f64 }
    }

    /// Lets the budget grow until this time. A clock that steps back leaves it as it is.
    fn grow(&mut self, quota: &Quota, now: Time) {
        let seconds = now.0.saturating_sub(self.at.0).max(0) as f64 / 1e9;
        let full = Budget::full(quota, now);
        self.bytes = (self.bytes + seconds * quota.bytes_per_s as f64).min(full.bytes);
        self.records = (self.records + seconds * quota.records_per_s as f64).min(full.records);
        self.at = now;
    }
}

struct Meter {
    source: SourceName,
    quota: Quota,
    spans: BTreeMap<(i64, Share), Used>,
    budgets: BTreeMap<Share, Budget>,
    streams: HashSet<(Incarnation, u32)>,
}

impl Meter {
    fn admit(&mut self, packet: &Packet<'_>, share: Share) -> Result<(), Over> {
        let Quota { bytes_per_s, records_per_s, streams } = self.quota;
        let stream = (packet.incarnation, packet.stream);
        if streams > 0 && self.streams.len() as u64 >= streams && !self.streams.contains(&stream) {
            return Err(Over::Streams(streams));
        }
        self.streams.insert(stream);
        let used = self.spans.get(&packet.span(share)).copied().unwrap_or_default();
        let is_over = |used: u64, limit: u64| limit > 0 && used >= limit.saturating_mul(SPAN);
        let budget = self.budget(packet, share);
        let is_spent = |left: fn(&Budget) -> f64, limit: u64| limit > 0 && budget.is_some_and(|budget| left(&budget) <= 0.0);
        if is_over(used.records, records_per_s) || is_spent(|budget| budget.records, records_per_s) {
            return Err(Over::Records(records_per_s));
        }
        if is_over(used.bytes, bytes_per_s) || is_spent(|budget| budget.bytes, bytes_per_s) {
            return Err(Over::Bytes(bytes_per_s));
        }
        Ok(())
    }

    /// Returns the records and bytes that packets like this one may have before a limit is reached.
    fn room(&mut self, packet: &Packet<'_>, share: Share) -> (u64, u64) {
        let Quota { bytes_per_s, records_per_s, .. } = self.quota;
        let used = self.spans.get(&packet.span(share)).copied().unwrap_or_default();
        let budget = self.budget(packet, share);
        let left = |used: u64, limit: u64, budget: Option<f64>| match limit {
            0 => u64::MAX,
            limit => limit.saturating_mul(SPAN).saturating_sub(used).min(budget.map_or(u64::MAX, |left| left.max(0.0) as u64)),
        };
        let records = left(used.records, records_per_s, budget.map(|budget| budget.records));
        (records, left(used.bytes, bytes_per_s, budget.map(|budget| budget.bytes)))
    }

    /// The budget of a packet's share at its reception.
    fn budget(&mut self, packet: &Packet<'_>, share: Share) -> Option<Budget> {
        let received = packet.received?;
        let quota = self.quota;
        let budget = self.budgets.entry(share).or_insert_with(|| Budget::full(&quota, received));
        budget.grow(&quota, received);
        Some(*budget)
    }

    fn charge(&mut self, packet: &Packet<'_>, share: Share, records: u64, bytes: u64) {
        let used = self.spans.entry(packet.span(share)).or_default();
        used.records += records;
        used.bytes += bytes;
        if let (Some(_), Some(budget)) = (packet.received, self.budgets.get_mut(&share)) {
            budget.bytes -= bytes as f64;
            budget.records -= records as f64;
        }
        if self.spans.len() > 2 * SPANS {
            self.spans.pop_first();
        }
    }
}

/// Consumption of every source.
pub(super) struct Meters {
    quotas: Quotas,
    // Names are compared without case, as everywhere; a source that changes its case keeps one quota.
    of: HashMap<String, Meter>,
}

impl Meters {
    pub(super) fn new(quotas: Quotas) -> Meters {
        Meters { quotas, of: HashMap::new() }
    }

    /// Changes the quotas of all sources. What they have sent stays counted.
    pub(super) fn set(&mut self, quotas: Quotas) {
        for meter in self.of.values_mut() {
            meter.quota = quotas.of(&meter.source);
        }
        self.quotas = quotas;
    }

    /// Counts a packet, or returns the limit that it exceeds.
    pub(super) fn admit(&mut self, packet: &Packet<'_>) -> Result<(), Over> {
        match Share::of(packet.topic) {
            Some(share) => self.meter(packet.source).admit(packet, share),
            None => Ok(()),
        }
    }

    /// Returns the records and bytes that packets like this one may have, all together, so that each of them is admitted.
    pub(super) fn room(&mut self, packet: &Packet<'_>) -> (u64, u64) {
        match Share::of(packet.topic) {
            Some(share) => self.meter(packet.source).room(packet, share),
            None => (u64::MAX, u64::MAX),
        }
    }

    /// Counts a packet that was kept.
    pub(super) fn charge(&mut self, packet: &Packet<'_>, records: u64, bytes: u64) {
        if let Some(share) = Share::of(packet.topic) {
            self.meter(packet.source).charge(packet, share, records, bytes);
        }
    }

    /// Ends an incarnation and its streams. The sent records stay counted: a restart does not reset them.
    pub(super) fn ended(&mut self, source: &SourceName, incarnation: Incarnation) {
        if let Some(meter) = self.of.get_mut(&source.as_str().to_lowercase()) {
            meter.streams.retain(|(life, _)| *life != incarnation);
        }
    }

    fn meter(&mut self, source: &SourceName) -> &mut Meter {
        let quotas = &self.quotas;
        self.of.entry(source.as_str().to_lowercase()).or_insert_with(|| Meter {
            source: source.clone(),
            quota: quotas.of(source),
            spans: BTreeMap::new(),
            budgets: BTreeMap::new(),
            streams: HashSet::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn name(text: &str) -> SourceName {
        SourceName::new(text).unwrap()
    }

    fn topic(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    fn life(start: u64) -> Incarnation {
        Incarnation { boot: 1, pid: 1, start }
    }

    fn meters(text: &str) -> Meters {
        Meters::new(quotas(text))
    }

    /// Reads quotas from JSON, as in the configuration.
    fn quotas(text: &str) -> Quotas {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn later_patterns_override_earlier_ones_and_the_default() {
        let quotas = quotas(
            r#"{"records_per_s": 7, "source": [{"names": "control/*", "streams": 3}, {"names": "CONTROL/DV01", "records_per_s": 0}]}"#,
        );
        assert_eq!(quotas.of(&name("Control/DV01")), Quota { records_per_s: 0, streams: 3, bytes_per_s: 50_000_000 });
        assert_eq!(quotas.of(&name("CORR")), Quota { records_per_s: 7, streams: 1000, bytes_per_s: 50_000_000 });
    }

    #[test]
    fn a_flood_does_not_silence_alarms_neighbours_or_files() {
        let mut meters = meters(r#"{"records_per_s": 1}"#);
        let (looper, other) = (name("looper"), name("other"));
        let ask = |meters: &mut Meters, source: &SourceName, level: &str, second: i64| {
            let topic = topic(level);
            let packet =
                Packet { source, incarnation: life(1), stream: 0, topic: &topic, sent: Time(second * SECOND), received: None };
            let admitted = meters.admit(&packet);
            if admitted.is_ok() {
                meters.charge(&packet, 10, 100);
            }
            admitted
        };
        assert_eq!(ask(&mut meters, &looper, "log/debug", 100), Ok(()));
        assert_eq!(ask(&mut meters, &looper, "log/debug", 109), Err(Over::Records(1)));
        assert_eq!(ask(&mut meters, &name("LOOPER"), "log/warning", 109), Err(Over::Records(1)));
        assert_eq!(ask(&mut meters, &looper, "log/error", 109), Ok(()));
        assert_eq!(ask(&mut meters, &looper, "log/emergency", 109), Err(Over::Records(1)), "urgent records share one share");
        assert_eq!(ask(&mut meters, &other, "log/debug", 109), Ok(()));
        assert_eq!(ask(&mut meters, &looper, "log-import", 109), Ok(()));
        assert_eq!(
            ask(&mut meters, &looper, "log-attached/trace", 109),
            Err(Over::Records(1)),
            "that somebody looks is no excuse"
        );
        assert_eq!(ask(&mut meters, &looper, "log/debug", 110), Ok(()), "the next span");
        // Late records count at the time when they were sent.
        assert_eq!(ask(&mut meters, &looper, "log/debug", 50), Ok(()));
        assert_eq!(ask(&mut meters, &looper, "log/debug", 50), Err(Over::Records(1)));
    }

    #[test]
    fn a_writer_that_dates_its_packets_over_days_has_no_more_kept_than_its_quota_and_a_backlog() {
        let mut meters = meters(r#"{"records_per_s": 10}"#);
        let (source, info) = (name("liar"), topic("log/info"));
        let mut send = |sent: i64, received: Option<i64>| {
            let (sent, received) = (Time(sent * SECOND), received.map(|second| Time(second * SECOND)));
            let packet = Packet { source: &source, incarnation: life(1), stream: 0, topic: &info, sent, received };
            let admitted = meters.admit(&packet);
            if admitted.is_ok() {
                meters.charge(&packet, 100, 0);
            }
            admitted
        };
        // Each packet fills a span of its own, and the collector's clock stands still.
        let kept = (0..10_000).filter(|span| send(span * 10, Some(1_000_000)).is_ok()).count();
        assert_eq!(kept, 60, "the backlog: 600 s of 10 records");
        assert_eq!(send(500_000, Some(1_000_000)), Err(Over::Records(10)));
        // Ten seconds later ten seconds' worth is kept, and a clock that steps back gives nothing.
        assert_eq!(send(600_000, Some(1_000_010)), Ok(()));
        assert_eq!(send(700_000, Some(1_000_010)), Err(Over::Records(10)));
        assert_eq!(send(800_000, Some(900_000)), Err(Over::Records(10)));
        // What a spool has kept is counted by the time of sending alone.
        assert_eq!(send(900_000, None), Ok(()));
    }

    #[test]
    fn changed_quotas_hold_for_known_sources_and_what_was_sent_stays_counted() {
        let mut meters = meters(r#"{"records_per_s": 1}"#);
        let (source, info) = (name("CORR/1"), topic("log/info"));
        let packet = Packet { source: &source, incarnation: life(1), stream: 0, topic: &info, sent: Time(0), received: None };
        assert_eq!(meters.admit(&packet), Ok(()));
        meters.charge(&packet, 10, 100);
        assert_eq!(meters.admit(&packet), Err(Over::Records(1)));
        meters.set(quotas(r#"{"records_per_s": 1, "source": [{"names": "corr/*", "records_per_s": 2}]}"#));
        assert_eq!(meters.admit(&packet), Ok(()));
        meters.charge(&packet, 10, 100);
        assert_eq!(meters.admit(&packet), Err(Over::Records(2)));
        meters.set(quotas(r#"{"records_per_s": 0}"#));
        assert_eq!(meters.admit(&packet), Ok(()));
    }

    #[test]
    fn streams_are_counted_while_their_writer_lives() {
        let mut meters = meters(r#"{"streams": 2}"#);
        let (source, info) = (name("maker"), topic("log/info"));
        let packet = |start, stream| Packet {
            source: &source,
            incarnation: life(start),
            stream,
            topic: &info,
            sent: Time(0),
            received: None,
        };
        assert_eq!(meters.admit(&packet(1, 0)), Ok(()));
        assert_eq!(meters.admit(&packet(1, 1)), Ok(()));
        assert_eq!(meters.admit(&packet(1, 2)), Err(Over::Streams(2)));
        assert_eq!(meters.admit(&packet(1, 0)), Ok(()), "what is there stays");
        meters.ended(&source, life(1));
        assert_eq!(meters.admit(&packet(2, 0)), Ok(()));
    }

    proptest! {
        #[test]
        fn a_span_holds_its_quota_and_at_most_one_packet_more(
            packets in proptest::collection::vec((0i64..40, 1u64..50, 1u64..500), 1..200),
            records_per_s in 0u64..20, bytes_per_s in 0u64..200,
        ) {
            let mut meters = Meters::new(Quotas { records_per_s, bytes_per_s, ..Quotas::none() });
            let (source, info) = (name("s"), topic("log/info"));
            let mut kept: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
            for (second, records, bytes) in packets {
                let packet = Packet { source: &source, incarnation: life(1), stream: 0, topic: &info, sent: Time(second * SECOND), received: None };
                let (had_records, had_bytes) = kept.entry(second / 10).or_default();
                let room = (records_per_s == 0 || *had_records < records_per_s * 10) && (bytes_per_s == 0 || *had_bytes < bytes_per_s * 10);
                let left = meters.room(&packet);
                prop_assert_eq!(meters.admit(&packet).is_ok(), room);
                prop_assert_eq!(left.0 > 0 && left.1 > 0, room);
                if room {
                    prop_assert!(records_per_s == 0 || left.0 == records_per_s * 10 - *had_records);
                    prop_assert!(bytes_per_s == 0 || left.1 == bytes_per_s * 10 - *had_bytes);
                    meters.charge(&packet, records, bytes);
                    *had_records += records;
                    *had_bytes += bytes;
                }
            }
        }
    }
}
