//! The sending side of a group at its source: the queue of messages, their pieces, members with their leases.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    datagram::{HEAD, Key, PIECE, Piece, Report, Seal, TAG},
    sending::Sending,
};

/// Most bytes of messages that wait. More are dropped, and readers fetch them from their writers.
const QUEUE: usize = 32 << 20;
/// Time in ns for which a member holds the key without asking again.
const LEASE: u64 = 8_000_000_000;
/// Length of the shortest datagrams to which a source goes down, and the step. Every IPv4 network carries such a length.
const LEAST: usize = 548;
const STEP: usize = 60;
/// Pause in ns between beacons while something is under way, and else.
const BEACON: [u64; 2] = [6_000_000, 250_000_000];
/// Pause in ns between beacons that are as long as a piece. Shorter ones between them show which datagrams arrive.
const LONG_BEACON: u64 = 500_000_000;

/// Permission of a member to have the key.
struct Lease {
    member: u16,
    boot: u32,
    host: Option<String>,
    until: u64,
    since: u64,
}

/// A message that is being sent.
struct Current {
    bytes: Vec<u8>,
    at: usize,
    index: u32,
}

/// The sending side of a source.
pub struct Outgoing {
    key: Key,
    seal: Arc<Seal>,
    pub sending: Sending,
    queue: VecDeque<Vec<u8>>,
    queued: usize,
    current: Option<Current>,
    /// By the number of the life of the member's node: a host may have nodes of several users.
    leases: HashMap<u64, Lease>,
    last_member: u16,
    beacons: u64,
    beacon_at: u64,
    /// Time of the next beacon that is as long as a piece: members find out that long datagrams reach them.
    long_beacon_at: u64,
    /// Length of the longest datagrams.
    datagram: usize,
    /// Messages that were dropped because too many waited.
    pub dropped: u64,
    /// Hosts with proved names that may have the key.
    entitled: BTreeSet<String>,
    /// The highest number of a report, for each member.
    reports: HashMap<u16, u64>,
}

impl Outgoing {
    /// Makes a source whose datagrams have this length.
    pub fn new(datagram: usize) -> Option<Outgoing> {
        let key = Key::random()?;
        Some(Outgoing {
            seal: Arc::new(Seal::new(&key)?),
            key,
            sending: Sending::new(datagram),
            queue: VecDeque::new(),
            queued: 0,
            current: None,
            leases: HashMap::new(),
            last_member: 0,
            beacons: 0,
            beacon_at: 0,
            long_beacon_at: 0,
            datagram,
            dropped: 0,
            entitled: BTreeSet::new(),
            reports: HashMap::new(),
        })
    }

    /// Returns the key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Returns the seal of the key.
    pub fn seal(&self) -> Arc<Seal> {
        self.seal.clone()
    }

    /// Gives a member the key, or lets it have it longer. Returns its number.
    pub fn admit(&mut self, boot: u32, life: u64, host: Option<String>, now: u64) -> Option<u16> {
        if let Some(lease) = self.leases.get_mut(&life) {
            (lease.until, lease.host) = (now + LEASE, host);
            return Some(lease.member);
        }
        // A number is given once for each key: with another count of reports it would repeat a nonce.
        self.entitled.extend(host.clone());
        let member = self.last_member.checked_add(1)?;
        self.last_member = member;
        self.leases.insert(life, Lease { member, boot, host, until: now + LEASE, since: now });
        self.sending.join(member, now);
        (self.beacon_at, self.long_beacon_at) = (now, now);
        Some(member)
    }

    /// Removes members whose leases are over. With `renews`, the source takes another key then: the members ask for it.
    pub fn expire(&mut self, renews: bool, now: u64) {
        let before = self.leases.len();
        let sending = &mut self.sending;
        self.leases.retain(|_, lease| {
            if lease.until < now {
                sending.leave(lease.member);
            }
            lease.until >= now
        });
        let is_used_up = self.last_member == u16::MAX;
        if (renews && self.leases.len() < before || is_used_up)
            && let Some(fresh) = Outgoing::new(self.datagram)
        {
            let entitled = self.leases.values().filter_map(|lease| lease.host.clone()).collect();
            *self = Outgoing { dropped: self.dropped, entitled, ..fresh };
        }
    }

