//! One reader of the bus and what hangs on it: the streams of a server, and the bindings of this process's subscriptions to
//! that server's attributes.
//!
//! A feed belongs to one worker, so that nothing on the way of an event is locked: what subscriptions want changed comes as
//! commands. Events are found by the attribute's number in its server's life, a place in a table; no name is looked at.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_bus::{
    Alarm, BusError, Event as BusEvent, Gap, History, Participant, Reader, ReaderQos, Sample, SourceChange, SourceInfo,
    SourceState,
};
use tampu_types::{
    ClockState, Incarnation, PartitionFilter, Time, TopicFilter,
    event::{EventView, Kinds, Missed, Reason, sample::FLAG_IN_STREAM, sample::FLAG_REFRESH, view::Routing},
};

use super::{
    binding::{Binding, Notice, Notices},
    event::{AttributeInfo, Event},
    subscription::Sub,
};
use crate::{ask::Refresh, server::lock, topics};

/// After this long a current value that was asked for is asked for again, each time twice as long up to the second, ns. Without
/// healing, what was written before the reader was known to the writer does not come, so it is asked for sooner.
const PATIENCE: u64 = 50_000_000;
const PATIENCE_UNRELIABLE: u64 = 5_000_000;
const LONGEST_PATIENCE: u64 = 500_000_000;
/// How many samples are taken before commands are looked at.
const AT_ONCE: usize = 4096;
/// How many attributes one question names.
const ASK_AT_ONCE: usize = 10_000;

/// Which streams a feed reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FeedKey {
    pub topics: String,
    pub reliable: bool,
}

/// An attribute in one life of its server.
pub(super) struct Target {
    pub source: Arc<SourceInfo>,
    pub attribute: u32,
    pub own: bool,
}

/// What the book has a feed do.
pub(super) enum Order {
    /// A subscription gets an attribute's events.
    Bind { target: Target, info: Arc<AttributeInfo>, sub: Arc<Sub>, again: bool },
    /// It no longer does.
    Unbind { incarnation: Incarnation, attribute: u32, sub: u64, told: Option<Reason> },
    /// The attribute has another configuration.
    Configured { incarnation: Incarnation, attribute: u32, info: Arc<AttributeInfo> },
    /// Word for everybody bound to an attribute.
    Tell { incarnation: Incarnation, attribute: u32, reason: Reason },
    /// The server no longer has it.
    Withdrawn { incarnation: Incarnation, attribute: u32 },
    /// The server's life has ended, as its declarations tell.
    Gone { incarnation: Incarnation, reason: Reason },
}

/// A feed as the book sees it.
#[derive(Default)]
pub(super) struct Inlet {
    orders: Mutex<Vec<Order>>,
    waiting: AtomicBool,
    alarm: OnceLock<Alarm>,
    /// How many bindings it has.
    pub bindings: AtomicUsize,
}

impl Inlet {
    pub fn order(&self, order: Order) {
        lock(&self.orders).push(order);
    }

    /// Whether there are orders it has not been told of.
    pub fn is_new(&self) -> bool {
        !self.waiting.load(Ordering::Acquire) && !lock(&self.orders).is_empty()
    }

    /// Has the feed look at its orders.
    pub fn ring(&self) {
        self.waiting.store(true, Ordering::Release);
        if let Some(alarm) = self.alarm.get() {
            alarm.ring();
        }
    }
}

struct Bound {
    sub: Arc<Sub>,
    binding: Binding,
}

/// One attribute, and who is bound to it.
struct Route {
    info: Arc<AttributeInfo>,
    own: bool,
    bound: Vec<Bound>,
    /// The last sample of a stream of its own, while somebody waits for the current value.
    kept: Option<(u64, Vec<u8>)>,
}

