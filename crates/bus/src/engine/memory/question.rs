//! Asking and answering.
//!
//! A question goes to every known answerer, each with its own copy. A copy ends with a message when the answerer drops
//! it or dies. The asker learns of the end when every copy has ended or the time is up: a lost copy never ends.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    bounds::{LIMITS, NAME},
    ids::{Plane, ProcessId},
    message::Kind,
    net::Net,
    records::{Copy, Pending},
    state::{Due, State},
};
use crate::engine::{Answer, Answers, EngineError, Question};

/// Question at its answerer.
struct Posed {
    net: Arc<Net>,
    ask: u64,
    copy: u64,
    asker: ProcessId,
    answerer: ProcessId,
    key: Arc<str>,
    payload: Bytes,
}

impl Net {
    pub fn ask(self: &Arc<Net>, asker: ProcessId, plane: Plane, key: &str, payload: Bytes, timeout: Duration, answers: Answers) {
        let key: Arc<str> = key.into();
        let mut state = self.lock();
        let now = self.now();
        let ask = state.next_serial();
        let asked = state.answerers_of(now, plane, &key, asker);
        let copies: Vec<(u64, u64, ProcessId)> =
            asked.iter().map(|&(answerer, to)| (state.next_serial(), answerer, to)).collect();
        let known = copies.iter().map(|&(copy, _, to)| (copy, Copy { answerer: to, parts_until: now })).collect();
        state.asks.insert(ask, Pending { asker, answers: Some(answers), backlog: VecDeque::new(), copies: known });
        let give_up = if copies.is_empty() { now } else { self.after(timeout) };
        state.schedule(give_up, Due::Unanswered { ask, to: asker });
        drop(state);
        for (copy, answerer, to) in copies {
            let question =
                |to| Due::Question { ask, copy, answerer, from: asker, to, key: key.clone(), payload: payload.clone() };
            self.carry(asker, &[to], Kind::Question, &key, &payload, question);
        }
    }

    /// Passes a question to its answerer. One that is gone meanwhile answers nothing.
    pub fn pose(
        self: &Arc<Net>,
        ask: u64,
        copy: u64,
        answerer: u64,
        pair: (ProcessId, ProcessId),
        key: Arc<str>,
        payload: Bytes,
    ) {
        let (asker, to) = pair;
        let call = self.lock().answerers.get(&answerer).map(|answerer| answerer.call.clone());
        let posed = Box::new(Posed { net: self.clone(), ask, copy, asker, answerer: to, key, payload });
        if let Some(call) = call {
            call(posed);
        }
    }

    pub fn give_part(&self, ask: u64, part: Bytes) {
        self.give(ask, Answer::Part(part));
    }

    pub fn finish_copy(&self, ask: u64, copy: u64) {
        let over = self.lock().asks.get_mut(&ask).is_some_and(|pending| {
            pending.copies.remove(&copy);
            pending.copies.is_empty()
        });
        if over {
            self.give(ask, Answer::End);
        }
    }

    pub fn give_up(&self, ask: u64) {
        self.give(ask, Answer::Unanswered);
    }

    /// Calls the asker back, also with answers that arrive during the call: never twice at once.
    fn give(&self, ask: u64, answer: Answer) {
        let mut state = self.lock();
        let Some(pending) = state.asks.get_mut(&ask) else { return };
        let Some(mut answers) = pending.answers.take() else {
            pending.backlog.push_back(answer);
            return;
        };
        drop(state);
        let mut next = Some(answer);
        while let Some(answer) = next.take() {
            let over = answer == Answer::End || answer == Answer::Unanswered;
            answers(answer);
            let mut state = self.lock();
            if over {
                let pending = state.asks.remove(&ask);
                drop(state);
                drop(pending);
                return;
            }
            // The asking process may have been killed meanwhile, which removes its question.
            let Some(pending) = state.asks.get_mut(&ask) else { return };
            next = pending.backlog.pop_front();
            if next.is_none() {
                pending.answers = Some(answers);
                return;
            }
        }
    }
}

impl State {
    /// Handles the death of a process. Its answers end. Its questions are removed and returned, so that they are
    /// dropped without the lock.
    pub fn forget_questions(&mut self, now: u64, process: ProcessId) -> Vec<Pending> {
        let own: Vec<u64> = self.asks.iter().filter(|(_, pending)| pending.asker == process).map(|(&ask, _)| ask).collect();
        let forgotten = own.iter().filter_map(|ask| self.asks.remove(ask)).collect();
        let mut ended = Vec::new();
        for (&ask, pending) in &self.asks {
            if self.silent_since(process, pending.asker).is_none() {
                let copies = pending.copies.iter().filter(|(_, copy)| copy.answerer == process);
                ended.extend(copies.map(|(&copy, one)| (one.parts_until, Due::Final { ask, copy, to: pending.asker })));
            }
        }
        let told = now + self.discovery;
        for (parts_until, due) in ended {
            self.schedule(parts_until.max(told), due);
        }
        forgotten
    }
}

impl Question for Posed {
    fn key(&self) -> &str {
        &self.key
    }

    fn payload(&self) -> &Bytes {
        &self.payload
    }

    fn reply(&self, part: Bytes) -> Result<(), EngineError> {
        self.net.check(self.answerer, "answering")?;
        let limit = LIMITS.message;
        if part.len() > limit {
            return Err(EngineError::TooLong { engine: NAME, limit, length: part.len() });
        }
        let (ask, from) = (self.ask, self.answerer);
        let due = |to| Due::Part { ask, from, to, bytes: part.clone() };
        let last = self.net.carry(from, &[self.asker], Kind::Answer, &self.key, &part, due);
        if let Some(copy) = self.net.lock().asks.get_mut(&ask).and_then(|pending| pending.copies.get_mut(&self.copy)) {
            copy.parts_until = copy.parts_until.max(last);
        }
        Ok(())
    }
}

impl Drop for Posed {
    fn drop(&mut self) {
        // A dead process sends nothing; its death has already ended the copy.
        if self.net.check(self.answerer, "").is_err() {
            return;
        }
        let (ask, copy, from) = (self.ask, self.copy, self.answerer);
        let parts_until =
            self.net.lock().asks.get(&ask).and_then(|pending| pending.copies.get(&copy)).map_or(0, |copy| copy.parts_until);
        let end = |to| Due::Final { ask, copy, to };
        self.net.carry_after(parts_until, from, &[self.asker], (Kind::Answer, &self.key, &[]), end);
    }
}