    /// Takes another key if something was sent that this host was not asked about: with the present one it could read that, too.
    pub fn renew_for(&mut self, host: &str) {
        let is_unused = self.sending.next() == 0 && self.queue.is_empty();
        if is_unused || self.entitled.contains(host) {
            return;
        }
        if let Some(fresh) = Outgoing::new(self.datagram) {
            let mut entitled = std::mem::take(&mut self.entitled);
            entitled.insert(host.to_owned());
            *self = Outgoing { dropped: self.dropped, entitled, ..fresh };
        }
    }

    /// Processes a report of a member with this number. An earlier number was recorded and sent again by a stranger.
    pub fn reported(&mut self, member: u16, number: u64, report: &Report, now: u64) {
        if self.reports.get(&member).is_some_and(|before| number <= *before) {
            return;
        }
        self.reports.insert(member, number);
        self.sending.reported(member, report, now);
    }

    /// Returns the boots of the hosts that hear the group.
    pub fn reached(&self, now: u64) -> Vec<u32> {
        let hears = |lease: &Lease| self.sending.hears(lease.member, now);
        let mut boots: Vec<u32> = self.leases.values().filter(|lease| hears(lease)).map(|lease| lease.boot).collect();
        boots.sort_unstable();
        boots.dedup();
        boots
    }

    /// Returns the proved names of the hosts that have the key, or would get it without another one being made.
    pub fn holders(&self) -> Vec<String> {
        self.entitled.iter().cloned().collect()
    }

