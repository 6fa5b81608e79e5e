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

/// Time in ns for which messages wait under another key until the members have it, and the pause between beacons that call them.
const RETURNING: u64 = 1_000_000_000;
const CALL: u64 = 50_000_000;

/// A node that asks for the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Boot of its host.
    pub boot: u32,
    /// Number that a later life of the node has too; 0 if it is not known.
    pub node: u64,
    /// Number of its life. A host may have nodes of several users.
    pub life: u64,
    /// Proved name of its host.
    pub host: Option<String>,
}

/// Pause in ns before more repairs are sent, when they have taken their share of the rate.
const REPAIRS: u64 = 2_000_000;

/// Permission of a member to have the key.
struct Lease {
    member: u16,
    asking: Asking,
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
    /// By the number of the life of the member's node.
    leases: HashMap<u64, Lease>,
    /// Members that were served under the key before: life and boot. Messages wait for them until this time.
    returning: (u64, Vec<(u64, u32)>),
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
            returning: (0, Vec::new()),
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
    pub fn admit(&mut self, asking: Asking, now: u64) -> Option<u16> {
        if let Some(lease) = self.leases.get_mut(&asking.life) {
            (lease.until, lease.asking) = (now + LEASE, asking);
            return Some(lease.member);
        }
        // The life before has ended. Its host still has the key, so the end of this lease is no reason for another one.
        let sending = &mut self.sending;
        self.leases.retain(|_, lease| {
            let before = &lease.asking;
            let is_same =
                asking.node != 0 && (before.boot, before.node, &before.host) == (asking.boot, asking.node, &asking.host);
            if is_same {
                sending.leave(lease.member);
            }
            !is_same
        });
        // A number is given once for each key: with another count of reports it would repeat a nonce.
        self.entitled.extend(asking.host.clone());
        let member = self.last_member.checked_add(1)?;
        self.last_member = member;
        self.leases.insert(asking.life, Lease { member, asking, until: now + LEASE, since: now });
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
        if renews && self.leases.len() < before || is_used_up {
            let entitled = self.leases.values().filter_map(|lease| lease.asking.host.clone()).collect();
            self.renew(entitled, now);
        }
    }

    /// Takes another key if something was sent that this host was not asked about: with the present one it could read that, too.
    /// Messages that wait stay if it `may` read what has this place.
    pub fn renew_for(&mut self, host: &str, now: u64, may: impl Fn(&str) -> bool) {
        let is_unused = self.sending.next() == 0 && self.queue.is_empty();
        if is_unused || self.entitled.contains(host) {
            return;
        }
        let mut entitled = self.entitled.clone();
        entitled.insert(host.to_owned());
        self.renew(entitled, now);
        let before = self.queue.len();
        self.queue.retain(|message| place_of(message).is_some_and(&may));
        self.queued = self.queue.iter().map(Vec::len).sum();
        self.dropped += (before - self.queue.len()) as u64;
    }

    /// Takes another key. Messages wait until the members that were served have it.
    fn renew(&mut self, entitled: BTreeSet<String>, now: u64) {
        let Some(mut fresh) = Outgoing::new(self.datagram) else { return };
        let is_served = |(_, lease): &(&u64, &Lease)| self.sending.hears(lease.member, now);
        let mut returning = (now + RETURNING, Vec::new());
        if self.awaits_members(now) {
            // A key that is followed by another one at once holds messages no longer.
            returning = self.returning.clone();
        }
        returning.1.extend(self.leases.iter().filter(is_served).map(|(life, lease)| (*life, lease.asking.boot)));
        // A message that was half sent is sent anew.
        for message in self.current.take().map(|current| current.bytes).into_iter().chain(self.queue.drain(..)) {
            fresh.queued += message.len();
            fresh.queue.push_back(message);
        }
        fresh.sending.repeated = self.sending.repeated;
        *self = Outgoing { dropped: self.dropped, entitled, returning, ..fresh };
    }

    /// Returns true while members that were served under the key before may ask for this one.
    fn awaits_members(&self, now: u64) -> bool {
        let (until, lives) = &self.returning;
        let is_back = |life| self.leases.get(life).is_some_and(|lease| self.sending.hears(lease.member, now));
        now < *until && !lives.iter().all(|(life, _)| is_back(life))
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
        let mut boots: Vec<u32> = self.leases.values().filter(|lease| hears(lease)).map(|lease| lease.asking.boot).collect();
        if self.awaits_members(now) {
            boots.extend(self.returning.1.iter().map(|(_, boot)| *boot));
        }
        boots.sort_unstable();
        boots.dedup();
        boots
    }

