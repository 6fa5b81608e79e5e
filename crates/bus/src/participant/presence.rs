//! The processes, nodes and readers on the bus, as the engine announces them, and the streams that a reader gets.
//!
//! The callbacks of the engine are quick, and hold no lock while they send.

use super::{Registry, Remote, Shared, SourceInfo, WatchSources};
use crate::{
    access::Verb,
    engine::{Fate, Presence},
    links::lock,
    nodes::FORGET,
    qos::Hold,
    wire::keys::ReaderInfo,
    writer::{Start, Stream},
};
use tampu_types::Incarnation;

/// Time in ns that a reader stays doubtful after its presence disappeared. Its process may have closed it, died, or be
/// cut off.
const DOUBT: u64 = 80_000_000;
/// Time in ns between two looks at a reader whose presence has just disappeared.
const LEAVING: u64 = 20_000_000;
/// Time in ns after which a reader whose process is still announced has closed. After a cut the announcements of a process go
/// one by one, and on a busy machine with pauses.
const CLOSED: u64 = 500_000_000;
/// Time in ns that a process has to announce its readers again after it has returned. The announcements return one by one,
/// in any order.
const RETURN: u64 = 3_000_000_000;

impl Shared {
    /// Notes that all readers have been seen that were on the bus before this process.
    pub(super) fn know_first_readers(&self) {
        let mut registry = lock(&self.registry);
        registry.knows_first_readers = true;
        registry.streams.values().for_each(|stream| stream.await_readers(false));
        drop(registry);
        self.first_readers.open();
        // Streams that ended meanwhile are looked at.
        self.links.beat_soon();
    }

    /// Waits until the readers are known that were on the bus before this process; returns whether they are.
    pub(super) fn meet_readers(&self, until: u64) -> bool {
        let clock = &self.links.clock;
        loop {
            let seen = self.first_readers.openings();
            let are_known = lock(&self.registry).knows_first_readers;
            if are_known || clock.monotonic() >= until {
                return are_known;
            }
            clock.wait(&self.first_readers, seen, until);
        }
    }

    /// Matches a reader with a stream if it reads it and may, and lets go of it otherwise. Returns whether it reads it.
    pub(super) fn introduce(&self, stream: &Stream, card: &ReaderInfo, start: Start) -> bool {
        let (of, reader) = (card.incarnation, card.reader);
        let suits = self.suits(stream, card);
        match (suits, stream.has_reader(of, reader)) {
            (true, false) => stream.match_reader(card, start),
            (false, true) => stream.unmatch_reader(of, reader),
            _ => {}
        }
        suits
    }

    /// Returns true if a reader reads a stream, and may.
    fn suits(&self, stream: &Stream, card: &ReaderInfo) -> bool {
        // An interim reader serves only its own host: every host has one.
        let here = card.hold != Hold::Interim || card.incarnation.shares_host_with(self.links.incarnation);
        here && card.topics.matches(&stream.topic)
            && card.partitions.matches(&stream.partition)
            && self.links.may(&self.links.chunk_of(card.incarnation), Verb::Read, &stream.topic)
    }

    /// Matches the readers that the rules about topics let in, and lets go of the others.
    pub(super) fn follow_rules(&self) {
        let mut registry = lock(&self.registry);
        let Registry { remote, streams, .. } = &mut *registry;
        for remote in remote.values_mut() {
            streams.values().for_each(|stream| remote.reads |= self.introduce(stream, &remote.card, Start::Now));
        }
        drop(registry);
        self.links.beat_soon();
    }

    pub(super) fn node_seen(&self, seen: &Presence) {
        let keys = &self.links.keys;
        let (Some(boot), Some(host)) = (keys.parse_node(&seen.key), keys.host_of(&seen.key)) else { return };
        let mut registry = lock(&self.registry);
        registry.nodes.seen(boot, host, seen.here, self.links.clock.monotonic());
        registry.settle_at = 0;
    }

    pub(super) fn source_seen(&self, seen: &Presence) {
        let keys = &self.links.keys;
        let (Some((incarnation, source)), Some(host)) = (keys.parse_presence(&seen.key), keys.host_of(&seen.key)) else { return };
        if !self.accepts(incarnation, host, seen.here) {
            return;
        }
        let now = self.links.clock.monotonic();
        let mut registry = lock(&self.registry);
        let known =
            if seen.here { registry.sources.insert(incarnation, source.clone()) } else { registry.sources.remove(&incarnation) };
        registry.settle_at = 0;
        if seen.here && known.is_none() {
            let Registry { remote, streams, .. } = &mut *registry;
            for remote in remote.values_mut().filter(|remote| remote.card.incarnation == incarnation) {
                remote.process_returned = now;
                // Rules are about its host, which was not known while it was away.
                streams.values().for_each(|stream| remote.reads |= self.introduce(stream, &remote.card, Start::Now));
            }
        }
        let watchers: Vec<WatchSources> = registry.watchers.values().cloned().collect();
        drop(registry);
        if known.is_some() != seen.here {
            let info = SourceInfo { source, incarnation };
            watchers.iter().for_each(|watcher| watcher(&info, seen.here));
        }
        let fate = if seen.here { Fate::Alive } else { self.links.engine.fate(incarnation) };
        for core in self.readers() {
            core.presence(incarnation, seen.here, fate);
        }
        if !seen.here {
            self.links.wake_by(0);
        }
    }

