//! One reader of the bus: the streams of a server, and the bindings of this process's subscriptions to its attributes.
//!
//! Only its own thread uses a stream worker, so nothing on the path of an event is locked. Changes of subscriptions
//! arrive as commands. An event finds its attribute by the attribute's number, an index into a table, and not by name.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tampu_bus::{BusError, Event as BusEvent, History, Participant, Reader, ReaderQos, SourceChange, SourceState};
use tampu_types::{Incarnation, PartitionFilter, TopicFilter, event::Reason};

use super::{
    binding::Binding,
    by_incarnation::ByIncarnation,
    early::EarlySamples,
    event::{AttributeInfo, source_event},
    route::{BoundSubscription, Route, Source, accept_event, accept_sample, lost, notify_route},
    stream_command::{BindTarget, StreamCommand, StreamCommands, StreamKey},
    subscriber::SubscriptionState,
    undecided::{Undecided, UndecidedBytes},
};
use crate::{
    ask::{self, Refresh, Wanted},
    filter::FilterState,
};

/// Time in ns after which a request for a current value is repeated. It doubles each time up to the longest. An
/// unreliable reader misses samples that were written before the writer knew it, so it repeats the request sooner.
const RETRY_AFTER: u64 = 50_000_000;
const RETRY_AFTER_UNRELIABLE: u64 = 5_000_000;
const LONGEST_RETRY_AFTER: u64 = 500_000_000;
/// Most bytes that wait in an unreliable reader. It needs only the newest value, so a long queue is useless.
const QUEUE_UNRELIABLE: usize = 1 << 20;
/// Most bytes that wait in the reader of a single subscription, whose callback may wait. More stay with their writers.
const QUEUE_ALONE: usize = 2 << 20;
/// Most samples handled in one turn before commands.
const AT_ONCE: usize = 4096;
/// Most attributes named in one request.
const ASK_AT_ONCE: usize = 10_000;

pub(super) struct StreamWorker {
    commands: Arc<StreamCommands>,
    participant: Participant,
    reader: Reader,
    sources: ByIncarnation<Source>,
    early: EarlySamples,
    /// This process. Later incarnations are read from their first sample.
    here: Incarnation,
    token: u64,
    scratch: Vec<u8>,
    /// Time until a first request is repeated, ns.
    retry_after: u64,
    /// True if it reads streams of servers for this host.
    of_host: bool,
}

impl StreamWorker {
    pub fn open(
        participant: &Participant,
        key: &StreamKey,
        commands: Arc<StreamCommands>,
        token: u64,
    ) -> Result<StreamWorker, BusError> {
        let mut qos = ReaderQos { history: History::All, reliable: key.reliable, ..ReaderQos::default() };
        if !key.reliable {
            qos.queue = QUEUE_UNRELIABLE;
        } else if key.alone.is_some() {
            qos.queue = QUEUE_ALONE;
        }
        let reader = participant.reader(&TopicFilter::new(key.topics.clone())?, &PartitionFilter::All, qos)?;
        let retry_after = if key.reliable { RETRY_AFTER } else { RETRY_AFTER_UNRELIABLE };
        commands.wake_by(reader.alarm());
        Ok(StreamWorker {
            commands,
            participant: participant.clone(),
            reader,
            sources: ByIncarnation::default(),
            early: EarlySamples::default(),
            here: participant.incarnation(),
            token,
            scratch: Vec::new(),
            retry_after,
            of_host: key.of_host,
        })
    }

    /// Runs the commands and handles the samples that arrive within this time. Returns whether there were any.
    pub fn turn(&mut self, timeout: Duration) -> bool {
        let mut came = self.run_commands();
        self.request_current();
        self.deliver_held();
        let mut wait = if came { Duration::ZERO } else { timeout.min(self.next_request()) };
        for _ in 0..AT_ONCE {
            let StreamWorker { reader, sources, early, here, token, scratch, .. } = self;
            match reader.next(wait) {
                None => break,
                Some(BusEvent::Sample(sample)) => accept_sample(sources, early, *here, &sample, *token, scratch),
                Some(BusEvent::Gap(gap)) => lost(sources, &gap),
                Some(BusEvent::Source(change)) => self.changed(&change),
            }
            came = true;
            wait = Duration::ZERO;
        }
        if !came && !self.early.is_empty() {
            self.early.expire(self.participant.clock().utc());
        }
        came
    }

    fn next_request(&self) -> Duration {
        let now = self.participant.clock().monotonic();
        if self.sources.values().any(|source| source.suspect_loss && !source.silent) {
            return Duration::ZERO;
        }
        let asked = self.sources.values().filter_map(|source| source.asked.as_ref().map(|(at, _)| *at)).min();
        let held = self.sources.values().filter_map(|source| source.held.first().map(|(due, _)| *due)).min();
        let next = asked.into_iter().chain(held).min();
        next.map_or(Duration::MAX, |at| Duration::from_nanos(at.saturating_sub(now).max(1_000_000)))
    }