/// One life of a server.
struct Source {
    info: Arc<SourceInfo>,
    routes: Vec<Option<Box<Route>>>,
    silent: bool,
    /// Attributes whose current value is wanted.
    wanted: Vec<u32>,
    /// When it will be asked for again, and for which attributes.
    asked: Option<(u64, Vec<u32>)>,
    /// How long the present question waits.
    patience: u64,
}

pub(super) struct Feed {
    inlet: Arc<Inlet>,
    participant: Participant,
    reader: Reader,
    sources: HashMap<Incarnation, Source>,
    token: u64,
    scratch: Vec<u8>,
    /// How long a first question waits.
    patience: u64,
}

/// Where an event comes from, for those who are told of it.
#[derive(Clone, Copy)]
struct Way {
    sent: Time,
    received: Time,
    clock: ClockState,
}

impl Feed {
    pub fn open(participant: &Participant, key: &FeedKey, inlet: Arc<Inlet>, token: u64) -> Result<Feed, BusError> {
        let qos = ReaderQos { history: History::All, reliable: key.reliable, ..ReaderQos::default() };
        let reader = participant.reader(&TopicFilter::new(key.topics.clone())?, &PartitionFilter::All, qos)?;
        let patience = if key.reliable { PATIENCE } else { PATIENCE_UNRELIABLE };
        // Set once, here.
        let _ = inlet.alarm.set(reader.alarm());
        Ok(Feed {
            inlet,
            participant: participant.clone(),
            reader,
            sources: HashMap::new(),
            token,
            scratch: Vec::new(),
            patience,
        })
    }

    /// Takes what comes within this time, and what it is told to do. Says whether anything came.
    pub fn turn(&mut self, timeout: Duration) -> bool {
        let mut came = self.obey();
        self.ask();
        let mut wait = if came { Duration::ZERO } else { timeout.min(self.next_ask()) };
        for _ in 0..AT_ONCE {
            let Feed { reader, sources, token, scratch, .. } = self;
            match reader.next(wait) {
                None => break,
                Some(BusEvent::Sample(sample)) => take(sources, &sample, *token, scratch),
                Some(BusEvent::Gap(gap)) => lost(sources, &gap),
                Some(BusEvent::Source(change)) => self.changed(&change),
            }
            came = true;
            wait = Duration::ZERO;
        }
        came
    }

    fn next_ask(&self) -> Duration {
        let now = self.participant.clock().monotonic();
        let next = self.sources.values().filter_map(|source| source.asked.as_ref().map(|(at, _)| *at)).min();
        next.map_or(Duration::MAX, |at| Duration::from_nanos(at.saturating_sub(now).max(1_000_000)))
    }

    /// Does what it was told to do. After what has come before: a server's last events are told before its death.
    fn obey(&mut self) -> bool {
        if !self.inlet.waiting.swap(false, Ordering::AcqRel) {
            return false;
        }
        let orders = std::mem::take(&mut *lock(&self.inlet.orders));
        let did = !orders.is_empty();
        for order in orders {
            self.do_one(order);
        }
        did
    }

    fn do_one(&mut self, order: Order) {
        match order {
            Order::Bind { target, info, sub, again } => self.bind(&target, info, sub, again),
            Order::Unbind { incarnation, attribute, sub, told } => {
                if told.is_some() {
                    self.drain();
                }
                self.unbind(incarnation, attribute, sub, told);
            }
            Order::Configured { incarnation, attribute, info } => {
                let now = self.participant.clock().utc();
                let Some(source) = self.sources.get_mut(&incarnation) else { return };
                let Some(Some(route)) = source.routes.get_mut(attribute as usize) else { return };
                route.info = info;
                // Who has no value yet gets the first with this configuration.
                for bound in route.bound.iter().filter(|bound| bound.binding.is_live()) {
                    bound.sub.hand(&word(&route.info, &source.info, Reason::ConfigChanged, now));
                }
            }
            Order::Tell { incarnation, attribute, reason } => self.tell(incarnation, attribute, reason),
            Order::Withdrawn { incarnation, attribute } => {
                self.drain();
                self.tell(incarnation, attribute, Reason::SourceLeft);
                let slot = self.sources.get_mut(&incarnation).and_then(|source| source.routes.get_mut(attribute as usize));
                if let Some(route) = slot.and_then(Option::take) {
                    self.unbound(&route);
                }
            }
            Order::Gone { incarnation, reason } => {
                self.drain();
                self.end(incarnation, reason);
            }
        }
    }

