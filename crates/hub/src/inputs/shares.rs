//! Shares of the senders of an input, so that one sender that floods it leaves room for the others.
//!
//! Each address has a rate of messages, and may send ahead for [`AHEAD_S`] seconds. All addresses together have a total:
//! most of the quota that the collector has for the input's source. While less than half of a second's total is left,
//! only addresses below their fair part are admitted, which is the total divided by the addresses that send. So the
//! collector drops nothing of the input, and what is too much is dropped of the addresses that send most.
//!
//! The table of addresses is bounded: UDP senders can forge theirs. Addresses that find no room in it share one entry.
//!
//! Rejected: a fixed part for each address, because a quiet address's part would be lost to the others.

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
/// Shortest time between two removals of entries from a full table, and between two counts of the senders.
const PRUNE: Duration = Duration::from_secs(1);
/// Time without a message after which an address does not count as a sender.
const QUIET: Duration = Duration::from_secs(5);
/// The entry of all others.
const OTHERS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// Part of the source's quota that the input uses.
const OF_QUOTA: f64 = 0.8;
/// Bytes that a message needs on the bus beside its own.
const OVERHEAD: f64 = 256.0;
/// Seconds of the total that may be used at once.
const TOTAL_AHEAD_S: f64 = 1.0;

/// Limits of the senders of an input; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShareLimits {
    /// Messages a second of one address.
    pub of_one: u32,
    /// Records a second of all addresses: the quota of the source.
    pub records_per_s: u64,
    /// Bytes a second of all addresses: the quota of the source.
    pub bytes_per_s: u64,
}

/// Use of an input by one address.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// Messages that the address may still send.
    left: f64,
    /// Seconds of the total that it used lately: the uses of the last second count most.
    load: f64,
    at: Instant,
    /// Messages that were dropped since they were reported.
    shed: u64,
}

/// The entries of addresses.
#[derive(Debug, Default)]
struct Table {
    of: HashMap<IpAddr, Share>,
    /// Time of the last removal of entries, and count of the senders.
    pruned: Option<Instant>,
    counted: Option<Instant>,
    senders: usize,
    /// Seconds of the total that are used, and the time of the last use.
    used: f64,
    at: Option<Instant>,
}

/// The shares of all addresses.
#[derive(Debug)]
pub(super) struct Shares {
    limits: ShareLimits,
    table: Mutex<Table>,
}

impl ShareLimits {
    /// Returns the seconds of the total that a message of this length uses.
    fn cost(&self, bytes: usize) -> f64 {
        let part = |of: f64, limit: u64| if limit == 0 { 0.0 } else { of / (limit as f64 * OF_QUOTA) };
        part(1.0, self.records_per_s).max(part(bytes as f64 + OVERHEAD, self.bytes_per_s))
    }
}

impl Table {
    /// Returns the entry for an address; makes room for it if possible.
    fn key(&mut self, address: IpAddr, now: Instant, full: f64, rate: f64) -> IpAddr {
        let is_full = self.of.len() >= ADDRESSES && !self.of.contains_key(&address);
        if is_full && self.pruned.is_none_or(|pruned| now.saturating_duration_since(pruned) >= PRUNE) {
            // Shares that are full again are as good as new ones.
            let since = |share: &Share| now.saturating_duration_since(share.at);
            let is_used = |share: &Share| since(share) < QUIET || share.left + since(share).as_secs_f64() * rate < full;
            self.of.retain(|_, share| is_used(share) || share.shed > 0);
            self.pruned = Some(now);
        }
        if self.of.len() < ADDRESSES || self.of.contains_key(&address) { address } else { OTHERS }
    }

    /// Returns the fair part of one sender in the total. The sender `key` counts, also if it is new.
    fn fair(&mut self, key: IpAddr, now: Instant) -> f64 {
        if self.counted.is_none_or(|counted| now.saturating_duration_since(counted) >= PRUNE) {
            self.senders = self.of.values().filter(|share| now.saturating_duration_since(share.at) < QUIET).count();
            self.counted = Some(now);
        }
        self.senders += usize::from(!self.of.contains_key(&key));
        1.0 / self.senders.max(1) as f64
    }

    /// Returns the seconds of the total that are left.
    fn left(&mut self, now: Instant) -> f64 {
        let since = self.at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        self.used = (self.used - since).max(0.0);
        self.at = Some(now);
        TOTAL_AHEAD_S - self.used
    }
}

impl Shares {
    pub fn new(limits: ShareLimits) -> Shares {
        Shares { limits, table: Mutex::default() }
    }

    /// Takes one message of an address out of its share. Returns false if nothing is left of it at this moment.
    pub fn admit(&self, address: IpAddr, bytes: usize, now: Instant) -> bool {
        let (rate, cost) = (f64::from(self.limits.of_one), self.limits.cost(bytes));
        let full = rate * AHEAD_S;
        let mut table = self.table.lock();
        let key = table.key(address, now, full, rate);
        let (fair, left) = (table.fair(key, now), table.left(now));
        let share = table.of.entry(key).or_insert(Share { left: full, load: 0.0, at: now, shed: 0 });
        let since = now.saturating_duration_since(share.at).as_secs_f64();
        share.left = (share.left + since * rate).min(full);
        share.load *= (-since).exp();
        share.at = now;
        let has_share = self.limits.of_one == 0 || share.left >= 1.0;
        let has_total = cost <= 0.0 || left >= TOTAL_AHEAD_S / 2.0 || left > 0.0 && share.load + cost <= fair;
        if has_share && has_total {
            share.left -= if self.limits.of_one == 0 { 0.0 } else { 1.0 };
            share.load += cost;
            table.used += cost;
        }
        has_share && has_total
    }

