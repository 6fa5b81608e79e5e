//! Loggers seen and set from outside: which there are, from which level on they publish and print, what they have done.
//!
//! Every process that logs answers the service `log/levels`, from when it is on the bus, whether it has logged anything yet or
//! not: the one whose level keeps it silent is the one somebody wants to turn up. A change stores the named logger's two
//! thresholds, which every call in every thread looks at, so it holds from the next call on; it lasts as long as the process or
//! until its configuration is read once more, and a logger that is named afterwards begins with the process's settings. Rejected: a topic that loggers follow, because
//! who sets a level wants to be told where it holds now, and a change that waits for a process to come would surprise it.
//!
//! | part | module |
//! |-|-|
//! | what travels, and the asking side | this one |
//! | the answering side, and the hook it asks | `service` |
//! | what the loggers of a process offer to it | `loggers` |
//!
//! The bytes are in `spec/log-services.md`: JSON both ways, each part of an answer behind the incarnation of who answers.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tampu_bus::{AskError, Participant, access::Denied};
use tampu_types::{Incarnation, Level, TopicName, name::BadTopic};

use crate::logger::settings::Threshold;

mod loggers;
mod service;
#[cfg(test)]
mod tests;

pub(in crate::logger) use loggers::store;
pub(crate) use service::{Controlled, serve};

/// The service every process that logs answers.
pub const LEVELS: &str = "log/levels";

/// What the loggers of all processes are asked. The default asks all of them how they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Processes whose stable name matches: `*` any characters, `?` one, without case. All, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Their named loggers that match. All, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is set on all that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Change>,
    /// Whether the processes that match read their configuration once more, and go by it; `name` then says only which loggers
    /// are told of.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refresh: bool,
}

/// New thresholds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Published from here on; as it was, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub central: Option<Threshold>,
    /// Printed from here on; as it was, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Threshold>,
}

/// What one process says of its loggers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLoggers {
    /// The process's stable name.
    pub source: String,
    /// Its named loggers that were asked about, by name, as they are after a change.
    pub loggers: Vec<LoggerState>,
    /// What all its loggers have done.
    #[serde(default)]
    pub stats: Counted,
}

/// A named logger's thresholds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggerState {
    /// Its name.
    pub name: String,
    /// Published from here on.
    pub central: Threshold,
    /// Printed from here on.
    pub local: Threshold,
    /// Published from here on for attached readers, where there are some ([`attach`](crate::logger::attach)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<Threshold>,
}

/// What the loggers of a process have done since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// Records handed to the bus.
    pub published: u64,
    /// The same by level; levels without any are left out.
    pub by_level: BTreeMap<Level, u64>,
    /// Records dropped because there was no room; each was also told of in the log.
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
    /// Records that settings keep out: repetitions, and what was over the limit of a second.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressed: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's hook lends it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a process says instead where it does not do what it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Refusal {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<Denied>,
}

/// Why loggers could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The engine could not ask.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The service's name is none.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// The question cannot be written.
    #[error("a question about loggers as JSON: {0}")]
    Unwritable(serde_json::Error),
}

/// Why one process does not say what it was asked, or does not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unheeded {
    /// Who asks may not.
    #[error(transparent)]
    Denied(Denied),
    /// It says why not.
    #[error("it answers: {0}")]
    Refused(String),
    /// Its answer cannot be read: it is of another release, perhaps, or died while it answered.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
}

/// Everything that was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Who did as it was asked, also where none of its loggers match.
    pub processes: BTreeMap<Incarnation, ProcessLoggers>,
    /// Who did not, and why.
    pub unheeded: BTreeMap<Incarnation, Unheeded>,
    /// Whether all who are there have answered in time.
    pub complete: bool,
}

/// Asks the loggers of all processes, and waits at most this long for those that do not answer.
pub fn ask(participant: &Participant, question: &Question, timeout: Duration) -> Result<Heard, ControlError> {
    let question = serde_json::to_vec(question).map_err(ControlError::Unwritable)?;
    let mut answers = BTreeMap::<Incarnation, Vec<u8>>::new();
    let mut complete = true;
    for part in participant.ask(&TopicName::new(LEVELS)?, Bytes::from(question), timeout)? {
        match part {
            Ok(part) => {
                // What is shorter than an incarnation was not sent by a process that logs.
                if let Some((from, content)) = part.split_first_chunk() {
                    answers.entry(Incarnation::from_bytes(*from)).or_default().extend_from_slice(content);
                }
            }
            Err(AskError::Unanswered(_)) => complete = false,
            Err(refused) => return Err(refused.into()),
        }
    }
    let mut heard = Heard { complete, ..Heard::default() };
    for (from, answer) in answers {
        match read(&answer) {
            Ok(process) => drop(heard.processes.insert(from, process)),
            Err(unheeded) => drop(heard.unheeded.insert(from, unheeded)),
        }
    }
    Ok(heard)
}

/// Reads one process's whole answer.
fn read(answer: &[u8]) -> Result<ProcessLoggers, Unheeded> {
    let unreadable = match serde_json::from_slice(answer) {
        Ok(process) => return Ok(process),
        Err(error) => Unheeded::Unreadable(error.to_string()),
    };
    Err(match serde_json::from_slice(answer) {
        Ok(Refusal { denied: Some(denied), .. }) => Unheeded::Denied(denied),
        Ok(Refusal { error, .. }) if !error.is_empty() => Unheeded::Refused(error),
        _ => unreadable,
    })
}