    fn deliver_held(&mut self) {
        if self.sources.values().any(|source| !source.held.is_empty()) {
            let now = self.participant.clock().monotonic();
            self.sources.values_mut().for_each(|source| source.deliver_held(now));
        }
    }

    /// Runs the commands. Earlier samples were handled before, so a server's last events are delivered before its
    /// death.
    fn run_commands(&mut self) -> bool {
        let Some(commands) = self.commands.take_notified() else { return false };
        let did = !commands.is_empty();
        let mut bound = Vec::new();
        for command in commands {
            if let StreamCommand::Bind { target, .. } = &command {
                bound.push((target.source.incarnation, target.attribute));
            }
            self.run_command(command);
        }
        if !self.early.is_empty() {
            bound.into_iter().for_each(|(incarnation, attribute)| self.early.discard(incarnation, attribute));
            self.early.expire(self.participant.clock().utc());
        }
        did
    }

    fn run_command(&mut self, command: StreamCommand) {
        match command {
            StreamCommand::Bind { target, info, sub, rebound, new, valid } => {
                if valid.is_none_or(|valid| valid.load(Ordering::Acquire)) {
                    self.bind(&target, info, sub, rebound, new);
                }
            }
            StreamCommand::Forward { to, command } => {
                to.push(*command);
                to.notify();
            }
            StreamCommand::Unbind { incarnation, attribute, sub, report } => {
                if report.is_some() {
                    self.drain(incarnation);
                }
                self.unbind(incarnation, attribute, sub, report);
            }
            StreamCommand::Configured { incarnation, attribute, info } => {
                let now = self.participant.clock().utc();
                let Some(source) = self.sources.get_mut(&incarnation) else { return };
                let Some(Some(route)) = source.routes.get_mut(attribute as usize) else { return };
                if route.info.epoch == info.epoch {
                    return;
                }
                route.info = info;
                // A subscription without a value yet gets the first one with this configuration.
                for bound in route.bound.iter().filter(|bound| bound.binding.is_live()) {
                    bound.sub.deliver(&source_event(&route.info, &source.info, Reason::ConfigChanged, now));
                }
            }
            StreamCommand::Notify { incarnation, attribute, reason } => self.notify(incarnation, attribute, reason),
            StreamCommand::Withdrawn { incarnation, attribute } => {
                self.drain(incarnation);
                if let Some(source) = self.sources.get_mut(&incarnation)
                    && let Some(Some(route)) = source.routes.get_mut(attribute as usize)
                {
                    // Its answer may not come any more; what it has said comes before its end.
                    route.decide(None, &source.info);
                }
                self.notify(incarnation, attribute, Reason::SourceLeft);
                let slot = self.sources.get_mut(&incarnation).and_then(|source| source.routes.get_mut(attribute as usize));
                if let Some(route) = slot.and_then(Option::take) {
                    self.unbound(&route);
                }
            }
            StreamCommand::Reachable { incarnation } => {
                // What the stream has said until now comes first; it may say itself that the server is back.
                self.drain(incarnation);
                self.silence(incarnation, false);
            }
            StreamCommand::Ended { incarnation, reason } => {
                self.drain(incarnation);
                self.end(incarnation, reason);
            }
        }
    }

    /// Handles the samples that have arrived, up to the end of this incarnation if it is among them. So the last events
    /// of a server are delivered before its end.
    fn drain(&mut self, until: Incarnation) {
        let mut left = self.reader.stats().queued;
        loop {
            let StreamWorker { reader, sources, early, here, token, scratch, .. } = self;
            match reader.next(Duration::ZERO) {
                None => break,
                Some(BusEvent::Sample(sample)) => {
                    // Samples of others that arrive meanwhile can wait.
                    left = left.saturating_sub(sample.payload.len().max(1));
                    accept_sample(sources, early, *here, &sample, *token, scratch);
                }
                Some(BusEvent::Gap(gap)) => lost(sources, &gap),
                Some(BusEvent::Source(change)) => self.changed(&change),
            }
            if left == 0 || !self.sources.contains_key(&until) {
                break;
            }
        }
    }

