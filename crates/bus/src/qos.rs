//! What a topic's samples are worth: how long a writer may wait for its readers, how much it keeps for them, and what a
//! reader asks for. Every bound has a unit and a declared behaviour when it is reached.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, TopicFilter, TopicName};

/// A writer's side of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qos {
    /// How far the writer may run ahead of the slowest reader it waits for, in bytes. Beyond it, it waits; it waits before that too
    /// if the cache is so small that the next batch could push out what that reader needs.
    pub credit: usize,
    /// The longest one write waits for readers, in total and not per reader. Then those that are behind are left to the cache.
    pub max_wait: Duration,
    /// Of every `wait_period`, at most `max_wait` is spent waiting for readers that may hold the writer only in bounds
    /// ([`Hold::Bounded`]); equal to `max_wait` it means back-pressure without end.
    pub wait_period: Duration,
    /// How much unacknowledged data is kept for readers that are behind, in bytes of memory taken. Beyond it the oldest is
    /// lost to them, exactly counted.
    pub cache: usize,
    /// How much acknowledged data is kept for late readers' history, in bytes of memory taken.
    pub keep: usize,
    /// How long a sample may wait for company once samples follow one another closely. The first after a pause goes at once.
    pub linger: Duration,
    /// The size at which a batch is sealed, in bytes; the engine's limit or half the cache if that is smaller.
    pub batch: usize,
    /// The shared-memory pool for loans, in bytes; taken when the first loan is.
    pub pool: usize,
    /// Whether readers may connect to the writer's process directly instead of through the node.
    pub direct: bool,
}

impl Default for Qos {
    fn default() -> Qos {
        Qos {
            credit: 1 << 20,
            max_wait: Duration::from_millis(100),
            wait_period: Duration::from_secs(1),
            cache: 64 << 20,
            keep: 4 << 20,
            linger: Duration::from_micros(200),
            batch: 56 << 10,
            pool: 32 << 20,
            direct: false,
        }
    }
}

/// How much of what was written before it came a reader wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// Nothing: from the moment it is matched.
    #[default]
    None,
    /// The last samples of each stream, as far as the writer still has them.
    Last(u64),
    /// All the writer still has.
    All,
}

/// When a reader acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// When the application comes back for the next sample.
    #[default]
    OnTake,
    /// When the application says so ([`crate::Reader::acknowledge`]), for instance after a commit.
    Manual,
}

/// How long a reader may hold its writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// Within the writer's `max_wait` of every `wait_period`: viewers, which must never slow an instrument.
    #[default]
    Bounded,
    /// Up to `max_wait` at every write: the collector, whose losses nobody can make good.
    Full,
    /// As in full, by one that stands in for such a reader: a spool. It gets the streams of its own host alone, each from where nobody
    /// who holds in full has acknowledged it; so it never keeps again what is kept already.
    Interim,
}

impl Hold {
    /// Whether it is a reader whose acknowledgement means that the sample is on a disk.
    pub fn keeps(self) -> bool {
        self != Hold::Bounded
    }
}

/// A reader's side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderQos {
    /// Whether losses are healed from the writer's cache. If not, they are only told.
    pub reliable: bool,
    /// What it wants of the time before it came.
    pub history: History,
    /// When it acknowledges.
    pub ack: Ack,
    /// How long it may hold writers.
    pub hold: Hold,
    /// Whether it connects to writers directly where they allow it: lower latency, one more connection each.
    pub direct: bool,
    /// How much may wait for the application, in bytes; beyond it arriving batches are left to the writers' caches.
    pub queue: usize,
    /// Where it stopped in an earlier life: the next sequence number of each stream, which overrides `history`.
    pub resume: Vec<(Incarnation, u32, u64)>,
}

impl Default for ReaderQos {
    fn default() -> ReaderQos {
        ReaderQos {
            reliable: true,
            history: History::None,
            ack: Ack::OnTake,
            hold: Hold::Bounded,
            direct: false,
            queue: 32 << 20,
            resume: Vec::new(),
        }
    }
}

/// Settings for the topics of a pattern; what is not set keeps its default. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QosPatch {
    /// The topics it is for.
    pub topics: String,
    /// See [`Qos::credit`].
    pub credit: Option<usize>,
    /// See [`Qos::max_wait`]; in milliseconds.
    pub max_wait_ms: Option<u64>,
    /// See [`Qos::wait_period`]; in milliseconds.
    pub wait_period_ms: Option<u64>,
    /// See [`Qos::cache`].
    pub cache: Option<usize>,
    /// See [`Qos::keep`].
    pub keep: Option<usize>,
    /// See [`Qos::linger`]; in microseconds.
    pub linger_us: Option<u64>,
    /// See [`Qos::batch`].
    pub batch: Option<usize>,
    /// See [`Qos::pool`].
    pub pool: Option<usize>,
    /// See [`Qos::direct`].
    pub direct: Option<bool>,
}

/// The Qos of every topic, as configured: defaults, then each matching patch in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QosTable {
    patches: Vec<(TopicFilter, QosPatch)>,
}

impl QosTable {
    /// Checks the patterns of the patches.
    pub fn new(patches: Vec<QosPatch>) -> Result<QosTable, tampu_types::name::BadTopic> {
        let filtered = patches.into_iter().map(|patch| Ok((TopicFilter::new(patch.topics.clone())?, patch)));
        Ok(QosTable { patches: filtered.collect::<Result<_, _>>()? })
    }

    /// The Qos of a topic.
    pub fn of(&self, topic: &TopicName) -> Qos {
        self.over(Qos::default(), topic)
    }

    /// The Qos of a topic that has defaults of its own.
    pub fn over(&self, mut qos: Qos, topic: &TopicName) -> Qos {
        for (_, patch) in self.patches.iter().filter(|(filter, _)| filter.matches(topic)) {
            patch.apply(&mut qos);
        }
        qos
    }
}

impl QosPatch {
    fn apply(&self, qos: &mut Qos) {
        fn set<T: Copy>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut qos.credit, self.credit);
        set(&mut qos.max_wait, self.max_wait_ms.map(Duration::from_millis));
        set(&mut qos.wait_period, self.wait_period_ms.map(Duration::from_millis));
        set(&mut qos.cache, self.cache);
        set(&mut qos.keep, self.keep);
        set(&mut qos.linger, self.linger_us.map(Duration::from_micros));
        set(&mut qos.batch, self.batch);
        set(&mut qos.pool, self.pool);
        set(&mut qos.direct, self.direct);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_patches_override_earlier_ones_and_leave_other_topics_alone() {
        let patch = |topics: &str, credit, keep| QosPatch { topics: topics.to_owned(), credit, keep, ..QosPatch::default() };
        let table = QosTable::new(vec![patch("log/*", Some(1), Some(2)), patch("log/error", Some(3), None)]).unwrap();
        let error = table.of(&TopicName::new("log/Error").unwrap());
        assert_eq!((error.credit, error.keep), (3, 2));
        assert_eq!(table.of(&TopicName::new("event/x").unwrap()), Qos::default());
        assert!(QosTable::new(vec![patch("log//x", None, None)]).is_err());
    }
}
