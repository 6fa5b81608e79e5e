//! The answering side of `log/levels`.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use serde::Serialize;
use tampu_bus::{
    BusError, Participant,
    access::{Access, Denied, Resource, Verb},
    engine::{self, Guard},
};
use tampu_types::{Incarnation, TopicName};

use super::{Change, LEVELS, LoggerState, ProcessLoggers, Question, Refusal};
use crate::{
    logger::{attach::Attached, settings::BadSettings, shared::LoggerStats},
    query::is_named,
};

/// Bytes of one part of an answer.
const PART: usize = 1_000_000;

/// The longest question, in bytes. It is matched against every name on one of the engine's workers; longer ones are refused.
const QUESTION: usize = 4096;

/// What the loggers of a process offer to who asks from outside. Nothing here waits: it is called on the engine's worker.
pub(crate) trait Controlled: Send + Sync {
    /// All named loggers of the process, by name.
    fn loggers(&self) -> Vec<LoggerState>;
    /// Changes the thresholds of the named loggers that `matches`; returns their names.
    fn set(&self, matches: &dyn Fn(&str) -> bool, change: Change) -> Vec<String>;
    /// Reads the process's settings once more and goes by them.
    fn refresh(&self) -> Result<(), BadSettings>;
    /// Whether readers may attach to them at all.
    fn may_be_attached(&self) -> bool;
    /// Changes who is attached to them.
    fn attach(&self, change: &dyn Fn(&mut Attached));
    /// What all of them have done.
    fn stats(&self) -> LoggerStats;
    /// Who may ask and who may change.
    fn access(&self) -> &Access;
}

/// Answers for these loggers until the guard is dropped.
pub(crate) fn serve(participant: &Participant, loggers: Arc<dyn Controlled>) -> Result<Guard, BusError> {
    let (source, from) = (participant.source().to_string(), participant.incarnation());
    // Answered where it is asked, on the engine's worker: the work is two stores a logger and an answer of a few hundred bytes,
    // and a worker that an instrument's process would have to start for it could be refused.
    participant.answer(
        &TopicName::new(LEVELS)?,
        Arc::new(move |question: Box<dyn engine::Question>| {
            let answer = match heed(question.payload(), &source, &*loggers) {
                Ok(process) => json(&process),
                Err(refusal) => json(&refusal),
            };
            send(&*question, from, &answer);
        }),
    )
}

/// Does what is asked.
fn heed(question: &[u8], source: &str, loggers: &dyn Controlled) -> Result<ProcessLoggers, Refusal> {
    let question = parse(question)?;
    let changes = question.set.is_some() || question.refresh;
    let verb = if changes { Verb::Change } else { Verb::Read };
    loggers.access().ask(verb, &Resource::Service(LEVELS.to_owned())).map_err(Refusal::from)?;

    let here = question.source.as_deref().is_none_or(|pattern| is_named(pattern, source));
    let matches = |name: &str| here && question.name.as_deref().is_none_or(|pattern| is_named(pattern, name));
    // First, so that what is set in the same question holds.
    if question.refresh && here {
        loggers.refresh().map_err(|why| Refusal::because(why.to_string()))?;
    }
    // A logger that is named meanwhile has not been set, and is not said to be.
    let changed: Option<BTreeSet<String>> = question.set.map(|change| loggers.set(&matches, change).into_iter().collect());
    let told = |name: &str| changed.as_ref().map_or_else(|| matches(name), |changed| changed.contains(name));
    let named = loggers.loggers().into_iter().filter(|logger| told(&logger.name)).collect();
    Ok(ProcessLoggers { source: source.to_owned(), loggers: named, stats: loggers.stats().into() })
}

/// An empty question asks for everything.
fn parse(question: &[u8]) -> Result<Question, Refusal> {
    if question.len() > QUESTION {
        return Err(Refusal::because(format!("the question has {} bytes, the longest allowed is {QUESTION}", question.len())));
    }
    if question.iter().all(u8::is_ascii_whitespace) {
        return Ok(Question::default());
    }
    serde_json::from_slice(question).map_err(|error| Refusal::because(format!("no question can be read: {error}")))
}

/// Our own types have no map keys and numbers that JSON lacks; what cannot be written is an empty answer, which tells as much.
fn json(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

/// Sends an answer in parts, each behind who sends it.
fn send(question: &dyn engine::Question, from: Incarnation, answer: &[u8]) {
    for content in answer.chunks(PART) {
        // Who asked may be gone; then nobody needs the rest.
        if question.reply(Bytes::from([&from.to_bytes()[..], content].concat())).is_err() {
            return;
        }
    }
}

impl Refusal {
    fn because(error: String) -> Refusal {
        Refusal { error, denied: None }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Refusal {
        Refusal { error: denied.to_string(), denied: Some(denied) }
    }
}
