//! Writing processes: active, silent or gone.

use std::sync::atomic::Ordering;

use tampu_types::{Incarnation, SourceName};

use super::{
    Core, ENDED, Heard, Item, LAST_WORDS, LAST_WORDS_BY_GROUP, Origin, Received, SILENCE,
    event::{SourceChange, SourceState},
    inbox::Inbox,
};
use crate::{
    engine::{Fate, UNPROVED},
    links::lock,
    nodes::{FORGET, Nodes},
};

/// Reports if a multicast group may still bring samples of a process that has ended: missing ones, or such that nobody knows of.
fn awaits_group<'a>(mut inboxes: impl Iterator<Item = &'a Inbox>, state: SourceState, now: u64) -> bool {
    inboxes.any(|inbox| if state == SourceState::Died { inbox.comes_by_group(now) } else { inbox.awaits_group(now) })
}

impl Received {
    fn awaits_group(&self, of: Incarnation, state: SourceState, now: u64) -> bool {
        awaits_group(self.inboxes.iter().filter(|(key, _)| key.0 == of).map(|(_, inbox)| inbox), state, now)
    }
}

impl Core {
    /// Notes a message of a participant. Returns false if it cannot be of that participant: another host sent it, or it
    /// names another source.
    pub(super) fn heard(
        &self,
        received: &mut Received,
        from: Incarnation,
        source: &SourceName,
        origin: Origin<'_>,
        now: u64,
    ) -> bool {
        if !self.is_credible(received, from, source, origin) {
            self.forged.fetch_add(1, Ordering::Relaxed);
            if let Origin::Host(host) | Origin::Group(host) = origin {
                self.links.forged(host, from);
            }
            return false;
        }
        let change = |state| Item::Source(SourceChange { source: source.clone(), incarnation: from, state });
        match received.sources.get_mut(&from) {
            Some(heard) => {
                heard.last = now;
                // What a group brings late does not revive a process whose presence is gone.
                let is_late = matches!(origin, Origin::Group(_)) && heard.absent_since.is_some();
                if !heard.says_absent && !is_late && std::mem::take(&mut heard.silent) {
                    heard.absent_since = None;
                    received.queue.push_back(change(SourceState::Returned));
                    self.wake();
                }
            }
            None => {
                let host = match origin {
                    Origin::Host(host) | Origin::Group(host) => host.into(),
                    Origin::Participant(of) => self.links.chunk_of(of),
                };
                let heard = Heard {
                    source: source.clone(),
                    host,
                    last: now,
                    silent: false,
                    says_absent: false,
                    absent_since: None,
                    ending: None,
                };
                received.sources.insert(from, heard);
                received.queue.push_back(change(SourceState::Appeared));
                self.wake();
            }
        }
        true
    }

    fn is_credible(&self, received: &mut Received, from: Incarnation, source: &SourceName, origin: Origin<'_>) -> bool {
        let known = received.sources.get_mut(&from);
        if known.as_ref().is_some_and(|known| known.source != *source) {
            return false;
        }
        match (origin, known) {
            (Origin::Participant(of), _) => of == from,
            (Origin::Host(host) | Origin::Group(host), _) if !self.links.speaks_for(host, from) => false,
            (Origin::Host(host) | Origin::Group(host), Some(known)) if *known.host != *host => {
                // A process of this host had no name until its node came.
                let is_named_now = *known.host == *UNPROVED || self.links.engine.host().is_none();
                if is_named_now {
                    known.host = host.into();
                }
                is_named_now
            }
            (Origin::Host(_) | Origin::Group(_), _) => true,
        }
    }

    /// Notes that a participant stands for a program that it cannot reach.
    pub(super) fn absent(&self, received: &mut Received, from: Incarnation) {
        let Some(heard) = received.sources.get_mut(&from) else { return };
        heard.says_absent = true;
        if !std::mem::replace(&mut heard.silent, true) {
            let change = SourceChange { source: heard.source.clone(), incarnation: from, state: SourceState::Silent };
            received.queue.push_back(Item::Source(change));
            self.wake();
        }
    }

    /// Processes a change of a process's presence; `fate` is its known state.
    pub fn presence(&self, of: Incarnation, here: bool, fate: Fate) {
        let now = self.links.clock.monotonic();
        let mut received = lock(&self.received);
        if here {
            received.ended.retain(|ended| *ended != of);
        }
        let Some(heard) = received.sources.get_mut(&of).filter(|heard| heard.ending.is_none()) else { return };
        if here {
            heard.absent_since = None;
            return;
        }
        heard.absent_since.get_or_insert(now);
        self.look_at_lives.store(0, Ordering::Release);
        // The heartbeat worker ends dead writers: their last samples may still be under way.
        if fate != Fate::Dead && !std::mem::replace(&mut heard.silent, true) {
            let change = SourceChange { source: heard.source.clone(), incarnation: of, state: SourceState::Silent };
            received.queue.push_back(Item::Source(change));
            self.wake();
        }
    }

