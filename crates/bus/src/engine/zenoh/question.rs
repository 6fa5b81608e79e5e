//! Asking and answering.
//!
//! The engine ends an answer silently, both when the answering process dies and when no process answers. So every
//! answering process closes with a mark of its own, and an answer without any such mark is reported as unanswered.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use zenoh::{
    Session, Wait,
    handlers::CallbackDrop,
    key_expr::KeyExpr,
    qos::{CongestionControl, Priority},
    query::{ConsolidationMode, Query, QueryTarget, Queryable, Reply},
};

use super::{
    declaration::{Declaration, Retired, Slot},
    lease::Lease,
    link::Link,
    payload,
};
use crate::engine::{Answer, Answerer, Answers, EngineError, Question};

/// Last part of every answer. It travels as an error, unlike all other parts.
const END: &[u8] = b"tampu:end";

/// Priority of a node's news of announced keys, and of answers about them. Announcements overtake samples on every connection.
pub(super) const NEWS: Priority = Priority::DataHigh;

/// Pattern of answered questions.
pub(super) struct Service {
    pattern: KeyExpr<'static>,
    answerer: Answerer,
    queryable: Slot<Queryable<()>>,
}

impl Service {
    pub fn new(pattern: KeyExpr<'static>, answerer: Answerer) -> Service {
        Service { pattern, answerer, queryable: Slot::default() }
    }
}

impl Declaration for Service {
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError> {
        let declare = || {
            let answerer = self.answerer.clone();
            link.session
                .declare_queryable(link.key(&self.pattern))
                .callback(move |query| answerer(Box::new(Asked::new(query))))
                .wait()
        };
        self.queryable.attach(link, || format!("answering at {}", self.pattern), declare)
    }

    fn withdraw(&self) {
        self.queryable.withdraw();
    }
}

/// A question that arrived.
struct Asked {
    query: Query,
    payload: Bytes,
}

impl Asked {
    fn new(query: Query) -> Asked {
        let payload = query.payload().map(payload::from_engine).unwrap_or_default();
        Asked { query, payload }
    }
}

impl Question for Asked {
    fn key(&self) -> &str {
        self.query.key_expr().as_str()
    }

    fn payload(&self) -> &Bytes {
        &self.payload
    }

    fn reply(&self, part: Bytes) -> Result<(), EngineError> {
        let reply = self.query.reply(self.query.key_expr().clone(), payload::to_engine(part));
        reply.wait().map_err(|why| EngineError::Refused {
            engine: super::settings::NAME,
            doing: format!("answering {}", self.key()),
            why: why.to_string(),
        })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // If the asker is gone, no process waits for the end.
        let _ = self.query.reply_err(END).wait();
    }
}

/// State of the answers so far.
struct Collected {
    answers: Answers,
    /// True once a process has completed its answer.
    answered: bool,
    /// True once the engine's wait has timed out.
    late: bool,
}

/// Asks all answerers under the key.
pub(super) fn ask(
    link: &Link,
    key: &KeyExpr<'_>,
    question: Bytes,
    timeout: Duration,
    mut answers: Answers,
) -> Result<(), EngineError> {
    let Some(_in_use) = Lease::of(link.lease.as_ref()) else {
        answers(Answer::Unanswered);
        return Ok(());
    };
    // Refetched samples must not overtake current samples.
    ask_on(&link.session, link.key(key), question, (Priority::DataLow, timeout), answers);
    Ok(())
}

/// Asks all answerers under the key on a session, with this priority and timeout.
pub(super) fn ask_on(
    session: &Session,
    key: KeyExpr<'static>,
    question: Bytes,
    (priority, timeout): (Priority, Duration),
    answers: Answers,
) {
    let collected = Arc::new(Mutex::new(Collected { answers, answered: false, late: false }));
    let at_end = collected.clone();
    let handler = CallbackDrop {
        callback: move |reply: Reply| {
            let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
            match reply.result() {
                Ok(sample) => {
                    let part = payload::from_engine(sample.payload());
                    (collected.answers)(Answer::Part(part));
                }
                Err(end) if *end.payload().to_bytes() == *END => collected.answered = true,
                Err(_) => collected.late = true,
            }
        },
        drop: move || {
            let mut collected = at_end.lock().unwrap_or_else(PoisonError::into_inner);
            let complete = collected.answered && !collected.late;
            (collected.answers)(if complete { Answer::End } else { Answer::Unanswered });
        },
    };
    // Answers inherit Block and the priority from the question. They must not be lost again.
    let asked = session
        .get(key)
        .payload(payload::to_engine(question))
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .congestion_control(CongestionControl::Block)
        .priority(priority)
        .timeout(timeout)
        .with(handler)
        .wait();
    // If the question could not be sent, dropping its handler has already reported the end.
    drop(asked);
}
