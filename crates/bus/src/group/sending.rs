//! The state of a group's source: what it has sent and can send again, what its members have, and how much may be under way.
//!
//! It is a value: it gets datagrams, reports and times, and returns what to send. It neither sends nor waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::datagram::Report;

/// Memory of a receiving kernel for a datagram beside its bytes.
const OVERHEAD: u64 = 900;
/// Memory of sent datagrams, for members that miss some.
const KEPT: u64 = 16 << 20;
/// First and least amount under way.
const FIRST_WINDOW: u64 = 96 << 10;
const LEAST_WINDOW: u64 = 24 << 10;
/// Least amount that is sent again in a usual time to a report, and the least such time in ns that counts.
const SHARE: u64 = 12 << 10;
const ROUND_TRIP: u64 = 5_000_000;
/// Share of lost datagrams, in percent of a window, from which less is sent.
const CONGESTED: u64 = 3;
/// Datagrams among which losses are counted.
const ROUND: u64 = 256;
/// Least time in ns that a datagram is not sent a third time after the second: the members that miss it ask at different times.
const AGAIN: u64 = 10_000_000;
/// Time in ns without a report after which a source that sends waits for a member no longer.
const PATIENCE: u64 = 300_000_000;
/// The longest such time, where reports take long because the network is full.
const PATIENCE_MOST: u64 = 1_200_000_000;
/// Time in ns without a report after which a member does not hear the group.
const SILENCE: u64 = 1_500_000_000;
/// Time in ns for which a member must have reported before it is waited for again. So one that comes and goes costs little.
const RETURN: u64 = 2_000_000_000;

struct Sent {
    bytes: Bytes,
    at: u64,
    /// Cost of all datagrams before it.
    before: u64,
    sent_again: Option<u64>,
}

struct Member {
    heard: u64,
    /// Time since which something is under way to it.
    waits_since: u64,
    /// Time since which a doubtful member reports again.
    since: Option<u64>,
    seen: u64,
    lost: u64,
    room: u64,
    /// End and losses of the round in which losses are counted.
    round: (u64, u64),
    /// True if it has failed to report in time or to get long datagrams, and has not returned for long enough.
    is_doubtful: bool,
    is_heard: bool,
    /// True if it gets short datagrams only.
    is_short: bool,
}

/// Source of a group.
#[derive(Default)]
pub struct Sending {
    /// Length of the longest datagrams that it sends.
    length: u32,
    next: u64,
    lowest: u64,
    sent: VecDeque<Sent>,
    cost: u64,
    window: u64,
    /// Number of the next datagram when the window was last lowered.
    cut_at: u64,
    members: BTreeMap<u16, Member>,
    again: BTreeSet<u64>,
    /// Bytes that may be sent again at present, and the time of that state. They grow to half the amount under way in each usual
    /// time to a report, so repairs take half the rate of the group at most.
    repairs: u64,
    repairs_at: u64,
    /// Usual time from a datagram to the report of it, ns.
    round_trip: u64,
    /// Count of datagrams sent again.
    pub repeated: u64,
}

fn cost(length: usize) -> u64 {
    length as u64 + OVERHEAD
}

impl Sending {
    /// Makes the state of a source that has sent nothing. Its longest datagrams have this length.
    pub fn new(length: usize) -> Sending {
        Sending { window: FIRST_WINDOW, length: length as u32, ..Sending::default() }
    }

    /// Sends no longer datagrams than these from here on.
    pub fn shorten(&mut self, length: usize) {
        self.length = length as u32;
    }

    /// Returns the number of the next datagram.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the oldest datagram that can be sent again.
    pub fn lowest(&self) -> u64 {
        self.lowest
    }

    /// Adds a member.
    pub fn join(&mut self, member: u16, now: u64) {
        let fresh = Member {
            heard: now,
            waits_since: now,
            since: None,
            seen: self.next,
            lost: 0,
            room: 0,
            round: (self.next, 0),
            is_doubtful: false,
            is_heard: false,
            is_short: false,
        };
        self.members.insert(member, fresh);
    }

    /// Removes a member.
    pub fn leave(&mut self, member: u16) {
        self.members.remove(&member);
    }

    /// Returns true if this member hears the group.
    pub fn hears(&self, member: u16, now: u64) -> bool {
        self.members.get(&member).is_some_and(|member| member.is_heard && !member.is_doubtful && now < member.heard + SILENCE)
    }

    /// Returns true if this member gets short datagrams, and no long ones: a network on the way has a smaller MTU.
    pub fn is_short(&self, member: u16, now: u64) -> bool {
        self.members.get(&member).is_some_and(|member| member.is_short && now < member.heard + SILENCE)
    }

