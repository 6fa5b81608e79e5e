//! Waits of a writer: the readers it waits for, the time limits, and the loans still in use.

use tampu_types::Incarnation;

use super::{
    super::matched::{Matched, ReaderState},
    Admission, KEPT_OVERHEAD, Outbox, batch,
};

/// Bounds of a writer's lead over its readers.
#[derive(Clone, Copy)]
struct Lead {
    credit: u64,
    position: u64,
    /// Position up to which the next batch evicts samples.
    pushed_out: u64,
}

impl Lead {
    /// Returns whether the writer waits for this reader.
    fn holds(self, reader: &Matched) -> bool {
        reader.holds() && (self.position - reader.acked_position > self.credit || reader.acked < self.pushed_out)
    }
}

impl Outbox {
    /// Returns the position up to which a batch that begins with a sample of this length may evict samples. If the cache
    /// is hardly larger than the credit, the writer waits for readers that still need them.
    fn pushed_out(&self, length: usize) -> u64 {
        // A sample longer than the limit is a batch of its own.
        let next = self.limit.max(self.header_len + batch::framed_len(length));
        let mut beyond = (self.cache_taken + next + KEPT_OVERHEAD).saturating_sub(self.qos.cache);
        let mut pushed_out = 0;
        for kept in &self.cache {
            if beyond == 0 {
                break;
            }
            beyond = beyond.saturating_sub(kept.taken);
            pushed_out = kept.next;
        }
        pushed_out
    }

    /// Returns the readers' bounds for a batch that begins with a sample of this length, and whether one of them is exceeded.
    fn lead(&mut self, length: usize) -> (Lead, bool) {
        let lead = Lead { credit: self.window as u64, position: self.position, pushed_out: self.pushed_out(length) };
        let is_behind = |reader: &Matched| lead.holds(reader);
        if self.readers.iter().any(is_behind) {
            self.look();
        }
        (lead, self.readers.iter().any(is_behind))
    }

    /// Returns whether a batch that begins with a sample of this length has to wait for readers.
    pub fn is_ahead(&mut self, length: usize) -> bool {
        self.lead(length).1
    }

    /// Decides if a write of a sample of this length may begin a batch.
    pub fn admit(&mut self, now: u64, length: usize) -> Admission {
        let (lead, is_ahead) = self.lead(length);
        if !is_ahead {
            self.end_wait(now);
            return Admission::Go;
        }
        let Lead { credit, position, pushed_out } = lead;
        // The target is more than the first free byte; else the writer would wait again at once.
        let target = self.cache.partition_point(|kept| kept.end + credit * 3 / 4 <= position);
        let target = self.cache.get(target).map_or(self.sealed(), |kept| kept.next).max(pushed_out);
        self.wait_for(now, target, |reader| lead.holds(reader))
    }

    /// Decides if the loan ring has room up to the position `needed`. The writer waits for readers that still need
    /// older loans.
    pub fn admit_loan(&mut self, now: u64, pins: impl Fn(u64) -> bool) -> Admission {
        self.look();
        let cache = &self.cache;
        let building = self.building_loans;
        let needs = |reader: &Matched| {
            let index = cache.partition_point(|kept| kept.next <= reader.acked);
            let oldest = cache.range(index..).find_map(|kept| kept.loans_from).or(building);
            reader.holds() && oldest.is_some_and(&pins)
        };
        let waiting: Vec<bool> = self.readers.iter().map(needs).collect();
        if !waiting.contains(&true) {
            self.end_wait(now);
            return Admission::Go;
        }
        let who: Vec<(Incarnation, u32)> = self
            .readers
            .iter()
            .zip(&waiting)
            .filter(|(_, waiting)| **waiting)
            .map(|(reader, _)| (reader.card.incarnation, reader.card.reader))
            .collect();
        let done = self.cache.iter().find(|kept| kept.loans_from.is_some_and(|from| !pins(from)));
        let target = done.map_or(self.sealed(), |kept| kept.first);
        self.wait_for(now, target, |reader| who.iter().any(|&(incarnation, id)| reader.is(incarnation, id)))
    }

