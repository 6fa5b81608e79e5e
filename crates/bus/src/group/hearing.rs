//! The state of a member towards one source: pieces of messages, what is missing, and the time of the next report.
//!
//! It is a value: it gets datagrams with their times, and returns whole messages, in the order in which they were sent. A
//! message whose pieces do not come in time is given up, and the layer above fetches its samples elsewhere.

use std::collections::BTreeMap;

use super::datagram::{Piece, RANGES, Report};

/// Time in ns after which a missing datagram is given up. Messages behind it wait as long.
const GIVE_UP: u64 = 400_000_000;
/// Time in ns after which a missing datagram is requested again.
const ASK_AGAIN: u64 = 20_000_000;
/// Longest delay in ns of a request, so that not all members ask at once.
const DAMPING: u64 = 3_000_000;
/// Longest time in ns from a datagram to the report about it.
const REPORT: u64 = 3_000_000;
/// Missing datagrams that are remembered; older ones are given up.
const MISSING: usize = 8192;
/// Most bytes of messages that are not whole, or wait for earlier ones.
const HELD: usize = 96 << 20;
/// Time in ns for which the longest datagram is remembered, at least. The source sends a long one every 500 ms.
const LONGEST: u64 = 1_500_000_000;
/// Memory of the kernel for a datagram beside its bytes, as its source counts it.
const OVERHEAD: u64 = 900;

struct Missing {
    since: u64,
    asked: Option<u64>,
}

struct Message {
    bytes: Vec<u8>,
    left: usize,
}

/// A member's view of a source.
pub struct Hearing {
    room: u32,
    /// State of the delays' generator.
    random: u64,
    /// The number after the highest datagram, once there is one.
    seen: Option<u64>,
    lost: u64,
    missing: BTreeMap<u64, Missing>,
    messages: BTreeMap<u64, Message>,
    /// The highest datagram that was given up. Messages with it, or before it, do not come whole any later.
    given_up: Option<u64>,
    held: usize,
    /// Cost of what arrived since the last report.
    unreported: u64,
    report_at: Option<u64>,
    /// Longest datagrams of the present and of the previous period, and the end of the present one.
    longest: [u32; 2],
    period_ends: u64,
    /// Time of the last datagram.
    pub heard: u64,
}

impl Hearing {
    /// Makes the state of a member with a socket of this room. Members with other seeds ask at other times.
    pub fn new(room: u32, seed: u64, now: u64) -> Hearing {
        Hearing {
            room,
            random: seed | 1,
            seen: None,
            lost: 0,
            missing: BTreeMap::new(),
            messages: BTreeMap::new(),
            given_up: None,
            held: 0,
            unreported: 0,
            report_at: None,
            longest: [0; 2],
            period_ends: now + LONGEST,
            heard: now,
        }
    }

    fn delay(&mut self, longest: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % longest
    }

    fn report_by(&mut self, when: u64) {
        self.report_at = Some(self.report_at.map_or(when, |at| at.min(when)));
    }

    /// Notes that all datagrams before `next` have been sent.
    fn advance(&mut self, next: u64, received: Option<u64>, now: u64) {
        let seen = self.seen.unwrap_or(received.unwrap_or(next));
        if next > seen {
            // A number far ahead takes no more work than one behind the longest gap.
            let from = seen.max(next.saturating_sub(MISSING as u64));
            let skipped = from - seen;
            let before = self.missing.len();
            for number in (from..next).filter(|number| Some(*number) != received) {
                self.missing.insert(number, Missing { since: now, asked: None });
            }
            let found = (self.missing.len() - before) as u64 + skipped;
            if found > 0 {
                self.lost = self.lost.saturating_add(found);
                let delay = self.delay(DAMPING);
                self.report_by(now + delay);
            }
        }
        self.seen = Some(seen.max(next));
        while self.missing.len() > MISSING {
            self.give_up_first();
        }
    }

    /// Notes the length of a datagram.
    pub fn came(&mut self, length: usize, now: u64) {
        self.end_period(now);
        self.longest[0] = self.longest[0].max(length as u32);
    }

