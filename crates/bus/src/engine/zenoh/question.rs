//! Asking and answering.
//!
//! The engine ends an answer silently when the one who answers dies or nobody answers at all. So whoever answers closes
//! with a mark of its own, and an answer without any such mark is told as unanswered.

use std::sync::{Arc, Mutex, PoisonError};

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
    link::Link,
    payload,
};
use crate::engine::{Answer, Answerer, Answers, EngineError, Question};

/// The last part of every answer. It travels as an error, which no other part is.
const END: &[u8] = b"tampu:end";

/// A pattern questions are answered under.
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
                .declare_queryable(self.pattern.clone())
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
            engine: super::NAME,
            doing: format!("answering {}", self.key()),
            why: why.to_string(),
        })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Who asked may be gone; then nobody waits for the end.
        let _ = self.query.reply_err(END).wait();
    }
}

/// What has come back so far.
struct Collected {
    answers: Answers,
    /// Whether anybody has said that its answer is complete.
    answered: bool,
    /// Whether the engine gave up waiting.
    late: bool,
}

/// Asks everybody who answers under the key.
pub(super) fn ask(
    session: &Session,
    key: KeyExpr<'_>,
    question: Bytes,
    timeout: std::time::Duration,
    answers: Answers,
) -> Result<(), EngineError> {
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
    // Block and the low priority belong to the question; answers inherit them. Missing samples asked for again must not be
    // lost again, nor overtake the samples of the moment.
    let asked = session
        .get(key)
        .payload(payload::to_engine(question))
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .congestion_control(CongestionControl::Block)
        .priority(Priority::DataLow)
        .timeout(timeout)
        .with(handler)
        .wait();
    // A question that could not be sent has dropped its handler, which told so.
    drop(asked);
    Ok(())
}