    /// Returns true if some member hears the group.
    pub fn is_heard(&self, now: u64) -> bool {
        self.members.keys().any(|member| self.hears(*member, now))
    }

    /// Returns true if a datagram may be sent. It never may without members that hear.
    pub fn has_room(&mut self, now: u64) -> bool {
        let (mut behind, mut waits) = (u64::MAX, false);
        let is_under_way = |member: &Member, next| member.seen < next;
        let patience = (4 * self.round_trip).clamp(PATIENCE, PATIENCE_MOST);
        for member in self.members.values_mut().filter(|member| member.is_heard && !member.is_doubtful) {
            if is_under_way(member, self.next) && now >= member.heard.max(member.waits_since) + patience {
                (member.is_doubtful, member.since) = (true, None);
                continue;
            }
            waits = true;
            behind = behind.min(member.seen);
        }
        waits && self.cost - self.cost_before(behind) < self.window
    }

    /// Returns true if something sent is not reported yet.
    pub fn is_under_way(&self) -> bool {
        self.members.values().any(|member| member.is_heard && !member.is_doubtful && member.seen < self.next)
    }

    fn cost_before(&self, number: u64) -> u64 {
        if number < self.lowest {
            return self.sent.front().map_or(self.cost, |first| first.before);
        }
        self.sent.get((number - self.lowest) as usize).map_or(self.cost, |sent| sent.before)
    }

    /// Notes that the next datagram is sent.
    pub fn push(&mut self, bytes: Bytes, now: u64) {
        self.members.values_mut().filter(|member| member.seen >= self.next).for_each(|member| member.waits_since = now);
        let before = self.cost;
        self.cost += cost(bytes.len());
        self.sent.push_back(Sent { bytes, at: now, before, sent_again: None });
        self.next += 1;
        while self.sent.front().is_some_and(|first| self.cost - first.before > KEPT) {
            self.sent.pop_front();
            self.lowest += 1;
        }
    }

    /// Processes a report of a member.
    pub fn reported(&mut self, number: u16, report: &Report, now: u64) {
        let Some(member) = self.members.get_mut(&number) else { return };
        if report.seen > self.next {
            return;
        }
        member.is_short = report.longest < self.length;
        if member.is_short {
            // It neither holds the others nor gets repairs, which would not reach it.
            (member.heard, member.is_doubtful, member.since) = (now, member.is_heard, None);
            return;
        }
        if member.is_doubtful {
            let since = member.since.filter(|_| now < member.heard + SILENCE).unwrap_or(now);
            member.since = Some(since);
            member.is_doubtful = now < since + RETURN;
        }
        (member.heard, member.is_heard) = (now, true);
        let gained = report.seen.saturating_sub(member.seen);
        let newest = report.seen.checked_sub(self.lowest + 1).and_then(|at| self.sent.get(at as usize));
        if let Some(newest) = newest.filter(|_| gained > 0) {
            let took = now.saturating_sub(newest.at);
            // A longer one holds at once: to take a full network for a member that stopped would fill it more.
            self.round_trip = took.max((self.round_trip * 7 + took) / 8);
        }
        // A repair that waits behind other datagrams has not failed.
        let pause = AGAIN.max(self.round_trip * 3 / 2);
        member.seen = member.seen.max(report.seen);
        member.lost = member.lost.max(report.lost);
        member.room = u64::from(report.room);
        let lost = member.lost - member.round.1;
        let in_round = member.seen.saturating_sub(member.round.0);
        // Few losses among few datagrams say nothing.
        let is_congested = lost.saturating_mul(100) > in_round.max(ROUND).saturating_mul(CONGESTED);
        if in_round >= ROUND || is_congested {
            member.round = (member.seen, member.lost);
        }
        let is_held_by_this = !member.is_doubtful;
        if is_congested && is_held_by_this && member.seen >= self.cut_at {
            self.window = (self.window * 7 / 10).max(LEAST_WINDOW);
            self.cut_at = self.next;
        } else if gained > 0 && is_held_by_this {
            self.window += gained * cost(1400) / 8 / self.members.len() as u64;
        }
        let rooms = self.members.values().filter(|member| member.is_heard && !member.is_doubtful);
        let ceiling = rooms.map(|member| member.room / 2).min().unwrap_or(FIRST_WINDOW);
        self.window = self.window.min(ceiling.max(LEAST_WINDOW));
        for (from, count) in &report.missing {
            for missed in (*from).max(self.lowest)..from.saturating_add(u64::from(*count)).min(self.next) {
                let Some(sent) = missed.checked_sub(self.lowest).and_then(|at| self.sent.get(at as usize)) else { continue };
                if sent.sent_again.is_none_or(|before| now >= before + pause) {
                    self.again.insert(missed);
                }
            }
        }
    }