    fn wait_for(&mut self, now: u64, target: u64, behind: impl Fn(&Matched) -> bool) -> Admission {
        let max_wait = self.qos.max_wait.as_nanos() as u64;
        let since = *self.waiting_since.get_or_insert(now);
        let waited = now.saturating_sub(since);
        let full_left = max_wait.saturating_sub(waited);
        let bounded_left = self.budget.left(since).saturating_sub(waited).min(full_left);
        let mut longest = 0;
        for reader in self.readers.iter_mut().filter(|reader| behind(reader)) {
            let left = if reader.card.hold.keeps() { full_left } else { bounded_left };
            if left == 0 {
                reader.state = ReaderState::Lagging;
            }
            longest = longest.max(left);
        }
        if longest == 0 {
            self.end_wait(now);
            return Admission::Go;
        }
        Admission::Wait { target, longest }
    }

    fn end_wait(&mut self, now: u64) {
        if let Some(since) = self.waiting_since.take() {
            self.budget.left(since);
            self.budget.spend(now.saturating_sub(since));
        }
    }

    /// Forgets batches whose loans lie before `valid_from`, because their memory is used again.
    pub fn forget_loans_before(&mut self, valid_from: u64) {
        // Loans are lent in order, so the search ends at the first batch whose loans are still lent.
        let mut forgotten = 0;
        for (index, kept) in self.cache.iter().enumerate() {
            match kept.loans_from {
                Some(from) if from < valid_from => forgotten = index + 1,
                Some(_) => break,
                None => {}
            }
        }
        for _ in 0..forgotten {
            self.drop_oldest();
        }
    }

