//! The receiving side of a group at a member: the sources whose keys it has.

use std::{collections::HashMap, net::SocketAddr};

use super::{
    datagram::{Content, Key, Seal, head},
    hearing::Hearing,
};

/// Time in ns for which datagrams of an unknown key make this node ask for it. After that it belongs to another site, or is
/// not for this host.
const STRANGE: u64 = 4_000_000_000;
/// Unknown keys that are remembered, and for how long in ns.
const STRANGERS: usize = 64;
const STRANGER: u64 = 600_000_000_000;
/// Time in ns after which a source is forgotten that sends nothing.
const FORGET: u64 = 60_000_000_000;

struct Source {
    /// Boot of its host, and the number of its node.
    of: (u32, u64),
    /// Host chunk of its keys.
    host: String,
    seal: Seal,
    member: u16,
    hearing: Hearing,
    /// Address that its datagrams come from.
    at: Option<SocketAddr>,
    /// The highest numbers of its pieces and of its beacons.
    newest: [Option<u64>; 2],
}

impl Source {
    /// Notes the number of a datagram. Returns false if it, or a later one of its kind, came before: anybody on the network can
    /// send a recorded one again.
    fn is_newer(&mut self, number: u64, is_beacon: bool) -> bool {
        let newest = &mut self.newest[usize::from(is_beacon)];
        let is_newer = newest.is_none_or(|before| number > before);
        if is_newer {
            *newest = Some(number);
        }
        is_newer
    }
}

/// A message that has arrived, with the host chunk of its source.
pub struct Arrived {
    pub host: String,
    pub message: Vec<u8>,
}

/// The sources that a member hears.
#[derive(Default)]
pub struct Incoming {
    sources: HashMap<u64, Source>,
    /// The count of all reports, to any source: a source that is forgotten and added again has the same key and member, and a count
    /// that began again would repeat nonces.
    reports: u64,
    /// Unknown keys, with the times at which they came first.
    strangers: HashMap<u64, u64>,
    /// True if datagrams came lately whose key is not known here.
    pub misses_keys: bool,
    /// Datagrams that did not open.
    pub refused: u64,
}

impl Incoming {
    /// Adds a source that has given its key.
    pub fn add(&mut self, of: (u32, u64), host: &str, key: &Key, member: u16, hearing: Hearing) {
        if self.sources.get(&key.epoch).is_some_and(|known| known.member == member) {
            return;
        }
        let Some(seal) = Seal::new(key) else { return };
        self.sources.retain(|_, source| source.of != of);
        let source = Source { of, host: host.to_owned(), seal, member, hearing, at: None, newest: [None; 2] };
        self.sources.insert(key.epoch, source);
    }

    /// Reports if a source with this boot and host chunk is known.
    pub fn knows(&self, boot: u32, host: &str) -> bool {
        self.sources.values().any(|source| source.of.0 == boot && source.host == host)
    }

    /// Processes a datagram; `own` is the number of this host's own key.
    pub fn datagram(&mut self, bytes: &mut [u8], from: SocketAddr, own: u64, now: u64) {
        let (length, Ok((_, epoch, number))) = (bytes.len(), head(bytes)) else {
            self.refused += 1;
            return;
        };
        if epoch == own {
            return;
        }
        let Some(source) = self.sources.get_mut(&epoch) else {
            return self.strange(epoch, now);
        };
        let is_beacon = match source.seal.open(bytes) {
            Ok(Content::Piece(number, piece)) => {
                source.hearing.piece(number, &piece, now);
                false
            }
            Ok(Content::Beacon { next, lowest }) => {
                source.hearing.beacon(next, lowest, now);
                true
            }
            Ok(Content::Report(..)) | Err(_) => {
                self.refused += 1;
                return;
            }
        };
        if source.is_newer(number, is_beacon) {
            source.at = Some(from);
            source.hearing.came(length, now);
        }
    }

    /// Notes a datagram of an unknown key.
    fn strange(&mut self, epoch: u64, now: u64) {
        if !self.strangers.contains_key(&epoch) && self.strangers.len() == STRANGERS {
            self.strangers.retain(|_, first| now < *first + STRANGER);
            if self.strangers.len() == STRANGERS {
                return;
            }
        }
        let first = self.strangers.entry(epoch).or_insert(now);
        if now >= *first + STRANGER {
            *first = now;
        }
        self.misses_keys |= now < *first + STRANGE;
    }

