//! What a spool answers: how it is, and which samples of a stream it has taken.
//!
//! | service | question | answer |
//! |-|-|-|
//! | `log/spool` | nothing | a part for each spool of the domain: its incarnation, then [`super::SpoolReport`] as JSON |
//! | `log/spool-taken/<boot>` | `{"incarnation", "stream"}` | of the spool of that host: `{"taken": [[from, to], ...]}` |

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tampu_bus::{
    Participant,
    engine::{Guard, Question},
};
use tampu_types::{Incarnation, TopicName, name::BadTopic};

use super::{Shared, SpoolError};
use crate::collector::ask::AskFailed;

/// The service that tells how spools are.
pub const SPOOL: &str = "log/spool";

/// The service of one host's spool that tells which samples it has taken.
fn taken_of(boot: u32) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log/spool-taken/{boot:08x}"))
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    incarnation: Incarnation,
    stream: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Taken {
    taken: Vec<(u64, u64)>,
}

/// Which samples of a stream the spool of its writer's host has taken, or has told lost; nothing where there is no spool, or it
/// does not answer in time.
pub fn taken(participant: &Participant, incarnation: Incarnation, stream: u32, timeout: Duration) -> Vec<(u64, u64)> {
    let ask = || -> Option<Vec<(u64, u64)>> {
        let question = serde_json::to_vec(&Asked { incarnation, stream }).ok()?;
        let service = taken_of(incarnation.boot).ok()?;
        let answer = participant.ask(&service, Bytes::from(question), timeout).ok()?.next()?.ok()?;
        serde_json::from_slice::<Taken>(&answer).ok().map(|answer| answer.taken)
    };
    ask().unwrap_or_default()
}

/// How the spools of a domain are: a [`super::SpoolReport`] as JSON each, which a later release may lengthen.
pub fn reports(participant: &Participant, timeout: Duration) -> Result<Vec<serde_json::Value>, AskFailed> {
    let mut reports = Vec::new();
    for answer in participant.ask(&TopicName::new(SPOOL)?, Bytes::new(), timeout)? {
        // Nobody: there is no node with a spool.
        let Ok(answer) = answer else { break };
        let json = answer.get(16..).unwrap_or_default();
        reports.push(serde_json::from_slice(json).map_err(|error| AskFailed::Unreadable(error.to_string()))?);
    }
    Ok(reports)
}

type Answer = fn(&Shared, &dyn Question) -> Option<Bytes>;

pub(super) fn declare(shared: &Arc<Shared>) -> Result<Vec<Guard>, SpoolError> {
    let own = taken_of(shared.participant.incarnation().boot)?;
    let mut guards = Vec::new();
    for (service, answer) in [(TopicName::new(SPOOL)?, report as Answer), (own, answer_taken)] {
        let asked = shared.clone();
        let answerer = Arc::new(move |question: Box<dyn Question>| {
            let asked = asked.clone();
            // On a worker of its own: the engine's must not wait for a disk. Without one, the asker is told that nobody answers.
            let _ = std::thread::Builder::new().name("spool answer".to_owned()).spawn(move || {
                if let Some(answer) = answer(&asked, &*question) {
                    // Whoever asked may have gone.
                    let _ = question.reply(answer);
                }
            });
        });
        guards.push(shared.participant.answer(&service, answerer)?);
    }
    Ok(guards)
}

fn report(shared: &Shared, _: &dyn Question) -> Option<Bytes> {
    let mut answer = shared.participant.incarnation().to_bytes().to_vec();
    answer.extend(serde_json::to_vec(&shared.report()).ok()?);
    Some(Bytes::from(answer))
}

fn answer_taken(shared: &Shared, question: &dyn Question) -> Option<Bytes> {
    let Asked { incarnation, stream } = serde_json::from_slice(question.payload()).ok()?;
    let taken = shared.store().ledger().taken(incarnation, stream);
    serde_json::to_vec(&Taken { taken }).ok().map(Bytes::from)
}
