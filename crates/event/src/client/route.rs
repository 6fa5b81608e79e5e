//! The way from a sample to the subscriptions bound to its attribute.
//!
//! Long values lie in memory that their server lent. A server that no longer waits for this reader may take it back at
//! any time. So the values are copied before they are read, unless all bound subscriptions asked to read them in place
//! ([`super::SubscribeOptions::in_place`]). Then the callback reads the memory, and a value that was taken back
//! meanwhile is reported as missing.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use tampu_bus::{Gap, LentBytes, Sample, SourceInfo};
use tampu_types::{
    Incarnation, Time,
    event::{
        EventView, Kinds, Missed, Reason, ValueView, sample::ELEMENTS_AT, sample::FLAG_IN_STREAM, sample::FLAG_REFRESH,
        sample::FLAG_REMARK, view::Routing,
    },
};

use super::{
    binding::{Binding, Notice, Notices},
    by_incarnation::ByIncarnation,
    early::EarlySamples,
    event::{AttributeInfo, Event, SampleTimes, source_event},
    subscriber::SubscriptionState,
    undecided::{Undecided, UndecidedBytes},
};
use crate::{
    ask::Wanted,
    filter::{FilterState, Verdict},
};

pub(super) struct BoundSubscription {
    pub sub: Arc<SubscriptionState>,
    pub binding: Binding,
    pub filter: Option<Box<FilterState>>,
    /// Number of the last reading that was delivered.
    pub delivered: u64,
    /// The newest reading that came too soon.
    pub held: Option<Box<HeldReading>>,
}

/// Reading that waits until its subscription's filter takes one again.
pub(super) struct HeldReading {
    due: u64,
    bytes: Vec<u8>,
    times: SampleTimes,
}

/// Time after a loss within which a further event makes a request for the current value needless, ns.
const FOLLOWS_SOON: u64 = 20_000_000;

/// Time after which a release is repeated, ns, and the number of repetitions.
const RELEASE_AGAIN: u64 = 2_000_000_000;
const RELEASES: u32 = 2;

/// One attribute and the subscriptions bound to it.
pub(super) struct Route {
    pub info: Arc<AttributeInfo>,
    pub own: bool,
    /// True if the server leaves out events that no reader on this host wants.
    pub of_host: bool,
    pub bound: Vec<BoundSubscription>,
    /// Last sample of a separate stream, while a subscription waits for the current value.
    pub kept: Option<(u64, Vec<u8>)>,
    /// Events until it is known whether a subscription is older than the attribute.
    pub undecided: Option<Undecided>,
}

/// One incarnation of a server.
pub(super) struct Source {
    pub info: Arc<SourceInfo>,
    pub routes: Vec<Option<Box<Route>>>,
    pub silent: bool,
    /// True if samples of its stream were lost, and the affected attributes are not known yet.
    pub suspect_loss: bool,
    /// Bytes of events of attributes whose age is not known yet.
    pub undecided: UndecidedBytes,
    /// Attributes with held readings, by the time when they are judged again, monotonic ns.
    pub held: BTreeSet<(u64, u32)>,
    /// Attributes whose current value should be requested.
    pub wanted: Vec<u32>,
    /// Attributes that the server should write to the stream of this host no longer.
    pub released: Vec<u32>,
    /// The same that were told already, the time of the next repetition, and how often it is repeated.
    pub released_before: Vec<(u64, u32, Vec<u32>)>,
    /// Time of the next request and the attributes it names.
    pub asked: Option<(u64, Vec<u32>)>,
    /// Time until the pending request is repeated, ns.
    pub retry_after: u64,
}

pub(super) fn notify_route(route: &Route, source: &SourceInfo, reason: Reason, now: Time) {
    let event = source_event(&route.info, source, reason, now);
    for bound in route.bound.iter().filter(|bound| bound.sub.active.load(Ordering::Acquire)) {
        bound.sub.deliver(&event);
    }
}

