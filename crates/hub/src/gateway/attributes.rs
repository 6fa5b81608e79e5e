//! Subscriptions of attributes: the gateway is the subscriber, and passes the events on as they came.
//!
//! ```text
//! client of events -> put (its worker, never waits) -> queue, bounded in bytes -> take -> EVENTS, NOTICE, ATTRIBUTE
//!                                                       '-- full: the oldest events are dropped, and told as gaps
//! ```
//! All sessions share one client of events, and so one reader for each server. Its workers must not wait for a slow
//! session, therefore each subscription has a queue.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tampu_bus::access::{Resource, Verb};
use tampu_event::client::{Event, Filter, SubscribeOptions};
use tampu_types::{
    Incarnation,
    event::{EventKind, Kinds, Missed, Reason, view::Routing},
    gateway::{
        Kind,
        events::{EventItem, events},
        messages::{AttributeIntro, Big, Code, End, From, Missing, Notice, Open, Opened},
    },
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    limits::EVENT_QUEUE,
    session::{Entry, Readable, Session},
    shared::{GatewayShared, count},
    subscription::Subscription,
    topics::{enter, leave},
};

/// Longest sleep of a worker without an event.
const IDLE: Duration = Duration::from_secs(5);
/// Bytes of events that share a frame.
const FRAME_BYTES: usize = 64 << 10;

/// Opens a subscription of attributes.
pub(super) fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, open: &Open) -> Result<(), End> {
    let bad = |why: &dyn std::fmt::Display| End::because(Code::Bad, why);
    if open.partitions.is_some() || open.query.is_some() || open.since.is_some() || open.from != From::Now {
        return Err(bad(&"partitions, query, since and from do not go with attributes"));
    }
    for pattern in &open.attributes {
        session.require(gateway, Verb::Read, &Resource::Attribute(pattern.to_string()))?;
    }
    let options = options_of(open).map_err(|why| bad(&why))?;
    let client = gateway.events().map_err(|why| End::because(Code::Failed, why))?;
    enter(session, gateway, 1)?;
    let subscription = Arc::new(Subscription::new(open.credit.unwrap_or(0)));
    let queue = Arc::new(EventQueue::new(session.frame_limit));
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
            run(&session, id, &subscription, &queue);
            drop(subscribed);
            leave(&session, &gateway, 1);
        })
        .map(drop)
        .map_err(|why| End::because(Code::Failed, why))
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

/// An item of the queue: events of one frame, or the body of another frame.
enum Item {
    Events(Vec<u8>),
    Json(Kind, Vec<u8>),
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    bytes: usize,
    /// Handle and epoch of each attribute.
    known: HashMap<(Incarnation, u32), (u32, u32)>,
    /// Ranges of dropped events, by handle.
    lost: BTreeMap<u32, (u64, u64)>,
}

/// Frames that wait for credit.
struct EventQueue {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    frame_limit: usize,
}

impl EventQueue {
    fn new(frame_limit: usize) -> EventQueue {
        EventQueue { waiting: Mutex::default(), ready: Condvar::new(), frame_limit }
    }

    /// Puts an event. Returns true if earlier ones were dropped for it.
    fn put(&self, event: &Event<'_>) -> bool {
        let mut waiting = self.waiting.lock();
        let handle = waiting.handle_of(event);
        let mut unknown_before = false;
        match (event.reason, event.missed) {
            (Reason::First | Reason::Update | Reason::Resumed, Missed::Exactly(from, to)) => {
                waiting.notice(handle, Reason::Gap, Some(Missing::Exactly(Big(from), Big(to))));
            }
            (_, Missed::Unknown) => unknown_before = true,
            _ => {}
        }
        if !event.reason.has_reading() {
            let missed = match event.missed {
                Missed::Exactly(from, to) => Some(Missing::Exactly(Big(from), Big(to))),
                Missed::Unknown => Some(Missing::Unknown("unknown".to_owned())),
                Missed::Nothing => None,
            };
            waiting.notice(handle, event.reason, missed);
        } else if EventItem::len_of(event.bytes().len()) > self.frame_limit {
            let number = event.number;
            waiting.notice(handle, Reason::Gap, Some(Missing::Exactly(Big(number), Big(number + 1))));
        } else {
            waiting.event(&EventItem {
                attribute: handle,
                reason: event.reason,
                unknown_before,
                sent: event.sent,
                received: event.received,
                event: event.bytes(),
            });
        }
        let has_dropped = waiting.shorten();
        self.ready.notify_one();
        has_dropped
    }