    fn end_period(&mut self, now: u64) {
        if now >= self.period_ends {
            let is_next = now < self.period_ends + LONGEST;
            self.longest = [0, if is_next { self.longest[0] } else { 0 }];
            self.period_ends = now + LONGEST;
        }
    }

    /// Processes a beacon.
    pub fn beacon(&mut self, next: u64, lowest: u64, now: u64) {
        self.heard = now;
        self.advance(next, None, now);
        while self.missing.first_key_value().is_some_and(|(number, _)| *number < lowest) {
            self.give_up_first();
        }
        let delay = self.delay(REPORT);
        self.report_by(now + delay);
    }

    /// Processes a piece of a message.
    pub fn piece(&mut self, number: u64, piece: &Piece<'_>, now: u64) {
        self.heard = now;
        let is_new = self.seen.is_none_or(|seen| number >= seen) || self.missing.contains_key(&number);
        self.unreported += piece.bytes.len() as u64 + OVERHEAD;
        self.report_by(if self.unreported >= u64::from(self.room) / 16 { now } else { now + REPORT });
        if !is_new {
            return;
        }
        self.missing.remove(&number);
        self.advance(number + 1, Some(number), now);
        let first = number - u64::from(piece.index);
        let total = piece.total as usize;
        // Later pieces of a message that has lost one would only hold up those behind.
        if self.given_up.is_some_and(|given_up| first <= given_up) {
            return;
        }
        if !self.messages.contains_key(&first) {
            if total > HELD || self.held + total > HELD {
                return;
            }
            self.held += total;
            self.messages.insert(first, Message { bytes: vec![0; total], left: total });
        }
        let Some(message) = self.messages.get_mut(&first) else { return };
        let from = piece.offset as usize;
        // Pieces of one message agree on its length; the sender has the key.
        if let Some(place) = message.bytes.get_mut(from..from + piece.bytes.len()) {
            place.copy_from_slice(piece.bytes);
            message.left = message.left.saturating_sub(piece.bytes.len());
        }
    }

    /// Gives up the first missing datagram, and its message.
    fn give_up_first(&mut self) {
        let Some((number, _)) = self.missing.pop_first() else { return };
        self.given_up = Some(number);
        let broken = self.messages.range(..=number).next_back().filter(|(_, message)| message.left > 0).map(|(first, _)| *first);
        if let Some(message) = broken.and_then(|first| self.messages.remove(&first)) {
            self.held -= message.bytes.len();
        }
    }

    /// Returns the next whole message.
    pub fn take(&mut self, now: u64) -> Option<Vec<u8>> {
        while self.missing.first_key_value().is_some_and(|(_, missing)| now >= missing.since + GIVE_UP) {
            self.give_up_first();
        }
        loop {
            let behind = self.messages.keys().nth(1).copied();
            let entry = self.messages.first_entry()?;
            let is_next = self.missing.first_key_value().is_none_or(|(missing, _)| entry.key() < missing);
            if entry.get().left == 0 && is_next {
                let message = entry.remove();
                self.held -= message.bytes.len();
                return Some(message.bytes);
            }
            // The first pieces came before this member, or the message had no room: none of its pieces is missing, and a later
            // message is there.
            let first = *entry.key();
            let is_open = |behind| self.missing.range(first..behind).next().is_some();
            if entry.get().left == 0 || !is_next || behind.is_none_or(is_open) {
                return None;
            }
            if let Some(message) = self.messages.remove(&first) {
                self.held -= message.bytes.len();
            }
        }
    }

    /// Returns the time at which there is something to do, unless a datagram comes first.
    pub fn due(&self) -> Option<u64> {
        let given_up = self.missing.first_key_value().map(|(_, missing)| missing.since + GIVE_UP);
        [self.report_at, given_up].into_iter().flatten().min()
    }

