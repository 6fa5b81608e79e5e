//! What a server answers. Questions arrive on the engine's workers, which must not wait; they are put into a queue, and the
//! keeper answers them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use serde::Serialize;
use tampu_bus::{
    BusError, ReaderState,
    access::{Resource, Verb},
    engine::{Guard, Question},
};
use tampu_types::{
    ClockState, TopicName,
    event::{AttributePattern, EventView, Thresholds},
};

use super::{Inner, Shared, lock};
use crate::{
    ask::{self, Change, Described, Facts, Get, PART, Part, Refresh, Subscriber},
    topics,
};

/// How many questions may wait; what comes beyond is not answered, and its asker asks again.
const WAITING: usize = 4096;

#[derive(Debug, Clone, Copy)]
enum Service {
    Refresh,
    List,
    Get,
    Conf,
    Doctor,
}

#[derive(Default)]
pub(super) struct Services {
    waiting: Mutex<VecDeque<(Service, Box<dyn Question>)>>,
}

/// Declares the services; they end with the guards.
pub(super) fn declare(shared: &Arc<Shared>) -> Result<Vec<Guard>, BusError> {
    let all = [
        (topics::refresh(shared.participant.incarnation())?, Service::Refresh),
        (TopicName::new(topics::LIST)?, Service::List),
        (TopicName::new(topics::GET)?, Service::Get),
        (TopicName::new(topics::CONF)?, Service::Conf),
        (TopicName::new(topics::DOCTOR)?, Service::Doctor),
    ];
    let declare = |(name, service): (TopicName, Service)| {
        // Weak, because the participant holds the answerer and the server the participant.
        let shared = Arc::downgrade(shared);
        let answerer = Arc::new(move |question: Box<dyn Question>| {
            let Some(shared) = shared.upgrade() else { return };
            let mut waiting = lock(&shared.services.waiting);
            if waiting.len() < WAITING {
                waiting.push_back((service, question));
            }
            drop(waiting);
            shared.keeper.open();
        });
        (name, answerer)
    };
    all.map(declare).into_iter().map(|(name, answerer)| shared.participant.answer(&name, answerer)).collect()
}

impl Services {
    /// Answers one question; says whether there was one.
    pub fn answer_one(&self, shared: &Shared) -> bool {
        let Some((service, question)) = lock(&self.waiting).pop_front() else { return false };
        let question = question.as_ref();
        match service {
            Service::Refresh => refresh(shared, question),
            Service::List => described(shared, question, None),
            Service::Get => get(shared, question),
            Service::Conf => conf(shared, question),
            Service::Doctor => doctor(shared, question),
        }
        true
    }
}

fn refresh(shared: &Shared, question: &dyn Question) {
    let Ok(asked) = serde_json::from_slice::<Refresh>(question.payload()) else { return };
    if asked.names {
        shared.tell_all(&mut lock(&shared.table));
    }
    for attribute in asked.attributes {
        let inner = lock(&shared.table).by_index.get(attribute as usize).cloned().flatten();
        if let Some(inner) = inner {
            inner.refresh(asked.token);
            if inner.out.own {
                inner.out.writer.send_now();
            }
        }
    }
    shared.lane.send_now();
    // The values go through the streams; this only ends the question.
    let _ = question.reply(Bytes::from_static(b"{}"));
}

fn read(shared: &Shared, question: &dyn Question) -> Option<ask::Question> {
    if question.payload().is_empty() {
        return Some(ask::Question::default());
    }
    match serde_json::from_slice(question.payload()) {
        Ok(question) => Some(question),
        Err(error) => {
            refuse(shared, question, error.to_string());
            None
        }
    }
}

fn refuse(shared: &Shared, question: &dyn Question, error: String) {
    send(shared, question, &Part::<Facts> { error: Some(error), ..Part::default() });
}

fn send<T: Serialize + Clone>(shared: &Shared, question: &dyn Question, part: &Part<T>) {
    let part = Part { source: shared.participant.source().to_string(), ..part.clone() };
    let mut bytes = shared.participant.incarnation().to_bytes().to_vec();
    // These are plain structs, which always have a JSON.
    if serde_json::to_writer(&mut bytes, &part).is_ok() {
        // An asker that is gone needs no answer.
        let _ = question.reply(Bytes::from(bytes));
    }
}