/// Handles lost samples of a stream.
pub(super) fn lost(sources: &mut ByIncarnation<Source>, gap: &Gap) {
    if let Some(source) = sources.get_mut(&gap.stream.incarnation) {
        source.suspect_loss = true;
    }
}

impl Source {
    /// Judges the held readings again whose time has come.
    pub fn deliver_held(&mut self, now: u64) {
        while let Some(&(due, attribute)) = self.held.first()
            && due <= now
        {
            self.held.pop_first();
            let Some(Some(route)) = self.routes.get_mut(attribute as usize) else { continue };
            let next = route.deliver_held(&self.info, now);
            self.held.extend(next.map(|due| (due, attribute)));
        }
    }

    /// Notes that an attribute is wanted, also if it was released before.
    pub fn want(&mut self, attribute: u32) {
        self.wanted.push(attribute);
        self.released.retain(|&released| released != attribute);
        self.released_before.iter_mut().for_each(|(_, _, all)| all.retain(|&released| released != attribute));
    }

    /// Returns the attributes to release. A release may be lost, so it is repeated.
    pub fn take_released(&mut self, now: u64) -> Vec<u32> {
        let mut all = std::mem::take(&mut self.released);
        if !all.is_empty() {
            self.released_before.push((now + RELEASE_AGAIN, RELEASES, all.clone()));
        }
        for (at, left, released) in &mut self.released_before {
            if now >= *at {
                (*at, *left) = (now + RELEASE_AGAIN, *left - 1);
                all.extend_from_slice(released);
            }
        }
        self.released_before.retain(|(_, left, _)| *left > 0);
        all
    }

    /// Returns whether a release should be sent or repeated.
    pub fn has_released(&self, now: u64) -> bool {
        !self.released.is_empty() || self.released_before.iter().any(|(at, ..)| now >= *at)
    }

    /// Marks all attributes after a loss in the stream. The current value of an attribute shows whether it was
    /// affected. Its next event shows that too, so the server is asked only about attributes without an event soon.
    pub fn suspect_all(&mut self, now: u64) {
        // The server may judge by a value that was lost, also if further events come.
        let filtered = |(index, route): (usize, &Option<Box<Route>>)| Some((route.as_ref()?.is_filtered(), index as u32));
        let filtered = self.routes.iter().enumerate().filter_map(filtered).filter_map(|(is, index)| is.then_some(index));
        self.wanted.extend(filtered);
        let suspected = self.routes.iter_mut().enumerate().filter_map(|(index, route)| {
            let live = |bound: &&mut BoundSubscription| bound.binding.is_live() && !bound.binding.asked;
            let bound = route.as_mut()?.bound.iter_mut().filter(live);
            (bound.map(|bound| bound.binding.asked = true).count() > 0).then_some(index as u32)
        });
        let (_, asked) = self.asked.get_or_insert_with(|| (now + FOLLOWS_SOON, Vec::new()));
        asked.extend(suspected);
    }
}

/// Returns whether a source may have begun after this process, `here`. The clocks of two hosts cannot tell; but a stream of
/// another host has hardly anything that nobody here wants.
fn may_be_later(incarnation: Incarnation, here: Incarnation) -> bool {
    !incarnation.shares_host_with(here) || incarnation.start > here.start
}

/// Handles one sample. Samples of incarnations that may have begun after this process, `here`, are kept in `early` until their
/// attribute is bound.
#[inline]
pub(super) fn accept_sample(
    sources: &mut ByIncarnation<Source>,
    early: &mut EarlySamples,
    here: Incarnation,
    sample: &Sample<'_>,
    token: u64,
    scratch: &mut Vec<u8>,
) {
    let incarnation = sample.stream.incarnation;
    let times = SampleTimes { sent: sample.sent, received: sample.received, clock: sample.clock };
    let Some(source) = sources.get_mut(&incarnation) else {
        if may_be_later(incarnation, here) {
            early.keep(sample, times);
        }
        return;
    };
    let accepted = match sample.payload.bytes() {
        Some(bytes) => accept_event(source, bytes, token, times),
        None => accept_lent(source, sample, token, scratch, times),
    };
    if accepted == Acceptance::Unbound && may_be_later(incarnation, here) {
        early.keep(sample, times);
    }
}

