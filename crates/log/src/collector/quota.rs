//! What one source may send to be kept: bytes and records a second, and streams.
//!
//! Quotas stop accidents (a process in a loop that logs errors), not work. A source's packets are counted in spans of
//! [`SPAN`] seconds by the time their writer *sent* them: what waited in a writer's cache while no collector ran comes all at
//! once and is not held against it. A packet that begins within the quota is kept whole, later ones of its span are not; so the
//! oldest records are kept, and a span holds at most one packet more than its quota.
//!
//! Urgent records (from Error on, which is when a logger does not wait to send) have the same share once more, for themselves.
//! What is published for attached readers alone counts like the rest, where it is kept at all. Records from files have no quota: whoever imports them waits for the collector anyway.
//!
//! Rejected: a bucket that fills by the collector's clock (it would drop a backlog); cutting packets (they would have to be
//! encoded again to be exact by less than one of them).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, Level, SourceName, Time, TopicName};

use crate::query::is_named;

/// How many seconds are counted together.
const SPAN: u64 = 10;

/// How many spans of a source are remembered: an hour. Older packets find a new span.
const SPANS: usize = 360;

/// What one source may send; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Bytes of packets a second.
    pub bytes_per_s: u64,
    /// Records a second.
    pub records_per_s: u64,
    /// Streams at a time, over all its living incarnations.
    pub streams: u64,
}

/// What all sources may send.
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
    /// A pattern of their names, without case; `*` and `?` stand for any characters.
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
    /// No limits.
    pub fn none() -> Quotas {
        Quotas { bytes_per_s: 0, records_per_s: 0, streams: 0, source: Vec::new() }
    }

    /// What this source may send.
    pub fn of(&self, source: &SourceName) -> Quota {
        let mut quota = Quota { bytes_per_s: self.bytes_per_s, records_per_s: self.records_per_s, streams: self.streams };
        for of in self.source.iter().filter(|of| is_named(&of.names, source.as_str())) {
            quota.bytes_per_s = of.bytes_per_s.unwrap_or(quota.bytes_per_s);
            quota.records_per_s = of.records_per_s.unwrap_or(quota.records_per_s);
            quota.streams = of.streams.unwrap_or(quota.streams);
        }
        quota
    }
}

/// Which of a source's shares a packet is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    Usual,
    Urgent,
}

impl Share {
    /// By the topic, of which there is one a level; `None` where there is no quota.
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

struct Meter {
    quota: Quota,
    spans: BTreeMap<(i64, Share), Used>,
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
        if is_over(used.records, records_per_s) {
            return Err(Over::Records(records_per_s));
        }
        if is_over(used.bytes, bytes_per_s) { Err(Over::Bytes(bytes_per_s)) } else { Ok(()) }
    }

    fn charge(&mut self, packet: &Packet<'_>, share: Share, records: u64, bytes: u64) {
        let used = self.spans.entry(packet.span(share)).or_default();
        used.records += records;
        used.bytes += bytes;
        if self.spans.len() > 2 * SPANS {
            self.spans.pop_first();
        }
    }
}

/// What every source has sent.
pub(super) struct Meters {
    quotas: Quotas,
    // Names are compared without case, as everywhere; a source that changes it has one quota.
    of: HashMap<String, Meter>,
}

impl Meters {
    pub(super) fn new(quotas: Quotas) -> Meters {
        Meters { quotas, of: HashMap::new() }
    }

    /// Whether a packet may still be kept.
    pub(super) fn admit(&mut self, packet: &Packet<'_>) -> Result<(), Over> {
        match Share::of(packet.topic) {
            Some(share) => self.meter(packet.source).admit(packet, share),
            None => Ok(()),
        }
    }

    /// Counts a packet that was kept.
    pub(super) fn charge(&mut self, packet: &Packet<'_>, records: u64, bytes: u64) {
        if let Some(share) = Share::of(packet.topic) {
            self.meter(packet.source).charge(packet, share, records, bytes);
        }
    }

    /// A life has ended, and its streams with it. What was sent stays counted: a restart does not reset it.
    pub(super) fn ended(&mut self, source: &SourceName, incarnation: Incarnation) {
        if let Some(meter) = self.of.get_mut(&source.as_str().to_lowercase()) {
            meter.streams.retain(|(life, _)| *life != incarnation);
        }
    }

    fn meter(&mut self, source: &SourceName) -> &mut Meter {
        let quotas = &self.quotas;
        self.of.entry(source.as_str().to_lowercase()).or_insert_with(|| Meter {
            quota: quotas.of(source),
            spans: BTreeMap::new(),
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

    /// As the configuration says it, in JSON.
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
            let packet = Packet { source, incarnation: life(1), stream: 0, topic: &topic, sent: Time(second * SECOND) };
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
        // What was sent long ago and comes now is measured by when it was sent.
        assert_eq!(ask(&mut meters, &looper, "log/debug", 50), Ok(()));
        assert_eq!(ask(&mut meters, &looper, "log/debug", 50), Err(Over::Records(1)));
    }

    #[test]
    fn streams_are_counted_while_their_writer_lives() {
        let mut meters = meters(r#"{"streams": 2}"#);
        let (source, info) = (name("maker"), topic("log/info"));
        let packet = |start, stream| Packet { source: &source, incarnation: life(start), stream, topic: &info, sent: Time(0) };
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
                let packet = Packet { source: &source, incarnation: life(1), stream: 0, topic: &info, sent: Time(second * SECOND) };
                let (had_records, had_bytes) = kept.entry(second / 10).or_default();
                let room = (records_per_s == 0 || *had_records < records_per_s * 10) && (bytes_per_s == 0 || *had_bytes < bytes_per_s * 10);
                prop_assert_eq!(meters.admit(&packet).is_ok(), room);
                if room {
                    meters.charge(&packet, records, bytes);
                    *had_records += records;
                    *had_bytes += bytes;
                }
            }
        }
    }
}
