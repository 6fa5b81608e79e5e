//! Offers in writers' heartbeats: streams and their extent.

use std::sync::{Arc, atomic::Ordering};

use tampu_types::{Incarnation, Partition, SourceName, TopicName};

use super::{
    ACK_PATIENCE, Core, Origin, Received, event::SourceState, inbox::Handed, stream_state::StreamInfo, stream_state::StreamState,
};
use crate::{
    access::Verb,
    links::lock,
    shared::{Progress, ProgressPage, whose},
    wire::control::{Heartbeat, Offer, SenderState},
    writer::TypeTag,
};

impl Core {
    /// Processes a heartbeat of a writer's participant; `offers` are those for this reader.
    pub fn heartbeat(&self, beat: &Heartbeat, offers: &[&Offer], host: &str) {
        let Ok(source) = SourceName::new(beat.source.as_str()) else { return };
        // A heartbeat refers to batches that are already announced.
        self.look();
        let now = self.links.clock.monotonic();
        let mut received = lock(&self.received);
        if received.ended.contains(&beat.from) {
            return;
        }
        if beat.state.is_end() && offers.is_empty() && !received.sources.contains_key(&beat.from) {
            // This reader never read a stream of this process.
            return;
        }
        if let Some(heard) = received.sources.get_mut(&beat.from) {
            heard.says_absent &= beat.state != SenderState::Present;
        }
        if !self.heard(&mut received, beat.from, &source, Origin::Host(host), now) {
            return;
        }
        if self.qos.direct && !beat.direct.is_empty() && !received.direct.contains_key(&beat.from) {
            received.direct.insert(beat.from, (beat.direct.clone(), false));
            self.links.wake_refetch_server.open();
        }
        let mut ack_by = u64::MAX;
        let mut refused = Vec::new();
        for offer in offers {
            let key = (beat.from, offer.stream);
            let Ok(topic) = TopicName::new(offer.topic.as_str()) else { continue };
            if !self.links.may(host, Verb::Write, &topic) {
                refused.push(topic);
                continue;
            }
            let Some(stream_state) = self.stream_state(&mut received, beat, &source, offer, host) else { continue };
            let mut out = Vec::new();
            let inbox = received.inboxes.entry(key).or_insert_with(|| self.new_inbox(key));
            let begins = !inbox.has_begun();
            let before = inbox.expected();
            inbox.offered(offer.start, offer.lowest, offer.next, now, &mut out);
            if begins {
                let start = out.first().map(|handed| match handed {
                    Handed::Batch { arrival, skip } => arrival.first + skip,
                    Handed::Lost { from, .. } => *from,
                });
                stream_state.take(start.unwrap_or(inbox.expected()).max(before));
            }
            if offer.ends {
                inbox.ends_soon();
            }
            if let Some(when) = inbox.next_ask() {
                self.links.wake_by(when);
            }
            // A reader without recovery owes no progress reports. One on the writer's host still owes them, because its report that
            // it can read announcements must arrive, and it travels over sockets.
            stream_state.owes.store(self.qos.reliable || begins || stream_state.progress.is_some(), Ordering::Release);
            stream_state.watched.store(offer.watches, Ordering::Release);
            if offer.answer_now {
                stream_state.awaited.fetch_max(offer.next, Ordering::AcqRel);
            }
            if offer.announces && !stream_state.attached.load(Ordering::Acquire) {
                self.attach(&stream_state);
                ack_by = now;
            }
            ack_by = ack_by.min(if offer.answer_now || begins { now } else { now + ACK_PATIENCE });
            self.hand_on(&mut received, key, out);
        }
        match beat.state {
            SenderState::Present => {}
            SenderState::Absent => self.absent(&mut received, beat.from),
            SenderState::Left => self.ends(&mut received, beat.from, SourceState::Left, now),
            SenderState::Died => self.ends(&mut received, beat.from, SourceState::Died, now),
        }
        drop(received);
        if beat.state.is_end() {
            // Acknowledgements end here. An outlet for its readers is opened anew.
            self.links.forget(beat.from);
        }
        refused.iter().for_each(|topic| self.links.refuse(host, topic));
        if ack_by < u64::MAX {
            self.ack_by(ack_by);
        }
    }

    pub(super) fn stream_state(
        &self,
        received: &mut Received,
        beat: &Heartbeat,
        source: &SourceName,
        offer: &Offer,
        host: &str,
    ) -> Option<Arc<StreamState>> {
        let key = (beat.from, offer.stream);
        if let Some(stream_state) = received.stream_states.get(&key) {
            return Some(stream_state.clone());
        }
        let info = StreamInfo {
            source: source.clone(),
            incarnation: beat.from,
            host: self.links.proved(host),
            stream: offer.stream,
            topic: TopicName::new(offer.topic.as_str()).ok()?,
            partition: Partition::from_key(&offer.partition)?,
            type_tag: TypeTag { id: offer.type_id, version: offer.type_version },
        };
        let same_host = self.links.incarnation.shares_host_with(beat.from);
        let progress = if same_host { self.progress(key) } else { None };
        let stream_state = Arc::new(StreamState::new(info, self.links.shared_dir.clone().filter(|_| same_host), progress));
        stream_state.credit.store(offer.credit as usize, Ordering::Relaxed);
        received.stream_states.insert(key, stream_state.clone());
        Some(stream_state)
    }

    /// Assigns a slot of this reader's page to one more stream.
    pub(super) fn progress(&self, (writer, stream): (Incarnation, u32)) -> Option<Progress> {
        let page =
            self.page.get_or_init(|| ProgressPage::create(self.links.progress_page(self.links.incarnation, self.id)?).ok());
        page.as_ref().filter(|page| !page.is_lost())?.slot(whose(writer, stream))
    }
}
