//! SERVE: checks the names and rights of a service that a client wants to answer.

use std::sync::Arc;

use tampu_bus::access::{Resource, Verb};
use tampu_types::{
    TopicName,
    gateway::{
        Kind,
        messages::{Code, End, Opened, Serve},
    },
};

use super::{
    limits::SERVICES,
    reads,
    service::{Service, ServicePlace, time_of},
    session::{Entry, Session},
    shared::GatewayShared,
};

/// Beginnings of the names of services that programs of this project answer.
const RESERVED: [&str; 5] = ["log/", "event/", "hub/", "site/", "bulk/"];
/// Service whose questions name an offer; clients may answer it.
const OFFERS: &str = "bulk/control";
/// Service by which receivers of bulk data give passes; the hub adds the session's incarnation and the receiver's number.
const PASSES: &str = "bulk/pass";
/// Longest name of an offer, in bytes.
const NAME: usize = 200;

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
    if wanted.read.is_some() {
        return reads::open(session, gateway, id, wanted);
    }
    if wanted.fresh_ms.is_some() || wanted.poll_ms.is_some() {
        return Err(bad(&"`fresh_ms` and `poll_ms` need `read`"));
    }
    if session.counts().services >= SERVICES {
        return Err(End::because(Code::Limit, format_args!("a session answers at most {SERVICES} services")));
    }
    let gives_passes = wanted.service == PASSES;
    let topic = TopicName::new(&wanted.service).map_err(|why| bad(&why))?;
    let of_offers = topic.as_str() == OFFERS;
    if !of_offers && !gives_passes && RESERVED.iter().any(|start| topic.as_str().to_ascii_lowercase().starts_with(start)) {
        return Err(bad(&format_args!("the service {topic} is one of the hub's own; choose a name that does not begin like it")));
    }
    let resource = match &wanted.name {
        Some(name) if name.is_empty() || name.len() > NAME || name.chars().any(|each| each.is_control() || each == '#') => {
            let why = "give 1 to 200 bytes without control characters and '#'";
            return Err(bad(&format_args!("invalid name '{}' of an offer: {why}", name.escape_debug())));
        }
        Some(name) => Resource::Service(format!("{topic}/{name}")),
        None if gives_passes => return Err(bad(&format_args!("{PASSES} needs the stream as `name`"))),
        None if of_offers => return Err(bad(&format_args!("{OFFERS} needs the `name` of the offer"))),
        None => Resource::Service(topic.to_string()),
    };
    let time = time_of(wanted)?;
    session.require(gateway, Verb::Write, &Resource::Source(session.source.to_string()))?;
    session.require(gateway, Verb::Write, &resource)?;
    let participant = session.publishers.join(&session.source, &gateway.join)?;
    let opened = Opened {
        incarnation: Some(participant.incarnation()),
        proved: gives_passes && participant.host().is_some(),
        ..Opened::default()
    };
    let (service, asked) = match (gives_passes, wanted.receiver, &wanted.name) {
        (true, Some(receiver), Some(stream)) => {
            let name = TopicName::new(format!("{PASSES}/{}/{receiver}", participant.incarnation())).map_err(|why| bad(&why))?;
            // The rules of the receiver's own host decide, as for every other receiver.
            (name, Some((Verb::Send, Resource::Bulk(stream.clone()))))
        }
        (true, ..) => return Err(bad(&format_args!("{PASSES} needs the number of the `receiver`"))),
        (false, Some(_), _) => return Err(bad(&format_args!("`receiver` is for {PASSES} only"))),
        (false, None, _) => (topic, None),
    };
    // The client hears of the service before it hears of its first question. A closed session has nobody to hear it.
    let _ = session.send_json(Kind::Opened, id, &opened);
    let of = Arc::downgrade(session);
    let place = ServicePlace {
        id,
        service,
        name: wanted.name.clone(),
        asked,
        time,
        outgoing: session.outgoing.clone(),
        is_detached: Box::new(move || of.upgrade().is_none_or(|session| session.detached_since().is_some())),
        gateway: gateway.clone(),
    };
    let service = Service::open(&participant, place).map_err(|why| End::because(Code::Failed, why))?;
    session.entries.lock().insert(id, Entry::Service(Arc::new(service)));
    Ok(())
}
