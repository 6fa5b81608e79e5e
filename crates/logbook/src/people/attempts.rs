//! Limits of password attempts. After a few wrong attempts from one address, for one login or for several, each further
//! attempt waits longer.
//!
//! Wrong attempts for a login count for their address only. So nobody can lock the owner of a login out from elsewhere.
//! The number of passwords that are hashed at a time bounds the attempts from many addresses.
//!
//! Of an IPv6 address only the first 64 bits count, since a client can choose the rest. An IPv4 address counts the same
//! in all notations.
//!
//! An attempt counts as wrong from its beginning, so parallel attempts are not free. No login is locked for good: at an
//! address it waits at most [`LOGIN_MOST`], and existing sessions stay.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Wrong attempts without delay for a login at one address.
pub const LOGIN_FREE: u32 = 5;
/// Wrong attempts without delay for an address, which many users may share.
pub const ADDRESS_FREE: u32 = 30;
/// The longest delay of a login at an address.
pub const LOGIN_MOST: Duration = Duration::from_secs(60);
/// The longest delay of an address.
pub const ADDRESS_MOST: Duration = Duration::from_secs(900);
/// Counts are dropped after this time without attempts.
const FORGET: Duration = Duration::from_secs(3600);
/// Maximum number of stored logins at addresses, and of stored addresses. With a further one, the least recently used
/// is dropped.
pub const REMEMBERED: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Tries {
    wrong: u32,
    last: Instant,
    until: Instant,
}

/// Counts of attempts, by login and address, and by address alone.
#[derive(Debug, Default)]
pub struct Attempts {
    logins: Mutex<HashMap<(String, IpAddr), Tries>>,
    addresses: Mutex<HashMap<IpAddr, Tries>>,
}

/// Returns the part of an address that belongs to one client: all of IPv4, the /64 network of IPv6.
pub fn client_network(of: IpAddr) -> IpAddr {
    match of.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}

/// The time that an attempt has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

impl Attempts {
    /// Begins an attempt, or returns the time that it has to wait.
    pub fn begin(&self, login: &str, from: IpAddr, now: Instant) -> Result<(), Wait> {
        let from = client_network(from);
        let mut addresses = self.addresses.lock();
        let mut logins = self.logins.lock();
        let waits = |tries: Option<&Tries>| tries.map_or(Duration::ZERO, |tries| tries.until.saturating_duration_since(now));
        let key = (login.to_owned(), from);
        let wait = waits(addresses.get(&from)).max(waits(logins.get(&key)));
        if !wait.is_zero() {
            return Err(Wait(wait));
        }
        count(&mut addresses, from, ADDRESS_FREE, ADDRESS_MOST, now);
        count(&mut logins, key, LOGIN_FREE, LOGIN_MOST, now);
        Ok(())
    }

    /// Records a correct password: clears the login's count at the address, and withdraws this attempt from the address.
    pub fn right(&self, login: &str, from: IpAddr) {
        let from = client_network(from);
        self.logins.lock().remove(&(login.to_owned(), from));
        take_back(&mut self.addresses.lock(), &from);
    }

    /// Withdraws an attempt whose password could not be checked.
    pub fn unknown(&self, login: &str, from: IpAddr) {
        let from = client_network(from);
        take_back(&mut self.addresses.lock(), &from);
        take_back(&mut self.logins.lock(), &(login.to_owned(), from));
    }

    /// Returns the numbers of remembered logins and addresses.
    pub fn remembered(&self) -> (usize, usize) {
        let count = |logins: usize, addresses: usize| (logins, addresses);
        let logins = self.logins.lock().len();
        count(logins, self.addresses.lock().len())
    }
}

fn take_back<K: Hash + Eq>(tries: &mut HashMap<K, Tries>, key: &K) {
    if let Some(tries) = tries.get_mut(key) {
        tries.wrong = tries.wrong.saturating_sub(1);
        tries.until = tries.last;
    }
}