    /// Returns true if no member on the host with this boot fails to hear the group.
    pub fn reaches_all(&self, boot: u32, now: u64) -> bool {
        let mut of_host = self.leases.values().filter(|lease| lease.asking.boot == boot);
        of_host.all(|lease| self.sending.hears(lease.member, now))
    }

    /// Returns the proved names of the hosts that have the key, or would get it without another one being made.
    pub fn holders(&self) -> Vec<String> {
        self.entitled.iter().cloned().collect()
    }

    /// Returns the hosts that have had the key for this long, ns, and do not hear the group; each with the length of datagrams
    /// that do not reach it, if shorter ones do.
    pub fn unreached(&self, patience: u64, now: u64) -> Vec<(String, Option<usize>)> {
        let reached = self.reached(now);
        let is_lost = |lease: &&Lease| now > lease.since + patience && !reached.contains(&lease.asking.boot);
        let named = |lease: &Lease| {
            let Asking { boot, host, .. } = &lease.asking;
            let name = host.clone().unwrap_or_else(|| format!("with boot {boot:08x}"));
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
        let is_heard = self.sending.is_heard(now) || self.awaits_members(now);
        if self.queued + length > QUEUE || !is_heard || place.len() > usize::from(u16::MAX) {
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
        let awaits = self.awaits_members(now);
        while out.len() < most && !awaits && self.sending.has_room(now) {
            let Some(datagram) = self.next_piece(now) else { break };
            out.push(datagram);
        }
        if !awaits && !self.sending.is_heard(now) && !self.queue.is_empty() {
            self.dropped += self.queue.len() as u64;
            self.queue.clear();
            self.queued = 0;
        }
        if self.leases.is_empty() && !awaits {
            return now + BEACON[1];
        }
        // Beacons of a key that members do not have make them ask for it.
        let longest = if awaits { CALL } else { u64::MAX };
        let pause = BEACON[usize::from(!self.sending.is_under_way())].min(longest);
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
        if self.sending.owes_repairs() { self.beacon_at.min(now + REPAIRS) } else { self.beacon_at }
    }
}

/// Returns the place in front of a message.
fn place_of(message: &[u8]) -> Option<&str> {
    let (length, rest) = message.split_first_chunk()?;
    std::str::from_utf8(rest.get(..usize::from(u16::from_le_bytes(*length)))?).ok()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::group::{datagram::Content, hearing::Hearing};

    const MS: u64 = 1_000_000;

    fn asking(boot: u32, life: u64, host: Option<&str>) -> Asking {
        Asking { boot, node: 5, life, host: host.map(str::to_owned) }
    }

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
        let member = source.admit(asking(1, 11, Some("dish")), 0).unwrap();
        source.renew_for("mast", 0, |_| true);
        let first = source.key().epoch;
        source.admit(asking(2, 12, Some("mast")), 0);
        let report = |seen| Report { seen, lost: 0, room: 1 << 20, longest: 1472, missing: Vec::new() };
        source.reported(member, 1, &report(0), 0);
        assert!(source.put("t/x", b"secret", 0));
        let mut out = Vec::new();
        source.take(&mut out, 8, 0);
        source.renew_for("mast", 0, |_| true);
        assert_eq!(source.key().epoch, first, "this host was asked about");
        source.renew_for("vm", 0, |place| place != "t/x");
        assert_ne!(source.key().epoch, first);
        assert_eq!(source.holders(), ["dish", "mast", "vm"], "they are asked about from the first message on");
        assert!(source.leases.is_empty(), "all ask for the other key");
    }

    #[test]
    fn a_report_that_is_sent_again_counts_once() {
        let mut source = Outgoing::new(1472).unwrap();
        let member = source.admit(asking(1, 11, None), 0).unwrap();
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
            let member = source.admit(asking(7, 1, None), 0).unwrap();
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
        let member = source.admit(asking(7, 1, Some("mast")), 0).unwrap();
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
        let first = source.admit(asking(7, 1, Some("mast")), 0);
        assert_eq!(source.admit(asking(7, 1, Some("mast")), MS), first);
        assert_ne!(source.admit(Asking { node: 6, ..asking(7, 2, Some("mast")) }, MS), first, "another node of the host");
        assert_eq!((source.holders(), source.reached(MS)), (vec!["mast".to_owned()], Vec::new()));
        let epoch = source.key().epoch;
        source.expire(true, LEASE);
        assert_eq!(source.key().epoch, epoch);
        assert_eq!(source.unreached(5 * MS, LEASE), [("mast".to_owned(), None)]);
        source.expire(true, LEASE + 2 * MS);
        assert_ne!(source.key().epoch, epoch);
        assert!(source.holders().is_empty());
    }

    #[test]
    fn a_new_life_of_a_node_replaces_its_lease_and_needs_no_other_key() {
        let mut source = Outgoing::new(1440).unwrap();
        source.admit(asking(7, 1, Some("mast")), 0);
        let member = source.admit(asking(7, 2, Some("mast")), MS).unwrap();
        carry_short(&mut source, member, (u64::MAX, usize::MAX), MS..30 * MS);
        let epoch = source.key().epoch;
        source.admit(asking(7, 2, Some("mast")), LEASE);
        source.expire(true, LEASE + 2 * MS);
        assert_eq!((source.key().epoch, source.leases.len()), (epoch, 1));
        // Another host cannot end the lease of this one.
        source.admit(asking(7, 3, Some("other")), LEASE);
        assert_eq!(source.leases.len(), 2);
    }

    #[test]
    fn two_nodes_of_one_host_are_reached_both_or_not_at_all() {
        let mut source = Outgoing::new(1440).unwrap();
        assert!(source.reaches_all(7, 0));
        let first = source.admit(asking(7, 1, None), 0).unwrap();
        carry(&mut source, first, u64::MAX, 30 * MS);
        assert!(source.reaches_all(7, 30 * MS));
        source.admit(Asking { node: 6, ..asking(7, 2, None) }, 30 * MS);
        assert!(!source.reaches_all(7, 30 * MS) && source.reaches_all(8, 30 * MS));
    }

    #[test]
    fn messages_wait_for_the_members_when_the_key_changes() {
        let mut source = Outgoing::new(1440).unwrap();
        let staying = source.admit(asking(7, 1, Some("mast")), 0).unwrap();
        source.admit(asking(8, 2, Some("dish")), 0);
        let now = LEASE + 2 * MS;
        source.admit(asking(7, 1, Some("mast")), now - 30 * MS);
        carry_short(&mut source, staying, (u64::MAX, usize::MAX), now - 30 * MS..now);
        assert!(source.put("log/info/.", b"before", now));
        let epoch = source.key().epoch;
        source.expire(true, now);
        assert_ne!(source.key().epoch, epoch);
        assert_eq!(source.reached(now), [7], "processes go on sending by the group");
        assert!(source.put("t/.", b"after", now));
        // Beacons call the member, and pieces wait for it.
        let mut out = Vec::new();
        source.take(&mut out, 64, now);
        let kinds: Vec<u8> = out.iter().map(|datagram| crate::group::datagram::head(datagram).unwrap().0).collect();
        assert_eq!(kinds, [2]);
        // A host that comes meanwhile may read one topic.
        source.renew_for("vm", now + MS, |place| place == "t/.");
        assert_eq!(source.reached(now + MS), [7]);
        let member = source.admit(asking(7, 1, Some("mast")), now + 20 * MS).unwrap();
        let came = carry_short(&mut source, member, (u64::MAX, usize::MAX), now + 20 * MS..now + 100 * MS);
        assert_eq!(came, [b"\x03\x00t/.after".to_vec()]);
        // A member that does not come back holds the others for a second.
        source.admit(asking(9, 9, Some("vm")), now + 100 * MS);
        source.renew(BTreeSet::new(), now + 100 * MS);
        assert_eq!(source.reached(now + 1099 * MS), [7]);
        assert_eq!(source.reached(now + 1100 * MS), Vec::<u32>::new());
        out.clear();
        source.take(&mut out, 64, now + 1100 * MS);
        assert_eq!(out.len(), 0, "nobody is called any longer");
    }
}
