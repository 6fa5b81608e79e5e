//! Asking and answering.
//!
//! A question goes to every answerer known, in as many copies; each copy ends with a word of its own when the answerer drops
//! it or dies. The asker is told the end once every copy has ended, or that the time was up: a lost copy never ends.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;

use super::{
    Kind,
    net::Net,
    process::NAME,
    state::{Due, Plane, ProcessId, State},
};
use crate::engine::{Answer, Answers, EngineError, Question};

/// A question whose answers somebody waits for.
pub struct Pending {
    asker: ProcessId,
    /// Away while it is called.
    answers: Option<Answers>,
    /// What arrived meanwhile.
    backlog: VecDeque<Answer>,
    copies: BTreeMap<u64, Copy>,
}

struct Copy {
    answerer: ProcessId,
    /// When the last part of its answer arrives: the end must not come before.
    parts_until: u64,
}

/// A question at the one who answers.
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

    /// Gives a question to its answerer; one that is gone by now answers nothing.
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

    /// Calls the asker back, and with whatever else arrives while it is being called: never twice at once.
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
            // Its process may have been killed meanwhile, and its question forgotten.
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
    /// A process died: its questions are forgotten (and given back, to be dropped without the lock), its answers end.
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
        let limit = super::process::LIMITS.message;
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
        // What is in a dead process says nothing any more; its death has ended the copy.
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
