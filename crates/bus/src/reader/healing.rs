//! Healing: missing samples are requested again.

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use tampu_types::Incarnation;

use super::{Core, Origin};
use crate::{
    links::lock,
    wire::refetch::{Refetch, Shelf},
};

impl Core {
    pub(super) fn ask_due(&self, now: u64) -> u64 {
        let room = self.queued.load(Ordering::Acquire) < self.qos.queue / 2;
        let mut questions = Vec::new();
        let mut next = u64::MAX;
        {
            let mut received = lock(&self.received);
            let absent: Vec<Incarnation> = received
                .sources
                .iter()
                .filter(|(_, heard)| heard.absent_since.is_some() || heard.ending.is_some())
                .map(|(incarnation, _)| *incarnation)
                .collect();
            for (&(incarnation, stream), inbox) in &mut received.inboxes {
                if absent.contains(&incarnation) {
                    continue;
                }
                if let Some(hole) = inbox.hole_to_ask(room, now) {
                    questions.push((incarnation, stream, hole, (inbox.requests.limit(), inbox.requests.timeout())));
                }
                if room && let Some(when) = inbox.next_ask() {
                    next = next.min(when.max(now + 1_000_000));
                }
            }
        }
        for (incarnation, stream, hole, size) in questions {
            self.ask(incarnation, stream, hole, size);
        }
        next
    }

    /// Requests samples. `size` is the limit of the answer in bytes, and its timeout in ns.
    fn ask(&self, writer: Incarnation, stream: u32, hole: std::ops::Range<u64>, (limit, timeout): (u32, u64)) {
        self.refetches.fetch_add(1, Ordering::Relaxed);
        let question = Refetch { stream, from: hole.start, to: hole.end, limit };
        let Some(core) = self.this.get().cloned() else { return };
        let (mut shelf, mut bytes) = (None, 0);
        let answers = Box::new(move |answer| {
            use crate::engine::Answer;
            let Some(core) = core.upgrade() else { return };
            match answer {
                Answer::Part(part) => match Shelf::decode(&part) {
                    Some(told) => shelf = Some(told),
                    None => {
                        bytes += part.len() as u64;
                        core.arrived(part, Origin::Participant(writer));
                    }
                },
                Answer::End | Answer::Unanswered => core.refetched((writer, stream), &hole, shelf.take(), bytes),
            }
        });
        let info = lock(&self.received).stream_states.get(&(writer, stream)).map(|state| state.info.clone());
        // Nothing is asked for before the offer.
        let Some(info) = info else { return };
        let host = self.links.chunk_of(writer);
        let key = self.links.keys.refetch(&host, writer, &info.topic, &info.partition);
        let timeout = Duration::from_nanos(timeout);
        if self.links.engine.ask(&key, Bytes::from(question.encode()), timeout, answers).is_err() {
            let now = self.links.clock.monotonic();
            if let Some(inbox) = lock(&self.received).inboxes.get_mut(&(writer, stream)) {
                inbox.unanswered(now);
            }
        }
    }

    fn refetched(&self, key: (Incarnation, u32), asked: &std::ops::Range<u64>, shelf: Option<Shelf>, bytes: u64) {
        let now = self.links.clock.monotonic();
        let mut received = lock(&self.received);
        let mut out = Vec::new();
        let Some(inbox) = received.inboxes.get_mut(&key) else { return };
        match shelf {
            Some(shelf) => {
                inbox.requests.answered(bytes, now);
                inbox.answered(asked, shelf.lowest, shelf.next, now, &mut out);
            }
            None => {
                inbox.requests.unanswered(bytes, now);
                inbox.unanswered(now);
            }
        }
        let next = inbox.next_ask();
        self.hand_on(&mut received, key, out);
        drop(received);
        if let Some(when) = next {
            self.links.wake_by(when);
        }
    }
}
