//! A limit of rare requests by one address, such as registrations.
//!
//! Of an IPv6 address only the first 64 bits count, as for passwords.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::attempts::client_network;

/// Maximum number of remembered addresses. With a further one, the one that asked first is dropped.
pub const REMEMBERED: usize = 4096;

/// Allows each address a number of requests within a time.
#[derive(Debug)]
pub struct RequestLimit {
    most: usize,
    within: Duration,
    seen: Mutex<HashMap<IpAddr, VecDeque<Instant>>>,
}

impl RequestLimit {
    /// Creates a limit of `most` requests of an address within a time.
    pub fn new(most: usize, within: Duration) -> RequestLimit {
        RequestLimit { most, within, seen: Mutex::default() }
    }

    /// Counts a request, or returns the time until the next one.
    pub fn take(&self, from: IpAddr, now: Instant) -> Result<(), Duration> {
        let from = client_network(from);
        let mut seen = self.seen.lock();
        let recent = |at: &Instant| now.saturating_duration_since(*at) < self.within;
        if seen.len() >= REMEMBERED && !seen.contains_key(&from) {
            seen.retain(|_, times| times.back().is_some_and(&recent));
            if seen.len() >= REMEMBERED
                && let Some(oldest) = seen.iter().min_by_key(|(_, times)| times.back().copied()).map(|(from, _)| *from)
            {
                seen.remove(&oldest);
            }
        }
        let times = seen.entry(from).or_default();
        times.retain(recent);
        match times.front() {
            Some(first) if times.len() >= self.most => Err(self.within.saturating_sub(now.saturating_duration_since(*first))),
            _ => {
                times.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_waits_after_its_share() {
        let limit = RequestLimit::new(2, Duration::from_secs(60));
        let (here, there, begin) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!([limit.take(here, at(0)), limit.take(here, at(10))], [Ok(()), Ok(())]);
        assert_eq!(limit.take(here, at(20)), Err(Duration::from_secs(40)));
        assert_eq!(limit.take(there, at(20)), Ok(()));
        assert_eq!(limit.take(here, at(61)), Ok(()));
        assert_eq!(limit.take(here, at(62)), Err(Duration::from_secs(8)));
    }

    #[test]
    fn remembered_addresses_are_bounded() {
        let (limit, now) = (RequestLimit::new(1, Duration::from_secs(60)), Instant::now());
        for n in 0..REMEMBERED as u32 + 100 {
            limit.take(IpAddr::from(n.to_be_bytes()), now + Duration::from_millis(n.into())).unwrap();
        }
        assert_eq!(limit.seen.lock().len(), REMEMBERED);
    }
}
