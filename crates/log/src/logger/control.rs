//! Remote control of loggers: the list of loggers, their thresholds for publishing and printing, and their counters.
//!
//! Every process that logs answers the service `log/levels` as soon as it is on the bus. It need not have logged
//! anything: a user most often raises a logger whose level keeps it silent. A change stores the two thresholds of the
//! named logger. Every call in every thread reads them, so the change holds from the next call on. It lasts until the
//! process ends or reads its configuration again. A logger that is named afterwards begins with the process's settings.
//!
//! Rejected: a topic that loggers follow. The user who sets a level needs a report of the loggers that have it. A
//! change that waits for a process to start would surprise that user.
//!
//! | part | module |
//! |-|-|
//! | the messages, and the client side | this module |
//! | the server side, and the hook that it calls | `service` |
//! | the interface of a process's loggers to the server side | `loggers` |
//!
//! The bytes are in `spec/log-services.md`: JSON both ways, and each part of a reply begins with the incarnation of the
//! replying process.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use tampu_bus::{
    Participant,
    service::{CallError, Part, call_json},
};
use tampu_types::{Incarnation, Level};

use crate::logger::threshold::Threshold;

mod loggers;
mod service;
#[cfg(test)]
mod tests;

pub(crate) use service::{Controlled, serve};

/// The service every process that logs answers.
pub const LEVELS: &str = "log/levels";

/// Logger of refused and administrative actions. Its levels cannot be set from outside.
pub const AUDIT: &str = "audit";

/// Question to the loggers of all processes. The default asks all of them for their state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Pattern of processes' stable names: `*` any characters, `?` one, without case. All processes if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Pattern of the processes' named loggers. All loggers if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Thresholds to set on all loggers that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Change>,
    /// If true, the processes that match read their configuration again and apply it; `name` then only selects the loggers
    /// in the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refresh: bool,
}

/// New thresholds of a logger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Lowest published level; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub central: Option<Threshold>,
    /// Lowest printed level; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Threshold>,
}

/// Answer of one process about its loggers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLoggers {
    /// The process's stable name.
    pub source: String,
    /// The requested named loggers of the process, by name, in their state after a change.
    pub loggers: Vec<LoggerState>,
    /// Counters of all its loggers.
    #[serde(default)]
    pub stats: Counted,
}

/// A named logger's thresholds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggerState {
    /// Name of the logger.
    pub name: String,
    /// Published from here on.
    pub central: Threshold,
    /// Printed from here on.
    pub local: Threshold,
    /// Published from here on for attached readers, where there are some ([`attach`](crate::logger::attach)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<Threshold>,
}

/// Counters of a process's loggers since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Records handed to the bus.
    pub published: u64,
    /// Records by level; levels without any are omitted.
    pub by_level: BTreeMap<Level, u64>,
    /// Records dropped for lack of room; each was also reported in the log.
    pub dropped: u64,
    /// Calls that found no room.
    pub waited: u64,
    /// Bytes handed to the bus.
    pub bytes: u64,
    /// The most bytes that have waited in a ring, where records go through one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_water: Option<u64>,
    /// Records that could not be written to the local output.
    #[serde(skip_serializing_if = "is_zero")]
    pub unprinted: u64,
    /// Records that settings suppressed: repetitions, and records above the limit of a second.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressed: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's hook lends it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Everything that was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Processes that obeyed, also those without matching loggers.
    pub processes: BTreeMap<Incarnation, ProcessLoggers>,
    /// Processes that did not obey, with their reasons.
    pub unheeded: BTreeMap<Incarnation, CallError>,
    /// True if all processes answered in time.
    pub complete: bool,
}

/// Asks the loggers of all processes, and waits at most this long for those that do not answer.
pub fn ask(participant: &Participant, question: &Question, timeout: Duration) -> Result<Heard, CallError> {
    let mut answers = BTreeMap::<Incarnation, Result<Vec<u8>, CallError>>::new();
    let mut heard = Heard { complete: true, ..Heard::default() };
    for part in call_json(participant, LEVELS, question, timeout)? {
        match part {
            Ok(Part { from, content: Ok(content) }) => {
                if let Ok(answer) = answers.entry(from).or_insert_with(|| Ok(Vec::new())) {
                    answer.extend_from_slice(&content);
                }
            }
            Ok(Part { from, content: Err(refused) }) => drop(answers.insert(from, Err(refused))),
            Err(CallError::Unanswered(_)) => heard.complete = false,
            Err(error) => return Err(error),
        }
    }
    for (from, answer) in answers {
        match answer.and_then(|answer| read(&answer)) {
            Ok(process) => drop(heard.processes.insert(from, process)),
            Err(why) => drop(heard.unheeded.insert(from, why)),
        }
    }
    Ok(heard)
}

/// Reads one process's whole answer.
fn read(answer: &[u8]) -> Result<ProcessLoggers, CallError> {
    serde_json::from_slice(answer).map_err(|why| CallError::Unreadable { service: LEVELS.to_owned(), why: why.to_string() })
}
