//! Subscriptions of attributes: the gateway is the subscriber, and passes the events on as they came.
//!
//! ```text
//! client of events -> put (its worker) -> queue, bounded in bytes -> take -> EVENTS, NOTICE, ATTRIBUTE
//!                                          '-- full: the worker waits, and so the servers
//! ```
//! Decision: a reliable subscription has readers of its own, because only they can wait for a slow client. What it has not
//! read waits in its servers' caches, as for any slow reader of the bus. An unreliable one shares its readers with other
//! sessions. They must not wait, so its full queue drops the oldest events and reports them. Rejected: to drop events of
//! shared readers and to fetch them from the caches again. That holds no server back, so a server that is faster than its
//! client loses events for good.

use std::{sync::Arc, time::Duration};

use tampu_bus::access::{Resource, Verb};
use tampu_event::client::{Filter, SubscribeOptions};
use tampu_types::{
    event::{EventKind, Kinds},
    gateway::{
        Kind,
        messages::{Code, End, From, Open, Opened},
    },
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    event_queue::EventQueue,
    limits::OWN_READERS,
    session::{Entry, Readable, Session},
    shared::{GatewayShared, count},
    subscription::Subscription,
    topics::{enter, leave},
};

/// Longest sleep of a worker without an event. The end of its subscription wakes it.
const IDLE: Duration = Duration::from_secs(60);

/// Opens a subscription of attributes.
pub(super) fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, open: &Open) -> Result<(), End> {
    let bad = |why: &dyn std::fmt::Display| End::because(Code::Bad, why);
    if open.partitions.is_some() || open.query.is_some() || open.since.is_some() || open.from != From::Now {
        return Err(bad(&"partitions, query, since and from do not go with attributes"));
    }
    for pattern in &open.attributes {
        session.require(gateway, Verb::Read, &Resource::Attribute(pattern.to_string()))?;
    }
    let mut options = options_of(open).map_err(|why| bad(&why))?;
    let client = gateway.events().map_err(|why| End::because(Code::Failed, why))?;
    enter(session, gateway, 1)?;
    let subscription = Arc::new(Subscription::new(open.credit.unwrap_or(0)));
    // Beyond the bound the events of a slow client are dropped, and reported.
    let place = if options.reliable { gateway.own_readers.try_enter(OWN_READERS) } else { None };
    options.alone = place.is_some();
    let queue = Arc::new(EventQueue::new(session.frame_limit, options.alone));
    subscription.at_end({
        let queue = queue.clone();
        move || queue.wake()
    });
    let mut readable = Readable::default();
    let subscribed = client.subscribe(options, {
        let (queue, session, gateway) = (queue.clone(), session.clone(), gateway.clone());
        move |event| {
            let name = event.attribute.config.name.as_str();
            if readable.check(&session, &gateway, name, Resource::Attribute) && queue.put(event) {
                count(&gateway.counters.dropped);
            }
        }
    });
    session.entries.lock().insert(id, Entry::Subscription(subscription.clone()));
    // The client hears of the subscription before it hears of its attributes.
    let _ = session.send_json(Kind::Opened, id, &Opened::default());
    let (session, gateway) = (session.clone(), gateway.clone());
    WorkerThread::named("gateway attributes")
        .stack_size(256 << 10)
        .spawn(OnPanic::ReportOnly, move || {
            let _close = CloseAtEnd(&queue);
            run(&session, id, &subscription, &queue);
            drop(subscribed);
            drop(place);
            leave(&session, &gateway, 1);
        })
        .map(drop)
        .map_err(|why| End::because(Code::Failed, why))
}

/// Ends a queue, also after a failure of its worker: the readers must not wait for ever.
struct CloseAtEnd<'a>(&'a EventQueue);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn options_of(open: &Open) -> Result<SubscribeOptions, String> {
    let mut options = SubscribeOptions::of(open.attributes.iter().cloned());
    if let Some(kinds) = &open.kinds {
        let kinds: Result<Kinds, _> = kinds.iter().map(|kind| kind.parse::<EventKind>()).collect();
        options.kinds = kinds.map_err(|why| why.to_string())?;
    }
    options.first = open.first.unwrap_or(true);
    options.reliable = open.reliable.unwrap_or(true);
    if let Some(filter) = &open.filter {
        options.filter = serde_json::from_value::<Filter>(filter.clone()).map_err(|why| format!("filter: {why}"))?;
    }
    Ok(options)
}

fn run(session: &Session, id: u32, subscription: &Subscription, queue: &EventQueue) {
    while !subscription.is_stopped() {
        if !subscription.await_credit(IDLE) {
            continue;
        }
        for (kind, body) in queue.take(IDLE, || subscription.is_stopped()) {
            let wanted = || !subscription.is_stopped();
            if session.outgoing.send_in_window(kind, 0, id, &body, wanted).is_err() {
                return;
            }
            if kind == Kind::Events {
                subscription.spend(body.len());
            }
        }
    }
}
