//! Quality of service: the time that a writer waits for its readers, the data that it keeps for them, and the options
//! of a reader.
//!
//! Every limit has a unit and a declared behaviour when it is reached. A site changes the values in
//! [`crate::topic_settings`].

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tampu_types::Incarnation;

/// Quality of service of a topic's writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qos {
    /// Lead of the writer over the slowest reader that it waits for, in bytes. Beyond it the writer waits. It waits
    /// earlier if the cache is so small that the next batch could evict samples which that reader needs.
    pub credit: usize,
    /// Largest credit, in bytes. Where four samples are longer than the credit, the writer may be ahead by four samples, up to
    /// this and to half the cache. So it does not wait for each long sample alone.
    pub credit_limit: usize,
    /// Longest wait of one write for readers, in total and not per reader. Readers that are still behind then use the
    /// cache.
    pub max_wait: Duration,
    /// Period in which at most `max_wait` is spent waiting for readers with a bounded hold ([`Hold::Bounded`]). A value
    /// equal to `max_wait` means unlimited back-pressure.
    pub wait_period: Duration,
    /// Unacknowledged data kept for readers that are behind, in bytes of memory. Beyond it the oldest data is lost to
    /// them, exactly counted.
    pub cache: usize,
    /// Acknowledged data kept for the history of late readers, in bytes of memory.
    pub keep: usize,
    /// Time that a sample may wait for others in its batch while samples follow closely. The first after a pause is
    /// sent at once.
    pub linger: Duration,
    /// The size at which a batch is sealed, in bytes; the engine's limit or half the cache if that is smaller.
    pub batch: usize,
    /// Shared-memory pool for loans, in bytes; allocated at the first loan.
    pub pool: usize,
    /// Lets readers connect to the writer's process directly instead of through the node.
    pub direct: bool,
    /// Sends the stream before ordinary data where a link is busy ([`crate::engine::Class::Urgent`]). The order within the
    /// stream stays.
    pub urgent: bool,
}

impl Default for Qos {
    fn default() -> Qos {
        Qos {
            credit: 1 << 20,
            credit_limit: 32 << 20,
            max_wait: Duration::from_millis(100),
            wait_period: Duration::from_secs(1),
            cache: 64 << 20,
            keep: 4 << 20,
            linger: Duration::from_micros(200),
            batch: 56 << 10,
            pool: 32 << 20,
            direct: false,
            urgent: false,
        }
    }
}

/// History that a reader wants: samples from before its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// No history: samples from the match on.
    #[default]
    None,
    /// The last samples of each stream, if the writer still has them.
    Last(u64),
    /// All samples that the writer still has.
    All,
}

/// The moment at which a reader acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// As soon as the application asks for the next sample.
    #[default]
    OnTake,
    /// By a call of the application ([`crate::Reader::acknowledge`]), for instance after a commit.
    Manual,
}

/// Time that a reader may hold its writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// Within the writer's `max_wait` of every `wait_period`. This is for viewers, which must never slow an instrument.
    #[default]
    Bounded,
    /// Up to `max_wait` at every write. This is for the collector, whose losses are permanent.
    Full,
    /// As in full, for a substitute of such a reader: a spool. It gets only the streams of its own host, under keys of
    /// their own, so that no other host sends it anything. Each begins where the acknowledgements of full holders end, so
    /// the spool never stores a sample that is stored already.
    Interim,
}

impl Hold {
    /// Reports if an acknowledgement of such a reader means that the sample is on a disk.
    pub fn keeps(self) -> bool {
        self != Hold::Bounded
    }
}

/// Grade of an acknowledgement: how safe a sample is at the readers that keep samples for good ([`Hold::Full`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grade {
    /// It is in the reader's memory. If the reader dies before its commit, the sample comes from the writer's cache again,
    /// as long as the writer has it.
    Received,
    /// The reader has acknowledged it: it is on the reader's disk.
    Kept,
}

/// Quality of service of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderQos {
    /// Requests lost samples from the writer's cache if true. If false, losses are only reported.
    pub reliable: bool,
    /// Samples from before its start that it wants.
    pub history: History,
    /// The moment at which it acknowledges.
    pub ack: Ack,
    /// Time that it may hold its writers.
    pub hold: Hold,
    /// Connects to writers directly if they allow it: lower latency, one more connection each.
    pub direct: bool,
    /// Data that may wait for the application, in bytes. Beyond it arriving batches stay in the writers' caches.
    pub queue: usize,
    /// Position of an earlier incarnation: the next sequence number of each stream, which overrides `history`.
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
