//! Arrivals that gather until the writer takes them.

use std::{collections::HashMap, time::Duration};

use tampu_types::{
    Incarnation,
    log_batch::{LogBatchBuilder, LogBatchView},
};

use crate::{
    Appended, Arrival, StreamOffset,
    ids::seen::{Run, Seen},
    wal::{
        digest::{self, Digest, Stored, Together},
        group::{self, Group},
    },
};

/// State that arrivals change.
#[derive(Default)]
pub(crate) struct Gathering {
    pub(crate) group: Group,
    pub(crate) seen: Seen,
    /// Stream positions, including those that are not committed yet.
    pub(crate) offsets: HashMap<(Incarnation, u32), u64>,
    pub(crate) committed_offsets: HashMap<(Incarnation, u32), u64>,
    pub(crate) ticket: u64,
    /// Bytes of the group that is being written.
    pub(crate) writing: usize,
    pub(crate) hurry: bool,
    pub(crate) closing: bool,
    /// True if the open segment should be closed.
    pub(crate) roll: bool,
    pub(crate) stuck: Option<String>,
    pub(crate) records: u64,
    pub(crate) duplicates: u64,
    pub(crate) commits: u64,
    pub(crate) slowest_commit: Duration,
}

impl Gathering {
    /// Adds all samples of an arrival at once, if each of them is new and they follow in their own stream; returns `None`
    /// otherwise.
    pub(crate) fn take_whole(&mut self, arrival: &Arrival<'_>, whole: &Together<'_>) -> Option<Appended> {
        let Together { digest: whole, contents } = whole;
        let header = arrival.header;
        let next = header.first + arrival.samples.len() as u64;
        let offset = arrival
            .advances
            .filter(|offset| (offset.incarnation, offset.stream, offset.next) == (header.incarnation, header.stream, next))?;
        let stream = (offset.incarnation, offset.stream);
        let identified = u64::from(whole.records - whole.anonymous);
        let is_new = self.offsets.get(&stream).is_none_or(|&stored| stored <= header.first)
            && !whole.doubled
            && self.seen.missing(&whole.runs) == identified;
        if !is_new || !group::fits_a_frame(arrival.samples) {
            return None;
        }
        self.seen.insert(&whole.runs);
        self.group.push(arrival, header.first..next, offset, contents, whole);
        self.offsets.insert(stream, offset.next);
        self.ticket += 1;
        self.group.ticket = self.ticket;
        Some(Appended { ticket: self.ticket, records: u64::from(whole.records), duplicates: 0 })
    }

    /// Adds the new part of an arrival.
    pub(crate) fn take(&mut self, arrival: &Arrival<'_>, digests: &[Digest]) -> Appended {
        let header = arrival.header;
        let mut appended = Appended { ticket: self.ticket, ..Appended::default() };
        let mut known = 0;
        let mut own_stream = true;
        if let Some(offset) = arrival.advances {
            own_stream = (offset.incarnation, offset.stream) == (header.incarnation, header.stream);
            if let Some(&stored) = self.offsets.get(&(offset.incarnation, offset.stream)) {
                if offset.next <= stored {
                    known = digests.len();
                } else if own_stream {
                    known = stored.saturating_sub(header.first).min(digests.len() as u64) as usize;
                }
            }
            let again = known == digests.len() && self.offsets.get(&(offset.incarnation, offset.stream)) >= Some(&offset.next);
            if again {
                appended.duplicates = digests.iter().map(|digest| u64::from(digest.records)).sum();
                self.duplicates += appended.duplicates;
                return appended;
            }
        }
        let stays = StreamOffset { incarnation: header.incarnation, stream: header.stream, next: 0 };
        for (place, (sample, digest)) in arrival.samples.iter().zip(digests).enumerate() {
            let number = header.first + place as u64;
            let offset = match arrival.advances {
                Some(offset) if own_stream => StreamOffset { next: number + 1, ..offset },
                // The last sample carries the offset, so an incomplete commit does not advance the stream.
                Some(offset) if place + 1 == digests.len() => offset,
                Some(offset) => StreamOffset { next: 0, ..offset },
                None => stays,
            };
            let total = u64::from(digest.records);
            let kept = if place < known { Sifted::Nothing } else { self.sift(sample, digest) };
            let new = match kept {
                Sifted::All => {
                    self.group.push(arrival, number..number + 1, offset, &[Stored::Sample(sample)], digest);
                    total
                }
                Sifted::Some(sample, digest) => {
                    self.group.push(arrival, number..number + 1, offset, &[Stored::Sample(&sample)], &digest);
                    u64::from(digest.records)
                }
                Sifted::Nothing => 0,
            };
            appended.records += new;
            appended.duplicates += total - new;
        }
        if let Some(offset) = arrival.advances {
            if self.group.last_offset() != Some(offset) {
                self.group.advance(arrival.received, offset);
            }
            self.offsets.insert((offset.incarnation, offset.stream), offset.next);
        }
        self.duplicates += appended.duplicates;
        // Without new records and without a moved stream there is nothing to commit.
        if appended.records > 0 || arrival.advances.is_some() {
            self.ticket += 1;
            self.group.ticket = self.ticket;
            appended.ticket = self.ticket;
        }
        appended
    }

    /// Returns the new part of a sample and marks its ids as stored.
    fn sift(&mut self, sample: &[u8], digest: &Digest) -> Sifted {
        let identified = u64::from(digest.records - digest.anonymous);
        if !digest.doubled {
            let missing = self.seen.missing(&digest.runs);
            if missing == identified || digest.whole && missing > 0 {
                self.seen.insert(&digest.runs);
                return Sifted::All;
            }
            if missing == 0 && digest.anonymous == 0 {
                return Sifted::Nothing;
            }
        }
        let Ok(view) = LogBatchView::parse(sample) else { return Sifted::Nothing };
        let mut builder = LogBatchBuilder::new();
        for record in view.records().flatten() {
            let new = record.origin().incarnation().is_none_or(|incarnation| {
                let run = Run { ring: record.ring(), first: record.number(), count: 1 };
                self.seen.insert(&[(incarnation, run)]) == 1
            });
            // A record that fitted its batch also fits a smaller one.
            if new && builder.push_record(&record.to_record()).is_err() {
                break;
            }
        }
        let bytes = builder.finish();
        match digest::digest(&bytes) {
            Ok(digest) if digest.records > 0 => Sifted::Some(bytes, digest),
            _ => Sifted::Nothing,
        }
    }
}

enum Sifted {
    All,
    Some(Vec<u8>, Digest),
    Nothing,
}
