//! Acknowledgements that are due to writers: sent together if they may wait, at once if a writer waits.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use tampu_types::Incarnation;

use super::{ACK_PATIENCE, Core, Item, ReaderStats, stream_state::StreamState};
use crate::{
    links::lock,
    nodes::Nodes,
    qos::Ack,
    wire::control::{Acknowledgement, Mark},
};

impl Core {
    /// Sends the acknowledgements that are due and returns the time of the next call. `nodes` are those of the
    /// reachable hosts; `is_here` reports the presence of a process.
    pub fn run_due(&self, now: u64, nodes: &Nodes, is_here: impl Fn(Incarnation) -> bool) -> u64 {
        // Before a loss is declared or a writer is ended.
        self.look();
        let next_ack = self.acknowledge_due(now);
        let next_ask = self.ask_due(now);
        let next_look = self.look_for_silence(now, nodes, is_here);
        next_ack.min(next_ask).min(next_look)
    }

    pub(super) fn ack_by(&self, when: u64) {
        if self.ack_at.fetch_min(when, Ordering::AcqRel) > when {
            self.links.wake_by(when);
        }
    }

    pub(super) fn acknowledge_due(&self, now: u64) -> u64 {
        let at = self.ack_at.load(Ordering::Acquire);
        if now < at {
            return at;
        }
        self.ack_at.store(u64::MAX, Ordering::Release);
        let owing: Vec<Arc<StreamState>> = lock(&self.received)
            .stream_states
            .values()
            .filter(|stream_state| stream_state.owes.swap(false, Ordering::AcqRel))
            .cloned()
            .collect();
        let mut by_writer: HashMap<Incarnation, Vec<Mark>> = HashMap::new();
        for stream_state in owing {
            by_writer.entry(stream_state.info.incarnation).or_default().push(self.mark(&stream_state, false));
        }
        for (to, marks) in by_writer {
            self.tell(to, marks);
        }
        self.ack_at.load(Ordering::Acquire)
    }

    pub(super) fn mark(&self, stream_state: &StreamState, leaving: bool) -> Mark {
        stream_state.unacked.store(0, Ordering::Relaxed);
        let slot = stream_state.slot();
        Mark {
            reader: self.id,
            stream: stream_state.info.stream,
            next: stream_state.taken.load(Ordering::Acquire),
            needs_copies: stream_state.needs_copies.load(Ordering::Acquire),
            leaving,
            linked: stream_state.linked.load(Ordering::Acquire),
            attached: slot.is_some() && stream_state.attached.load(Ordering::Acquire),
            grouped: self.grouped.load(Ordering::Acquire),
            slot: slot.unwrap_or(0),
            received: stream_state.received.load(Ordering::Acquire),
        }
    }

    pub(super) fn tell(&self, to: Incarnation, marks: Vec<Mark>) {
        let acknowledgement = Acknowledgement { from: self.links.incarnation, marks };
        // After a lost acknowledgement, the writer's next heartbeat makes the reader repeat it.
        let _ = self.links.tell(to, acknowledgement.encode());
    }

    pub(super) fn take(&self, into: &mut VecDeque<Item>) {
        std::mem::swap(&mut lock(&self.received).queue, into);
    }

    /// Notes that the application has finished a batch.
    pub(super) fn done(&self, stream_state: &StreamState, next: u64, size: usize, weight: usize) {
        let before = self.queued.fetch_sub(size, Ordering::AcqRel);
        if before - size < self.qos.queue / 2 && self.starved.swap(false, Ordering::AcqRel) {
            self.links.wake_by(0);
        }
        if self.qos.ack == Ack::OnTake {
            self.acknowledge(stream_state, next, weight);
        }
    }

    /// Notes that the application has everything before `next` in its memory. With `at_once`, a writer that does not read
    /// this in shared memory gets a message.
    pub(super) fn received(&self, stream_state: &StreamState, next: u64, at_once: bool) {
        stream_state.receive(next);
        if at_once && !stream_state.watched.load(Ordering::Acquire) {
            self.tell(stream_state.info.incarnation, vec![self.mark(stream_state, false)]);
        }
    }

    /// Acknowledges a position. `weight` is the urgency of notifying the writer, in bytes.
    pub(super) fn acknowledge(&self, stream_state: &StreamState, next: u64, weight: usize) {
        if !stream_state.take(next) || !self.qos.reliable {
            return;
        }
        let watched = stream_state.watched.load(Ordering::Acquire);
        let unacked = stream_state.unacked.fetch_add(weight, Ordering::Relaxed).saturating_add(weight);
        let awaited = stream_state.awaited.load(Ordering::Acquire);
        let arrived = awaited > 0 && next >= awaited && stream_state.awaited.swap(0, Ordering::AcqRel) > 0;
        if !watched && (arrived || unacked >= stream_state.credit.load(Ordering::Relaxed) / 4) {
            stream_state.owes.store(false, Ordering::Release);
            self.tell(stream_state.info.incarnation, vec![self.mark(stream_state, false)]);
        } else if !stream_state.owes.swap(true, Ordering::AcqRel) {
            self.ack_by(self.links.clock.monotonic() + ACK_PATIENCE);
        }
    }

    /// Returns the counters since it was opened.
    pub fn stats(&self) -> ReaderStats {
        ReaderStats {
            batches: self.batches.load(Ordering::Relaxed),
            refetches: self.refetches.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            forged: self.forged.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
        }
    }

    /// Returns the numbers of processes that it hears and of streams that it reads.
    pub fn kept(&self) -> (usize, usize) {
        let received = lock(&self.received);
        (received.sources.len(), received.inboxes.len().max(received.stream_states.len()))
    }

    pub(super) fn leave(&self) {
        lock(&self.guards).clear();
        let stream_states: Vec<Arc<StreamState>> = lock(&self.received).stream_states.values().cloned().collect();
        for stream_state in stream_states {
            self.tell(stream_state.info.incarnation, vec![self.mark(&stream_state, true)]);
        }
    }
}
