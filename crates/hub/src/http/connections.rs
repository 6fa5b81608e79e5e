//! The open connections of a server: a limit for all, a share for each address, and room for a new one where another is idle.
//!
//! A connection is idle while none of its requests is under way and no answer is being written: before the first head, and
//! between two requests. If the server or an address has as many connections as it may have, the connection that has been
//! idle longest is closed for the new one. So one computer cannot keep others out, and a browser's kept connection is no
//! reason to reject a page.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tampu_logbook::people::attempts::client_network;
use tokio::sync::Notify;

use super::client_address::Proxies;

/// The open connections of one server.
pub struct Connections {
    most: usize,
    of_one: usize,
    /// Proxies have no share of their own: many clients are behind one.
    proxies: Proxies,
    state: Mutex<State>,
    /// Notified when the last connection has ended.
    ended: Notify,
}

#[derive(Default)]
struct State {
    /// A number that grows with each event, in place of a time.
    clock: u64,
    open: HashMap<u64, Open>,
    /// Connections whose tasks still run, including those that are being closed.
    running: usize,
}

struct Open {
    /// The network of the client; `None` for a proxy.
    from: Option<IpAddr>,
    /// Requests under way.
    busy: usize,
    /// The moment at which the last request ended.
    idle_since: u64,
    close: Arc<Notify>,
}

/// An open connection; its place is free again when it is dropped.
pub struct Connection {
    all: Arc<Connections>,
    number: u64,
    close: Arc<Notify>,
    unsent: Arc<Unsent>,
}

/// A request that is under way on a connection. When it is dropped, the connection stays busy until its answer is sent.
pub struct Busy {
    request: Option<Request>,
    unsent: Arc<Unsent>,
}

/// The requests of a connection whose answers are made, and not yet written to the socket.
#[derive(Default)]
pub struct Unsent(Mutex<Vec<Request>>);

/// The count of one request in its connection.
struct Request {
    all: Arc<Connections>,
    number: u64,
}

impl Unsent {
    /// Notes that everything is written to the socket.
    pub fn sent(&self) {
        let sent = std::mem::take(&mut *self.0.lock());
        drop(sent);
    }
}

impl State {
    /// Closes the connection that has been idle longest, of those that `may` names; returns true if there is one.
    fn close_idle(&mut self, may: impl Fn(&Open) -> bool) -> bool {
        let idle = self.open.iter().filter(|(_, open)| open.busy == 0 && may(open));
        let Some(oldest) = idle.min_by_key(|(_, open)| open.idle_since).map(|(number, _)| *number) else { return false };
        if let Some(open) = self.open.remove(&oldest) {
            open.close.notify_one();
        }
        true
    }

    /// Counts the connections of an address.
    fn of(&self, from: IpAddr) -> usize {
        self.open.values().filter(|open| open.from == Some(from)).count()
    }

    /// Returns the address with the most connections among those with an idle one.
    fn largest(&self) -> Option<IpAddr> {
        let mut counts: HashMap<IpAddr, (usize, bool)> = HashMap::new();
        for open in self.open.values() {
            if let Some(from) = open.from {
                let count = counts.entry(from).or_default();
                count.0 += 1;
                count.1 |= open.busy == 0;
            }
        }
        let idle = counts.into_iter().filter(|(_, (_, idle))| *idle);
        idle.max_by_key(|(_, (count, _))| *count).map(|(from, _)| from)
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Connections {
    /// No connection is open. At most `most` may be, and at most `of_one` of one address.
    pub fn new(most: usize, of_one: usize, proxies: Proxies) -> Arc<Connections> {
        Arc::new(Connections { most, of_one, proxies, state: Mutex::default(), ended: Notify::new() })
    }

    /// Opens a connection from an address; `None` if there is no room for it.
    pub fn open(self: &Arc<Connections>, from: IpAddr) -> Option<Connection> {
        let from = (!self.proxies.has(from)).then(|| client_network(from));
        let mut state = self.state.lock();
        if let Some(from) = from
            && state.of(from) >= self.of_one
            && !state.close_idle(|open| open.from == Some(from))
        {
            return None;
        }
        if state.open.len() >= self.most {
            let largest = state.largest();
            if !state.close_idle(|open| largest.is_none() || open.from == largest) {
                return None;
            }
        }
        let (number, close) = (state.tick(), Arc::new(Notify::new()));
        state.open.insert(number, Open { from, busy: 0, idle_since: number, close: close.clone() });
        state.running += 1;
        Some(Connection { all: self.clone(), number, close, unsent: Arc::default() })
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.state.lock().open.len()
    }

    /// Waits until no connection is left.
    pub async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.state.lock().running == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Connection {
    /// Marks the connection as busy while a request is under way.
    pub fn busy(&self) -> Busy {
        if let Some(open) = self.all.state.lock().open.get_mut(&self.number) {
            open.busy += 1;
        }
        Busy { request: Some(Request { all: self.all.clone(), number: self.number }), unsent: self.unsent.clone() }
    }

    /// The answers that are still to be written.
    pub fn unsent(&self) -> Arc<Unsent> {
        self.unsent.clone()
    }

    /// Waits until the connection is closed for another one.
    pub async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        state.open.remove(&self.number);
        state.running -= 1;
        if state.running == 0 {
            self.all.ended.notify_waiters();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.unsent.0.lock().extend(self.request.take());
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        let now = state.tick();
        if let Some(open) = state.open.get_mut(&self.number) {
            open.busy -= 1;
            open.idle_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    fn is_open(connection: &Connection) -> bool {
        connection.all.state.lock().open.contains_key(&connection.number)
    }

    #[test]
    fn an_address_has_a_share_and_its_oldest_idle_connection_makes_room() {
        let all = Connections::new(10, 3, Proxies::new(&[address(9)]));
        let open = |n| all.open(address(n));
        let own: Vec<Connection> = (0..3).map(|_| open(1).unwrap()).collect();
        let request = own[0].busy();
        let fourth = open(1).unwrap();
        assert_eq!([&own[0], &own[1], &own[2], &fourth].map(is_open), [true, false, true, true]);
        let _requests = [own[2].busy(), fourth.busy()];
        assert!(open(1).is_none(), "all of them are busy");
        assert!(open(2).is_some(), "another address");
        drop(request);
        assert!(open(1).is_none(), "its answer is being written");
        own[0].unsent().sent();
        assert!(open(1).is_some() && !is_open(&own[0]), "a connection whose answer is sent is idle");
        // A proxy has no share.
        assert_eq!((0..4).filter_map(|_| open(9)).count(), 4);
    }

    #[test]
    fn a_full_server_closes_an_idle_connection_of_the_address_with_most() {
        let all = Connections::new(5, 4, Proxies::default());
        let open = |n| all.open(address(n));
        let (small, large): (Connection, Vec<Connection>) = (open(1).unwrap(), (0..4).map(|_| open(2).unwrap()).collect());
        let other = open(3).unwrap();
        assert!(is_open(&small) && is_open(&other), "the oldest of all is not the one that goes");
        assert_eq!(large.iter().map(is_open).collect::<Vec<_>>(), [false, true, true, true]);
        let _requests: Vec<Busy> = large.iter().chain([&small, &other]).map(Connection::busy).collect();
        assert!(open(4).is_none());
    }
}
