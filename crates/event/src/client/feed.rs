//! One reader of the bus and what hangs on it: the streams of a server, and the bindings of this process's subscriptions to
//! that server's attributes.
//!
//! A feed belongs to one worker, so that nothing on the way of an event is locked: what subscriptions want changed comes as
//! commands. Events are found by the attribute's number in its server's life, a place in a table; no name is looked at.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tampu_bus::{
    Alarm, BusError, Event as BusEvent, History, Participant, Reader, ReaderQos, SourceChange, SourceInfo, SourceState,
};
use tampu_types::{Incarnation, PartitionFilter, Time, TopicFilter, event::Reason};

use super::{
    binding::Binding,
    early::Early,
    event::AttributeInfo,
    filter::Sieve,
    lives::Lives,
    route::{Bound, Route, Source, lost, take, take_event, tell_route, word},
    subscription::Sub,
};
use crate::{ask::Refresh, server::lock, topics};

/// After this long a current value that was asked for is asked for again, each time twice as long up to the second, ns. Without
/// healing, what was written before the reader was known to the writer does not come, so it is asked for sooner.
const PATIENCE: u64 = 50_000_000;
const PATIENCE_UNRELIABLE: u64 = 5_000_000;
const LONGEST_PATIENCE: u64 = 500_000_000;
/// Bytes that wait in a reader that wants what is newest: what is older is not worth its time.
const QUEUE_UNRELIABLE: usize = 1 << 20;
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
    /// Since when it is there, by its server's clock.
    pub since: Time,
}

/// What the book has a feed do.
pub(super) enum Order {
    /// A subscription gets an attribute's events; `again` where it had those of another life, `new` where the attribute was declared
    /// just now, and what its server has sent since is to be told too.
    /// What another feed handed on is not done once it no longer `stands`: word of its end may have overtaken it.
    Bind { target: Target, info: Arc<AttributeInfo>, sub: Arc<Sub>, again: bool, new: bool, stands: Option<Arc<AtomicBool>> },
    /// Another feed gets an order, after all that this one has been told before.
    Pass { to: Arc<Inlet>, order: Box<Order> },
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

