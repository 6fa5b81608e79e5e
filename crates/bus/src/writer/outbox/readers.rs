//! The readers of a stream in its writer's view: their identities, their positions, and their progress pages.

use tampu_types::Incarnation;

use super::{
    super::{
        Start,
        matched::{Matched, ReaderState, ReaderStatus},
    },
    DEPARTED, Outbox,
};
use crate::{
    qos::Hold,
    shared::Watch,
    wire::{control::Mark, keys::ReaderInfo},
};

/// Ways of a message to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ways {
    /// Through the node, or a multicast group.
    pub by_node: bool,
    /// To the readers that read this host alone.
    pub within: bool,
    /// By direct links.
    pub by_link: bool,
}

impl Outbox {
    /// Notes whether readers may still come that were on the bus before the stream.
    pub fn await_readers(&mut self, awaits: bool) {
        self.awaits_readers = awaits;
        if self.readers.is_empty() {
            self.unsent = None;
        }
        self.evict();
    }

    /// Adds a reader of this stream, which is entitled to the samples from `start` on.
    pub fn match_reader(&mut self, card: ReaderInfo, start: Start) {
        self.unmatch(|reader| reader.is(card.incarnation, card.reader));
        // A reader that stands in for a collector begins where the last one stopped.
        let start = match start {
            _ if card.hold == Hold::Interim => self.kept_to,
            Start::Beginning => 0,
            Start::Now => self.sealed(),
        };
        let acked_position = self.position_of(start);
        let is_behind = self.position - acked_position > self.credit() as u64 / 2;
        self.readers.push(Matched {
            card,
            start,
            acked: start,
            received: 0,
            acked_position,
            heard: false,
            state: if is_behind { ReaderState::CatchingUp } else { ReaderState::Live },
            lost: 0,
            needs_copies: false,
            linked: false,
            watch: None,
            attached: false,
            grouped: false,
        });
    }

    /// Reports if the reader is matched.
    pub fn has_reader(&self, incarnation: Incarnation, reader: u32) -> bool {
        self.readers.iter().any(|matched| matched.is(incarnation, reader))
    }

    /// Marks a reader as unreachable. It may come back: the writer does not wait for it, and keeps the samples that it
    /// misses.
    pub fn doubt_reader(&mut self, incarnation: Incarnation, reader: u32) {
        for matched in self.readers.iter_mut().filter(|matched| matched.is(incarnation, reader)) {
            matched.state = ReaderState::Lagging;
        }
    }

    /// Waits for a doubted reader again, which is announced again. One that lacks samples is waited for once it has caught
    /// up, as after any delay. One that lacks none would have nothing to acknowledge.
    pub fn trust_reader(&mut self, incarnation: Incarnation, reader: u32) {
        let caught_up_at = self.caught_up_at();
        for matched in self.readers.iter_mut().filter(|matched| matched.is(incarnation, reader)) {
            if matched.state == ReaderState::Lagging && matched.acked_position >= caught_up_at {
                matched.state = ReaderState::Live;
            }
        }
    }

    /// Returns the position from which a reader that was behind counts as live.
    fn caught_up_at(&self) -> u64 {
        self.position.saturating_sub(self.credit() as u64 / 2)
    }

    /// Returns the ways to the readers that need a message. With `is_shared`, those that follow the announcements need none.
    pub fn ways(&self, is_shared: bool) -> Ways {
        let mut ways = Ways::default();
        for reader in self.readers.iter().filter(|reader| !(is_shared && reader.follows())) {
            let way = match reader.card.hold {
                _ if reader.linked => &mut ways.by_link,
                Hold::Interim => &mut ways.within,
                Hold::Bounded | Hold::Full => &mut ways.by_node,
            };
            *way = true;
        }
        ways
    }

    /// Reports if a multicast group that reaches the hosts with these boots brings the batches to all readers without a way of
    /// their own, and saves something: they are on two other hosts at least.
    pub fn is_reached_by_group(&self, boots: &[u32]) -> bool {
        let (own, mut first, mut are_several) = (self.header.incarnation.boot, None, false);
        let needs_it = |reader: &&Matched| !reader.linked && reader.card.hold != Hold::Interim;
        for reader in self.readers.iter().filter(needs_it) {
            let boot = reader.card.incarnation.boot;
            if !reader.grouped || boot != own && !boots.contains(&boot) {
                return false;
            }
            if boot != own {
                are_several |= *first.get_or_insert(boot) != boot;
            }
        }
        are_several
    }

    /// Notifies every reader that follows the announcements.
    pub fn tell_attached(&self) {
        let attached = self.readers.iter().filter(|reader| reader.attached);
        attached.filter_map(|reader| reader.watch.as_ref()).for_each(Watch::tell);
    }

