//! Services of a spool: its state, and the samples of a stream that it has stored.
//!
//! | service | request | reply |
//! |-|-|-|
//! | `log/spool` | nothing | of each spool of the domain, a [`super::SpoolReport`] as JSON |
//! | `log/spool-taken/<boot>` | `{"incarnation", "stream"}` | of the spool of that host, `{"taken": [[from, to], ...]}` |

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tampu_bus::{
    Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{CallError, Limits, Permission, Request, call, call_json, serve},
};
use tampu_types::{Incarnation, TopicName, name::BadTopic};

use super::{error::SpoolError, state::SpoolShared};

/// Questions that one spool answers at once.
const AT_ONCE: usize = 64;

/// The service that reports the state of spools.
pub const SPOOL: &str = "log/spool";

/// The service of one host's spool that lists the samples it has taken.
fn taken_of(boot: u32) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("log/spool-taken/{boot:08x}"))
}

#[derive(Debug, Serialize, Deserialize)]
struct TakenQuestion {
    incarnation: Incarnation,
    stream: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Taken {
    taken: Vec<(u64, u64)>,
}

/// Returns the samples of a stream that the spool of its writer's host has taken, or has reported lost; empty where there is no
/// spool, or it does not answer in time.
pub fn taken(participant: &Participant, incarnation: Incarnation, stream: u32, timeout: Duration) -> Vec<(u64, u64)> {
    let ask = || -> Option<Vec<(u64, u64)>> {
        let service = taken_of(incarnation.boot).ok()?;
        let answers = call_json(participant, service.as_str(), &TakenQuestion { incarnation, stream }, timeout).ok()?;
        answers.first().document::<Taken>()?.ok().map(|answer| answer.taken)
    };
    ask().unwrap_or_default()
}

/// Returns the state of a domain's spools: a [`super::SpoolReport`] as JSON each, which a later release may lengthen.
pub fn reports(participant: &Participant, timeout: Duration) -> Result<Vec<serde_json::Value>, CallError> {
    let mut reports = Vec::new();
    for part in call(participant, SPOOL, Bytes::new(), timeout)? {
        // No answer: no node has a spool, or one did not answer in time.
        let Ok(part) = part else { break };
        let unreadable = |why: serde_json::Error| CallError::Unreadable { service: SPOOL.to_owned(), why: why.to_string() };
        reports.push(serde_json::from_slice(&part.content?).map_err(unreadable)?);
    }
    Ok(reports)
}

pub(super) fn declare(shared: &Arc<SpoolShared>) -> Result<Vec<Guard>, SpoolError> {
    let own = taken_of(shared.participant.incarnation().boot)?;
    // On threads of their own: the engine's worker must not wait for a disk.
    let limits = Limits::on_threads("spool answer", AT_ONCE);
    let mut guards = Vec::new();
    for (service, answer) in [(TopicName::new(SPOOL)?, report as fn(&SpoolShared, &Request)), (own, answer_taken)] {
        let spool = shared.clone();
        let handler = move |request: Request| answer(&spool, &request);
        guards.push(serve(&shared.participant, &service, Permission::Verb(Access::of_host(), Verb::Read), &limits, handler)?);
    }
    Ok(guards)
}

fn report(shared: &SpoolShared, request: &Request) {
    request.answer(&shared.report());
}

fn answer_taken(shared: &SpoolShared, request: &Request) {
    match request.json() {
        Ok(TakenQuestion { incarnation, stream }) => {
            let taken = shared.store().ledger().taken(incarnation, stream);
            request.answer(&Taken { taken });
        }
        Err(error) => request.refuse(error),
    }
}
