//! The services of a server. Questions arrive on the engine's workers, which must not wait; they are put into a queue, and the
//! keeper answers them.

use std::sync::Arc;

use serde::Serialize;
use tampu_bus::{
    BusError, ReaderState,
    access::{Principal, Resource, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, serve},
};
use tampu_types::{
    ClockState, Incarnation, TopicName,
    event::{AttributePattern, EventView, Thresholds},
};

use super::{
    host_route::{WISHES, Wish},
    host_stream::HostStream,
    published::PublishedAttribute,
    questions::QuestionKind,
    reads,
    server_state::ServerState,
};
use crate::{
    ask::{Change, Described, Facts, Get, PART, Part, Question, Refresh, Subscriber},
    topics,
};

/// Most questions that wait for the keeper, of all services together. Further ones are refused.
const WAITING: usize = 4096;
/// Longest question in bytes: tens of thousands of names.
const QUESTION: usize = 4 << 20;
/// Longest answer in bytes: a million descriptions.
const ANSWER: usize = 1 << 30;

/// Declares the services; they end with the guards.
pub(super) fn declare(shared: &Arc<ServerState>) -> Result<Vec<Guard>, BusError> {
    let all = [
        (topics::refresh(shared.participant.incarnation())?, QuestionKind::Refresh),
        (TopicName::new(topics::LIST)?, QuestionKind::List),
        (TopicName::new(topics::GET)?, QuestionKind::Get),
        (TopicName::new(topics::CONF)?, QuestionKind::Conf),
        (TopicName::new(topics::DOCTOR)?, QuestionKind::Doctor),
    ];
    let limits = Limits { at_once: WAITING, question: QUESTION, answer: ANSWER, ..Limits::inline() };
    let declare = |(name, service): (TopicName, QuestionKind)| {
        // Weak, because the participant holds the handler and the server the participant.
        let server = Arc::downgrade(shared);
        let handler = move |request: Request| {
            let Some(shared) = server.upgrade() else { return };
            shared.services.waiting.lock().push_back((service, request));
            shared.keeper.open();
        };
        let permission = match service {
            // The rights depend on the attributes of the question.
            QuestionKind::Conf | QuestionKind::Get | QuestionKind::Refresh => {
                Permission::ByHandler(shared.settings.access.clone())
            }
            QuestionKind::List | QuestionKind::Doctor => Permission::Verb(shared.settings.access.clone(), Verb::Read),
        };
        serve(&shared.participant, &name, permission, &limits, handler)
    };
    all.into_iter().map(declare).collect()
}

/// Answers one question. Returns false if none waits.
pub(super) fn answer_one(shared: &Arc<ServerState>) -> bool {
    let Some((service, request)) = shared.services.waiting.lock().pop_front() else { return false };
    match service {
        QuestionKind::Refresh => refresh(shared, &request),
        QuestionKind::List => list(shared, &request),
        QuestionKind::Get => get(shared, request),
        QuestionKind::Conf => conf(shared, &request),
        QuestionKind::Doctor => doctor(shared, &request),
    }
    true
}

fn refresh(shared: &ServerState, request: &Request) {
    let Ok(asked) = request.json::<Refresh>() else { return };
    if asked.names {
        shared.declare_all(&mut shared.table.lock(), 0);
    }
    let find = |attribute: u32| shared.table.lock().by_index.get(attribute as usize).cloned().flatten();
    let elsewhere = asked.reader.map(|reader| (reader, asked.token));
    if let Some(reader) = elsewhere {
        // Tokens can be guessed, so only the host of a process may end its wishes.
        if !is_of_asking_host(shared, request, reader.0) {
            return;
        }
        asked.released.iter().filter_map(|&attribute| find(attribute)).for_each(|inner| inner.release(|other| other == reader));
    }
    let wants_some = elsewhere.filter(|_| !asked.attributes.is_empty());
    let stream = wants_some.and_then(|reader| host_stream(shared, reader.0));
    if elsewhere.is_some() && stream.is_none() {
        // Nothing is wanted; or the process is not known here yet, and the asker repeats its question.
        return;
    }
    let (wish, mut has_too_many) = (Wish::of(&asked.wanted), false);
    for inner in asked.attributes.iter().filter_map(|&attribute| find(attribute)) {
        if !request.may(Verb::Read, &resource(&inner)) {
            continue;
        }
        match (&stream, elsewhere) {
            (Some(stream), Some(reader)) if inner.out.for_hosts => {
                has_too_many |= !inner.refresh_for(stream, reader, &wish, asked.from_start, &shared.clock);
            }
            _ => inner.refresh(asked.token, shared.clock.monotonic()),
        }
        if inner.out.own {
            inner.out.writer.send_now();
        }
    }
    match stream {
        Some(stream) => stream.writer.send_now(),
        None => shared.shared_writer.send_now(),
    }
    if has_too_many {
        return request.refuse(format_args!("a process has at most {WISHES} tokens for an attribute; release some"));
    }
    // The values go through the streams; this only ends the question.
    request.part(b"{}");
}

/// Returns whether a process is on the host that asks, as far as hosts prove their names.
fn is_of_asking_host(shared: &ServerState, request: &Request, process: Incarnation) -> bool {
    let host = match request.asker() {
        Some(Principal::Host(host)) => Some(host.as_str()),
        _ => None,
    };
    shared.participant.speaks_for(host, process)
}

/// Returns the stream for the host of a reader, if the reader is present.
fn host_stream(shared: &ServerState, reader: Incarnation) -> Option<Arc<HostStream>> {
    let participant = &shared.participant;
    if !participant.is_present(reader) {
        return None;
    }
    // Without a stream the asker gets no value, and repeats its question.
    shared.hosts.for_process(participant, reader, &shared.settings.shared, &shared.shared_writer).ok()
}