    /// Removes a reader that has left.
    pub fn unmatch_reader(&mut self, incarnation: Incarnation, reader: u32) -> bool {
        self.unmatch(|matched| matched.is(incarnation, reader))
    }

    fn unmatch(&mut self, gone: impl Fn(&Matched) -> bool) -> bool {
        let (left, stayed) = std::mem::take(&mut self.readers).into_iter().partition::<Vec<_>, _>(gone);
        self.readers = stayed;
        for reader in &left {
            if self.departed.len() == DEPARTED {
                self.departed.pop_front();
            }
            self.departed.push_back(ReaderStatus { state: ReaderState::Gone, ..reader.status() });
        }
        !left.is_empty()
    }

    /// Processes a reader's position. Returns whether the writer may have waited for it.
    pub fn acknowledge(&mut self, incarnation: Incarnation, mark: &Mark) -> bool {
        if mark.leaving {
            return self.unmatch_reader(incarnation, mark.reader);
        }
        let next = mark.next.min(self.sealed());
        let Some(index) = self.readers.iter().position(|matched| matched.is(incarnation, mark.reader)) else { return false };
        let matched = &mut self.readers[index];
        matched.received = matched.received.max(mark.received.min(self.header.first));
        matched.needs_copies |= mark.needs_copies;
        matched.linked |= mark.linked;
        matched.attached |= mark.attached;
        matched.grouped |= mark.grouped;
        let first_word = !matched.heard;
        matched.heard = true;
        // Only the first mark may lie before the start: a reader that fetches history, or resumes where it stopped.
        if first_word && next < matched.start {
            matched.state = ReaderState::CatchingUp;
        } else if next <= matched.acked {
            return first_word;
        }
        self.advance(index, next);
        self.evict();
        true
    }

    /// Advances a reader's position.
    fn advance(&mut self, index: usize, next: u64) {
        let position = self.position_of(next);
        let caught_up_at = self.caught_up_at();
        // An undisturbed arrival shows that the path has capacity left: a sixteenth of it is added.
        let (readers, credit) = (self.readers.len() as u64, self.credit());
        let matched = &mut self.readers[index];
        let gained = position.saturating_sub(matched.acked_position) / 16 / readers;
        if matched.holds() {
            self.window = (self.window + gained as usize).min(credit);
        }
        matched.acked = next;
        matched.acked_position = position;
        if matched.card.hold.keeps() {
            self.kept_to = self.kept_to.max(next);
        }
        if matched.state != ReaderState::Live && position >= caught_up_at {
            matched.state = ReaderState::Live;
        }
    }

    /// Reads the progress of the readers that share memory.
    pub fn look(&mut self) {
        for index in 0..self.readers.len() {
            let reader = &mut self.readers[index];
            let Some(watch) = &reader.watch else { continue };
            // Read before the slot's owner, which `next` compares.
            let received = watch.received();
            let Some(next) = watch.next() else {
                reader.watch = None;
                continue;
            };
            reader.received = reader.received.max(received.min(self.header.first));
            if next > reader.acked {
                self.advance(index, next.min(self.sealed()));
            }
        }
    }

    /// Reports if this reader names a progress slot that is not watched yet.
    pub fn could_watch(&self, incarnation: Incarnation, mark: &Mark) -> bool {
        mark.slot != 0 && self.readers.iter().any(|reader| reader.is(incarnation, mark.reader) && reader.watch.is_none())
    }

    /// Begins to read this reader's progress in shared memory.
    pub fn watch(&mut self, incarnation: Incarnation, reader: u32, watch: Watch) {
        for matched in self.readers.iter_mut().filter(|matched| matched.is(incarnation, reader)) {
            matched.watch = Some(watch.clone());
        }
    }

    /// Returns the reader furthest behind `target`, if the progress of all such readers can be watched.
    pub fn furthest_behind(&self, target: u64) -> Option<Watch> {
        let behind = || {
            self.readers
                .iter()
                .filter(|reader| reader.card.reliable && reader.state == ReaderState::Live && reader.acked < target)
        };
        if behind().any(|reader| reader.watch.is_none()) {
            return None;
        }
        behind().min_by_key(|reader| reader.acked)?.watch.clone()
    }

    /// Returns the status of every reader, and of the last ones that left.
    pub fn statuses(&mut self) -> Vec<ReaderStatus> {
        self.look();
        self.readers.iter().map(Matched::status).chain(self.departed.iter().cloned()).collect()
    }

