//! Counters of the traffic on each open link of this process.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The traffic of one open link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTraffic {
    /// Name in the other end's certificate.
    pub host: Option<String>,
    /// Address of this end.
    pub own: SocketAddr,
    /// Address of the other end.
    pub other: SocketAddr,
    /// Bytes sent, before encryption.
    pub sent: u64,
    /// Bytes received, after decryption.
    pub received: u64,
    /// Time since the link was made.
    pub age: Duration,
}

static OPEN: Mutex<Vec<Weak<Counted>>> = Mutex::new(Vec::new());

/// The counters of one link. The list of links forgets them when the link is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    host: Option<String>,
    own: SocketAddr,
    other: SocketAddr,
    sent: AtomicU64,
    received: AtomicU64,
    since: Instant,
}

impl Counted {
    /// Makes the counters of a new link.
    pub fn new(host: Option<String>, own: SocketAddr, other: SocketAddr) -> Arc<Counted> {
        let counted =
            Arc::new(Counted { host, own, other, sent: AtomicU64::new(0), received: AtomicU64::new(0), since: Instant::now() });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|link| link.strong_count() > 0);
        open.push(Arc::downgrade(&counted));
        counted
    }

    pub fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn traffic(&self) -> LinkTraffic {
        LinkTraffic {
            host: self.host.clone(),
            own: self.own,
            other: self.other,
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            age: self.since.elapsed(),
        }
    }
}

/// Returns the traffic of all open links of this process, the oldest link first.
pub fn open_links() -> Vec<LinkTraffic> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.iter().filter_map(Weak::upgrade).map(|link| link.traffic()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_listed_until_it_is_dropped() {
        let (own, other) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:65001".parse().unwrap());
        let of_this = || open_links().into_iter().find(|link| link.other == other);
        let link = Counted::new(Some("control".to_owned()), own, other);
        link.sent(3);
        link.received(4);
        let found = of_this().unwrap();
        assert_eq!((found.sent, found.received, found.host.as_deref()), (3, 4, Some("control")));
        drop(link);
        assert_eq!(of_this(), None);
    }
}
