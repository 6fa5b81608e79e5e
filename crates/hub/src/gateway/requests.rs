//! Frames of a client, in their order.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tampu_bus::access::{Resource, Verb};
use tampu_types::gateway::{
    BadFrame, Frame, Kind,
    frame::FLAG_AT_ONCE,
    messages::{Code, Declare, End, Open, Serve},
    question::{Answer, Ask},
};

use super::{
    attributes,
    limits::{GUEST_PUBLISHERS, PUBLISHERS},
    publisher::PublishError,
    questions,
    read_callback::ReadCallback,
    served,
    service::Service,
    session::{Entry, Session},
    shared::{GatewayShared, count},
    topics,
};

/// The receiver of an answer.
enum Answered {
    Service(Arc<Service>),
    Read(Arc<ReadCallback>),
}

/// End of a connection.
#[derive(Debug)]
pub(super) enum Fault {
    /// The session ends with this reason.
    Session(End),
    /// Another connection has taken over.
    Replaced,
}

fn protocol(why: impl std::fmt::Display) -> Fault {
    Fault::Session(End::because(Code::Protocol, why))
}

impl From<BadFrame> for Fault {
    fn from(why: BadFrame) -> Fault {
        protocol(why)
    }
}

/// Processes a frame of a client on this connection.
pub(super) fn process(
    session: &Arc<Session>,
    gateway: &Arc<GatewayShared>,
    connection: u64,
    frame: &Frame<'_>,
) -> Result<(), Fault> {
    let kind = frame.header.kind;
    match kind {
        Kind::Ack => {
            let number = frame.value()?;
            return match session.outgoing.acknowledge(number) {
                true => Ok(()),
                false => Err(protocol(format_args!("frame {number} was acknowledged and never sent"))),
            };
        }
        Kind::Bye => return Err(Fault::Session(End::default())),
        _ if !kind.is_of_client() || !kind.is_counted() => {
            return Err(protocol(format_args!("a client does not send {} here", kind.name())));
        }
        _ => {}
    }
    let mut incoming = session.incoming.lock();
    if !session.outgoing.is_present(connection) {
        return Err(Fault::Replaced);
    }
    let number = frame.header.number;
    if number <= incoming.received {
        return Ok(());
    }
    if number != incoming.received + 1 {
        let wanted = incoming.received + 1;
        return Err(protocol(format_args!("frame {number} came instead of frame {wanted}")));
    }
    if frame.header.id == 0 {
        return Err(protocol(format_args!("{} has the id 0", kind.name())));
    }
    count(&gateway.counters.frames);
    request(session, gateway, frame)?;
    incoming.received = number;
    Ok(())
}

fn request(session: &Arc<Session>, gateway: &Arc<GatewayShared>, frame: &Frame<'_>) -> Result<(), Fault> {
    let (id, body) = (frame.header.id, frame.body);
    let done = match frame.header.kind {
        Kind::Open => {
            unused(session, id)?;
            message::<Open>(body).and_then(|open| self::open(session, gateway, id, &open))
        }
        Kind::Declare => {
            unused(session, id)?;
            message::<Declare>(body).and_then(|declare| self::declare(session, gateway, id, &declare))
        }
        Kind::Ask => {
            unused(session, id)?;
            questions::ask(session, gateway, id, &Ask::decode(body)?)
        }
        Kind::Serve => {
            unused(session, id)?;
            message::<Serve>(body).and_then(|serve| served::open(session, gateway, id, &serve))
        }
        Kind::Answer => {
            let answer = Answer::decode(body)?;
            let answered = match session.entries.lock().get(&id) {
                Some(Entry::Service(service)) => Some(Answered::Service(service.clone())),
                Some(Entry::Read(read)) => Some(Answered::Read(read.clone())),
                // It has ended while the frame was under way.
                _ => None,
            };
            match answered {
                Some(Answered::Service(service)) => service.answer(frame.header.flags, &answer),
                Some(Answered::Read(read)) => read.answer(frame.header.flags, &answer),
                None => {}
            }
            Ok(())
        }
        Kind::Credit => {
            let total = frame.value()?;
            if let Some(Entry::Subscription(subscription)) = session.entries.lock().get(&id) {
                subscription.grant(total);
            }
            Ok(())
        }
        Kind::Publish => publish(session, frame)?,
        _ => {
            if let Some(entry) = session.remove(id) {
                session.stop(entry);
                session.send_end(id, &End::default());
            }
            Ok(())
        }
    };
    if let Err(end) = done {
        count(&gateway.counters.refused);
        if let Some(entry) = session.remove(id) {
            session.stop(entry);
        }
        session.send_end(id, &end);
    }
    Ok(())
}

fn unused(session: &Session, id: u32) -> Result<(), Fault> {
    match session.entries.lock().contains_key(&id) {
        true => Err(protocol(format_args!("the id {id} is in use"))),
        false => Ok(()),
    }
}

fn message<T: DeserializeOwned>(body: &[u8]) -> Result<T, End> {
    serde_json::from_slice(body).map_err(|why| End::because(Code::Bad, why))
}

fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, open: &Open) -> Result<(), End> {
    match (open.topics.is_empty(), open.attributes.is_empty()) {
        (false, _) => topics::open(session, gateway, id, open),
        (true, false) => attributes::open(session, gateway, id, open),
        (true, true) => Err(End::because(Code::Bad, "OPEN has neither topics nor attributes")),
    }
}

fn declare(session: &Arc<Session>, gateway: &GatewayShared, id: u32, declare: &Declare) -> Result<(), End> {
    let most = if session.is_guest() { GUEST_PUBLISHERS } else { PUBLISHERS };
    if session.counts().publishers >= most {
        return Err(End::because(Code::Limit, format_args!("a session has at most {most} publishers")));
    }
    session.require(gateway, Verb::Write, &Resource::Source(session.source.to_string()))?;
    if let Some(topic) = &declare.topic {
        session.require(gateway, Verb::Write, &Resource::Topic(topic.clone()))?;
    }
    if let Some(config) = &declare.attribute {
        session.require(gateway, Verb::Write, &Resource::Attribute(config.name.to_string()))?;
    }
    let (publisher, opened) = session.publishers.open(id, declare, &session.source, &gateway.join)?;
    session.entries.lock().insert(id, Entry::Publisher(publisher));
    // A closed session has nobody to hear it.
    let _ = session.send_json(Kind::Opened, id, &opened);
    Ok(())
}

fn publish(session: &Session, frame: &Frame<'_>) -> Result<Result<(), End>, Fault> {
    let publisher = match session.entries.lock().get(&frame.header.id) {
        Some(Entry::Publisher(publisher)) => publisher.clone(),
        // It has ended while the frame was under way.
        _ => return Ok(Ok(())),
    };
    let at_once = frame.header.flags & FLAG_AT_ONCE != 0;
    match session.publishers.publish(&publisher, frame.body, at_once) {
        Ok(()) => Ok(Ok(())),
        Err(PublishError::Malformed) => Err(BadFrame::Body("publish").into()),
        Err(PublishError::Ended(end)) => Ok(Err(end)),
    }
}