    /// Returns the participants that read this stream, with the offers for each of their readers; without `to_all`, only for
    /// readers that have yet to acknowledge.
    pub fn offers(&self, to_all: bool) -> impl Iterator<Item = (Incarnation, u32, u64, bool)> + '_ {
        let sealed = self.sealed();
        let owes = move |reader: &&Matched| to_all || !reader.heard || reader.card.reliable && reader.acked < sealed;
        let offer = |reader: &Matched| (reader.card.incarnation, reader.card.reader, reader.start, reader.watch.is_some());
        self.readers.iter().filter(owes).map(offer)
    }

    pub fn matched(&self) -> usize {
        self.readers.len()
    }

    /// Reports if loans can go as descriptors: every reader can map this host's memory.
    pub fn shares_memory(&self) -> bool {
        let own = self.header.incarnation;
        self.readers.iter().all(|reader| reader.maps_memory() && own.shares_host_with(reader.card.incarnation))
    }

    /// Reports if a reader that reads this host alone can map its memory.
    pub fn shares_memory_with_substitute(&self) -> bool {
        self.readers.iter().any(|reader| reader.card.hold == Hold::Interim && reader.maps_memory())
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{PartitionFilter, TopicFilter};

    use super::*;
    use crate::{
        qos::Qos,
        shared::{ProgressPage, whose},
        wire::batch::tests::header,
    };

    fn of_host(boot: u32) -> Incarnation {
        Incarnation { boot, pid: 1, start: 1 }
    }

    fn card(boot: u32, reader: u32, hold: Hold, direct: bool) -> ReaderInfo {
        let (incarnation, source) = (of_host(boot), "b".to_owned());
        let (topics, partitions) = (TopicFilter::new("**").unwrap(), PartitionFilter::All);
        ReaderInfo { incarnation, reader, source, topics, partitions, reliable: true, hold, direct }
    }

    #[test]
    fn a_reader_that_has_lost_its_mapping_is_sent_batches_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("progress");
        let page = ProgressPage::create(path.clone()).unwrap();
        let mut outbox = Outbox::new(Qos::default(), 60_000, header(), 0);
        let boot = outbox.header.incarnation.boot;
        let mark = |reader| Mark { reader, attached: true, ..Mark::default() };
        let mut slots = Vec::new();
        for (reader, hold) in [(1, Hold::Interim), (2, Hold::Bounded)] {
            let whose = whose(outbox.header.incarnation, reader);
            let slot = page.slot(whose).unwrap();
            outbox.match_reader(card(boot, reader, hold, false), Start::Now);
            outbox.acknowledge(of_host(boot), &mark(reader));
            outbox.watch(of_host(boot), reader, Watch::open(&path, slot.number, whose).unwrap());
            slots.push(slot);
        }
        assert!(outbox.shares_memory() && outbox.ways(true) == Ways::default(), "both find the batches in shared memory");
        assert_eq!(outbox.ways(false), Ways { by_node: true, within: true, by_link: false });
        outbox.acknowledge(of_host(boot), &Mark { needs_copies: true, ..mark(2) });
        assert!(!outbox.shares_memory() && outbox.shares_memory_with_substitute());
        assert_eq!(outbox.ways(true), Ways { by_node: true, within: false, by_link: false }, "the viewer finds none there");
        outbox.acknowledge(of_host(boot), &Mark { needs_copies: true, ..mark(1) });
        assert_eq!(outbox.ways(true), Ways { by_node: true, within: true, by_link: false });
    }

    #[test]
    fn a_group_takes_batches_for_several_hosts_that_it_reaches_all() {
        let mut outbox = Outbox::new(Qos::default(), 60_000, header(), 0);
        let add = |outbox: &mut Outbox, boot: u32, reader: u32, grouped: bool, linked: bool| {
            outbox.match_reader(card(boot, reader, Hold::Bounded, linked), Start::Now);
            outbox.acknowledge(of_host(boot), &Mark { reader, grouped, linked, ..Mark::default() });
        };
        add(&mut outbox, 1, 1, true, false);
        add(&mut outbox, 2, 2, true, false);
        add(&mut outbox, 2, 3, true, false);
        assert!(!outbox.is_reached_by_group(&[2, 3]), "one other host needs one copy as well");
        add(&mut outbox, 3, 4, true, false);
        assert!(outbox.is_reached_by_group(&[2, 3, 4]));
        assert!(!outbox.is_reached_by_group(&[2]), "one host does not hear it");
        add(&mut outbox, 4, 5, false, true);
        assert!(outbox.is_reached_by_group(&[2, 3]), "a direct link needs no group");
        add(&mut outbox, 2, 6, false, false);
        assert!(!outbox.is_reached_by_group(&[2, 3]), "a reader of an earlier release");
        outbox.unmatch_reader(of_host(2), 6);
        assert!(outbox.is_reached_by_group(&[2, 3]));
    }
}
