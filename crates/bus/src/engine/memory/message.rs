//! Messages under way: faults of their links, their kinds, and counters of their ends.

use std::{sync::Arc, time::Duration};

use crate::engine::Class;

/// Faults of a link. The default carries everything in order within 100 us.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message arrives twice.
    pub duplicate: f64,
    /// Probability that a message is delayed so that later ones overtake it.
    pub reorder: f64,
    /// Longest such delay of a message.
    pub reorder_by: Duration,
    /// Shortest and longest transit time of a message. Order is kept unless `reorder` is set.
    pub delay: (Duration, Duration),
    /// Bytes under way between two processes; more are dropped. Questions and answers are exempt.
    pub capacity: usize,
    /// Bytes a second between two processes; 0 means no limit.
    pub rate: u64,
}

impl Default for Faults {
    fn default() -> Faults {
        let delay = Duration::from_micros(100);
        Faults {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::from_millis(5),
            delay: (delay, delay),
            capacity: usize::MAX,
            rate: 0,
        }
    }
}

/// Kind of a message under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Message of an outlet.
    Message(Class),
    /// A question to a service.
    Question,
    /// Part of an answer.
    Answer,
}

/// Message about to leave, as passed to [`MemoryNet::lose_if`].
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    /// Host it leaves.
    pub from: &'a str,
    /// Host it goes to.
    pub to: &'a str,
    /// Key it was sent under.
    pub key: &'a str,
    /// Kind of the message.
    pub kind: Kind,
    /// Octets of the message.
    pub bytes: &'a [u8],
}

/// Callback that selects the messages that a link loses.
pub type LoseIf = Arc<dyn Fn(&Passing<'_>) -> bool + Send + Sync>;

/// Numbers of messages by their end, over all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages passed to a link, one for each receiving process.
    pub sent: u64,
    /// Messages delivered to their process; repetitions count.
    pub delivered: u64,
    /// Messages lost by chance or by a test's choice.
    pub lost: u64,
    /// Messages that arrived twice.
    pub duplicated: u64,
    /// Messages that others overtook after a delay.
    pub reordered: u64,
    /// Messages dropped because the link or a stopped process's queue was full.
    pub full: u64,
    /// Messages dropped because the hosts were cut from each other, or the process was dead or cut off.
    pub unreachable: u64,
}