/// Decodes the question; returns `None` if it was malformed and has been refused.
fn read(request: &Request) -> Option<Question> {
    request.json_or_default().inspect_err(|error| request.refuse(error)).ok()
}

fn send_all<T: Serialize + Clone>(shared: &ServerState, request: &Request, attributes: &[T]) {
    for attributes in attributes.chunks(PART) {
        let part = Part { source: shared.participant.source().to_string(), attributes: attributes.to_vec() };
        // Plain structs always have a JSON. Each part is a whole one.
        if !request.part(&serde_json::to_vec(&part).unwrap_or_default()) {
            return;
        }
    }
}

fn matching(shared: &ServerState, pattern: Option<&AttributePattern>) -> Vec<Arc<PublishedAttribute>> {
    shared.matching(|name| pattern.is_none_or(|pattern| pattern.matches(name)))
}

fn list(shared: &ServerState, request: &Request) {
    if let Some(asked) = read(request) {
        describe(shared, request, &asked);
    }
}

fn describe(shared: &ServerState, request: &Request, asked: &Question) {
    let described = |inner: &Arc<PublishedAttribute>| {
        let state = inner.state.lock();
        let (epoch, number, quality) = (state.epoch, state.number, state.quality);
        Described { config: (*state.config).clone(), epoch, number, quality, taken_by: inner.taken_by() }
    };
    let all: Vec<Described> = matching(shared, asked.pattern.as_ref()).iter().map(described).collect();
    send_all(shared, request, &all);
}

fn get(shared: &Arc<ServerState>, request: Request) {
    let Ok(asked) = request.json::<Get>() else { return };
    let mut found = Vec::new();
    for name in asked.names {
        let inner = {
            let table = shared.table.lock();
            table.by_name.get(name.folded()).and_then(|&index| table.by_index.get(index as usize).cloned().flatten())
        };
        let Some(inner) = inner.filter(|inner| inner.taken_by().is_none()) else { continue };
        if let Err(denied) = request.require_for(Verb::Read, &resource(&inner)) {
            return request.deny(denied);
        }
        found.push(inner);
    }
    reads::answer(shared, request, found);
}

fn resource(inner: &PublishedAttribute) -> Resource {
    Resource::Attribute(inner.name.to_string())
}

fn conf(shared: &ServerState, request: &Request) {
    let Some(asked) = read(request) else { return };
    if let Some(set) = asked.set {
        let all = matching(shared, asked.pattern.as_ref());
        let denied = all.iter().find_map(|inner| request.require_for(Verb::Set, &resource(inner)).err());
        if let Some(denied) = denied {
            return request.deny(denied);
        }
        let pushed = all.iter().find(|inner| set.polled_ms.is_some() && inner.state.lock().config.polled_ms.is_none());
        if let Some(inner) = pushed {
            return request.refuse(format_args!("{} is not polled: its server's code pushes it", inner.name));
        }
        for inner in all {
            change(shared, &inner, set);
            request.carried_out(Verb::Set, inner.name.as_str());
        }
    }
    describe(shared, request, &asked);
}

fn change(shared: &ServerState, inner: &Arc<PublishedAttribute>, set: Change) {
    shared.reconfigure(inner, |config| {
        if let Some(criteria) = set.criteria {
            config.criteria = criteria;
        }
        if let Some(polled_ms) = set.polled_ms {
            config.polled_ms = Some(polled_ms.max(1));
        }
    });
}

fn doctor(shared: &ServerState, request: &Request) {
    let Some(asked) = read(request) else { return };
    let now = shared.clock.utc();
    let clock = match shared.clock.discipline().state {
        ClockState::Synchronised => "synchronised",
        ClockState::Free => "free",
        ClockState::Stepped => "stepped",
        ClockState::Unknown => "unknown",
    };
    let facts = |inner: &Arc<PublishedAttribute>| {
        let subscriber = |(reader, written): (tampu_bus::ReaderStatus, u64)| Subscriber {
            source: reader.source,
            state: match reader.state {
                ReaderState::Live => "live",
                ReaderState::CatchingUp => "catching up",
                ReaderState::Lagging => "lagging",
                ReaderState::Gone => "gone",
            }
            .to_owned(),
            behind: if reader.reliable { written.saturating_sub(reader.acked) } else { 0 },
            at: Some(reader.acked),
            lost: reader.lost,
        };
        let subscribers = inner.readers().into_iter().map(subscriber).collect();
        let state = inner.state.lock();
        let by_value = |thresholds: &Thresholds| !state.config.data_type.is_numeric() || !thresholds.is_empty();
        let failing = EventView::parse(&state.buffer).ok().and_then(|view| view.errors.first().cloned());
        Facts {
            name: inner.name.to_string(),
            polled_ms: state.config.polled_ms,
            change_by_value: by_value(&state.config.criteria.change),
            archive_by_value: by_value(&state.config.criteria.archive) || state.config.criteria.archive_period_ms.is_some(),
            criteria: state.config.criteria,
            pushes: state.pushes,
            pushed_at: state.pushed_at,
            held_back: state.held_back,
            number: state.number,
            failing: failing.map(|failure| format!("{}: {}", failure.reason, failure.description)),
            taken_by: inner.taken_by(),
            redundant: inner.options.redundant,
            subscribers,
            clock: clock.to_owned(),
            now,
        }
    };
    let all: Vec<Facts> = matching(shared, asked.pattern.as_ref()).iter().map(facts).collect();
    send_all(shared, request, &all);
}