    /// Takes what has come already.
    fn drain(&mut self) {
        for _ in 0..AT_ONCE {
            let Feed { reader, sources, token, scratch, .. } = self;
            match reader.next(Duration::ZERO) {
                None => break,
                Some(BusEvent::Sample(sample)) => take(sources, &sample, *token, scratch),
                Some(BusEvent::Gap(gap)) => lost(sources, &gap),
                Some(BusEvent::Source(change)) => self.changed(&change),
            }
        }
    }

    fn bind(&mut self, target: &Target, info: Arc<AttributeInfo>, sub: Arc<Sub>, again: bool) {
        if !sub.active.load(Ordering::Acquire) {
            return;
        }
        let incarnation = target.source.incarnation;
        let source = self.sources.entry(incarnation).or_insert_with(|| Source {
            info: target.source.clone(),
            routes: Vec::new(),
            silent: false,
            wanted: Vec::new(),
            asked: None,
            patience: self.patience,
        });
        let index = target.attribute as usize;
        if source.routes.len() <= index {
            source.routes.resize_with(index + 1, || None);
        }
        let route = source.routes[index]
            .get_or_insert_with(|| Box::new(Route { info: info.clone(), own: target.own, bound: Vec::new(), kept: None }));
        route.info = info;
        let before_life = incarnation.start > sub.created.max(0).cast_unsigned();
        let binding = Binding::new(sub.wish.first, again, before_life);
        sub.bound.fetch_add(1, Ordering::Relaxed);
        self.inlet.bindings.fetch_add(1, Ordering::Relaxed);
        if again {
            let event = word(&route.info, &source.info, Reason::SourceReturned, self.participant.clock().utc());
            sub.hand(&event);
        }
        route.bound.push(Bound { sub, binding });
        source.wanted.push(target.attribute);
    }

    fn unbind(&mut self, incarnation: Incarnation, attribute: u32, sub: u64, told: Option<Reason>) {
        let now = self.participant.clock().utc();
        let Some(source) = self.sources.get_mut(&incarnation) else { return };
        let Some(slot) = source.routes.get_mut(attribute as usize) else { return };
        let Some(route) = slot else { return };
        for Bound { sub, .. } in route.bound.extract_if(.., |bound| bound.sub.id == sub) {
            self.inlet.bindings.fetch_sub(1, Ordering::Relaxed);
            sub.bound.fetch_sub(1, Ordering::Relaxed);
            if let Some(reason) = told.filter(|_| sub.active.load(Ordering::Acquire)) {
                sub.hand(&word(&route.info, &source.info, reason, now));
            }
        }
        if route.bound.is_empty() {
            *slot = None;
        }
    }

    /// Tells everybody bound to an attribute.
    fn tell(&mut self, incarnation: Incarnation, attribute: u32, reason: Reason) {
        let now = self.participant.clock().utc();
        let Some(source) = self.sources.get(&incarnation) else { return };
        if let Some(Some(route)) = source.routes.get(attribute as usize) {
            tell_route(route, &source.info, reason, now);
        }
    }