    /// Returns the hosts that have had the key for this long, ns, and do not hear the group; each with the length of datagrams
    /// that do not reach it, if shorter ones do.
    pub fn unreached(&self, patience: u64, now: u64) -> Vec<(String, Option<usize>)> {
        let reached = self.reached(now);
        let is_lost = |lease: &&Lease| now > lease.since + patience && !reached.contains(&lease.boot);
        let named = |lease: &Lease| {
            let name = lease.host.clone().unwrap_or_else(|| format!("with boot {:08x}", lease.boot));
            (name, self.sending.is_short(lease.member, now).then_some(self.datagram))
        };
        let mut hosts: Vec<_> = self.leases.values().filter(is_lost).map(named).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// Puts a message into the queue. `place` is the end of its key. Returns false if too many wait.
    pub fn put(&mut self, place: &str, batch: &[u8], now: u64) -> bool {
        let length = 2 + place.len() + batch.len();
        if self.queued + length > QUEUE || !self.sending.is_heard(now) || place.len() > usize::from(u16::MAX) {
            self.dropped += 1;
            return false;
        }
        let mut message = Vec::with_capacity(length);
        message.extend_from_slice(&(place.len() as u16).to_le_bytes());
        message.extend_from_slice(place.as_bytes());
        message.extend_from_slice(batch);
        self.queued += length;
        self.queue.push_back(message);
        true
    }

    fn next_piece(&mut self, now: u64) -> Option<Bytes> {
        if self.current.is_none() {
            let bytes = self.queue.pop_front()?;
            self.queued -= bytes.len();
            self.current = Some(Current { bytes, at: 0, index: 0 });
        }
        let current = self.current.as_mut()?;
        let end = current.bytes.len().min(current.at + self.datagram - HEAD - PIECE - TAG);
        let piece = Piece {
            index: current.index,
            offset: current.at as u32,
            total: current.bytes.len() as u32,
            bytes: &current.bytes[current.at..end],
        };
        let datagram = Bytes::from(self.seal.piece(self.sending.next(), &piece));
        (current.at, current.index) = (end, current.index + 1);
        if end == current.bytes.len() {
            self.current = None;
        }
        self.sending.push(datagram.clone(), now);
        Some(datagram)
    }

    /// Notes that this host's interface sends no datagrams of this length. Those that follow are shorter.
    pub fn is_too_long(&mut self, length: usize) {
        if length >= self.datagram && self.datagram > LEAST {
            self.datagram = (self.datagram - STEP).max(LEAST);
            self.sending.shorten(self.datagram);
            // A beacon tries the new length before pieces of messages do.
            (self.beacon_at, self.long_beacon_at) = (0, 0);
        }
    }

    /// Puts the datagrams that may be sent now into `out`, at most `most`. Returns the time at which to call again at the
    /// latest.
    pub fn take(&mut self, out: &mut Vec<Bytes>, most: usize, now: u64) -> u64 {
        while out.len() < most
            && let Some(datagram) = self.sending.take_again(now)
        {
            out.push(datagram);
        }
        while out.len() < most && self.sending.has_room(now) {
            let Some(datagram) = self.next_piece(now) else { break };
            out.push(datagram);
        }
        if !self.sending.is_heard(now) && !self.queue.is_empty() {
            self.dropped += self.queue.len() as u64;
            self.queue.clear();
            self.queued = 0;
        }
        if self.leases.is_empty() {
            return now + BEACON[1];
        }
        let pause = BEACON[usize::from(!self.sending.is_under_way())];
        self.beacon_at = self.beacon_at.min(now + pause);
        if now >= self.beacon_at {
            let mut length = 0;
            if now >= self.long_beacon_at {
                (length, self.long_beacon_at) = (self.datagram, now + LONG_BEACON);
            }
            out.push(Bytes::from(self.seal.beacon(self.beacons, self.sending.next(), self.sending.lowest(), length)));
            self.beacons += 1;
            self.beacon_at = now + pause;
        }
        self.beacon_at
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::group::{datagram::Content, hearing::Hearing};

    const MS: u64 = 1_000_000;

    /// Carries what a source sends to a member, without every `nth` datagram, until nothing is left; returns the messages.
    fn carry(source: &mut Outgoing, member: u16, nth: u64, until: u64) -> Vec<Vec<u8>> {
        carry_short(source, member, (nth, usize::MAX), 0..until)
    }

    /// The same, also without datagrams that are longer than the second number.
    fn carry_short(source: &mut Outgoing, member: u16, (nth, longest): (u64, usize), time: Range<u64>) -> Vec<Vec<u8>> {
        let (mut hearing, mut came) = (Hearing::new(1 << 20, 3, time.start), Vec::new());
        let (mut count, mut reports) = (0, 0);
        for now in time.step_by(MS as usize) {
            let mut sent = Vec::new();
            source.take(&mut sent, 64, now);
            for datagram in sent {
                count += 1;
                if count % nth == 0 || datagram.len() > longest {
                    continue;
                }
                hearing.came(datagram.len(), now);
                match source.seal().open(&mut datagram.to_vec()).unwrap() {
                    Content::Piece(number, piece) => hearing.piece(number, &piece, now),
                    Content::Beacon { next, lowest } => hearing.beacon(next, lowest, now),
                    Content::Report(..) => unreachable!(),
                }
            }
            came.extend(std::iter::from_fn(|| hearing.take(now)));
            if let Some(report) = hearing.report(now) {
                let mut sealed = source.seal().report(member, reports, &report);
                reports += 1;
                let Ok(Content::Report(of, report)) = source.seal().open(&mut sealed) else { unreachable!() };
                source.sending.reported(of, &report, now);
            }
        }
        came
    }

    #[test]
    fn a_host_that_comes_later_cannot_read_what_was_sent_before() {
        let mut source = Outgoing::new(1472).unwrap();
        let host = |name: &str| Some(name.to_owned());
        let member = source.admit(1, 11, host("dish"), 0).unwrap();
        source.renew_for("mast");
        let first = source.key().epoch;
        source.admit(2, 12, host("mast"), 0);
        let report = |seen| Report { seen, lost: 0, room: 1 << 20, longest: 1472, missing: Vec::new() };
        source.reported(member, 1, &report(0), 0);
        assert!(source.put("t/x", b"secret", 0));
        let mut out = Vec::new();
        source.take(&mut out, 8, 0);
        source.renew_for("mast");
        assert_eq!(source.key().epoch, first, "this host was asked about");
        source.renew_for("vm");
        assert_ne!(source.key().epoch, first);
        assert_eq!(source.holders(), ["dish", "mast", "vm"], "they are asked about from the first message on");
        assert_eq!(source.reached(0), Vec::<u32>::new(), "all ask for the other key");
    }

    #[test]
    fn a_report_that_is_sent_again_counts_once() {
        let mut source = Outgoing::new(1472).unwrap();
        let member = source.admit(1, 11, None, 0).unwrap();
        let report = |missing| Report { seen: 0, lost: 0, room: 1 << 20, longest: 1472, missing };
        source.reported(member, 1, &report(vec![]), 0);
        source.put("t/x", &[0; 5000], 0);
        let mut out = Vec::new();
        source.take(&mut out, 8, 0);
        let asked = report(vec![(0, 2)]);
        for round in 1..4u64 {
            source.reported(member, 2, &asked, round * 1_000_000_000);
            out.clear();
            source.take(&mut out, 2, round * 1_000_000_000);
            let repairs = out.iter().filter(|datagram| crate::group::datagram::head(datagram).unwrap().0 == 1).count();
            assert_eq!(repairs, if round == 1 { 2 } else { 0 }, "round {round}");
        }
    }

    #[test]
    fn messages_arrive_in_order_also_when_datagrams_are_lost() {
        for nth in [u64::MAX, 10, 3] {
            let mut source = Outgoing::new(1440).unwrap();
            let member = source.admit(7, 1, None, 0).unwrap();
            assert!(!source.put("t/.", &[0], 0), "nobody hears it yet");
            carry(&mut source, member, u64::MAX, 30 * MS);
            let batches: Vec<Vec<u8>> = (0..20u8).map(|at| vec![at; 40_000]).collect();
            for batch in &batches {
                assert!(source.put("log/info/.", batch, 30 * MS));
            }
            let mut came = carry(&mut source, member, nth, 20_000 * MS);
            came.iter_mut().for_each(|message| {
                assert_eq!(&message[..12], b"\x0a\x00log/info/.");
                message.drain(..12);
            });
            assert_eq!(came.len(), batches.len(), "every {nth}");
            assert!(came == batches);
        }
    }

    #[test]
    fn a_path_with_a_smaller_mtu_counts_as_unreached_until_long_datagrams_pass() {
        let mut source = Outgoing::new(1472).unwrap();
        let member = source.admit(7, 1, Some("mast".to_owned()), 0).unwrap();
        let mut time = 0..0;
        let mut carry = |source: &mut Outgoing, longest, ms| {
            time = time.end..time.end + ms * MS;
            (carry_short(source, member, (u64::MAX, longest), time.clone()).len(), time.end)
        };
        let (_, now) = carry(&mut source, usize::MAX, 100);
        assert!(source.reached(now) == [7] && source.put("t/x", &[0; 5000], now));
        assert_eq!(carry(&mut source, usize::MAX, 100).0, 1);
        let (_, now) = carry(&mut source, 1471, 3000);
        assert_eq!(source.reached(now), Vec::<u32>::new());
        assert!(!source.put("t/x", &[0; 5000], now), "its readers get it singly");
        assert_eq!(source.unreached(0, now), [("mast".to_owned(), Some(1472))]);
        // The way carries long ones again.
        let (_, now) = carry(&mut source, usize::MAX, 3500);
        assert_eq!((source.reached(now), source.unreached(0, now)), (vec![7], Vec::new()));
        // This host's interface has a smaller MTU itself: the length goes down to one that passes.
        source.is_too_long(1471);
        assert_eq!(source.datagram, 1472, "one of an earlier length");
        while source.datagram > 1300 {
            source.is_too_long(source.datagram);
        }
        let (_, now) = carry(&mut source, 1300, 100);
        assert!(source.put("t/x", &[0; 5000], now));
        assert_eq!(carry(&mut source, 1300, 100).0, 1);
    }

    #[test]
    fn a_member_without_a_lease_makes_another_key() {
        let mut source = Outgoing::new(1440).unwrap();
        let first = source.admit(7, 1, Some("mast".to_owned()), 0);
        assert_eq!(source.admit(7, 1, Some("mast".to_owned()), MS), first);
        assert_ne!(source.admit(7, 2, Some("mast".to_owned()), MS), first, "another life of its node");
        assert_eq!((source.holders(), source.reached(MS)), (vec!["mast".to_owned()], Vec::new()));
        let epoch = source.key().epoch;
        source.expire(true, LEASE);
        assert_eq!(source.key().epoch, epoch);
        assert_eq!(source.unreached(5 * MS, LEASE), [("mast".to_owned(), None)]);
        source.expire(true, LEASE + 2 * MS);
        assert_ne!(source.key().epoch, epoch);
        assert!(source.holders().is_empty());
    }
}
