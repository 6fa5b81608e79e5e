//! Those who read a stream: who comes and goes, how far they are, and waiting until they have all.

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use tampu_types::Incarnation;

use super::{ASK_AGAIN, BEAT_UNACKED, Batches, LOOK_AGAIN, Stream};
use crate::{
    links::lock,
    shared::{Watch, whose},
    wire::{
        control::{Mark, Offer},
        keys::ReaderCard,
        refetch::{Refetch, Shelf},
    },
};

impl Stream {
    pub fn match_reader(&self, card: &ReaderCard) {
        let mut outbox = lock(&self.outbox);
        // What is being filled was begun before the reader came, but nobody has it yet: it is the reader's as well.
        outbox.match_reader(card.clone());
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        drop(outbox);
        self.gate.open();
    }

    pub fn unmatch_reader(&self, incarnation: Incarnation, reader: u32) {
        let mut outbox = lock(&self.outbox);
        outbox.unmatch_reader(incarnation, reader);
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        drop(outbox);
        self.gate.open();
    }

    pub fn doubt_reader(&self, incarnation: Incarnation, reader: u32) {
        lock(&self.outbox).doubt_reader(incarnation, reader);
        self.gate.open();
    }

    pub fn acknowledge(&self, from: Incarnation, mark: &Mark) {
        let mut outbox = lock(&self.outbox);
        outbox.acknowledge(from, mark);
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        if outbox.could_watch(from, mark)
            && from.shares_host_with(self.links.incarnation)
            && let Some(page) = self.links.progress_page(from, mark.reader)
            && let Ok(watch) = Watch::open(&page, mark.slot, whose(self.links.incarnation, self.id))
        {
            outbox.watch(from, mark.reader, watch);
        }
        outbox.look();
        let delivered = outbox.acked_by_all().unwrap_or(0);
        drop(outbox);
        // Also without news: what the writer has seen by itself is news to whoever waits here.
        self.gate.open();
        if self.delivered.fetch_max(delivered, Ordering::AcqRel) < delivered
            && let Some(tell) = self.on_delivery.get()
        {
            tell(delivered);
        }
    }

    /// What to tell each participant that reads this stream, and whether somebody has yet to acknowledge.
    pub fn offers(&self, mut put: impl FnMut(Incarnation, Offer)) -> bool {
        let answer_now = self.answer_now.swap(false, Ordering::AcqRel);
        let board = matches!(*lock(&self.batches_at), Batches::Ring(_));
        let mut outbox = lock(&self.outbox);
        for (incarnation, reader, start, watches) in outbox.offers() {
            let offer = Offer {
                reader,
                stream: self.id,
                start,
                lowest: outbox.lowest(),
                next: outbox.sealed(),
                credit: u32::try_from(self.qos.credit).unwrap_or(u32::MAX),
                type_id: self.tag.id,
                type_version: self.tag.version,
                answer_now,
                watches,
                board,
                topic: self.topic.as_str().to_owned(),
                partition: self.partition.key(),
            };
            put(incarnation, offer);
        }
        outbox.wants_word()
    }

    pub fn refetch(&self, asked: &Refetch) -> (Vec<Bytes>, Shelf) {
        lock(&self.outbox).refetch(asked)
    }

    pub fn direct_endpoint(&self) -> Option<&str> {
        self.direct.as_ref().map(|(endpoint, _)| endpoint.as_str())
    }

    pub fn has_unacked(&self) -> bool {
        lock(&self.outbox).has_unacked()
    }

    pub fn wants_word(&self) -> bool {
        lock(&self.outbox).wants_word()
    }

    /// Waits until every reliable reader has acknowledged everything written so far, or the timeout.
    pub fn settle(&self, timeout: Duration) {
        self.send_now();
        let clock = &self.links.clock;
        let until = clock.monotonic().saturating_add(timeout.as_nanos() as u64);
        // Who can be watched rings when it has come that far; others are asked, and asked again if no answer comes. Once is
        // enough while they are on their way: a question for every acknowledgement would keep both sides busy with nothing else.
        let (mut asked, mut ask_at) = (false, clock.monotonic() + BEAT_UNACKED);
        loop {
            let seen = self.gate.openings();
            let now = clock.monotonic();
            if !self.has_unacked() || now >= until {
                return;
            }
            let (target, watch) = {
                let outbox = lock(&self.outbox);
                (outbox.sealed(), outbox.furthest_behind(outbox.sealed()))
            };
            if now >= ask_at || watch.is_none() && !asked {
                self.answer_now.store(true, Ordering::Release);
                self.links.beat_soon();
                (asked, ask_at) = (true, now + if watch.is_none() { ASK_AGAIN } else { BEAT_UNACKED });
            }
            let look_at = until.min(ask_at);
            match watch {
                Some(watch) => {
                    let pause = look_at.saturating_sub(now).min(4 * LOOK_AGAIN);
                    watch.wait_for(target, Duration::from_nanos(pause));
                }
                None => clock.wait(&self.gate, seen, look_at),
            }
        }
    }
}