    fn bind(&mut self, target: &BindTarget, info: Arc<AttributeInfo>, sub: Arc<SubscriptionState>, rebound: bool, new: bool) {
        if !sub.active.load(Ordering::Acquire) {
            return;
        }
        let incarnation = target.source.incarnation;
        let source = self.sources.entry(incarnation).or_insert_with(|| Source {
            info: target.source.clone(),
            routes: Vec::new(),
            silent: false,
            suspect_loss: false,
            undecided: UndecidedBytes::default(),
            held: BTreeSet::new(),
            wanted: Vec::new(),
            released: Vec::new(),
            released_before: Vec::new(),
            asked: None,
            retry_after: self.retry_after,
        });
        let index = target.attribute as usize;
        if source.routes.len() <= index {
            source.routes.resize_with(index + 1, || None);
        }
        let of_host = self.of_host;
        // Most attributes have one subscription; the vector would begin with room for four.
        let route = source.routes[index].get_or_insert_with(|| {
            let (info, bound) = (info.clone(), Vec::with_capacity(1));
            Box::new(Route { info, own: target.own, of_host, bound, kept: None, undecided: None })
        });
        // A forwarded binding may be older than a later configuration.
        if route.info.epoch < info.epoch {
            route.info = info;
        }
        let before = if rebound { sub.positions.lock().take(&route.info.config.name, incarnation) } else { None };
        let binding = match before {
            Some(last) => Binding::again(sub.options.first, last),
            None if rebound => Binding::new(sub.options.first, true, true),
            None => {
                let (clock, total) = (self.participant.clock(), source.undecided.clone());
                let begun_utc = incarnation.start.max(target.since.0.max(0).cast_unsigned());
                route.undecided.get_or_insert_with(|| Undecided::new(clock, begun_utc, total));
                Binding::undecided(sub.options.first)
            }
        };
        sub.bound.fetch_add(1, Ordering::Relaxed);
        self.commands.bindings.fetch_add(1, Ordering::Relaxed);
        if rebound {
            let event = source_event(&route.info, &source.info, Reason::SourceReturned, self.participant.clock().utc());
            sub.deliver(&event);
        }
        let filter = FilterState::of(&sub.options.filter, &self.participant.clock());
        route.bound.push(BoundSubscription { sub, binding, filter, delivered: 0, held: None });
        source.want(target.attribute);
        // Other bindings have had these samples and skip them. A source that takes over from another is followed from its next
        // sample, without replay.
        if new {
            let token = self.token;
            self.early.replay(incarnation, target.attribute, self.participant.clock().utc(), |bytes, times| {
                let _ = accept_event(source, bytes, token, times);
            });
        }
    }

    fn unbind(&mut self, incarnation: Incarnation, attribute: u32, sub: u64, report: Option<Reason>) {
        let now = self.participant.clock().utc();
        let Some(source) = self.sources.get_mut(&incarnation) else { return };
        let Some(slot) = source.routes.get_mut(attribute as usize) else { return };
        let Some(route) = slot else { return };
        if report.is_some() {
            // Its answer may not come any more; what it has said comes before its end.
            route.decide(None, &source.info);
        }
        for BoundSubscription { sub, .. } in route.bound.extract_if(.., |bound| bound.sub.id == sub) {
            self.commands.bindings.fetch_sub(1, Ordering::Relaxed);
            sub.bound.fetch_sub(1, Ordering::Relaxed);
            // Its silence was reported when the stream fell silent.
            let known = report == Some(Reason::SourceHung) && source.silent;
            if let Some(reason) = report.filter(|_| !known && sub.active.load(Ordering::Acquire)) {
                sub.deliver(&source_event(&route.info, &source.info, reason, now));
            }
        }
        if route.bound.is_empty() {
            *slot = None;
            if self.of_host {
                source.released.push(attribute);
            }
        }
    }

    /// Notifies all subscriptions that are bound to an attribute.
    fn notify(&mut self, incarnation: Incarnation, attribute: u32, reason: Reason) {
        let now = self.participant.clock().utc();
        let Some(source) = self.sources.get(&incarnation) else { return };
        if let Some(Some(route)) = source.routes.get(attribute as usize) {
            notify_route(route, &source.info, reason, now);
        }
    }