    /// Returns the report that is due.
    pub fn report(&mut self, now: u64) -> Option<Report> {
        if now < self.report_at? {
            return None;
        }
        self.unreported = 0;
        self.report_at = None;
        self.end_period(now);
        let longest = self.longest[0].max(self.longest[1]);
        let mut ranges: Vec<(u64, u32)> = Vec::new();
        for (number, missing) in &mut self.missing {
            if missing.asked.is_some_and(|asked| now < asked + ASK_AGAIN) {
                continue;
            }
            let is_full = ranges.len() == RANGES;
            match ranges.last_mut().filter(|(from, count)| from + u64::from(*count) == *number) {
                Some((_, count)) => *count += 1,
                None if is_full => break,
                None => ranges.push((*number, 1)),
            }
            missing.asked = Some(now);
        }
        if !self.missing.is_empty() {
            let delay = ASK_AGAIN + self.delay(DAMPING);
            self.report_by(now + delay);
        }
        Some(Report { seen: self.seen?, lost: self.lost, room: self.room, longest, missing: ranges })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the pieces of messages of these lengths, with their numbers.
    fn pieces(lengths: &[usize]) -> Vec<(u64, u32, u32, Vec<u8>)> {
        let mut all = Vec::new();
        for (count, length) in lengths.iter().enumerate() {
            let bytes = vec![count as u8 + 1; *length];
            for (index, chunk) in bytes.chunks(10).enumerate() {
                all.push((all.len() as u64, index as u32, *length as u32, chunk.to_vec()));
            }
        }
        all
    }

    fn hear(hearing: &mut Hearing, piece: &(u64, u32, u32, Vec<u8>), now: u64) {
        let (number, index, total, bytes) = piece;
        hearing.piece(*number, &Piece { index: *index, offset: index * 10, total: *total, bytes }, now);
    }

    fn taken(hearing: &mut Hearing, now: u64) -> Vec<u8> {
        std::iter::from_fn(|| hearing.take(now)).map(|message| message[0]).collect()
    }

    #[test]
    fn a_number_far_ahead_takes_no_longer_than_a_long_gap() {
        let mut hearing = Hearing::new(1 << 20, 1, 0);
        hearing.beacon(10, 0, 0);
        hearing.beacon(1 << 61, 0, 1);
        assert!(hearing.missing.len() <= MISSING);
        assert_eq!(hearing.lost, (1 << 61) - 10);
    }

    proptest! {
        #[test]
        fn messages_come_whole_once_and_in_order(
            lengths in proptest::collection::vec(1usize..60, 1..8),
            order in proptest::collection::vec(any::<u16>(), 1..60),
        ) {
            let all = pieces(&lengths);
            let mut hearing = Hearing::new(1 << 20, 1, 0);
            hearing.beacon(0, 0, 0);
            let mut came = Vec::new();
            // In a wild order and with repetitions, then all.
            let wild = order.iter().map(|at| &all[usize::from(*at) % all.len()]);
            for piece in wild.chain(&all) {
                hear(&mut hearing, piece, MS);
                while let Some(message) = hearing.take(MS) {
                    came.push(message);
                }
            }
            let sent: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(count, length)| vec![count as u8 + 1; *length]).collect();
            prop_assert_eq!(came, sent);
            prop_assert_eq!((hearing.held, hearing.missing.len()), (0, 0));
        }

        #[test]
        fn without_some_pieces_the_other_messages_come(
            lengths in proptest::collection::vec(1usize..60, 1..8),
            lost in proptest::collection::vec(any::<bool>(), 60),
        ) {
            let all = pieces(&lengths);
            let mut hearing = Hearing::new(1 << 20, 1, 0);
            hearing.beacon(0, 0, 0);
            all.iter().filter(|piece| !lost[piece.0 as usize]).for_each(|piece| hear(&mut hearing, piece, MS));
            hearing.beacon(all.len() as u64, 0, MS);
            let mut came = taken(&mut hearing, MS);
            came.extend(taken(&mut hearing, MS + GIVE_UP));
            let mut whole = Vec::new();
            let mut at = 0;
            for (count, length) in lengths.iter().enumerate() {
                let end = at + length.div_ceil(10);
                if !lost[at..end].contains(&true) {
                    whole.push(count as u8 + 1);
                }
                at = end;
            }
            prop_assert_eq!(came, whole);
        }
    }