    /// Counts messages of an address that were dropped.
    pub fn shed(&self, address: IpAddr, messages: u64, now: Instant) {
        let rate = f64::from(self.limits.of_one);
        let full = rate * AHEAD_S;
        let mut table = self.table.lock();
        let key = table.key(address, now, full, rate);
        table.of.entry(key).or_insert(Share { left: full, load: 0.0, at: now, shed: 0 }).shed += messages;
    }

    /// Returns the addresses of dropped messages with their numbers, the largest first, and begins to count anew.
    /// `None` stands for the addresses without an entry of their own.
    pub fn take_shed(&self) -> Vec<(Option<IpAddr>, u64)> {
        let mut table = self.table.lock();
        let dropped = table.of.iter_mut().filter(|(_, share)| share.shed > 0);
        let of =
            |(&address, share): (&IpAddr, &mut Share)| ((address != OTHERS).then_some(address), std::mem::take(&mut share.shed));
        let mut shed: Vec<_> = dropped.map(of).collect();
        shed.sort_by_key(|&(address, messages)| (std::cmp::Reverse(messages), address));
        shed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    fn rate(of_one: u32) -> Shares {
        Shares::new(ShareLimits { of_one, ..ShareLimits::default() })
    }

    #[test]
    fn a_flood_of_one_address_leaves_the_shares_of_the_others() {
        let (shares, now) = (rate(10), Instant::now());
        assert_eq!((0..1000).filter(|_| shares.admit(address(1), 1, now)).count(), 50);
        assert!(shares.admit(address(2), 1, now));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..1000).filter(|_| shares.admit(address(1), 1, later)).count(), 10);
        assert!((0..100_000).all(|_| rate(0).admit(address(1), 1, now)), "without a limit");
    }

    /// Ten seconds in which one address sends `flood` messages of 64 KiB every 10 ms, and each of 20 others one short
    /// message every 100 ms. Returns the admitted messages of the first, and the dropped ones of the others.
    fn ten_seconds(limits: ShareLimits, flood: u32) -> (u64, u64) {
        let (shares, begin) = (Shares::new(limits), Instant::now());
        let (mut admitted, mut dropped) = (0, 0);
        for step in 0..1000u32 {
            let now = begin + Duration::from_millis(u64::from(step) * 10);
            admitted += (0..flood).filter(|_| shares.admit(address(1), 65536, now)).count() as u64;
            if step % 10 == 0 {
                dropped += (2..22).filter(|&number| !shares.admit(address(number), 100, now)).count() as u64;
            }
        }
        (admitted, dropped)
    }

    #[test]
    fn the_total_is_kept_and_only_the_address_that_floods_is_shed() {
        // 65 MB/s of one address against a quota of 1 MB/s of the whole source.
        let limits = ShareLimits { of_one: 20_000, records_per_s: 200_000, bytes_per_s: 1_000_000 };
        let (admitted, dropped) = ten_seconds(limits, 10);
        assert_eq!(dropped, 0, "light senders get through");
        let bytes = admitted * 65536 + 2000 * 100;
        assert!((4_000_000..10_000_000).contains(&bytes), "{bytes} bytes in 10 s: below the quota, and most of it used");
        // Without a quota nobody is restrained.
        assert_eq!(ten_seconds(ShareLimits { of_one: 20_000, ..ShareLimits::default() }, 10), (10_000, 0));
    }

    #[test]
    fn heavy_senders_share_the_total_evenly() {
        let (shares, begin) = (Shares::new(ShareLimits { of_one: 0, records_per_s: 1000, bytes_per_s: 0 }), Instant::now());
        let mut admitted = [0u32; 4];
        for step in 0..2000u32 {
            let now = begin + Duration::from_millis(u64::from(step) * 10);
            for (number, count) in admitted.iter_mut().enumerate() {
                // The first address sends ten times as much as the others, and those as much as the total.
                let sent = if number == 0 { 100 } else { 10 };
                *count += (0..sent).filter(|_| shares.admit(address(number as u32), 1, now)).count() as u32;
            }
        }
        let sum: u32 = admitted.iter().sum();
        assert!((14_000..=18_000).contains(&sum), "{admitted:?}: 0.8 of the quota over 20 s");
        assert!(admitted.iter().skip(1).all(|&count| count >= 2500), "{admitted:?}");
    }

    #[test]
    fn dropped_messages_are_counted_by_address_until_they_are_taken() {
        let (shares, now) = (rate(1), Instant::now());
        shares.shed(address(1), 2, now);
        shares.shed(address(2), 30, now);
        shares.shed(address(1), 3, now);
        assert_eq!(shares.take_shed(), [(Some(address(2)), 30), (Some(address(1)), 5)]);
        assert_eq!(shares.take_shed(), []);
    }

    #[test]
    fn forged_addresses_share_one_entry_once_the_table_is_full() {
        let (shares, now) = (rate(1), Instant::now());
        let admitted = (0..100_000).filter(|&number| shares.admit(address(number), 1, now)).count();
        assert!(admitted <= ADDRESSES + 5 && shares.table.lock().of.len() <= ADDRESSES + 1, "{admitted}");
        // When the flood is over, its entries make room.
        let later = now + Duration::from_secs(60);
        assert!(shares.admit(address(7_000_000), 1, later) && shares.table.lock().of.len() == 1);
    }
}
