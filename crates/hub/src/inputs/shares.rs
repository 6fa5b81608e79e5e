//! Shares of the senders of an input, so that one sender that floods it leaves room for the others.
//!
//! Each address has a rate of messages, and may send ahead for [`AHEAD_S`] seconds. The table of addresses is bounded: UDP
//! senders can forge theirs. Addresses that find no room in it share one entry.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Seconds of its rate that a sender may send at once.
const AHEAD_S: f64 = 5.0;
/// Addresses with an entry of their own.
const ADDRESSES: usize = 4096;
/// Shortest time between two removals of entries from a full table.
const PRUNE: Duration = Duration::from_secs(1);
/// The entry of all others.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Messages that an address may still send.
#[derive(Debug, Clone, Copy)]
struct Share {
    left: f64,
    at: Instant,
}

/// The entries of addresses.
#[derive(Debug, Default)]
struct Table {
    of: HashMap<IpAddr, Share>,
    /// Time of the last removal of entries.
    pruned: Option<Instant>,
}

/// The shares of all addresses.
#[derive(Debug)]
pub(super) struct Shares {
    /// Messages a second of one address; 0 for no limit.
    rate: f64,
    table: Mutex<Table>,
}

impl Shares {
    pub fn new(rate: u32) -> Shares {
        Shares { rate: f64::from(rate), table: Mutex::default() }
    }

    /// Takes one message of an address out of its share. Returns false if nothing is left of it at this moment.
    pub fn admit(&self, address: IpAddr, now: Instant) -> bool {
        if self.rate <= 0.0 {
            return true;
        }
        let full = self.rate * AHEAD_S;
        let mut table = self.table.lock();
        let Table { of, pruned } = &mut *table;
        let is_full = of.len() >= ADDRESSES && !of.contains_key(&address);
        if is_full && pruned.is_none_or(|pruned| now.saturating_duration_since(pruned) >= PRUNE) {
            // Shares that are full again are as good as new ones.
            of.retain(|_, share| share.left + now.saturating_duration_since(share.at).as_secs_f64() * self.rate < full);
            *pruned = Some(now);
        }
        let key = if of.len() < ADDRESSES || of.contains_key(&address) { address } else { OTHERS };
        let share = of.entry(key).or_insert(Share { left: full, at: now });
        share.left = (share.left + now.saturating_duration_since(share.at).as_secs_f64() * self.rate).min(full);
        share.at = now;
        let admitted = share.left >= 1.0;
        if admitted {
            share.left -= 1.0;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn a_flood_of_one_address_leaves_the_shares_of_the_others() {
        let (shares, now) = (Shares::new(10), Instant::now());
        assert_eq!((0..1000).filter(|_| shares.admit(address(1), now)).count(), 50);
        assert!(shares.admit(address(2), now));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..1000).filter(|_| shares.admit(address(1), later)).count(), 10);
        assert!((0..100_000).all(|_| Shares::new(0).admit(address(1), now)), "without a limit");
    }

    #[test]
    fn forged_addresses_share_one_entry_once_the_table_is_full() {
        let (shares, now) = (Shares::new(1), Instant::now());
        let admitted = (0..100_000).filter(|&number| shares.admit(address(number), now)).count();
        assert!(admitted <= ADDRESSES + 5 && shares.table.lock().of.len() <= ADDRESSES + 1, "{admitted}");
        // When the flood is over, its entries make room.
        let later = now + Duration::from_secs(60);
        assert!(shares.admit(address(7_000_000), later) && shares.table.lock().of.len() == 1);
    }
}