    /// Puts the messages that have arrived into `arrived`, and sends the reports that are due. Returns the time at which to
    /// call again.
    pub fn work(&mut self, now: u64, arrived: &mut Vec<Arrived>, mut send: impl FnMut(&[u8], SocketAddr)) -> u64 {
        self.sources.retain(|_, source| now < source.hearing.heard + FORGET);
        let mut next = u64::MAX;
        for source in self.sources.values_mut() {
            while let Some(message) = source.hearing.take(now) {
                arrived.push(Arrived { host: source.host.clone(), message });
            }
            if let Some(at) = source.at
                && let Some(report) = source.hearing.report(now)
            {
                send(&source.seal.report(source.member, self.reports, &report), at);
                self.reports += 1;
            }
            next = next.min(source.hearing.due().unwrap_or(u64::MAX));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::datagram::Piece;

    /// Returns the numbers of the reports to a source that is heard and reported to.
    fn reported(incoming: &mut Incoming, seal: &Seal, now: u64) -> Vec<u64> {
        let from = SocketAddr::from(([127, 0, 0, 1], 7));
        incoming.datagram(&mut seal.beacon(now, 0, 0, 0), from, 0, now);
        let mut numbers = Vec::new();
        incoming.work(now + 10_000_000, &mut Vec::new(), |report, _| numbers.push(head(report).unwrap().2));
        numbers
    }

    #[test]
    fn a_source_that_is_forgotten_and_added_again_gets_no_number_twice() {
        let key = Key { epoch: 5, secret: [7; 32] };
        let (mut incoming, seal) = (Incoming::default(), Seal::new(&key).unwrap());
        let mut numbers = Vec::new();
        for round in 0..3 {
            let now = round * 2 * FORGET;
            incoming.add((9, 1), "h", &key, 3, Hearing::new(1 << 20, 1, now));
            numbers.extend(reported(&mut incoming, &seal, now));
            incoming.work(now + FORGET + 20_000_000, &mut Vec::new(), |_, _| {});
            assert!(!incoming.knows(9, "h"), "it is forgotten");
        }
        let mut once = numbers.clone();
        once.dedup();
        assert_eq!((numbers.len(), once), (3, numbers));
    }

    #[test]
    fn two_nodes_of_one_host_are_two_sources() {
        let (mut incoming, from) = (Incoming::default(), SocketAddr::from(([10, 0, 0, 1], 7)));
        let keys = [1, 2].map(|epoch| Key { epoch, secret: [7; 32] });
        for round in 0..3 {
            for (node, key) in keys.iter().enumerate() {
                incoming.add((9, node as u64), "h", key, 3, Hearing::new(1 << 20, 1, 0));
                incoming.datagram(&mut Seal::new(key).unwrap().beacon(round, 0, 0, 0), from, 0, 0);
            }
        }
        assert!(!incoming.misses_keys && incoming.sources.len() == 2);
        assert!(incoming.knows(9, "h") && !incoming.knows(9, "other") && !incoming.knows(8, "h"));
        // Another key of one of them replaces the one before.
        incoming.add((9, 1), "h", &Key { epoch: 3, secret: [7; 32] }, 1, Hearing::new(1 << 20, 1, 0));
        assert_eq!(incoming.sources.len(), 2);
    }

    #[test]
    fn the_key_of_a_foreign_source_is_asked_for_a_while() {
        let (mut incoming, from) = (Incoming::default(), SocketAddr::from(([10, 0, 0, 1], 7)));
        let mut misses = |epoch, now| {
            let seal = Seal::new(&Key { epoch, secret: [7; 32] }).unwrap();
            incoming.datagram(&mut seal.beacon(now, 0, 0, 0), from, 0, now);
            std::mem::take(&mut incoming.misses_keys)
        };
        assert!(misses(1, 0) && misses(1, STRANGE - 1) && !misses(1, STRANGE));
        assert!(misses(2, STRANGE), "the key of another one");
        assert!(misses(1, STRANGER), "it may have come to belong here");
        // A flood of keys takes a bounded amount of memory.
        assert_eq!((10..1000).filter(|epoch| misses(*epoch, STRANGER)).count(), STRANGERS - 2);
    }

    #[test]
    fn recorded_datagrams_do_not_redirect_reports() {
        let key = Key { epoch: 5, secret: [7; 32] };
        let (mut incoming, seal) = (Incoming::default(), Seal::new(&key).unwrap());
        incoming.add((9, 1), "h", &key, 3, Hearing::new(1 << 20, 1, 0));
        let (source, stranger) = (SocketAddr::from(([10, 0, 0, 1], 7)), SocketAddr::from(([10, 0, 0, 66], 7)));
        let piece = |number| seal.piece(number, &Piece { index: 0, offset: 0, total: 1, bytes: &[1] });
        let mut reported_to = |datagram: Vec<u8>, from, now| {
            incoming.datagram(&mut datagram.clone(), from, 0, now);
            let mut to = Vec::new();
            incoming.work(now + 10_000_000, &mut Vec::new(), |_, at| to.push(at));
            to
        };
        assert_eq!(reported_to(seal.beacon(1, 0, 0, 0), source, 0), [source]);
        assert_eq!(reported_to(piece(0), source, 20_000_000), [source]);
        assert_eq!(reported_to(seal.beacon(1, 0, 0, 0), stranger, 40_000_000), [source]);
        assert_eq!(reported_to(piece(0), stranger, 60_000_000), [source]);
        // The source's host has another address.
        let moved = SocketAddr::from(([10, 0, 0, 2], 7));
        assert_eq!(reported_to(piece(1), moved, 80_000_000), [moved]);
        assert_eq!(reported_to(seal.beacon(2, 2, 0, 0), source, 100_000_000), [source]);
    }
}
