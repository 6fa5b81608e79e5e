//! Heartbeats and acknowledgements: what a participant tells the others of its streams, and hears of theirs.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::Shared;
use crate::{
    links::lock,
    wire::control::{Acknowledgement, Control, Heartbeat, Offer, SenderState},
    writer::{BEAT_UNACKED, Stream},
};
use tampu_types::Incarnation;

/// Period of the heartbeats of an idle writer, in ns.
const BEAT_IDLE: u64 = 500_000_000;
/// Longest wait for missing acknowledgements when a participant leaves.
const LEAVE: Duration = Duration::from_millis(500);
/// Longest wait until the farewell has left the process. It takes one question to the node.
const FAREWELL: Duration = Duration::from_millis(200);

impl Shared {
    pub(super) fn told(&self, bytes: &[u8], key: &str) {
        let Some(host) = self.links.keys.host_of(key) else { return };
        // Bytes that are no control message were not sent by a participant of this release, so no reply is sent.
        match Control::decode(bytes) {
            Ok(Control::Heartbeat(Heartbeat { from, .. }) | Control::Acknowledgement(Acknowledgement { from, .. }))
                if !self.links.speaks_for(host, from) =>
            {
                self.links.forged(host, from);
            }
            Ok(Control::Heartbeat(beat)) => {
                for core in self.readers() {
                    let offers: Vec<&Offer> = beat.offers.iter().filter(|offer| offer.reader == core.id).collect();
                    // The end also concerns a reader whose streams were all closed before.
                    if !offers.is_empty() || beat.offers.is_empty() || beat.state.is_end() {
                        core.heartbeat(&beat, &offers, host);
                    }
                }
            }
            Ok(Control::Acknowledgement(acknowledgement)) => {
                for mark in &acknowledgement.marks {
                    let stream = lock(&self.registry).streams.get(&mark.stream).cloned();
                    if let Some(stream) = stream {
                        stream.acknowledge(acknowledgement.from, mark);
                    }
                }
            }
            Err(_) => {}
        }
    }

    pub(super) fn run_due(&self, now: u64) -> u64 {
        let mut next = now + BEAT_IDLE;
        if self.look_at_rules.load(Ordering::Relaxed) <= now {
            self.look_at_rules.store(now + BEAT_IDLE, Ordering::Relaxed);
            if self.links.rules_changed() {
                self.follow_rules();
                self.follow_groups();
            } else if self.links.groups_changed() {
                self.follow_groups();
            }
            self.follow_settings();
        }
        let streams = self.streams();
        for stream in &streams {
            next = next.min(stream.flush_lingering(now).unwrap_or(u64::MAX));
        }
        next = next.min(self.beat(&streams, now));
        let nodes = lock(&self.registry).nodes.clone();
        for core in self.readers() {
            next = next.min(core.run_due(now, &nodes, |incarnation| lock(&self.registry).sources.contains_key(&incarnation)));
        }
        next.min(self.settle_doubts(now))
    }

    /// Follows changed multicast groups.
    fn follow_groups(&self) {
        self.streams().iter().for_each(|stream| stream.follow_groups());
        self.readers().iter().for_each(|core| core.follow_groups());
    }

    /// Sends the heartbeats that are due; returns the time of the next ones. Between the heartbeats of an idle writer, only
    /// readers that have not acknowledged everything get one: other hosts need not hear of a reader here that is behind.
    fn beat(&self, streams: &[Arc<Stream>], now: u64) -> u64 {
        let at_once = self.links.beat_now.swap(false, Ordering::AcqRel);
        let unacked = streams.iter().any(|stream| stream.wants_word());
        let period = if unacked { BEAT_UNACKED } else { BEAT_IDLE };
        let (last, last_to_all) = {
            let registry = lock(&self.registry);
            (registry.last_beat, registry.last_beat_to_all)
        };
        if !at_once && now < last + period {
            return last + period;
        }
        let to_all = at_once || now >= last_to_all + BEAT_IDLE;
        let mut offers: HashMap<Incarnation, Vec<Offer>> = HashMap::new();
        let mut done = Vec::new();
        // Until then, a reader may come that is entitled to a stream that has ended.
        let knows_readers = lock(&self.registry).knows_first_readers;
        for stream in streams {
            let owed = stream.offers(to_all, |to, offer| offers.entry(to).or_default().push(offer));
            if to_all && stream.closed.load(Ordering::Acquire) && !owed && knows_readers {
                done.push(stream.id);
            }
        }
        if self.leaving.load(Ordering::Acquire) {
            // Every process that may have read a sample is notified, also of streams that are already closed and settled.
            lock(&self.registry).remote.iter().filter(|(_, remote)| remote.reads).for_each(|(&(to, _), _)| {
                offers.entry(to).or_default();
            });
        }
        self.send_beats(offers, streams);
        let mut registry = lock(&self.registry);
        registry.last_beat = now;
        if to_all {
            registry.last_beat_to_all = now;
        }
        done.iter().for_each(|id| {
            registry.streams.remove(id);
        });
        (now + period).min(if to_all { now } else { last_to_all } + BEAT_IDLE)
    }

    fn send_beats(&self, offers: HashMap<Incarnation, Vec<Offer>>, streams: &[Arc<Stream>]) {
        let direct = streams.iter().find_map(|stream| stream.direct_endpoint()).unwrap_or_default();
        let state = self.sender_state();
        for (to, offers) in offers {
            let beat = Heartbeat {
                from: self.links.incarnation,
                source: self.links.source.as_str().to_owned(),
                direct: direct.to_owned(),
                state,
                offers,
            };
            // The next heartbeat replaces a lost one.
            let _ = self.links.tell(to, beat.encode());
        }
    }

    /// Leaves in order: sends the remaining samples, gives readers a moment to acknowledge, and announces the end.
    pub(super) fn leave(&self) {
        self.tuning.close();
        let clock = &self.links.clock;
        let until = clock.monotonic() + LEAVE.as_nanos() as u64;
        let streams = self.streams();
        if streams.iter().any(|stream| stream.has_samples()) {
            self.meet_readers(until);
        }
        streams.iter().for_each(|stream| stream.ends_soon());
        streams.iter().for_each(|stream| stream.settle(Duration::from_nanos(until.saturating_sub(clock.monotonic()))));
        self.leaving.store(true, Ordering::Release);
        self.beat_farewell(&streams);
        self.await_sending();
        // Outside the lock: dropping a declaration may wait for a callback that takes the lock.
        let guards = std::mem::take(&mut lock(&self.registry).guards);
        drop(guards);
    }

    /// Waits until the farewell has left this process, which may end at once and would count as dead.
    fn await_sending(&self) {
        let own = self.links.incarnation;
        if !lock(&self.registry).remote.keys().all(|(of, _)| *of == own) {
            self.links.await_sending(FAREWELL);
        }
    }

    fn sender_state(&self) -> SenderState {
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        match (is(&self.leaving), is(&self.is_absent)) {
            (true, _) if is(&self.dies) => SenderState::Died,
            (true, _) => SenderState::Left,
            (false, true) => SenderState::Absent,
            (false, false) => SenderState::Present,
        }
    }

    fn beat_farewell(&self, streams: &[Arc<Stream>]) {
        self.links.beat_now.store(true, Ordering::Release);
        self.beat(streams, self.links.clock.monotonic());
    }
}