    #[test]
    fn missing_datagrams_are_requested_and_requested_again() {
        let all = pieces(&[40, 40, 40]);
        let mut hearing = Hearing::new(1 << 20, 5, 0);
        for piece in all.iter().filter(|piece| ![2, 3, 7].contains(&piece.0)) {
            hear(&mut hearing, piece, MS);
        }
        let first = hearing.due().unwrap();
        assert!((MS..MS + DAMPING).contains(&first), "{first}");
        let report = hearing.report(first).unwrap();
        assert_eq!((report.seen, report.lost, report.missing), (12, 3, vec![(2, 2), (7, 1)]));
        assert_eq!(hearing.report(first), None);
        hear(&mut hearing, &all[7], first + MS);
        let again = first + ASK_AGAIN + DAMPING;
        assert_eq!(hearing.report(again).unwrap().missing, [(2, 2)]);
        for at in [2, 3] {
            hear(&mut hearing, &all[at], again);
        }
        assert_eq!(taken(&mut hearing, again), [1, 2, 3]);
    }

    #[test]
    fn a_broken_message_holds_up_the_others_no_longer_than_its_missing_datagrams() {
        let all = pieces(&[40, 40, 40, 40]);
        let mut hearing = Hearing::new(1 << 20, 5, 0);
        // The second piece of the first message is lost at once, the last one later.
        [0, 2].into_iter().for_each(|at| hear(&mut hearing, &all[at], 0));
        [4, 5, 6, 7].into_iter().for_each(|at| hear(&mut hearing, &all[at], 300 * MS));
        assert_eq!(taken(&mut hearing, 399 * MS), [0; 0]);
        // More is lost all the time.
        [9, 10, 11].into_iter().for_each(|at| hear(&mut hearing, &all[at], 399 * MS));
        assert_eq!(taken(&mut hearing, GIVE_UP), [0; 0], "a message between could be missing");
        // The last piece arrives after the second one was given up.
        hear(&mut hearing, &all[3], 410 * MS);
        assert_eq!(taken(&mut hearing, 410 * MS), [2]);
        // A member that comes late has the end of a message, and the next one loses a piece.
        let mut late = Hearing::new(1 << 20, 5, 0);
        [2, 3, 4, 5, 6, 7, 8, 10].into_iter().for_each(|at| hear(&mut late, &all[at], 0));
        assert_eq!(taken(&mut late, 0), [2]);
    }

    #[test]
    fn the_longest_datagram_is_forgotten_when_no_more_such_come() {
        let mut hearing = Hearing::new(1 << 20, 5, 0);
        let mut longest_at = |length: usize, now: u64| {
            hearing.came(length, now);
            hearing.beacon(0, 0, now);
            hearing.report(now + REPORT).unwrap().longest
        };
        assert_eq!(longest_at(1472, 0), 1472);
        assert_eq!(longest_at(100, LONGEST - 10 * MS), 1472);
        assert_eq!(longest_at(100, LONGEST + 10 * MS), 1472, "it is remembered for one more period");
        assert_eq!(longest_at(100, 2 * LONGEST + 20 * MS), 100);
        assert_eq!(longest_at(1472, 2 * LONGEST + 30 * MS), 1472);
        assert_eq!(longest_at(100, 5 * LONGEST), 100, "after a pause nothing from before it counts");
    }

    #[test]
    fn a_member_that_comes_late_begins_with_the_next_whole_message() {
        let all = pieces(&[40, 40]);
        let mut hearing = Hearing::new(1 << 20, 5, 0);
        all[2..].iter().for_each(|piece| hear(&mut hearing, piece, MS));
        assert_eq!((taken(&mut hearing, MS), hearing.held), (vec![2], 0));
    }
}
