//! The asking side.

use std::{ops::ControlFlow, time::Duration};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tampu_types::{Incarnation, TopicName};

use super::request::Refusal;
use crate::{ask::Answers, error::CallError, participant::Participant};

/// Start of a refusal. No other content of a part has this start and is a whole JSON object.
const REFUSAL: &[u8] = b"{\"error\":";

/// Asks every process that serves `service`. The question is sent when this returns. A caller that does not want the
/// answers may drop them.
pub fn call(participant: &Participant, service: &str, question: impl Into<Bytes>, timeout: Duration) -> Result<Parts, CallError> {
    let name = TopicName::new(service).map_err(|why| not_sent(service, &why))?;
    let question = participant.sealed(name.as_str(), question.into());
    Ok(Parts { answers: participant.ask(&name, question, timeout)? })
}

/// Sends a question as JSON.
pub fn call_json(
    participant: &Participant,
    service: &str,
    question: &impl Serialize,
    timeout: Duration,
) -> Result<Parts, CallError> {
    let question = serde_json::to_vec(question).map_err(|why| not_sent(service, &why))?;
    call(participant, service, question, timeout)
}

fn not_sent(service: &str, why: &dyn std::fmt::Display) -> CallError {
    CallError::NotSent { service: service.to_owned(), why: why.to_string() }
}

/// One part of one process's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Incarnation of the answering process.
    pub from: Incarnation,
    /// The content, or the process's refusal.
    pub content: Result<Bytes, CallError>,
}

/// The parts of all answers, as they arrive. Parts of different processes may alternate.
///
/// The last item is [`CallError::Unanswered`] if a process that serves did not answer in time.
pub struct Parts {
    answers: Answers,
}

impl Parts {
    /// Returns the answer of the first process that answers; the others are ignored.
    pub fn first(self) -> FirstAnswer {
        FirstAnswer { parts: self, from: None }
    }
}

impl Iterator for Parts {
    type Item = Result<Part, CallError>;

    fn next(&mut self) -> Option<Result<Part, CallError>> {
        loop {
            let part = match self.answers.next()? {
                Ok(part) => part,
                Err(error) => return Some(Err(error)),
            };
            // A part shorter than an incarnation was not sent by a tampu process.
            let Some((from, content)) = part.split_first_chunk() else { continue };
            let content = match refusal(&self.answers.service, content) {
                Some(refused) => Err(refused),
                None => Ok(part.slice(16..)),
            };
            return Some(Ok(Part { from: Incarnation::from_bytes(*from), content }));
        }
    }
}

fn refusal(service: &str, content: &[u8]) -> Option<CallError> {
    if !content.starts_with(REFUSAL) {
        return None;
    }
    Some(match serde_json::from_slice(content).ok()? {
        Refusal { denied: Some(denied), .. } => CallError::Denied(denied),
        Refusal { error, .. } => CallError::Refused { service: service.to_owned(), why: error },
    })
}

/// The parts of the first process that answers.
pub struct FirstAnswer {
    parts: Parts,
    from: Option<Incarnation>,
}

impl FirstAnswer {
    /// Returns the whole answer as JSON. It counts if it is complete, even if another process that serves did not answer.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let service = self.service();
        let (mut answer, mut unanswered) = (Vec::new(), None);
        for part in self {
            match part {
                Ok(part) => answer.extend_from_slice(&part),
                Err(CallError::Unanswered(service)) if !answer.is_empty() => unanswered = Some(CallError::Unanswered(service)),
                Err(error) => return Err(error),
            }
        }
        serde_json::from_slice(&answer)
            .map_err(|why| unanswered.unwrap_or_else(|| CallError::Unreadable { service, why: why.to_string() }))
    }

    /// Reads the answer's JSON documents until `take` ends with a result. An end without one counts as a cut answer.
    pub fn until<T: DeserializeOwned, R>(mut self, mut take: impl FnMut(T) -> ControlFlow<Option<R>>) -> Result<R, CallError> {
        while let Some(document) = self.document() {
            if let ControlFlow::Break(result) = take(document?) {
                return result.ok_or_else(|| self.cut_off(0));
            }
        }
        Err(self.cut_off(0))
    }

    /// Returns the next of the answer's JSON documents, each of which is one part or split into several.
    pub fn document<T: DeserializeOwned>(&mut self) -> Option<Result<T, CallError>> {
        let mut document = Vec::new();
        loop {
            match self.next()? {
                Ok(part) => document.extend_from_slice(&part),
                Err(error) => return Some(Err(error)),
            }
            match serde_json::from_slice(&document) {
                Ok(read) => return Some(Ok(read)),
                Err(why) if why.is_eof() => {}
                Err(why) => return Some(Err(self.unreadable(&why))),
            }
        }
    }

    /// Returns the name of the service.
    pub fn service(&self) -> String {
        self.parts.answers.service.clone()
    }

    /// Returns the error for a part that is not in the expected form.
    pub fn unreadable(&self, why: &dyn std::fmt::Display) -> CallError {
        CallError::Unreadable { service: self.service(), why: why.to_string() }
    }

    /// Returns the error for an answer that stopped before its end.
    pub fn cut_off(&self, received: u64) -> CallError {
        CallError::CutOff { service: self.service(), received }
    }
}

impl Iterator for FirstAnswer {
    type Item = Result<Bytes, CallError>;

    fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        loop {
            match self.parts.next()? {
                Ok(Part { from, content }) if *self.from.get_or_insert(from) == from => return Some(content),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
