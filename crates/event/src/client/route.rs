//! From a sample to those who are bound to its attribute.
//!
//! Long values lie in memory that their server lent, and may be taken back at any time by a server that no longer waits for this
//! reader. So they are copied before anybody looks at them, unless all who are bound asked to see them in place
//! ([`super::Wish::in_place`]); then the callback looks at them there, and what was taken back meanwhile is told as missing.

use std::sync::{Arc, atomic::Ordering};

use tampu_bus::{Gap, Sample, SourceInfo};
use tampu_types::{
    ClockState, Time,
    event::{
        EventView, Kinds, Missed, Reason, ValueView, sample::ELEMENTS_AT, sample::FLAG_IN_STREAM, sample::FLAG_REFRESH,
        sample::FLAG_REMARK, view::Routing,
    },
};

use super::{
    binding::{Binding, Notice, Notices},
    early::Early,
    event::{AttributeInfo, Event},
    filter::Sieve,
    lives::Lives,
    subscription::Sub,
};

pub(super) struct Bound {
    pub sub: Arc<Sub>,
    pub binding: Binding,
    pub sieve: Option<Box<Sieve>>,
}

/// How soon an event after a loss makes the question for the current value needless, ns.
const FOLLOWS_SOON: u64 = 20_000_000;

/// One attribute, and who is bound to it.
pub(super) struct Route {
    pub info: Arc<AttributeInfo>,
    pub own: bool,
    pub bound: Vec<Bound>,
    /// The last sample of a stream of its own, while somebody waits for the current value.
    pub kept: Option<(u64, Vec<u8>)>,
}

/// One life of a server.
pub(super) struct Source {
    pub info: Arc<SourceInfo>,
    pub routes: Vec<Option<Box<Route>>>,
    pub silent: bool,
    /// Something of its stream was lost, and nobody has looked yet whose it was.
    pub doubt: bool,
    /// Attributes whose current value is wanted.
    pub wanted: Vec<u32>,
    /// When it will be asked for again, and for which attributes.
    pub asked: Option<(u64, Vec<u32>)>,
    /// How long the present question waits.
    pub patience: u64,
}

/// Where an event comes from, for those who are told of it.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub sent: Time,
    pub received: Time,
    pub clock: ClockState,
}

pub(super) fn word<'a>(info: &'a Arc<AttributeInfo>, source: &'a SourceInfo, reason: Reason, now: Time) -> Event<'a> {
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

pub(super) fn tell_route(route: &Route, source: &SourceInfo, reason: Reason, now: Time) {
    let event = word(&route.info, source, reason, now);
    for bound in route.bound.iter().filter(|bound| bound.sub.active.load(Ordering::Acquire)) {
        bound.sub.hand(&event);
    }
}

/// Samples of a stream will not come.
pub(super) fn lost(sources: &mut Lives<Source>, gap: &Gap) {
    if let Some(source) = sources.get_mut(&gap.stream.incarnation) {
        source.doubt = true;
    }
}

impl Source {
    /// Something of its stream was lost. What an attribute is now shows whether that was its; its next event shows that too, so that
    /// the server is asked only where none follows soon.
    pub fn doubt_all(&mut self, now: u64) {
        let doubted = self.routes.iter_mut().enumerate().filter_map(|(index, route)| {
            let live = |bound: &&mut Bound| bound.binding.is_live() && !bound.binding.asked;
            let bound = route.as_mut()?.bound.iter_mut().filter(live);
            (bound.map(|bound| bound.binding.asked = true).count() > 0).then_some(index as u32)
        });
        let (_, asked) = self.asked.get_or_insert_with(|| (now + FOLLOWS_SOON, Vec::new()));
        asked.extend(doubted);
    }
}

/// Takes one sample. Those of lives that began after `since` wait in `early` for whoever is bound to them.
#[inline]
pub(super) fn take(
    sources: &mut Lives<Source>,
    early: &mut Early,
    since: u64,
    sample: &Sample<'_>,
    token: u64,
    scratch: &mut Vec<u8>,
) {
    let incarnation = sample.stream.incarnation;
    let way = Way { sent: sample.sent, received: sample.received, clock: sample.clock };
    let Some(source) = sources.get_mut(&incarnation) else {
        if incarnation.start > since {
            early.hold(sample, way);
        }
        return;
    };
    let taken = match sample.payload.bytes() {
        Some(bytes) => take_event(source, bytes, token, way),
        None => take_lent(source, sample, token, scratch, way),
    };
    if taken == Taken::Unbound && incarnation.start > since {
        early.hold(sample, way);
    }
}

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nobody is bound to its attribute.
    Unbound,
    /// Everything else: it was handed on, or is nothing new.
    Done,
}