fn send_all<T: Serialize + Clone>(shared: &Shared, question: &dyn Question, attributes: &[T]) {
    for attributes in attributes.chunks(PART) {
        send(shared, question, &Part { attributes: attributes.to_vec(), ..Part::default() });
    }
}

fn matching(shared: &Shared, pattern: Option<&AttributePattern>) -> Vec<Arc<Inner>> {
    shared.matching(|name| pattern.is_none_or(|pattern| pattern.matches(name)))
}

fn described(shared: &Shared, question: &dyn Question, asked: Option<ask::Question>) {
    let Some(asked) = asked.or_else(|| read(shared, question)) else { return };
    let describe = |inner: &Arc<Inner>| {
        let state = lock(&inner.state);
        let (epoch, number, quality) = (state.epoch, state.number, state.quality);
        Described { config: (*state.config).clone(), epoch, number, quality, taken_by: inner.taken_by() }
    };
    let all: Vec<Described> = matching(shared, asked.pattern.as_ref()).iter().map(describe).collect();
    send_all(shared, question, &all);
}

fn get(shared: &Shared, question: &dyn Question) {
    let Ok(asked) = serde_json::from_slice::<Get>(question.payload()) else { return };
    for name in asked.names {
        let inner = {
            let table = lock(&shared.table);
            table.by_name.get(name.folded()).and_then(|&index| table.by_index.get(index as usize).cloned().flatten())
        };
        let Some(inner) = inner.filter(|inner| inner.taken_by().is_none()) else { continue };
        let event = lock(&inner.state).refreshed(inner.index, 0);
        let mut part = shared.participant.incarnation().to_bytes().to_vec();
        // Names are checked to be far shorter.
        part.extend_from_slice(&(inner.name.as_str().len() as u16).to_le_bytes());
        part.extend_from_slice(inner.name.as_str().as_bytes());
        part.extend_from_slice(&event);
        let _ = question.reply(Bytes::from(part));
    }
}

fn conf(shared: &Shared, question: &dyn Question) {
    let Some(asked) = read(shared, question) else { return };
    if let Some(set) = asked.set {
        if let Err(denied) = shared.settings.access.ask(Verb::Change, &Resource::Service(topics::CONF.to_owned())) {
            let (error, denied) = (Some(denied.to_string()), Some(denied));
            return send(shared, question, &Part::<Described> { error, denied, ..Part::default() });
        }
        let all = matching(shared, asked.pattern.as_ref());
        let pushed = all.iter().find(|inner| set.polled_ms.is_some() && lock(&inner.state).config.polled_ms.is_none());
        if let Some(inner) = pushed {
            return refuse(shared, question, format!("{} is not polled: its server's code pushes it", inner.name));
        }
        for inner in all {
            change(shared, &inner, set);
        }
    }
    described(shared, question, Some(asked));
}

fn change(shared: &Shared, inner: &Arc<Inner>, set: Change) {
    shared.reconfigure(inner, |config| {
        if let Some(criteria) = set.criteria {
            config.criteria = criteria;
        }
        if let Some(polled_ms) = set.polled_ms {
            config.polled_ms = Some(polled_ms.max(1));
        }
    });
}

fn doctor(shared: &Shared, question: &dyn Question) {
    let Some(asked) = read(shared, question) else { return };
    let now = shared.clock.utc();
    let clock = match shared.clock.discipline().state {
        ClockState::Synchronised => "synchronised",
        ClockState::Free => "free",
        ClockState::Stepped => "stepped",
        ClockState::Unknown => "unknown",
    };
    let facts = |inner: &Arc<Inner>| {
        let writer = &inner.out.writer;
        let written = writer.stats().samples;
        let subscriber = |reader: tampu_bus::ReaderStatus| Subscriber {
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
        let subscribers = writer.readers().into_iter().map(subscriber).collect();
        let state = lock(&inner.state);
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
    send_all(shared, question, &all);
}
