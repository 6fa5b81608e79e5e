//! The readers of a stream: their arrival, departure and position, and the wait until they have all samples.

use std::{sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use tampu_types::Incarnation;

use super::{ASK_AGAIN, BEAT_UNACKED, Batches, LOOK_AGAIN, ReaderState, Start, Stream};
use crate::{
    links::lock,
    shared::{Watch, whose},
    wire::{
        control::{Mark, Offer},
        keys::ReaderInfo,
        refetch::{Refetch, Shelf},
        state::{FollowerReport, WriterReport},
    },
};

impl Stream {
    /// Notes whether readers may still come that were on the bus before the stream.
    pub fn await_readers(&self, awaits: bool) {
        lock(&self.outbox).await_readers(awaits);
    }

    pub fn match_reader(&self, card: &ReaderInfo, start: Start) {
        let mut outbox = lock(&self.outbox);
        // The batch being filled was begun before the reader appeared, but is not sent yet. The reader gets it as well.
        outbox.match_reader(card.clone(), start);
        self.matched.store(outbox.matched(), Ordering::Relaxed);
        drop(outbox);
        self.gate.open();
    }

    pub fn has_reader(&self, incarnation: Incarnation, reader: u32) -> bool {
        lock(&self.outbox).has_reader(incarnation, reader)
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

    pub fn trust_reader(&self, incarnation: Incarnation, reader: u32) {
        lock(&self.outbox).trust_reader(incarnation, reader);
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
        // Also without news: a change that the writer has already seen is news to a thread that waits here.
        self.gate.open();
        if let Some(tell) = self.on_word.get() {
            tell();
        }
        if self.delivered.fetch_max(delivered, Ordering::AcqRel) < delivered
            && let Some(tell) = self.on_delivery.get()
        {
            tell(delivered);
        }
    }

    /// Passes an offer for each participant that reads this stream to `put`; without `to_all`, only for readers that have yet
    /// to acknowledge. Returns true if there is one.
    pub fn offers(&self, to_all: bool, mut put: impl FnMut(Incarnation, Offer)) -> bool {
        let answer_now = self.answer_now.swap(false, Ordering::AcqRel);
        let announces = matches!(*lock(&self.batches_at), Batches::Ring(_));
        let mut outbox = lock(&self.outbox);
        self.send_unsent(&mut outbox);
        for (incarnation, reader, start, watches) in outbox.offers(to_all || answer_now) {
            let offer = Offer {
                reader,
                stream: self.id,
                start,
                lowest: outbox.lowest(),
                next: outbox.sealed(),
                credit: u32::try_from(outbox.qos().credit).unwrap_or(u32::MAX),
                type_id: self.tag.id,
                type_version: self.tag.version,
                answer_now,
                watches,
                announces,
                ends: self.ends.load(Ordering::Acquire),
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

    /// Reports this stream and its readers.
    pub fn report(&self) -> WriterReport {
        let mut outbox = lock(&self.outbox);
        let (samples, sealed) = (outbox.next(), outbox.sealed());
        let present = outbox.statuses().into_iter().filter(|reader| reader.state != ReaderState::Gone);
        let readers = present.map(|reader| FollowerReport {
            source: reader.source,
            process: Some(reader.incarnation),
            reader: reader.reader,
            state: reader.state.word().to_owned(),
            reliable: reader.reliable,
            behind: sealed.saturating_sub(reader.acked),
            lost: reader.lost,
        });
        WriterReport {
            topic: self.topic.as_str().to_owned(),
            partition: self.partition.names().map(str::to_owned).collect(),
            stream: self.id,
            samples,
            readers: readers.collect(),
            bytes: outbox.position(),
            cache: outbox.cache_taken() as u64,
            credit: outbox.credit() as u64,
            waited_ns: self.waited.load(Ordering::Relaxed),
        }
    }

    pub fn direct_endpoint(&self) -> Option<&str> {
        self.direct.as_ref().map(|(endpoint, _)| endpoint.as_str())
    }

    /// Reports if anything has been written.
    pub fn has_samples(&self) -> bool {
        lock(&self.outbox).next() > 0
    }

    pub fn has_unacked(&self) -> bool {
        lock(&self.outbox).has_unacked()
    }

    pub fn wants_word(&self) -> bool {
        lock(&self.outbox).wants_word()
    }

    /// Notes that the process is about to end. Readers that wait for a multicast group request at once what they miss.
    pub fn ends_soon(&self) {
        self.ends.store(true, Ordering::Release);
    }

    /// Waits until every reliable reader has acknowledged all written samples, or the timeout.
    pub fn settle(&self, timeout: Duration) {
        self.send_now();
        let clock = &self.links.clock;
        let until = clock.monotonic().saturating_add(timeout.as_nanos() as u64);
        // A watched reader wakes the writer when it has caught up. Other readers are asked, and asked again if no answer arrives.
        // One question is enough while their batches are under way. A question for every acknowledgement would only add load on
        // both sides.
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