/// Result of handling a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// No subscription is bound to its attribute.
    Unbound,
    /// The sample was delivered, or is not new.
    Done,
}

/// Handles a sample in its server's memory.
fn accept_lent(source: &mut Source, sample: &Sample<'_>, token: u64, scratch: &mut Vec<u8>, times: SampleTimes) -> Acceptance {
    // The head is copied and the memory checked again, so the attribute and the number are not torn. An overwritten
    // event is missing in the numbers of its attribute and reported with the next one; if none follows, the server's
    // current value reports it.
    let Ok(head) = sample.payload.with(|bytes| bytes.first_chunk::<ELEMENTS_AT>().copied()) else {
        source.suspect_loss = true;
        return Acceptance::Done;
    };
    let Some(head) = head else { return Acceptance::Done };
    let Some(routing) = Routing::of(&head) else { return Acceptance::Done };
    let Some(Some(route)) = source.routes.get_mut(routing.attribute as usize) else { return Acceptance::Unbound };
    if let Some(held) = show_in_place(route, &source.info, routing, sample, times) {
        source.held.extend(held.map(|due| (due, routing.attribute)));
        return Acceptance::Done;
    }
    // Copied before the filter runs: the writer may take lent memory back at any time.
    scratch.clear();
    match sample.payload.with(|bytes| scratch.extend_from_slice(bytes)) {
        Ok(()) => accept_event(source, scratch, token, times),
        Err(_) => {
            source.suspect_loss = true;
            Acceptance::Done
        }
    }
}

/// Delivers a long value in its server's memory, if all bound subscriptions want that, and it is plain numbers. Otherwise
/// returns `None`. Queues, tables and filters keep a value, so they get it from a checked copy. Returns the time when a
/// reading that is held is judged again.
fn show_in_place(
    route: &mut Route,
    source: &SourceInfo,
    routing: Routing,
    sample: &Sample<'_>,
    times: SampleTimes,
) -> Option<Option<u64>> {
    let wanted = |bound: &BoundSubscription| {
        let keeps_nothing = bound.sub.sink.keeps_nothing() && bound.filter.is_none();
        bound.sub.options.in_place && keeps_nothing && !bound.binding.is_waiting()
    };
    if routing.flags & FLAG_REFRESH != 0 || !route.bound.iter().all(wanted) {
        return None;
    }
    route.kept = None;
    let (mut shown, mut held, lent) = (false, None, sample.payload.lent());
    let whole = sample.payload.with(|bytes| {
        // Texts would have to be checked again each time they are looked at.
        let Ok(view) = EventView::parse(bytes) else { return };
        let text = matches!(view.value, Some(ValueView::String(_) | ValueView::Encoded { .. }));
        let plain = view.set_point.is_none() && view.name.is_empty() && view.errors.is_empty();
        if !text && plain && view.number == routing.number {
            shown = true;
            held = route.deliver(&view, bytes, routing, source, times, lent.as_ref());
        }
    });
    if !shown {
        return None;
    }
    if whole.is_err() {
        route.retract(routing.number, source, times);
        return Some(None);
    }
    Some(held)
}

