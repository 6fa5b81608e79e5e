//! Tries at passwords: after a few wrong ones, of one login or from one address, each further one has to wait longer.
//!
//! Of IPv6 the first 64 bits are the address: the rest is anybody's to choose. An address of IPv4 is the same however it is written.
//!
//! A try counts as wrong from its beginning, so that many at once are not free. Nobody is locked out for good: a login waits at most
//! [`LOGIN_MOST`], and whoever has been let in from elsewhere stays.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Wrong tries that cost nothing, of a login and from an address.
pub const LOGIN_FREE: u32 = 5;
/// From an address: many may share one.
pub const ADDRESS_FREE: u32 = 30;
/// The longest a login waits.
pub const LOGIN_MOST: Duration = Duration::from_secs(60);
/// The longest an address waits.
pub const ADDRESS_MOST: Duration = Duration::from_secs(900);
/// After this much quiet all is forgotten.
const FORGET: Duration = Duration::from_secs(3600);
/// Logins and addresses that are remembered, each; beyond, the one that has been quiet longest is forgotten.
pub const REMEMBERED: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Tries {
    wrong: u32,
    last: Instant,
    until: Instant,
}

/// Tries, by login and by address.
#[derive(Debug, Default)]
pub struct Attempts {
    logins: Mutex<HashMap<String, Tries>>,
    addresses: Mutex<HashMap<IpAddr, Tries>>,
}

/// What of an address is somebody's: of IPv6 its network of 64 bits.
pub fn place(of: IpAddr) -> IpAddr {
    match of.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}

/// That a try has to wait for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Duration);

impl Attempts {
    /// Begins a try, or says how long it has to wait.
    pub fn begin(&self, login: &str, from: IpAddr, now: Instant) -> Result<(), Wait> {
        let from = place(from);
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |tries: Option<&Tries>| tries.map_or(Duration::ZERO, |tries| tries.until.saturating_duration_since(now));
        let wait = waits(addresses.get(&from)).max(waits(logins.get(login)));
        if !wait.is_zero() {
            return Err(Wait(wait));
        }
        count(&mut addresses, from, ADDRESS_FREE, ADDRESS_MOST, now);
        count(&mut logins, login.to_owned(), LOGIN_FREE, LOGIN_MOST, now);
        Ok(())
    }

    /// The password was right: nothing is held against the login any longer, and not this try against the address.
    pub fn right(&self, login: &str, from: IpAddr) {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner).remove(login);
        take_back(&mut self.addresses.lock().unwrap_or_else(PoisonError::into_inner), &place(from));
    }

    /// It could not be found out whether the password was right: that is held against nobody.
    pub fn unknown(&self, login: &str, from: IpAddr) {
        take_back(&mut self.addresses.lock().unwrap_or_else(PoisonError::into_inner), &place(from));
        take_back(&mut self.logins.lock().unwrap_or_else(PoisonError::into_inner), login);
    }

    /// How many logins and addresses are remembered.
    pub fn remembered(&self) -> (usize, usize) {
        let count = |logins: usize, addresses: usize| (logins, addresses);
        let logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner).len();
        count(logins, self.addresses.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}

fn take_back<K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ?Sized>(tries: &mut HashMap<K, Tries>, key: &Q) {
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
        // Others are not held up, and the right password ends it.
        attempts.begin("max", home, at(3)).unwrap();
        attempts.right("zoe", home);
        attempts.begin("zoe", home, at(3)).unwrap();
        // Not more than a minute for a login.
        let mut now = 10;
        for _ in 0..20 {
            now += 61;
            attempts.begin("zoe", IpAddr::from([10, 0, 0, now as u8]), at(now)).unwrap();
        }
        assert_eq!(attempts.begin("zoe", home, at(now)), Err(Wait(LOGIN_MOST)));
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
        // Who has a network has all its addresses.
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