    /// Returns true if requested datagrams wait for the share of repairs to grow.
    pub fn owes_repairs(&self) -> bool {
        !self.again.is_empty()
    }

    /// Returns the next datagram to send again, if repairs have not taken their share of the rate.
    pub fn take_again(&mut self, now: u64) -> Option<Bytes> {
        let share = (self.window / 2).max(SHARE);
        let passed = now.saturating_sub(self.repairs_at);
        let grown = u128::from(share) * u128::from(passed) / u128::from(self.round_trip.max(ROUND_TRIP));
        if grown > 0 {
            (self.repairs, self.repairs_at) = ((u128::from(self.repairs) + grown).min(u128::from(share)) as u64, now);
        }
        while let Some(number) = self.again.first().copied() {
            let Some(sent) = number.checked_sub(self.lowest).and_then(|at| self.sent.get_mut(at as usize)) else {
                self.again.pop_first();
                continue;
            };
            self.repairs = self.repairs.checked_sub(cost(sent.bytes.len()))?;
            self.again.pop_first();
            sent.sent_again = Some(now);
            self.repeated += 1;
            return Some(sent.bytes.clone());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn datagram() -> Bytes {
        Bytes::from(vec![0; 1400])
    }

    fn report(seen: u64, lost: u64) -> Report {
        Report { seen, lost, room: 1 << 20, longest: 1440, missing: Vec::new() }
    }

    fn new() -> Sending {
        Sending::new(1440)
    }

    fn fill(sending: &mut Sending, now: u64) -> u64 {
        let from = sending.next();
        while sending.has_room(now) {
            sending.push(datagram(), now);
        }
        sending.next() - from
    }

    #[test]
    fn the_slowest_member_holds_the_source_and_a_silent_one_does_not() {
        let mut sending = new();
        assert!(!sending.has_room(0), "nobody hears it");
        for member in [1, 2] {
            sending.join(member, 0);
            sending.reported(member, &report(0, 0), 0);
        }
        let first = fill(&mut sending, 0);
        assert!(first > 10);
        sending.reported(1, &report(sending.next(), 0), MS);
        // What the first one has shown raises the amount a little; the second one has reported nothing.
        assert!(fill(&mut sending, MS) < first / 4);
        sending.reported(2, &report(10, 0), 2 * MS);
        assert!(fill(&mut sending, 2 * MS) >= 9);
        // The second one stops.
        sending.reported(1, &report(sending.next(), 0), 3 * MS);
        sending.reported(1, &report(sending.next(), 0), 250 * MS);
        assert!(fill(&mut sending, 250 * MS) < first / 4);
        assert!(fill(&mut sending, 303 * MS) > 10);
        assert!(sending.hears(1, 303 * MS) && !sending.hears(2, 303 * MS));
        // It reports again, and counts after a while.
        for at in 4..=30 {
            sending.reported(2, &report(sending.next(), 0), at * 100 * MS);
        }
        assert!(sending.hears(2, 3001 * MS));
        // After a pause nobody is late before there was something to report.
        sending.reported(1, &report(sending.next(), 0), 3001 * MS);
        assert!(fill(&mut sending, 3480 * MS) > 10 && sending.hears(1, 3480 * MS) && sending.hears(2, 3480 * MS));
    }

    #[test]
    fn a_member_that_gets_short_datagrams_only_is_not_served_until_it_gets_long_ones() {
        let mut sending = new();
        for member in [1, 2] {
            sending.join(member, 0);
            sending.reported(member, &report(0, 0), 0);
        }
        let short = |seen| Report { longest: 1439, missing: vec![(0, 9)], ..report(seen, 0) };
        fill(&mut sending, 0);
        sending.reported(1, &report(sending.next(), 0), MS);
        sending.reported(2, &short(sending.next()), MS);
        assert!(sending.hears(1, MS) && !sending.hears(2, MS));
        assert!(sending.is_short(2, MS) && !sending.is_short(1, MS));
        assert_eq!(sending.take_again(MS), None, "repairs would not reach it");
        assert!(fill(&mut sending, MS) > 10, "it does not hold the other one");
        // Long datagrams arrive again, and it counts after a while.
        for at in 1..=30 {
            sending.reported(2, &report(sending.next(), 0), at * 100 * MS);
        }
        assert!(sending.hears(2, 3001 * MS) && !sending.is_short(2, 3001 * MS));
        // One that has never got a long one is never served.
        sending.join(3, 0);
        sending.reported(3, &short(0), 3001 * MS);
        assert!(!sending.hears(3, 3001 * MS) && sending.is_short(3, 3001 * MS));
        sending.reported(3, &report(0, 0), 3002 * MS);
        assert!(sending.hears(3, 3002 * MS));
        // Shorter datagrams reach a member that gets no long ones.
        sending.shorten(1439);
        sending.join(4, 0);
        sending.reported(4, &Report { longest: 1439, ..report(0, 0) }, 3002 * MS);
        assert!(sending.hears(4, 3002 * MS));
    }

    #[test]
    fn where_reports_take_long_members_are_waited_for_longer() {
        let mut sending = new();
        sending.join(1, 0);
        sending.reported(1, &report(0, 0), 0);
        fill(&mut sending, 0);
        // The first report takes long, so the next one may.
        sending.reported(1, &report(sending.next(), 0), 250 * MS);
        fill(&mut sending, 250 * MS);
        fill(&mut sending, 1000 * MS);
        assert!(sending.hears(1, 1000 * MS));
        fill(&mut sending, 1300 * MS);
        assert!(!sending.hears(1, 1300 * MS), "1 s is four times as long");
    }

    #[test]
    fn losses_lower_the_rate_and_a_few_do_not() {
        let run = |every: u64| {
            let mut sending = new();
            sending.join(1, 0);
            sending.reported(1, &report(0, 0), 0);
            for round in 1..200 {
                fill(&mut sending, round * MS);
                sending.reported(1, &report(sending.next(), sending.next() / every), round * MS);
            }
            fill(&mut sending, 200 * MS)
        };
        let (free, few, many) = (run(u64::MAX), run(100), run(8));
        assert!(free > 200 && few > free / 2, "{free} {few}");
        assert!(many < free / 5, "{free} {many}");
    }

    #[test]
    fn what_several_members_miss_is_sent_again_once() {
        let mut sending = new();
        for member in 1..=3 {
            sending.join(member, 0);
            sending.reported(member, &report(0, 0), 0);
        }
        for at in 0..20 {
            sending.push(Bytes::from(vec![at; 100]), 0);
        }
        let asked = Report { missing: vec![(3, 2), (19, 1), (20, 5), (u64::MAX, 9)], ..report(20, 3) };
        let taken =
            |sending: &mut Sending, now| std::iter::from_fn(|| sending.take_again(now)).map(|bytes| bytes[0]).collect::<Vec<_>>();
        sending.reported(1, &asked, MS);
        sending.reported(2, &asked, MS);
        assert_eq!(taken(&mut sending, MS), [3, 4, 19]);
        sending.reported(3, &asked, 5 * MS);
        assert_eq!(taken(&mut sending, 5 * MS), [0; 0]);
        sending.reported(3, &asked, 20 * MS);
        assert_eq!((taken(&mut sending, 20 * MS), sending.repeated), (vec![3, 4, 19], 6));
    }

    #[test]
    fn a_repair_under_way_is_not_sent_again_before_its_report_can_come() {
        let mut sending = new();
        sending.join(1, 0);
        sending.reported(1, &report(0, 0), 0);
        (0..20).for_each(|_| sending.push(datagram(), 0));
        // Reports take 100 ms here.
        let asked = Report { missing: vec![(3, 1)], ..report(20, 1) };
        let mut repaired_at = |now: u64| {
            sending.reported(1, &asked, now);
            sending.take_again(now).is_some()
        };
        assert!(repaired_at(100 * MS));
        assert!(!repaired_at(120 * MS) && !repaired_at(249 * MS));
        assert!(repaired_at(250 * MS));
    }

    #[test]
    fn repairs_take_half_the_rate_at_most() {
        let mut sending = new();
        sending.join(1, 0);
        sending.reported(1, &report(0, 0), 0);
        for _ in 0..5000 {
            sending.push(datagram(), 0);
        }
        // A member that asks for everything again and again.
        let asked = Report { missing: vec![(0, u32::MAX)], ..report(5000, 0) };
        let mut repaired = 0;
        for at in 1..=1000 {
            sending.reported(1, &asked, at * MS);
            repaired += std::iter::from_fn(|| sending.take_again(at * MS)).map(|bytes| cost(bytes.len())).sum::<u64>();
        }
        let rate = sending.window * 1_000_000_000 / sending.round_trip.max(ROUND_TRIP);
        assert!(sending.owes_repairs());
        assert!(repaired > rate / 4 && repaired < rate * 11 / 20, "{repaired} of {rate}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut sending = new();
        sending.join(1, 0);
        sending.reported(1, &report(0, 0), 0);
        for _ in 0..20_000 {
            sending.push(datagram(), 0);
        }
        assert!(sending.sent.len() < 8000 && sending.lowest() == 20_000 - sending.sent.len() as u64);
        assert!(!sending.has_room(0), "what a member misses is forgotten, and it is behind still");
    }
}