    fn unbound(&self, route: &Route) {
        self.inlet.bindings.fetch_sub(route.bound.len(), Ordering::Relaxed);
        for bound in &route.bound {
            bound.sub.bound.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A life has ended.
    fn end(&mut self, incarnation: Incarnation, reason: Reason) {
        let Some(source) = self.sources.remove(&incarnation) else { return };
        let now = self.participant.clock().utc();
        for route in source.routes.iter().flatten() {
            tell_route(route, &source.info, reason, now);
            self.unbound(route);
        }
    }

    /// A server came, fell silent, came back or is gone.
    fn changed(&mut self, change: &SourceChange) {
        let now = self.participant.clock().utc();
        match change.state {
            SourceState::Died => self.end(change.incarnation, Reason::SourceDied),
            SourceState::Left => self.end(change.incarnation, Reason::SourceLeft),
            SourceState::Appeared => {}
            SourceState::Silent | SourceState::Returned => {
                let Some(source) = self.sources.get_mut(&change.incarnation) else { return };
                source.silent = change.state == SourceState::Silent;
                let reason = if source.silent { Reason::SourceHung } else { Reason::SourceReturned };
                for (index, route) in source.routes.iter_mut().enumerate() {
                    let Some(route) = route else { continue };
                    tell_route(route, &source.info, reason, now);
                    if !source.silent {
                        route.bound.iter_mut().for_each(|bound| bound.binding.returned());
                        source.wanted.push(index as u32);
                    }
                }
            }
        }
    }

    /// Asks servers for the current values that are wanted.
    fn ask(&mut self) {
        let now = self.participant.clock().monotonic();
        for (&incarnation, source) in &mut self.sources {
            if source.silent {
                continue;
            }
            if let Some((at, attributes)) = &mut source.asked
                && now >= *at
            {
                // What has not come is asked for again.
                attributes.retain(|&attribute| {
                    let route = source.routes.get(attribute as usize).and_then(Option::as_ref);
                    route.is_some_and(|route| route.bound.iter().any(|bound| bound.binding.asked))
                });
                source.patience = if attributes.is_empty() { self.patience } else { (2 * source.patience).min(LONGEST_PATIENCE) };
                source.wanted.append(attributes);
                source.asked = None;
            }
            if source.wanted.is_empty() {
                continue;
            }
            let mut wanted = std::mem::take(&mut source.wanted);
            wanted.sort_unstable();
            wanted.dedup();
            for &attribute in &wanted {
                if let Some(Some(route)) = source.routes.get_mut(attribute as usize) {
                    route.bound.iter_mut().for_each(|bound| bound.binding.asked = true);
                }
            }
            for attributes in wanted.chunks(ASK_AT_ONCE) {
                let question = Refresh { token: self.token, attributes: attributes.to_vec(), names: false };
                let (Ok(service), Ok(question)) = (topics::refresh(incarnation), serde_json::to_vec(&question)) else { continue };
                // The answer comes through the stream; if the question is lost it is put again.
                let _ = self.participant.ask(&service, Bytes::from(question), Duration::from_secs(1));
            }
            match &mut source.asked {
                Some((_, attributes)) => attributes.append(&mut wanted),
                none => *none = Some((now + source.patience, wanted)),
            }
        }
    }

    /// Whether nobody is bound and nothing is to be done.
    pub fn is_idle(&self) -> bool {
        self.inlet.bindings.load(Ordering::Relaxed) == 0 && lock(&self.inlet.orders).is_empty()
    }
}

fn word<'a>(info: &'a Arc<AttributeInfo>, source: &'a SourceInfo, reason: Reason, now: Time) -> Event<'a> {
    Event {
        attribute: info,
        reason,
        missed: Missed::Nothing,
        kinds: Kinds::NONE,
        number: 0,
        source,
        sent: now,
        received: now,
        clock: ClockState::Unknown,
        reading: None,
        bytes: &[],
    }
}

fn tell_route(route: &Route, source: &SourceInfo, reason: Reason, now: Time) {
    let event = word(&route.info, source, reason, now);
    for bound in route.bound.iter().filter(|bound| bound.sub.active.load(Ordering::Acquire)) {
        bound.sub.hand(&event);
    }
}

/// Samples of a stream will not come: what the attributes in it are now shows which of them lost something.
fn lost(sources: &mut HashMap<Incarnation, Source>, gap: &Gap) {
    let Some(source) = sources.get_mut(&gap.stream.incarnation) else { return };
    for (index, route) in source.routes.iter().enumerate() {
        if route.as_ref().is_some_and(|route| route.bound.iter().any(|bound| bound.binding.is_live())) {
            source.wanted.push(index as u32);
        }
    }
}

/// Takes one sample.
#[inline]
fn take(sources: &mut HashMap<Incarnation, Source>, sample: &Sample<'_>, token: u64, scratch: &mut Vec<u8>) {
    let Some(source) = sources.get_mut(&sample.stream.incarnation) else { return };
    let way = Way { sent: sample.sent, received: sample.received, clock: sample.clock };
    match sample.payload.bytes() {
        Some(bytes) => take_event(source, bytes, token, way),
        None => {
            // Copied before anybody looks: the writer may take lent memory back at any time.
            scratch.clear();
            if sample.payload.with(|bytes| scratch.extend_from_slice(bytes)).is_ok() {
                take_event(source, scratch, token, way);
            }
            // What was overwritten is missing in the count of its attribute, and told with the next.
        }
    }
}

#[inline]
fn take_event(source: &mut Source, bytes: &[u8], token: u64, way: Way) {
    let Some(routing) = Routing::of(bytes) else { return };
    let Some(Some(route)) = source.routes.get_mut(routing.attribute as usize) else { return };
    // What cannot be read is of a later release or hostile: its number is missing, and that is told.
    let Ok(view) = EventView::parse(bytes) else { return };
    let refresh = routing.flags & FLAG_REFRESH != 0;
    if refresh && view.token != Some(token) {
        return;
    }
    if refresh && routing.flags & FLAG_IN_STREAM != 0 {
        let kept = route.kept.take().filter(|(number, _)| *number == routing.number);
        match kept.as_ref().and_then(|(_, bytes)| Some((EventView::parse(bytes).ok()?, bytes))) {
            Some((before, bytes)) => route.deliver(&before, bytes, routing, &source.info, way),
            None => route.deliver(&view, bytes, routing, &source.info, way),
        }
        return;
    }
    if route.own && !refresh && route.bound.iter().any(|bound| bound.binding.is_waiting()) {
        let (number, kept) = route.kept.get_or_insert_default();
        *number = routing.number;
        kept.clear();
        kept.extend_from_slice(bytes);
    } else if route.kept.is_some() {
        route.kept = None;
    }
    route.deliver(&view, bytes, routing, &source.info, way);
}

impl Route {
    #[inline]
    fn deliver(&mut self, view: &EventView<'_>, bytes: &[u8], routing: Routing, source: &SourceInfo, way: Way) {
        for bound in &mut self.bound {
            if !bound.sub.active.load(Ordering::Acquire) {
                continue;
            }
            let known = view.kinds.known();
            let notices: Notices = if routing.flags & FLAG_REFRESH != 0 {
                bound.binding.current(routing.number)
            } else if known.intersects(Kinds::VALUES) {
                bound.binding.event(routing.number)
            } else {
                bound.binding.signal(routing.number)
            };
            for Notice { reason, missed, by_kind } in notices.into_iter().flatten() {
                if by_kind && !known.intersects(bound.sub.wish.kinds) {
                    if known.is_empty() {
                        bound.sub.unknown.fetch_add(1, Ordering::Relaxed);
                    }
                    continue;
                }
                let has_reading = reason.has_reading();
                let event = Event {
                    attribute: &self.info,
                    reason,
                    missed,
                    kinds: view.kinds,
                    number: routing.number,
                    source,
                    sent: way.sent,
                    received: way.received,
                    clock: way.clock,
                    reading: has_reading.then_some(view),
                    bytes,
                };
                bound.sub.hand(&event);
            }
        }
    }
}