fn count<K: Hash + Eq + Clone>(tries: &mut HashMap<K, Tries>, key: K, free: u32, most: Duration, now: Instant) {
    if tries.len() >= REMEMBERED && !tries.contains_key(&key) {
        tries.retain(|_, tries| now.saturating_duration_since(tries.last) < FORGET);
        if tries.len() >= REMEMBERED
            && let Some(oldest) = tries.iter().min_by_key(|(_, tries)| tries.last).map(|(key, _)| key.clone())
        {
            tries.remove(&oldest);
        }
    }
    let found = tries.entry(key).or_insert(Tries { wrong: 0, last: now, until: now });
    if now.saturating_duration_since(found.last) >= FORGET {
        found.wrong = 0;
    }
    found.wrong = found.wrong.saturating_add(1);
    found.last = now;
    let wait = if found.wrong < free { Duration::ZERO } else { Duration::from_secs(1 << (found.wrong - free).min(20)).min(most) };
    found.until = now + wait;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_passwords_take_longer_and_longer() {
        let attempts = Attempts::default();
        let (home, begin) = (IpAddr::from([127, 0, 0, 1]), Instant::now());
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        for _ in 0..LOGIN_FREE {
            attempts.begin("zoe", home, begin).unwrap();
        }
        assert_eq!(attempts.begin("zoe", home, begin), Err(Wait(Duration::from_secs(1))));
        attempts.begin("zoe", home, at(1)).unwrap();
        assert_eq!(attempts.begin("zoe", home, at(1)), Err(Wait(Duration::from_secs(2))));
        attempts.begin("zoe", home, at(3)).unwrap();
        assert_eq!(attempts.begin("zoe", home, at(3)), Err(Wait(Duration::from_secs(4))));
        // Other logins do not wait, and the right password ends the wait.
        attempts.begin("max", home, at(3)).unwrap();
        attempts.right("zoe", home);
        attempts.begin("zoe", home, at(3)).unwrap();
        // A login waits at most a minute.
        let mut now = 10;
        for _ in 0..20 {
            now += 61;
            attempts.begin("zoe", home, at(now)).unwrap();
            attempts.addresses.lock().clear();
        }
        assert_eq!(attempts.begin("zoe", home, at(now)), Err(Wait(LOGIN_MOST)));
    }

    #[test]
    fn wrong_tries_from_elsewhere_do_not_lock_the_owner_out() {
        let attempts = Attempts::default();
        let (home, now) = (IpAddr::from([127, 0, 0, 1]), Instant::now());
        for n in 0..400u32 {
            attempts.begin("zoe", IpAddr::from((10 << 24 | n).to_be_bytes()), now).unwrap();
            attempts.begin("zoe", home, now).unwrap();
            attempts.right("zoe", home);
        }
    }

    #[test]
    fn an_address_waits_whatever_the_logins() {
        let attempts = Attempts::default();
        let (there, now) = (IpAddr::from([10, 1, 1, 1]), Instant::now());
        for n in 0..ADDRESS_FREE {
            attempts.begin(&n.to_string(), there, now).unwrap();
        }
        assert!(attempts.begin("another", there, now).is_err());
        assert!(attempts.begin("another", "::ffff:10.1.1.1".parse().unwrap(), now).is_err());
        attempts.begin("another", IpAddr::from([10, 1, 1, 2]), now).unwrap();
        // The owner of a network has all its addresses.
        let of = |net: u16, n: u32| IpAddr::from(Ipv6Addr::from_bits(u128::from(net) << 64 | u128::from(n)));
        for n in 0..ADDRESS_FREE {
            attempts.begin(&format!("six {n}"), of(1, n), now).unwrap();
        }
        assert!(attempts.begin("six", of(1, 1 << 20), now).is_err());
        attempts.begin("six", of(2, 1), now).unwrap();
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let attempts = Attempts::default();
        let now = Instant::now();
        for n in 0..REMEMBERED as u32 + 500 {
            attempts.begin(&n.to_string(), IpAddr::from(n.to_be_bytes()), now + Duration::from_millis(n.into())).unwrap();
        }
        assert_eq!(attempts.remembered(), (REMEMBERED, REMEMBERED));
    }
}