/// Handles an event in this process's memory.
#[inline]
pub(super) fn accept_event(source: &mut Source, bytes: &[u8], token: u64, times: SampleTimes) -> Acceptance {
    let Some(routing) = Routing::of(bytes) else { return Acceptance::Done };
    let Some(Some(route)) = source.routes.get_mut(routing.attribute as usize) else { return Acceptance::Unbound };
    // An event that cannot be decoded is of a later release or hostile. Its number is missing, which is reported.
    let Ok(view) = EventView::parse(bytes) else { return Acceptance::Done };
    let refresh = routing.flags & FLAG_REFRESH != 0;
    if refresh && view.token != Some(token) {
        return Acceptance::Done;
    }
    let decides = match &mut route.undecided {
        Some(undecided) => refresh || !undecided.keep(bytes, times),
        None => false,
    };
    if decides {
        let age = refresh.then_some(view.age).filter(|age| *age > 0);
        let due = route.decide(age, &source.info);
        source.held.extend(due.map(|due| (due, routing.attribute)));
    }
    if refresh && routing.flags & FLAG_IN_STREAM != 0 {
        let kept = route.kept.take().filter(|(number, _)| *number == routing.number);
        let held = match kept.as_ref().and_then(|(_, bytes)| Some((EventView::parse(bytes).ok()?, bytes))) {
            Some((before, bytes)) => route.deliver(&before, bytes, routing, &source.info, times, None),
            None => route.deliver(&view, bytes, routing, &source.info, times, None),
        };
        source.held.extend(held.map(|due| (due, routing.attribute)));
        return Acceptance::Done;
    }
    if route.own && !refresh && route.bound.iter().any(|bound| bound.binding.is_waiting()) {
        let (number, kept) = route.kept.get_or_insert_default();
        *number = routing.number;
        kept.clear();
        kept.extend_from_slice(bytes);
    } else if route.kept.is_some() {
        route.kept = None;
    }
    if let Some(due) = route.deliver(&view, bytes, routing, &source.info, times, None) {
        source.held.insert((due, routing.attribute));
    }
    Acceptance::Done
}

impl Route {
    /// Returns whether the server judges events by the filter of the subscriptions. They have one filter, and begin with one
    /// value: a current value is delivered to all of them.
    fn is_filtered(&self) -> bool {
        let Some((one, others)) = self.bound.split_first() else { return false };
        let begins = |bound: &BoundSubscription| bound.sub.options.begins_together();
        let is_alike = |other: &BoundSubscription| begins(other) && other.sub.options.filter == one.sub.options.filter;
        self.of_host && one.filter.is_some() && begins(one) && others.iter().all(is_alike)
    }

    /// Returns the events that this process wants from the server, and whether from the first one on.
    pub fn wanted(&self) -> (Wanted, bool) {
        let kinds = self.bound.iter().fold(Kinds::NONE, |kinds, bound| kinds | bound.sub.options.kinds);
        let mut wanted = Wanted { kinds: kinds.0, ..Wanted::default() };
        // Subscriptions with different filters judge by themselves.
        if let ([one, ..], true) = (&self.bound[..], self.is_filtered()) {
            wanted.filter = one.sub.options.filter.clone();
        }
        (wanted, self.bound.iter().any(|bound| bound.binding.is_fresh()))
    }

    /// Decides which subscriptions are older than the attribute, by its age in ns if the server has told it. They are given the
    /// events that have waited for that. If one begins to hold a reading, returns the time when it is judged again.
    pub fn decide(&mut self, age: Option<u64>, source: &SourceInfo) -> Option<u64> {
        let mut undecided = self.undecided.take()?;
        self.bound.iter_mut().for_each(|bound| bound.binding.decide(undecided.is_older(&bound.sub, age)));
        let mut due: Option<u64> = None;
        for (bytes, times) in undecided.take() {
            let (Some(routing), Ok(view)) = (Routing::of(&bytes), EventView::parse(&bytes)) else { continue };
            // The others have had it, and skip it.
            let next = self.deliver(&view, &bytes, routing, source, times, None);
            due = due.into_iter().chain(next).min();
        }
        due
    }

    /// Reports an event as lost whose memory was reclaimed while the callback read it.
    fn retract(&mut self, number: u64, source: &SourceInfo, times: SampleTimes) {
        let missed = Missed::Exactly(number, number + 1);
        for bound in self.bound.iter_mut().filter(|bound| bound.binding.is_live()) {
            bound.held = None;
            bound.sub.deliver(&Event { missed, ..source_event(&self.info, source, Reason::Gap, times.received) });
        }
    }