    /// Returns the position before which no reader that the writer waits for needs a loan.
    pub fn loans_needed_from(&mut self) -> Option<u64> {
        self.look();
        let acked = self.readers.iter().filter(|reader| reader.holds()).map(|reader| reader.acked).min().unwrap_or(self.sealed());
        let index = self.cache.partition_point(|kept| kept.next <= acked);
        self.cache.range(index..).find_map(|kept| kept.loans_from).or(self.building_loans)
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{BatchHeader, Domain, PartitionFilter, SourceName, TopicFilter};

    use super::*;
    use crate::{
        qos::{Hold, Qos},
        wire::{control::Mark, keys::ReaderInfo},
        writer::Start,
    };

    fn process(boot: u32) -> Incarnation {
        Incarnation { boot, pid: 1, start: 1 }
    }

    /// A stream on host 1 with a reader on host `boot`, whose samples have this length.
    struct Scene {
        outbox: Outbox,
        boot: u32,
        sample: Vec<u8>,
    }

    impl Scene {
        fn new(qos: Qos, boot: u32, length: usize) -> Scene {
            let header = BatchHeader {
                domain: Domain::new("lab").unwrap(),
                source: SourceName::new("a").unwrap(),
                incarnation: process(1),
                stream: 0,
                first: 0,
                count: 0,
                type_id: 1,
                type_version: 1,
                acquired: Default::default(),
                sent: Default::default(),
                clock: Default::default(),
                tai_offset: 0,
                flags: 0,
            };
            let card = ReaderInfo {
                incarnation: process(boot),
                reader: 1,
                source: "b".to_owned(),
                topics: TopicFilter::new("**").unwrap(),
                partitions: PartitionFilter::All,
                reliable: true,
                hold: Hold::Bounded,
                direct: false,
            };
            let mut outbox = Outbox::new(qos, 60_000, header, 0);
            outbox.match_reader(card, Start::Now);
            let mut scene = Scene { outbox, boot, sample: vec![7; length] };
            scene.acknowledge();
            scene
        }

        fn acknowledge(&mut self) {
            let mark = Mark { reader: 1, next: self.outbox.sealed(), ..Mark::default() };
            self.outbox.acknowledge(process(self.boot), &mark);
        }

        /// Writes until the writer would wait; returns the number of samples under way. Then all are acknowledged.
        fn lead(&mut self) -> usize {
            let mut count = 0;
            loop {
                let is_ahead = self.outbox.is_ahead(self.sample.len());
                let admitted = self.outbox.admit(0, self.sample.len());
                assert_eq!(is_ahead, admitted != Admission::Go, "after {count} samples");
                if is_ahead {
                    break;
                }
                assert!(count < 100, "the writer waits for nobody");
                self.outbox.begin(Default::default());
                self.outbox.append(&self.sample);
                self.outbox.seal(Default::default());
                count += 1;
            }
            self.acknowledge();
            count
        }
    }

    #[test]
    fn a_writer_is_four_long_samples_ahead_of_a_reader_on_another_host() {
        for length in [300 << 10, 1 << 20, 2 << 20] {
            let mut scene = Scene::new(Qos::default(), 2, length);
            let leads: Vec<usize> = (0..40).map(|_| scene.lead()).collect();
            assert_eq!(leads[0], 256 * 1024 / length + 1, "at first the links have proved nothing: {leads:?}");
            // The sample that passes the bound was admitted below it.
            assert!(matches!(leads[39], 4..=5), "{length}: {leads:?}");
            let credit = scene.outbox.credit();
            assert!((4 * length..=4 * length + 4096).contains(&credit), "{length}: {credit}");
        }
    }

    #[test]
    fn the_limit_the_cache_and_shared_memory_bound_a_longer_lead() {
        let lead = |qos: Qos, boot: u32, length: usize| {
            let mut scene = Scene::new(qos, boot, length);
            (0..40).map(|_| scene.lead()).last().unwrap()
        };
        assert_eq!(lead(Qos { credit_limit: 1 << 20, ..Qos::default() }, 2, 1 << 20), 1, "the limit");
        assert_eq!(lead(Qos { cache: 3 << 20, ..Qos::default() }, 2, 1 << 20), 2, "the cache holds no more");
        assert_eq!(lead(Qos { credit_limit: 3 << 20, ..Qos::default() }, 2, 1 << 20), 3, "a limit between");
        assert_eq!(lead(Qos::default(), 1, 1 << 20), 5, "too long for the ring of batches, so it passes the node");
        assert_eq!(lead(Qos::default(), 1, 400 << 10), 3, "the ring holds twice the credit");
    }

    #[test]
    fn a_sample_longer_than_a_batch_pushes_nothing_out_that_a_reader_lacks() {
        let length = 700 << 10;
        for cache in [length + (100 << 10), 2 * length, 3 * length] {
            // On the writer's host, by way of the ring of batches and past it; and on another host.
            for boot in [1, 2] {
                let mut scene = Scene::new(Qos { cache, credit: 4 << 20, ..Qos::default() }, boot, length);
                for round in 0..20 {
                    let lead = scene.lead();
                    assert!(lead >= 1 && lead * length <= cache, "{cache}, round {round}: {lead} samples");
                    assert_eq!(scene.outbox.lost_total(), 0, "{cache}, round {round}");
                }
            }
        }
    }

    #[test]
    fn the_writer_waits_until_the_cache_has_room_for_the_sample() {
        let length = 700 << 10;
        let mut scene = Scene::new(Qos { cache: 2 * length, credit: 4 << 20, ..Qos::default() }, 2, length);
        // The links have proved that they hold a sample.
        (0..40).for_each(|_| assert!(scene.lead() > 0));
        scene.outbox.begin(Default::default());
        scene.outbox.append(&scene.sample);
        scene.outbox.seal(Default::default());
        let sealed = scene.outbox.sealed();
        let Admission::Wait { target, .. } = scene.outbox.admit(0, length) else { panic!("it would push out the first") };
        assert_eq!(target, sealed);
        assert_eq!(scene.outbox.admit(0, 100), Admission::Go, "a short one fits");
        let Admission::Wait { target, .. } = scene.outbox.admit(0, 3 * length) else { panic!("it fits nowhere") };
        assert_eq!(target, sealed, "a sample longer than the cache waits until no reader lacks one");
    }
}