    /// Whether everything it was told to do is being done.
    pub fn has_no_orders(&self) -> bool {
        lock(&self.orders).is_empty()
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

pub(super) struct Feed {
    inlet: Arc<Inlet>,
    participant: Participant,
    reader: Reader,
    sources: Lives<Source>,
    early: Early,
    /// Lives that begin later than this process's are read from their first sample.
    since: u64,
    token: u64,
    scratch: Vec<u8>,
    /// How long a first question waits.
    patience: u64,
}

impl Feed {
    pub fn open(participant: &Participant, key: &FeedKey, inlet: Arc<Inlet>, token: u64) -> Result<Feed, BusError> {
        let mut qos = ReaderQos { history: History::All, reliable: key.reliable, ..ReaderQos::default() };
        if !key.reliable {
            qos.queue = QUEUE_UNRELIABLE;
        }
        let reader = participant.reader(&TopicFilter::new(key.topics.clone())?, &PartitionFilter::All, qos)?;
        let patience = if key.reliable { PATIENCE } else { PATIENCE_UNRELIABLE };
        // Set once, here.
        let _ = inlet.alarm.set(reader.alarm());
        Ok(Feed {
            inlet,
            participant: participant.clone(),
            reader,
            sources: Lives::default(),
            early: Early::default(),
            since: participant.incarnation().start,
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
            let Feed { reader, sources, early, since, token, scratch, .. } = self;
            match reader.next(wait) {
                None => break,
                Some(BusEvent::Sample(sample)) => take(sources, early, *since, &sample, *token, scratch),
                Some(BusEvent::Gap(gap)) => lost(sources, &gap),
                Some(BusEvent::Source(change)) => self.changed(&change),
            }
            came = true;
            wait = Duration::ZERO;
        }
        if !came && !self.early.is_empty() {
            self.early.tidy(self.participant.clock().utc());
        }
        came
    }

    fn next_ask(&self) -> Duration {
        let now = self.participant.clock().monotonic();
        if self.sources.values().any(|source| source.doubt && !source.silent) {
            return Duration::ZERO;
        }
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
        let mut bound = Vec::new();
        for order in orders {
            if let Order::Bind { target, .. } = &order {
                bound.push((target.source.incarnation, target.attribute));
            }
            self.do_one(order);
        }
        if !self.early.is_empty() {
            bound.into_iter().for_each(|(incarnation, attribute)| self.early.given(incarnation, attribute));
            self.early.tidy(self.participant.clock().utc());
        }
        did
    }

    fn do_one(&mut self, order: Order) {
        match order {
            Order::Bind { target, info, sub, again, new, stands } => {
                if stands.is_none_or(|stands| stands.load(Ordering::Acquire)) {
                    self.bind(&target, info, sub, again, new);
                }
            }
            Order::Pass { to, order } => {
                to.order(*order);
                to.ring();
            }
            Order::Unbind { incarnation, attribute, sub, told } => {
                if told.is_some() {
                    self.drain(incarnation);
                }
                self.unbind(incarnation, attribute, sub, told);
            }
            Order::Configured { incarnation, attribute, info } => {
                let now = self.participant.clock().utc();
                let Some(source) = self.sources.get_mut(&incarnation) else { return };
                let Some(Some(route)) = source.routes.get_mut(attribute as usize) else { return };
                if route.info.epoch == info.epoch {
                    return;
                }
                route.info = info;
                // Who has no value yet gets the first with this configuration.
                for bound in route.bound.iter().filter(|bound| bound.binding.is_live()) {
                    bound.sub.hand(&word(&route.info, &source.info, Reason::ConfigChanged, now));
                }
            }
            Order::Tell { incarnation, attribute, reason } => self.tell(incarnation, attribute, reason),
            Order::Withdrawn { incarnation, attribute } => {
                self.drain(incarnation);
                self.tell(incarnation, attribute, Reason::SourceLeft);
                let slot = self.sources.get_mut(&incarnation).and_then(|source| source.routes.get_mut(attribute as usize));
                if let Some(route) = slot.and_then(Option::take) {
                    self.unbound(&route);
                }
            }
            Order::Gone { incarnation, reason } => {
                self.drain(incarnation);
                self.end(incarnation, reason);
            }
        }
    }

    /// Takes what has come already, up to the end of this life if that is among it: what a server sent last is told before its end.
    fn drain(&mut self, until: Incarnation) {
        let mut left = self.reader.stats().queued;
        loop {
            let Feed { reader, sources, early, since, token, scratch, .. } = self;
            match reader.next(Duration::ZERO) {
                None => break,
                Some(BusEvent::Sample(sample)) => {
                    // What others send meanwhile has time.
                    left = left.saturating_sub(sample.payload.len().max(1));
                    take(sources, early, *since, &sample, *token, scratch);
                }
                Some(BusEvent::Gap(gap)) => lost(sources, &gap),
                Some(BusEvent::Source(change)) => self.changed(&change),
            }
            if left == 0 || !self.sources.contains_key(&until) {
                break;
            }
        }
    }

    fn bind(&mut self, target: &Target, info: Arc<AttributeInfo>, sub: Arc<Sub>, again: bool, new: bool) {
        if !sub.active.load(Ordering::Acquire) {
            return;
        }
        let incarnation = target.source.incarnation;
        let source = self.sources.entry(incarnation).or_insert_with(|| Source {
            info: target.source.clone(),
            routes: Vec::new(),
            silent: false,
            doubt: false,
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
        // What is handed on by another feed may have been overtaken by word of a later configuration.
        if route.info.epoch < info.epoch {
            route.info = info;
        }
        let begun = incarnation.start.max(target.since.0.max(0).cast_unsigned());
        let binding = Binding::new(sub.wish.first, again, begun > sub.created.max(0).cast_unsigned());
        sub.bound.fetch_add(1, Ordering::Relaxed);
        self.inlet.bindings.fetch_add(1, Ordering::Relaxed);
        if again {
            let event = word(&route.info, &source.info, Reason::SourceReturned, self.participant.clock().utc());
            sub.hand(&event);
        }
        let sieve = Sieve::of(&sub.wish.filter);
        route.bound.push(Bound { sub, binding, sieve });
        source.wanted.push(target.attribute);
        // Others that are bound have had these, and step over them. A source that takes over from another is told from now on.
        if new {
            let token = self.token;
            self.early.give(incarnation, target.attribute, self.participant.clock().utc(), |bytes, way| {
                let _ = take_event(source, bytes, token, way);
            });
        }
    }

    fn unbind(&mut self, incarnation: Incarnation, attribute: u32, sub: u64, told: Option<Reason>) {
        let now = self.participant.clock().utc();
        let Some(source) = self.sources.get_mut(&incarnation) else { return };
        let Some(slot) = source.routes.get_mut(attribute as usize) else { return };
        let Some(route) = slot else { return };
        for Bound { sub, .. } in route.bound.extract_if(.., |bound| bound.sub.id == sub) {
            self.inlet.bindings.fetch_sub(1, Ordering::Relaxed);
            sub.bound.fetch_sub(1, Ordering::Relaxed);
            // That it hangs was told when its stream fell silent.
            let known = told == Some(Reason::SourceHung) && source.silent;
            if let Some(reason) = told.filter(|_| !known && sub.active.load(Ordering::Acquire)) {
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
        self.early.forget(incarnation);
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
            if std::mem::take(&mut source.doubt) {
                source.doubt_all(now);
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
        self.inlet.bindings.load(Ordering::Relaxed) == 0 && self.inlet.has_no_orders()
    }
}