    /// Ends a process that has reported its end, at once or when a multicast group has brought what is still under way.
    pub(super) fn ends(&self, received: &mut Received, of: Incarnation, state: SourceState, now: u64) {
        if !received.awaits_group(of, state, now) {
            return self.end_source(received, of, state);
        }
        if let Some(heard) = received.sources.get_mut(&of) {
            heard.ending.get_or_insert((state, now + LAST_WORDS_BY_GROUP));
            self.look_at_lives.store(0, Ordering::Release);
            self.links.wake_by(now);
        }
    }

    pub(super) fn end_source(&self, received: &mut Received, of: Incarnation, state: SourceState) {
        let Some(heard) = received.sources.remove(&of) else { return };
        let ended: Vec<_> = received.inboxes.keys().copied().filter(|key| key.0 == of).collect();
        for key in ended {
            if let Some(mut inbox) = received.inboxes.remove(&key) {
                let mut out = Vec::new();
                match state {
                    SourceState::Died => inbox.writer_died(None, &mut out),
                    _ => inbox.writer_left(&mut out),
                }
                self.hand_on(received, key, out);
            }
            received.stream_states.remove(&key);
        }
        received.direct.remove(&of);
        if received.ended.len() == ENDED {
            received.ended.pop_front();
        }
        received.ended.push_back(of);
        let change = SourceChange { source: heard.source, incarnation: of, state };
        received.queue.push_back(Item::Source(change));
        self.wake();
    }

    /// Notes processes that are silent, and ends those that have died; returns the time of the next look. Looks by time only,
    /// or after news.
    pub(super) fn look_for_silence(&self, now: u64, nodes: &Nodes, is_here: impl Fn(Incarnation) -> bool) -> u64 {
        let look_at = self.look_at_lives.load(Ordering::Acquire);
        if now < look_at {
            return look_at;
        }
        let mut received = lock(&self.received);
        if received.sources.is_empty() {
            return u64::MAX;
        }
        let mut changes = Vec::new();
        let mut ended = Vec::new();
        let mut doubtful = false;
        let Received { sources, inboxes, .. } = &mut *received;
        let of = |incarnation| inboxes.iter().filter(move |(key, _)| key.0 == incarnation).map(|(_, inbox)| inbox);
        for (&incarnation, heard) in sources {
            if let Some((state, until)) = heard.ending {
                doubtful = true;
                if now >= until || !awaits_group(of(incarnation), state, now) {
                    ended.push((incarnation, state));
                }
                continue;
            }
            // Presence overtakes samples. A presence message that arrives after its writer left does not revive the writer.
            if heard.silent && heard.absent_since.is_none() && !is_here(incarnation) {
                heard.absent_since = Some(now);
            }
            if let Some(since) = heard.absent_since {
                // A killed process may still be leaving the process table when its connection breaks.
                doubtful |= now.saturating_sub(since) < SILENCE;
                // Processes of one host share it with the end of their samples' way.
                let is_far = !self.links.incarnation.shares_host_with(incarnation);
                let is_by_group = is_far && of(incarnation).any(|inbox| inbox.comes_by_group(now));
                let words = if is_by_group { LAST_WORDS_BY_GROUP } else { LAST_WORDS };
                let dead = match self.links.engine.fate(incarnation) {
                    Fate::Dead => now >= since + words,
                    Fate::Alive => now >= since + FORGET,
                    Fate::Unknown => now >= nodes.dead_at(incarnation.boot, since, words).unwrap_or(since + FORGET),
                };
                if dead {
                    ended.push((incarnation, SourceState::Died));
                }
            } else if !heard.silent && now.saturating_sub(heard.last) > SILENCE {
                heard.silent = true;
                let (source, state) = (heard.source.clone(), SourceState::Silent);
                changes.push(Item::Source(SourceChange { source, incarnation, state }));
            }
        }
        let news = !changes.is_empty();
        received.queue.extend(changes);
        for &(incarnation, state) in &ended {
            self.end_source(&mut received, incarnation, state);
        }
        let next = now + if doubtful { 20_000_000 } else { 250_000_000 };
        // With the lock, under which news arrive.
        self.look_at_lives.store(next, Ordering::Release);
        drop(received);
        ended.into_iter().for_each(|(incarnation, _)| self.links.forget(incarnation));
        if news {
            self.wake();
        }
        next
    }
}
