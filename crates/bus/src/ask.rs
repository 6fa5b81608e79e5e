//! Requests to a service, with the answers as an iterator.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;

use crate::{
    clock::{Clock, Gate},
    engine::Answer,
    error::CallError,
    links::lock,
};

#[derive(Default)]
pub(crate) struct Inflow {
    arrived: Mutex<VecDeque<Answer>>,
    gate: Gate,
}

impl Inflow {
    pub fn put(&self, answer: Answer) {
        lock(&self.arrived).push_back(answer);
        self.gate.open();
    }
}

/// Parts of an answer, as they arrive.
pub struct Answers {
    pub(crate) service: String,
    pub(crate) inflow: Arc<Inflow>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timeout: Duration,
    pub(crate) parts: usize,
    pub(crate) ended: bool,
}

impl Iterator for Answers {
    type Item = Result<Bytes, CallError>;

    fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        // The engine ends every question. The margin guards against an engine that does not.
        let until = self.clock.monotonic().saturating_add(2 * self.timeout.as_nanos() as u64);
        while !self.ended {
            let seen = self.inflow.gate.openings();
            let arrived = lock(&self.inflow.arrived).pop_front();
            match arrived {
                Some(Answer::Part(part)) => {
                    self.parts += 1;
                    return Some(Ok(part));
                }
                Some(Answer::End) if self.parts > 0 => self.ended = true,
                Some(Answer::End | Answer::Unanswered) => {
                    self.ended = true;
                    return Some(Err(CallError::Unanswered(self.service.clone())));
                }
                None if self.clock.monotonic() >= until => {
                    self.ended = true;
                    return Some(Err(CallError::Unanswered(self.service.clone())));
                }
                None => self.clock.wait(&self.inflow.gate, seen, until),
            }
        }
        None
    }
}