    /// Delivers an event. If a subscription begins to hold a reading, returns the time when it is judged again.
    #[inline]
    fn deliver(
        &mut self,
        view: &EventView<'_>,
        bytes: &[u8],
        routing: Routing,
        source: &SourceInfo,
        times: SampleTimes,
        lent: Option<&LentBytes>,
    ) -> Option<u64> {
        let filtered = routing.flags & FLAG_REFRESH != 0 && self.is_filtered();
        let mut held_until = None;
        for bound in &mut self.bound {
            if !bound.sub.active.load(Ordering::Acquire) {
                continue;
            }
            let known = view.kinds.known();
            let notices: Notices = if routing.flags & FLAG_REFRESH != 0 {
                bound.binding.current(routing.number, view.left_out, filtered && bound.delivered != routing.number)
            } else if known.intersects(Kinds::VALUES) && routing.flags & FLAG_REMARK == 0 {
                bound.binding.event(routing.number, view.left_out)
            } else {
                bound.binding.signal(routing.number, view.left_out)
            };
            for Notice { reason, missed, by_kind } in notices.into_iter().flatten() {
                if by_kind && !known.intersects(bound.sub.options.kinds) {
                    if known.is_empty() {
                        bound.sub.unknown.fetch_add(1, Ordering::Relaxed);
                    }
                    continue;
                }
                let has_reading = reason.has_reading();
                // The filter applies to readings of the attribute only.
                let judged = known.is_empty() || known.intersects(Kinds::VALUES) && routing.flags & FLAG_REMARK == 0;
                if has_reading
                    && judged
                    && let Some(filter) = &mut bound.filter
                {
                    match filter.judge(reason, view) {
                        Verdict::Passes => bound.held = None,
                        verdict => {
                            bound.sub.held_back.fetch_add(1, Ordering::Relaxed);
                            if let Verdict::Held(due) = verdict {
                                if bound.held.is_none() {
                                    held_until = Some(held_until.map_or(due, |other: u64| other.min(due)));
                                }
                                bound.held = Some(Box::new(HeldReading { due, bytes: bytes.to_vec(), times }));
                            }
                            continue;
                        }
                    }
                }
                let event = Event {
                    attribute: &self.info,
                    reason,
                    missed,
                    kinds: view.kinds,
                    number: routing.number,
                    source,
                    sent: times.sent,
                    received: times.received,
                    clock: times.clock,
                    reading: has_reading.then_some(view),
                    bytes,
                    lent,
                };
                bound.sub.deliver(&event);
                if has_reading {
                    bound.delivered = routing.number;
                }
            }
        }
        held_until
    }

    /// Judges the held readings again whose time has come. Returns the time of the next, if some are still held.
    fn deliver_held(&mut self, source: &SourceInfo, now: u64) -> Option<u64> {
        let mut next = None;
        for bound in self.bound.iter_mut().filter(|bound| bound.sub.active.load(Ordering::Acquire)) {
            let Some(mut held) = bound.held.take_if(|held| held.due <= now) else { continue };
            let (Some(filter), Ok(view)) = (&mut bound.filter, EventView::parse(&held.bytes)) else { continue };
            match filter.judge(Reason::Update, &view) {
                Verdict::Passes => {}
                Verdict::Rejected => continue,
                Verdict::Held(due) => {
                    next = Some(next.map_or(due, |other: u64| other.min(due)));
                    held.due = due;
                    bound.held = Some(held);
                    continue;
                }
            }
            bound.delivered = view.number;
            bound.sub.deliver(&Event {
                attribute: &self.info,
                reason: Reason::Update,
                missed: Missed::Nothing,
                kinds: view.kinds,
                number: view.number,
                source,
                sent: held.times.sent,
                received: held.times.received,
                clock: held.times.clock,
                reading: Some(&view),
                bytes: &held.bytes,
                lent: None,
            });
            bound.sub.held_back.fetch_sub(1, Ordering::Relaxed);
        }
        next
    }
}
