//! Packets on their way into the archive: may they be written, are they within the quota, what becomes of those that are
//! not kept.
//!
//! Decision: the packets of a batch are handled together. A program that sends each record as a packet of its own would
//! otherwise cost a look-up in each table for every record. Packets are handled one by one where the result may differ
//! from packet to packet: at the end of a quota, with routes, or if one of them cannot be read.

use std::{borrow::Cow, sync::Arc};

use tampu_archive::{Appended, Arrival};
use tampu_bus::{Gap, LossReason, Sample, StreamInfo, WholeBatch};
use tampu_types::{
    BatchHeader, SourceName, Time, TopicName,
    log_batch::{LogBatchView, TYPE_ID},
};

use super::Store;
use crate::{
    collector::{quota::Packet, ring_losses::reported_losses},
    spool::topic::SPOOLED,
};

/// Consecutive packets of a stream that arrived together.
struct Packets<'a> {
    stream: &'a Arc<StreamInfo>,
    /// Numbers the packets.
    header: &'a BatchHeader,
    packets: &'a [&'a [u8]],
    received: Time,
}

impl Packets<'_> {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| packet.len() as u64).sum()
    }

    /// Returns the number of records that they claim to hold. A packet that cannot be read counts as one.
    fn records(&self) -> u64 {
        self.packets.iter().map(|packet| LogBatchView::claimed(packet).map_or(1, |count| count as u64)).sum()
    }
}

impl Store {
    /// Takes a sample; returns whether the archive has its content in memory.
    pub(super) fn sample(&mut self, sample: &Sample<'_>) -> bool {
        let stream = sample.stream;
        let bytes = match sample.payload.bytes() {
            Some(bytes) => Cow::Borrowed(bytes),
            None => match sample.payload.to_vec() {
                Ok(bytes) => Cow::Owned(bytes),
                // The writer has taken back the lent memory: the sample is lost as if it had been dropped.
                Err(_) => {
                    let (from, to, why) = (sample.sequence, Some(sample.sequence + 1), LossReason::Dropped);
                    self.gap(Gap { stream: stream.clone(), from, to, why });
                    return false;
                }
            },
        };
        if stream.type_tag == SPOOLED {
            self.spooled(stream, sample.sequence, &bytes, sample.received);
            return false;
        }
        let header = sample.header(self.shared.participant.domain());
        self.take(&Packets { stream, header: &header, packets: &[&bytes], received: sample.received })
    }

    /// Takes a whole batch; returns whether the archive has the content of its last packet in memory.
    pub(super) fn batch(&mut self, batch: &WholeBatch<'_>) -> bool {
        let stream = batch.stream;
        if stream.type_tag == SPOOLED {
            batch.samples().zip(batch.first..).for_each(|(bytes, number)| self.spooled(stream, number, bytes, batch.received));
            return false;
        }
        let header = BatchHeader {
            source: stream.source.clone(),
            type_id: stream.type_tag.id,
            type_version: stream.type_tag.version,
            flags: 0,
            ..batch.header.clone()
        };
        let packets: Vec<&[u8]> = batch.samples().collect();
        let packets = Packets { stream, header: &header, packets: &packets, received: batch.received };
        if self.router.as_ref().is_some_and(|router| !router.is_idle()) { self.take_each(&packets) } else { self.take(&packets) }
    }

    /// Takes packets one by one; returns whether the archive has the content of the last one in memory.
    fn take_each(&mut self, packets: &Packets<'_>) -> bool {
        let Packets { stream, header, packets: all, received } = *packets;
        let take = |(&packet, first): (&&[u8], u64)| {
            let header = BatchHeader { first, count: 1, ..header.clone() };
            self.take(&Packets { stream, header: &header, packets: &[packet], received })
        };
        all.iter().zip(header.first..).map(take).last().unwrap_or(false)
    }