    /// Notes the host that announces a participant, or no longer. Returns false if another host announces the same one.
    fn accepts(&self, incarnation: Incarnation, host: &str, here: bool) -> bool {
        if !here {
            return self.links.unbind(incarnation, host);
        }
        let is_its_host = self.links.bind(incarnation, host);
        if !is_its_host {
            self.links.forged(host, incarnation);
        }
        is_its_host
    }

    pub(super) fn reader_seen(&self, seen: &Presence) {
        let keys = &self.links.keys;
        let (Some(card), Some(host)) = (keys.parse_reader(&seen.key), keys.host_of(&seen.key)) else { return };
        let key = (card.incarnation, card.reader);
        // A reader goes before or after its participant, whose binding says which host it is on.
        let is_its_host = if seen.here { self.links.bind(key.0, host) } else { self.links.speaks_for(host, key.0) };
        if !is_its_host {
            return self.links.forged(host, key.0);
        }
        if seen.here {
            let mut registry = lock(&self.registry);
            let remote = Remote { card: card.clone(), doubted_since: None, process_returned: 0, reads: false };
            let before = registry.remote.insert(key, remote);
            // Under the lock, so that a stream made meanwhile is introduced exactly once. A reader that is back is introduced
            // again: the rules may have changed while its host was not known.
            // A reader that was there before this process reads its streams from their beginning, however long the news of it
            // took: a process may write one sample and end.
            let start = if registry.knows_first_readers { Start::Now } else { Start::Beginning };
            let mut reads_something = false;
            for stream in registry.streams.values() {
                reads_something |= self.introduce(stream, &card, start);
                if before.as_ref().is_some_and(|remote| remote.doubted_since.is_some()) {
                    stream.trust_reader(card.incarnation, card.reader);
                }
            }
            let has_read = before.is_some_and(|remote| remote.reads);
            if let Some(remote) = registry.remote.get_mut(&key) {
                remote.reads = reads_something || has_read;
            }
            drop(registry);
            // On a site of many processes nearly all readers read nothing of this one.
            if reads_something {
                self.links.beat_soon();
            }
            return;
        }
        let now = self.links.clock.monotonic();
        let mut registry = lock(&self.registry);
        registry.settle_at = 0;
        if let Some(remote) = registry.remote.get_mut(&key) {
            remote.doubted_since.get_or_insert(now);
        }
        drop(registry);
        if self.links.engine.fate(card.incarnation) != Fate::Dead {
            self.streams().iter().for_each(|stream| stream.doubt_reader(card.incarnation, card.reader));
        }
        self.links.wake_by(0);
    }

    /// Decides about readers whose presence has disappeared; returns the time of the next look.
    ///
    /// Looks by time only, or after news: each asks the kernel about every doubtful reader of this host, and a worker that sends
    /// heartbeats comes here a thousand times a second.
    pub(super) fn settle_doubts(&self, now: u64) -> u64 {
        let mut gone = Vec::new();
        let mut next = u64::MAX;
        {
            let mut registry = lock(&self.registry);
            if now < registry.settle_at {
                return registry.settle_at;
            }
            let Registry { remote, streams, sources, nodes, .. } = &mut *registry;
            remote.retain(|&(incarnation, reader), remote| {
                let Some(since) = remote.doubted_since else { return true };
                let returned = remote.process_returned;
                let dead = match self.links.engine.fate(incarnation) {
                    Fate::Dead => true,
                    // The process has returned: its reader may follow.
                    _ if sources.contains_key(&incarnation) && returned > since => now >= returned + RETURN,
                    // The process is still announced: it closed the reader.
                    _ if sources.contains_key(&incarnation) => now >= since + CLOSED,
                    Fate::Alive => now >= since + FORGET,
                    Fate::Unknown => now >= nodes.dead_at(incarnation.boot, since, DOUBT).unwrap_or(since + FORGET),
                };
                if dead {
                    // Under the lock: it may be announced again at any moment, and is matched then.
                    streams.values().for_each(|stream| stream.unmatch_reader(incarnation, reader));
                    gone.push(incarnation);
                } else {
                    // A killed process may still be leaving the process table.
                    next = next.min(if now < since + DOUBT { (now + LEAVING).min(since + DOUBT) } else { now + DOUBT });
                }
                !dead
            });
            registry.settle_at = next;
        }
        gone.into_iter().for_each(|incarnation| self.links.forget(incarnation));
        next
    }
}
