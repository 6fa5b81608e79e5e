//! Questions of a session to services of the bus.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tampu_bus::{
    access::{Resource, Verb},
    service::{CallError, Parts, call},
};
use tampu_types::gateway::{
    Kind,
    messages::{Code, End},
    question::Ask,
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    limits::{ALL_GUEST_QUESTIONS, GUEST_QUESTIONS, QUESTIONS},
    rights,
    session::{Entry, Session},
    shared::GatewayShared,
};

/// Asks a question, and has its answer sent.
pub(super) fn ask(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, ask: &Ask<'_>) -> Result<(), End> {
    let most = if session.is_guest() { GUEST_QUESTIONS } else { QUESTIONS };
    if session.counts().questions >= most {
        return Err(End::because(Code::Limit, format_args!("a session asks at most {most} questions at once")));
    }
    for (verb, resource) in rights::of_question(ask.service, ask.question) {
        session.require(gateway, verb, &resource)?;
    }
    let place = match session.is_guest() {
        false => None,
        true => Some(gateway.guest_questions.try_enter(ALL_GUEST_QUESTIONS).ok_or_else(|| {
            End::because(Code::Limit, format_args!("guests ask at most {ALL_GUEST_QUESTIONS} questions at once; try again"))
        })?),
    };
    let timeout = Duration::from_millis(u64::from(ask.timeout_ms));
    let parts = call(&gateway.participant, ask.service, ask.question.to_vec(), timeout).map_err(|why| end_of(&why))?;
    let cancelled = Arc::new(AtomicBool::new(false));
    session.entries.lock().insert(id, Entry::Question(cancelled.clone()));
    let (session, all) = (session.clone(), ask.all);
    let by_part = rights::has_rights_by_part(ask.service, ask.question).then(|| (gateway.clone(), ask.service.to_owned()));
    WorkerThread::named("gateway question")
        .stack_size(256 << 10)
        .spawn(OnPanic::ReportOnly, move || {
            let may_have = |content: &[u8]| {
                by_part.as_ref().is_none_or(|(gateway, service)| may_read_or_set(&session, gateway, service, content))
            };
            let end = answer(&session, id, parts, all, may_have, &cancelled);
            // A refusal may name a resource that such an answer leaves out.
            let end = if by_part.is_some() && end.code == Code::Done { End::default() } else { end };
            drop(place);
            // The client that has cancelled has its end already.
            if !cancelled.load(Ordering::Acquire) && session.remove(id).is_some() {
                session.send_end(id, &end);
            }
        })
        .map(drop)
        .map_err(|why| End::because(Code::Failed, why))
}

fn may_read_or_set(session: &Session, gateway: &GatewayShared, service: &str, content: &[u8]) -> bool {
    let may = |verb, resource: &Resource| session.may(gateway, verb, resource);
    rights::of_part(service, content).is_some_and(|of| may(Verb::Read, &of) || may(Verb::Set, &of))
}

fn answer(session: &Session, id: u32, parts: Parts, all: bool, may_have: impl Fn(&[u8]) -> bool, cancelled: &AtomicBool) -> End {
    let (mut first, mut answered, mut refused) = (None, false, None);
    for part in parts {
        let part = match part {
            Ok(part) => part,
            // Another process that hangs does not hide the reason of the one that refused.
            Err(CallError::Unanswered(_)) if refused.is_some() && !answered => break,
            Err(why) => return end_of(&why),
        };
        if part.content.as_ref().is_ok_and(|content| !may_have(content)) {
            continue;
        }
        if !all && *first.get_or_insert(part.from) != part.from {
            continue;
        }
        let content = match part.content {
            Ok(content) => content,
            Err(why) if !all => return end_of(&why),
            // The refusal of one process does not end the answers of the others.
            Err(why) => {
                refused.get_or_insert(why);
                continue;
            }
        };
        if content.len() + 16 > session.frame_limit {
            return End::because(Code::Limit, format_args!("a part of {} bytes is longer than the client takes", content.len()));
        }
        let mut body = part.from.to_bytes().to_vec();
        body.extend_from_slice(&content);
        let wanted = || !cancelled.load(Ordering::Acquire);
        if session.outgoing.send_in_window(Kind::Part, 0, id, &body, wanted).is_err() {
            break;
        }
        answered = true;
    }
    // A client that got no answer at all learns the reason.
    match refused {
        Some(why) if !answered => End { code: Code::Done, ..end_of(&why) },
        _ => End::default(),
    }
}

/// Returns the end of a question that failed.
fn end_of(why: &CallError) -> End {
    let code = match why {
        CallError::Unanswered(_) => Code::Unanswered,
        CallError::Denied(_) => Code::Denied,
        CallError::NotSent { .. } => Code::Bad,
        _ => Code::Failed,
    };
    let denied = match why {
        CallError::Denied(denied) => serde_json::to_value(denied).ok(),
        _ => None,
    };
    End { code, error: why.to_string(), denied }
}
