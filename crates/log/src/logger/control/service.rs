//! The server side of `log/levels`.

use std::{collections::BTreeSet, sync::Arc};

use tampu_bus::{
    BusError, Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{Limits, Permission, Request},
};
use tampu_types::TopicName;

use super::{Change, LEVELS, LoggerState, ProcessLoggers, Question};
use crate::logger::{attached::Attached, settings::BadSettings, stats::LoggerStats};
use tampu_types::glob;

/// Interface of a process's loggers to questions from outside. No method waits: they are called on the engine's worker.
pub(crate) trait Controlled: Send + Sync {
    /// All named loggers of the process, by name.
    fn loggers(&self) -> Vec<LoggerState>;
    /// Changes the thresholds of the named loggers that `matches`; returns their names.
    fn set(&self, matches: &dyn Fn(&str) -> bool, change: Change) -> Vec<String>;
    /// Reads the process's settings again and applies them.
    fn refresh(&self) -> Result<(), BadSettings>;
    /// Returns whether readers may attach to them at all.
    fn may_be_attached(&self) -> bool;
    /// Changes the readers that are attached to the loggers.
    fn attach(&self, change: &dyn Fn(&mut Attached));
    /// Returns the counters of all of them.
    fn stats(&self) -> LoggerStats;
    /// Wakes the worker that sends the records.
    fn wake(&self);
    /// Returns the access rules for questions and changes.
    fn access(&self) -> &Access;
}

/// Answers for these loggers until the guard is dropped.
///
/// Answers on the engine's worker: the work is two stores a logger and an answer of a few hundred bytes, and an
/// instrument's process may be refused a thread for it. Requests are matched against every name there, so they are
/// short ([`Limits::inline`]).
pub(crate) fn serve(participant: &Participant, loggers: Arc<dyn Controlled>) -> Result<Guard, BusError> {
    let source = participant.source().to_string();
    let permission = Permission::ByHandler(loggers.access().clone());
    let handler = move |request: Request| heed(&request, &source, &*loggers);
    tampu_bus::service::serve(participant, &TopicName::new(LEVELS)?, permission, &Limits::inline(), handler)
}

/// Executes a request.
fn heed(request: &Request, source: &str, loggers: &dyn Controlled) {
    let question = match request.json_or_default::<Question>() {
        Ok(question) => question,
        Err(error) => return request.refuse(error),
    };
    let verbs = match (question.set.is_some(), question.refresh) {
        (false, false) => &[Verb::Read][..],
        (true, false) => &[Verb::Set],
        // Settings are read again from the process's configuration.
        (false, true) => &[Verb::Admin],
        (true, true) => &[Verb::Set, Verb::Admin],
    };
    if let Some(denied) = verbs.iter().find_map(|verb| request.require(*verb).err()) {
        return request.deny(denied);
    }
    match changed(&question, source, loggers) {
        Ok(process) => {
            for verb in verbs.iter().filter(|verb| **verb != Verb::Read) {
                request.carried_out(*verb, &described(&question));
            }
            request.answer(&process);
        }
        Err(error) => request.refuse(error),
    }
}

/// Describes a change for the audit.
fn described(question: &Question) -> String {
    let pattern = |pattern: &Option<String>| pattern.as_deref().unwrap_or("*").escape_debug().to_string();
    let what = match &question.set {
        Some(change) => serde_json::to_string(change).unwrap_or_default(),
        None => "settings read again".to_owned(),
    };
    format!("loggers {} of {}: {what}", pattern(&question.name), pattern(&question.source))
}

/// Makes the requested change, and describes the loggers that the request names.
fn changed(question: &Question, source: &str, loggers: &dyn Controlled) -> Result<ProcessLoggers, BadSettings> {
    let here = question.source.as_deref().is_none_or(|pattern| glob::matches_ignoring_case(pattern, source));
    let matches = |name: &str| here && question.name.as_deref().is_none_or(|pattern| glob::matches_ignoring_case(pattern, name));
    // First, so that changes of the same question apply.
    if question.refresh && here {
        loggers.refresh()?;
    }
    // A logger that is named meanwhile has not been changed, and is not reported.
    let changed: Option<BTreeSet<String>> = question.set.map(|change| loggers.set(&matches, change).into_iter().collect());
    let is_reported = |name: &str| changed.as_ref().map_or_else(|| matches(name), |changed| changed.contains(name));
    let named = loggers.loggers().into_iter().filter(|logger| is_reported(&logger.name)).collect();
    Ok(ProcessLoggers { source: source.to_owned(), loggers: named, stats: loggers.stats().into() })
}