/// Takes a sample that lies in its server's memory.
fn take_lent(source: &mut Source, sample: &Sample<'_>, token: u64, scratch: &mut Vec<u8>, way: Way) -> Taken {
    // The head is copied and the memory looked at again, so that whom it is for and its number are not torn. What was overwritten
    // is missing in the count of its attribute, and told with the next; if there is none, as the server says.
    let Ok(head) = sample.payload.with(|bytes| bytes.first_chunk::<ELEMENTS_AT>().copied()) else {
        source.doubt = true;
        return Taken::Done;
    };
    let Some(head) = head else { return Taken::Done };
    let Some(routing) = Routing::of(&head) else { return Taken::Done };
    let Some(Some(route)) = source.routes.get_mut(routing.attribute as usize) else { return Taken::Unbound };
    if let Some(()) = take_in_place(route, &source.info, routing, sample, way) {
        return Taken::Done;
    }
    // Copied before anybody looks: the writer may take lent memory back at any time.
    scratch.clear();
    match sample.payload.with(|bytes| scratch.extend_from_slice(bytes)) {
        Ok(()) => take_event(source, scratch, token, way),
        Err(_) => {
            source.doubt = true;
            Taken::Done
        }
    }
}

/// Shows a long value where its server wrote it, if all who are bound want that and it is plain numbers; else `None`.
fn take_in_place(route: &mut Route, source: &SourceInfo, routing: Routing, sample: &Sample<'_>, way: Way) -> Option<()> {
    let wanted = |bound: &Bound| bound.sub.wish.in_place && !bound.binding.is_waiting();
    if routing.flags & FLAG_REFRESH != 0 || !route.bound.iter().all(wanted) {
        return None;
    }
    route.kept = None;
    let mut shown = false;
    let whole = sample.payload.with(|bytes| {
        // Texts would have to be checked again each time they are looked at.
        let Ok(view) = EventView::parse(bytes) else { return };
        let text = matches!(view.value, Some(ValueView::String(_) | ValueView::Encoded { .. }));
        let plain = view.set_point.is_none() && view.name.is_empty() && view.errors.is_empty();
        if !text && plain && view.number == routing.number {
            shown = true;
            route.deliver(&view, bytes, routing, source, way);
        }
    });
    if !shown {
        return None;
    }
    if whole.is_err() {
        route.withdraw(routing.number, source, way);
    }
    Some(())
}

/// Takes an event whose bytes are this process's.
#[inline]
pub(super) fn take_event(source: &mut Source, bytes: &[u8], token: u64, way: Way) -> Taken {
    let Some(routing) = Routing::of(bytes) else { return Taken::Done };
    let Some(Some(route)) = source.routes.get_mut(routing.attribute as usize) else { return Taken::Unbound };
    // What cannot be read is of a later release or hostile: its number is missing, and that is told.
    let Ok(view) = EventView::parse(bytes) else { return Taken::Done };
    let refresh = routing.flags & FLAG_REFRESH != 0;
    if refresh && view.token != Some(token) {
        return Taken::Done;
    }
    if refresh && routing.flags & FLAG_IN_STREAM != 0 {
        let kept = route.kept.take().filter(|(number, _)| *number == routing.number);
        match kept.as_ref().and_then(|(_, bytes)| Some((EventView::parse(bytes).ok()?, bytes))) {
            Some((before, bytes)) => route.deliver(&before, bytes, routing, &source.info, way),
            None => route.deliver(&view, bytes, routing, &source.info, way),
        }
        return Taken::Done;
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
    Taken::Done
}

impl Route {
    /// What was shown of this event may be torn.
    fn withdraw(&self, number: u64, source: &SourceInfo, way: Way) {
        let missed = Missed::Exactly(number, number + 1);
        for bound in self.bound.iter().filter(|bound| bound.binding.is_live()) {
            bound.sub.hand(&Event { missed, ..word(&self.info, source, Reason::Gap, way.received) });
        }
    }

    #[inline]
    fn deliver(&mut self, view: &EventView<'_>, bytes: &[u8], routing: Routing, source: &SourceInfo, way: Way) {
        for bound in &mut self.bound {
            if !bound.sub.active.load(Ordering::Acquire) {
                continue;
            }
            let known = view.kinds.known();
            let notices: Notices = if routing.flags & FLAG_REFRESH != 0 {
                bound.binding.current(routing.number)
            } else if known.intersects(Kinds::VALUES) && routing.flags & FLAG_REMARK == 0 {
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
                // What is no reading of the attribute is not judged as one.
                let judged = known.is_empty() || known.intersects(Kinds::VALUES) && routing.flags & FLAG_REMARK == 0;
                if has_reading
                    && judged
                    && let Some(sieve) = &mut bound.sieve
                    && !sieve.passes(reason, view)
                {
                    bound.sub.held_back.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
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
