//! SERVE: checks the names and rights of a service that a client wants to answer.

use std::{sync::Arc, time::Duration};

use tampu_bus::access::{Resource, Verb};
use tampu_types::{
    TopicName,
    gateway::{
        Kind,
        messages::{Code, End, Opened, Serve},
    },
};

use super::{
    limits::{ANSWER_TIME, SERVICES},
    service::{Service, ServicePlace},
    session::{Entry, Session},
    shared::GatewayShared,
};

/// Beginnings of the names of services that programs of this project answer.
const RESERVED: [&str; 5] = ["log/", "event/", "hub/", "site/", "bulk/"];
/// Service whose questions name an offer; clients may answer it.
const OFFERS: &str = "bulk/control";
/// Longest name of an offer, in bytes.
const NAME: usize = 200;
/// Longest and shortest time for an answer that a client may set, in ms.
const TIMES: std::ops::RangeInclusive<u32> = 1000..=600_000;

/// Begins to answer a service of the bus through the client.
pub(super) fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, wanted: &Serve) -> Result<(), End> {
    let bad = |why: &dyn std::fmt::Display| End::because(Code::Bad, why);
    if !session.serves {
        return Err(bad(&"SERVE needs the feature `serve` in HELLO"));
    }
    // Bounds for guests would have to be small, and nobody has asked for services of visitors without a login.
    if session.is_guest() {
        return Err(End::because(Code::Denied, "a guest answers no services"));
    }
    if session.counts().services >= SERVICES {
        return Err(End::because(Code::Limit, format_args!("a session answers at most {SERVICES} services")));
    }
    let topic = TopicName::new(&wanted.service).map_err(|why| bad(&why))?;
    let of_offers = topic.as_str() == OFFERS;
    if !of_offers && RESERVED.iter().any(|start| topic.as_str().to_ascii_lowercase().starts_with(start)) {
        return Err(bad(&format_args!("the service {topic} is one of the hub's own; choose a name that does not begin like it")));
    }
    let resource = match &wanted.name {
        Some(name) if name.is_empty() || name.len() > NAME || name.chars().any(|each| each.is_control() || each == '#') => {
            let why = "give 1 to 200 bytes without control characters and '#'";
            return Err(bad(&format_args!("invalid name '{}' of an offer: {why}", name.escape_debug())));
        }
        Some(name) => Resource::Service(format!("{topic}/{name}")),
        None if of_offers => return Err(bad(&format_args!("{OFFERS} needs the `name` of the offer"))),
        None => Resource::Service(topic.to_string()),
    };
    let time_ms = wanted.time_ms.unwrap_or(ANSWER_TIME);
    if !TIMES.contains(&time_ms) {
        return Err(bad(&format_args!("`time_ms` is {time_ms}: give {} to {} ms", TIMES.start(), TIMES.end())));
    }
    session.require(gateway, Verb::Write, &Resource::Source(session.source.to_string()))?;
    session.require(gateway, Verb::Write, &resource)?;
    let participant = session.publishers.join(&session.source, &gateway.join)?;
    let opened = Opened { incarnation: Some(participant.incarnation()), stream: None };
    // The client hears of the service before it hears of its first question. A closed session has nobody to hear it.
    let _ = session.send_json(Kind::Opened, id, &opened);
    let of = Arc::downgrade(session);
    let place = ServicePlace {
        id,
        service: topic,
        name: wanted.name.clone(),
        time: Duration::from_millis(u64::from(time_ms)),
        outgoing: session.outgoing.clone(),
        is_detached: Box::new(move || of.upgrade().is_none_or(|session| session.detached_since().is_some())),
        gateway: gateway.clone(),
    };
    let service = Service::open(&participant, place).map_err(|why| End::because(Code::Failed, why))?;
    session.entries.lock().insert(id, Entry::Service(Arc::new(service)));
    Ok(())
}