    /// Takes the next frames, and waits for them.
    fn take(&self, timeout: Duration, is_stopped: impl Fn() -> bool) -> Vec<(Kind, Vec<u8>)> {
        let mut waiting = self.waiting.lock();
        if waiting.items.is_empty() && !is_stopped() {
            self.ready.wait_for(&mut waiting, timeout.min(Duration::from_secs(1)));
        }
        let mut frames = Vec::new();
        for (handle, (from, to)) in std::mem::take(&mut waiting.lost) {
            let notice = Notice {
                attribute: handle,
                reason: Reason::Gap.name().to_owned(),
                missed: Some(Missing::Exactly(Big(from), Big(to))),
            };
            frames.extend(serde_json::to_vec(&notice).ok().map(|body| (Kind::Notice, body)));
        }
        while let Some(item) = waiting.items.pop_front() {
            waiting.bytes -= item.len();
            match item {
                Item::Json(kind, body) => frames.push((kind, body)),
                Item::Events(body) => {
                    frames.push((Kind::Events, body));
                    break;
                }
            }
        }
        frames
    }
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Item::Events(body) | Item::Json(_, body) => body.len(),
        }
    }
}

impl Waiting {
    fn json(&mut self, kind: Kind, body: &impl serde::Serialize) {
        if let Ok(body) = serde_json::to_vec(body) {
            self.bytes += body.len();
            self.items.push_back(Item::Json(kind, body));
        }
    }

    fn notice(&mut self, attribute: u32, reason: Reason, missed: Option<Missing>) {
        self.json(Kind::Notice, &Notice { attribute, reason: reason.name().to_owned(), missed });
    }

    /// Returns the handle of an event's attribute. A new one, or a new configuration, is announced first.
    fn handle_of(&mut self, event: &Event<'_>) -> u32 {
        let info = event.attribute;
        let key = (event.source.incarnation, info.number);
        let next = self.known.len() as u32 + 1;
        let (handle, epoch) = self.known.entry(key).or_insert((next, info.epoch.wrapping_add(1)));
        let handle = *handle;
        if *epoch != info.epoch {
            *epoch = info.epoch;
            let intro = AttributeIntro {
                attribute: handle,
                source: event.source.source.to_string(),
                incarnation: event.source.incarnation,
                number: info.number,
                epoch: info.epoch,
                config: info.config.clone(),
            };
            self.json(Kind::Attribute, &intro);
        }
        handle
    }

    fn event(&mut self, item: &EventItem<'_>) {
        let length = EventItem::len_of(item.event.len());
        self.bytes += length;
        if let Some(Item::Events(body)) = self.items.back_mut()
            && body.len() + length <= FRAME_BYTES
        {
            return item.put(body);
        }
        let mut body = Vec::with_capacity(length);
        item.put(&mut body);
        self.items.push_back(Item::Events(body));
    }

    /// Drops the oldest events while there are too many bytes. Returns whether it has.
    fn shorten(&mut self) -> bool {
        let mut has_dropped = false;
        while self.bytes > EVENT_QUEUE && self.items.len() > 1 {
            let Some(at) = self.items.iter().position(|item| matches!(item, Item::Events(_))) else { break };
            let Some(Item::Events(body)) = self.items.remove(at) else { break };
            self.bytes -= body.len();
            has_dropped = true;
            for item in events(&body).flatten() {
                let Some(routing) = Routing::of(item.event) else { continue };
                let lost = self.lost.entry(item.attribute).or_insert((routing.number, routing.number));
                *lost = (lost.0.min(routing.number), lost.1.max(routing.number + 1));
            }
        }
        has_dropped
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{
        Time,
        event::{EventSample, Value},
    };

    use super::*;

    fn put(waiting: &mut Waiting, attribute: u32, number: u64, elements: usize) {
        let value = vec![0u8; elements];
        let mut event = Vec::new();
        EventSample { number, ..EventSample::of(attribute, Value::spectrum(&value)) }.encode(&mut event).unwrap();
        let item = EventItem {
            attribute,
            reason: Reason::Update,
            unknown_before: false,
            sent: Time(0),
            received: Time(0),
            event: &event,
        };
        waiting.event(&item);
    }

    #[test]
    fn a_full_queue_drops_the_oldest_events_and_knows_their_numbers() {
        let queue = EventQueue::new(1 << 20);
        {
            let mut waiting = queue.waiting.lock();
            for number in 1..=20 {
                put(&mut waiting, 1, number, EVENT_QUEUE / 10);
                waiting.shorten();
            }
            put(&mut waiting, 2, 1, 10);
            assert!(waiting.bytes <= EVENT_QUEUE + EVENT_QUEUE / 10);
            let (from, to) = waiting.lost[&1];
            assert_eq!(from, 1);
            assert!((11..=13).contains(&to), "{to}");
        }
        let frames = queue.take(Duration::ZERO, || false);
        assert_eq!(frames[0].0, Kind::Notice, "the gap comes before what remains");
        assert_eq!(frames[1].0, Kind::Events);
    }

    #[test]
    fn small_events_share_a_frame() {
        let mut waiting = Waiting::default();
        for number in 1..=100 {
            put(&mut waiting, 1, number, 8);
        }
        assert_eq!(waiting.items.len(), 1);
        let Some(Item::Events(body)) = waiting.items.pop_front() else { panic!() };
        assert_eq!(events(&body).map(Result::unwrap).count(), 100);
    }
}