    fn unbound(&self, route: &Route) {
        self.commands.bindings.fetch_sub(route.bound.len(), Ordering::Relaxed);
        for bound in &route.bound {
            bound.sub.bound.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends an incarnation: every bound subscription gets the reason.
    fn end(&mut self, incarnation: Incarnation, reason: Reason) {
        self.early.forget(incarnation);
        let Some(mut source) = self.sources.remove(&incarnation) else { return };
        let now = self.participant.clock().utc();
        for route in source.routes.iter_mut().flatten() {
            // Its answer will not come; what it has said comes before its end.
            route.decide(None, &source.info);
            notify_route(route, &source.info, reason, now);
            self.unbound(route);
            if reason == Reason::SourceDied {
                keep_positions(route, incarnation);
            }
        }
    }

    /// Handles a change of a server: it appeared, fell silent, returned or is gone.
    fn changed(&mut self, change: &SourceChange) {
        match change.state {
            SourceState::Died => self.end(change.incarnation, Reason::SourceDied),
            SourceState::Left => self.end(change.incarnation, Reason::SourceLeft),
            SourceState::Appeared => {}
            SourceState::Silent | SourceState::Returned => self.silence(change.incarnation, change.state == SourceState::Silent),
        }
    }

    /// Handles a server that fell silent or returned.
    fn silence(&mut self, incarnation: Incarnation, silent: bool) {
        let now = self.participant.clock().utc();
        let Some(source) = self.sources.get_mut(&incarnation) else { return };
        if source.silent == silent {
            return;
        }
        source.silent = silent;
        let reason = if silent { Reason::SourceHung } else { Reason::SourceReturned };
        for (index, route) in source.routes.iter_mut().enumerate() {
            let Some(route) = route else { continue };
            notify_route(route, &source.info, reason, now);
            if !silent {
                route.bound.iter_mut().for_each(|bound| bound.binding.returned());
                source.wanted.push(index as u32);
            }
        }
    }

    /// Requests the wanted current values from their servers.
    fn request_current(&mut self) {
        let now = self.participant.clock().monotonic();
        for (&incarnation, source) in &mut self.sources {
            if source.silent {
                continue;
            }
            if std::mem::take(&mut source.suspect_loss) {
                source.suspect_all(now);
            }
            if let Some((at, attributes)) = &mut source.asked
                && now >= *at
            {
                // Values that have not come are requested again.
                attributes.retain(|&attribute| {
                    let route = source.routes.get(attribute as usize).and_then(Option::as_ref);
                    route.is_some_and(|route| route.bound.iter().any(|bound| bound.binding.asked))
                });
                source.retry_after =
                    if attributes.is_empty() { self.retry_after } else { (2 * source.retry_after).min(LONGEST_RETRY_AFTER) };
                source.wanted.append(attributes);
                source.asked = None;
            }
            if source.wanted.is_empty() && !source.has_released(now) {
                continue;
            }
            let mut wanted = std::mem::take(&mut source.wanted);
            wanted.sort_unstable();
            wanted.dedup();
            for &attribute in &wanted {
                if let Some(Some(route)) = source.routes.get_mut(attribute as usize) {
                    route.bound.iter_mut().for_each(|bound| bound.binding.asked = true);
                    route.undecided.iter_mut().for_each(|undecided| undecided.ask(now));
                }
            }
            for question in questions(source, self.token, &wanted, self.of_host.then(|| self.participant.incarnation()), now) {
                ask::refresh(&self.participant, incarnation, &question);
            }
            if wanted.is_empty() {
                continue;
            }
            match &mut source.asked {
                Some((_, attributes)) => attributes.append(&mut wanted),
                none => *none = Some((now + source.retry_after, wanted)),
            }
        }
    }

    /// Returns whether no subscription is bound and no command waits.
    pub fn is_idle(&self) -> bool {
        self.commands.bindings.load(Ordering::Relaxed) == 0 && self.commands.is_empty()
    }
}

/// Keeps what was delivered last, for the case that this incarnation is heard again.
fn keep_positions(route: &Route, incarnation: Incarnation) {
    for bound in &route.bound {
        if let Some(last) = bound.binding.last() {
            bound.sub.positions.lock().keep(&route.info.config.name, incarnation, last);
        }
    }
}

/// Returns the questions for the current values of these attributes. A reader of the stream of its host also tells what it
/// wants, and what it wants no longer.
fn questions(source: &mut Source, token: u64, attributes: &[u32], reader: Option<Incarnation>, now: u64) -> Vec<Refresh> {
    let ask = |attributes: &[u32]| Refresh { token, attributes: attributes.to_vec(), reader, ..Refresh::default() };
    if reader.is_none() {
        return attributes.chunks(ASK_AT_ONCE).map(ask).collect();
    }
    let mut alike: Vec<((Wanted, bool), Vec<u32>)> = Vec::new();
    for &attribute in attributes {
        let Some(Some(route)) = source.routes.get(attribute as usize) else { continue };
        let wanted = route.wanted();
        match alike.iter_mut().find(|(other, _)| *other == wanted) {
            Some((_, attributes)) => attributes.push(attribute),
            None => alike.push((wanted, vec![attribute])),
        }
    }
    let mut questions: Vec<Refresh> = Vec::new();
    for ((wanted, from_start), attributes) in &alike {
        let all = attributes.chunks(ASK_AT_ONCE);
        questions.extend(all.map(|some| Refresh { wanted: wanted.clone(), from_start: *from_start, ..ask(some) }));
    }
    let released = source.take_released(now);
    if !released.is_empty() {
        questions.insert(0, Refresh { released, ..ask(&[]) });
    }
    questions
}
