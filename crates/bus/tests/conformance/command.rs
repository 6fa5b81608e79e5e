//! Commands of a case to a process, and the replies: plain values, so that the process can be this one or a child.

use serde::{Deserialize, Serialize};
use tampu_bus::{QosPatch, ReaderState};

/// Something a process shall do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Command {
    /// Opens a writer; the patch comes on top of what is configured.
    OpenWriter { topic: String, partition: Vec<String>, patch: QosPatch },
    /// Writes samples that say their own number.
    Write { writer: usize, count: u64, size: usize, how: How },
    /// Asks for a receipt.
    Flush { writer: usize, timeout_ms: u64 },
    /// Asks for the readers, the counters, and the calls of `on_delivery`.
    Look { writer: usize },
    /// Drops the writer.
    CloseWriter { writer: usize },
    /// Opens a reader.
    OpenReader(Wish),
    /// Lets the application take samples otherwise.
    Pace { reader: usize, pace: Pace },
    /// The events that the application got so far.
    Log { reader: usize },
    /// Acknowledges everything before `next` of the streams of a topic.
    Acknowledge { reader: usize, topic: String, next: u64 },
    /// Drops the reader.
    CloseReader { reader: usize },
    /// Answers a service with these parts, each followed by what was asked.
    Answer { service: String, parts: Vec<String> },
    /// Asks a service.
    Ask { service: String, question: String, timeout_ms: u64 },
    /// Asks for the processes on the bus, and those that came and went.
    Sources,
    /// Asks for the quality of service of a topic.
    Configured { topic: String },
    /// Leaves the bus in order.
    Leave,
}

/// Way of writing samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    Plain,
    Urgent,
    Loan,
}

/// Settings of a reader.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wish {
    pub topics: String,
    /// `None`: all partitions.
    pub partitions: Option<Vec<String>>,
    pub reliable: bool,
    pub history: tampu_bus::History,
    pub manual: bool,
    pub full: bool,
    pub direct: bool,
    pub queue: Option<usize>,
    /// Incarnation, stream, next.
    pub resume: Vec<(String, u32, u64)>,
    pub pace: Pace,
}

impl Wish {
    /// Everything of these topics, taken as it comes.
    pub fn of(topics: &str) -> Wish {
        Wish {
            topics: topics.to_owned(),
            partitions: None,
            reliable: true,
            history: tampu_bus::History::None,
            manual: false,
            full: false,
            direct: false,
            queue: None,
            resume: Vec::new(),
            pace: Pace::Keen,
        }
    }
}

/// Pace at which the application takes events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// As it comes.
    Keen,
    /// So many samples every so many ms.
    Slow(u64, u64),
    /// Not at all.
    Idle,
}

/// Reply to a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// It is done; a number for what was opened.
    Opened(usize),
    Wrote(Wrote),
    Receipt(Ranges),
    Look(Look),
    Log(Vec<Seen>),
    Answers(Vec<Result<String, String>>),
    Sources(Sources),
    Configured {
        credit: usize,
        cache: usize,
    },
    Done,
    /// The bus refused with this error.
    Refused(String),
}

/// Cost of a series of writes, and the result of the last one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Wrote {
    pub first: u64,
    pub next: u64,
    pub matched: usize,
    pub longest_ns: u64,
    pub total_ns: u64,
}

/// A receipt: from, to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges {
    pub delivered: Vec<(u64, u64)>,
    pub cached: Vec<(u64, u64)>,
    pub lost: Vec<(u64, u64)>,
}

/// State of a writer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Look {
    pub readers: Vec<Status>,
    pub deliveries: Vec<u64>,
    pub lost: u64,
    pub waited_ns: u64,
    pub copied_loans: u64,
    pub shared: u64,
    pub batches: u64,
    pub cache: usize,
}

/// State of a reader as its writer sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub source: String,
    pub state: String,
    pub acked: u64,
    pub lost: u64,
}

impl Status {
    pub fn is(&self, state: ReaderState) -> bool {
        self.state == format!("{state:?}")
    }
}

/// Identity of a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamId {
    pub source: String,
    pub incarnation: String,
    pub stream: u32,
    pub topic: String,
    pub partition: String,
}

/// Events that an application got: samples that follow one another are one entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Seen {
    Samples {
        stream: StreamId,
        from: u64,
        to: u64,
        /// Samples whose bytes differ from the written ones.
        damaged: u64,
        /// Samples in the writer's memory; `torn` counts those that were overwritten.
        lent: u64,
        torn: u64,
        first_at: i64,
        last_at: i64,
    },
    Gap {
        stream: StreamId,
        from: u64,
        to: Option<u64>,
        why: String,
        at: i64,
    },
    Source {
        source: String,
        incarnation: String,
        state: String,
        at: i64,
    },
}

/// Processes on the bus.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sources {
    /// Source and incarnation of everybody here.
    pub here: Vec<(String, String)>,
    /// Processes that came (true) and went, with the times.
    pub news: Vec<(i64, String, bool)>,
}
