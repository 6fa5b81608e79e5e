//! SERVE with `read`: begins to ask a client for readings of an attribute that it publishes.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use tampu_types::gateway::{
    Kind,
    messages::{Code, End, Opened, Serve},
};

use super::{
    limits::READS,
    read_callback::{Asking, ReadCallback},
    service::time_of,
    session::{Entry, Session},
    shared::GatewayShared,
};

/// Longest age and longest period that a client may set, in ms.
const LONGEST_MS: u32 = 86_400_000;

/// Begins to ask the client for readings of the attribute of a publisher.
pub(super) fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, wanted: &Serve) -> Result<(), End> {
    let bad = |why: std::fmt::Arguments<'_>| End::because(Code::Bad, why);
    let (of, time) = (wanted.read.unwrap_or_default(), time_of(wanted)?);
    if session.counts().reads >= READS {
        return Err(End::because(Code::Limit, format_args!("a session has at most {READS} read callbacks")));
    }
    if !wanted.service.is_empty() || wanted.name.is_some() {
        return Err(bad(format_args!("SERVE has either a service or `read`")));
    }
    let (is_poll, ms) = match (wanted.fresh_ms, wanted.poll_ms) {
        (Some(ms), None) => (false, ms),
        (None, Some(ms)) => (true, ms),
        _ => return Err(bad(format_args!("give either `fresh_ms` or `poll_ms` with `read`"))),
    };
    if ms > LONGEST_MS || (is_poll && ms == 0) {
        return Err(bad(format_args!("{ms} ms are out of range: give at most {LONGEST_MS} ms")));
    }
    let publisher = match session.entries.lock().get(&of) {
        Some(Entry::Publisher(publisher)) => publisher.clone(),
        _ => return Err(bad(format_args!("{of} is no publisher of this session"))),
    };
    let Some(attribute) = publisher.attribute() else {
        return Err(bad(format_args!("publisher {of} has a topic; only attributes are read")));
    };
    let has_one = |other: &Arc<ReadCallback>| other.is_poll == is_poll && other.asking.is_of(&publisher);
    if session.reads().iter().any(has_one) {
        return Err(bad(format_args!("publisher {of} has such a callback already")));
    }
    // The client hears of its callback before its first question. A closed session has nobody to hear it.
    let opened = Opened { incarnation: session.participant().map(|participant| participant.incarnation()), ..Opened::default() };
    let _ = session.send_json(Kind::Opened, id, &opened);
    let of_session = Arc::downgrade(session);
    let asking = Arc::new(Asking {
        id,
        time,
        publisher: Arc::downgrade(&publisher),
        outgoing: session.outgoing.clone(),
        is_detached: Box::new(move || of_session.upgrade().is_none_or(|session| session.detached_since().is_some())),
        gateway: gateway.clone(),
        next: AtomicU64::new(1),
        under_way: Mutex::default(),
    });
    let own = asking.clone();
    match is_poll {
        true => attribute.poll(ms, move |_| own.ask(None)),
        false => attribute.on_read_asked(Duration::from_millis(ms.into()), move |read| own.ask(Some(read))),
    }
    session.entries.lock().insert(id, Entry::Read(Arc::new(ReadCallback { asking, is_poll })));
    Ok(())
}
