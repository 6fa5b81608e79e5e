//! What writers are owed: acknowledgements, together where that may be, at once where somebody waits.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use tampu_types::Incarnation;

use super::{ACK_PATIENCE, Core, Item, lane::Lane};
use crate::{
    links::lock,
    qos::Ack,
    wire::control::{Acknowledgement, Mark},
};

impl Core {
    /// Does what is due (`nodes` are the boots of the hosts that can be reached, `is_here` says whose presence there is);
    /// returns when it wants to be called next.
    pub fn pulse(&self, now: u64, nodes: &[u32], is_here: impl Fn(Incarnation) -> bool) -> u64 {
        // Before anything is missed, or anybody buried.
        self.look();
        let next_ack = self.acknowledge_due(now);
        let next_ask = self.ask_due(now);
        let next_look = self.look_for_silence(now, nodes, is_here);
        next_ack.min(next_ask).min(next_look)
    }

    pub(super) fn ack_by(&self, when: u64) {
        if self.ack_at.fetch_min(when, Ordering::AcqRel) > when {
            self.links.pulse_by(when);
        }
    }

    pub(super) fn acknowledge_due(&self, now: u64) -> u64 {
        let at = self.ack_at.load(Ordering::Acquire);
        if now < at {
            return at;
        }
        self.ack_at.store(u64::MAX, Ordering::Release);
        let owing: Vec<Arc<Lane>> =
            lock(&self.received).lanes.values().filter(|lane| lane.owes.swap(false, Ordering::AcqRel)).cloned().collect();
        let mut by_writer: HashMap<Incarnation, Vec<Mark>> = HashMap::new();
        for lane in owing {
            by_writer.entry(lane.info.incarnation).or_default().push(self.mark(&lane, false));
        }
        for (to, marks) in by_writer {
            self.tell(to, marks);
        }
        self.ack_at.load(Ordering::Acquire)
    }

    pub(super) fn mark(&self, lane: &Lane, leaving: bool) -> Mark {
        lane.unacked.store(0, Ordering::Relaxed);
        Mark {
            reader: self.id,
            stream: lane.info.stream,
            next: lane.taken.load(Ordering::Acquire),
            needs_copies: lane.needs_copies.load(Ordering::Acquire),
            leaving,
            linked: lane.linked.load(Ordering::Acquire),
            attached: lane.attached.load(Ordering::Acquire),
            slot: lane.progress.as_ref().map_or(0, |progress| progress.number),
        }
    }

    pub(super) fn tell(&self, to: Incarnation, marks: Vec<Mark>) {
        let acknowledgement = Acknowledgement { from: self.links.incarnation, marks };
        // A lost acknowledgement is repeated at the writer's next heartbeat.
        let _ = self.links.tell(to, acknowledgement.encode());
    }

    pub(super) fn take(&self, into: &mut VecDeque<Item>) {
        std::mem::swap(&mut lock(&self.received).queue, into);
    }

    /// The application has done with a batch.
    pub(super) fn done(&self, lane: &Lane, next: u64, size: usize, weight: usize) {
        let before = self.queued.fetch_sub(size, Ordering::AcqRel);
        if before - size < self.qos.queue / 2 && self.starved.swap(false, Ordering::AcqRel) {
            self.links.pulse_by(0);
        }
        if self.qos.ack == Ack::OnTake {
            self.acknowledge(lane, next, weight);
        }
    }

    /// `weight` says how much speaks for telling the writer now, in bytes.
    pub(super) fn acknowledge(&self, lane: &Lane, next: u64, weight: usize) {
        if !lane.take(next) || !self.qos.reliable {
            return;
        }
        let watched = lane.watched.load(Ordering::Acquire);
        let unacked = lane.unacked.fetch_add(weight, Ordering::Relaxed).saturating_add(weight);
        let awaited = lane.awaited.load(Ordering::Acquire);
        let arrived = awaited > 0 && next >= awaited && lane.awaited.swap(0, Ordering::AcqRel) > 0;
        if !watched && (arrived || unacked >= lane.credit.load(Ordering::Relaxed) / 4) {
            lane.owes.store(false, Ordering::Release);
            self.tell(lane.info.incarnation, vec![self.mark(lane, false)]);
        } else if !lane.owes.swap(true, Ordering::AcqRel) {
            self.ack_by(self.links.clock.monotonic() + ACK_PATIENCE);
        }
    }

    pub(super) fn leave(&self) {
        lock(&self.guards).clear();
        let lanes: Vec<Arc<Lane>> = lock(&self.received).lanes.values().cloned().collect();
        for lane in lanes {
            self.tell(lane.info.incarnation, vec![self.mark(&lane, true)]);
        }
    }
}