    /// Takes packets together if nothing makes a difference between them; returns whether the archive has the content of
    /// the last one in memory.
    fn take(&mut self, packets: &Packets<'_>) -> bool {
        let Packets { stream, header, packets: samples, received } = *packets;
        if let Err(denied) = self.may_write(stream) {
            let why = denied.to_string();
            self.shared.status.refused(&stream.source, packets.records(), &why);
            self.drop_packets(packets, why);
            return false;
        }
        let packet = Packet {
            source: &stream.source,
            incarnation: stream.incarnation,
            stream: stream.stream,
            topic: &stream.topic,
            sent: header.sent,
            received: Some(received),
        };
        self.follow_quotas();
        if let Err(over) = self.meters.admit(&packet) {
            self.shared.status.over_quota(&stream.source, packets.records());
            self.drop_packets(packets, over.to_string());
            return false;
        }
        let [bytes] = samples else { return self.take_several(packets, &packet) };
        let of_logs = stream.type_tag.id == TYPE_ID;
        let sifted = self.router.as_ref().filter(|_| of_logs).and_then(|router| router.sift(bytes));
        let kept = match &sifted {
            Some(sifted) => sifted.kept.as_deref(),
            None => Some(*bytes),
        };
        let arrival = Arrival::of_stream(header, kept.as_slice(), received);
        let taken = if of_logs {
            self.append(&arrival)
        } else {
            Err(format!("its type is {}, a log batch's is {TYPE_ID}", stream.type_tag.id))
        };
        let taken = match taken {
            Ok(appended) => appended,
            Err(why) => {
                self.shared.rejected.put(header, bytes, &why);
                self.shared.status.rejected(&stream.source);
                // The batch was set aside and counts as done: it must not be sent again.
                self.append(&Arrival { samples: &[], ..arrival }).unwrap_or_default()
            }
        };
        let Some(appended) = taken else { return false };
        // A batch that was set aside counts towards the quota, too.
        let records = (appended.records + appended.duplicates).max(1);
        self.meters.charge(&packet, records, bytes.len() as u64);
        self.shared.status.took(&stream.source, stream.incarnation, &appended, received);
        self.note_losses(&stream.source, &stream.topic, bytes, &appended);
        if let (true, Some(kept), true) = (self.has_routes(), kept, appended.records > 0) {
            self.to_route.push_back((appended.ticket, kept.to_vec()));
        }
        if let (Some(router), Some(sifted)) = (&self.router, sifted) {
            self.shared.status.left_out(&stream.source, sifted.records);
            router.route(sifted.left_out);
        }
        self.wait_for(&appended, stream, header.next());
        true
    }

    /// Takes packets of which the first was admitted, together or one by one.
    fn take_several(&mut self, packets: &Packets<'_>, packet: &Packet<'_>) -> bool {
        let Packets { stream, header, packets: samples, received } = *packets;
        let (records, bytes) = self.meters.room(packet);
        let count = || packets.records().max(samples.len() as u64);
        let is_within = bytes >= packets.bytes() && (records == u64::MAX || records >= count());
        let reports_losses = || samples.iter().any(|sample| reported_losses(stream.topic.as_str(), sample) > 0);
        if stream.type_tag.id != TYPE_ID || !is_within || reports_losses() {
            return self.take_each(packets);
        }
        let appended = match self.append(&Arrival::of_stream(header, samples, received)) {
            Ok(Some(appended)) => appended,
            Ok(None) => return false,
            // Nothing of it was stored.
            Err(_) => return self.take_each(packets),
        };
        let records = (appended.records + appended.duplicates).max(samples.len() as u64);
        self.meters.charge(packet, records, packets.bytes());
        self.shared.status.took(&stream.source, stream.incarnation, &appended, received);
        self.wait_for(&appended, stream, header.next());
        true
    }

    /// Counts the losses that a packet reports. A packet that repeats records may repeat its reports too, so it is not counted.
    pub(super) fn note_losses(&self, source: &SourceName, topic: &TopicName, packet: &[u8], appended: &Appended) {
        let is_new = appended.records > 0 && appended.duplicates == 0;
        let lost = if is_new { reported_losses(topic.as_str(), packet) } else { 0 };
        if lost > 0 {
            self.shared.status.lost_in_rings(source, lost);
        }
    }

    /// Drops packets on purpose: counts them, marks them for the report, and keeps them from being sent again.
    fn drop_packets(&mut self, packets: &Packets<'_>, why: String) {
        let Packets { stream, header, received, .. } = *packets;
        self.ledger.add(&stream.source, why, packets.records(), packets.bytes());
        let nothing = Arrival { samples: &[], ..Arrival::of_stream(header, &[], received) };
        if let Ok(Some(appended)) = self.append(&nothing) {
            self.wait_for(&appended, stream, header.next());
        }
    }
}
